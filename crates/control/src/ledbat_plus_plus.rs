//! LEDBAT++: steers the round trip's queuing delay to a target of 60 ms, grows slower than Reno on short paths, and slows down
//! periodically so that the base delay can be measured. Source: draft-irtf-iccrg-ledbat-plus-plus, sections 4.1 to 4.5. Choices
//! that the draft leaves open are those of XNU's `tcp_ledbat.c`: the gain applies in every slow start, the window is cut once a
//! window, and every slow start but the first ends at the target.
//!
//! One difference: below the target the window grows by the gain, as section 4.2 says, and not by the formula of section 4.3 with
//! its sign reversed. The response to losses is Reno's.

use crate::ledbat_delay::DelayFilter;
use crate::ranges::within;
use crate::{Ack, Signal, Start, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weir_base::{Random, Span, Time};

/// Parameters of LEDBAT++, named as in the draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Target queuing delay.
    pub target: Span,
    /// Factor of the cut when the delay is above the target (1 to 16): the window is cut by this times the relative excess.
    #[serde(deserialize_with = "constant")]
    #[schemars(range(min = 1, max = 16))]
    pub constant: u32,
    /// Largest factor by which the window grows slower than Reno's (1 to 1000); it is reached if the base RTT is short compared
    /// with the target.
    #[serde(deserialize_with = "max_slower")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_slower: u32,
    /// Initial window in segments, if the lab's is not smaller; 0 counts as 1.
    pub initial_window: u32,
    /// The smallest window in segments, also during a slowdown; 0 counts as 1.
    pub min_cwnd: u32,
    /// Number of minutes whose smallest RTT is the base RTT; 0 counts as 1.
    pub base_history: u32,
    /// Number of newest RTT samples whose smallest is the current RTT; 0 counts as 1.
    pub current_filter: u32,
    /// Whether there are periodic slowdowns.
    pub slowdowns: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            target: Span::from_millis(60),
            constant: 1,
            max_slower: 16,
            initial_window: 2,
            min_cwnd: 2,
            base_history: 10,
            current_filter: 4,
            slowdowns: true,
        }
    }
}

fn constant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "constant", 1..=16)
}
fn max_slower<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, "max_slower", 1..=1000)
}

/// Round trips for which a slowdown holds the smallest window, and from the end of the first slow start to the first slowdown.
const HELD_ROUND_TRIPS: u64 = 2;
/// The time to the next slowdown, as a multiple of the last one's: slowdowns take at most a tenth of the time.
const PAUSE: u64 = 9;

/// The state of the slowdowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slowdown {
    /// The first slow start has not ended.
    NotYet,
    /// The next slowdown begins at this time.
    Due(Time),
    /// The window is held at the smallest until a time; slow start then takes it back to `back_to` segments.
    Held { began: Time, until: Time, back_to: u32 },
    /// Slow start takes the window back.
    Ramp { began: Time },
}

/// A connection under LEDBAT++.
#[derive(Debug)]
pub(crate) struct LedbatPlusPlus {
    config: Config,
    window: Window,
    /// RTTs in microseconds.
    delay: DelayFilter,
    slowdown: Slowdown,
    slowdowns: u32,
    /// Segments delivered in slow start for which the window has not yet grown.
    started: u32,
    /// Segments delivered while the delay was above the target, since the last cut.
    over: u32,
}

impl LedbatPlusPlus {
    pub(crate) fn new(config: &Config, start: &Start) -> LedbatPlusPlus {
        let initial_window = config.initial_window.min(start.initial_window);
        LedbatPlusPlus {
            window: Window::new(&Start { initial_window, ..*start }),
            delay: DelayFilter::new(config.base_history, config.current_filter),
            config: config.clone(),
            slowdown: Slowdown::NotYet,
            slowdowns: 0,
            started: 0,
            over: 0,
        }
    }

    fn target(&self) -> i64 {
        i64::try_from(self.config.target.as_micros()).unwrap_or(i64::MAX).max(1)
    }
    fn min_cwnd(&self) -> u32 {
        self.config.min_cwnd.max(1)
    }

    /// The factor by which the window grows slower than Reno's: 1 / GAIN = min(16, ceil(2 * target / base)) (section 4.2).
    fn slower(&self) -> u32 {
        let twice = u64::try_from(self.target()).unwrap_or(u64::MAX).saturating_mul(2);
        let base = u64::try_from(self.delay.base()).unwrap_or(0).max(1);
        u32::try_from(twice.div_ceil(base)).unwrap_or(u32::MAX).clamp(1, self.config.max_slower.max(1))
    }

    /// Slow start with the gain (section 4.1). The first ends at three quarters of the target, later ones at the target.
    fn start(&mut self, delivered: u32) {
        let first = self.slowdown == Slowdown::NotYet;
        let most = if first { self.target() / 4 * 3 } else { self.target() };
        if self.delay.queuing() > most {
            self.window.ssthresh = self.window.cwnd;
            return;
        }
        let slower = self.slower();
        self.started = self.started.saturating_add(delivered);
        self.window.slow_start(self.started / slower);
        self.started %= slower;
    }

    /// Congestion avoidance (section 4.3): up to the target one more segment each `1 / GAIN` windows; above it, once a window, a cut by
    /// the relative excess of the delay, at most by half.
    fn avoid(&mut self, delivered: u32) {
        let (target, excess) = (self.target(), self.delay.queuing() - self.target());
        let slower = self.slower();
        if excess <= 0 {
            self.window.additive_increase(self.window.cwnd.saturating_mul(slower), delivered);
            return;
        }
        self.over = self.over.saturating_add(delivered);
        if self.over < self.window.cwnd {
            return;
        }
        self.over = 0;
        let (cwnd, slower) = (i64::from(self.window.cwnd), i64::from(slower));
        let excess = excess.saturating_mul(cwnd * i64::from(self.config.constant)).saturating_mul(slower);
        let cut = excess.saturating_sub(target) / target.saturating_mul(slower);
        let left = cwnd - cut.clamp(0, cwnd / 2);
        self.window.cwnd = (left as u32).max(self.min_cwnd());
        self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
    }

    /// Begins and ends slowdowns (section 4.4); returns whether the window is held.
    fn holds(&mut self, now: Time, srtt: Span) -> bool {
        match self.slowdown {
            Slowdown::NotYet if !self.window.in_slow_start() && self.config.slowdowns => {
                self.slowdown = Slowdown::Due(now + srtt * HELD_ROUND_TRIPS);
            }
            Slowdown::Due(due) if now >= due => {
                let (until, back_to) = (now + srtt * HELD_ROUND_TRIPS, self.window.cwnd);
                self.slowdown = Slowdown::Held { began: now, until, back_to };
                self.slowdowns = self.slowdowns.saturating_add(1);
                self.window.cwnd = self.window.cwnd.min(self.min_cwnd());
                self.window.ssthresh = self.window.cwnd;
                (self.started, self.over) = (0, 0);
            }
            Slowdown::Held { began, until, back_to } if now >= until => {
                self.window.ssthresh = back_to.max(self.window.cwnd);
                self.slowdown = Slowdown::Ramp { began };
            }
            Slowdown::Ramp { began } if !self.window.in_slow_start() => {
                self.slowdown = Slowdown::Due(now + now.since(began) * PAUSE);
            }
            _ => {}
        }
        matches!(self.slowdown, Slowdown::Held { .. })
    }
}

impl crate::windowed::Windowed for LedbatPlusPlus {
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
        if let Some(sample) = ack.rtt {
            self.delay.update(sample.rtt.as_micros() as i64, ack.now);
        }
        if !ack.may_grow || self.holds(ack.now, ack.srtt.unwrap_or(Span::ZERO)) || !ack.cwnd_limited {
            return;
        }
        if self.window.in_slow_start() {
            self.start(ack.delivered_segments);
        } else {
            self.avoid(ack.delivered_segments);
        }
    }

    /// Half of the window; during a slowdown, the window to come back to is halved too.
    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        (self.started, self.over) = (0, 0);
        if let Slowdown::Held { back_to, .. } = &mut self.slowdown {
            *back_to /= 2;
        }
        self.window.halved()
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("queuing_delay_ms", self.delay.queuing() as f64 / 1e3);
        report("gain", 1.0 / f64::from(self.slower()));
        report("slowdowns", f64::from(self.slowdowns));
    }
}

#[cfg(test)]
mod tests;
