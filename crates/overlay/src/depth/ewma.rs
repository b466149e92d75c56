//! An exponential moving average, the study's "queue depth oscillation reduction" (digest A 6.9).
//!
//! The study can take the time constant from the strongest period of the depth's spectrum. Here it is a parameter.

use weir_base::Span;

/// Parameters of the average.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time constant.
    pub tau: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config { tau: Span::from_millis(5) }
    }
}

impl Config {
    pub(super) fn next(&self, value: f64, exact: u64, elapsed: Option<Span>) -> f64 {
        let Some(elapsed) = elapsed else { return exact as f64 };
        let kept = libm::exp(-elapsed.as_secs_f64() / self.tau.as_secs_f64());
        kept * value + (1.0 - kept) * exact as f64
    }
}
