//! Warnings for the reader, derived from a run's plan and its numbers: offered loads above the capacity, queues of a packet
//! or two, warm-ups that cut off all of a group's traffic, flow isolation that starves a flow, losses that a controller takes for congestion,
//! sources above their reported rate, and oracles that the run trips.

mod loss;
mod oracle;
mod reported;

pub(crate) use oracle::sentence as of_oracle;

use crate::lab::{Group, Link, Run};
use crate::number::rough_with;
use weir_engine::FinishedRun;
use weir_plan::Run as Planned;
use weir_queue::Limit;
use weir_record::metrics::message::FRAMES_ON_TIME;
use weir_record::metrics::queue::{ARRIVED, DROP_PROBABILITY, DROPPED, LINK_CAPACITY, UTILISATION};
use weir_record::{GroupSummary, RunSummary};

/// Queues that hold no more packets than this drop packets of every burst.
const SHORT_PACKETS: f64 = 2.0;
/// A share of frames on time below this, in percent, is explained.
const ON_TIME_PERCENT: f64 = 95.0;
/// A loss of acknowledgements below this, in percent, slows no flow down.
const LOST_ACKS_PERCENT: f64 = 1.0;
/// If the mean packet is smaller than this share of the largest, most packets carry no data.
const SMALL: f64 = 0.5;
/// Queue disciplines that give each flow a queue of its own and serve these in turn.
const ISOLATING: [&str; 2] = ["fq-codel", "fq-pie"];

/// A finished run as the pages show it, with all its warnings.
pub(crate) fn run_with_warnings(summary: &RunSummary, run: &FinishedRun) -> Run {
    let mut shown = Run::new(summary, run);
    let found = warnings(&run.file.run, &shown);
    shown.warnings.extend(found);
    shown
}

/// The warnings of a run; empty if none applies.
pub(crate) fn warnings(plan: &Planned, run: &Run) -> Vec<String> {
    let mut warnings = Vec::new();
    for link in run.links() {
        warnings.extend(overload(plan, &link));
        warnings.extend(short_queue(plan, &link));
        warnings.extend(acknowledgements(plan, &link, run));
        warnings.extend(isolation(plan, &link, run));
        warnings.extend(loss::response(plan, &link, run));
    }
    warnings.extend(reported::exceeded(plan, run));
    warnings.extend(cut_off(plan, run));
    warnings.extend(run.summary.oracles.iter().map(|trip| of_oracle(trip, run.engine())));
    warnings
}

/// Offered load of a group, in Mbit/s. `None` if its applications send as fast as the network allows.
fn wanted_mbps(plan: &Planned, name: &str) -> Option<f64> {
    let group = plan.groups.iter().position(|group| group.name == name)?;
    let flows: Vec<_> = plan.flows.iter().filter(|flow| flow.group == group).collect();
    let workload = &plan.groups[group].workload;
    if workload.has_random_arrivals() {
        let bytes: u64 = flows.iter().filter_map(|flow| flow.size).map(|size| size.get()).sum();
        return Some(8e-6 * bytes as f64 / plan.duration.as_secs_f64());
    }
    if workload.role().is_stream() {
        return None;
    }
    let time = plan.duration;
    Some(8e-6 * flows.len() as f64 * workload.wanted(time)?.get() as f64 / time.as_secs_f64())
}

/// Warns of an offered load above the link's capacity.
fn overload(plan: &Planned, link: &Link<'_>) -> Option<String> {
    let capacity = link.number(&LINK_CAPACITY)?;
    let wanted: f64 = link.queue.carries.iter().filter_map(|group| wanted_mbps(plan, group)).sum();
    (wanted > capacity).then(|| {
        format!(
            "The load that is offered to link {} is {}, but the link carries {}: its queue is full whatever the AQM does, and more flows \
             arrive than complete.",
            link.name(),
            rough_with(wanted, "Mbit/s"),
            rough_with(capacity, "Mbit/s")
        )
    })
}

/// Warns of a queue that holds no more than [`SHORT_PACKETS`] packets.
fn short_queue(plan: &Planned, link: &Link<'_>) -> Option<String> {
    let planned = plan.network.links.iter().find(|other| other.name == link.name())?;
    let limit = planned.queue.limit()?;
    let rate = planned.rate?.bits_per_sec() as f64 / 8.0;
    let bytes = match limit {
        Limit::Packets(packets) => f64::from(packets) * planned.mtu.get() as f64,
        Limit::Bytes(bytes) => bytes.get() as f64,
        Limit::Time(time) => rate * time.as_secs_f64(),
        Limit::Bdp(factor) => factor * rate * plan.network.base_rtt?.as_secs_f64(),
    };
    let packets = bytes / planned.mtu.get() as f64;
    (packets <= SHORT_PACKETS && !link.queue.carries.is_empty()).then(|| {
        format!(
            "The queue of link {} holds {limit}, no more than {} packets: it drops packets of bursts even at a low load.",
            link.name(),
            SHORT_PACKETS
        )
    })
}

/// Warns of acknowledgements that fill a queue, alone or beside the data of other groups.
fn acknowledgements(plan: &Planned, link: &Link<'_>, run: &Run) -> Option<String> {
    let elsewhere = |group: Group<'_>| {
        *group.summary.transport == *"tcp" && !link.queue.carries.contains(&group.summary.name)
    };
    let dropped = link.number(&DROP_PROBABILITY)?;
    if dropped < LOST_ACKS_PERCENT || !run.groups().any(elsewhere) {
        return None;
    }
    let sent_mbit = link.number(&LINK_CAPACITY)? * link.number(&UTILISATION)? / 100.0
        * (run.summary.duration_s - run.summary.warmup_s);
    let count = |metric| link.queue.metrics.count(metric).unwrap_or(0);
    let sent = count(&ARRIVED).saturating_sub(count(&DROPPED)).max(1);
    let mean_bytes = sent_mbit * 1e6 / 8.0 / sent as f64;
    let name = link.name();
    (mean_bytes < SMALL * plan.network.mtu().get() as f64).then(|| {
        format!(
            "Most packets at link {name} are acknowledgements ({} a packet on average), and its queue drops {} of all: in a queue whose \
             limit counts packets, they take the room of data packets.",
            rough_with(mean_bytes, "bytes"),
            rough_with(dropped, "%")
        )
    })
}

/// Warns of flow isolation that drops what a flow sends above its share.
fn isolation(plan: &Planned, link: &Link<'_>, run: &Run) -> Vec<String> {
    let queue = link.queue.queue.as_str();
    let Some(capacity) = link.number(&LINK_CAPACITY).filter(|_| ISOLATING.contains(&queue)) else {
        return vec![];
    };
    let carried = |group: &Group<'_>| link.queue.carries.contains(&group.summary.name);
    let groups: Vec<Group<'_>> = run.groups().filter(carried).collect();
    let flows: usize = groups.iter().map(|group| group.summary.flows).sum();
    let fair = capacity / flows.max(1) as f64;
    let starved = |group: &Group<'_>| {
        let (on_time, group) = (group.number(&FRAMES_ON_TIME)?, group.summary);
        let wanted = wanted_mbps(plan, &group.name)? / group.flows.max(1) as f64;
        (on_time < ON_TIME_PERCENT && wanted > fair).then(|| {
            format!(
                "{} at link {} gives each of {flows} flows {} while all of them send; a flow of {} sends {}, so the queue drops the \
                 rest.",
                crate::naming::spelled(queue),
                link.name(),
                rough_with(fair, "Mbit/s"),
                group.name,
                rough_with(wanted, "Mbit/s")
            )
        })
    };
    groups.iter().filter_map(starved).collect()
}

/// Metrics describe a group badly if less than this share of its flows' time lies after the warm-up.
const REST: f64 = 0.25;

/// Warns of groups whose flows all ended within the warm-up, or so soon after it that metrics describe only a small rest of them.
fn cut_off(plan: &Planned, run: &Run) -> Vec<String> {
    let warmup = run.summary.warmup_s;
    let told = |group: &GroupSummary| {
        let (begin, end) = crate::lab::life(&group.name, plan, &run.summary)?;
        let remedy = "write warmup = \"0 s\", or give --warmup '0 s' to weir report";
        let (name, warm) = (&group.name, rough_with(warmup, "s"));
        if end <= warmup {
            return Some(format!(
                "All flows of {name} ended within the warm-up of {warm}, which metrics leave out; {remedy}."
            ));
        }
        (end - warmup < REST * (end - begin)).then(|| {
            format!(
                "All flows of {name} ended at {}, soon after the warm-up of {warm}: metrics describe only the rest of them; {remedy}.",
                rough_with(end, "s")
            )
        })
    };
    run.summary.groups.iter().filter(|_| warmup > 0.0).filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use weir_record::metrics::completion::COMPLETION_TIME;
    use weir_record::{FlowSummary, GroupSummary, Metric, Metrics, QueueSummary, RunSummary, Value};

    pub(super) const NET: &str =
        "format = 1\n[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"5 Mbit/s\"\nrtt = \"40 ms\"\n";

    pub(super) fn planned(lab: &str) -> Planned {
        weir_plan::Lab::from_str(lab, "lab.toml", Path::new("."), &[]).unwrap().runs().remove(0)
    }

    fn metrics(values: &[(Metric, f64)]) -> Metrics {
        values.iter().map(|(metric, value)| (metric.name, Value::Number(*value))).collect()
    }

    pub(super) fn group(name: &str, flows: usize, values: &[(Metric, f64)]) -> GroupSummary {
        let (name, transport) = (name.into(), "tcp".into());
        GroupSummary { name, controller: None, transport, flows, completes: false, metrics: metrics(values) }
    }

    /// A link of 5 Mbit/s.
    pub(super) fn link(queue: &str, carries: &[&str], values: &[(Metric, f64)]) -> QueueSummary {
        QueueSummary {
            link: "down".into(),
            queue: queue.into(),
            carries: carries.iter().map(|name| (*name).into()).collect(),
            metrics: metrics(&[&[(LINK_CAPACITY, 5.0)], values].concat()),
            classes: vec![],
        }
    }

    pub(super) fn told(plan: &Planned, summary: RunSummary) -> Vec<String> {
        let run = Run { summary: Arc::new(summary), ..Run::default() };
        warnings(plan, &run).into_iter().map(|text| text.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn flow_isolation_causes_a_warning_if_a_flow_needs_more_than_its_share() {
        // 25 frames of 10,000 bytes a second: 2 Mbit/s and headers. The share of each of five flows of 5 Mbit/s is 1 Mbit/s.
        let run = planned(&format!(
            "{NET}queue = \"fq-codel\"\n[traffic.call.workload]\nkind = \"frames\"\nfps = 25\nsize = \"10 kB\"\n\
             deadline = \"150 ms\"\n[traffic.bulk]\nflows = 4\n"
        ));
        let on_time = |percent| RunSummary {
            queues: vec![link("fq-codel", &["call", "bulk"], &[])],
            groups: vec![group("call", 1, &[(FRAMES_ON_TIME, percent)]), group("bulk", 4, &[])],
            ..RunSummary::default()
        };
        let text = told(&run, on_time(45.0)).remove(0);
        assert!(text.starts_with("FQ-CoDel at link down gives each of 5 flows 1 Mbit/s"), "{text}");
        assert!(text.contains("a flow of call sends 2"), "{text}");
        assert_eq!(told(&run, on_time(99.0)), [""; 0], "nothing is to be explained");
    }

    #[test]
    fn a_queue_of_a_few_packets_and_an_excessive_offered_load_cause_warnings() {
        // Three times 2 Mbit/s of frames on 5 Mbit/s.
        let run = planned(&format!(
            "{NET}queue = {{ kind = \"tail-drop\", limit = \"2 packets\" }}\n[traffic.call]\nflows = 3\n\
             [traffic.call.workload]\nkind = \"frames\"\nfps = 25\nsize = \"10 kB\"\ndeadline = \"150 ms\"\n"
        ));
        let summary = RunSummary {
            queues: vec![link("tail-drop", &["call"], &[])],
            groups: vec![group("call", 3, &[])],
            ..RunSummary::default()
        };
        let texts = told(&run, summary);
        assert!(texts[0].starts_with("The load that is offered to link down is 6"), "{texts:?}");
        assert!(texts[1].starts_with("The queue of link down holds 2 packets"), "{texts:?}");
    }

    #[test]
    fn a_transfer_within_the_warm_up_causes_a_warning() {
        let run = planned(&format!("{NET}[traffic.a.workload]\nkind = \"transfer\"\nsize = \"100 kB\"\n"));
        let flow = FlowSummary {
            name: "a".into(),
            group: "a".into(),
            controller: None,
            transport: "tcp".into(),
            metrics: metrics(&[(COMPLETION_TIME, 1.5)]),
        };
        let summary = |warmup_s| RunSummary {
            warmup_s,
            groups: vec![group("a", 1, &[])],
            flows: vec![flow.clone()],
            ..RunSummary::default()
        };
        let text = told(&run, summary(4.0)).remove(0);
        assert!(text.starts_with("All flows of a ended within the warm-up of 4 s"), "{text}");
        // Less than a quarter of its time lies after the warm-up.
        let text = told(&run, summary(1.3)).remove(0);
        assert!(
            text.contains("soon after the warm-up of 1.3 s") && text.contains("--warmup '0 s'"),
            "{text}"
        );
        assert_eq!(told(&run, summary(1.0)), [""; 0]);
    }

    #[test]
    fn acknowledgements_that_fill_a_queue_cause_a_warning() {
        let run = planned(&format!("{NET}[traffic.a]\n[traffic.b]\ndirection = \"up\"\n"));
        // 5 Mbit/s for 20 s, full: 12.5 MB in 50,000 packets are 250 bytes each.
        let counted = [(ARRIVED, Value::Count(55_000)), (DROPPED, Value::Count(5_000))];
        let summary = |dropped| {
            let mut link = link("tail-drop", &["b"], &[]);
            let numbers = [(LINK_CAPACITY, 5.0), (UTILISATION, 100.0), (DROP_PROBABILITY, dropped)];
            let numbers = numbers.map(|(metric, value)| (metric.name, Value::Number(value)));
            link.metrics =
                numbers.into_iter().chain(counted.map(|(metric, count)| (metric.name, count))).collect();
            RunSummary {
                duration_s: 20.0,
                queues: vec![link],
                groups: vec![group("a", 1, &[]), group("b", 1, &[])],
                ..RunSummary::default()
            }
        };
        let text = told(&run, summary(100.0 / 11.0)).remove(0);
        assert!(
            text.starts_with("Most packets at link down are acknowledgements (250 bytes a packet"),
            "{text}"
        );
        assert_eq!(told(&run, summary(0.2)), [""; 0]);
    }
}
