//! LOG: the utility of an elastic flow.
//!
//! Source: digest A 7.2. U = p log(a r + 1). Equal marginal utility K U'(r) = Q gives the rate below, where Q is the depth in bits.

use super::above_zero;
use weir_base::{Bytes, ParameterError, Rate};

/// Parameters of LOG: r = K p / Q - 1 / a, at most the cap.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p, above 0: flows share a bottleneck in proportion to it.
    pub priority: f64,
    /// The most that the flow may send.
    pub cap: Rate,
    /// Shape a in seconds per bit, above 0; its inverse is subtracted from the rate.
    pub shape: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { priority: 1.0, cap: Rate::from_mbit_per_sec(10), shape: 20.0 }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<ParameterError> {
        above_zero("priority", self.priority).or_else(|| above_zero("shape", self.shape))
    }

    /// The rate at this depth, with K in bits squared per second.
    pub fn rate(&self, k: f64, depth: Bytes) -> Rate {
        if depth == Bytes::ZERO {
            return self.cap;
        }
        let rate = k * self.priority / (8.0 * depth.get() as f64) - 1.0 / self.shape;
        Rate::from_bits_per_sec(rate.max(0.0) as u64).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_k_times_the_priority_over_the_depth_in_bits() {
        let mbit = Rate::from_mbit_per_sec;
        let config = Config { priority: 2.0, cap: mbit(25), shape: 10.0 };
        assert_eq!(config.rate(1e12, Bytes::new(125_000)).bits_per_sec(), 1_999_999);
        assert_eq!(config.rate(1e12, Bytes::new(100)), mbit(25));
        assert_eq!(config.rate(1e12, Bytes::ZERO), mbit(25));
        assert_eq!(config.rate(1.0, Bytes::new(1_000_000)), Rate::from_bits_per_sec(0));
    }
}
