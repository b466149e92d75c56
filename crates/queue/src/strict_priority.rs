//! Strict priority: bands with a queue each. The next packet comes from the first band that can send one; later bands wait as
//! long as an earlier one can send (Linux `sch_prio`).

use crate::bands::{self, Bands, Filter};
use crate::{Backlog, Fate, Link, Queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Dscp, Ecn, Packet, Random, Time};

/// Parameters of strict priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The bands, highest priority first; 1 to 16. A packet goes to the first band whose lists match it, or else to the last. By
    /// default L4S packets (ECT(1), CE) have priority over all others.
    #[serde(deserialize_with = "bands::list")]
    pub bands: Vec<Band>,
}

impl crate::Parameters for Config {
    fn inner(&self) -> (&'static str, Vec<&crate::Config>) {
        ("bands", self.bands.iter().map(|band| &band.queue).collect())
    }
}

/// A band: the packets it takes, and its queue.
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
    /// The band's queue; by default tail drop of 1000 packets.
    #[schemars(schema_with = "bands::nested")]
    pub queue: crate::Config,
}

impl Default for Band {
    fn default() -> Band {
        Band { ecn: None, dscp: None, flows: None, queue: bands::default_queue() }
    }
}

impl Default for Config {
    fn default() -> Config {
        let l4s = Band { ecn: Some(vec![Ecn::Ect1, Ecn::Ce]), ..Band::default() };
        Config { bands: vec![l4s, Band::default()] }
    }
}

/// Bands served in order.
#[derive(Debug)]
pub(crate) struct StrictPriority<P> {
    bands: Bands<P>,
}

impl<P: Packet> StrictPriority<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> StrictPriority<P> {
        let bands = config.bands.iter().map(|band| {
            let filter = Filter { ecn: band.ecn.clone(), dscp: band.dscp.clone(), flows: band.flows.clone() };
            (filter, &band.queue)
        });
        StrictPriority { bands: Bands::new(bands, link, random) }
    }
}

impl<P: Packet> Queue<P> for StrictPriority<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        let band = self.bands.of(&packet);
        self.bands.queue(band).enqueue(packet, now, fate);
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        (0..self.bands.len()).find_map(|band| self.bands.dequeue(band, now, fate))
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
    use weir_base::{Bytes, Rate, Span};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn queue(text: &str) -> StrictPriority<TestPacket> {
        let config: Config = serde_json::from_str(text).unwrap();
        StrictPriority::new(&config, &LINK, Random::stream(1, "queue"))
    }

    #[test]
    fn a_later_band_waits_until_those_before_it_are_empty() {
        let (mut queue, mut fate) = (queue("{}"), TestFate::default());
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce, Ecn::NotEct] {
            queue.enqueue(TestPacket::new(1500, ecn), Time::ZERO, &mut fate);
        }
        let left: Vec<Ecn> =
            std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut fate)).map(|packet| packet.ecn).collect();
        assert_eq!(left, [Ecn::Ect1, Ecn::Ce, Ecn::NotEct, Ecn::Ect0, Ecn::NotEct]);
    }

    #[test]
    fn bands_select_by_dscp() {
        let mut queue =
            queue(r#"{ "bands": [{ "dscp": ["EF", 40] }, { "dscp": ["AF41"], "ecn": ["ect0"] }, {}] }"#);
        let mut fate = TestFate::default();
        for (dscp, ecn) in [
            ("CS0", Ecn::Ect0),
            ("AF41", Ecn::NotEct),
            ("AF41", Ecn::Ect0),
            ("CS5", Ecn::NotEct),
            ("EF", Ecn::Ce),
        ] {
            let packet = TestPacket { dscp: dscp.parse().unwrap(), ..TestPacket::new(1500, ecn) };
            queue.enqueue(packet, Time::ZERO, &mut fate);
        }
        let left: Vec<String> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut fate))
            .map(|packet| packet.dscp.to_string())
            .collect();
        assert_eq!(left, ["CS5", "EF", "AF41", "CS0", "AF41"], "an AF41 without ECT(0) is in the last band");
    }

    #[test]
    fn bands_by_flow_hold_queues_of_any_kind_with_limits_and_states_of_their_own() {
        let mut queue = queue(
            r#"{ "bands": [{ "flows": [3], "queue": { "kind": "tail-drop", "limit": "2 packets" } },
                           { "queue": { "kind": "strict-priority", "bands": [{ "ecn": ["ce"] }, { "queue": "pie" }] } }] }"#,
        );
        let mut fate = TestFate::default();
        for n in 0..8 {
            let mut packet = TestPacket::new(1500, Ecn::NotEct);
            packet.flow = if n % 2 == 0 { 3 } else { 0 };
            queue.enqueue(packet, Time::ZERO, &mut fate);
        }
        assert_eq!((fate.by_flow, queue.backlog().packets), ([0, 0, 0, 2], 6));
        let mut names = vec![];
        queue.state(&mut |name, _| names.push(name.to_string()));
        assert!(names.iter().any(|name| name == "band2_band2_drop_probability"), "{names:?}");
    }

    #[test]
    fn no_bands_and_unknown_keys_are_refused() {
        let refused = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
        assert!(refused(r#"{ "bands": [] }"#).contains("write 1 to 16"));
        assert!(
            refused(r#"{ "bands": [{ "queue": "fifo", "weight": 1 }] }"#).contains("unknown field `weight`")
        );
        assert!(refused(r#"{ "bands": [{ "dscp": ["EE"] }] }"#).contains("`EE` is no DSCP"));
        assert!(refused(r#"{ "bands": [{ "queue": "nothing" }] }"#).contains("unknown queue `nothing`"));
    }
}
