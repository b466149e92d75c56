//! Trajectories: the samples of one flow in two runs (the two engines' of one cell, say), held beside each other by the time
//! since the flow's start, with the first sample from which each quantity differs. [`packets`] finds the first packet that
//! differs in captures of both.
//!
//! Live samples have times of their own, and flows start between two samples. Both are therefore read on one grid of times since
//! the flow's start, a sample period apart: between two samples on the line through them.

pub mod packets;
#[cfg(test)]
mod tests;

use crate::info::RunInfo;
use crate::metrics::limited;
use crate::records::Records;
use crate::series::Values;
use crate::types::{Component, FlowEventKind, TransportSample};
use serde::Serialize;
use std::sync::Arc;
use weir_base::{Span, Time};

/// Number of consecutive samples that must differ: a single sample may fall before or after a packet in the other run.
pub const SAMPLES_TO_PART: usize = 3;
/// Largest number of sample periods that are held, 17 minutes at 10 ms; later ones are left out.
const MOST_PERIODS: usize = 100_000;
/// Largest number of controller's states that are held.
const MOST_STATES: usize = 32;

/// The bound on the difference of a quantity: this share of the reference, or this much in the quantity's unit if that is more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Share of the reference's value.
    pub share: f64,
    /// In the quantity's unit.
    pub least: f64,
}

impl Tolerance {
    /// Whether two samples differ by more than this. A value that only one of them has is such a difference.
    fn is_passed(self, reference: Option<f64>, other: Option<f64>) -> bool {
        match (reference, other) {
            (Some(reference), Some(other)) => {
                (other - reference).abs() > self.least.max(self.share * reference.abs())
            }
            (None, None) => false,
            _ => true,
        }
    }
}

/// A quantity of the sending transport.
struct Quantity {
    /// Its name, with the unit.
    name: &'static str,
    /// In the unit, the part of the bound that does not depend on the value.
    least: f64,
    /// Whether a missing value means something: without a threshold, the flow has not left slow start.
    may_lack: bool,
    of: fn(&TransportSample) -> Option<f64>,
}

/// The share of the reference by which a quantity may differ.
const SHARE: f64 = 0.1;

/// The quantities. The bounds in segments are one burst of two segments, and two bursts for data in flight, which changes with
/// every packet; those in time and rate are below what changes a flow's behaviour.
const QUANTITIES: [Quantity; 6] = [
    Quantity { name: "cwnd_segments", least: 2.0, may_lack: false, of: |s| Some(s.cwnd) },
    Quantity { name: "ssthresh_segments", least: 2.0, may_lack: true, of: |s| s.ssthresh },
    Quantity { name: "in_flight_segments", least: 4.0, may_lack: false, of: |s| Some(s.in_flight) },
    Quantity {
        name: "srtt_ms",
        least: 1.0,
        may_lack: false,
        of: |s| (!s.srtt.is_zero()).then(|| s.srtt.as_millis_f64()),
    },
    Quantity {
        name: "pacing_rate_mbps",
        least: 0.1,
        may_lack: false,
        of: |s| s.pacing_rate.map(|rate| rate.mbit_per_sec()),
    },
    Quantity {
        name: "delivery_rate_mbps",
        least: 0.1,
        may_lack: false,
        of: |s| s.delivery_rate.map(|rate| rate.mbit_per_sec()),
    },
];

/// The samples of one flow in one run.
#[derive(Debug, Clone)]
pub struct Trajectory {
    /// When the application asked for the connection.
    start: Time,
    period: Span,
    /// Samples of each quantity.
    quantities: Vec<Samples>,
    /// Samples of the controller's states, by name.
    states: Vec<(Arc<str>, Samples)>,
}

/// Samples with their times since the flow's start, in nanoseconds, ascending.
type Samples = Vec<(u64, Option<f64>)>;

impl Trajectory {
    /// The trajectory of the flow of this number. `None` if the run has no samples of it.
    pub fn of(info: &RunInfo, records: &Records, flow: u32) -> Option<Trajectory> {
        let started = |event: &&crate::FlowEvent| event.flow == flow && event.kind == FlowEventKind::Started;
        let planned = Time::ZERO + info.flows.get(flow as usize)?.start;
        let start = records.events.iter().find(started).map_or(planned, |event| event.at);
        let after = |at: Time| at.as_nanos().checked_sub(start.as_nanos());
        let mut quantities = vec![vec![]; QUANTITIES.len()];
        for sample in records.transport.iter().filter(|sample| sample.flow == flow) {
            let Some(after) = after(sample.at) else { continue };
            for (quantity, samples) in QUANTITIES.iter().zip(&mut quantities) {
                put(samples, after, (quantity.of)(sample));
            }
        }
        let mut states: Vec<(Arc<str>, Samples)> = vec![];
        let own = |sample: &&crate::StateSample<Arc<str>>| {
            sample.of == Component::Controller(flow) && !limited::STATES.contains(&&*sample.name)
        };
        for sample in records.states.iter().filter(own) {
            let Some(after) = after(sample.at) else { continue };
            let state = match states.iter().position(|(name, _)| *name == sample.name) {
                Some(state) => state,
                None if states.len() < MOST_STATES => {
                    states.push((Arc::clone(&sample.name), vec![]));
                    states.len() - 1
                }
                None => continue,
            };
            put(&mut states[state].1, after, Some(sample.value));
        }
        let is_sampled = !info.sample.is_zero() && !quantities[0].is_empty();
        is_sampled.then_some(Trajectory { start, period: info.sample, quantities, states })
    }

    /// When the flow started, in the run's time.
    pub fn start(&self) -> Time {
        self.start
    }
}

/// Appends a sample, if it is later than the one before.
fn put(samples: &mut Samples, after: u64, value: Option<f64>) {
    if samples.last().is_none_or(|(last, _)| *last < after) {
        samples.push((after, value.filter(|value| value.is_finite())));
    }
}

/// The endings of states' names that have a unit: such a state is read on the line between two samples. Others are modes and counts,
/// which jump.
const UNITS: [&str; 4] = ["_segments", "_ms", "_s", "_mbps"];

/// The grid of times since the start on which both are read: from zero, a period apart.
struct Grid {
    /// In nanoseconds.
    period: u64,
    count: usize,
}

impl Grid {
    fn new(reference: &Trajectory, other: &Trajectory) -> Grid {
        let period = reference.period.max(other.period).as_nanos();
        let last = |of: &Trajectory| of.quantities[0].last().map_or(0, |(after, _)| *after);
        let periods = last(reference).max(last(other)) / period;
        Grid { period, count: periods.min(MOST_PERIODS as u64) as usize + 1 }
    }

    /// The values at the points of the grid: on the line through the samples around a point, or, with `in_steps`, that of the sample
    /// before it. A point between two samples that are more than three periods apart has none.
    fn read(&self, samples: &Samples, in_steps: bool) -> Values {
        let mut next = 0;
        let value = |point: usize| {
            let at = point as u64 * self.period;
            while samples.get(next).is_some_and(|(after, _)| *after < at) {
                next += 1;
            }
            match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
                (_, Some(&(after, value))) if after == at => value,
                (Some((before, low)), Some(&(after, high))) if after - before <= 3 * self.period => {
                    let share = (at - before) as f64 / (after - before) as f64;
                    if in_steps { low } else { low.zip(high).map(|(low, high)| low + share * (high - low)) }
                }
                _ => None,
            }
        };
        (0..self.count).map(value).collect()
    }
}

/// Two trajectories beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Time between two points.
    pub period: Span,
    /// Time of the first point since the flow's start, in seconds.
    pub first_s: f64,
    /// What both runs recorded: quantities of the transport, then states of the controller.
    pub lines: Vec<HeldLine>,
}

/// One quantity in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldLine {
    /// Its name, with the unit.
    pub name: Arc<str>,
    /// Whether it is a state of the controller.
    pub is_state: bool,
    /// The bound on its difference.
    pub tolerance: Tolerance,
    /// The values of the reference and of the other, of equal length.
    pub values: [Values; 2],
    /// Where the two part.
    pub parts: Option<SampleParting>,
}

/// The first of [`SAMPLES_TO_PART`] consecutive samples that differ by more than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SampleParting {
    /// Time since the flow's start, in seconds.
    pub after_s: f64,
    /// The values of the reference and of the other.
    pub values: [Option<f64>; 2],
}

impl HeldLine {
    /// Reference minus other, where both have a value.
    pub fn difference(&self) -> Values {
        let [reference, other] = &self.values;
        reference.iter().zip(other).map(|(a, b)| Some((*a)? - (*b)?)).collect()
    }
}

impl Held {
    /// Holds two trajectories beside each other.
    pub fn new(reference: &Trajectory, other: &Trajectory) -> Held {
        let grid = Grid::new(reference, other);
        let sides = [reference, other];
        let read = |samples: [&Samples; 2], in_steps| samples.map(|samples| grid.read(samples, in_steps));
        let sampled = read(sides.map(|side| &side.quantities[0]), true);
        let mut lines = vec![];
        for (place, quantity) in QUANTITIES.iter().enumerate() {
            let values = read(sides.map(|side| &side.quantities[place]), quantity.may_lack);
            let has = |values: &Values| values.iter().any(Option::is_some);
            let [a, b] = [&values[0], &values[1]].map(has);
            if (a && b) || (quantity.may_lack && (a || b)) {
                let compared = quantity.may_lack.then_some(&sampled);
                lines.push(grid.line(quantity.name.into(), quantity.least, values, compared));
            }
        }
        // Some controllers have a quantity of the transport among their states.
        let is_new = |name: &str| QUANTITIES.iter().all(|quantity| quantity.name != name);
        for (name, samples) in reference.states.iter().filter(|(name, _)| is_new(name)) {
            let Some((_, others)) = other.states.iter().find(|(known, _)| known == name) else { continue };
            let in_steps = !UNITS.iter().any(|unit| name.ends_with(unit));
            let values = read([samples, others], in_steps);
            // A state that stays at zero in both says nothing.
            if values.iter().flatten().flatten().any(|value| *value != 0.0) {
                lines.push(HeldLine { is_state: true, ..grid.line(Arc::clone(name), 0.0, values, None) });
            }
        }
        Held { period: Span::from_nanos(grid.period), first_s: 0.0, lines }
    }

    /// The quantity that parts first. Of those that part at the same sample, the first one counts.
    pub fn first(&self) -> Option<(&HeldLine, &SampleParting)> {
        let parted = self.lines.iter().filter_map(|line| Some((line, line.parts.as_ref()?)));
        parted.min_by(|(_, a), (_, b)| a.after_s.total_cmp(&b.after_s))
    }

    /// The same with at most this many points, each the mean of several.
    pub fn thinned(&self, most: usize) -> Held {
        let longest = self.lines.iter().map(|line| line.values[0].len()).max().unwrap_or(0);
        let step = longest.div_ceil(most.max(1)).max(1);
        let mean = |chunk: &[Option<f64>]| {
            let (sum, count) = chunk.iter().flatten().fold((0.0, 0.0), |(s, n), value| (s + value, n + 1.0));
            (count > 0.0).then(|| sum / count)
        };
        let thin = |values: &Values| values.chunks(step).map(mean).collect();
        let lines = self
            .lines
            .iter()
            .map(|line| HeldLine { values: [thin(&line.values[0]), thin(&line.values[1])], ..line.clone() });
        let middle = self.period.as_secs_f64() * (step - 1) as f64 / 2.0;
        let period = self.period * step as u64;
        Held { period, first_s: self.first_s + middle, lines: lines.collect() }
    }
}

impl Grid {
    /// A line of these values. Points at which a side of `compared` has no value are not compared; without it, those at which one of the
    /// values is missing.
    fn line(
        &self,
        name: Arc<str>,
        least: f64,
        values: [Values; 2],
        compared: Option<&[Values; 2]>,
    ) -> HeldLine {
        let tolerance = Tolerance { share: SHARE, least };
        let place = parting(tolerance, &values, compared.unwrap_or(&values));
        let parts = place.map(|place| SampleParting {
            after_s: (place as u64 * self.period) as f64 / 1e9,
            values: [values[0][place], values[1][place]],
        });
        HeldLine { name, is_state: false, tolerance, values, parts }
    }
}

/// The place of the first of [`SAMPLES_TO_PART`] consecutive samples that differ. Samples at places where one of `compared` has no
/// value are skipped.
fn parting(tolerance: Tolerance, [reference, other]: &[Values; 2], compared: &[Values; 2]) -> Option<usize> {
    let mut first = None;
    let mut count = 0;
    let are_there =
        |place: usize| compared.iter().all(|values| values.get(place).is_some_and(Option::is_some));
    for (place, (a, b)) in reference.iter().zip(other).enumerate().filter(|(place, _)| are_there(*place)) {
        if !tolerance.is_passed(*a, *b) {
            (first, count) = (None, 0);
            continue;
        }
        first = first.or(Some(place));
        count += 1;
        if count == SAMPLES_TO_PART {
            return first;
        }
    }
    None
}
