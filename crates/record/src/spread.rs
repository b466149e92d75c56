//! Distributions of a run after its warm-up, each as its values at the same shares, for plots of the cumulative
//! distribution.

use crate::metrics::{Flows, Level, METRICS, Reduction, View};
use crate::series::Subject;
use weir_base::{CODEPOINTS, Ecn, Histogram, Span};

/// The shares, in `[0, 1]`, at which a distribution has a value: every 2 %, and closer at both ends.
pub const SHARES: [f64; 60] = [
    0.0, 0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.24, 0.26,
    0.28, 0.3, 0.32, 0.34, 0.36, 0.38, 0.4, 0.42, 0.44, 0.46, 0.48, 0.5, 0.52, 0.54, 0.56, 0.58, 0.6, 0.62,
    0.64, 0.66, 0.68, 0.7, 0.72, 0.74, 0.76, 0.78, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98,
    0.985, 0.99, 0.995, 0.998, 0.999, 0.9999, 1.0,
];

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The name of the metric.
    pub name: &'static str,
    /// Its subject: a link, a class at a link, or a group.
    pub of: Subject,
    /// Number of values in it: at least one.
    pub count: u64,
    /// For each of [`SHARES`], the value at or below which that share of the values lies, by the nearest rank; delays and RTTs
    /// are within 0.8 %.
    pub values: Vec<f64>,
}

/// The distributions of a run in a window, of every metric that is one: at each instrumented link, and of each of its classes if
/// there are several; and of each group that has any values.
pub fn spreads(view: &View<'_>) -> Vec<Spread> {
    let mut out = Vec::new();
    let groups: Vec<Vec<usize>> = (0..view.info.groups.len()).map(|group| view.members(group)).collect();
    let groups: Vec<Flows<'_>> =
        groups.iter().map(|members| Flows::new(view, members, Level::Group)).collect();
    for metric in METRICS.iter().filter(|metric| metric.has_spread()) {
        for (group, flows) in (0..).map(Subject::Group).zip(&groups) {
            out.extend(match metric.reduction {
                Reduction::Rtts => of_times(metric.name, group, &flows.rtts()),
                _ => of_values(metric.name, group, flows.values(metric)),
            });
        }
        if let Reduction::Delays = metric.reduction {
            delays(metric.name, view, &mut out);
        }
    }
    out
}

/// Adds the queue delays at each instrumented link.
fn delays(name: &'static str, view: &View<'_>, out: &mut Vec<Spread>) {
    for (link, own) in (0..).zip(&view.links) {
        if !view.info.links[link as usize].instrumented {
            continue;
        }
        // A single class is the same as all packets.
        let of_class = |class: Ecn| &own.delay[class as usize];
        let classes = CODEPOINTS.into_iter().filter(|&class| of_class(class).count() > 0);
        for class in classes.clone().filter(|_| classes.clone().count() > 1) {
            out.extend(of_times(name, Subject::Class(link, class), of_class(class)));
        }
        out.extend(of_times(name, Subject::Link(link), &view.delay(link as usize, None)));
    }
}

fn of_times(name: &'static str, of: Subject, times: &Histogram) -> Option<Spread> {
    let values: Vec<f64> = times.percentiles(&SHARES).into_iter().map(Span::as_millis_f64).collect();
    (!values.is_empty()).then(|| Spread { name, of, count: times.count(), values })
}

fn of_values(name: &'static str, of: Subject, mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let rank = |share: f64| (libm::ceil(share * count as f64) as usize).clamp(1, count.max(1));
    let at: Option<Vec<f64>> = SHARES.iter().map(|share| values.get(rank(*share) - 1).copied()).collect();
    Some(Spread { name, of, count: count as u64, values: at? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::queue::QUEUE_DELAY;
    use crate::testing::busy_records;
    use crate::{FlowInfo, GroupInfo, LinkInfo, Records, RunInfo, RunSummary, Value};

    fn info() -> RunInfo {
        let flow = |group| FlowInfo { group, ..FlowInfo::default() };
        RunInfo {
            sample: Span::from_millis(100),
            duration: Span::from_secs(5),
            links: vec![LinkInfo { name: "down".into(), instrumented: true, ..LinkInfo::default() }],
            groups: vec![GroupInfo { name: "a".into(), ..GroupInfo::default() }, GroupInfo::default()],
            flows: vec![flow(0), flow(0), flow(1)],
            ..RunInfo::default()
        }
    }

    #[test]
    fn shares_ascend_from_none_to_all() {
        assert!(SHARES.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((SHARES[0], SHARES[28], SHARES[59]), (0.0, 0.5, 1.0));
    }

    #[test]
    fn a_distribution_has_the_percentiles_of_its_metric() {
        let (info, records) = (info(), busy_records());
        let summary = RunSummary::new(&info, &records, None);
        let delay = spreads(&View::after(info.warmup, &info, &records));
        let delay = delay.iter().find(|spread| spread.of == Subject::Link(0)).unwrap();
        assert_eq!(delay.name, QUEUE_DELAY.name);
        let Value::Distribution(known) = summary.queues[0].metrics.get(delay.name) else { panic!() };
        let at = |share: f64| delay.values[SHARES.iter().position(|known| *known == share).unwrap()];
        assert_eq!(delay.count, known.count);
        for (share, value) in [(0.01, known.p1), (0.25, known.p25), (0.5, known.p50), (0.99, known.p99)] {
            // The summary has six digits; 25 % lies between the shares around it.
            let here = if share == 0.25 { at(0.24)..=at(0.26) } else { at(share)..=at(share) };
            assert!(*here.start() < 1.00001 * value && value < 1.00001 * here.end(), "{share}: {value}");
        }
    }

    #[test]
    fn the_warm_up_is_left_out_and_empty_records_have_no_distributions() {
        let (info, records) = (info(), busy_records());
        let count = |warmup| {
            let all = spreads(&View::after(warmup, &info, &records));
            all.iter().find(|spread| spread.of == Subject::Link(0)).map_or(0, |spread| spread.count)
        };
        assert!(count(Span::from_secs(2)) < count(info.warmup));
        let nothing = Records::default();
        assert_eq!(spreads(&View::after(info.warmup, &info, &nothing)), []);
    }
}
