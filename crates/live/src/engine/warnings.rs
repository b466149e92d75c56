//! What a reader of a live run's results should know.

use crate::apps::{AppsReport, Pauses};
use crate::load::Usage;
use crate::pump::PumpReport;
use serde_json::json;
use weir_base::{Bytes, Span};
use weir_fabric::MTU;
use weir_linux::clock::Scheduling;
use weir_plan::{Change, Link, Run};
use weir_queue::Limit;

/// Foreign load, in cores, above which the outcome carries a warning.
const NOTEWORTHY_LOAD: f64 = 0.25;

/// A line for each change of a link that was asked for during the run.
pub(super) fn changed(run: &Run, pumped: &PumpReport) -> Vec<String> {
    let told = |(link, change): &(usize, Change)| {
        let (name, at) = (&run.network.links[*link].name, change.at.as_secs_f64());
        let mut to = json!(change);
        if let Some(all) = to.as_object_mut() {
            all.retain(|key, value| key != "at" && !value.is_null());
        }
        format!("the link {name} was changed at {at:.3} s, from outside the lab, to {to}")
    };
    pumped.changes.iter().map(told).collect()
}

/// A line if other work kept the applications from their processor for longer than a queue of the lab holds: it drops more than it would
/// otherwise.
fn paused(run: &Run, pauses: &Pauses) -> Option<String> {
    let (count, longest) = pauses.count_and_longest();
    let holds = |link: &Link| {
        let rate = link.rate?;
        Some(match link.queue.limit()? {
            Limit::Packets(packets) => rate.time_to_send(Bytes::new(MTU.get() * u64::from(packets))),
            Limit::Bytes(bytes) => rate.time_to_send(bytes),
            Limit::Time(time) => time,
            Limit::Bdp(factor) => Span::from_secs_f64(factor * run.network.base_rtt?.as_secs_f64()),
        })
    };
    let shortest = run.network.links.iter().filter_map(|link| Some((holds(link)?, &link.name))).min()?;
    let (held, link) = (shortest.0 < longest).then_some(shortest)?;
    Some(format!(
        "other work kept the applications from their processor for up to {longest} (pauses: {count}), and the queue of {link} holds {held}: \
         it drops more than on an idle machine; `run.host_pauses` gives simulated hosts the same pauses"
    ))
}

/// A line for whatever may have disturbed a run, or limited it.
pub(super) fn warnings(
    run: &Run,
    pumped: &PumpReport,
    driven: &AppsReport,
    usage: Option<Usage>,
) -> Vec<String> {
    let mut warnings = driven.troubles.clone();
    warnings.extend(paused(run, &driven.pauses));
    if pumped.scheduling == Some(Scheduling::Ordinary) {
        warnings.push("no real-time scheduling (it needs root or CAP_SYS_NICE): releases are later when other programs are busy".into());
    }
    if pumped.rests > 0 {
        warnings.push(format!(
            "the pump reached 90 % of a core and paused {} times with packets due: this load is at the limit of this machine",
            pumped.rests
        ));
    }
    if pumped.relabelled > 0 {
        warnings.push(format!(
            "the kernel's TCP sends ECT(0): {} packets were relabelled ECT(1) as they left their hosts",
            pumped.relabelled
        ));
    }
    if pumped.clock_steps > Span::ZERO {
        warnings.push(format!("the wall clock was stepped by {} during the run", pumped.clock_steps));
    }
    if let Some(usage) = usage.filter(|usage| usage.foreign + usage.steal > NOTEWORTHY_LOAD) {
        warnings.push(format!(
            "other programs used {:.2} cores during the run, and the hypervisor took {:.2}",
            usage.foreign, usage.steal
        ));
    }
    if driven.sampled_every > 1 {
        warnings.push(format!(
            "at times tcp_info was sampled only every {} periods, to stay within 1 % of a core",
            driven.sampled_every
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Time;
    use weir_plan::Lab;

    #[test]
    fn a_pause_that_is_longer_than_a_queue_holds_is_a_warning() {
        let run = |packets: u32| {
            let lab = format!(
                "format = 1\n[dumbbell]\nrate = \"12 Mbit/s\"\nrtt = \"20 ms\"\n\
                 queue = {{ kind = \"tail-drop\", limit = \"{packets} packets\" }}\n[traffic.a]\n"
            );
            Lab::from_str(&lab, "test.toml", ".".as_ref(), &[]).unwrap().runs().remove(0)
        };
        let mut pauses = Pauses::default();
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        assert_eq!(paused(&run(2), &pauses), None);
        pauses.note(at(0), at(1_000), Span::ZERO);
        pauses.note(at(1_000), at(4_000), Span::from_micros(2_500));
        // A packet of 1500 bytes takes 1 ms.
        assert_eq!(paused(&run(3), &pauses), None);
        let warning = paused(&run(2), &pauses).unwrap();
        assert!(
            warning.contains("for up to 2.5 ms (pauses: 1), and the queue of down holds 2 ms"),
            "{warning}"
        );
    }
}
