//! FILE: the utility of a transfer that should end by a time.
//!
//! Source: digest A 9.4. Its value is p log(size / time + 1). It is admitted as LOG; the planner gives the transfer whose time comes
//! first the LOG priority that its rest needs, from 1 to 25, and the others 1 ([`crate::planner`]).

use super::{above_zero, bits, log};
use weir_base::{Bytes, ParameterError, Rate, Span};

/// The highest LOG priority of a transfer (digest A 9.4).
pub const HIGHEST: f64 = 25.0;
/// No transfer is given more than this many times what it needs (digest A 9.4).
const GENEROUS: f64 = 2.0;
/// Nor more than this part of what elastic flows have (digest A 9.4).
const PART: f64 = 0.9;

/// Parameters of FILE: value p log(size / time + 1), admitted as LOG with a priority that follows from what is left.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p of its value, above 0.
    pub priority: f64,
    /// The time from its start within which it should end; `size` beside `admit` says what it has.
    pub within: Span,
    /// The most that the flow may send.
    pub cap: Rate,
}

impl Default for Config {
    fn default() -> Config {
        Config { priority: 1.0, within: Span::from_secs(60), cap: Rate::from_mbit_per_sec(100) }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<ParameterError> {
        let fault =
            || ParameterError::new("within", "the time must be above 0", "write for example \"60 s\"");
        above_zero("priority", self.priority).or_else(|| self.within.is_zero().then(fault))
    }

    /// The LOG utility of this present priority.
    pub fn log(&self, priority: f64) -> log::Config {
        log::Config { priority, cap: self.cap, ..log::Config::default() }
    }

    /// The value of a transfer of this size.
    pub fn value(&self, size: Bytes) -> f64 {
        self.priority * libm::log(bits(size) / self.within.as_secs_f64() + 1.0)
    }

    /// The LOG priority that ends the rest in the time that is left, at this depth: the target is twice what it needs, at most 90 % of
    /// what elastic flows have. `None` if it needs more than they have: it then cannot end in time.
    pub fn needed(&self, rest: Bytes, left: Span, k: f64, depth: Bytes, elastic: Rate) -> Option<f64> {
        let (elastic, needed) = (elastic.bits_per_sec() as f64, bits(rest) / left.as_secs_f64().max(1e-3));
        if needed > elastic {
            return None;
        }
        let target = (GENEROUS * needed).min(PART * elastic).max(needed);
        Some((target * bits(depth) / k).clamp(1.0, HIGHEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_gets_the_priority_that_twice_its_needed_rate_takes() {
        let config = Config::default();
        // 10 MB in 40 s are 2 Mbit/s. At a depth of 125 kB and K 1e12 priority 1 has 1 Mbit/s, so 4 Mbit/s are priority 4.
        let elastic = Rate::from_mbit_per_sec(10);
        let needed =
            |rest| config.needed(Bytes::new(rest), Span::from_secs(40), 1e12, Bytes::new(125_000), elastic);
        assert_eq!(needed(10_000_000), Some(4.0));
        // 40 MB are 8 Mbit/s: 90 % of 10. 60 MB are more than there is. 1 kB is priority 1.
        assert_eq!(needed(40_000_000), Some(9.0));
        assert_eq!(needed(60_000_000), None);
        assert_eq!(needed(1000), Some(1.0));
    }
}
