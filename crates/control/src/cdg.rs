//! CDG: reduces the window when the delay rises, with a probability that grows with the delay's gradient and not with the delay.
//! Source: Hayes and Armitage, "Revisiting TCP congestion control using delay gradients" (IFIP Networking 2011), in the integers of
//! Linux 6.18 `net/ipv4/tcp_cdg.c`, with its HyStart, its back-off factor in place of the paper's G, and its bounds of the shadow
//! window.
//!
//! For a background flow the module's author advises to switch off `use_shadow` and `use_ineff`, by which CDG competes with
//! loss-based flows.

mod exponential;
mod gradients;
mod hystart;

use self::exponential::negative_exponential;
use self::gradients::{Gradients, Trend};
use self::hystart::HyStart;
use crate::hystart::Detect;
use crate::ranges::within;
use crate::{Ack, Delivered, Restart, Signal, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use weir_base::{Random, Time};

/// Parameters of CDG, named as the module parameters of `tcp_cdg`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of round trips over which gradients are summed; a power of two (1 to 256).
    #[serde(deserialize_with = "window")]
    #[schemars(range(min = 1, max = 256))]
    pub window: u32,
    /// Share of the window that remains after a back-off, in 1/1024 (0 to 1024).
    #[serde(deserialize_with = "beta")]
    #[schemars(range(max = 1024))]
    pub backoff_beta: u32,
    /// Factor of the probability of a back-off: for gradients whose sum is `g` microseconds the probability is
    /// `1 - exp(-g * backoff_factor / 10^6)`. The paper's G is `1000 / (window * backoff_factor)`.
    pub backoff_factor: u32,
    /// Whether HyStart may end slow start early.
    pub hystart: bool,
    /// What HyStart measures.
    pub hystart_detect: Detect,
    /// Maximum number of successive back-offs while the delay does not fall; 0 means no limit.
    pub use_ineff: u32,
    /// Whether the reduction after a loss starts from the shadow window, the window that there would be without back-offs.
    pub use_shadow: bool,
    /// Whether losses are ignored while the delays indicate that the queue is not full.
    pub use_tolerance: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            window: 8,
            backoff_beta: 724,
            backoff_factor: 42,
            hystart: true,
            hystart_detect: Detect::Both,
            use_ineff: 5,
            use_shadow: true,
            use_tolerance: false,
        }
    }
}

fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match within(deserializer, "window", 1..=MAX_GRADIENTS)? {
        window if u32::is_power_of_two(window) => Ok(window),
        window => Err(D::Error::custom(format!("window is {window}, expected a power of two"))),
    }
}
fn beta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "backoff_beta", 0..=BETA_SCALE)
}

/// Largest number of gradients that are summed.
const MAX_GRADIENTS: u32 = 256;
/// Unit of `backoff_beta`.
const BETA_SCALE: u32 = 1024;
/// The smallest threshold, in segments.
const MIN_THRESHOLD: u32 = 2;
/// Divisor of summed gradients, in microseconds, with which small variations count as zero.
const TOLERANCE: i64 = 64;

/// State of the queue as inferred from the delays (Linux `enum cdg_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queue {
    Unknown,
    NotFull,
    Full,
    /// Not inferred: a back-off is under way.
    BackingOff,
}

/// A connection under CDG.
#[derive(Debug)]
pub(crate) struct Cdg {
    config: Config,
    window: Window,
    gradients: Gradients,
    hystart: HyStart,
    queue: Queue,
    /// The round ends when an acknowledgement passes this offset (Linux `rtt_seq`).
    round_end: u64,
    /// Offset of the next new byte at the last delivery.
    next_sequence: u64,
    /// The window that there would be without back-offs.
    shadow: u32,
    /// Back-offs since the delay last fell.
    ineffectual: u32,
    /// Whether the newest acknowledgement caused a back-off.
    asks: bool,
}

/// A quotient rounded to the nearest integer, ties away from zero (Linux `DIV_ROUND_CLOSEST`).
fn div_round_closest(number: i64, by: i64) -> i64 {
    (number + number.signum() * (by / 2)) / by
}

impl Cdg {
    pub(crate) fn new(config: &Config, start: &Start) -> Cdg {
        let window = Window::new(start);
        Cdg {
            gradients: Gradients::new(config.window),
            hystart: HyStart::new(config.hystart_detect),
            config: config.clone(),
            queue: Queue::Unknown,
            round_end: 0,
            next_sequence: 0,
            shadow: window.cwnd,
            ineffectual: 0,
            asks: false,
            window,
        }
    }

    /// Takes the gradients of a finished round (Linux `tcp_cdg_grad` and the code after its call).
    fn take(&mut self, trend: &Trend) {
        if trend.fell() {
            self.ineffectual = 0;
        }
        if self.config.use_tolerance {
            let sum = |sum: i64| div_round_closest(sum, TOLERANCE);
            match (sum(trend.min), sum(trend.max)) {
                (1.., ..=0) => self.queue = Queue::Full,
                (1.., 1..) | (_, ..=-1) => self.queue = Queue::NotFull,
                _ => {}
            }
        }
    }

    /// Whether a positive gradient causes a back-off (Linux `tcp_cdg_backoff`).
    fn backs_off(&mut self, gradient: i64, random: &mut Random) -> bool {
        let exponent = u32::try_from(gradient).unwrap_or(u32::MAX).saturating_mul(self.config.backoff_factor);
        let drawn = (random.bits() >> 32) as u32;
        if drawn <= negative_exponential(exponent) {
            return false;
        }
        if self.config.use_ineff > 0 {
            self.ineffectual = self.ineffectual.saturating_add(1);
            if self.ineffectual > self.config.use_ineff {
                return false;
            }
        }
        self.shadow = self.shadow.max(self.window.cwnd);
        self.queue = Queue::BackingOff;
        true
    }

    /// Grows the window and the shadow window as Reno does (end of Linux `tcp_cdg_cong_avoid`).
    fn grow(&mut self, ack: &Ack) {
        if !ack.cwnd_limited {
            self.shadow = self.shadow.min(self.window.cwnd);
            return;
        }
        let before = self.window.cwnd;
        self.window.reno(ack);
        self.shadow = self.shadow.saturating_add(self.window.cwnd - before);
    }
}

impl crate::windowed::Windowed for Cdg {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }
    fn wants_delivered(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, delivered: &Delivered) {
        self.next_sequence = delivered.next_sequence;
        self.gradients.sample(delivered);
    }

    fn on_ack(&mut self, ack: &Ack, random: &mut Random) {
        self.asks = false;
        if !ack.may_grow {
            return;
        }
        if self.config.hystart
            && self.window.in_slow_start()
            && self.hystart.found(ack, self.gradients.round_min())
        {
            self.window.ssthresh = self.window.cwnd;
        }
        if ack.acknowledged > self.round_end && self.gradients.has_samples() {
            let trend = self.gradients.end_round();
            self.round_end = ack.next_sequence;
            self.hystart.begin_round();
            if let Some(trend) = trend {
                self.take(&trend);
                self.asks = trend.gradient > 0 && self.backs_off(trend.gradient, random);
            }
        }
        if !self.asks {
            self.grow(ack);
        }
    }
    fn wants_reduction(&self) -> bool {
        self.asks
    }

    /// Linux `tcp_cdg_ssthresh`.
    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        let cwnd = self.window.cwnd;
        if self.queue == Queue::BackingOff {
            let left = u64::from(cwnd) * u64::from(self.config.backoff_beta.min(BETA_SCALE));
            return ((left / u64::from(BETA_SCALE)) as u32).max(MIN_THRESHOLD);
        }
        if self.config.use_tolerance && self.queue == Queue::NotFull {
            return cwnd;
        }
        self.shadow = (self.shadow / 2).min(cwnd);
        let shadow = if self.config.use_shadow { self.shadow } else { 0 };
        self.window.halved().max(shadow)
    }
    /// RTTs measured during a reduction do not count for gradients (Linux `tcp_cdg_cwnd_event`).
    fn on_exit_recovery(&mut self, _: Time) {
        self.queue = Queue::Unknown;
        self.round_end = self.next_sequence;
        self.gradients.skip_round();
    }
    fn on_restart(&mut self, restart: &Restart) {
        if matches!(restart, Restart::Idle { .. }) {
            self.gradients = Gradients::new(self.config.window);
            self.hystart = HyStart::new(self.config.hystart_detect);
            self.queue = Queue::Unknown;
            self.round_end = self.next_sequence;
            self.shadow = self.window.cwnd;
            self.ineffectual = 0;
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("gradient_us", self.gradients.last() as f64);
        report("shadow_cwnd", f64::from(self.shadow));
        report("ineffectual_backoffs", f64::from(self.ineffectual));
    }
}

#[cfg(test)]
mod tests;
