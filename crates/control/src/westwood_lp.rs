//! Westwood-LP: Westwood+ that reduces its window to the estimated BDP before losses, when more segments wait in the queue than a
//! threshold. The threshold is smaller the nearer the delay is to the delay at losses, and the less the delay varies. Source:
//! Shimonishi, Hama, Sanadidi, Gerla and Murase, "TCP-Westwood Low-Priority for Overlay QoS Mechanism" (IEICE Transactions on
//! Communications, 2006), and the formula of 2004 that it replaced, as in K. Ong, "Evaluation and Optimisation of
//! Less-than-Best-Effort TCP Congestion Control Mechanisms" (Murdoch University, 2020), section 3.6.2 and appendix A.3, which put
//! them into Linux `tcp_westwood`.
//!
//! The thesis' code uses unsigned numbers, so an estimated BDP above the window raises the window, and a delay above the delay at
//! losses prevents the reduction; [`Reading`] chooses. Its figures were measured with the code, most likely on kernels with
//! `HZ` = 250: their clock rounds RTTs up, which lets the window of 2006 grow while there is no queue.

use crate::ranges::within;
use crate::reading::Reading;
use crate::westwood::hz;
use crate::westwood_rate::PathRate;
use crate::{Ack, Delivered, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Bytes, Random, Time};

/// The formula for the number of segments that may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Threshold {
    /// `M * (1 - delay_min / delay_avg + delta)`, `delta` = 3 us / (RTT - smallest RTT).
    #[serde(rename = "2004")]
    Of2004,
    /// `M * (1 - RTT / RTT at losses) * (1 - delay_min / delay_max)`.
    #[serde(rename = "2006")]
    Of2006,
}

/// Parameters of Westwood-LP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The constant M: the largest number of segments that may wait (0 to 1000).
    #[serde(deserialize_with = "beta")]
    #[schemars(range(max = 1000))]
    pub beta: u32,
    /// The formula for the number of segments that may wait. The code does not have the formula of 2004, which is therefore signed
    /// with either reading.
    pub threshold: Threshold,
    /// Which source is followed where they differ. The papers: signed numbers, extremes of the RTT over all acknowledgements, the RTT
    /// at each loss, no early reduction in slow start. The code: unsigned numbers, extremes only over acknowledgements outside
    /// header prediction, the RTT at timeouts, and early reductions in slow start except the first.
    pub reading: Reading,
    /// Ticks per second of the kernel's clock, the unit of rates and RTTs (Linux `CONFIG_HZ`, 100 to 1000).
    #[serde(deserialize_with = "hz")]
    #[schemars(range(min = 100, max = 1000))]
    pub hz: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            beta: 3,
            threshold: Threshold::Of2006,
            reading: Reading::Listing,
            hz: crate::jiffies::HZ as u32,
        }
    }
}

fn beta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "beta", 0..=1000)
}

/// Numerator of the term that the formula of 2004 adds for an almost empty queue, in seconds.
const DELTA: f64 = 3e-6;
/// Value of the listing's average RTT at losses before the first loss; it becomes part of the average.
const NO_LOSS: u32 = 1;

/// RTTs since the last early reduction in ticks, and their averages times 4.
#[derive(Debug, Default)]
struct Delays {
    min: u32,
    max: u32,
    /// Sum of the RTTs, for the mean of the formula of 2004.
    sum: u64,
    count: u64,
    min_avg: u32,
    max_avg: u32,
    mean_avg: u32,
}

/// The next value of an average with a weight of 1/4, times 4; a stored 0 means no average yet.
fn average(sample: u32, stored: u32) -> u32 {
    match stored {
        0 => sample.wrapping_shl(2),
        _ => stored.wrapping_add(sample).wrapping_sub(stored >> 2),
    }
}

impl Delays {
    fn mean(&self) -> u32 {
        u32::try_from(self.sum / self.count.max(1)).unwrap_or(u32::MAX)
    }

    fn see(&mut self, rtt: u32) {
        if self.max == 0 {
            (self.min, self.max) = (rtt, rtt);
        }
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum += u64::from(rtt);
        self.count += 1;
    }

    /// After an early reduction: adds the extremes and the mean to the averages, and begins again with the current RTT.
    fn begin(&mut self, rtt: u32) {
        self.mean_avg = average(self.mean(), self.mean_avg);
        self.min_avg = average(self.min, self.min_avg);
        self.max_avg = average(self.max, self.max_avg);
        (self.min, self.max, self.sum, self.count) = (rtt, rtt, u64::from(rtt), 1);
    }

    /// The smaller and the larger delay of the threshold: the averages, or without averages the current values; `None` if neither
    /// is usable.
    fn pair(&self, threshold: Threshold, in_slow_start: bool) -> Option<(u32, u32)> {
        let (averages, seen) = match threshold {
            Threshold::Of2004 => ((self.min_avg, self.mean_avg), (self.min, self.mean())),
            Threshold::Of2006 => ((self.min_avg, self.max_avg), (self.min, self.max)),
        };
        let tells = |&(low, high): &(u32, u32)| low != high && high != 0;
        Some(averages).filter(tells).or_else(|| Some(seen).filter(|pair| tells(pair) && !in_slow_start))
    }
}

/// A connection under Westwood-LP.
#[derive(Debug)]
pub(crate) struct WestwoodLp {
    config: Config,
    window: Window,
    path: PathRate,
    delays: Delays,
    /// Average RTT at losses, times 4; at most [`NO_LOSS`] before the first loss.
    delay_loss: u32,
    early_reductions: u32,
}

impl WestwoodLp {
    pub(crate) fn new(config: &Config, start: &Start) -> WestwoodLp {
        WestwoodLp {
            config: config.clone(),
            window: Window::new(start),
            path: PathRate::new(config.hz, start),
            delays: Delays::default(),
            delay_loss: if config.reading == Reading::Paper { 0 } else { NO_LOSS },
            early_reductions: 0,
        }
    }

    fn by_paper(&self) -> bool {
        self.config.reading == Reading::Paper
    }

    fn rtt(&self) -> u32 {
        u32::try_from(self.path.rtt()).unwrap_or(u32::MAX)
    }

    /// Whether more segments wait than the threshold.
    fn queue_is_long(&self) -> bool {
        let in_slow_start = self.window.in_slow_start();
        if self.by_paper() && in_slow_start {
            return false;
        }
        let Some(delays) = self.delays.pair(self.config.threshold, in_slow_start) else { return false };
        if self.by_paper() || self.config.threshold == Threshold::Of2004 {
            return f64::from(self.window.cwnd) - self.path.exact_segments() > self.threshold(delays);
        }
        let queue = self.window.cwnd.wrapping_sub(self.path.segments_with_options() as u32);
        queue > self.threshold_as_listed(delays)
    }

    fn threshold(&self, (low, high): (u32, u32)) -> f64 {
        let most = f64::from(self.config.beta);
        let steady = 1.0 - f64::from(low) / f64::from(high);
        match self.config.threshold {
            Threshold::Of2004 => {
                let queued = f64::from(self.path.queued_ticks()) / f64::from(self.config.hz);
                // Without a queue this is infinite.
                most * (steady + DELTA / queued)
            }
            Threshold::Of2006 if self.delay_loss > NO_LOSS => {
                most * (1.0 - 4.0 * f64::from(self.rtt()) / f64::from(self.delay_loss)) * steady
            }
            Threshold::Of2006 => most * steady,
        }
    }

    /// The threshold of the listing: unsigned, computed in percent (appendix A.3).
    fn threshold_as_listed(&self, (low, high): (u32, u32)) -> u32 {
        let rtt = if self.delay_loss > NO_LOSS { self.rtt() } else { 0 };
        let percent = |part: u32, whole: u32| 100u32.wrapping_sub(part.wrapping_mul(100) / whole.max(1));
        let near_loss = percent(rtt.wrapping_mul(4), self.delay_loss);
        let steady = percent(low, high);
        (self.config.beta.wrapping_mul(near_loss) / 100).wrapping_mul(steady) / 100
    }

    fn come_down_early(&mut self) {
        self.fill_the_path();
        let rtt = self.rtt();
        self.delays.begin(rtt);
        self.early_reductions = self.early_reductions.saturating_add(1);
    }
    fn fill_the_path(&mut self) {
        self.window.ssthresh = self.path.segments();
        self.window.cwnd = self.window.ssthresh;
    }
    fn see_loss(&mut self) {
        self.delay_loss = average(self.rtt(), self.delay_loss);
    }
}

impl crate::windowed::Windowed for WestwoodLp {
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
        self.path.update(delivered);
        if self.path.knows_rtt() && (self.by_paper() || !delivered.predicted) {
            let rtt = self.rtt();
            self.delays.see(rtt);
        }
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.path.set_mss(mss);
    }
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if !ack.may_grow {
            return;
        }
        if self.queue_is_long() {
            self.come_down_early();
        } else {
            self.window.reno(ack);
        }
    }

    fn ssthresh(&mut self, signal: Signal, _: Time) -> u32 {
        if self.by_paper() && signal == Signal::Loss && self.path.knows_rtt() {
            self.see_loss();
        }
        self.window.halved()
    }
    fn on_exit_recovery(&mut self, _: Time) {
        self.fill_the_path();
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.reduce {
            self.window.ssthresh = self.path.segments();
            self.path.forget_min();
            if !self.by_paper() {
                self.see_loss();
            }
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.path.describe(report);
        report("early_reductions", f64::from(self.early_reductions));
    }
}

#[cfg(test)]
mod tests;
