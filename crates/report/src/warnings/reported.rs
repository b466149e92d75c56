//! Warns of sources that offer more than the aggregation points report to them.

use crate::lab::Run;
use crate::number::rough_with;
use weir_plan::Run as Planned;
use weir_record::metrics::connection::REPORTED_RATE;
use weir_workload::Adapt;

/// A sentence for each group whose flows offer more than the rate that was reported to them on average.
pub(super) fn exceeded(plan: &Planned, run: &Run) -> Vec<String> {
    let exceeds = |group: &weir_plan::Group| {
        let shown = run.groups().find(|shown| *shown.summary.name == *group.name)?;
        let reported = shown.number(&REPORTED_RATE)?;
        let wanted = 8e-6 * group.workload.wanted(plan.duration)?.get() as f64 / plan.duration.as_secs_f64();
        (wanted > reported).then(|| {
            let then = match group.workload.adapt() {
                Some(Adapt::Shrink) => "the source makes its frames smaller",
                Some(Adapt::Drop) => "the source drops whole frames",
                None => "the rest waits at the sender, or is lost; adapt = \"shrink\" or \"drop\" has frames follow the rate",
            };
            format!(
                "A flow of {} offers {}, but the rate that its aggregation point reports to it is {} on average: {then}.",
                group.name,
                rough_with(wanted, "Mbit/s"),
                rough_with(reported, "Mbit/s")
            )
        })
    };
    plan.groups.iter().filter_map(exceeds).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NET, group, link, planned, told};
    use super::*;
    use weir_record::RunSummary;

    #[test]
    fn a_source_that_exceeds_its_reported_rate_is_told_and_what_follows() {
        let texts = |more: &str, reported: f64| {
            let run = planned(&format!(
                "{NET}[traffic.call.workload]\nkind = \"frames\"\nfps = 25\nsize = \"10 kB\"\nsource = \"socket\"\n{more}"
            ));
            told(
                &run,
                RunSummary {
                    queues: vec![link("tail-drop", &["call"], &[])],
                    groups: vec![group("call", 1, &[(REPORTED_RATE, reported)])],
                    ..RunSummary::default()
                },
            )
        };
        // 25 frames of 10,000 bytes and seven headers of 40.
        let text = texts("", 1.5).remove(0);
        assert!(text.starts_with("A flow of call offers 2.1 Mbit/s"), "{text}");
        assert!(text.contains("reports to it is 1.5 Mbit/s on average: the rest waits"), "{text}");
        assert!(texts("adapt = \"drop\"\n", 1.5)[0].ends_with("the source drops whole frames."));
        assert_eq!(texts("", 2.5), [""; 0]);
    }
}
