//! Oracles: what a run shows only if the engine, the controller or the machine is at fault. They need no reference. Each has a premise
//! (`info::Premises`), since what a plain path excludes is usual on others. `crates/sim/tests/integration/random` holds a thousand
//! labs against them, and reports warn of a run that trips one.

use crate::info::{RunInfo, Sharing};
use crate::metrics::View;
use crate::records::Records;
use crate::states::States;
use crate::types::{Component, StateSample};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_base::{Span, Time};

/// A flow alone uses at least this much of its link in the second half of a run, in percent.
pub const LEAST_USED_PERCENT: f64 = 80.0;
/// No estimate of a bandwidth exceeds the fastest rate of the path by more than this factor for [`ROUND_TRIPS_ABOVE`].
pub const MOST_ESTIMATE: f64 = 1.25;
/// Base round trips. Shorter excesses come from bursts.
pub const ROUND_TRIPS_ABOVE: f64 = 10.0;
/// Samples without a break that an excess has at least: with a long sample period, two of them may be two bursts.
const SAMPLES_ABOVE: u32 = 3;
/// A BBR flow leaves STARTUP within so many of its own round trips. The window needs about ten to grow to the path's product, and the
/// controller three without growth (Linux `bbr_full_bw_cnt`).
pub const STARTUP_ROUND_TRIPS: f64 = 30.0;
/// Retransmissions are at most this multiple of the losses, [`TIMEOUT_SEGMENTS`] for each timeout, and [`SPARE_PERCENT`] of what is
/// sent. The test of plain labs with one flow has a closer bound (`crates/sim/tests/integration/random/oracle.rs`): it has no competing flows,
/// no live machine and no long path.
const MOST_OF_LOST: f64 = 1.5;
const TIMEOUT_SEGMENTS: f64 = 2.0;
const SPARE_PERCENT: f64 = 1.0;
/// Retransmissions up to this many are never too many.
const SPARE_SEGMENTS: f64 = 50.0;

/// An oracle that a run trips, with what was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "oracle", rename_all = "kebab-case")]
pub enum Trip {
    /// A controller's estimate of the bandwidth was above [`MOST_ESTIMATE`] times the path's rate for [`ROUND_TRIPS_ABOVE`].
    Estimate {
        /// Its group.
        group: Arc<str>,
        /// The largest estimate over the path's rate.
        times: f64,
        /// How long it was too high, in seconds.
        for_s: f64,
    },
    /// A flow alone used less than [`LEAST_USED_PERCENT`] of its link in the second half of the run.
    Unused {
        /// Its group.
        group: Arc<str>,
        /// The link.
        link: String,
        /// How much of it was used, in percent.
        used_percent: f64,
    },
    /// More segments were retransmitted than losses and timeouts explain.
    Retransmissions {
        /// Retransmitted segments of all flows.
        retransmitted: u64,
        /// Packets that queues dropped and links lost, acknowledgements and datagrams included.
        lost: u64,
    },
    /// A BBR flow that always has data to send was in STARTUP after [`STARTUP_ROUND_TRIPS`].
    Startup {
        /// Its group.
        group: Arc<str>,
        /// Its round trips in STARTUP.
        round_trips: f64,
    },
}

/// The oracles that a run trips. The warm-up is included.
pub(crate) fn trips(view: &View<'_>, records: &Records) -> Vec<Trip> {
    let info = view.info;
    let mut trips = estimates(info, &view.states, records);
    trips.extend(unused(info, records));
    trips.extend(retransmissions(info, records));
    trips
}

/// A time in which an estimate was too high in each sample.
#[derive(Debug, Clone, Copy)]
struct Excess {
    from: Time,
    to: Time,
    samples: u32,
    largest: f64,
}

impl Excess {
    fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// States of a controller that oracles use.
#[derive(Debug, Clone, Copy)]
enum Watched {
    Bandwidth,
    FullPipe,
    Rounds,
}

impl Watched {
    /// By its name in the records.
    fn named(name: &str) -> Option<Watched> {
        match name {
            "bandwidth_mbps" => Some(Watched::Bandwidth),
            "full_pipe" => Some(Watched::FullPipe),
            "rounds" => Some(Watched::Rounds),
            _ => None,
        }
    }
}

/// What was seen of a flow's controller.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The excess that lasts, and the longest so far.
    present: Option<Excess>,
    longest: Option<Excess>,
    /// Whether it is known to have left STARTUP, or not yet.
    full: Option<bool>,
    /// Its round trips when it was last seen in STARTUP.
    startup: f64,
}

impl Seen {
    fn add(&mut self, state: Watched, sample: &StateSample<Arc<str>>, most: Option<f64>) {
        match state {
            Watched::Bandwidth => self.add_estimate(sample.at, sample.value, most.unwrap_or(f64::INFINITY)),
            Watched::FullPipe => self.full = Some(sample.value > 0.0),
            Watched::Rounds if self.full == Some(false) => self.startup = sample.value,
            Watched::Rounds => {}
        }
    }

    fn add_estimate(&mut self, at: Time, value: f64, most: f64) {
        self.present = (value > most).then(|| {
            let begun = self.present.unwrap_or(Excess { from: at, to: at, samples: 0, largest: 0.0 });
            Excess { to: at, samples: begun.samples + 1, largest: begun.largest.max(value), ..begun }
        });
        let is_longer = |now: &Excess| self.longest.is_none_or(|before| now.length() >= before.length());
        self.longest = self.present.filter(is_longer).or(self.longest);
    }
}

/// Whether a flow's application never limits it. A burst after a pause may leave and be acknowledged faster than the link sends.
fn has_always_data(info: &RunInfo, flow: usize) -> bool {
    let group = info.flows.get(flow).and_then(|flow| info.groups.get(flow.group as usize));
    group.is_some_and(|group| group.sharing == Some(Sharing::Single))
}

/// Estimates that are too high, and flows that stay in STARTUP: the worst flow of each group.
fn estimates(info: &RunInfo, states: &States, records: &Records) -> Vec<Trip> {
    let watched: Vec<Option<(usize, Watched)>> = states
        .all
        .iter()
        .map(|(of, name)| match of {
            Component::Controller(flow) => Some((*flow as usize, Watched::named(name)?)),
            _ => None,
        })
        .collect();
    if watched.iter().all(Option::is_none) {
        return vec![];
    }
    let rate = |flow: usize| {
        let rate = info.groups.get(info.flows.get(flow)?.group as usize)?.route.rate?;
        (info.premises.spaced && has_always_data(info, flow)).then(|| rate.mbit_per_sec())
    };
    let rates: Vec<Option<f64>> = (0..info.flows.len()).map(rate).collect();
    let mut seen = vec![Seen::default(); info.flows.len()];
    for (sample, state) in records.states.iter().zip(&states.of) {
        let Some((flow, state)) = watched[*state as usize] else { continue };
        if let Some(seen) = seen.get_mut(flow) {
            seen.add(state, sample, rates[flow].map(|rate| MOST_ESTIMATE * rate));
        }
    }
    (0..info.groups.len()).flat_map(|group| of_group(info, group, &seen, &rates)).collect()
}

/// What a group's controllers trip.
fn of_group(info: &RunInfo, group: usize, seen: &[Seen], rates: &[Option<f64>]) -> Vec<Trip> {
    let about = &info.groups[group];
    let members = || (0..info.flows.len()).filter(|flow| info.flows[*flow].group as usize == group);
    let long = Span::from_secs_f64(ROUND_TRIPS_ABOVE * about.route.rtt().as_secs_f64());
    let excesses = members().filter_map(|flow| {
        let excess = seen[flow].longest?;
        let is_long = excess.samples >= SAMPLES_ABOVE && excess.length() >= long;
        is_long.then_some((excess.largest / rates[flow]?, excess.length()))
    });
    let estimate = excesses.max_by_key(|(_, length)| *length).map(|(times, length)| Trip::Estimate {
        group: Arc::clone(&about.name),
        times,
        for_s: length.as_secs_f64(),
    });
    let round_trips = members().map(|flow| seen[flow].startup).fold(0.0, f64::max);
    let is_in_startup = about.sharing == Some(Sharing::Single) && round_trips > STARTUP_ROUND_TRIPS;
    let startup = is_in_startup.then(|| Trip::Startup { group: Arc::clone(&about.name), round_trips });
    estimate.into_iter().chain(startup).collect()
}

/// A flow that must use its link, and does not.
fn unused(info: &RunInfo, records: &Records) -> Option<Trip> {
    let link = info.bottleneck.filter(|_| info.premises.fills)?;
    let half = Time::ZERO + Span::from_nanos(info.duration.as_nanos() / 2);
    let samples = records.links.iter().filter(|sample| sample.link == link && sample.at > half);
    let (sent, capacity) = samples.fold((0u128, 0u128), |(sent, capacity), sample| {
        (sent + sum(&sample.sent_bytes), capacity + u128::from(sample.capacity.get()))
    });
    let used_percent = 100.0 * sent as f64 / capacity as f64;
    (capacity > 0 && used_percent < LEAST_USED_PERCENT).then(|| Trip::Unused {
        group: info.groups.first().map(|group| Arc::clone(&group.name)).unwrap_or_default(),
        link: info.links.get(link as usize).map(|link| link.name.clone()).unwrap_or_default(),
        used_percent,
    })
}

/// Retransmissions beyond what losses and timeouts explain.
fn retransmissions(info: &RunInfo, records: &Records) -> Option<Trip> {
    if !info.premises.counted {
        return None;
    }
    let lost: u128 = records.links.iter().map(|link| u128::from(link.lost) + sum(&link.dropped)).sum();
    let flows = || records.flows.iter();
    let retransmitted: u128 = flows().map(|flow| u128::from(flow.retransmitted)).sum();
    let sent: u128 = flows().map(|flow| u128::from(flow.sent_packets)).sum();
    let mut timeouts = vec![0; info.flows.len()];
    for sample in &records.transport {
        if let (Some(timeouts), Some(count)) = (timeouts.get_mut(sample.flow as usize), sample.timeouts) {
            *timeouts = count;
        }
    }
    let timeouts = TIMEOUT_SEGMENTS * sum(&timeouts) as f64;
    let spare = SPARE_SEGMENTS.max(SPARE_PERCENT / 100.0 * sent as f64);
    let most = MOST_OF_LOST * lost as f64 + timeouts + spare;
    let counted = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
    (retransmitted as f64 > most)
        .then(|| Trip::Retransmissions { retransmitted: counted(retransmitted), lost: counted(lost) })
}

/// A sum of counts. Those of records from somebody else may be as large as they like.
fn sum(counts: &[u64]) -> u128 {
    counts.iter().map(|count| u128::from(*count)).sum()
}

#[cfg(test)]
mod tests;
