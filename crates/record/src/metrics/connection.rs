//! Metrics of a connection's own state: its estimate of the path's rate, the packets of each of its controllers, and the
//! efficiency and modes of its error control. They exist only for transports that record such state (SLIQ).

use super::value::{Distribution, Value, ratio};
use super::{Domain, Flows, Level, Metric, Reduction};
use weir_base::Time;

impl Flows<'_> {
    /// Growth of a counter in the window, summed over all flows. `None` if no flow has it.
    fn grown(&self, counter: &str) -> Option<f64> {
        let each = self.each().filter_map(|flow| Some(flow.states.get(counter)?.grown()));
        each.reduce(|sum, grown| sum + grown)
    }

    /// Growth of the first counter as a share of the growth of both, in percent.
    fn part(&self, counters: &[&str]) -> Option<f64> {
        let (part, rest) = self.both(counters)?;
        ratio(100.0 * part, part + rest)
    }

    /// Growth of two counters.
    fn both(&self, counters: &[&str]) -> Option<(f64, f64)> {
        self.grown(counters.first()?).zip(self.grown(counters.get(1)?))
    }

    /// Usable packets as a share of those that arrived, in percent.
    fn efficiency(&self, counters: &[&str]) -> Option<f64> {
        let (usable, arrived) = self.both(counters)?;
        // The packets of a group that ends at the window's begin may have arrived before it.
        ratio(100.0 * usable, arrived).map(|share| share.min(100.0))
    }

    /// The values in the window of each of these states of each flow.
    fn values_of<'s>(&'s self, states: &'s [&str]) -> impl Iterator<Item = &'s [f64]> + 's {
        let told = self.each().flat_map(move |flow| states.iter().filter_map(|name| flow.states.get(name)));
        told.map(|told| &*told.within)
    }

    /// Mean of a state over flows and sample periods.
    pub(super) fn mean_of(&self, states: &[&str]) -> Option<f64> {
        let (count, sum) = self
            .values_of(states)
            .fold((0, 0.0), |(count, sum), of| (count + of.len(), sum + of.iter().sum::<f64>()));
        ratio(sum, count as f64)
    }

    /// The mean of a state over sample periods, added up over flows.
    pub(super) fn sum_of(&self, states: &[&str]) -> Option<f64> {
        let means = self.values_of(states).filter_map(|of| ratio(of.iter().sum(), of.len() as f64));
        means.reduce(|sum, mean| sum + mean)
    }

    /// Mean of the efficiency that the plans expected, in percent.
    fn planned(&self, state: &str) -> Option<f64> {
        self.mean_of(&[state]).map(|mean| 100.0 * mean)
    }

    /// Growth of the counter at this place as a share of the growth of all, in percent.
    pub(super) fn growth_share(&self, counters: &[&str], place: usize) -> Option<f64> {
        let all = counters.iter().filter_map(|counter| self.grown(counter)).sum();
        self.grown(counters.get(place)?).and_then(|grown| ratio(100.0 * grown, all))
    }

    /// Each estimate in the window, and the path's capacity in the period that ended then, in Mbit/s.
    pub(super) fn estimates<'s>(&'s self, states: &'s [&str]) -> impl Iterator<Item = (f64, f64)> + 's {
        self.members.iter().flat_map(move |&number| {
            let group = self.view.info.flows[number].group;
            let told = states.iter().filter_map(move |name| self.view.flows[number].states.get(name));
            let each = told.flat_map(|told| told.at.iter().zip(&told.within));
            each.filter_map(move |(at, estimate)| Some((*estimate, self.carries(group, *at)?)))
        })
    }

    /// Capacity of the slowest link that a group's data crosses, in the sample period that ended at this time, in Mbit/s.
    fn carries(&self, group: u32, at: Time) -> Option<f64> {
        let links = self.view.info.links.iter().zip(&self.view.links);
        let crossed = links.filter(|(info, _)| info.groups.contains(&group));
        let of_link = crossed.filter_map(|(_, link)| {
            let place = link.capacities.binary_search_by_key(&at, |(at, _)| *at).ok()?;
            Some(link.capacities[place].1)
        });
        of_link.reduce(f64::min)
    }
}

const OF: &[Level] = &[Level::Group, Level::Flow];
const ESTIMATE: &[&str] = &["capacity_mbps"];
/// Counters of packets that were delivered under the first and the second controller.
const CONTROLLERS: [&str; 2] = ["delivered_packets", "second_delivered_packets"];
/// Counters of the packets of streams with a deadline: usable packets' worth of data that they delivered, and packets that arrived.
const EFFICIENCY_OF: &[&str] = &["usable_packets", "arrived_packets"];
/// Efficiency of a transport's newest plan, 0 to 1.
const PLANNED: &str = "plan_efficiency";
/// Counters of the groups of packets that were sent in each mode of the error control.
const MODES: &[&str] = &["pure_arq_groups", "coded_arq_groups", "fec_groups"];
/// The rate at which a flow is to send, as an aggregation point reports it.
pub const REPORTED: &str = "reported_rate_mbps";
const TOLD: &str = "the transport's own state, read once a sample period";

family! {
    CAPACITY_ESTIMATE {
        name: "capacity_estimate_mbps",
        title: "Estimated capacity",
        unit: "Mbit/s",
        of: OF,
        definition: "Sender's estimate of the path's capacity, headers included, read at the end of each sample period: the distribution over these periods.",
        source: TOLD,
        states: ESTIMATE,
        reduction: Reduction::Estimates,
    }

    CAPACITY_ERROR {
        name: "capacity_estimate_error",
        title: "Error of the estimated capacity",
        unit: "",
        of: OF,
        definition: "Deviation of the estimated capacity from the rate at which the slowest link on the data's route could send in the same sample period, as a share of that rate: the distribution over sample periods.",
        source: TOLD,
        states: ESTIMATE,
        reduction: Reduction::FlowStates(|f, states| {
            let errors = f.estimates(states).filter(|(_, carries)| *carries > 0.0);
            Value::from(Distribution::of(errors.map(|(estimate, carries)| (estimate - carries).abs() / carries)))
        }),
    }

    REPORTED_RATE {
        name: "reported_rate_mbps",
        title: "Reported rate of a flow",
        unit: "Mbit/s",
        of: OF,
        definition: "Rate at which a flow is to send by the reports of its aggregation point, headers included: mean over flows and sample periods. Its rate before the first report counts too.",
        source: TOLD,
        states: &[REPORTED],
        reduction: Reduction::StateMean { per: 1.0 },
    }

    FIRST_CONTROLLER {
        name: "first_controller_percent",
        title: "Packets of the first controller",
        unit: "%",
        of: OF,
        definition: "Delivered packets of the group's controller, as a share of the delivered packets of both controllers of the connection.",
        source: TOLD,
        domain: Domain::Percent,
        states: &CONTROLLERS,
        reduction: Reduction::FlowStates(|f, states| Value::from(f.part(states))),
    }

    SECOND_CONTROLLER {
        name: "second_controller_percent",
        title: "Packets of the second controller",
        unit: "%",
        of: OF,
        definition: "Delivered packets of the connection's second controller, as a share of the delivered packets of both.",
        source: TOLD,
        domain: Domain::Percent,
        states: &[CONTROLLERS[1], CONTROLLERS[0]],
        reduction: Reduction::FlowStates(|f, states| Value::from(f.part(states))),
    }

    EFFICIENCY {
        name: "aec_efficiency_percent",
        title: "Efficiency of the error control",
        unit: "%",
        of: OF,
        definition: "Data packets that a stream with a deadline delivered, received or recovered, as a share of all its packets that arrived, repair packets and duplicates included. Both are the sender's counts.",
        source: "GNAT report (BBN 2021), section 3.3.3; the transport's own state, read once a sample period",
        domain: Domain::Percent,
        states: EFFICIENCY_OF,
        reduction: Reduction::FlowStates(|f, states| Value::from(f.efficiency(states))),
    }

    PLANNED_EFFICIENCY {
        name: "aec_planned_efficiency_percent",
        title: "Efficiency expected by the plans",
        unit: "%",
        of: OF,
        definition: "Efficiency that the stream's newest plan expects on the channel as the sender knows it, mean over sample periods: close to the best of all plans for that channel.",
        source: TOLD,
        domain: Domain::Percent,
        states: &[PLANNED],
        reduction: Reduction::FlowStates(|f, _| Value::from(f.planned(PLANNED))),
    }

    SHORTFALL {
        name: "aec_shortfall_points",
        title: "Efficiency below the expected one",
        unit: "points",
        of: OF,
        definition: "Efficiency expected by the plans minus the efficiency of the error control, in percentage points; 0 if the latter is higher.",
        source: "GNAT report (BBN 2021), section 3.3.3",
        states: &[EFFICIENCY_OF[0], EFFICIENCY_OF[1], PLANNED],
        reduction: Reduction::FlowStates(|f, states| {
            Value::from(f.planned(PLANNED).zip(f.efficiency(states)).map(|(planned, got)| (planned - got).max(0.0)))
        }),
    }

    PURE_ARQ {
        name: "pure_arq_percent",
        title: "Groups sent by pure ARQ",
        unit: "%",
        of: OF,
        definition: "Groups of packets of a stream with a deadline for which the error control planned retransmissions only, as a share of all groups with a plan.",
        source: "GNAT report (BBN 2021), section 3.3.1; the transport's own state, read once a sample period",
        domain: Domain::Percent,
        states: MODES,
        reduction: Reduction::GrowthShare(0),
    }

    CODED_ARQ {
        name: "coded_arq_percent",
        title: "Groups sent by coded ARQ",
        unit: "%",
        of: OF,
        definition: "The same for groups with repair packets in several rounds.",
        source: "GNAT report (BBN 2021), section 3.3.1; the transport's own state, read once a sample period",
        domain: Domain::Percent,
        states: MODES,
        reduction: Reduction::GrowthShare(1),
    }

    FEC {
        name: "fec_percent",
        title: "Groups sent by FEC",
        unit: "%",
        of: OF,
        definition: "The same for groups with repair packets in one round.",
        source: "GNAT report (BBN 2021), section 3.3.1; the transport's own state, read once a sample period",
        domain: Domain::Percent,
        states: MODES,
        reduction: Reduction::GrowthShare(2),
    }
}

#[cfg(test)]
mod tests {
    use crate::info::{FlowInfo, GroupInfo, LinkInfo, RouteInfo, RunInfo, WindowInfo};
    use crate::types::{Component, FlowSample, LinkSample, Recorder, StateSample};
    use crate::{Records, RunSummary, Value};
    use weir_base::{Bytes, Rate, Span, Time};
    use weir_fabric::LinkCounters;

    /// Eight seconds in periods of 100 ms over a link of 8 Mbit/s, whose capacity is halved from the fourth second on. The
    /// sender estimates 8 Mbit/s to the end; nothing is read in the fifth second.
    fn run() -> (RunInfo, Records) {
        let secs = Span::from_secs;
        let part = |name: &str, from, to| WindowInfo {
            name: name.into(),
            from: secs(from),
            to: secs(to),
            tolerance: 0.1,
            phase: false,
        };
        let info = RunInfo {
            duration: secs(8),
            sample: Span::from_millis(100),
            bottleneck: Some(0),
            windows: vec![part("before", 0, 3), part("after", 4, 8)],
            links: vec![LinkInfo { instrumented: true, groups: vec![0], ..LinkInfo::default() }],
            groups: vec![GroupInfo { name: "a".into(), ..GroupInfo::default() }],
            flows: vec![FlowInfo::default()],
            ..RunInfo::default()
        };
        let mut records = Records::default();
        for period in 1..=80u64 {
            let at = Time::ZERO + Span::from_millis(100 * period);
            let capacity = Bytes::new(if period <= 30 { 100_000 } else { 50_000 });
            let counters = LinkCounters { capacity, ..LinkCounters::default() };
            records.link(&LinkSample { at, counters, ..LinkSample::default() });
            let read_bytes = if (41..=50).contains(&period) { 0 } else { 50_000 };
            records.flow(&FlowSample { at, read_bytes, ..FlowSample::default() });
            let told = [
                ("capacity_mbps", 8.0),
                ("delivered_packets", 3.0 * period as f64),
                ("second_delivered_packets", 97.0 * period as f64),
                ("arrived_packets", 100.0 * period as f64),
                ("usable_packets", 80.0 * period as f64),
                ("plan_efficiency", 0.85),
                ("pure_arq_groups", period as f64),
                ("coded_arq_groups", 0.0),
                ("fec_groups", 3.0 * period as f64),
            ];
            for (name, value) in told {
                records.state(&StateSample { at, of: Component::Controller(0), name, value });
            }
        }
        (info, records)
    }

    #[test]
    fn a_connections_own_counters_are_taken_over_the_window() {
        let (info, records) = run();
        let summary = RunSummary::new(&info, &records, None);
        let of = |window: usize, metric: &str| summary.windows[window].groups[0].metrics.get(metric).scalar();
        assert_eq!(of(0, "capacity_estimate_error"), Some(0.0));
        assert_eq!(of(1, "capacity_estimate_error"), Some(1.0));
        assert_eq!(of(1, "capacity_estimate_mbps"), Some(8.0));
        assert_eq!(
            (of(0, "first_controller_percent"), of(1, "second_controller_percent")),
            (Some(3.0), Some(97.0))
        );
        assert_eq!(
            (of(1, "aec_efficiency_percent"), of(1, "aec_planned_efficiency_percent")),
            (Some(80.0), Some(85.0))
        );
        assert_eq!(of(1, "aec_shortfall_points"), Some(5.0));
        let modes = ["pure_arq_percent", "coded_arq_percent", "fec_percent"].map(|mode| of(1, mode));
        assert_eq!(modes, [Some(25.0), Some(0.0), Some(75.0)]);
        assert_eq!(summary.invalid, [""; 0]);
    }

    #[test]
    fn the_theoretical_maximum_follows_the_link_and_its_losses() {
        let (mut info, mut records) = run();
        // Half of a packet on the link is payload, and the link loses one of four.
        let (rate, ceiling) = (Rate::from_mbit_per_sec(8), Rate::from_mbit_per_sec(4));
        info.groups[0].route = RouteInfo { rate: Some(rate), ceiling: Some(ceiling), ..RouteInfo::default() };
        for sample in &mut records.links {
            (sample.counters.lost, sample.counters.forwarded) = (1, 3);
        }
        let summary = RunSummary::new(&info, &records, None);
        let of =
            |window: usize| summary.windows[window].groups[0].metrics.get("goodput_theory_ratio").scalar();
        // 4 Mbit/s of 8 / 2 x 0.75, and on average 3 of 4 / 2 x 0.75.
        assert_eq!((of(0), of(1)), (Some(1.33333), Some(2.0)));
    }

    #[test]
    fn recovery_is_the_time_until_the_rate_is_back() {
        let (info, records) = run();
        let summary = RunSummary::new(&info, &records, None);
        let of = |window: usize| summary.windows[window].groups[0].metrics.get("recovery_time_s");
        assert_eq!((of(0), of(1)), (Value::Number(0.0), Value::Number(1.0)));
        // The metric exists only for named windows.
        assert_eq!(summary.groups[0].metrics.get("recovery_time_s"), Value::Undefined);
    }

    #[test]
    fn metrics_that_no_transport_reports_are_left_out() {
        let (info, mut records) = run();
        records.states.clear();
        let summary = RunSummary::new(&info, &records, None);
        let told =
            ["capacity_estimate_mbps", "first_controller_percent", "aec_efficiency_percent", "fec_percent"];
        assert!(summary.groups[0].metrics.iter().all(|(name, _)| !told.contains(&name)));
    }
}
