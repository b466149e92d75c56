//! SDG and IDG: virtual depth that is learned with decreasing steps and then stays.
//!
//! Source: digest G 2.2 [standard form], X 2.2. The depth is lambda + mu q, lambda virtual and q the bytes of packets. At each slot
//! lambda changes by its step times what came less what could have left. A link's turn at a destination without packets counts as
//! service, as decisions by lambda alone would make it. IDG raises lambda toward q / mu; it does so with the same step, since the
//! study's virtual depth no longer moved once it was learned, also where packets then stood.

use super::Seen;
use weir_base::Span;

/// Parameters of SDG and IDG.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a byte of a packet counts in the depth, above 0 and at most 1; the study has 0.2.
    pub mu: f64,
    /// Time between two steps of learning.
    pub slot: Span,
    /// In this time of learning the step falls to half.
    pub half: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config { mu: 0.2, slot: Span::from_millis(10), half: Span::from_millis(2500) }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<&'static str> {
        if !(self.mu > 0.0 && self.mu <= 1.0) {
            return Some("mu");
        }
        if self.slot < Span::from_millis(1) {
            return Some("slot");
        }
        self.half.is_zero().then_some("half")
    }

    /// The step of a slot: 1 at first, and half of it after each such time, so that the sum of all steps is bounded.
    fn step(&self, slot: u64) -> f64 {
        libm::exp2(-(slot as f64) * self.slot.as_secs_f64() / self.half.as_secs_f64())
    }
}

/// State of a destination.
#[derive(Debug, Clone, Default)]
pub struct State {
    lambda: f64,
    net: f64,
    slots: u64,
}

impl State {
    pub(super) fn on_arrival(&mut self, bytes: u64) {
        self.net += bytes as f64;
    }
    pub(super) fn on_service(&mut self, bytes: u64) {
        self.net -= bytes as f64;
    }
    pub(super) fn on_slot(&mut self, config: &Config, seen: Seen, is_improved: bool) -> u64 {
        let step = config.step(self.slots);
        self.lambda = (self.lambda + step * self.net).max(0.0);
        let least = seen.real as f64 / config.mu;
        if is_improved && self.lambda < least {
            self.lambda += step * (least - self.lambda);
        }
        self.net = 0.0;
        self.slots += 1;
        self.lambda as u64
    }
}
