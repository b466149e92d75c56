//! Ensembles: frames of several flows that were captured at one instant and belong together, for example from cameras around a scene
//! (the coordination dissertation, sections 6.1 and 6.8). At a trigger every flow writes its frame. A flow is ready when its write
//! returns, that is when the frame is in its send buffer. When all flows are ready, the next ensemble is captured. No frame is
//! dropped, so the network's rate determines the number of ensembles per second. With `fps` an ensemble is due at each of these times, and
//! is captured then or, if a flow is not ready yet, as soon as all are. A source that adapts skips such an ensemble, of all flows.
//!
//! In the dissertation the trigger comes from a host of its own, a fraction of a millisecond away; here triggers take no time.

mod log;

pub use log::{EnsembleLog, EnsembleRecord};

use crate::adapt::{Adapt, Governor};
use crate::checks;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Span, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Rate};

/// Largest number of ensembles per second.
const MOST: f64 = 10_000.0;

/// Parameters of ensembles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Mean size of a frame.
    pub size: Bytes,
    /// The size of each flow's frames, `M` for large and `m` for small, repeated over the flows: "MMmmmm". By default all frames have
    /// the same size.
    pub pattern: String,
    /// How much smaller small frames are, as a share of the mean; 0 up to but not including 1. Large frames are larger so that the
    /// mean is kept.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dispersion: f64,
    /// Number of ensembles after which the pattern is shifted by as many flows as it has large frames; 0 means never.
    pub swap: u32,
    /// Ensembles per second; by default the next one is captured when all flows are ready.
    #[schemars(with = "Option<f64>")]
    pub fps: Option<f64>,
    /// How the source adapts to what its sockets tell: `drop` skips an ensemble whole if, when it is due, what waits in a flow's socket takes
    /// longer to leave than an ensemble's interval, or a flow is still writing. By default none is skipped. Needs `fps`.
    #[schemars(with = "Option<Adapt>")]
    pub adapt: Option<Adapt>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            size: Bytes::new(25 << 10),
            pattern: String::new(),
            dispersion: 0.0,
            swap: 0,
            fps: None,
            adapt: None,
        }
    }
}

/// The sizes of frames in bytes.
#[derive(Debug, Clone, PartialEq)]
struct FrameSizes {
    /// Whether the frame is large, for each place of the pattern.
    pattern: Vec<bool>,
    small: u64,
    large: u64,
    swap: u32,
}

impl Config {
    fn sizes(&self) -> FrameSizes {
        let pattern: Vec<bool> = self.pattern.chars().map(|c| c == 'M').collect();
        let mean = self.size.get() as f64;
        let large = pattern.iter().filter(|large| **large).count() as f64;
        let all = pattern.len() as f64;
        let small = mean * (1.0 - self.dispersion);
        let rest = if large > 0.0 { (mean * all - small * (all - large)) / large } else { mean };
        let whole = |bytes: f64| ((bytes + 0.5) as u64).max(1);
        FrameSizes { pattern, small: whole(small), large: whole(rest), swap: self.swap }
    }

    /// Seconds from one ensemble to the next.
    fn interval(&self) -> Option<f64> {
        self.fps.map(|fps| 1.0 / fps)
    }

    /// What the source knows of a flow's socket; `None` if it does not adapt.
    fn governor(&self) -> Option<Governor> {
        self.adapt?;
        Some(Governor::new(Span::from_secs_f64(self.interval()?), self.size.get()))
    }
}

impl FrameSizes {
    /// The size of a flow's frame in the ensemble of this number.
    fn of(&self, flow: usize, ensemble: u64) -> u64 {
        let places = self.pattern.len();
        if places == 0 {
            return self.large;
        }
        let moved = match self.swap {
            0 => 0,
            swap => ensemble / u64::from(swap) * self.pattern.iter().filter(|large| **large).count() as u64,
        };
        let back = (moved % places as u64) as usize;
        if self.pattern[(flow + places - back) % places] { self.large } else { self.small }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::OneWay
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        let mut ensembles = Ensembles {
            sizes: self.sizes(),
            interval: self.interval(),
            governors: Vec::new(),
            first: None,
            due: 0,
            flows: 0,
            ready: 0,
            ensemble: 0,
            released: Vec::new(),
            governor: self.governor(),
        };
        ensembles.add_flow();
        Box::new(ensembles)
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        let mut faults: Vec<ParameterError> =
            checks::size("size", "a frame", self.size).into_iter().collect();
        faults.extend(self.fps.and_then(|fps| checks::per_second("fps", "ensembles", fps, MOST)));
        if self.adapt == Some(Adapt::Shrink) {
            let message = "the frames of an ensemble keep their sizes";
            faults.push(ParameterError::new("adapt", message, "write adapt = \"drop\""));
        } else if self.adapt.is_some() && self.fps.is_none() {
            let message =
                "without `fps` an ensemble is captured when all flows are ready, so none is skipped";
            faults.push(ParameterError::new("adapt", message, "write `fps`, or remove `adapt`"));
        }
        if !self.pattern.chars().all(|c| c == 'M' || c == 'm') {
            let message = format!("\"{}\" is not a pattern of large and small frames", self.pattern);
            faults.push(ParameterError::new(
                "pattern",
                message,
                "write M for a large frame and m for a small one: \"MMmmmm\"",
            ));
        } else if self.pattern.chars().any(|c| c == 'm') && !self.pattern.contains('M') {
            let message = "all frames of the pattern are small, so their mean is below the size";
            faults.push(ParameterError::new("pattern", message, "write at least one M: \"Mmmmmm\""));
        }
        if !(0.0..1.0).contains(&self.dispersion) {
            let message = format!("a frame cannot be {} of its size smaller", self.dispersion);
            faults.push(ParameterError::new(
                "dispersion",
                message,
                "write a number from 0 up to, but not including, 1",
            ));
        }
        faults
    }
    fn ensemble_log(&self) -> Option<EnsembleLog> {
        Some(EnsembleLog::new(self.sizes()))
    }
    fn adapt(&self) -> Option<Adapt> {
        self.adapt
    }
    fn is_shared(&self) -> bool {
        true
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        Some(Bytes::new((self.fps? * time.as_secs_f64() * self.size.get() as f64) as u64))
    }
}

#[derive(Debug)]
struct Ensembles {
    sizes: FrameSizes,
    flows: usize,
    /// Number of flows that have opened or written their frame, and wait for the others.
    ready: usize,
    /// Number of the ensemble that is written next.
    ensemble: u64,
    /// Flows that have not been released yet.
    released: Vec<usize>,
    /// The time from one ensemble to the next; `None` if the next one is captured when all flows are ready.
    interval: Option<f64>,
    /// When all flows were open, and the number of the ensemble that is due next, from then.
    first: Option<Time>,
    due: u64,
    /// What is known of each flow's socket, and of a new one's; `None` if the source does not adapt.
    governors: Vec<Governor>,
    governor: Option<Governor>,
}

impl Ensembles {
    /// When the ensemble `due` is due; computed from the first, so that rounding does not accumulate.
    fn due_at(&self, interval: f64) -> Time {
        self.first.unwrap_or(Time::ZERO) + Span::from_secs_f64(interval * self.due as f64)
    }

    /// Captures an ensemble: releases all flows but `flow`, or all.
    fn capture(&mut self, flow: Option<usize>) {
        (self.ready, self.ensemble) = (0, self.ensemble + 1);
        self.released = (0..self.flows).rev().filter(|other| Some(*other) != flow).collect();
    }

    /// Whether an ensemble that is due may be captured, as far as the sockets tell.
    fn is_clear(&self) -> bool {
        self.governors.iter().all(Governor::is_clear)
    }

    fn write(&mut self, flow: usize) -> Action {
        // All flows were ready, and `ensemble` has already been increased.
        let bytes = Bytes::new(self.sizes.of(flow, self.ensemble - 1));
        self.governors.get_mut(flow).into_iter().for_each(|governor| governor.sent(bytes));
        Action::Write(bytes)
    }
}

impl Workload for Ensembles {
    fn next(&mut self, event: Event, now: Time) -> Action {
        self.next_for(0, event, now)
    }

    fn add_flow(&mut self) {
        self.flows += 1;
        self.governors.extend(self.governor);
    }

    fn next_for(&mut self, flow: usize, event: Event, now: Time) -> Action {
        match (event, self.interval) {
            (Event::Start, _) => Action::Open,
            (Event::Released, _) => self.write(flow),
            (Event::Woken, Some(interval)) => {
                self.due += 1;
                if !self.is_clear() {
                    return Action::WaitUntil(self.due_at(interval));
                }
                self.capture(Some(flow));
                self.write(flow)
            }
            (_, interval) => {
                self.ready += 1;
                if self.ready < self.flows {
                    return Action::Await;
                }
                let Some(interval) = interval else {
                    self.capture(None);
                    return Action::Await;
                };
                self.first.get_or_insert(now);
                // The flow that was ready last waits for the others too.
                while self.governor.is_some() && self.due_at(interval) < now {
                    self.due += 1;
                }
                Action::WaitUntil(self.due_at(interval))
            }
        }
    }

    fn adapts(&self) -> bool {
        self.governor.is_some()
    }

    fn on_backlog(&mut self, flow: usize, unsent: Bytes, rate: Option<Rate>, now: Time) {
        self.governors.get_mut(flow).into_iter().for_each(|governor| governor.update(unsent, rate, now));
    }

    fn released(&mut self) -> Option<usize> {
        self.released.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_pattern_keeps_the_ensembles_size() {
        // Section 6.8: with a mean of 25 KiB and f = 0.3 small frames have 17,920 bytes, and large ones those of its table.
        for (pattern, large) in [
            ("Mmmmmm", 64_000),
            ("MMmmmm", 40_960),
            ("MMMmmm", 33_280),
            ("MMMMmm", 29_440),
            ("MMMMMm", 27_136),
        ] {
            let sizes = config(&format!(r#"{{ "pattern": "{pattern}", "dispersion": 0.3 }}"#)).sizes();
            let ensemble: Vec<u64> = (0..6).map(|flow| sizes.of(flow, 0)).collect();
            assert_eq!((ensemble[0], ensemble[5]), (large, 17_920));
            assert_eq!(ensemble.iter().sum::<u64>(), 153_600);
            assert_eq!(sizes.of(6, 0), large, "more flows than places");
        }
        assert_eq!(config("{}").sizes().of(3, 7), 25_600);
    }

    #[test]
    fn flows_swap_sizes_after_the_configured_number_of_ensembles() {
        let sizes = config(r#"{ "pattern": "MMmmmm", "dispersion": 0.5, "swap": 100 }"#).sizes();
        let large = |ensemble| (0..6).filter(|flow| sizes.of(*flow, ensemble) == 51_200).collect::<Vec<_>>();
        assert_eq!(large(99), [0, 1]);
        assert_eq!(large(100), [2, 3]);
        assert_eq!(large(299), [4, 5]);
        assert_eq!(large(300), [0, 1]);
    }

    #[test]
    fn the_next_ensemble_is_captured_when_the_last_frame_is_written() {
        let mut ensembles =
            config(r#"{ "size": "1000 B" }"#).build(None, Bytes::ZERO, Random::stream(1, "test"));
        ensembles.add_flow();
        let mut next = |flow, event| ensembles.next_for(flow, event, Time::ZERO);
        assert_eq!((next(0, Event::Start), next(1, Event::Start)), (Action::Open, Action::Open));
        assert_eq!((next(1, Event::Opened), next(0, Event::Opened)), (Action::Await, Action::Await));
        let mut round = || {
            assert_eq!(
                (ensembles.released(), ensembles.released(), ensembles.released()),
                (Some(0), Some(1), None)
            );
            for flow in [0, 1] {
                let write = Action::Write(Bytes::new(1000));
                assert_eq!(ensembles.next_for(flow, Event::Released, Time::ZERO), write);
            }
            assert_eq!(ensembles.next_for(1, Event::Written, Time::ZERO), Action::Await);
            assert_eq!(ensembles.released(), None);
            assert_eq!(ensembles.next_for(0, Event::Written, Time::ZERO), Action::Await);
        };
        round();
        round();
    }

    #[test]
    fn invalid_patterns_sizes_and_dispersions_are_refused() {
        let faults = |text: &str| {
            config(text).faults(Bytes::new(1500)).iter().map(|fault| fault.key).collect::<Vec<_>>()
        };
        assert_eq!(faults("{}"), [""; 0]);
        assert_eq!(faults(r#"{ "pattern": "MMx" }"#), ["pattern"]);
        assert_eq!(faults(r#"{ "pattern": "mmm" }"#), ["pattern"]);
        assert_eq!(faults(r#"{ "dispersion": 1.0, "size": "0 B" }"#), ["size", "dispersion"]);
    }
}
