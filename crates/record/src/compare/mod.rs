//! Whether two results agree. Runs are paired by cell and repeat. The mean difference has a 95 % interval (Student's t on
//! the paired differences) and is compared with a bound: *agree* if the whole interval lies inside the bound, *differ* if
//! the whole interval lies outside, *cannot tell* otherwise. A single pair has no interval: the verdict is *cannot tell*.

mod student;

pub use crate::bound::Bound;
pub use student::{f_tail, quantile};

use crate::info::Param;
use crate::metrics::{Level, METRICS, Metric, metric};
use crate::summary::RunSummary;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use weir_base::math::sqrt;

/// Confidence of the interval.
pub const CONFIDENCE: f64 = 0.95;

/// A metric to compare, and the bound on its difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Name of the metric; the mean of a distribution is compared. A metric that exists for the whole run is compared there,
    /// any other for each group.
    pub metric: String,
    /// The bound.
    pub bound: Bound,
}

impl Rule {
    /// The rules of the registry: each metric that has a bound.
    pub fn defaults() -> Vec<Rule> {
        let rule = |metric: &Metric| Some(Rule { metric: metric.name.into(), bound: metric.bound? });
        METRICS.iter().filter_map(rule).collect()
    }

    /// The rules of the registry, with `others` replacing those of the same metric or added after them.
    pub fn defaults_but(others: impl IntoIterator<Item = Rule>) -> Vec<Rule> {
        let mut rules = Rule::defaults();
        for rule in others {
            match rules.iter_mut().find(|default| default.metric == rule.metric) {
                Some(default) => *default = rule,
                None => rules.push(rule),
            }
        }
        rules
    }
}

impl FromStr for Rule {
    type Err = String;

    /// `METRIC=BOUND`, for example `rtt_ms=15%`.
    fn from_str(text: &str) -> Result<Rule, String> {
        let (name, bound) = text.split_once('=').ok_or_else(|| format!("`{text}` is not METRIC=BOUND"))?;
        let name = name.trim();
        let metric = metric(name).ok_or_else(|| format!("unknown metric `{name}`"))?;
        if !metric.of.contains(&Level::Run) && !metric.of.contains(&Level::Group) {
            return Err(format!("`{name}` is not a metric of a run or a group, so it cannot be compared"));
        }
        Ok(Rule { metric: name.into(), bound: bound.parse()? })
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies inside the bound.
    Agree,
    /// The whole interval lies outside the bound.
    Differ,
    /// Neither, or too few pairs. This does not count as agreement.
    CannotTell,
}

impl Verdict {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        ["agree", "differ", "cannot tell"][self as usize]
    }
}

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Lower and upper end of the 95 % interval; `None` for fewer than two values.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates the mean of some values, assumed independent and nearly normal. `None` without values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let (count, n) = (values.len(), values.len() as f64);
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let interval = (count > 1).then(|| {
            let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
            let error = sqrt(squares / (n - 1.0) / n);
            let half = error * quantile(0.5 + CONFIDENCE / 2.0, count as u32 - 1);
            (mean - half, mean + half)
        });
        Some(Estimate { count, mean, interval })
    }

    /// The verdict for a bound around zero.
    pub fn verdict(&self, bound: f64) -> Verdict {
        match self.interval {
            Some((low, high)) if -bound <= low && high <= bound => Verdict::Agree,
            Some((low, high)) if high < -bound || bound < low => Verdict::Differ,
            _ => Verdict::CannotTell,
        }
    }
}

/// One metric of one subject, compared in one cell or over all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The cell; `None` is over all cells, with one pair for each cell.
    pub cell: Option<Vec<Param>>,
    /// The metric.
    pub metric: String,
    /// The group; `None` is the whole run.
    pub group: Option<String>,
    /// The window; `None` is all of the run after its warm-up.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Mean of the reference; `None` if the metric is defined in none of its runs.
    pub reference: Option<f64>,
    /// Mean of the other; `None` if the metric is defined in none of its runs.
    pub other: Option<f64>,
    /// Other minus reference: as a share of the reference with a relative bound, in the metric's unit with an absolute one.
    /// `None` if no pair has both values, or if the difference is not finite.
    pub difference: Option<Estimate>,
    /// The bound.
    pub bound: Bound,
    /// The verdict.
    pub verdict: Verdict,
}

/// Two results, compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Compared {
    /// Each rule in each cell, then over all cells when there are several.
    pub rows: Vec<Comparison>,
    /// Runs left out because they have no partner, or because they or their partner are invalid: id and reason.
    pub left_out: Vec<(String, String)>,
}

impl Compared {
    /// Agree if every row agrees, differ if any row differs, otherwise cannot tell; without rows, cannot tell.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.rows.iter().any(|row| row.verdict == verdict);
        match (any(Verdict::Differ), any(Verdict::CannotTell) || self.rows.is_empty()) {
            (true, _) => Verdict::Differ,
            (false, true) => Verdict::CannotTell,
            (false, false) => Verdict::Agree,
        }
    }
}

/// Compares runs with those of a reference. When engines are compared, live runs are the reference.
pub fn compare(reference: &[RunSummary], other: &[RunSummary], rules: &[Rule]) -> Compared {
    let (cells, left_out) = pair_up(reference, other);
    let mut rows = Vec::new();
    for rule in rules {
        let mut subjects: Vec<Subject> = Vec::new();
        for (run, other) in cells.iter().flat_map(|cell| &cell.pairs) {
            for subject in subjects_of(rule, run, other) {
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        for subject in subjects {
            rows.extend(compare_subject(rule, &subject, &cells));
        }
    }
    Compared { rows, left_out }
}

/// The paired runs of one cell: reference and other, one pair for each repeat.
struct CellPairs<'a> {
    params: &'a [Param],
    pairs: Vec<(&'a RunSummary, &'a RunSummary)>,
}

fn pair_up<'a>(
    reference: &'a [RunSummary],
    other: &'a [RunSummary],
) -> (Vec<CellPairs<'a>>, Vec<(String, String)>) {
    let key = |run: &'a RunSummary| (cell_of(run), run.repeat);
    let partners: HashMap<_, &RunSummary> = other.iter().rev().map(|run| (key(run), run)).collect();
    let known: HashSet<_> = reference.iter().map(key).collect();
    let mut cells: Vec<CellPairs<'a>> = Vec::new();
    let mut places: HashMap<Vec<(&str, &str)>, usize> = HashMap::new();
    let mut left_out = Vec::new();
    for run in reference {
        match partners.get(&key(run)) {
            None => left_out.push((run.id.clone(), "no partner".into())),
            Some(partner) => match run.invalid.first().or(partner.invalid.first()) {
                Some(reason) => left_out.push((run.id.clone(), format!("invalid: {reason}"))),
                None => {
                    let place = *places.entry(cell_of(run)).or_insert_with(|| {
                        cells.push(CellPairs { params: &run.params, pairs: Vec::new() });
                        cells.len() - 1
                    });
                    cells[place].pairs.push((run, *partner));
                }
            },
        }
    }
    for run in other.iter().filter(|run| !known.contains(&key(run))) {
        left_out.push((run.id.clone(), "no partner".into()));
    }
    (cells, left_out)
}

/// The level and label of each of a run's parameters.
fn cell_of(run: &RunSummary) -> Vec<(&str, &str)> {
    run.params.iter().map(|param| (param.level.as_str(), param.value.as_str())).collect()
}

/// What a metric is compared for.
#[derive(Debug, Clone, PartialEq)]
struct Subject {
    /// `None` is the whole run.
    group: Option<String>,
    /// `None` is all of the run after its warm-up.
    window: Option<String>,
}

/// The whole run if the metric exists there, else each group; first over all of the run, then in each named window that both
/// have.
fn subjects_of(rule: &Rule, run: &RunSummary, other: &RunSummary) -> Vec<Subject> {
    let groups: Vec<Option<String>> = match metric(&rule.metric) {
        Some(metric) if metric.of.contains(&Level::Run) => vec![None],
        Some(metric) if metric.of.contains(&Level::Group) => {
            run.groups.iter().map(|group| Some(group.name.to_string())).collect()
        }
        _ => Vec::new(),
    };
    let windows = run.windows.iter().filter(|window| !window.phase).map(|window| window.name.as_str());
    let both = windows.filter(|name| other.part(Some(name)).is_some()).map(|name| Some(name.to_owned()));
    let parts: Vec<Option<String>> = std::iter::once(None).chain(both).collect();
    let of = |window: &Option<String>| {
        let subject = |group: &Option<String>| Subject { group: group.clone(), window: window.clone() };
        groups.iter().map(subject).collect::<Vec<_>>()
    };
    parts.iter().flat_map(of).collect()
}

fn value(run: &RunSummary, rule: &Rule, subject: &Subject) -> Option<f64> {
    let part = run.part(subject.window.as_deref())?;
    match &subject.group {
        None => part.metrics.get(&rule.metric).scalar(),
        Some(name) => part.groups.iter().find(|g| *g.name == **name)?.metrics.get(&rule.metric).scalar(),
    }
}

fn compare_subject(rule: &Rule, subject: &Subject, cells: &[CellPairs<'_>]) -> Vec<Comparison> {
    let mut rows = Vec::new();
    let mut cell_means = Vec::new();
    let negligible = metric(&rule.metric).map_or(0.0, |metric| metric.negligible);
    let difference = |a: f64, b: f64, scale: f64| difference(a, b, scale, rule.bound, negligible);
    for cell in cells {
        let values = cell.pairs.iter();
        let values: Vec<_> =
            values.map(|(a, b)| (value(a, rule, subject), value(b, rule, subject))).collect();
        let whole: Vec<(f64, f64)> = values.iter().filter_map(|(a, b)| a.zip(*b)).collect();
        let scale = mean(whole.iter().map(|pair| pair.0)).unwrap_or(0.0);
        let differences: Vec<f64> = whole.iter().map(|(a, b)| difference(*a, *b, scale)).collect();
        let means = (mean(values.iter().filter_map(|v| v.0)), mean(values.iter().filter_map(|v| v.1)));
        if means.0.is_none() && means.1.is_none() {
            continue;
        }
        cell_means.extend(mean(whole.iter().map(|p| p.0)).zip(mean(whole.iter().map(|p| p.1))));
        rows.push(row(rule, subject, Some(cell.params.to_vec()), means, &differences));
    }
    if rows.len() > 1 {
        let differences: Vec<f64> = cell_means.iter().map(|(a, b)| difference(*a, *b, *a)).collect();
        let means = (mean(cell_means.iter().map(|p| p.0)), mean(cell_means.iter().map(|p| p.1)));
        rows.push(row(rule, subject, None, means, &differences));
    }
    rows
}

fn row(
    rule: &Rule,
    subject: &Subject,
    cell: Option<Vec<Param>>,
    (reference, other): (Option<f64>, Option<f64>),
    differences: &[f64],
) -> Comparison {
    let (Bound::Absolute(bound) | Bound::Relative(bound)) = rule.bound;
    let difference = Estimate::of(differences).filter(|estimate| estimate.mean.is_finite());
    let verdict = difference.map_or(Verdict::CannotTell, |difference| difference.verdict(bound));
    let (metric, Subject { group, window }) = (rule.metric.clone(), subject.clone());
    Comparison { cell, metric, group, window, reference, other, difference, bound: rule.bound, verdict }
}

/// Other minus reference, divided by `scale` if the bound is relative. Then values that differ by `negligible` or less have no
/// difference, even with scale 0.
fn difference(reference: f64, other: f64, scale: f64, bound: Bound, negligible: f64) -> f64 {
    match bound {
        Bound::Relative(_) if (other - reference).abs() <= negligible => 0.0,
        Bound::Relative(_) => (other - reference) / scale.abs(),
        Bound::Absolute(_) => other - reference,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests;
