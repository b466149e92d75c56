//! Yield: steers the one-way delay to a target that is a share of the range of delays, with cuts that are larger the faster the delay
//! rises, and largest when cross-traffic causes the rise. Source: K. Ong, "Evaluation and Optimisation of Less-than-Best-Effort TCP
//! Congestion Control Mechanisms" (Murdoch University, 2020), chapter 5 and appendix B. Details that neither gives (initial values,
//! averages, the response to losses) are those of its author's Linux module `tcp_yield`, in its integers: milliseconds, averages
//! stored as multiples.
//!
//! The text and the listing of the thesis differ; [`Reading`] chooses. Its figures were measured with the listing.

use crate::one_way_delay::OneWayDelay;
use crate::ranges::within;
use crate::reading::Reading;
use crate::{Ack, Signal, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Random, Time};

/// Parameters of Yield, named as in table 5.1 of the thesis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Target delay as a share of the range of delays, in percent (0 to 100).
    #[serde(deserialize_with = "beta")]
    #[schemars(range(max = 100))]
    pub beta: u32,
    /// The smallest cut: the window divided by 2 to this power (0 to 31).
    #[serde(deserialize_with = "min_reduction")]
    #[schemars(range(max = 31))]
    pub min_reduction: u32,
    /// The largest cut without cross-traffic: the window divided by 2 to this power (0 to 31).
    #[serde(deserialize_with = "max_reduction")]
    #[schemars(range(max = 31))]
    pub max_reduction: u32,
    /// The largest cut with cross-traffic: the window divided by 2 to this power (0 to 31). 0 cuts the window to `min_cwnd`.
    #[serde(deserialize_with = "maxc_reduction")]
    #[schemars(range(max = 31))]
    pub maxc_reduction: u32,
    /// A rise of the delay by more than this many times the average rise is attributed to cross-traffic.
    pub ct_thresh: i32,
    /// Weight of a sample in the average delay, as a power of 1/2 (0 to 16).
    #[serde(deserialize_with = "hist_factor")]
    #[schemars(range(max = 16))]
    pub hist_factor: u32,
    /// Divisor of the weight of a sample in the average trend (1 to 65536).
    #[serde(deserialize_with = "trend_factor")]
    #[schemars(range(min = 1, max = 65536))]
    pub trend_factor: i32,
    /// Milliseconds above the average from which on a delay counts as rising.
    pub increase_threshold: i32,
    /// Milliseconds relative to the average up to which a delay counts as falling; negative values are below the average.
    pub decrease_threshold: i32,
    /// The smallest window, in segments; 0 counts as 1.
    pub min_cwnd: u32,
    /// Which source is followed where they differ. The text and algorithms of the thesis: one decision each round trip, the largest
    /// delay of the connection, the next cut within its bounds. The code, with which the figures were measured: a decision at each
    /// acknowledgement, which resets the extremes and the sign of cross-traffic.
    pub reading: Reading,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            beta: 15,
            min_reduction: 5,
            max_reduction: 3,
            maxc_reduction: 0,
            ct_thresh: 2,
            hist_factor: 2,
            trend_factor: 128,
            increase_threshold: 1,
            decrease_threshold: -1,
            min_cwnd: 2,
            reading: Reading::Listing,
        }
    }
}

fn beta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "beta", 0..=100)
}
fn min_reduction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "min_reduction", 0..=MAX_SHIFT)
}
fn max_reduction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "max_reduction", 0..=MAX_SHIFT)
}
fn maxc_reduction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "maxc_reduction", 0..=MAX_SHIFT)
}
fn hist_factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "hist_factor", 0..=16)
}
fn trend_factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    within(deserializer, "trend_factor", 1..=65_536)
}

/// The largest power of two by which a cut divides the window. The module's counter would wrap above 127.
const MAX_SHIFT: u32 = 31;
/// The range of delays is stored times 2 to this power, 8.
const RANGE_SHIFT: u32 = 3;
/// The initial `reduction_factor` (module: 3).
const FIRST_REDUCTION: u32 = 3;

/// A connection under Yield. Delays are in milliseconds, relative to the first.
#[derive(Debug)]
pub(crate) struct Yield {
    config: Config,
    window: Window,
    owd: OneWayDelay,
    delay: u32,
    /// Extremes since the last decision.
    delay_min: u32,
    delay_max: u32,
    /// The range of delays, times 8; 0 before the first.
    delay_smin: u32,
    delay_smax: u32,
    /// Average delay, times 2 to the power of `hist_factor`; 0 before the first.
    prev_delay: u32,
    /// Average trend, times `trend_factor`; 0 before the first.
    delay_trend: i32,
    /// The next cut is the window divided by 2 to this power.
    reduction_factor: u32,
    cross_traffic: bool,
    /// The next decision of [`Reading::Paper`] is due when an acknowledgement passes this offset.
    round_end: u64,
}

/// The next value of an average with a weight of 1/2^`shift`, stored times 2^`shift`.
fn average(sample: u32, stored: u32, shift: u32) -> u32 {
    match stored {
        0 => sample.wrapping_shl(shift),
        _ => stored.wrapping_add(sample).wrapping_sub(stored >> shift),
    }
}

/// The next value of an average with a weight of 1/`factor`, stored times `factor`.
fn average_trend(sample: i32, stored: i32, factor: i32) -> i32 {
    match stored {
        0 => sample.wrapping_mul(factor),
        _ => stored.wrapping_add(sample).wrapping_sub(stored / factor),
    }
}

impl Yield {
    pub(crate) fn new(config: &Config, start: &Start) -> Yield {
        Yield {
            config: config.clone(),
            window: Window::new(start),
            owd: OneWayDelay::default(),
            delay: 0,
            delay_min: u32::MAX,
            delay_max: 0,
            delay_smin: 0,
            delay_smax: 0,
            prev_delay: 0,
            delay_trend: 0,
            reduction_factor: FIRST_REDUCTION,
            cross_traffic: false,
            round_end: 0,
        }
    }

    fn by_paper(&self) -> bool {
        self.config.reading == Reading::Paper
    }

    /// Takes a delay: updates the range, the trend and the next cut (appendix B.1.1).
    fn observe(&mut self, delay: u32) {
        self.delay = delay;
        if self.by_paper() {
            self.delay_min = self.delay_min.min(delay);
            self.delay_max = self.delay_max.max(delay);
            self.delay_smax = self.delay_smax.max(delay << RANGE_SHIFT);
            if delay << RANGE_SHIFT < self.delay_smin || self.delay_smin == 0 {
                self.delay_smin = delay << RANGE_SHIFT;
            }
        } else {
            self.observe_range_as_listed();
        }
        self.observe_trend();
    }

    /// The listing compares delays with multiples of delays, and a sample that lowers the smallest delay never raises the largest. So
    /// the largest delay is found only while decisions are rare: in slow start and in recovery.
    fn observe_range_as_listed(&mut self) {
        let delay = self.delay;
        if delay < self.delay_min {
            self.delay_min = delay;
        } else if delay > self.delay_max {
            self.delay_max = delay;
        }
        let (least, most) =
            (self.delay_min.wrapping_shl(RANGE_SHIFT), self.delay_max.wrapping_shl(RANGE_SHIFT));
        if least < self.delay_smin || self.delay_smin == 0 {
            self.delay_smin = least;
        } else if self.delay_min > self.delay_smin {
            self.delay_smin = average(delay, self.delay_smin, RANGE_SHIFT);
        }
        if most > self.delay_smax || self.delay_smax == 0 {
            self.delay_smax = most;
        }
    }

    fn observe_trend(&mut self) {
        let config = &self.config;
        let usual = self.delay_trend / config.trend_factor;
        let mut trend = 0;
        if self.prev_delay != 0 {
            trend = self.delay.wrapping_sub(self.prev_delay >> config.hist_factor) as i32;
            if self.delay_trend != 0 && trend > usual.saturating_mul(config.ct_thresh).max(1) {
                self.cross_traffic = true;
            }
        }
        let factor = self.reduction_factor;
        if trend >= config.increase_threshold {
            let least = if self.cross_traffic { config.maxc_reduction } else { config.max_reduction };
            self.reduction_factor = factor.saturating_sub(1).max(least);
        } else if trend <= config.decrease_threshold {
            self.reduction_factor = (factor + 1).min(config.min_reduction);
        }
        self.prev_delay = average(self.delay, self.prev_delay, config.hist_factor);
        self.delay_trend = average_trend(trend, self.delay_trend, config.trend_factor);
    }

    /// The current queuing delay and its target, in milliseconds.
    fn delay_and_target(&self) -> (i64, i64) {
        let queuing = match self.delay_smin {
            0 => 0,
            least => i64::from(self.delay) - i64::from(least >> RANGE_SHIFT),
        };
        let range = match self.by_paper() {
            true => self.delay_smax.saturating_sub(self.delay_smin),
            // Before the first largest delay this wraps, and the target is out of reach.
            false => self.delay_smax.wrapping_sub(self.delay_smin),
        };
        (queuing, i64::from(self.config.beta) * i64::from(range >> RANGE_SHIFT) / 100)
    }

    /// Cuts the window by `reduction_factor`, and makes the next cut smaller.
    fn cut(&mut self) {
        self.window.cwnd -= self.window.cwnd >> self.reduction_factor;
        let most = if self.by_paper() { self.config.min_reduction } else { MAX_SHIFT };
        self.reduction_factor = (self.reduction_factor + 1).min(most);
    }

    fn floor(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.config.min_cwnd.max(1));
    }

    fn forget_extremes(&mut self) {
        self.delay_min = u32::MAX;
        self.delay_max = 0;
        self.cross_traffic = false;
    }

    /// The decision of appendix B.1.2, at each acknowledgement.
    fn decide_as_listed(&mut self, ack: &Ack) {
        let mut delivered = ack.delivered_segments;
        if self.window.cwnd <= self.window.ssthresh {
            delivered = self.window.slow_start(delivered);
            if delivered == 0 {
                return;
            }
        }
        let (queuing, target) = self.delay_and_target();
        if queuing <= target {
            if ack.cwnd_limited {
                self.window.reno_by(delivered);
            }
        } else {
            self.cut();
        }
        self.floor();
        self.forget_extremes();
    }

    /// The decision of algorithm 2, once each round trip.
    fn decide_by_the_text(&mut self, ack: &Ack) {
        if self.window.in_slow_start() && self.window.slow_start(ack.delivered_segments) == 0 {
            return;
        }
        if ack.acknowledged <= self.round_end {
            return;
        }
        self.round_end = ack.next_sequence;
        if self.delay_min != u32::MAX && self.delay_min << RANGE_SHIFT > self.delay_smin {
            self.delay_smin = average(self.delay_min, self.delay_smin, RANGE_SHIFT);
        }
        let (queuing, target) = self.delay_and_target();
        if queuing > target {
            self.cut();
        } else if ack.cwnd_limited {
            self.window.cwnd = self.window.cwnd.saturating_add(1);
        }
        self.floor();
        self.forget_extremes();
    }
}

impl crate::windowed::Windowed for Yield {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn keeps_queues_short(&self) -> bool {
        true
    }
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if let Some(timestamps) = &ack.timestamps {
            // A delay that is not above the first one is ignored; the last delay stays.
            let delay = self.owd.sample(timestamps);
            let delay = if delay > 0 { delay.min(MAX_DELAY) as u32 } else { self.delay };
            self.observe(delay);
        }
        if !ack.may_grow {
            return;
        }
        if self.by_paper() { self.decide_by_the_text(ack) } else { self.decide_as_listed(ack) }
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let (queuing, target) = self.delay_and_target();
        report("queuing_delay_ms", queuing as f64);
        report("target_ms", target as f64);
        report("reduction_factor", f64::from(self.reduction_factor));
        report("trend_ms", f64::from(self.delay_trend) / f64::from(self.config.trend_factor));
        report("cross_traffic", f64::from(u8::from(self.cross_traffic)));
    }
}

/// Longer delays count as this, in milliseconds, so that their multiples fit in 32 bits.
const MAX_DELAY: i64 = 1 << 15;

#[cfg(test)]
mod tests;
