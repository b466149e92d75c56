//! TCP-LP: halves its window when the one-way delay exceeds a share of its range, then holds it in an inference phase, and falls to
//! one segment if the delay exceeds the share again in that phase. Source: Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service
//! via End-Point Congestion Control" (IEEE/ACM ToN 14(4), 2006), and Linux `net/ipv4/tcp_lp.c`, in its integers.
//!
//! The two sources define the delay differently; [`Reading`] chooses. The kernel estimates the rate of the peer's clock from single
//! steps, converts the clock's whole value with that estimate, and takes the difference of the clocks as the delay. So the range,
//! and with it the threshold, depends on the offset of the clocks, and a small error of the estimate is multiplied by the clock's
//! value.

mod absolute;

use crate::one_way_delay::OneWayDelay;
use crate::{Ack, Delivered, NO_THRESHOLD, Phase, Signal, Start, Timestamps, Window};
use absolute::Absolute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Time};

/// Parameters of TCP-LP. The Linux module has no parameters; the defaults are its constants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share of the delay's range above which the delay is a sign of congestion, in percent.
    pub threshold: u32,
    /// Length of the inference phase after a reduction, in round trips: the window is held, and a further sign of congestion reduces
    /// it to one segment.
    pub inference: u32,
    /// Which source is followed where they differ: "kernel" (`tcp_lp.c`) or "paper".
    pub reading: Reading,
}

impl Default for Config {
    fn default() -> Config {
        Config { threshold: 15, inference: 3, reading: Reading::Kernel }
    }
}

/// Which description of TCP-LP is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// Linux: the delay is the difference of the clocks, with an estimated rate of the peer's. The range is reset at each reduction,
    /// from the average delay to twice that. Slow start continues after a reduction if there was no loss before.
    Kernel,
    /// The article: delays are relative to the first, the range covers the whole connection, and additive increase follows a
    /// reduction. Two details are weir's interpretation: slow start up to the first loss finds the range, and a sign of congestion
    /// counts once a round trip.
    Paper,
}

/// Weight of a sample in the average delay, as a power of 1/2.
const AVERAGE_SHIFT: u32 = 3;

/// A connection under TCP-LP.
#[derive(Debug)]
pub(crate) struct LowPriority {
    config: Config,
    window: Window,
    delay: Delay,
    /// When the last sign of congestion reduced the window, by the clock of the timestamps; `None` before the first.
    last_drop: Option<u32>,
    /// Length of the inference phase, in ticks.
    inference: u32,
    inferring: bool,
}

/// The range of delays and their average.
#[derive(Debug)]
enum Delay {
    Kernel(Absolute),
    Paper(Relative),
}

/// Delays of the whole connection relative to the first, in milliseconds.
#[derive(Debug, Default)]
struct Relative {
    owd: OneWayDelay,
    range: Option<(i64, i64)>,
    /// The average delay times 2 to the power of [`AVERAGE_SHIFT`].
    average: i64,
}

impl Relative {
    fn sample(&mut self, timestamps: &Timestamps) {
        let delay = self.owd.sample(timestamps);
        match &mut self.range {
            Some((least, most)) => {
                (*least, *most) = (delay.min(*least), delay.max(*most));
                self.average += delay - (self.average >> AVERAGE_SHIFT);
            }
            None => {
                self.range = Some((delay, delay));
                self.average = delay << AVERAGE_SHIFT;
            }
        }
    }

    /// Whether the average is above `percent` of the range. Both sides are multiplied by 100, since the range may be a few
    /// milliseconds.
    fn is_above(&self, percent: u32) -> bool {
        let Some((least, most)) = self.range else { return false };
        let limit = 100 * least + i64::from(percent) * (most - least);
        100 * self.average > limit << AVERAGE_SHIFT
    }
}

impl LowPriority {
    pub(crate) fn new(config: &Config, start: &Start) -> LowPriority {
        let delay = match config.reading {
            Reading::Kernel => Delay::Kernel(Absolute::default()),
            Reading::Paper => Delay::Paper(Relative::default()),
        };
        let window = Window::new(start);
        LowPriority { config: config.clone(), window, delay, last_drop: None, inference: 0, inferring: false }
    }

    /// Takes the delay of an acknowledgement and responds to it (Linux `tcp_lp_pkts_acked`).
    fn observe(&mut self, timestamps: &Timestamps, delivered: &Delivered) {
        let now = delivered.own_ticks;
        let sampled = delivered.rtt.is_some();
        match &mut self.delay {
            Delay::Kernel(delay) if sampled => delay.sample(timestamps),
            Delay::Paper(delay) if sampled => delay.sample(timestamps),
            _ => {}
        }
        let round_trip = now.wrapping_sub(timestamps.echoed_ticks) as i32;
        if round_trip > 0 {
            self.inference = self.config.inference.saturating_mul(round_trip.unsigned_abs());
        }
        self.inferring = self.last_drop.is_some_and(|last| now.wrapping_sub(last) < self.inference);
        let percent = self.config.threshold;
        let congested = match &mut self.delay {
            Delay::Kernel(delay) => delay.is_above(percent),
            // Until the first loss slow start finds the range. Segments sent before the last reduction reflect the window before
            // it.
            Delay::Paper(delay) => {
                let news = |last| (timestamps.echoed_ticks.wrapping_sub(last) as i32) > 0;
                let ranged = self.window.ssthresh != NO_THRESHOLD;
                ranged && self.last_drop.is_none_or(news) && delay.is_above(percent)
            }
        };
        if congested {
            self.drop_window(delivered.phase);
            self.last_drop = Some(now);
            if let Delay::Kernel(delay) = &mut self.delay {
                delay.begin_range();
                // In the kernel 0 means that there was no sign yet.
                self.last_drop = Some(now).filter(|&now| now != 0);
            }
        }
    }

    /// Reduces the window to one segment within the inference phase, else to half. Not while PRR reduces the window, which would end
    /// at the threshold anyway.
    fn drop_window(&mut self, phase: Phase) {
        if matches!(phase, Phase::Recovery | Phase::Cwr) {
            return;
        }
        self.window.cwnd = if self.inferring { 1 } else { (self.window.cwnd / 2).max(1) };
        if self.config.reading == Reading::Paper {
            self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
            self.inferring = true;
        }
    }
}

impl crate::windowed::Windowed for LowPriority {
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
        if let Some(timestamps) = &delivered.timestamps {
            self.observe(timestamps, delivered);
        }
    }
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if ack.may_grow && !self.inferring {
            self.window.reno(ack);
        }
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let (average, least, most) = match &self.delay {
            Delay::Kernel(delay) => delay.describe(report),
            Delay::Paper(Relative { average, range, .. }) => {
                let (least, most) = range.unwrap_or((0, 0));
                (*average as f64 / 8.0, least as f64, most as f64)
            }
        };
        report("delay_average_ms", average);
        report("delay_least_ms", least);
        report("delay_most_ms", most);
        report("inferring", f64::from(u8::from(self.inferring)));
    }
}

#[cfg(test)]
mod tests;
