//! The share of a path that an application's flows get beside others, and how much it varies: the coordination
//! dissertation's measures of fairness (sections 4.5.3 and 6.6.2). They exist only for groups that always have data to send
//! and share a link with another such group, if the flows of one of them are coordinated.

use super::value::{Value, mbps, ratio};
use super::{Flows, Level, Metric, Reduction, View};
use crate::info::Sharing;

impl View<'_> {
    /// The groups that share a link with this one, itself included: those that always have data to send. `None` if this group
    /// does not, if there is no other such group, or if none of them is coordinated.
    fn competing(&self, group: u32) -> Option<Vec<u32>> {
        let groups = &self.info.groups;
        let sharing = |number: u32| groups.get(number as usize).and_then(|group| group.sharing);
        sharing(group).filter(|_| self.is_coordinated)?;
        let shared = |other: u32| {
            let mut links = self.info.links.iter();
            other == group || links.any(|link| [group, other].iter().all(|one| link.groups.contains(one)))
        };
        let all = 0..groups.len() as u32;
        let all: Vec<u32> = all.filter(|other| sharing(*other).is_some() && shared(*other)).collect();
        let one_is_coordinated = all.iter().any(|group| sharing(*group) == Some(Sharing::Coordinated));
        Some(all).filter(|all| all.len() > 1 && one_is_coordinated)
    }
}

impl Flows<'_> {
    /// The groups that these flows' group competes with, itself included.
    fn competing(&self) -> Option<Vec<u32>> {
        self.view.competing(self.group()?)
    }

    /// Mean throughput of a flow of the group over mean throughput of a flow of all competing groups.
    fn normalised_flowshare(&self) -> Option<f64> {
        let of = |group: &u32| {
            let members = self.view.members(*group as usize);
            let throughput = Flows::new(self.view, &members, Level::Group).throughput()?;
            Some((throughput, members.len() as f64))
        };
        let all: Vec<(f64, f64)> = self.competing()?.iter().filter_map(of).collect();
        let (throughput, flows) =
            all.iter().fold((0.0, 0.0), |(sum, flows), (one, count)| (sum + one, flows + count));
        let own = ratio(self.throughput()?, self.members.len() as f64)?;
        ratio(own, ratio(throughput, flows)?).filter(|_| all.len() > 1)
    }

    /// Standard deviation over mean of the flows' total throughput, over the whole seconds in which they were active.
    fn rate_variation(&self) -> Option<f64> {
        self.competing()?;
        let (from, to) = self.life()?;
        let mut bytes = vec![0; self.view.seconds.len()];
        for (second, received) in self.each().flat_map(|flow| &flow.received) {
            if let Some(bytes) = bytes.get_mut(*second) {
                *bytes += received;
            }
        }
        let seconds = self.view.seconds.iter().zip(bytes);
        let whole = seconds.filter(|(second, _)| from <= second.from && second.to <= to);
        let rates: Vec<f64> = whole.filter_map(|(second, bytes)| mbps(bytes, second.length())).collect();
        let count = rates.len() as f64;
        let mean = ratio(rates.iter().sum::<f64>(), count)?;
        let squares: f64 = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
        let deviation = (rates.len() > 1).then(|| libm::sqrt(squares / (count - 1.0)))?;
        ratio(deviation, mean)
    }
}

const GROUP: &[Level] = &[Level::Group];

family! {
    NORMALISED {
        name: "normalised_flowshare",
        title: "Normalised flowshare",
        unit: "",
        of: GROUP,
        definition: "Mean throughput of the group's flows over the mean throughput of the flows of all competing groups, itself included; 1 is a fair share. Groups compete if they always have data to send and their data share a link with this group's. Defined only if the flows of one of them are coordinated: they follow the reports of aggregation points, or carry ensembles together. Flows that arrive at random, as of web traffic, do not count.",
        source: "Ott, An Open Architecture for Transport-level Coordination, 2005, section 6.6.2 (average flowshare of the streams over that of all)",
        reduction: Reduction::Special(|f| Value::from(f.normalised_flowshare())),
    }

    VARIATION {
        name: "rate_variation",
        title: "Variation of throughput",
        unit: "",
        of: GROUP,
        definition: "Standard deviation over mean of the total throughput of the group's flows, in whole seconds of the window in which they were active (the source does not give its interval). Defined where normalised_flowshare is, for two seconds or more.",
        source: "Ott 2005, section 4.5.3 (coefficient of variation of the aggregate throughput)",
        reduction: Reduction::Special(|f| Value::from(f.rate_variation())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{FlowInfo, GroupInfo, LinkInfo, RunInfo};
    use crate::metrics::Metrics;
    use crate::records::Records;
    use crate::types::{FlowSample, Recorder};
    use weir_base::{Span, Time};
    use weir_fabric::FlowCounters;

    /// A run of four seconds: two streams, a bulk flow and web traffic on one link, a bulk flow on another; and how they share.
    fn run(sharing: [Option<Sharing>; 4]) -> RunInfo {
        let link = |groups: &[u32]| LinkInfo { groups: groups.to_vec(), ..LinkInfo::default() };
        let group = |sharing| GroupInfo { sharing, ..GroupInfo::default() };
        let flow = |group| FlowInfo { group, ..FlowInfo::default() };
        RunInfo {
            duration: Span::from_secs(4),
            sample: Span::from_secs(1),
            links: vec![link(&[0, 1, 2]), link(&[3])],
            groups: sharing.map(group).into(),
            flows: [0, 0, 1, 2, 3].map(flow).into(),
            ..RunInfo::default()
        }
    }

    /// Bytes that each flow receives in each of the four seconds, in thousands.
    const RECEIVED: [[u64; 4]; 5] =
        [[100, 120, 80, 100], [100, 80, 80, 140], [200, 200, 200, 200], [900; 4], [500; 4]];

    fn metrics(sharing: [Option<Sharing>; 4]) -> Vec<Metrics> {
        let info = run(sharing);
        let mut records = Records::default();
        for second in 0..4 {
            for (flow, received) in RECEIVED.iter().enumerate() {
                let counters =
                    FlowCounters { received_bytes: 1000 * received[second], ..FlowCounters::default() };
                let at = Time::ZERO + Span::from_secs(second as u64 + 1);
                records.flow(&FlowSample { at, flow: flow as u32, counters, ..FlowSample::default() });
            }
        }
        let view = View::after(Span::ZERO, &info, &records);
        (0..4).map(|group| view.of_group(group)).collect()
    }

    fn values(metrics: &[Metrics], name: &str) -> Vec<Value> {
        metrics.iter().map(|metrics| metrics.get(name)).collect()
    }

    const COORDINATED: Option<Sharing> = Some(Sharing::Coordinated);
    const SINGLE: Option<Sharing> = Some(Sharing::Single);

    #[test]
    fn a_flowshare_is_a_flows_throughput_over_the_mean_of_all_that_compete() {
        // 0.8 Mbit/s for each of the two streams, 1.6 for the bulk flow: 1.0667 on average. Web traffic and the other link do
        // not count.
        let shared = values(&metrics([COORDINATED, SINGLE, None, SINGLE]), "normalised_flowshare");
        let none = Value::Undefined;
        assert_eq!(shared, [Value::Number(0.75), Value::Number(1.5), none, none]);
    }

    #[test]
    fn variation_is_the_deviation_of_the_groups_seconds_over_their_mean() {
        // 200, 200, 160 and 240 kB: a mean of 200 and a deviation of sqrt(3200 / 3) = 32.66.
        let varied = values(&metrics([COORDINATED, SINGLE, None, SINGLE]), "rate_variation");
        let none = Value::Undefined;
        assert_eq!(varied, [Value::Number(0.163299), Value::Number(0.0), none, none]);
    }

    #[test]
    fn flowshares_are_undefined_without_coordination_or_competition() {
        for sharing in [
            [SINGLE, SINGLE, None, SINGLE],
            [COORDINATED, None, None, SINGLE],
            [SINGLE, SINGLE, None, COORDINATED],
        ] {
            for name in ["normalised_flowshare", "rate_variation"] {
                assert_eq!(values(&metrics(sharing), name), [Value::Undefined; 4], "{name} {sharing:?}");
            }
        }
    }
}
