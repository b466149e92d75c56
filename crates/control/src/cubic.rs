//! CUBIC: the window grows as a cubic function of the time since the last reduction, flat near the window of the last loss
//! (RFC 9438), in the integers of Linux 6.18 `net/ipv4/tcp_cubic.c`, with HyStart in slow start.
//!
//! Clock ticks are those of a kernel with `HZ` = 250, counted from the start of the run. Products that overflow 32 bits in the
//! kernel, from windows of a million segments on, have 64 bits here.

use crate::hystart::{Detect, HyStart};
use crate::hystart_plus_plus::HyStartPlusPlus;
use crate::jiffies::{HZ, ticks};
use crate::ranges::within;
use crate::{Ack, Restart, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Random, Span, Time};

/// Parameters of CUBIC, named as the module parameters of `tcp_cubic`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share of the window that remains after a loss, in 1/1024 (1 to 1023).
    #[serde(deserialize_with = "fraction")]
    #[schemars(range(min = 1, max = 1023))]
    pub beta: u32,
    /// Whether a flow whose windows at losses decrease lowers its plateau further, so that a new flow gets its share sooner.
    pub fast_convergence: bool,
    /// Whether the window grows at least as fast as Reno's.
    pub tcp_friendliness: bool,
    /// The constant C of the cubic function, in 1/1024 of 10 segments/s³ (1 to 1024): 41 is 0.4.
    #[serde(deserialize_with = "scale")]
    #[schemars(range(min = 1, max = 1024))]
    pub bic_scale: u32,
    /// Initial slow-start threshold in segments; 0 means none. It applies only if `hystart` is off.
    pub initial_ssthresh: u32,
    /// Whether HyStart may end slow start early.
    pub hystart: bool,
    /// What HyStart measures.
    pub hystart_detect: Detect,
    /// Window in segments below which HyStart does not end slow start.
    pub hystart_low_window: u32,
    /// Longest time between two acknowledgements of a train.
    pub hystart_ack_delta: Span,
    /// Whether HyStart++ (RFC 9406) may end the first slow start early; HyStart is then off. Linux does not have HyStart++.
    pub hystart_plus_plus: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            beta: 717,
            fast_convergence: true,
            tcp_friendliness: true,
            bic_scale: 41,
            initial_ssthresh: 0,
            hystart: true,
            hystart_detect: Detect::Both,
            hystart_low_window: 16,
            hystart_ack_delta: Span::from_millis(2),
            hystart_plus_plus: false,
        }
    }
}

fn fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "beta", 1..=BETA_SCALE - 1)
}
fn scale<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "bic_scale", 1..=BETA_SCALE)
}

/// Unit of `beta` (Linux `BICTCP_BETA_SCALE`).
const BETA_SCALE: u32 = 1024;
/// The cubic function's time is in 2^-10 s (Linux `BICTCP_HZ`).
const TIME_SHIFT: u32 = 10;
/// Largest `cnt` before the first loss: growth of at least 5 % each RTT (Linux `bictcp_update`).
const UNKNOWN_PATH_COUNT: u32 = 20;
/// Smallest `cnt`: the window grows by at most one segment for two acknowledged ones (Linux `bictcp_update`).
const MIN_COUNT: u32 = 2;
/// The smallest threshold in segments.
const MIN_THRESHOLD: u32 = 2;

/// A connection under CUBIC.
#[derive(Debug)]
pub(crate) struct Cubic {
    config: Config,
    window: Window,
    curve: Curve,
    hystart: HyStart,
    /// HyStart++ during the first slow start; `None` after it, or if it is off.
    hystart_plus_plus: Option<HyStartPlusPlus>,
    /// Acknowledged segments for which the Reno-friendly window grows by one, as a multiple of the window in 1/8 (Linux
    /// `beta_scale`).
    friendly_scale: u64,
    /// 2^40 / C for a 100 ms RTT (Linux `cube_factor`).
    cube_factor: u64,
    /// C for a 100 ms RTT (Linux `cube_rtt_scale`).
    cube_scale: u64,
}

/// The state that a timeout resets (Linux `struct bictcp`).
#[derive(Debug, Default)]
struct Curve {
    /// Acknowledged segments for which the window grows by one.
    cnt: u32,
    /// The window at the last loss, or less with fast convergence.
    last_max_cwnd: u32,
    /// The window, and the tick, when `cnt` was computed last.
    last_cwnd: u32,
    last_time: u64,
    /// The window at which the curve is flat.
    origin: u32,
    /// Time from the epoch's start to the origin, in 2^-10 s.
    k: u64,
    /// Smallest RTT in microseconds; 0 before the first sample.
    delay_min: u64,
    /// The tick in which this epoch began; `None` between a reduction and the next growth.
    epoch_start: Option<u64>,
    /// Acknowledged segments for which the Reno-friendly window has not yet grown.
    ack_cnt: u64,
    /// The Reno-friendly window.
    tcp_cwnd: u32,
}

impl Cubic {
    pub(crate) fn new(config: &Config, start: &Start) -> Cubic {
        let mut window = Window::new(start);
        let plus_plus = config.hystart_plus_plus;
        if !config.hystart && !plus_plus && config.initial_ssthresh > 0 {
            window.ssthresh = config.initial_ssthresh;
        }
        // A configuration that was not read from text may have values out of range.
        let beta = config.beta.clamp(1, BETA_SCALE - 1);
        let cube_scale = u64::from(config.bic_scale.clamp(1, BETA_SCALE)) * 10;
        Cubic {
            window,
            curve: Curve::default(),
            hystart: HyStart::new(
                config.hystart_detect,
                config.hystart_ack_delta,
                config.hystart_low_window,
                start,
            ),
            hystart_plus_plus: plus_plus.then(|| HyStartPlusPlus::new(start)),
            friendly_scale: u64::from(8 * (BETA_SCALE + beta) / 3 / (BETA_SCALE - beta)),
            cube_factor: (1 << (10 + 3 * TIME_SHIFT)) / cube_scale,
            cube_scale,
            config: Config { beta, hystart: config.hystart && !plus_plus, ..config.clone() },
        }
    }

    /// Takes the RTT sample (Linux `cubictcp_acked`).
    fn sample(&mut self, ack: &Ack) {
        let Some(sample) = ack.rtt else { return };
        // RTTs right after a reduction still include the queue before it.
        if self.curve.epoch_start.is_some_and(|start| ticks(ack.now).saturating_sub(start) < HZ) {
            return;
        }
        let rtt = sample.rtt.as_micros().max(1);
        if self.curve.delay_min == 0 || self.curve.delay_min > rtt {
            self.curve.delay_min = rtt;
        }
        if self.config.hystart
            && !self.hystart.found()
            && self.window.in_slow_start()
            && self.hystart.update(ack, rtt, self.curve.delay_min, &self.window)
        {
            self.window.ssthresh = self.window.cwnd;
        }
    }

    /// Computes `cnt` (Linux `bictcp_update`).
    fn update(&mut self, now: u64, acked: u32) {
        let cwnd = self.window.cwnd;
        let curve = &mut self.curve;
        curve.ack_cnt += u64::from(acked);
        if curve.last_cwnd == cwnd && now.saturating_sub(curve.last_time) <= HZ / 32 {
            return;
        }
        // `cnt` is computed at most once a tick, and always at an epoch's first acknowledgement.
        if curve.epoch_start.is_none() || now != curve.last_time {
            curve.last_cwnd = cwnd;
            curve.last_time = now;
            let start = match curve.epoch_start {
                Some(start) => start,
                None => curve.begin_epoch(now, acked, cwnd, self.cube_factor),
            };
            let target = curve.target(now.saturating_sub(start), self.cube_scale);
            curve.cnt = match target.checked_sub(cwnd) {
                None | Some(0) => cwnd.saturating_mul(100),
                Some(distance) => cwnd / distance,
            };
            if curve.last_max_cwnd == 0 {
                curve.cnt = curve.cnt.min(UNKNOWN_PATH_COUNT);
            }
        }
        if self.config.tcp_friendliness {
            curve.keep_up_with_reno(cwnd, self.friendly_scale);
        }
        curve.cnt = curve.cnt.max(MIN_COUNT);
    }

    /// Shifts the epoch by an idle time, so that it does not count on the curve (Linux `cubictcp_cwnd_event`).
    fn skip_idle(&mut self, now: Time, idle: Span) {
        if let Some(start) = &mut self.curve.epoch_start {
            *start = (*start + (ticks(now) - ticks(now - idle))).min(ticks(now));
        }
    }
}

impl Curve {
    /// Begins an epoch: sets the origin and the time to it. Returns the epoch's start.
    fn begin_epoch(&mut self, now: u64, acked: u32, cwnd: u32, cube_factor: u64) -> u64 {
        self.epoch_start = Some(now);
        self.ack_cnt = u64::from(acked);
        self.tcp_cwnd = cwnd;
        match self.last_max_cwnd.checked_sub(cwnd) {
            None | Some(0) => {
                self.k = 0;
                self.origin = cwnd;
            }
            Some(distance) => {
                self.k = u64::from(cubic_root(cube_factor.wrapping_mul(u64::from(distance))));
                self.origin = self.last_max_cwnd;
            }
        }
        now
    }

    /// The curve's window one RTT from now. It wraps as in the kernel, after 350 s in one epoch.
    fn target(&self, elapsed: u64, cube_scale: u64) -> u32 {
        let rtt = self.delay_min.div_ceil(1_000_000 / HZ);
        let t = ((elapsed + rtt) << TIME_SHIFT) / HZ;
        let offset = t.abs_diff(self.k);
        let cube = cube_scale.wrapping_mul(offset).wrapping_mul(offset).wrapping_mul(offset);
        let delta = (cube >> (10 + 3 * TIME_SHIFT)) as u32;
        if t < self.k { self.origin.wrapping_sub(delta) } else { self.origin.wrapping_add(delta) }
    }

    /// Lowers `cnt` so that the window grows at least as fast as the Reno-friendly window (RFC 9438, section 4.3).
    fn keep_up_with_reno(&mut self, cwnd: u32, scale: u64) {
        let step = ((u64::from(cwnd) * scale) >> 3).max(1);
        if self.ack_cnt > step {
            // One segment for each whole step, while more than one step is left.
            let grown = (self.ack_cnt - 1) / step;
            self.ack_cnt -= grown * step;
            self.tcp_cwnd = self.tcp_cwnd.saturating_add(u32::try_from(grown).unwrap_or(u32::MAX));
        }
        if let Some(ahead) = self.tcp_cwnd.checked_sub(cwnd).filter(|&ahead| ahead > 0) {
            self.cnt = self.cnt.min(cwnd / ahead);
        }
    }
}

impl crate::windowed::Windowed for Cubic {
    fn base(&self) -> &Window {
        &self.window
    }
    fn base_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    #[inline(always)]
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        self.sample(ack);
        self.hystart.after_ack(ack);
        if let Some(hystart) = &mut self.hystart_plus_plus {
            hystart.watch(ack, &mut self.window);
        }
        if !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let mut delivered = ack.delivered_segments;
        if self.window.in_slow_start() {
            delivered = match &mut self.hystart_plus_plus {
                Some(hystart) => hystart.slow_start(&mut self.window, delivered),
                None => self.window.slow_start(delivered),
            };
            if delivered == 0 {
                return;
            }
        }
        self.update(ticks(ack.now), delivered);
        self.window.additive_increase(self.curve.cnt, delivered);
    }

    /// The threshold after a loss or a mark; ends the epoch (Linux `cubictcp_recalc_ssthresh`). An undo restores the window but not
    /// the curve: as in the kernel, `last_max_cwnd` stays lowered.
    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.hystart_plus_plus = None;
        let cwnd = self.window.cwnd;
        let scaled = |numerator: u32, denominator: u32| {
            // At most `cwnd`, since the numerator is never larger than the denominator.
            (u64::from(cwnd) * u64::from(numerator) / u64::from(denominator)) as u32
        };
        let beta = self.config.beta;
        self.curve.epoch_start = None;
        self.curve.last_max_cwnd = if cwnd < self.curve.last_max_cwnd && self.config.fast_convergence {
            scaled(BETA_SCALE + beta, 2 * BETA_SCALE)
        } else {
            cwnd
        };
        scaled(beta, BETA_SCALE).max(MIN_THRESHOLD)
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.curve = Curve::default();
        self.hystart.reset(timeout.now, timeout.next_sequence);
        self.hystart_plus_plus = None;
    }
    fn on_restart(&mut self, restart: &Restart) {
        if let Restart::Transmit { now, idle, .. } = *restart {
            self.skip_idle(now, idle);
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cnt", f64::from(self.curve.cnt));
        report("w_max_segments", f64::from(self.curve.last_max_cwnd));
        report("origin_segments", f64::from(self.curve.origin));
        report("k_s", self.curve.k as f64 / f64::from(1u32 << TIME_SHIFT));
        if let Some(start) = self.curve.epoch_start {
            report("epoch_start_s", start as f64 / HZ as f64);
        }
        report("reno_segments", f64::from(self.curve.tcp_cwnd));
        report("delay_min_ms", self.curve.delay_min as f64 / 1e3);
        report("hystart_found", f64::from(u8::from(self.hystart.found())));
        if let Some(hystart) = &self.hystart_plus_plus {
            hystart.describe(report);
        }
    }
}

/// Cube roots of the leading bits, times 64 and refined by hand (W. Tarreau; Linux `cubic_root`).
#[rustfmt::skip]
const ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// A cube root by table and one Newton step, with a mean error of 0.2 % (Linux `cubic_root`).
fn cubic_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (u32::from(ROOTS[a as usize]) + 35) >> 6;
    }
    // A third of the bits, so that at most six bits remain above the shift.
    let shift = ((bits * 84) >> 8) - 1;
    let lead = u64::from(ROOTS[(a >> (shift * 3)) as usize]);
    let estimate = ((lead + 10) << shift) >> 6;
    // Newton's step, with 341/1024 as a third.
    let thrice = 2 * estimate + a / (estimate * (estimate - 1));
    ((thrice * 341) >> 10) as u32
}

#[cfg(test)]
mod tests;
