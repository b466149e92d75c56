//! Published against measured: each claim of a lab held against what its runs came to. A claim about several cells holds
//! only where it holds in each of them; the cell that is farthest off speaks for it.

mod cells;

use crate::claim::{Claim, Expected, Order, Over};
use cells::{CellValue, Table};
use serde::Serialize;
use weir_record::{Param, RunSummary, Summary};

/// What a claim comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The measured value is as expected, in every cell.
    Holds,
    /// It is not, or nothing was measured.
    Fails,
    /// It is not, for a reason that the claim gives; counted apart.
    Differs,
}

impl ClaimVerdict {
    /// As a person says it.
    pub fn name(self) -> &'static str {
        ["holds", "fails", "differs"][self as usize]
    }

    /// Of several that hold together or not at all.
    pub fn all(verdicts: impl IntoIterator<Item = ClaimVerdict>) -> ClaimVerdict {
        verdicts.into_iter().fold(ClaimVerdict::Holds, |all, one| match (all, one) {
            (ClaimVerdict::Fails, _) | (_, ClaimVerdict::Fails) => ClaimVerdict::Fails,
            (ClaimVerdict::Differs, _) | (_, ClaimVerdict::Differs) => ClaimVerdict::Differs,
            _ => ClaimVerdict::Holds,
        })
    }
}

/// A claim and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The engine that measured.
    pub engine: String,
    /// What the cell that is farthest off came to over its sound repeats, or the mean of all cells, as the claim says; none
    /// where nothing was measured, and of an order.
    pub measured: Option<f64>,
    /// Where the repeats' median lies with at least 95 % confidence, from their order alone; only of a median, of at least
    /// six repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Where an order is claimed: how the cells stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// What the cell that speaks chose on each level.
    pub cell: Vec<Param>,
    /// All cells that the claim is about, in the order of the tree; of a bound that is passed along a level, all cells along
    /// it, each with the metric's own value.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// How many cells the claim is about.
    pub cells: usize,
    /// How many sound repeats that cell has, of several cells the one that has fewest.
    pub repeats: usize,
    /// What it comes to.
    pub verdict: ClaimVerdict,
}

/// A cell and what it came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it chose on each level.
    pub cell: Vec<Param>,
    /// Its value, if it has one.
    pub value: Option<f64>,
}

/// How cells stand along a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Labels in the order that is claimed, with what was measured.
    pub values: Vec<(String, Option<f64>)>,
    /// How many pairs the claim tells apart.
    pub pairs: usize,
    /// Those that do not stand as claimed, the one that should be smaller first.
    pub wrong: Vec<(String, String)>,
}

impl Standing {
    fn new(order: &Order, value: impl Fn(&str) -> Option<f64>) -> Standing {
        let right = |(less, more): (&str, &str)| value(less).zip(value(more)).is_some_and(|(a, b)| a < b);
        let wrong = order.pairs().filter(|pair| !right(*pair)).map(|(a, b)| (a.into(), b.into())).collect();
        let values = order.labels().map(|label| (label.to_owned(), value(label))).collect();
        Standing { values, pairs: order.pairs().count(), wrong }
    }
}

/// Judges all claims on each engine that has runs, in the order of the lab. Invalid runs tell nothing.
pub fn judge(claims: &[Claim], summary: &Summary) -> Vec<Judged> {
    let mut engines: Vec<&str> = Vec::new();
    for run in &summary.runs {
        if !engines.contains(&run.engine.as_str()) {
            engines.push(&run.engine);
        }
    }
    let runs = |engine: &str| -> Vec<&RunSummary> {
        summary.runs.iter().filter(|run| run.engine == engine && run.invalid.is_empty()).collect()
    };
    let runs: Vec<(&str, Vec<&RunSummary>)> = engines.iter().map(|engine| (*engine, runs(engine))).collect();
    claims
        .iter()
        .flat_map(|claim| runs.iter().map(move |(engine, runs)| judge_one(claim, engine, runs)))
        .collect()
}

fn judge_one(claim: &Claim, engine: &str, runs: &[&RunSummary]) -> Judged {
    let table = Table::new(claim, runs);
    let cells = table.cells();
    let mut judged = Judged {
        claim: claim.clone(),
        engine: engine.into(),
        measured: None,
        interval: None,
        standing: None,
        cell: vec![],
        points: table.points().map(|cell| Point { cell: cell.params.to_vec(), value: cell.value }).collect(),
        cells: cells.len(),
        repeats: cells.iter().map(|cell| cell.repeats).min().unwrap_or(0),
        verdict: ClaimVerdict::Fails,
    };
    let holds = match &claim.expected {
        Expected::Order { by, order } => judge_order(&mut judged, by, order, &cells),
        _ => judge_value(&mut judged, &cells),
    };
    judged.verdict = match (holds, &claim.differs) {
        (true, _) => ClaimVerdict::Holds,
        (false, Some(_)) => ClaimVerdict::Differs,
        (false, None) => ClaimVerdict::Fails,
    };
    judged
}

/// How far a value is outside what is expected; negative inside.
fn off(expected: &Expected, value: f64) -> f64 {
    match expected {
        Expected::Near { value: expected, tolerance } => (value - expected).abs() - tolerance.of(*expected),
        Expected::Within { at_least, at_most } => {
            let below = at_least.map_or(f64::NEG_INFINITY, |least| least - value);
            below.max(at_most.map_or(f64::NEG_INFINITY, |most| value - most))
        }
        Expected::Order { .. } => 0.0,
    }
}

fn judge_value(judged: &mut Judged, cells: &[CellValue<'_>]) -> bool {
    // A cell without a value is farther off than any other.
    let off = |value: Option<f64>| value.map_or(f64::INFINITY, |value| off(&judged.claim.expected, value));
    let measured = match judged.claim.over {
        Over::Mean => mean(cells.iter().map(|cell| cell.value)),
        Over::Each => {
            let farthest = cells.iter().max_by(|a, b| off(a.value).total_cmp(&off(b.value)));
            judged.cell = farthest.map(|cell| cell.params.to_vec()).unwrap_or_default();
            judged.interval = farthest.and_then(|cell| cell.interval);
            judged.repeats = farthest.map_or(0, |cell| cell.repeats);
            farthest.and_then(|cell| cell.value)
        }
    };
    judged.measured = measured;
    off(measured) <= 0.0
}

fn judge_order(judged: &mut Judged, by: &str, order: &Order, cells: &[CellValue<'_>]) -> bool {
    let at = |cell: &CellValue<'_>, label: &str| {
        cell.params.iter().any(|param| param.level == by && param.value == label)
    };
    let elsewhere = |cell: &CellValue<'_>| -> Vec<Param> {
        cell.params.iter().filter(|param| param.level != by).cloned().collect()
    };
    let places = match judged.claim.over {
        Over::Mean => vec![(vec![], cells.iter().collect::<Vec<_>>())],
        Over::Each => {
            let mut places: Vec<(Vec<Param>, Vec<&CellValue<'_>>)> = vec![];
            for cell in cells {
                let place = elsewhere(cell);
                match places.iter_mut().find(|(other, _)| *other == place) {
                    Some((_, there)) => there.push(cell),
                    None => places.push((place, vec![cell])),
                }
            }
            places
        }
    };
    let standings = places.into_iter().map(|(place, there)| {
        let value = |label: &str| mean(there.iter().filter(|cell| at(cell, label)).map(|cell| cell.value));
        (place, Standing::new(order, value))
    });
    let worst = standings.max_by_key(|(_, standing)| standing.wrong.len());
    let holds = worst.as_ref().is_some_and(|(_, standing)| standing.wrong.is_empty());
    if let Some((place, standing)) = worst {
        (judged.cell, judged.standing) = (place, Some(standing));
    }
    holds
}

/// The mean of some values; none if there is none, or one of them is missing.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
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
    fn of_several_cells_the_farthest_speaks() {
        let judged = judge(&[claim(96.0, Tolerance::Absolute(1.0), None)], &summary());
        assert_eq!((judged[0].measured, judged[0].cells, judged[0].repeats), (Some(91.0), 2, 2));
        assert_eq!(judged[0].cell[0].value, "a");
        assert_eq!(judged[0].verdict, ClaimVerdict::Fails);
    }

    #[test]
    fn a_reason_is_counted_apart_and_only_where_it_is_needed() {
        let reason = |value| Claim {
            differs: Some("docs/why.md".into()),
            ..claim(value, Tolerance::Absolute(1.0), Some("a"))
        };
        assert_eq!(verdict(reason(91.0)).0, ClaimVerdict::Holds);
        assert_eq!(verdict(reason(80.0)).0, ClaimVerdict::Differs);
    }

    #[test]
    fn what_was_not_measured_fails() {
        let nothing = Claim { metric: "rate_ratio".into(), ..claim(1.0, Tolerance::Absolute(9.0), None) };
        assert_eq!(verdict(nothing), (ClaimVerdict::Fails, None));
        let percentile = Claim { statistic: Statistic::P99, ..claim(91.0, Tolerance::Absolute(9.0), None) };
        assert_eq!(verdict(percentile), (ClaimVerdict::Fails, None), "a number has no percentiles");
    }

    #[test]
    fn bounds_hold_as_they_are_and_what_is_outside_speaks_first() {
        let within = |at_least, at_most| Claim {
            expected: Expected::Within { at_least, at_most },
            ..claim(0.0, Tolerance::Absolute(0.0), None)
        };
        assert_eq!(verdict(within(Some(91.0), Some(96.5))), (ClaimVerdict::Holds, Some(91.0)));
        assert_eq!(verdict(within(Some(91.5), None)), (ClaimVerdict::Fails, Some(91.0)));
        assert_eq!(verdict(within(None, Some(95.0))), (ClaimVerdict::Fails, Some(96.0)));
    }

    #[test]
    fn a_cell_is_held_against_another_and_never_against_itself() {
        let against = |relation, value| Claim {
            against: Some(Against {
                cells: [("queue".into(), "a".into())].into_iter().collect(),
                of: None,
                class: None,
                window: None,
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
    fn several_cells_may_count_by_their_mean() {
        let mean = Claim { over: Over::Mean, ..claim(93.5, Tolerance::Absolute(0.0), None) };
        assert_eq!(verdict(mean), (ClaimVerdict::Holds, Some(93.5)));
    }

    #[test]
    fn an_order_holds_where_every_pair_that_it_tells_apart_stands_so() {
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
        let missing = judged(order(&[&["a"], &["c"]], false));
        assert_eq!(missing.verdict, ClaimVerdict::Fails, "what was not measured stands nowhere");
    }
}
