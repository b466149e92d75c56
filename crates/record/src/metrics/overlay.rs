//! Metrics of the backpressure overlay: what became of admitted packets, how long they took, and what carrying them cost. They exist
//! only in runs with an overlay.

use super::transit::TransitSums;
use super::value::{Distribution, Value, percent, ratio};
use super::view::merged;
use super::{Domain, Flows, Level, Metric, Reduction, View};
use crate::records::Records;
use std::borrow::Cow;
use weir_base::{Histogram, Time};

impl View<'_> {
    pub(super) fn add_transits(&mut self, records: &Records) {
        for sample in records.transits.iter().filter(|sample| self.window.holds(sample.at)) {
            let Some(flow) = self.flows.get_mut(sample.flow as usize) else { continue };
            let sums = flow.transits.get_or_insert_default();
            sums.admitted += sample.admitted;
            sums.in_time += sample.in_time;
            sums.links += sample.links;
            sample.hops.add_to(&mut sums.hops);
            sample.times.add_to(&mut sums.times);
            sample.waits.add_to(&mut sums.waits);
        }
    }

    /// Growth of one counter of all stations over that of several, in percent; none if no station has the counter.
    fn stations_share(&self, part: &str, whole: &[&str]) -> Value {
        let grown = |name: &str| -> f64 {
            let told = self.stations.iter().filter_map(|station| station.get(name));
            told.map(|told| told.grown().max(0.0)).sum()
        };
        let whole: f64 = whole.iter().map(|name| grown(name)).sum();
        let is_told = self.stations.iter().any(|station| station.get(part).is_some());
        Value::from(is_told.then(|| ratio(100.0 * grown(part), whole)).flatten())
    }

    /// The values of a state of all stations that record it, in all periods of the window.
    fn stations_values(&self, states: &[&str]) -> Value {
        Distribution::of(self.values_of(states).flat_map(|told| told.within.iter().copied())).into()
    }
}

impl Flows<'_> {
    pub(super) fn transits(&self) -> impl Iterator<Item = &TransitSums> {
        self.each().filter_map(|flow| flow.transits.as_deref())
    }

    /// The transit times of these flows' packets.
    pub(super) fn transit_times(&self) -> Cow<'_, Histogram> {
        merged(self.transits().map(|sums| &sums.times))
    }

    /// The links that these flows' packets have passed; a link counts as a millisecond.
    fn hops(&self) -> Cow<'_, Histogram> {
        merged(self.transits().map(|sums| &sums.hops))
    }

    /// The times that these flows' packets waited in the queues of nodes.
    pub(super) fn transit_waits(&self) -> Cow<'_, Histogram> {
        merged(self.transits().map(|sums| &sums.waits))
    }
}

impl Flows<'_> {
    /// The most that any forwarding can deliver to each receiver of the group by its deadline, in Mbit/s.
    fn deadline_capacity(&self) -> Option<f64> {
        let group = self.view.info.groups.get(self.group()? as usize)?;
        Some(group.deadline_capacity?.mbit_per_sec())
    }

    /// The mean, over the time in which the group was active, of its goodput where the sum of utilities is largest, in Mbit/s.
    fn optimum(&self) -> Option<f64> {
        let steps = &self.view.info.groups.get(self.group()? as usize)?.optimum;
        let (from, to) = self.life()?;
        let ends = steps.iter().skip(1).map(|(at, _)| Time::ZERO + *at).chain([Time::NEVER]);
        let parts = steps.iter().zip(ends).map(|((at, rate), end)| {
            let begin = from.max(Time::ZERO + *at);
            rate.mbit_per_sec() * end.min(to).since(begin).as_secs_f64()
        });
        ratio(parts.sum(), to.since(from).as_secs_f64()).filter(|_| !steps.is_empty())
    }
}

fn times(times: &Histogram) -> Value {
    Distribution::of_millis(times).into()
}

const OF: &[Level] = &[Level::Run, Level::Group, Level::Flow];
const GROUP: &[Level] = &[Level::Group];
const RUN: &[Level] = &[Level::Run];
const SOURCE: &str = "GNAT report, section 4";

family! {
    TRANSIT {
        name: "transit_ms",
        title: "Transit time",
        unit: "ms",
        of: OF,
        definition: "Time from the sending host to the receiver's node, of packets that reached that node over the overlay. The mean is exact, percentiles are within 0.8 %.",
        source: "RFC 7679 (one-way delay), from host to node",
        reduction: Reduction::Transits(|f| times(&f.transit_times())),
    }

    TRANSIT_WAIT {
        name: "transit_wait_ms",
        title: "Queueing in the overlay",
        unit: "ms",
        of: OF,
        definition: "What of the transit time a packet waited in the queues of nodes, links' transmission and delay not included.",
        source: "GNAT report, section 2.2",
        reduction: Reduction::Transits(|f| times(&f.transit_waits())),
    }

    IN_TIME {
        name: "in_time_percent",
        title: "In time",
        unit: "%",
        of: OF,
        definition: "Packets that reached the receiver's node within their deadline, over all packets that the overlay admitted for it in the window. Packets that expired or were lost count as missed; without a deadline all that arrive are in time. Packets that are under way at an end of the window count at one end only, so the share is cut at 100 %.",
        source: SOURCE,
        domain: Domain::Percent,
        reduction: Reduction::Transits(|f| {
            let (in_time, admitted) = f.transits().fold((0, 0), |(in_time, admitted), sums| {
                (in_time + sums.in_time, admitted + sums.admitted)
            });
            Value::from(percent(in_time.min(admitted), admitted))
        }),
    }

    PASSED_LINKS {
        name: "passed_links",
        title: "Links passed",
        unit: "",
        of: OF,
        definition: "Links between nodes that a packet passed on its way to a receiver: mean over the packets that reached the receivers' nodes.",
        source: "GNAT architecture, packet history",
        domain: Domain::NotNegative,
        reduction: Reduction::Transits(|f| {
            let (links, packets) = f.transits().fold((0, 0), |(links, packets), sums| {
                (links + sums.links, packets + sums.hops.count())
            });
            Value::from(ratio(links as f64, packets as f64))
        }),
    }

    HOPS {
        name: "hops",
        title: "Hops",
        unit: "",
        of: OF,
        definition: "Links between nodes that each packet passed on its way to a receiver: the distribution over the packets that reached the receivers' nodes. The mean is exact, percentiles are within 0.8 %.",
        source: "GNAT architecture, packet history",
        domain: Domain::NotNegative,
        reduction: Reduction::Transits(|f| times(&f.hops())),
    }

    DEADLINE_CAPACITY {
        name: "deadline_capacity_mbps",
        title: "Capacity by the deadline",
        unit: "Mbit/s",
        of: GROUP,
        definition: "The most that any forwarding, coded or not, can deliver to each receiver of the group by its deadline, with the network to itself as it is at the start: computed from the lab, not measured. It knows no queues, losses, headers or protocols. Only of groups that the overlay carries, with a deadline and one sender.",
        source: "GNAT report, section 2.3; weir capacity",
        domain: Domain::NotNegative,
        reduction: Reduction::Special(|f| Value::from(f.deadline_capacity())),
    }

    DEADLINE_CAPACITY_RATIO {
        name: "deadline_capacity_ratio",
        title: "Goodput over the capacity by the deadline",
        unit: "",
        of: GROUP,
        definition: "Goodput of the group, as a mean over its receivers, over deadline_capacity_mbps. That is a bound of IP bytes: headers alone keep it below 0.97.",
        source: "GNAT report, section 2.3",
        domain: Domain::NotNegative,
        reduction: Reduction::Special(|f| {
            let each = || Some(f.goodput()? / f.members.len() as f64);
            Value::from(f.deadline_capacity().filter(|most| *most > 0.0).and_then(|most| Some(each()? / most)))
        }),
    }

    OPTIMUM {
        name: "optimum_mbps",
        title: "Optimum",
        unit: "Mbit/s",
        of: GROUP,
        definition: "Goodput of the group, its receivers together, where the sum of the overlay's utilities is largest, with weir's headers, messages and losses: computed from the lab as the run ended, not measured. Mean over the time in which the group was active, of what held at each time. Inelastic flows follow the rule of their worth. It knows no queues, and no traffic beside the overlay.",
        source: "GNAT report, sections 2.2 and 4.21; weir optimum",
        domain: Domain::NotNegative,
        reduction: Reduction::Special(|f| Value::from(f.optimum())),
    }

    OPTIMUM_RATIO {
        name: "optimum_ratio",
        title: "Goodput over the optimum",
        unit: "",
        of: GROUP,
        definition: "Goodput of the group over optimum_mbps: its share of what it would have where the sum of utilities is largest.",
        source: "GNAT report, section 4.21",
        domain: Domain::NotNegative,
        reduction: Reduction::Special(|f| {
            let optimum = f.optimum().filter(|optimum| *optimum > 0.0);
            Value::from(optimum.and_then(|optimum| Some(f.goodput()? / optimum)))
        }),
    }

    OVERLAY_PACKETS {
        name: "overlay_packets",
        title: "Packets between nodes",
        unit: "",
        of: RUN,
        definition: "Data packets that nodes handed to the links to other nodes.",
        source: SOURCE,
        states: &["data_packets"],
        reduction: Reduction::Stations(|view, states| view.stations_grew(states)),
    }

    OVERLAY_OVERHEAD {
        name: "overlay_overhead_percent",
        title: "Overhead of data packets",
        unit: "%",
        of: RUN,
        definition: "Bytes of IP, UDP and overlay headers over all IP bytes of the data packets that nodes sent to each other.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &["header_bytes", "payload_bytes"],
        reduction: Reduction::Stations(|view, states| view.stations_share("header_bytes", states)),
    }

    OVERLAY_SIGNALLING {
        name: "overlay_signalling_percent",
        title: "Signalling",
        unit: "%",
        of: RUN,
        definition: "IP bytes of the datagrams of messages that nodes sent to each other, over those of all datagrams between them.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &["signal_bytes", "header_bytes", "payload_bytes"],
        reduction: Reduction::Stations(|view, states| view.stations_share("signal_bytes", states)),
    }

    OVERLAY_RESENT {
        name: "overlay_resent_percent",
        title: "Resent",
        unit: "%",
        of: RUN,
        definition: "IP bytes of data packets that nodes retransmitted, and of packets that repair lost ones, over those of all data packets that they sent to each other. Only where links are connections.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &["resent_bytes", "header_bytes", "payload_bytes"],
        reduction: Reduction::Stations(|view, states| view.stations_share("resent_bytes", states)),
    }

    OVERLAY_ACKNOWLEDGEMENTS {
        name: "overlay_acknowledgements_percent",
        title: "Acknowledgements",
        unit: "%",
        of: RUN,
        definition: "Bytes of acknowledgements, as frames in other packets or as whole IP packets, over the IP bytes of the data packets that nodes sent to each other for the first time. Only where links are connections.",
        source: SOURCE,
        domain: Domain::Percent,
        states: &["acknowledgement_bytes", "header_bytes", "payload_bytes"],
        reduction: Reduction::Stations(|view, states| view.stations_share("acknowledgement_bytes", states)),
    }

    OVERLAY_DEPTHS_AGE {
        name: "overlay_depths_age_ms",
        title: "Age of depths",
        unit: "ms",
        of: RUN,
        definition: "Age of the oldest depths that a node has of a neighbour that is up, read at each node at the end of each sample period: the distribution over nodes and periods.",
        source: SOURCE,
        states: &["depths_age_ms"],
        reduction: Reduction::Stations(|view, states| view.stations_values(states)),
    }

    OVERLAY_ZOMBIES {
        name: "overlay_zombie_bytes",
        title: "Virtual depth",
        unit: "B",
        of: RUN,
        definition: "Bytes of virtual depth in the queues of a node, read at each node at the end of each sample period: the distribution over nodes and periods.",
        source: "GNAT report, section 2.2",
        states: &["zombie_bytes"],
        reduction: Reduction::Stations(|view, states| view.stations_values(states)),
    }

    OVERLAY_EXPIRED {
        name: "overlay_expired_packets",
        title: "Expired packets",
        unit: "",
        of: RUN,
        definition: "Packets that nodes discarded because they could no longer be in time.",
        source: SOURCE,
        states: &["expired_packets"],
        reduction: Reduction::Stations(|view, states| view.stations_grew(states)),
    }
}
