//! Deficit round robin: bands take turns, each with a queue of its own. A band may send its quantum of bytes in a turn (Shreedhar
//! and Varghese, "Efficient Fair Queuing using Deficit Round Robin", 1995; Linux `sch_drr`).
//!
//! One difference: a packet that is larger than the rest of the quantum is sent, and the excess is taken from the band's next
//! turn. The original looks at a packet before it takes it; a queue that drops at its head does not allow that. Shares are the same.

use crate::bands::{self, Bands, Filter};
use crate::{Backlog, Fate, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Bytes, Dscp, Ecn, Packet, Random, Time};

/// Parameters of deficit round robin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The bands; 1 to 16. A packet goes to the first band whose lists match it, or else to the last. By default L4S packets
    /// (ECT(1), CE) and all others have a band each, with equal quanta.
    #[serde(deserialize_with = "bands::list")]
    pub bands: Vec<Band>,
}

impl crate::Parameters for Config {
    fn inner(&self) -> (&'static str, Vec<&crate::Config>) {
        ("bands", self.bands.iter().map(|band| &band.queue).collect())
    }
}

/// A band: the packets it takes, its quantum and its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Band {
    /// ECN codepoints that the band takes, as packets arrive with them (`["ect1", "ce"]`). Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Vec<Ecn>>,
    /// DSCPs that the band takes (`["EF", "CS5"]`). Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Vec<Dscp>>,
    /// Flows that the band takes, numbered from 0 in the order of the run. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<u32>>,
    /// Bytes that the band may send in a turn; 256 B to 1 MiB. Bands share the link in proportion to their quanta.
    #[serde(deserialize_with = "parameter::quantum")]
    pub quantum: Bytes,
    /// The band's queue; by default tail drop of 1000 packets.
    #[schemars(schema_with = "bands::nested")]
    pub queue: crate::Config,
}

impl Default for Band {
    fn default() -> Band {
        Band { ecn: None, dscp: None, flows: None, quantum: Bytes::new(1514), queue: bands::default_queue() }
    }
}

impl Default for Config {
    fn default() -> Config {
        let l4s = Band { ecn: Some(vec![Ecn::Ect1, Ecn::Ce]), ..Band::default() };
        Config { bands: vec![l4s, Band::default()] }
    }
}

/// A band's turn.
#[derive(Debug)]
struct Turn {
    quantum: i64,
    deficit: i64,
    active: bool,
}

/// Bands that take turns.
#[derive(Debug)]
pub(crate) struct Drr<P> {
    bands: Bands<P>,
    turns: Vec<Turn>,
    /// The bands that hold packets, in the order of their turns; the first has the turn now. At most all bands.
    round: VecDeque<usize>,
}

impl<P: Packet> Drr<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Drr<P> {
        let bands = config.bands.iter().map(|band| {
            let filter = Filter { ecn: band.ecn.clone(), dscp: band.dscp.clone(), flows: band.flows.clone() };
            (filter, &band.queue)
        });
        let turn = |band: &Band| Turn { quantum: band.quantum.get() as i64, deficit: 0, active: false };
        Drr {
            bands: Bands::new(bands, link, random),
            turns: config.bands.iter().map(turn).collect(),
            round: VecDeque::with_capacity(config.bands.len()),
        }
    }
}

impl<P: Packet> Queue<P> for Drr<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        let band = self.bands.of(&packet);
        self.bands.queue(band).enqueue(packet, now, fate);
        let turn = &mut self.turns[band];
        if !turn.active && !self.bands.is_empty(band) {
            (turn.active, turn.deficit) = (true, turn.quantum);
            self.round.push_back(band);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        // Consecutive bands that hold packets but cannot send yet.
        let mut waiting = 0;
        while waiting < self.round.len() {
            let band = *self.round.front()?;
            let turn = &mut self.turns[band];
            if turn.deficit <= 0 {
                turn.deficit += turn.quantum;
                self.round.rotate_left(1);
                waiting = 0;
                continue;
            }
            let packet = self.bands.dequeue(band, now, fate);
            if let Some(packet) = &packet {
                turn.deficit -= i64::from(packet.wire_length());
            }
            if self.bands.is_empty(band) {
                turn.active = false;
                self.round.pop_front();
            } else if packet.is_none() {
                // The other bands go on; this one keeps its deficit until it can send.
                self.round.rotate_left(1);
                waiting += 1;
            }
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn update(&mut self, now: Time) {
        self.bands.update(now);
    }

    fn departs(&self, now: Time) -> Option<Time> {
        self.bands.departs(now)
    }

    fn is_work_conserving(&self) -> bool {
        self.bands.is_work_conserving()
    }

    fn backlog(&self) -> Backlog {
        self.bands.backlog()
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        self.bands.state(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Rate, Span};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    #[test]
    fn bands_share_in_proportion_to_their_quanta_whatever_the_size_of_their_packets() {
        // 3000 B against 1500 B, in packets of 500 and 1500 bytes: two thirds and one third of the bytes.
        let text = r#"{ "bands": [{ "flows": [0], "quantum": "3 kB" }, { "quantum": "1.5 kB" }] }"#;
        let config: Config = serde_json::from_str(text).unwrap();
        let mut queue = Drr::new(&config, &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        for _ in 0..900 {
            for (flow, length) in [(0, 500), (1, 1500)] {
                let mut packet = TestPacket::new(length, Ecn::NotEct);
                packet.flow = flow;
                queue.enqueue(packet, Time::ZERO, &mut fate);
            }
        }
        let mut bytes = [0; 2];
        for _ in 0..700 {
            let packet = queue.dequeue(Time::ZERO, &mut fate).unwrap();
            bytes[packet.flow as usize] += packet.length;
        }
        // 100 rounds of six small packets and a large one.
        assert_eq!(bytes, [300_000, 150_000]);
    }

    #[test]
    fn a_band_alone_gets_the_whole_link_and_an_idle_band_accumulates_no_deficit() {
        let mut queue = Drr::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        let order = |queue: &mut Drr<TestPacket>, fate: &mut TestFate, count| -> Vec<Ecn> {
            (0..count).map(|_| queue.dequeue(Time::ZERO, fate).unwrap().ecn).collect()
        };
        for _ in 0..100 {
            queue.enqueue(TestPacket::new(1514, Ecn::NotEct), Time::ZERO, &mut fate);
        }
        assert_eq!(order(&mut queue, &mut fate, 96), [Ecn::NotEct; 96]);
        for _ in 0..4 {
            queue.enqueue(TestPacket::new(1514, Ecn::Ect1), Time::ZERO, &mut fate);
        }
        use Ecn::{Ect1 as L, NotEct as C};
        assert_eq!(order(&mut queue, &mut fate, 8), [L, C, L, C, L, C, L, C]);
        assert_eq!((queue.dequeue(Time::ZERO, &mut fate), queue.backlog()), (None, Backlog::default()));
    }

    #[test]
    fn a_band_held_back_by_its_shaper_is_skipped_and_keeps_its_turn() {
        // 8 Mbit/s of IP bytes: a packet each 1.5 ms, one at once.
        let shaper = r#"{ "kind": "tbf", "rate": "8 Mbit/s", "burst": "1500 B", "overhead": "0 B" }"#;
        let text =
            format!(r#"{{ "bands": [{{ "flows": [0], "queue": {shaper} }}, {{ "queue": "fifo" }}] }}"#);
        let config: Config = serde_json::from_str(&text).unwrap();
        let mut queue = Drr::new(&config, &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        for flow in [0, 0, 1, 1, 1] {
            let packet = TestPacket { flow, ..TestPacket::new(1500, Ecn::NotEct) };
            queue.enqueue(packet, Time::ZERO, &mut fate);
        }
        let mut flow_at = |us| {
            let now = Time::ZERO + Span::from_micros(us);
            (queue.dequeue(now, &mut fate).map(|packet| packet.flow), queue.departs(now))
        };
        let now = |us| Some(Time::ZERO + Span::from_micros(us));
        assert_eq!(
            [(); 4].map(|()| flow_at(0)),
            [(Some(0), now(0)), (Some(1), now(0)), (Some(1), now(0)), (Some(1), now(1500))]
        );
        assert_eq!([1499, 1500].map(flow_at), [(None, now(1500)), (Some(0), None)]);
    }
}
