//! Goodput, throughput and fairness of flows.

use super::value::{Distribution, Value, mbps, percent, ratio};
use super::view::FlowView;
use super::{Column, Domain, Flows, Level, Metric, Reduction, View};
use crate::bound::Bound;
use crate::types::FlowSample;
use weir_base::{Span, Time};
use weir_fabric::LinkCounters;

impl<'a> Flows<'a> {
    pub(super) fn each(&self) -> impl Iterator<Item = &'a FlowView> + use<'a> {
        let (view, members) = (self.view, self.members);
        members.iter().map(|&flow| &view.flows[flow])
    }

    /// Whether the bytes that the application read are known for any of the flows.
    pub(super) fn read(&self) -> bool {
        self.each().any(|flow| flow.reads)
    }

    /// A counter, summed over all flows.
    pub(super) fn sum(&self, counter: impl Fn(&FlowSample) -> u64) -> u64 {
        self.each().map(|flow| counter(&flow.sum)).sum()
    }

    /// From the begin of the first flow's active time to the end of the last's. `None` if no flow was active.
    pub(super) fn life(&self) -> Option<(Time, Time)> {
        let active = self.each().filter_map(|flow| flow.active);
        active.reduce(|(from, to), (other_from, other_to)| (from.min(other_from), to.max(other_to)))
    }

    /// Length of that time.
    pub(super) fn active(&self) -> Option<Span> {
        self.life().map(|(from, to)| to.since(from))
    }

    /// Throughput at the receiving hosts, in Mbit/s, over the active time, or until the last data arrived if that is later.
    pub(super) fn throughput(&self) -> Option<f64> {
        let (from, to) = self.life()?;
        let last = self.each().filter_map(|flow| flow.last_data).max().unwrap_or_default();
        let to = to.max(last.min(self.view.window.to));
        self.view.rate(self.members, self.level, self.sum(|s| s.received_bytes), (from, to))
    }

    /// Goodputs of the flows that were active, in Mbit/s.
    fn goodputs(&self) -> impl Iterator<Item = f64> + use<'a> {
        let view = self.view;
        self.members.iter().filter_map(move |flow| view.goodput(*flow))
    }

    /// Goodputs of the active flows that compete with each other, in Mbit/s: for the whole run, those whose data crosses its
    /// bottleneck, without probes.
    fn competing_goodputs(&self) -> impl Iterator<Item = f64> + use<'a> {
        let (view, level) = (self.view, self.level);
        let bottleneck = view.info.bottleneck.and_then(|link| view.info.links.get(link as usize));
        let groups = bottleneck.map_or(&[][..], |link| link.groups.as_slice());
        let competes = move |flow: &usize| {
            let group = view.info.flows[*flow].group;
            let probes = view.info.groups.get(group as usize).is_some_and(|group| group.probes);
            level != Level::Run || !probes && (groups.is_empty() || groups.contains(&group))
        };
        self.members.iter().copied().filter(competes).filter_map(move |flow| view.goodput(flow))
    }

    fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        ratio(sum, count)
    }

    /// Goodput of all flows together over their active time, in Mbit/s.
    pub(super) fn goodput(&self) -> Option<f64> {
        let life = self.life().filter(|_| self.read())?;
        self.view.rate(self.members, self.level, self.sum(|s| s.read_bytes), life)
    }

    /// Index of the flows' group.
    pub(super) fn group(&self) -> Option<u32> {
        Some(self.view.info.flows.get(*self.members.first()?)?.group)
    }

    /// Greatest goodput that the route of the flows' group allows, in Mbit/s, if it is known.
    fn ceiling(&self) -> Option<f64> {
        Some(self.view.info.groups.get(self.group()? as usize)?.route.ceiling?.mbit_per_sec())
    }

    /// Greatest goodput in the window with the links' actual capacities and losses, in Mbit/s, if it is known.
    fn theory(&self) -> Option<f64> {
        let (group, view) = (self.group()?, self.view);
        let route = &view.info.groups.get(group as usize)?.route;
        let links = view.info.links.iter().zip(&view.links);
        let crossed = links.filter(|(info, _)| info.groups.contains(&group)).map(|(_, link)| link);
        let rates = crossed.clone().filter_map(|link| mbps(link.sum.capacity.get(), view.window.length()));
        let survives = crossed.map(|link| {
            let LinkCounters { lost, forwarded, .. } = link.sum.counters;
            1.0 - ratio(lost as f64, (lost + forwarded) as f64).unwrap_or(0.0)
        });
        let payload = ratio(self.ceiling()?, route.rate?.mbit_per_sec())?;
        Some(rates.reduce(f64::min)? * payload * survives.product::<f64>())
    }

    /// Mean of the flows' time-mean windows, in segments.
    pub(super) fn mean_cwnd(&self) -> Option<f64> {
        Flows::mean(self.each().filter_map(|flow| flow.cwnd.mean()))
    }
}

impl View<'_> {
    /// Goodput of a flow over its active time, in Mbit/s.
    fn goodput(&self, number: usize) -> Option<f64> {
        let flow = &self.flows[number];
        let active = flow.active.filter(|_| flow.reads)?;
        self.rate(&[number], Level::Flow, flow.sum.read_bytes, active)
    }

    /// The rate at which flows received `bytes` in the window, from one time to another, in Mbit/s. `None` if they began before the
    /// window and ended in it, and the path cannot carry so much in that time: the rest had left before the window, and the quotient
    /// is no rate of the path.
    fn rate(&self, members: &[usize], level: Level, bytes: u64, (from, to): (Time, Time)) -> Option<f64> {
        let rate = mbps(bytes, to.since(from))?;
        let began = || members.iter().any(|flow| self.flows[*flow].started < self.window.from);
        let is_cut = from == self.window.from && to < self.window.to && began();
        let too_short = is_cut && self.together(members, level).is_some_and(|most| rate > most);
        (!too_short).then_some(rate)
    }
}

const FLOWS: &[Level] = &[Level::Run, Level::Group, Level::Flow];

family! {
    GOODPUT {
        name: "goodput_mbps",
        title: "Goodput",
        unit: "Mbit/s",
        of: FLOWS,
        definition: "Bytes that the receiving applications read, over the time from the start of the first flow (or the window's begin, if later) to the completion of the last (or the window's end, if earlier). For a flow that is stopped before it completes, its stop or the arrival of its last data counts, whichever is later. Undefined for flows that began before the window and ended so early in it that the path could not carry what they read in that time: the rest had left before. A curve shows when the data arrived: the bytes of data packets at the receiving hosts, less the share of headers and duplicates in all of the run. Data behind a gap is read later, in a burst, which read_rate_mbps shows.",
        source: "RFC 7928, section 2.5 (goodput); counted where applications read",
        domain: Domain::Carried,
        columns: &[Column::new(1, "goodput", "goodput").main()],
        reduction: Reduction::Flows(|f| Value::from(f.goodput())),
        curve: Some(Reduction::Counts(|c| Value::from(mbps(c.arrived_bytes(), c.time)))),
    }

    GOODPUT_CEILING {
        name: "goodput_ceiling_ratio",
        title: "Goodput over the ceiling",
        unit: "",
        of: &[Level::Group],
        definition: "Goodput over its ceiling: the rate that the slowest link or shaper on the route of the group's data leaves for the payload of full packets after all headers. If a schedule changes that rate, its highest value counts. Undefined for transports other than TCP and SLIQ, for recorded links and for groups with several routes.",
        source: "F. Alali 2016 (cross-layer thesis), sections 3.3 and 3.5: rates as shares of what the circuit carries",
        reduction: Reduction::Flows(|f| {
            Value::from(f.goodput().zip(f.ceiling()).and_then(|(goodput, ceiling)| ratio(goodput, ceiling)))
        }),
    }

    THEORY {
        name: "goodput_theory_ratio",
        title: "Goodput over the theoretical maximum",
        unit: "",
        of: &[Level::Group],
        definition: "Goodput over the greatest possible goodput with the transport's own headers: the rate at which the slowest link on the data's route could send in the window, times the ratio of payload to packet on that link, times the share of packets that the links on the route did not lose. Undefined where goodput_ceiling_ratio is.",
        source: "GNAT report (BBN 2021), section 3.1.1: link rate x payload / packet x (1 - loss)",
        reduction: Reduction::Flows(|f| {
            Value::from(f.goodput().zip(f.theory()).and_then(|(goodput, theory)| ratio(goodput, theory)))
        }),
    }

    READ {
        name: "read_bytes",
        title: "Read by applications",
        unit: "bytes",
        of: FLOWS,
        definition: "Bytes that the receiving applications read in the window.",
        source: "counted where applications read",
        reduction: Reduction::Flows(|f| Value::from(f.read().then(|| f.sum(|s| s.read_bytes)))),
    }

    READ_RATE {
        name: "read_rate_mbps",
        title: "Rate of reads",
        unit: "Mbit/s",
        of: &[Level::Run, Level::Group],
        definition: "The same as goodput_mbps; a curve shows when the applications read the data. TCP hands data over in order: what lies behind a lost segment is read when the gap is filled, at any rate.",
        source: "counted where applications read",
        reduction: Reduction::Flows(|f| Value::from(f.goodput())),
        curve: Some(Reduction::Counts(|c| Value::from(mbps(c.sum.read_bytes, c.time)))),
    }

    GOODPUT_SHARE {
        name: "goodput_share_percent",
        title: "Share of goodput",
        unit: "%",
        of: &[Level::Group, Level::Flow],
        definition: "Bytes that the receiving applications read in the window, as a share of the bytes that the applications of all flows read.",
        source: "weir",
        bound: Some(Bound::Absolute(10.0)),
        domain: Domain::Percent,
        reduction: Reduction::Flows(|f| {
            Value::from(percent(f.sum(|s| s.read_bytes), f.view.read_bytes).filter(|_| f.read()))
        }),
    }

    THROUGHPUT {
        name: "throughput_mbps",
        title: "Throughput",
        unit: "Mbit/s",
        of: FLOWS,
        definition: "IP bytes of data packets that reached the receiving hosts, retransmissions included, over the same time as goodput, or until the last data packet if it arrived later. Undefined where that time is as short as goodput's may not be.",
        source: "RFC 5136, section 2.3 (IP-layer usage), at the receiving host",
        domain: Domain::Carried,
        reduction: Reduction::Flows(|f| Value::from(f.throughput())),
        curve: Some(Reduction::Counts(|c| Value::from(mbps(c.sum.received_bytes, c.time)))),
    }

    THROUGHPUT_KIB {
        name: "throughput_kib_per_s",
        title: "Throughput",
        unit: "KiB/s",
        of: FLOWS,
        definition: "The same as throughput_mbps, in units of 1024 bytes a second.",
        source: "Ong 2020 (LBE thesis), section 3.4: all IP packets received over the duration of the transfer",
        reduction: Reduction::Flows(|f| Value::from(f.throughput().map(|mbps| mbps * 1e6 / 8.0 / 1024.0))),
    }

    FLOW_GOODPUT {
        name: "flow_goodput_mbps",
        title: "Goodput per flow",
        unit: "Mbit/s",
        of: &[Level::Group],
        definition: "Goodput of each of the group's flows that were active in the window: the distribution over these flows.",
        source: "weir",
        reduction: Reduction::Flows(|f| Value::from(Distribution::of(f.goodputs()))),
    }

    JAIN {
        name: "jain_index",
        title: "Jain's fairness index",
        unit: "",
        of: &[Level::Run, Level::Group],
        definition: "(sum of goodputs)^2 / (n x sum of their squares) over the n flows that were active in the window; 1 is equal goodput, 1/n is one flow with all of it. For the whole run, only flows whose data cross its bottleneck count, without echo requests.",
        source: "Jain, Chiu, Hawe 1984 (DEC-TR-301)",
        domain: Domain::Fraction,
        reduction: Reduction::Flows(|f| {
            let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
            for goodput in f.competing_goodputs() {
                n += 1.0;
                sum += goodput;
                squares += goodput * goodput;
            }
            Value::from(ratio(sum * sum, n * squares))
        }),
    }

    RATE_RATIO {
        name: "rate_ratio",
        title: "Rate ratio",
        unit: "",
        of: &[Level::Pair],
        definition: "Mean goodput of a flow of the first group over mean goodput of a flow of the second.",
        source: "Steen 2017 (DualPI2 thesis), section 6.2: window ratio, on rates",
        reduction: Reduction::Pair(|a, b| {
            let rates = Flows::mean(a.goodputs()).zip(Flows::mean(b.goodputs()));
            Value::from(rates.and_then(|(a, b)| ratio(a, b)))
        }),
    }

    WINDOW_RATIO {
        name: "window_ratio",
        title: "Window ratio",
        unit: "",
        of: &[Level::Pair],
        definition: "Mean congestion window of a flow of the first group over that of a flow of the second.",
        source: "Steen 2017 (DualPI2 thesis), section 6.2: window ratio",
        reduction: Reduction::Pair(|a, b| {
            Value::from(a.mean_cwnd().zip(b.mean_cwnd()).and_then(|(a, b)| ratio(a, b)))
        }),
    }
}
