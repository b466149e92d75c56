//! Compares each group with its own run alone, where there is one: see [`crate::metrics::harm`].

use crate::metrics::{METRICS, Reduction, Value};
use crate::summary::RunSummary;

/// Adds the harm to each group that has a run of its own alone.
pub fn add_harm(runs: &mut [RunSummary]) {
    let sending = |run: &RunSummary| run.groups.iter().filter(|group| group.flows > 0).count();
    let alone: Vec<usize> =
        (0..runs.len()).filter(|&run| runs[run].groups.len() > 1 && sending(&runs[run]) == 1).collect();
    if alone.is_empty() {
        return;
    }
    let mut found: Vec<(usize, usize, &'static str, Value)> = vec![];
    for (number, run) in runs.iter().enumerate().filter(|(_, run)| sending(run) > 1) {
        for (place, group) in run.groups.iter().enumerate().filter(|(_, group)| group.flows > 0) {
            let same = |other: &&RunSummary| {
                let own = other.groups.iter().find(|other| other.name == group.name);
                own.is_some_and(|own| own.flows == group.flows)
            };
            let candidates = alone.iter().map(|other| &runs[*other]).filter(same);
            let Some(other) = closest(run, candidates) else { continue };
            let Some(own) = other.groups.iter().find(|other| other.name == group.name) else { continue };
            for metric in METRICS {
                let Reduction::Alone(harm) = metric.reduction else { continue };
                let both = own.metrics.number(harm.of).zip(group.metrics.number(harm.of));
                let value = both.and_then(|(alone, beside)| harm.percent(alone, beside));
                found.extend(value.map(|value| (number, place, metric.name, Value::Number(value).rounded())));
            }
        }
    }
    for (run, group, metric, value) in found {
        runs[run].groups[group].metrics.add(metric, value);
    }
}

/// The run of the same engine and repeat that differs from a run on the fewest levels; `None` if there is none, or more than one.
fn closest<'r>(run: &RunSummary, others: impl Iterator<Item = &'r RunSummary>) -> Option<&'r RunSummary> {
    let (mut best, mut least, mut count) = (None, usize::MAX, 0);
    for other in others.filter(|other| other.engine == run.engine && other.repeat == run.repeat) {
        let differs = run.params.iter().zip(&other.params).filter(|(a, b)| a != b).count();
        if differs < least {
            (best, least, count) = (Some(other), differs, 1);
        } else if differs == least {
            count += 1;
        }
    }
    best.filter(|_| count == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Param;
    use crate::metrics::harm::{HARM_COMPLETION, HARM_GOODPUT, HARM_RTT};
    use crate::metrics::{Metric, rate, tcp};
    use crate::summary::GroupSummary;

    fn group(name: &str, flows: usize, goodput: f64, rtt: f64) -> GroupSummary {
        let metrics = [(rate::GOODPUT.name, Value::Number(goodput)), (tcp::RTT.name, Value::Number(rtt))];
        GroupSummary {
            name: name.into(),
            controller: None,
            transport: "tcp".into(),
            flows,
            completes: false,
            metrics: metrics.into_iter().collect(),
        }
    }

    fn run(queue: &str, mix: &str, groups: [GroupSummary; 2]) -> RunSummary {
        let param = |level: &str, value: &str| Param { level: level.into(), value: value.into() };
        RunSummary {
            engine: "sim".into(),
            repeat: 1,
            params: vec![param("queue", queue), param("mix", mix)],
            groups: groups.into(),
            ..RunSummary::default()
        }
    }

    #[test]
    fn harm_is_the_loss_against_the_run_alone_in_the_same_cell_otherwise() {
        let mut runs = vec![
            run("deep", "cubic alone", [group("cubic", 1, 20.0, 80.0), group("bbr", 0, 0.0, 0.0)]),
            run("shallow", "cubic alone", [group("cubic", 1, 16.0, 40.0), group("bbr", 0, 0.0, 0.0)]),
            run("shallow", "both", [group("cubic", 1, 4.0, 50.0), group("bbr", 1, 16.0, 50.0)]),
        ];
        add_harm(&mut runs);
        let of = |metric: &Metric| runs[2].groups[0].metrics.number(metric);
        // 4 of 16 Mbit/s are left, and 50 ms are 10 more than 40.
        assert_eq!((of(&HARM_GOODPUT), of(&HARM_RTT), of(&HARM_COMPLETION)), (Some(75.0), Some(20.0), None));
        assert_eq!(runs[2].groups[1].metrics.number(&HARM_GOODPUT), None, "bbr never ran alone");
        assert_eq!(runs[0].groups[0].metrics.number(&HARM_GOODPUT), None);
    }

    #[test]
    fn a_group_that_gains_is_not_harmed_and_one_with_other_flows_is_not_compared() {
        let mut runs = vec![
            run("deep", "alone", [group("a", 1, 5.0, 40.0), group("b", 0, 0.0, 0.0)]),
            run("deep", "one each", [group("a", 1, 6.0, 40.0), group("b", 1, 5.0, 40.0)]),
            run("deep", "two and one", [group("a", 2, 6.0, 40.0), group("b", 1, 5.0, 40.0)]),
        ];
        add_harm(&mut runs);
        let of = |run: usize| runs[run].groups[0].metrics.number(&HARM_GOODPUT);
        assert_eq!((of(1), of(2)), (Some(0.0), None));
    }
}
