//! Depth with momentum: each period keeps a part of the last value (digest A 6.9, HvyBall).
//!
//! The study's value is w = 0.65 w + Q, which is Q / 0.35 when it rests, so that K had to be scaled with it. Here it is 0.35 times
//! that, so a depth stays in bytes and K keeps its meaning.

use super::PERIOD;
use weir_base::Span;

/// Parameters of the momentum.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the last value that a period of 5 ms keeps, from 0 to below 1.
    pub momentum: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { momentum: 0.65 }
    }
}

impl Config {
    pub(super) fn next(&self, value: f64, exact: u64, elapsed: Option<Span>) -> f64 {
        let Some(elapsed) = elapsed else { return exact as f64 };
        let periods = elapsed.as_secs_f64() / PERIOD.as_secs_f64();
        let kept = libm::pow(self.momentum, periods);
        kept * value + (1.0 - kept) * exact as f64
    }
}
