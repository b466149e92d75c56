//! Yield: gives way by more the faster the one-way delay rises, by most when the rise is another's doing, and steers to a target
//! that is a share of the delays it has seen. Source: K. Ong, "Evaluation and Optimisation of Less-than-Best-Effort TCP
//! Congestion Control Mechanisms" (Murdoch University, 2020), chapter 5 and appendix B; what neither gives (first values,
//! averages, the answer to losses) is as its author's Linux module `tcp_yield` has it, in its integers: milliseconds, averages
//! stored as multiples.
//!
//! Text and listing of the thesis do not say the same; [`Reading`] chooses. Its figures were measured with the listing.

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
    /// The target as a share of the range of delays, in percent (0 to 100).
    #[serde(deserialize_with = "beta")]
    #[schemars(range(max = 100))]
    pub beta: u32,
    /// The smallest cut is the window divided by 2 to this power (0 to 31).
    #[serde(deserialize_with = "min_reduction")]
    #[schemars(range(max = 31))]
    pub min_reduction: u32,
    /// The largest cut without cross-traffic, likewise (0 to 31).
    #[serde(deserialize_with = "max_reduction")]
    #[schemars(range(max = 31))]
    pub max_reduction: u32,
    /// The largest cut with cross-traffic, likewise (0 to 31): 0 is all of the window but `min_cwnd`.
    #[serde(deserialize_with = "maxc_reduction")]
    #[schemars(range(max = 31))]
    pub maxc_reduction: u32,
    /// A rise of delay this many times as steep as on average is another's doing.
    pub ct_thresh: i32,
    /// A delay weighs 1 in 2 to this power in the average delay (0 to 16).
    #[serde(deserialize_with = "hist_factor")]
    #[schemars(range(max = 16))]
    pub hist_factor: u32,
    /// A trend weighs 1 in this many in the average trend (1 to 65536).
    #[serde(deserialize_with = "trend_factor")]
    #[schemars(range(min = 1, max = 65536))]
    pub trend_factor: i32,
    /// A delay this many milliseconds above the average is rising.
    pub increase_threshold: i32,
    /// A delay this many milliseconds above the average, and so below it where negative, is falling.
    pub decrease_threshold: i32,
    /// The smallest window, in segments; 0 counts as 1.
    pub min_cwnd: u32,
    /// What is followed where they differ: the prose and algorithms of the thesis (one decision each round trip, the largest delay
    /// ever seen, the next cut held between its bounds), or its code (a decision at each acknowledgement, which clears the
    /// extremes and the sign of cross-traffic), from which its figures are.
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

/// A cut by more than this power of two is none. The module's counter would wrap beyond 127.
const MAX_SHIFT: u32 = 31;
/// The range of delays is stored times 8.
const RANGE_SHIFT: u32 = 3;
/// What a connection's first cut would be without any trend (module: 3).
const FIRST_REDUCTION: u32 = 3;

/// A connection under Yield. Delays are milliseconds above the first.
#[derive(Debug)]
pub(crate) struct Yield {
    config: Config,
    window: Window,
    owd: OneWayDelay,
    delay: u32,
    /// Extremes since the last decision.
    delay_min: u32,
    delay_max: u32,
    /// The range of delays, times 8; 0 is none yet.
    delay_smin: u32,
    delay_smax: u32,
    /// Average delay, times 2 to the power of `hist_factor`; 0 is none yet.
    prev_delay: u32,
    /// Average trend, times `trend_factor`; 0 is none yet.
    delay_trend: i32,
    reduction_factor: u32,
    cross_traffic: bool,
    /// The next decision of [`Reading::Paper`] is due when this offset has been passed.
    round_end: u64,
}

/// An average with a weight of 1 in 2 to the power of `shift`, times that power.
fn average(sample: u32, stored: u32, shift: u32) -> u32 {
    match stored {
        0 => sample.wrapping_shl(shift),
        _ => stored.wrapping_add(sample).wrapping_sub(stored >> shift),
    }
}

/// An average with a weight of 1 in `factor`, times that.
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

    /// A delay arrives: the range, the trend and what it says of the next cut (appendix B.1.1).
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

    /// What is compared here are delays with multiples of delays, and a sample that lowers the one extreme never raises the
    /// other; so the largest delay is learned only where decisions are rare: in slow start and while losses are repaired.
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

    /// The queuing delay now, and what it may be.
    fn delay_and_target(&self) -> (i64, i64) {
        let queuing = match self.delay_smin {
            0 => 0,
            least => i64::from(self.delay) - i64::from(least >> RANGE_SHIFT),
        };
        let range = match self.by_paper() {
            true => self.delay_smax.saturating_sub(self.delay_smin),
            // While no largest delay is known this wraps, and the target is out of reach.
            false => self.delay_smax.wrapping_sub(self.delay_smin),
        };
        (queuing, i64::from(self.config.beta) * i64::from(range >> RANGE_SHIFT) / 100)
    }

    /// The window is cut by what the trend said last, and the next cut is smaller.
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

    /// Appendix B.1.2: at each acknowledgement.
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

    /// Algorithm 2: once each round trip.
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
            // A delay that is not above the first leaves the one before.
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

/// Longer delays count as this, in milliseconds: what they are multiplied by must fit in 32 bits.
const MAX_DELAY: i64 = 1 << 15;

#[cfg(test)]
mod tests;
