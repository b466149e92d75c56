//! NPLB: depth plus a share of the age of the oldest packet, so that packets that wait gain weight (digest A 6.9).
//!
//! When the oldest packet leaves and the next is more than 0.2 s younger, zombies fill the gap, a byte for each microsecond beyond.

use weir_base::Span;

/// A younger successor up to this leaves no gap (digest A 6.9).
const STICKINESS: Span = Span::from_millis(200);

/// Parameters of NPLB.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Bytes that a microsecond of the oldest packet's age counts.
    pub bytes_per_microsecond: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { bytes_per_microsecond: 0.1 }
    }
}

impl Config {
    pub(super) fn age(&self, oldest: Span) -> f64 {
        oldest.as_micros() as f64 * self.bytes_per_microsecond
    }

    pub(super) fn stickiness(&self, left: Span, next: Span) -> u64 {
        left.saturating_sub(next).saturating_sub(STICKINESS).as_micros()
    }
}
