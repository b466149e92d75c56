//! Verdicts on claims: values, bounds, orders, and claims that were not measured.

use super::*;
use crate::claim::{Against, Along, Relation, Repeats, Tolerance};
use weir_base::Ecn;
use weir_record::Statistic;
use weir_record::Value;

/// Two cells of two repeats: utilisation 90 and 92, then 96 and 97; the last run is invalid.
fn summary() -> Summary {
    let run = |engine: &str, label: &str, used: f64| RunSummary {
        engine: engine.into(),
        params: vec![Param { level: "queue".into(), value: label.into() }],
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        ..RunSummary::default()
    };
    let mut runs =
        vec![run("sim", "a", 90.0), run("sim", "a", 92.0), run("sim", "b", 96.0), run("sim", "b", 40.0)];
    runs[3].invalid = vec!["stalls".into()];
    Summary { runs, ..Summary::default() }
}

fn claim(value: f64, tolerance: Tolerance, cell: Option<&str>) -> Claim {
    Claim {
        row: None,
        metric: "utilisation_percent".into(),
        of: vec![],
        class: None,
        window: None,
        statistic: Statistic::Mean,
        cells: cell.map(|label| ("queue".into(), vec![label.into()])).into_iter().collect(),
        repeats: Repeats::Mean,
        against: None,
        along: None,
        over: Over::Each,
        expected: Expected::Near { value, tolerance },
        source: "here".into(),
        differs: None,
    }
}

fn verdict(claim: Claim) -> (ClaimVerdict, Option<f64>) {
    let judged = judge(&[claim], &summary());
    assert_eq!(judged.len(), 1, "one row a claim");
    (judged[0].verdict, judged[0].measured)
}

#[test]
fn a_claim_holds_up_to_its_tolerance() {
    use ClaimVerdict::{Fails, Holds};
    assert_eq!(verdict(claim(90.0, Tolerance::Absolute(1.0), Some("a"))), (Holds, Some(91.0)));
    assert_eq!(verdict(claim(90.0, Tolerance::Absolute(0.9), Some("a"))), (Fails, Some(91.0)));
    assert_eq!(verdict(claim(96.0, Tolerance::Share(0.0), Some("b"))), (Holds, Some(96.0)));
    assert_eq!(verdict(claim(100.0, Tolerance::Share(0.09), Some("a"))), (Holds, Some(91.0)));
}

#[test]
fn the_farthest_of_several_cells_decides() {
    let judged = judge(&[claim(96.0, Tolerance::Absolute(1.0), None)], &summary());
    assert_eq!((judged[0].measured, judged[0].cells, judged[0].repeats), (Some(91.0), 2, 2));
    assert_eq!(judged[0].cell[0].value, "a");
    assert_eq!(judged[0].verdict, ClaimVerdict::Fails);
}

#[test]
fn an_accepted_difference_counts_only_for_a_claim_that_fails() {
    let reason = |value| Claim {
        differs: Some("docs/why.md".into()),
        ..claim(value, Tolerance::Absolute(1.0), Some("a"))
    };
    assert_eq!(verdict(reason(91.0)).0, ClaimVerdict::Holds);
    assert_eq!(verdict(reason(80.0)).0, ClaimVerdict::Differs);
}

#[test]
fn a_claim_without_valid_runs_neither_holds_nor_fails() {
    use ClaimVerdict::{Differs, Fails, Holds, NotMeasured};
    let judged = |claim: Claim, invalid: &[usize]| {
        let mut summary = summary();
        for run in invalid {
            summary.runs[*run].invalid = vec!["stalls".into()];
        }
        judge(&[claim], &summary).remove(0)
    };
    let of = |value, cell| claim(value, Tolerance::Absolute(1.0), cell);
    let alone = judged(of(96.0, Some("b")), &[2]);
    assert_eq!((alone.verdict, alone.measured, alone.cells, alone.unmeasured), (NotMeasured, None, 0, 1));
    let reason = Claim { differs: Some("docs/why.md".into()), ..of(96.0, Some("b")) };
    assert_eq!(judged(reason, &[2]).verdict, NotMeasured, "no reason is needed");
    // Of several cells, those with valid runs are judged.
    let rest = judged(of(91.0, None), &[2]);
    assert_eq!((rest.verdict, rest.cells, rest.unmeasured, rest.points.len()), (Holds, 1, 1, 1));
    assert_eq!(judged(of(96.0, None), &[2]).verdict, Fails);
    assert_eq!(judged(of(96.0, None), &[0, 1, 2]).verdict, NotMeasured);
    // The mean of the cells is not judged, nor is a value relative to a cell without a valid run.
    assert_eq!(judged(Claim { over: Over::Mean, ..of(91.0, None) }, &[2]).verdict, NotMeasured);
    let against = Against {
        cells: [("queue".into(), "b".into())].into_iter().collect(),
        of: None,
        class: None,
        window: None,
        engine: None,
        relation: Relation::Difference,
    };
    let against = |differs: Option<&str>| Claim {
        against: Some(against.clone()),
        differs: differs.map(String::from),
        ..of(0.0, Some("a"))
    };
    assert_eq!(judged(against(None), &[2]).verdict, NotMeasured);
    assert_eq!(judged(against(None), &[]).verdict, Fails);
    assert_eq!(judged(against(Some("docs/why.md")), &[]).verdict, Differs);
}

#[test]
fn an_order_needs_all_its_cells_and_fails_on_one_pair() {
    use ClaimVerdict::{Fails, NotMeasured};
    let run = |label: &str, used: f64, invalid: &[&str]| RunSummary {
        engine: "live".into(),
        params: vec![Param { level: "queue".into(), value: label.into() }],
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        invalid: invalid.iter().map(|reason| reason.to_string()).collect(),
        ..RunSummary::default()
    };
    let runs = vec![run("a", 1.0, &[]), run("b", 2.0, &[]), run("c", 3.0, &["stalls"])];
    let summary = Summary { runs, ..Summary::default() };
    let judged = |labels: [&str; 3]| {
        let order = Order { places: labels.map(|label| vec![label.to_owned()]).into(), falling: false };
        let expected = Expected::Order { by: "queue".into(), order };
        judge(&[Claim { expected, ..claim(0.0, Tolerance::Absolute(0.0), None) }], &summary).remove(0)
    };
    for (labels, verdict, wrong) in [(["a", "b", "c"], NotMeasured, 0), (["b", "a", "c"], Fails, 1)] {
        let judged = judged(labels);
        assert_eq!(judged.verdict, verdict);
        let standing = judged.standing.unwrap();
        assert_eq!((standing.pairs, standing.unmeasured, standing.wrong.len()), (1, 2, wrong));
    }
}

#[test]
fn a_claim_against_an_engine_is_judged_on_the_other_one_if_both_have_run() {
    let run = |engine: &str, used: f64| RunSummary {
        engine: engine.into(),
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        ..RunSummary::default()
    };
    let against = Against {
        cells: Default::default(),
        of: None,
        class: None,
        window: None,
        engine: Some("sim".into()),
        relation: Relation::Ratio,
    };
    let claim = Claim { against: Some(against), ..claim(1.0, Tolerance::Share(0.1), None) };
    let judged =
        |runs: Vec<RunSummary>| judge(std::slice::from_ref(&claim), &Summary { runs, ..Summary::default() });
    let [one] = &judged(vec![run("sim", 80.0), run("live", 84.0)])[..] else {
        panic!("it is about live runs")
    };
    assert_eq!((one.engine.as_str(), one.measured, one.verdict), ("live", Some(1.05), ClaimVerdict::Holds));
    assert_eq!(judged(vec![run("sim", 80.0), run("live", 60.0)])[0].verdict, ClaimVerdict::Fails);
    assert!(judged(vec![run("sim", 80.0)]).is_empty() && judged(vec![run("live", 80.0)]).is_empty());
    assert!(claim.can_be_judged(&["sim", "live"]));
    assert!(!claim.can_be_judged(&["sim"]) && !claim.can_be_judged(&["live"]));
    let spoiled = RunSummary { invalid: vec!["stalls".into()], ..run("sim", 80.0) };
    assert_eq!(judged(vec![spoiled, run("live", 80.0)])[0].verdict, ClaimVerdict::NotMeasured);
}

#[test]
fn a_bound_that_an_unmeasured_cell_may_have_passed_is_not_failed() {
    let run = |rate: &str, used: f64, invalid: &[&str]| RunSummary {
        engine: "live".into(),
        params: vec![Param { level: "rate".into(), value: rate.into() }],
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        invalid: invalid.iter().map(|reason| reason.to_string()).collect(),
        ..RunSummary::default()
    };
    let verdict = |first: &[&str], last: &[&str]| {
        let runs = vec![run("5 Mbit/s", 10.0, first), run("10 Mbit/s", 90.0, last)];
        let along = Some(Along { level: "rate".into(), above: Some(50.0), below: None });
        let claim = Claim { along, ..claim(10.0, Tolerance::Absolute(0.1), None) };
        judge(&[claim], &Summary { runs, ..Summary::default() })[0].verdict
    };
    assert_eq!(verdict(&[], &[]), ClaimVerdict::Holds);
    assert_eq!(verdict(&[], &["stalls"]), ClaimVerdict::NotMeasured);
    assert_eq!(verdict(&["stalls"], &["stalls"]), ClaimVerdict::NotMeasured);
}

#[test]
fn a_value_that_valid_runs_do_not_have_fails() {
    let nothing = Claim { metric: "rate_ratio".into(), ..claim(1.0, Tolerance::Absolute(9.0), None) };
    assert_eq!(verdict(nothing), (ClaimVerdict::Fails, None));
    let percentile = Claim { statistic: Statistic::P99, ..claim(91.0, Tolerance::Absolute(9.0), None) };
    assert_eq!(verdict(percentile), (ClaimVerdict::Fails, None), "a number has no percentiles");
}

#[test]
fn bounds_are_inclusive_and_the_value_outside_them_decides() {
    let within = |at_least, at_most| Claim {
        expected: Expected::Within { at_least, at_most },
        ..claim(0.0, Tolerance::Absolute(0.0), None)
    };
    assert_eq!(verdict(within(Some(91.0), Some(96.5))), (ClaimVerdict::Holds, Some(91.0)));
    assert_eq!(verdict(within(Some(91.5), None)), (ClaimVerdict::Fails, Some(91.0)));
    assert_eq!(verdict(within(None, Some(95.0))), (ClaimVerdict::Fails, Some(96.0)));
}

#[test]
fn a_cell_is_compared_with_another_and_never_with_itself() {
    let against = |relation, value| Claim {
        against: Some(Against {
            cells: [("queue".into(), "a".into())].into_iter().collect(),
            of: None,
            class: None,
            window: None,
            engine: None,
            relation,
        }),
        ..claim(value, Tolerance::Absolute(1e-9), None)
    };
    // 96 against 91.
    assert_eq!(verdict(against(Relation::Difference, 5.0)), (ClaimVerdict::Holds, Some(5.0)));
    assert_eq!(verdict(against(Relation::Ratio, 96.0 / 91.0)).0, ClaimVerdict::Holds);
    assert_eq!(verdict(against(Relation::Change, 500.0 / 91.0)).0, ClaimVerdict::Holds);
    let judged = judge(&[against(Relation::Change, 0.0)], &summary());
    assert_eq!((judged[0].cells, judged[0].cell[0].value.as_str()), (1, "b"));
}

#[test]
fn a_claim_may_be_about_where_a_bound_is_passed() {
    let run = |rate: &str, used: f64| RunSummary {
        engine: "sim".into(),
        params: vec![Param { level: "rate".into(), value: rate.into() }],
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        ..RunSummary::default()
    };
    let runs = vec![run("5 Mbit/s", 10.0), run("7.5 Mbit/s", 60.0), run("10 Mbit/s", 90.0)];
    let summary = Summary { runs, ..Summary::default() };
    let at = |above, below| {
        let along = Some(Along { level: "rate".into(), above, below });
        let claim = Claim { along, ..claim(7.5, Tolerance::Absolute(0.1), None) };
        let judged = judge(&[claim], &summary).remove(0);
        (judged.verdict, judged.measured)
    };
    assert_eq!(at(Some(50.0), None), (ClaimVerdict::Holds, Some(7.5)));
    assert_eq!(at(None, Some(50.0)), (ClaimVerdict::Fails, Some(5.0)));
    assert_eq!(at(Some(95.0), None), (ClaimVerdict::Fails, None), "it is passed nowhere");
}

#[test]
fn a_claim_may_be_about_the_packets_of_one_codepoint_and_about_two_groups_either_way() {
    use weir_record::{ClassSummary, PairSummary, QueueSummary};
    let drops = |percent| [("drop_probability_percent", Value::Number(percent))].into_iter().collect();
    let class = |class, percent| ClassSummary { class, metrics: drops(percent) };
    let run = RunSummary {
        engine: "sim".into(),
        queues: vec![QueueSummary {
            link: "down".into(),
            queue: "pie".into(),
            carries: vec![],
            metrics: drops(3.0),
            classes: vec![class(Ecn::NotEct, 4.0), class(Ecn::Ect1, 1.0)],
        }],
        pairs: vec![PairSummary {
            group: "a".into(),
            to: "b".into(),
            metrics: [("rate_ratio", Value::Number(4.0))].into_iter().collect(),
        }],
        ..RunSummary::default()
    };
    let summary = Summary { runs: vec![run], ..Summary::default() };
    let measured = |claim: Claim| judge(&[claim], &summary)[0].measured;
    let of_class = |class| Claim {
        metric: "drop_probability_percent".into(),
        class: Some(class),
        ..claim(0.0, Tolerance::Absolute(9.0), None)
    };
    assert_eq!(measured(of_class(Ecn::Ect1)), Some(1.0));
    assert_eq!(measured(of_class(Ecn::Ect0)), None);
    let against = Against {
        cells: Default::default(),
        of: None,
        class: Some(Ecn::NotEct),
        window: None,
        engine: None,
        relation: Relation::Ratio,
    };
    assert_eq!(measured(Claim { against: Some(against), ..of_class(Ecn::Ect1) }), Some(0.25));
    let ratio = |of: [&str; 2]| Claim {
        metric: "rate_ratio".into(),
        of: of.map(String::from).into(),
        ..claim(0.0, Tolerance::Absolute(9.0), None)
    };
    assert_eq!((measured(ratio(["a", "b"])), measured(ratio(["b", "a"]))), (Some(4.0), Some(0.25)));
}

#[test]
fn a_claim_may_be_about_a_window_and_relative_to_another() {
    use weir_record::WindowSummary;
    let window = |name: &str, used: f64| WindowSummary {
        name: name.into(),
        metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
        ..WindowSummary::default()
    };
    let mut summary = summary();
    summary.runs.truncate(1);
    summary.runs[0].windows = vec![window("before", 80.0), window("outage", 20.0)];
    let measured = |in_window: Option<&str>, against: Option<&str>| {
        let against = against.map(|name| Against {
            cells: Default::default(),
            of: None,
            class: None,
            window: Some(name.into()),
            engine: None,
            relation: Relation::Ratio,
        });
        let window = in_window.map(String::from);
        let claim = Claim { window, against, ..claim(0.0, Tolerance::Absolute(0.0), None) };
        judge(&[claim], &summary)[0].measured
    };
    assert_eq!(measured(None, None), Some(90.0));
    assert_eq!(measured(Some("outage"), None), Some(20.0));
    assert_eq!(measured(Some("outage"), Some("before")), Some(0.25));
    assert_eq!(measured(Some("after"), None), None);
}

#[test]
fn a_claim_may_be_about_the_mean_of_several_cells() {
    let mean = Claim { over: Over::Mean, ..claim(93.5, Tolerance::Absolute(0.0), None) };
    assert_eq!(verdict(mean), (ClaimVerdict::Holds, Some(93.5)));
}

#[test]
fn an_order_holds_if_every_pair_that_it_separates_has_that_order() {
    let place = |labels: &[&str]| labels.iter().map(|label| label.to_string()).collect::<Vec<_>>();
    let order = |places: &[&[&str]], falling| Claim {
        expected: Expected::Order {
            by: "queue".into(),
            order: Order { places: places.iter().map(|labels| place(labels)).collect(), falling },
        },
        ..claim(0.0, Tolerance::Absolute(0.0), None)
    };
    let judged = |claim| judge(&[claim], &summary()).remove(0);
    assert_eq!(judged(order(&[&["a"], &["b"]], false)).verdict, ClaimVerdict::Holds);
    assert_eq!(judged(order(&[&["b"], &["a"]], true)).verdict, ClaimVerdict::Holds);
    assert_eq!(judged(order(&[&["a", "b"]], true)).verdict, ClaimVerdict::Holds);
    let wrong = judged(order(&[&["a"], &["b"]], true));
    assert_eq!(wrong.verdict, ClaimVerdict::Fails);
    let standing = wrong.standing.unwrap();
    assert_eq!(standing.values, [("a".into(), Some(91.0)), ("b".into(), Some(96.0))]);
    assert_eq!((standing.pairs, standing.wrong), (1, vec![("b".into(), "a".into())]));
}
