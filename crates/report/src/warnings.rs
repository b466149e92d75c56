//! Warnings for the reader, derived from a run's plan and its numbers: offered loads above the capacity, queues of a packet
//! or two, warm-ups that cut off all of a group's traffic, flow isolation that starves a flow, and oracles that the run trips.

mod oracle;

pub(crate) use oracle::sentence as of_oracle;

use crate::model::{GroupNumbers, LinkNumbers, RunNumbers};
use crate::number::rough_with;
use weir_plan::Run;
use weir_queue::Limit;

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

/// The warnings of a run; empty if none applies.
pub(crate) fn warnings(run: &Run, numbers: &RunNumbers) -> Vec<String> {
    let mut warnings = Vec::new();
    for link in &numbers.links {
        warnings.extend(overload(run, link));
        warnings.extend(short_queue(run, link));
        warnings.extend(acknowledgements(run, link, numbers));
        warnings.extend(isolation(run, link, numbers));
    }
    warnings.extend(cut_off(run, numbers));
    warnings.extend(numbers.oracles.iter().map(|trip| of_oracle(trip, &numbers.engine)));
    warnings
}

/// Offered load of a group, in Mbit/s. `None` if its applications send as fast as the network allows.
fn wanted_mbps(run: &Run, name: &str) -> Option<f64> {
    let group = run.groups.iter().position(|group| group.name == name)?;
    let flows: Vec<_> = run.flows.iter().filter(|flow| flow.group == group).collect();
    let workload = &run.groups[group].workload;
    if workload.has_random_arrivals() {
        let bytes: u64 = flows.iter().filter_map(|flow| flow.size).map(|size| size.get()).sum();
        return Some(8e-6 * bytes as f64 / run.duration.as_secs_f64());
    }
    if workload.role().is_stream() {
        return None;
    }
    let time = run.duration;
    Some(8e-6 * flows.len() as f64 * workload.wanted(time)?.get() as f64 / time.as_secs_f64())
}

/// Warns of an offered load above the link's capacity.
fn overload(run: &Run, link: &LinkNumbers) -> Option<String> {
    let capacity = link.capacity_mbps?;
    let wanted: f64 = link.carries.iter().filter_map(|group| wanted_mbps(run, group)).sum();
    (wanted > capacity).then(|| {
        format!(
            "The load that is offered to link {} is {}, but the link carries {}: its queue is full whatever the AQM does, and more flows \
             arrive than complete.",
            link.name,
            rough_with(wanted, "Mbit/s"),
            rough_with(capacity, "Mbit/s")
        )
    })
}

/// Warns of a queue that holds no more than [`SHORT_PACKETS`] packets.
fn short_queue(run: &Run, link: &LinkNumbers) -> Option<String> {
    let planned = run.network.links.iter().find(|other| other.name == link.name)?;
    let limit = planned.queue.limit()?;
    let rate = planned.rate?.bits_per_sec() as f64 / 8.0;
    let bytes = match limit {
        Limit::Packets(packets) => f64::from(packets) * planned.mtu.get() as f64,
        Limit::Bytes(bytes) => bytes.get() as f64,
        Limit::Time(time) => rate * time.as_secs_f64(),
        Limit::Bdp(factor) => factor * rate * run.network.base_rtt?.as_secs_f64(),
    };
    let packets = bytes / planned.mtu.get() as f64;
    (packets <= SHORT_PACKETS && !link.carries.is_empty()).then(|| {
        format!(
            "The queue of link {} holds {limit}, no more than {} packets: it drops packets of bursts even at a low load.",
            link.name, SHORT_PACKETS
        )
    })
}

/// Warns of acknowledgements that fill a queue, alone or beside the data of other groups.
fn acknowledgements(run: &Run, link: &LinkNumbers, numbers: &RunNumbers) -> Option<String> {
    let elsewhere = |group: &GroupNumbers| *group.transport == *"tcp" && !link.carries.contains(&group.name);
    let dropped = link.packets.dropped_percent?;
    if dropped < LOST_ACKS_PERCENT || !numbers.groups.iter().any(elsewhere) {
        return None;
    }
    let sent_mbit = link.capacity_mbps? * link.packets.utilisation_percent? / 100.0
        * (numbers.duration_s - numbers.warmup_s);
    let mean_bytes =
        sent_mbit * 1e6 / 8.0 / link.packets.arrived.saturating_sub(link.packets.dropped).max(1) as f64;
    let name = &link.name;
    (mean_bytes < SMALL * run.network.mtu().get() as f64).then(|| {
        format!(
            "Most packets at link {name} are acknowledgements ({} a packet on average), and its queue drops {} of all: in a queue whose \
             limit counts packets, they take the room of data packets.",
            rough_with(mean_bytes, "bytes"),
            rough_with(dropped, "%")
        )
    })
}

/// Warns of flow isolation that drops what a flow sends above its share.
fn isolation(run: &Run, link: &LinkNumbers, numbers: &RunNumbers) -> Vec<String> {
    let Some(capacity) = link.capacity_mbps.filter(|_| ISOLATING.contains(&link.queue.as_str())) else {
        return vec![];
    };
    let groups: Vec<&GroupNumbers> =
        numbers.groups.iter().filter(|group| link.carries.contains(&group.name)).collect();
    let flows: usize = groups.iter().map(|group| group.flows).sum();
    let fair = capacity / flows.max(1) as f64;
    let starved = |group: &&GroupNumbers| {
        let on_time = group.waits.iter().find_map(|wait| wait.on_time_percent)?;
        let wanted = wanted_mbps(run, &group.name)? / group.flows.max(1) as f64;
        (on_time < ON_TIME_PERCENT && wanted > fair).then(|| {
            format!(
                "{} at link {} gives each of {flows} flows {} while all of them send; a flow of {} sends {}, so the queue drops the \
                 rest.",
                crate::sentence::spelled(&link.queue),
                link.name,
                rough_with(fair, "Mbit/s"),
                group.name,
                rough_with(wanted, "Mbit/s")
            )
        })
    };
    groups.iter().filter_map(starved).collect()
}

/// Warns of groups whose flows all completed within the warm-up.
fn cut_off(run: &Run, numbers: &RunNumbers) -> Vec<String> {
    let warmup = numbers.warmup_s;
    let gone = |group: &&GroupNumbers| {
        let mut flows = numbers.flows.iter().filter(|flow| flow.group == group.name).peekable();
        let started = |name: &str| {
            let flow = run.flows.iter().find(|flow| flow.name == name);
            flow.map_or(0.0, |flow| flow.start.as_secs_f64())
        };
        warmup > 0.0
            && flows.peek().is_some()
            && flows.all(|flow| flow.completion_s.is_some_and(|took| started(&flow.name) + took <= warmup))
    };
    let groups = numbers.groups.iter().filter(gone);
    groups
        .map(|group| {
            format!(
                "All flows of {} completed within the warm-up of {}, which metrics leave out; write warmup = \"0 s\".",
                group.name,
                rough_with(warmup, "s")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FlowNumbers, PacketNumbers, WaitNumbers};
    use std::path::Path;

    const NET: &str =
        "format = 1\n[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"5 Mbit/s\"\nrtt = \"40 ms\"\n";

    fn planned(lab: &str) -> Run {
        weir_plan::Lab::from_str(lab, "lab.toml", Path::new("."), &[]).unwrap().runs().remove(0)
    }

    fn group(name: &str, flows: usize) -> GroupNumbers {
        GroupNumbers { name: name.into(), transport: "tcp".into(), flows, ..GroupNumbers::default() }
    }

    fn link(queue: &str, carries: &[&str]) -> LinkNumbers {
        LinkNumbers {
            name: "down".into(),
            queue: queue.into(),
            capacity_mbps: Some(5.0),
            carries: carries.iter().map(|name| (*name).into()).collect(),
            ..LinkNumbers::default()
        }
    }

    fn told(run: &Run, numbers: &RunNumbers) -> Vec<String> {
        warnings(run, numbers).into_iter().map(|text| text.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn flow_isolation_causes_a_warning_if_a_flow_needs_more_than_its_share() {
        // 25 frames of 10,000 bytes a second: 2 Mbit/s and headers. The share of each of five flows of 5 Mbit/s is 1 Mbit/s.
        let run = planned(&format!(
            "{NET}queue = \"fq-codel\"\n[traffic.call.workload]\nkind = \"frames\"\nfps = 25\nsize = \"10 kB\"\n\
             deadline = \"150 ms\"\n[traffic.bulk]\nflows = 4\n"
        ));
        let late = WaitNumbers { on_time_percent: Some(45.0), ..WaitNumbers::default() };
        let call = GroupNumbers { waits: vec![late], ..group("call", 1) };
        let mut numbers = RunNumbers {
            links: vec![link("fq-codel", &["call", "bulk"])],
            groups: vec![call, group("bulk", 4)],
            ..RunNumbers::default()
        };
        let text = told(&run, &numbers).remove(0);
        assert!(text.starts_with("FQ-CoDel at link down gives each of 5 flows 1 Mbit/s"), "{text}");
        assert!(text.contains("a flow of call sends 2"), "{text}");
        numbers.groups[0].waits[0].on_time_percent = Some(99.0);
        assert_eq!(told(&run, &numbers), [""; 0], "nothing is to be explained");
    }

    #[test]
    fn a_queue_of_a_few_packets_and_an_excessive_offered_load_cause_warnings() {
        // Three times 2 Mbit/s of frames on 5 Mbit/s.
        let run = planned(&format!(
            "{NET}queue = {{ kind = \"tail-drop\", limit = \"2 packets\" }}\n[traffic.call]\nflows = 3\n\
             [traffic.call.workload]\nkind = \"frames\"\nfps = 25\nsize = \"10 kB\"\ndeadline = \"150 ms\"\n"
        ));
        let numbers = RunNumbers {
            links: vec![link("tail-drop", &["call"])],
            groups: vec![group("call", 3)],
            ..RunNumbers::default()
        };
        let texts = told(&run, &numbers);
        assert!(texts[0].starts_with("The load that is offered to link down is 6"), "{texts:?}");
        assert!(texts[1].starts_with("The queue of link down holds 2 packets"), "{texts:?}");
    }

    #[test]
    fn a_transfer_within_the_warm_up_causes_a_warning() {
        let run = planned(&format!("{NET}[traffic.a.workload]\nkind = \"transfer\"\nsize = \"100 kB\"\n"));
        let flow = FlowNumbers {
            name: "a".into(),
            group: "a".into(),
            completion_s: Some(1.5),
            ..FlowNumbers::default()
        };
        let mut numbers = RunNumbers {
            warmup_s: 4.0,
            groups: vec![group("a", 1)],
            flows: vec![flow],
            ..RunNumbers::default()
        };
        assert!(told(&run, &numbers)[0].starts_with("All flows of a completed within the warm-up of 4 s"));
        numbers.warmup_s = 1.0;
        assert_eq!(told(&run, &numbers), [""; 0]);
    }

    #[test]
    fn acknowledgements_that_fill_a_queue_cause_a_warning() {
        let run = planned(&format!("{NET}[traffic.a]\n[traffic.b]\ndirection = \"up\"\n"));
        let mut numbers = RunNumbers {
            duration_s: 20.0,
            warmup_s: 0.0,
            // 5 Mbit/s for 20 s, full: 12.5 MB in 50,000 packets are 250 bytes each.
            links: vec![LinkNumbers {
                packets: PacketNumbers {
                    utilisation_percent: Some(100.0),
                    arrived: 55_000,
                    dropped: 5_000,
                    dropped_percent: Some(100.0 / 11.0),
                    ..PacketNumbers::default()
                },
                ..link("tail-drop", &["b"])
            }],
            groups: vec![group("a", 1), group("b", 1)],
            ..RunNumbers::default()
        };
        let text = told(&run, &numbers).remove(0);
        assert!(
            text.starts_with("Most packets at link down are acknowledgements (250 bytes a packet"),
            "{text}"
        );
        numbers.links[0].packets.dropped_percent = Some(0.2);
        assert_eq!(told(&run, &numbers), [""; 0]);
    }
}
