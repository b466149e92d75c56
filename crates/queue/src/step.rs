//! A step: a first-in, first-out queue that marks every ECN-capable packet above a threshold. Applied to the queue length on
//! arrival, this is the marking of DCTCP (RFC 8257, section 4.1; Alizadeh et al., "Data Center TCP", 2010, section 3.1, where the
//! threshold is K). Applied to the sojourn of a packet that leaves, it is the step of L4S (RFC 9332, section 2.4).

use crate::limit::{Room, Size};
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Bytes, Packet, Random, Span, Time};

/// Parameters of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds, beside the packet that is being sent.
    pub limit: Limit,
    /// Packets above this threshold (K) are marked. With `measure` `length`, a time means the bytes that the link sends in it; with
    /// `sojourn`, packets and bytes mean the time that the link needs for them; both at the link's initial rate.
    pub threshold: Limit,
    /// The quantity that is compared with the threshold.
    pub measure: Measure,
    /// Whether packets above the threshold that are not ECN-capable are dropped, as by a switch with RED at this threshold; if not,
    /// they pass.
    pub drop_incapable: bool,
}

impl crate::Parameters for Config {
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit), ("threshold", self.threshold)]
    }
}

/// The quantity that is compared with a step's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Measure {
    /// The length of the queue that a packet finds on arrival.
    Length,
    /// The time that a packet has spent in the queue when it leaves.
    Sojourn,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            // The threshold of the paper of 2010 at 1 Gbit/s (section 3.5).
            threshold: Limit::Packets(20),
            measure: Measure::Length,
            drop_incapable: false,
        }
    }
}

/// A threshold resolved for one link.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    Length(Room),
    Sojourn(Span),
}

/// A first-in, first-out queue with a step.
#[derive(Debug)]
pub(crate) struct Step<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
    threshold: Threshold,
    drop_incapable: bool,
}

impl<P: Packet> Step<P> {
    pub(crate) fn new(config: &Config, link: &Link, _: Random) -> Step<P> {
        Step {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room: config.limit.room(link),
            threshold: match config.measure {
                Measure::Length => Threshold::Length(config.threshold.room(link)),
                Measure::Sojourn => Threshold::Sojourn(time_of(config.threshold, link)),
            },
            drop_incapable: config.drop_incapable,
        }
    }

    /// Whether an arriving packet finds a queue longer than the threshold.
    #[inline]
    fn is_long(&self) -> bool {
        matches!(self.threshold, Threshold::Length(room) if room.is_exceeded(self.backlog))
    }

    /// Whether a packet that leaves has waited for longer than the threshold.
    #[inline]
    fn is_late(&self, packet: &P, now: Time) -> bool {
        matches!(self.threshold, Threshold::Sojourn(most) if now.since(packet.arrived()) > most)
    }

    /// Marks a packet above the threshold; returns it unless it was dropped.
    #[inline]
    fn signal(&self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        if packet.ecn().is_capable() {
            packet.mark_ce();
            fate.marked(&packet, now);
        } else if self.drop_incapable {
            fate.dropped(packet, DropReason::Signal, now);
            return None;
        }
        Some(packet)
    }
}

/// A threshold as a time: the time that the link needs to send it.
fn time_of(threshold: Limit, link: &Link) -> Span {
    match threshold {
        Limit::Time(span) => span,
        _ => match threshold.resolve(link) {
            Size::Packets(packets) => {
                link.rate.time_to_send(Bytes::new(u64::from(packets).saturating_mul(link.mtu.get())))
            }
            Size::Bytes(bytes) => link.rate.time_to_send(bytes),
        },
    }
}

impl<P: Packet> Queue<P> for Step<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        if !self.room.fits(self.backlog, packet.wire_length()) {
            fate.dropped(packet, DropReason::Full, now);
            return;
        }
        let packet = if self.is_long() { self.signal(packet, now, fate) } else { Some(packet) };
        if let Some(packet) = packet {
            self.backlog.add(&packet);
            self.packets.push_back(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        loop {
            let packet = self.packets.pop_front()?;
            self.backlog.remove(&packet);
            if !self.is_late(&packet, now) {
                return Some(packet);
            }
            if let Some(packet) = self.signal(packet, now, fate) {
                return Some(packet);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Ecn, Rate};

    /// A packet of 1500 bytes takes 1.2 ms.
    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(10),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn step(config: Config) -> Step<TestPacket> {
        Step::new(&config, &LINK, Random::stream(1, "step"))
    }
    fn threshold(text: &str) -> Config {
        Config { threshold: text.parse().unwrap(), ..Config::default() }
    }
    /// `count` packets arrive at once: the numbers, from 1, of those that are marked on arrival.
    fn marked_on_arrival(config: Config, count: u64) -> Vec<u64> {
        let (mut step, mut fate) = (step(config), TestFate::default());
        (1..=count)
            .filter(|_| {
                let before = fate.marked;
                step.enqueue(TestPacket::new(1500, Ecn::Ect0), Time::ZERO, &mut fate);
                fate.marked > before
            })
            .collect()
    }

    #[test]
    fn a_packet_that_arrives_at_a_backlog_above_the_threshold_is_marked() {
        assert_eq!(marked_on_arrival(threshold("3 packets"), 6), [5, 6]);
        // 4500 bytes are three packets of 1500; 5 ms are 6250 bytes, more than four; half a BDP of 16.7 packets are 9.
        assert_eq!(marked_on_arrival(threshold("4.5 kB"), 6), [5, 6]);
        assert_eq!(marked_on_arrival(threshold("5 ms"), 6), [6]);
        assert_eq!(marked_on_arrival(threshold("0.5 bdp"), 12), [11, 12]);
    }

    #[test]
    fn a_packet_with_a_sojourn_above_the_threshold_is_marked_on_departure() {
        let config = Config { measure: Measure::Sojourn, ..threshold("2 ms") };
        let (mut step, mut fate) = (step(config), TestFate::default());
        for _ in 0..4 {
            step.enqueue(TestPacket::new(1500, Ecn::Ect1), Time::ZERO, &mut fate);
        }
        assert_eq!(fate.marked, 0);
        // One leaves each 1.2 ms: after 0, 1.2, 2.4 and 3.6 ms; then one at exactly the threshold.
        let left: Vec<Ecn> = (0..4)
            .map(|n| step.dequeue(Time::ZERO + Span::from_micros(1200 * n), &mut fate).unwrap().ecn)
            .collect();
        assert_eq!(left, [Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ce]);
        step.enqueue(TestPacket::new(1500, Ecn::Ect1), Time::ZERO, &mut fate);
        assert_eq!(step.dequeue(Time::ZERO + Span::from_millis(2), &mut fate).unwrap().ecn, Ecn::Ect1);
    }

    #[test]
    fn a_sojourn_threshold_in_packets_or_bytes_is_their_transmission_time() {
        assert_eq!(time_of(Limit::Packets(10), &LINK), Span::from_millis(12));
        assert_eq!(time_of(Limit::Bytes(Bytes::new(15_000)), &LINK), Span::from_millis(12));
        assert_eq!(time_of(Limit::Time(Span::from_millis(1)), &LINK), Span::from_millis(1));
    }

    #[test]
    fn packets_that_cannot_be_marked_pass_or_are_dropped_as_configured() {
        for (drop_incapable, dropped) in [(false, 0), (true, 2)] {
            let config = Config { drop_incapable, ..threshold("3 packets") };
            let (mut step, mut fate) = (step(config), TestFate::default());
            for _ in 0..6 {
                step.enqueue(TestPacket::new(1500, Ecn::NotEct), Time::ZERO, &mut fate);
            }
            assert_eq!((fate.dropped, fate.dropped_full, fate.marked), (dropped, 0, 0));
        }
        // All four packets are late: none leaves.
        let config = Config { drop_incapable: true, measure: Measure::Sojourn, ..threshold("2 ms") };
        let (mut step, mut fate) = (step(config), TestFate::default());
        for _ in 0..4 {
            step.enqueue(TestPacket::new(1500, Ecn::NotEct), Time::ZERO, &mut fate);
        }
        assert_eq!(step.dequeue(Time::ZERO + Span::from_millis(3), &mut fate), None);
        assert_eq!((fate.dropped, step.backlog()), (4, Backlog::default()));
    }

    #[test]
    fn a_full_queue_drops_even_ecn_capable_packets() {
        let config = Config { limit: Limit::Packets(5), ..threshold("3 packets") };
        let (mut step, mut fate) = (step(config), TestFate::default());
        for _ in 0..8 {
            step.enqueue(TestPacket::new(1500, Ecn::Ect0), Time::ZERO, &mut fate);
        }
        assert_eq!((fate.dropped_full, fate.marked), (3, 1));
        assert_eq!(step.backlog(), Backlog { packets: 5, bytes: Bytes::new(7500) });
    }
}
