//! Distributions of a run after its warm-up, each as its values at the same shares, for plots of the cumulative
//! distribution.

use crate::info::RunInfo;
use crate::metrics::{View, Window};
use crate::records::Records;
use crate::series::Subject;
use crate::types::{FlowEventKind, MessageKind};
use weir_base::{CODEPOINTS, Ecn, Histogram, Span, Time};

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
    /// The metric, with its unit: `queue_delay_ms`, `rtt_ms`, `completion_time_s`, `request_time_ms`,
    /// `frame_delay_ms`, `echo_time_ms`, `ensemble_delay_ms`, `stall_time_ms` or `completion_asynchrony_ms`.
    pub name: &'static str,
    /// Its subject: a link, a class at a link, or a group.
    pub of: Subject,
    /// Number of values in it: at least one.
    pub count: u64,
    /// For each of [`SHARES`], the value at or below which that share of the values lies, by the nearest rank; delays and RTTs
    /// are within 0.8 %.
    pub values: Vec<f64>,
}

/// The distributions of a run in a window: queue delay at each instrumented link, and for each of its classes if there are
/// several; and each group's RTTs, completions, requests, frames, echoes and ensembles, if there were any.
pub fn spreads(view: &View<'_>, records: &Records) -> Vec<Spread> {
    let info = view.info;
    let mut out = Vec::new();
    for (link, own) in (0..).zip(&view.links) {
        if !info.links[link as usize].instrumented {
            continue;
        }
        // A single class is the same as all packets.
        let of_class = |class: Ecn| &own.delay[class as usize];
        let classes = CODEPOINTS.into_iter().filter(|&class| of_class(class).count() > 0);
        for class in classes.clone().filter(|_| classes.clone().count() > 1) {
            out.extend(of_times("queue_delay_ms", Subject::Class(link, class), of_class(class)));
        }
        out.extend(of_times("queue_delay_ms", Subject::Link(link), &view.delay(link as usize, None)));
    }
    for (group, own) in (0..).zip(&view.rtts) {
        out.extend(of_times("rtt_ms", Subject::Group(group), own));
    }
    waits(info, records, view.window(), &mut out);
    out
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

/// Adds the waiting times of each group's applications.
fn waits(info: &RunInfo, records: &Records, window: Window, out: &mut Vec<Spread>) {
    let group_of = |flow: u32| info.flows.get(flow as usize).map(|flow| flow.group as usize);
    // For each group: completions, requests, frames, echoes, and for ensembles the delays of frames, stalls and asynchrony.
    let mut gathered: Vec<[Vec<f64>; 7]> = vec![Default::default(); info.groups.len()];
    let mut add = |flow: u32, what: usize, value: f64| {
        if let Some(of) = group_of(flow).and_then(|group| gathered.get_mut(group)) {
            of[what].push(value);
        }
    };
    let mut started: Vec<Time> = info.flows.iter().map(|flow| Time::ZERO + flow.start).collect();
    for event in &records.events {
        let Some(start) = started.get_mut(event.flow as usize) else { continue };
        match event.kind {
            FlowEventKind::Started => *start = event.at,
            FlowEventKind::Completed if window.holds(event.at) => {
                add(event.flow, 0, event.at.since(*start).as_secs_f64());
            }
            _ => {}
        }
    }
    for message in records.messages.iter().filter(|message| window.holds(message.at)) {
        let what = match message.kind {
            MessageKind::Request => 1,
            MessageKind::Frame => 2,
            MessageKind::Echo => 3,
            MessageKind::Part => 4,
            MessageKind::Stall => 5,
            MessageKind::Ensemble => 6,
        };
        if let Some(took) = message.took {
            add(message.flow, what, took.as_millis_f64());
        }
    }
    const NAMES: [&str; 7] = [
        "completion_time_s",
        "request_time_ms",
        "frame_delay_ms",
        "echo_time_ms",
        "ensemble_delay_ms",
        "stall_time_ms",
        "completion_asynchrony_ms",
    ];
    for (group, of) in (0..).zip(gathered) {
        for (name, values) in NAMES.into_iter().zip(of) {
            out.extend(of_values(name, Subject::Group(group), values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::busy_records;
    use crate::{FlowInfo, GroupInfo, LinkInfo, METRICS, RunSummary, Value};

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
        let delay = spreads(&View::after(info.warmup, &info, &records), &records);
        let delay = delay.iter().find(|spread| spread.of == Subject::Link(0)).unwrap();
        assert!(METRICS.iter().any(|metric| metric.name == delay.name));
        let Value::Distribution(known) = summary.queues[0].metrics.get("queue_delay_ms") else { panic!() };
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
            let all = spreads(&View::after(warmup, &info, &records), &records);
            all.iter().find(|spread| spread.of == Subject::Link(0)).map_or(0, |spread| spread.count)
        };
        assert!(count(Span::from_secs(2)) < count(info.warmup));
        let nothing = Records::default();
        assert_eq!(spreads(&View::after(info.warmup, &info, &nothing), &nothing), []);
    }
}
