//! H-TCP: the window grows faster the longer the last congestion is ago, and the size of a reduction depends on the ratio of the
//! smallest to the largest RTT. Source: draft-leith-tcp-htcp-06 (Leith and Shorten), in the integers of Linux 6.18
//! `net/ipv4/tcp_htcp.c`: fractions in 1/128, times in ticks of 4 ms.

use crate::jiffies::{HZ, ticks, ticks_of};
use crate::{Ack, Congestion, Delivered, Phase, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Span, Time};

/// Parameters of H-TCP, named as the module parameters of `tcp_htcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether growth is scaled by the RTT relative to 100 ms, by a factor of 0.1 to 2, so that flows of different RTT grow alike.
    pub use_rtt_scaling: bool,
    /// Whether a congestion halves the window, whatever the RTTs, if the throughput has changed by more than a fifth since the last
    /// one.
    pub use_bandwidth_switch: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { use_rtt_scaling: true, use_bandwidth_switch: true }
    }
}

/// Binary places of `alpha` and `beta`.
const SHIFT: u32 = 7;
/// One (Linux `ALPHA_BASE`).
const ONE: u32 = 1 << SHIFT;
/// Bounds of `beta`, the share of the window that remains: a half and 0.8 (Linux `BETA_MIN`, `BETA_MAX`).
const BETA_BOUNDS: (u32, u32) = (1 << 6, 102);
/// How long after congestion the window grows as Reno's, in ticks: the draft's Delta_L of 1 s.
const LOW_SPEED: u64 = HZ;
/// A sample this much above the largest RTT is an outlier (Linux `measure_rtt`).
const MAX_STEP: Span = Span::from_millis(20);
/// For RTTs up to this the clock is too coarse for a ratio (Linux `htcp_beta_update`).
const COARSE: Span = Span::from_millis(10);
/// The divisor of RTT scaling is in 1/8, and is bounded by 0.5 and 10 (Linux `htcp_alpha_update`).
const SCALE_SHIFT: u64 = 3;
const SCALE_BOUNDS: (u64, u64) = (1 << 2, 10 << 3);
/// Share of the largest RTT's excess over the smallest that is kept at a congestion, in percent (Linux `htcp_param_update`).
const MEMORY_PERCENT: u64 = 95;
/// Round trips after a congestion in which the throughput is not smoothed (Linux `measure_achieved_throughput`).
const FRESH_ROUNDS: u64 = 3;
/// The smallest threshold, in segments.
const MIN_THRESHOLD: u32 = 2;

/// A connection under H-TCP.
#[derive(Debug)]
pub(crate) struct Htcp {
    config: Config,
    window: Window,
    /// Segments added each round trip, in 1/128.
    alpha: u32,
    /// Share of the window that remains after congestion, in 1/128.
    beta: u32,
    /// Whether `beta` may follow the ratio of the RTTs (Linux `modeswitch`).
    mode_switch: bool,
    /// Segments that the last acknowledgement in the open phase removed from the retransmission queue.
    acked: u32,
    /// Smallest and largest RTT in ticks; 0 before the first sample.
    min_rtt: u64,
    max_rtt: u64,
    /// When the last congestion ended, in ticks.
    last_congestion: u64,
    throughput: Throughput,
    /// The values that an undo restores: `last_congestion`, the largest RTT and the largest throughput.
    before: Option<(u64, u64, u64)>,
}

/// Achieved throughput, in segments per second.
#[derive(Debug, Default)]
struct Throughput {
    /// Segments acknowledged since `since`.
    segments: u64,
    since: u64,
    smoothed: u64,
    largest: u64,
    /// The largest throughput before the last congestion.
    largest_before: u64,
}

impl Htcp {
    pub(crate) fn new(config: &Config, start: &Start) -> Htcp {
        Htcp {
            config: config.clone(),
            window: Window::new(start),
            alpha: ONE,
            beta: BETA_BOUNDS.0,
            mode_switch: false,
            acked: 1,
            min_rtt: 0,
            max_rtt: 0,
            last_congestion: ticks(start.now),
            throughput: Throughput { since: ticks(start.now), ..Throughput::default() },
            before: None,
        }
    }

    /// Takes an RTT sample in ticks (Linux `measure_rtt`).
    fn measure_rtt(&mut self, rtt: u64, open: bool) {
        if self.min_rtt == 0 || self.min_rtt > rtt {
            self.min_rtt = rtt;
        }
        if open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt <= self.max_rtt + ticks_of(MAX_STEP) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// Counts delivered segments, and computes the throughput once a window and round trip (Linux `measure_achieved_throughput`).
    fn measure_throughput(&mut self, segments: u32, now: u64, undisturbed: bool) {
        let throughput = &mut self.throughput;
        if !undisturbed {
            (throughput.segments, throughput.since) = (0, now);
            return;
        }
        throughput.segments += u64::from(segments);
        let step = (self.alpha >> SHIFT).max(1);
        let time = now - throughput.since;
        let whole_window =
            self.window.cwnd.checked_sub(step).is_some_and(|n| throughput.segments >= n.into());
        if !whole_window || time < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        // A sample within the tick of the last one has zero length.
        let rate = throughput.segments * HZ / time.max(1);
        if (now - self.last_congestion) / self.min_rtt <= FRESH_ROUNDS {
            (throughput.smoothed, throughput.largest) = (rate, rate);
        } else {
            throughput.smoothed = (3 * throughput.smoothed + rate) / 4;
            throughput.largest = throughput.largest.max(throughput.smoothed);
        }
        (throughput.segments, throughput.since) = (0, now);
    }

    /// Updates `beta` (draft, section 2.2; Linux `htcp_beta_update`).
    fn update_beta(&mut self) {
        if self.config.use_bandwidth_switch {
            let (now, before) = (self.throughput.largest, self.throughput.largest_before);
            self.throughput.largest_before = now;
            if !(4 * before..=6 * before).contains(&(5 * now)) {
                self.beta = BETA_BOUNDS.0;
                self.mode_switch = false;
                return;
            }
        }
        if self.mode_switch && self.min_rtt > ticks_of(COARSE) && self.max_rtt > 0 {
            let ratio = (self.min_rtt << SHIFT) / self.max_rtt;
            self.beta = ratio.clamp(BETA_BOUNDS.0.into(), BETA_BOUNDS.1.into()) as u32;
        } else {
            self.beta = BETA_BOUNDS.0;
            self.mode_switch = true;
        }
    }

    /// Updates `alpha`: 1 + 10 (t - 1 s) + ((t - 1 s) / 2)², scaled by the RTT, times 2 (1 - beta) (draft, sections 2.1 and 2.3;
    /// Linux `htcp_alpha_update`).
    fn update_alpha(&mut self, now: u64) {
        let mut factor = 1;
        let elapsed = now - self.last_congestion;
        if elapsed > LOW_SPEED {
            let high = elapsed - LOW_SPEED;
            factor = 1 + (10 * high + (high / 2) * (high / 2) / HZ) / HZ;
        }
        if self.config.use_rtt_scaling && self.min_rtt > 0 {
            let scale = ((HZ << SCALE_SHIFT) / (10 * self.min_rtt)).clamp(SCALE_BOUNDS.0, SCALE_BOUNDS.1);
            factor = ((factor << SCALE_SHIFT) / scale).max(1);
        }
        let alpha = 2 * factor * u64::from(ONE - self.beta);
        self.alpha = u32::try_from(alpha).unwrap_or(u32::MAX);
    }

    /// Begins a congestion: the time since the last one counts from now, and the old values are saved for an undo (Linux
    /// `htcp_reset`).
    fn begin_congestion(&mut self, now: Time) {
        self.before = Some((self.last_congestion, self.max_rtt, self.throughput.largest_before));
        self.last_congestion = ticks(now);
    }
}

impl crate::windowed::Windowed for Htcp {
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
        let open = delivered.phase == Phase::Open;
        if open {
            self.acked = delivered.acked_segments;
        }
        if let Some(sample) = delivered.rtt.filter(|sample| !sample.rtt.is_zero()) {
            self.measure_rtt(ticks_of(sample.rtt), open);
        }
        if self.config.use_bandwidth_switch {
            let undisturbed = open || delivered.phase == Phase::Disorder;
            self.measure_throughput(delivered.acked_segments, ticks(delivered.now), undisturbed);
        }
    }

    /// Linux `htcp_cong_avoid`.
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        // The congestion has ended: the time since the last one counts from now (Linux `htcp_state`).
        if ack.phase == Phase::Open && self.before.take().is_some() {
            self.last_congestion = ticks(ack.now);
        }
        if !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let window = &mut self.window;
        if window.in_slow_start() {
            window.slow_start(ack.delivered_segments);
            return;
        }
        if (u64::from(window.cwnd_cnt) * u64::from(self.alpha)) >> SHIFT >= u64::from(window.cwnd) {
            window.cwnd = window.cwnd.saturating_add(1);
            window.cwnd_cnt = 0;
            self.update_alpha(ticks(ack.now));
        } else {
            window.cwnd_cnt = window.cwnd_cnt.saturating_add(self.acked);
        }
        self.acked = 1;
    }

    /// Linux `htcp_recalc_ssthresh`, `htcp_param_update`.
    fn ssthresh(&mut self, _: Signal, now: Time) -> u32 {
        self.update_beta();
        self.update_alpha(ticks(now));
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt) * MEMORY_PERCENT / 100;
        }
        let left = (u64::from(self.window.cwnd) * u64::from(self.beta)) >> SHIFT;
        (left as u32).max(MIN_THRESHOLD)
    }
    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        self.begin_congestion(congestion.now);
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.begin_congestion(timeout.now);
    }
    /// Linux `htcp_cwnd_undo`.
    fn on_undo(&mut self, _: Time) {
        if let Some((last_congestion, max_rtt, largest)) = self.before.take() {
            self.last_congestion = last_congestion;
            self.max_rtt = max_rtt;
            self.throughput.largest_before = largest;
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("alpha_segments", f64::from(self.alpha) / f64::from(ONE));
        report("beta", f64::from(self.beta) / f64::from(ONE));
        report("rtt_min_ms", (self.min_rtt * 1000 / HZ) as f64);
        report("rtt_max_ms", (self.max_rtt * 1000 / HZ) as f64);
        report("throughput_max_segments_per_s", self.throughput.largest as f64);
    }
}

#[cfg(test)]
mod tests;
