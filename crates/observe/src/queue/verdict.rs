//! The report, and whether it may be believed: lost events, packets of which only one end was seen, and the difference from the kernel's
//! own counters.

use super::sums::{Backlog, ByCodepoint, Drops, QueuePeriod, Sums};
use crate::Times;
use crate::rate::elapsed;
use serde::Serialize;
use std::collections::BTreeMap;
use weir_base::{CODEPOINTS, Ecn, Histogram, Time};

/// The share of packets that may be lost, unmatched or counted differently.
const TOLERATED: f64 = 0.001;

/// By how much a counter of the kernel grew. It cannot be read at the very moment at which the events begin or end, so it is read before and
/// after both: the truth is between `least` and `most`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bracket {
    /// From after the beginning to before the end.
    pub least: u64,
    /// From before the beginning to after the end.
    pub most: u64,
}

impl Bracket {
    /// The growth between readings just before and after the beginning, and just before and after the end.
    pub fn between(beginning: [u64; 2], end: [u64; 2]) -> Bracket {
        Bracket { least: end[0].saturating_sub(beginning[1]), most: end[1].saturating_sub(beginning[0]) }
    }

    /// How far a count is outside.
    fn distance(self, count: u64) -> u64 {
        self.least.saturating_sub(count).max(count.saturating_sub(self.most))
    }
}

/// What the kernel counts of the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KernelCounts {
    /// Packets that it sent, those that went past it too; a large one counts as its segments.
    pub packets: Bracket,
    /// Packets that it refused or dropped.
    pub drops: Bracket,
    /// Packets that the device gave back, so that they leave twice.
    pub requeues: Bracket,
    /// Packets that waited as the events began, at most.
    pub waiting_before: u64,
    /// Packets that waited as the events ended, at most.
    pub waiting_after: u64,
}

/// The result's faults, in packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueueChecks {
    /// Events that the kernel had no room for.
    pub lost_events: u64,
    /// Packets that left and had not been seen to arrive, beyond those that waited before and those that the device gave back.
    pub departures_without_arrival: u64,
    /// Packets that arrived and were not seen to leave, beyond those that still wait.
    pub arrivals_without_departure: u64,
    /// Packets sent, by the kernel's counters against these events.
    pub packets_difference: u64,
    /// Drops, by the kernel's counters against these events.
    pub drops_difference: u64,
    /// The kernel's counters.
    pub kernel: KernelCounts,
    /// Why the result is invalid, a sentence each; none if it is valid.
    pub invalid: Vec<String>,
}

/// What a queue did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueReport {
    /// Length of the observation.
    pub duration_s: f64,
    /// Packets that left; a large one counts as its segments.
    pub packets: u64,
    /// Of these, the ones that found the queue empty and went past it: their sojourn is 0.
    pub passed: u64,
    /// Bytes of the frames that left.
    pub bytes: u64,
    /// Rate at which they left.
    pub rate_mbps: f64,
    /// Sojourn in ms; `None` if no packet was seen to arrive and leave.
    pub sojourn_ms: Option<Times>,
    /// Packets that were dropped.
    pub drops: u64,
    /// Drops by the kernel's reason.
    pub drops_by_reason: BTreeMap<String, Drops>,
    /// Packets that were marked.
    pub marks: u64,
    /// Departures, marks and drops by the codepoint at arrival.
    pub by_codepoint: BTreeMap<&'static str, ByCodepoint>,
    /// Bytes that waited.
    pub backlog: Backlog,
    /// Whether it may be believed.
    pub checks: QueueChecks,
    /// Length of a period of the series.
    pub period_s: f64,
    /// What happened in each period.
    pub periods: Vec<QueuePeriod>,
}

pub(super) fn report(
    sums: &Sums,
    waiting: u64,
    end: Time,
    kernel: &KernelCounts,
    lost_events: u64,
    reason: &dyn Fn(u16) -> String,
) -> QueueReport {
    let duration_s = elapsed(sums.start, end).as_secs_f64();
    let mut drops_by_reason: BTreeMap<String, Drops> = BTreeMap::new();
    for (number, of) in &sums.drops {
        let drops = drops_by_reason.entry(reason(*number)).or_default();
        drops.at_arrival += of.at_arrival;
        drops.after_waiting += of.after_waiting;
    }
    let drops = sums.drops.values().map(|of| of.at_arrival + of.after_waiting).sum();
    let counts = sums.all_counts();
    let of = |it: Ecn| ByCodepoint {
        packets: counts.sent[it as usize],
        marked: counts.marked[it as usize],
        dropped: counts.dropped[it as usize],
    };
    let by_codepoint = CODEPOINTS.into_iter().map(|it| (it.name(), of(it)));
    let mut sojourn = Histogram::new();
    counts.sojourn.iter().for_each(|of| sojourn.merge(of));
    QueueReport {
        duration_s,
        packets: sums.departures,
        passed: sums.passed,
        bytes: sums.bytes,
        rate_mbps: if duration_s > 0.0 { sums.bytes as f64 * 8.0 / duration_s / 1e6 } else { 0.0 },
        sojourn_ms: Times::of(&sojourn),
        drops,
        drops_by_reason,
        marks: counts.marked.iter().sum(),
        by_codepoint: by_codepoint.filter(|(_, of)| *of != ByCodepoint::default()).collect(),
        backlog: sums.backlog_until(end),
        checks: checks(sums, waiting, drops, kernel, lost_events),
        period_s: sums.periods.length.as_secs_f64(),
        periods: sums.periods.periods.clone(),
    }
}

fn checks(sums: &Sums, waiting: u64, drops: u64, kernel: &KernelCounts, lost_events: u64) -> QueueChecks {
    let explained = kernel.waiting_before + kernel.requeues.most;
    // A packet that the device gave back leaves twice, and the kernel's counters have it once.
    let left_once = sums.departures.saturating_sub(kernel.requeues.least);
    let mut checks = QueueChecks {
        lost_events,
        departures_without_arrival: sums.unmatched_departures.saturating_sub(explained),
        arrivals_without_departure: sums.unmatched_arrivals + waiting.saturating_sub(kernel.waiting_after),
        packets_difference: kernel.packets.distance(left_once).min(kernel.packets.distance(sums.departures)),
        drops_difference: kernel.drops.distance(drops),
        kernel: *kernel,
        invalid: vec![],
    };
    let all = sums.arrivals.max(sums.departures).max(kernel.packets.least) + drops;
    let faults = [
        (checks.lost_events, "events were lost, since the reader was too slow"),
        (checks.departures_without_arrival, "packets left whose arrival was not seen"),
        (checks.arrivals_without_departure, "packets arrived whose departure was not seen"),
        (checks.packets_difference, "packets are the difference from the queue's own counter"),
        (checks.drops_difference, "drops are the difference from the queue's own counter"),
    ];
    for (number, what) in faults {
        if number as f64 > TOLERATED * all as f64 {
            checks.invalid.push(format!("{number} {what}, of {all} packets; at most 0.1 % is tolerated"));
        }
    }
    checks
}
