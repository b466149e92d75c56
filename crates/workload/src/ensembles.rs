//! Ensembles: frames of several flows that were captured at one instant and belong together, for example from cameras around a scene
//! (the coordination dissertation, sections 6.1 and 6.8). At a trigger every flow writes its frame. A flow is ready when its write
//! returns, that is when the frame is in its send buffer. When all flows are ready, the next ensemble is captured. No frame is
//! dropped, so the network's rate determines the number of ensembles per second.
//!
//! In the dissertation the trigger comes from a host of its own, a fraction of a millisecond away; here triggers take no time.

mod log;

pub use log::{EnsembleLog, EnsembleRecord};

use crate::checks;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::ParameterError;

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
}

impl Default for Config {
    fn default() -> Config {
        Config { size: Bytes::new(25 << 10), pattern: String::new(), dispersion: 0.0, swap: 0 }
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
        Box::new(Ensembles { sizes: self.sizes(), flows: 1, ready: 0, ensemble: 0, released: Vec::new() })
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        let mut faults: Vec<ParameterError> =
            checks::size("size", "a frame", self.size).into_iter().collect();
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
    fn is_shared(&self) -> bool {
        true
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
}

impl Workload for Ensembles {
    fn next(&mut self, event: Event, now: Time) -> Action {
        self.next_for(0, event, now)
    }

    fn add_flow(&mut self) {
        self.flows += 1;
    }

    fn next_for(&mut self, flow: usize, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            // All flows were ready, and `ensemble` has already been increased.
            Event::Released => Action::Write(Bytes::new(self.sizes.of(flow, self.ensemble - 1))),
            _ => {
                self.ready += 1;
                if self.ready == self.flows {
                    self.ready = 0;
                    self.ensemble += 1;
                    self.released = (0..self.flows).rev().collect();
                }
                Action::Await
            }
        }
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
