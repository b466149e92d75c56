//! Published against measured: each claim of a lab held against what its runs came to. A claim about several cells holds
//! only where it holds in each of them; the cell that is farthest off speaks for it.

use serde::Serialize;
use weir_plan::{Claim, Statistic, Tolerance};
use weir_record::{Metrics, ParamInfo, RunSummary, Summary, Value};

/// What a claim comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The measured value lies within the tolerance, in every cell.
    Holds,
    /// It does not, or nothing was measured.
    Misses,
    /// It does not, for a reason that the claim gives; counted apart.
    Differs,
}

impl ClaimVerdict {
    /// As a person says it.
    pub fn name(self) -> &'static str {
        ["holds", "misses", "differs"][self as usize]
    }
}

/// A claim and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The engine that measured.
    pub engine: String,
    /// Mean over the sound repeats of the cell that is farthest off, in the metric's unit; none where nothing was measured.
    pub measured: Option<f64>,
    /// What that cell chose on each level.
    pub cell: Vec<ParamInfo>,
    /// How many cells the claim is about.
    pub cells: usize,
    /// How many sound repeats that cell has.
    pub repeats: usize,
    /// What it comes to.
    pub verdict: ClaimVerdict,
}

/// Judges all claims on each engine that has runs, in the order of the lab. Spoiled runs tell nothing.
pub fn judge(claims: &[Claim], summary: &Summary) -> Vec<Judged> {
    let mut engines: Vec<&str> = Vec::new();
    for run in &summary.runs {
        if !engines.contains(&run.engine.as_str()) {
            engines.push(&run.engine);
        }
    }
    let runs = |engine: &str| -> Vec<&RunSummary> {
        summary.runs.iter().filter(|run| run.engine == engine && run.spoiled.is_empty()).collect()
    };
    claims
        .iter()
        .flat_map(|claim| engines.iter().map(|engine| judge_one(claim, engine, &runs(engine))))
        .collect()
}

fn judge_one(claim: &Claim, engine: &str, runs: &[&RunSummary]) -> Judged {
    let named = |run: &RunSummary| {
        claim.cells.iter().all(|(level, label)| {
            run.params.iter().any(|param| param.level == *level && param.value == *label)
        })
    };
    // For each cell: the values of its repeats.
    let mut cells: Vec<(&[ParamInfo], Vec<Option<f64>>)> = Vec::new();
    for run in runs.iter().filter(|run| named(run)) {
        let value = value(claim, run);
        match cells.iter_mut().find(|(params, _)| *params == run.params) {
            Some((_, values)) => values.push(value),
            None => cells.push((&run.params, vec![value])),
        }
    }
    let mean = |values: &[Option<f64>]| {
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    // A cell without a value is farther off than any other.
    let off = |values: &[Option<f64>]| mean(values).map_or(f64::INFINITY, |mean| (mean - claim.value).abs());
    let farthest = cells.iter().max_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)));
    let measured = farthest.and_then(|(_, values)| mean(values));
    let allowed = match claim.tolerance {
        Tolerance::Absolute(tolerance) => tolerance,
        Tolerance::Share(share) => share * claim.value.abs(),
    };
    let holds = measured.is_some_and(|measured| (measured - claim.value).abs() <= allowed);
    Judged {
        claim: claim.clone(),
        engine: engine.into(),
        measured,
        cell: farthest.map(|(params, _)| params.to_vec()).unwrap_or_default(),
        cells: cells.len(),
        repeats: farthest.map_or(0, |(_, values)| values.len()),
        verdict: match (holds, &claim.differs) {
            (true, _) => ClaimVerdict::Holds,
            (false, Some(_)) => ClaimVerdict::Differs,
            (false, None) => ClaimVerdict::Misses,
        },
    }
}

/// The value that a claim speaks of, in one run.
fn value(claim: &Claim, run: &RunSummary) -> Option<f64> {
    let metrics: Vec<&Metrics> = match &claim.of {
        None => vec![&run.metrics],
        // In the order in which the plan looks a name up; a group of one flow bears the flow's name too.
        Some(of) => {
            let groups = run.groups.iter().filter(|group| group.name == *of).map(|group| &group.metrics);
            let links = run.queues.iter().filter(|queue| queue.link == *of).map(|queue| &queue.metrics);
            let flows = run.flows.iter().filter(|flow| flow.name == *of).map(|flow| &flow.metrics);
            groups.chain(links).chain(flows).collect()
        }
    };
    metrics.into_iter().find_map(|metrics| statistic(claim.statistic, metrics.get(&claim.metric)))
}

fn statistic(statistic: Statistic, value: Value) -> Option<f64> {
    let Value::Distribution(of) = value else {
        return value.scalar().filter(|_| statistic == Statistic::Mean);
    };
    Some(match statistic {
        Statistic::Mean => of.mean,
        Statistic::P1 => of.p1,
        Statistic::P25 => of.p25,
        Statistic::P50 => of.p50,
        Statistic::P75 => of.p75,
        Statistic::P99 => of.p99,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cells of two repeats: utilisation 90 and 92, then 96 and 97; the last run is spoiled.
    fn summary() -> Summary {
        let run = |engine: &str, label: &str, used: f64| RunSummary {
            engine: engine.into(),
            params: vec![ParamInfo { level: "queue".into(), value: label.into() }],
            metrics: [("utilisation_percent", Value::Number(used))].into_iter().collect(),
            ..RunSummary::default()
        };
        let mut runs =
            vec![run("sim", "a", 90.0), run("sim", "a", 92.0), run("sim", "b", 96.0), run("sim", "b", 40.0)];
        runs[3].spoiled = vec!["stalls".into()];
        Summary { runs, ..Summary::default() }
    }

    fn claim(value: f64, tolerance: Tolerance, cell: Option<&str>) -> Claim {
        Claim {
            metric: "utilisation_percent".into(),
            of: None,
            statistic: Statistic::Mean,
            cells: cell.map(|label| ("queue".into(), label.into())).into_iter().collect(),
            value,
            tolerance,
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
        use ClaimVerdict::{Holds, Misses};
        assert_eq!(verdict(claim(90.0, Tolerance::Absolute(1.0), Some("a"))), (Holds, Some(91.0)));
        assert_eq!(verdict(claim(90.0, Tolerance::Absolute(0.9), Some("a"))), (Misses, Some(91.0)));
        assert_eq!(verdict(claim(96.0, Tolerance::Share(0.0), Some("b"))), (Holds, Some(96.0)));
        assert_eq!(verdict(claim(100.0, Tolerance::Share(0.09), Some("a"))), (Holds, Some(91.0)));
    }

    #[test]
    fn of_several_cells_the_farthest_speaks() {
        let judged = judge(&[claim(96.0, Tolerance::Absolute(1.0), None)], &summary());
        assert_eq!((judged[0].measured, judged[0].cells, judged[0].repeats), (Some(91.0), 2, 2));
        assert_eq!(judged[0].cell[0].value, "a");
        assert_eq!(judged[0].verdict, ClaimVerdict::Misses);
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
    fn what_was_not_measured_misses() {
        let nothing = Claim { metric: "rate_ratio".into(), ..claim(1.0, Tolerance::Absolute(9.0), None) };
        assert_eq!(verdict(nothing), (ClaimVerdict::Misses, None));
        let percentile = Claim { statistic: Statistic::P99, ..claim(91.0, Tolerance::Absolute(9.0), None) };
        assert_eq!(verdict(percentile), (ClaimVerdict::Misses, None), "a number has no percentiles");
    }
}
