//! Verdicts on small sets of runs, against intervals worked out by hand.

use super::*;
use crate::metrics::{Metrics, Value};
use crate::summary::GroupSummary;

/// A run of cell `cell` with a utilisation, a queue delay and a share of goodput for group `a`.
fn run(cell: &str, repeat: u32, [utilisation, delay, share]: [f64; 3]) -> RunSummary {
    let number = |name, value| (name, Value::Number(value));
    RunSummary {
        id: format!("{cell}-{repeat}"),
        repeat,
        params: vec![Param { level: "queue".into(), value: cell.into() }],
        metrics: Metrics::from_iter([
            number("utilisation_percent", utilisation),
            number("queue_delay_ms", delay),
        ]),
        groups: vec![GroupSummary {
            name: "a".into(),
            controller: None,
            transport: "tcp".into(),
            flows: 1,
            completes: false,
            metrics: Metrics::from_iter([number("goodput_share_percent", share)]),
        }],
        ..RunSummary::default()
    }
}

fn rule(metric: &str, bound: Bound) -> Vec<Rule> {
    vec![Rule { metric: metric.into(), bound }]
}

#[test]
fn a_window_that_both_have_is_compared_by_itself() {
    use crate::summary::WindowSummary;
    let with = |delay: f64, window: &str, in_window: f64| {
        let mut run = run("pie", 1, [90.0, delay, 50.0]);
        run.windows = vec![WindowSummary {
            name: window.into(),
            metrics: Metrics::from_iter([("queue_delay_ms", Value::Number(in_window))]),
            ..WindowSummary::default()
        }];
        run
    };
    let rules = rule("queue_delay_ms", Bound::Relative(0.15));
    let compared = compare(&[with(10.0, "outage", 40.0)], &[with(11.0, "outage", 30.0)], &rules);
    let rows: Vec<_> = compared.rows.iter().map(|r| (r.window.as_deref(), r.reference, r.other)).collect();
    assert_eq!(rows, [(None, Some(10.0), Some(11.0)), (Some("outage"), Some(40.0), Some(30.0))]);
    let compared = compare(&[with(10.0, "outage", 40.0)], &[with(11.0, "other", 30.0)], &rules);
    assert_eq!(compared.rows.len(), 1, "no window is in both");
}

#[test]
fn the_interval_is_students_on_the_paired_differences() {
    // Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t(0.975, 2) = 4.303.
    let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
    let (low, high) = estimate.interval.unwrap();
    let half = 4.302_653 / 3f64.sqrt();
    assert!((low - (2.0 - half)).abs() < 1e-5 && (high - (2.0 + half)).abs() < 1e-5, "{low} to {high}");
    assert_eq!(estimate.verdict(5.0), Verdict::Agree);
    assert_eq!(estimate.verdict(3.0), Verdict::CannotTell);
    assert_eq!(Estimate::of(&[10.0, 10.1, 9.9]).unwrap().verdict(3.0), Verdict::Differ);
    assert_eq!(Estimate::of(&[-10.0, -10.1, -9.9]).unwrap().verdict(3.0), Verdict::Differ);
}

#[test]
fn one_pair_does_not_decide() {
    let estimate = Estimate::of(&[0.0]).unwrap();
    assert_eq!((estimate.interval, estimate.verdict(1.0)), (None, Verdict::CannotTell));
    assert_eq!(Estimate::of(&[]), None);
}

#[test]
fn the_registry_gives_the_compared_metrics_and_their_bounds() {
    assert_eq!(
        Rule::defaults(),
        [
            rule("utilisation_percent", Bound::Absolute(2.0)),
            rule("queue_delay_ms", Bound::Relative(0.15)),
            rule("goodput_share_percent", Bound::Absolute(10.0)),
        ]
        .concat()
    );
}

#[test]
fn bounds_are_numbers_or_shares_and_replace_those_of_the_registry() {
    assert_eq!("15%".parse(), Ok(Bound::Relative(0.15)));
    assert_eq!("7.5 %".parse(), Ok(Bound::Relative(0.075)));
    assert_eq!(" 2".parse(), Ok(Bound::Absolute(2.0)));
    for text in ["", "%", "-1", "nan", "inf", "2 points"] {
        assert!(text.parse::<Bound>().unwrap_err().contains("is not a bound"), "{text}");
    }
    for bound in [Bound::Relative(0.07), Bound::Relative(0.15), Bound::Absolute(2.5)] {
        assert_eq!(bound.to_string().parse(), Ok(bound));
    }
    let message = |text: &str| text.parse::<Rule>().unwrap_err();
    assert_eq!(message("queue_delay=1"), "unknown metric `queue_delay`");
    assert_eq!(message("queue_delay_ms"), "`queue_delay_ms` is not METRIC=BOUND");
    assert!(message("rate_ratio=1").contains("cannot be compared"));
    let rules = Rule::defaults_but(["queue_delay_ms=3", "jain_index=5%"].map(|text| text.parse().unwrap()));
    assert_eq!(rules[1], Rule { metric: "queue_delay_ms".into(), bound: Bound::Absolute(3.0) });
    assert_eq!((rules.len(), rules[3].metric.as_str()), (4, "jain_index"));
}

#[test]
fn runs_are_paired_by_cell_and_repeat_whatever_their_order() {
    let live = [run("pie", 1, [90.0, 10.0, 50.0]), run("pie", 2, [91.0, 20.0, 60.0])];
    let sim = [run("pie", 2, [91.5, 22.0, 61.0]), run("pie", 1, [90.5, 11.0, 51.0])];
    let compared = compare(&live, &sim, &Rule::defaults());
    assert_eq!((compared.rows.len(), compared.left_out.len()), (3, 0));
    let [utilisation, delay, share] = &compared.rows[..] else { panic!("three rows") };
    let difference = utilisation.difference.unwrap();
    assert_eq!((difference.mean, difference.interval, difference.count), (0.5, Some((0.5, 0.5)), 2));
    assert_eq!((utilisation.reference, utilisation.other), (Some(90.5), Some(91.0)));
    // Differences of 1 and 2 ms, of a mean of 15 ms: 10 % on average, but two pairs this far apart have a wide interval.
    assert!((delay.difference.unwrap().mean - 0.1).abs() < 1e-12);
    assert_eq!(delay.verdict, Verdict::CannotTell);
    assert_eq!((share.group.as_deref(), share.verdict), (Some("a"), Verdict::Agree));
    assert_eq!(compared.verdict(), Verdict::CannotTell);
}

#[test]
fn a_share_of_a_negligible_delay_is_no_difference() {
    let delays = |delay| [1, 2, 3].map(|repeat| run("pie", repeat, [90.0, delay, 50.0]));
    let verdict = |live, sim, bound| {
        let row = compare(&delays(live), &delays(sim), &rule("queue_delay_ms", bound)).rows.remove(0);
        (row.difference.map(|difference| difference.mean), row.verdict)
    };
    // 10 us are negligible: an empty queue's 0.5 us beside 0 agree, as do 10 beside 0.
    assert_eq!(verdict(0.0005, 0.0, Bound::Relative(0.15)), (Some(0.0), Verdict::Agree));
    assert_eq!(verdict(0.01, 0.0, Bound::Relative(0.15)), (Some(0.0), Verdict::Agree));
    assert_eq!(verdict(0.1, 0.08, Bound::Relative(0.15)).1, Verdict::Differ);
    // A bound in milliseconds stands for itself.
    assert_eq!(verdict(0.005, 0.0, Bound::Absolute(0.001)).1, Verdict::Differ);
}

#[test]
fn over_all_cells_each_cell_is_one_pair_and_relative_differences_are_the_cells_own() {
    let live = [run("pie", 1, [90.0, 10.0, 50.0]), run("tail", 1, [90.0, 100.0, 50.0])];
    let sim = [run("pie", 1, [90.0, 11.0, 50.0]), run("tail", 1, [90.0, 110.0, 50.0])];
    let compared = compare(&live, &sim, &rule("queue_delay_ms", Bound::Relative(0.15)));
    assert_eq!(compared.rows.len(), 3);
    assert!(compared.rows[..2].iter().all(|row| row.verdict == Verdict::CannotTell));
    let overall = &compared.rows[2];
    assert_eq!((overall.cell.as_ref(), overall.verdict), (None, Verdict::Agree));
    assert!((overall.difference.unwrap().mean - 0.1).abs() < 1e-12);
}

#[test]
fn a_bound_can_be_overridden() {
    let live = [1, 2, 3].map(|repeat| run("pie", repeat, [90.0, 10.0, 50.0]));
    let sim = [1, 2, 3].map(|repeat| run("pie", repeat, [91.0, 10.0, 50.0]));
    let verdict = |bound| compare(&live, &sim, &rule("utilisation_percent", bound)).verdict();
    assert_eq!(verdict(Bound::Absolute(2.0)), Verdict::Agree);
    assert_eq!(verdict(Bound::Absolute(0.5)), Verdict::Differ);
    assert_eq!(verdict(Bound::Relative(0.05)), Verdict::Agree);
    assert_eq!(verdict(Bound::Relative(0.01)), Verdict::Differ);
}

#[test]
fn invalid_runs_and_runs_without_partner_are_left_out_and_named() {
    let mut live = [1, 2, 3].map(|repeat| run("pie", repeat, [90.0, 10.0, 50.0]));
    live[1].invalid.push("lateness".into());
    let sim = [1, 2, 4].map(|repeat| run("pie", repeat, [90.0, 10.0, 50.0]));
    let compared = compare(&live, &sim, &rule("utilisation_percent", Bound::Absolute(2.0)));
    let left_out: Vec<_> = compared.left_out.iter().map(|(id, why)| (id.as_str(), why.as_str())).collect();
    assert_eq!(left_out, [("pie-2", "invalid: lateness"), ("pie-3", "no partner"), ("pie-4", "no partner")]);
    assert_eq!(compared.rows[0].difference.unwrap().count, 1);
}

#[test]
fn a_metric_that_is_undefined_on_one_side_is_not_decided() {
    let live = [1, 2].map(|repeat| run("pie", repeat, [90.0, 10.0, 50.0]));
    let mut sim = live.clone();
    sim.iter_mut().for_each(|run| run.metrics = Metrics::default());
    let compared = compare(&live, &sim, &rule("queue_delay_ms", Bound::Relative(0.15)));
    assert_eq!((compared.rows[0].other, compared.rows[0].difference), (None, None));
    assert_eq!(compared.verdict(), Verdict::CannotTell);
    assert_eq!(compare(&sim, &sim, &rule("queue_delay_ms", Bound::Relative(0.15))).rows, []);
    // Zero delay on both sides is no difference; a difference from a reference of zero is no share.
    let none = [1, 2].map(|repeat| run("pie", repeat, [90.0, 0.0, 50.0]));
    let rules = rule("queue_delay_ms", Bound::Relative(0.15));
    assert_eq!(compare(&none, &none, &rules).verdict(), Verdict::Agree);
    assert_eq!(compare(&none, &live, &rules).verdict(), Verdict::CannotTell);
}
