//! TCP Nice: Vegas that halves its window when, in a round trip, more RTTs than half of the window are above a fifth of their range,
//! and that can use a window below one segment. Source: Venkataramani, Kokku and Dahlin, "TCP Nice: A Mechanism for Background
//! Transfers" (OSDI 2002), and the listing in appendix A.2 of K. Ong, "Evaluation and Optimisation of Less-than-Best-Effort TCP
//! Congestion Control Mechanisms" (Murdoch University, 2020); values that the listing leaves out are those of its author's Linux
//! module. [`Reading`] chooses where they differ.
//!
//! With a window below one segment two segments leave at once, since a receiver acknowledges every second one, and then none for a
//! number of round trips. The listing counts these round trips by arriving acknowledgements, with a window of 0 in between: once
//! both segments are acknowledged, perhaps by one acknowledgement, no more arrive and the connection stalls. Here they are
//! counted in time, as both texts intend. The listing tests the bound on these round trips before it multiplies them, so that they
//! can exceed the bound and never decrease again; here the bound always holds.

use crate::reading::Reading;
use crate::rtt_rounds::RttRounds;
use crate::{Ack, Congestion, Restart, Signal, Start, Timeout, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Random, Time};

/// Parameters of Nice, named as in the thesis and in Linux `tcp_vegas`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The window grows while fewer segments than this are in the queue.
    pub alpha: u32,
    /// The window shrinks while more segments than this are in the queue.
    pub beta: u32,
    /// Slow start ends when more segments than this are in the queue.
    pub gamma: u32,
    /// Share of the RTT's range, in percent, above which an RTT is a sign of congestion.
    pub threshold: u32,
    /// The window is halved if a round trip has more such signs than the window divided by this; 0 counts as 1.
    pub fraction_divisor: u32,
    /// Maximum number of round trips between pairs of segments while the window is below one segment: 96 are a window of 1/48.
    pub max_fwnd: u32,
    /// Width of the counter of signs in a round trip, 8 or 32 bits. With 8 bits, as in the module, a window of 512 segments or more is
    /// never halved.
    pub counter_bits: CounterBits,
    /// Which source is followed where they differ. The article: the largest RTT is that of the connection; additive increase follows
    /// a halving; a window below one segment is halved too, and a single RTT is enough for a decision there. The listing: the
    /// largest RTT is that of the round; slow start follows a halving, up to the threshold; below one segment a halving multiplies
    /// the round trips between pairs of segments by four, a step down adds two, and a step up subtracts two.
    pub reading: Reading,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            alpha: 1,
            beta: 3,
            gamma: 1,
            threshold: 20,
            fraction_divisor: 2,
            max_fwnd: 96,
            counter_bits: CounterBits::Eight,
            reading: Reading::Listing,
        }
    }
}

/// The width of a counter in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum CounterBits {
    /// 8 bits: the counter wraps to 0 after 255.
    Eight,
    /// 32 bits: the counter does not wrap.
    ThirtyTwo,
}

impl TryFrom<u8> for CounterBits {
    type Error = String;
    fn try_from(bits: u8) -> Result<CounterBits, String> {
        match bits {
            8 => Ok(CounterBits::Eight),
            32 => Ok(CounterBits::ThirtyTwo),
            _ => Err(format!("counter_bits is {bits}, expected 8 or 32")),
        }
    }
}

impl From<CounterBits> for u8 {
    fn from(bits: CounterBits) -> u8 {
        match bits {
            CounterBits::Eight => 8,
            CounterBits::ThirtyTwo => 32,
        }
    }
}

impl JsonSchema for CounterBits {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CounterBits".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": [8, 32] })
    }
}

/// The smallest window that is not below one segment (listing: two, so that a receiver that delays acknowledgements sends one).
const MIN_WINDOW: u32 = 2;
/// The value of `fwnd` for a window that is not below one segment: two segments each two round trips.
const NOT_BELOW: u32 = 2;
/// Segments that leave at once if the window is below one segment.
const TOGETHER: u64 = 2;

/// A connection under Nice.
#[derive(Debug)]
pub(crate) struct Nice {
    config: Config,
    window: Window,
    rounds: RttRounds,
    /// Largest RTT in microseconds, at least twice the smallest.
    most: u64,
    /// Number of RTTs of this round that were a sign of congestion.
    signs: u32,
    /// Round trips between pairs of segments; [`NOT_BELOW`] while the window is not below one segment (`fractional_cwnd`).
    fwnd: u32,
    /// Segments in the queue at the last decision.
    queued: u32,
}

impl Nice {
    pub(crate) fn new(config: &Config, start: &Start) -> Nice {
        Nice {
            config: config.clone(),
            window: Window::new(start),
            rounds: RttRounds::new(),
            most: 0,
            signs: 0,
            fwnd: NOT_BELOW,
            queued: 0,
        }
    }

    fn by_paper(&self) -> bool {
        self.config.reading == Reading::Paper
    }

    /// Takes the RTT of an acknowledgement, if it has one.
    fn sample(&mut self, ack: &Ack) {
        let first = self.rounds.count == 0;
        let Some(rtt) = self.rounds.sample(ack) else { return };
        if first && !self.by_paper() {
            self.most = 0;
        }
        self.most = self.most.max(rtt).max(self.rounds.base.saturating_mul(2));
        let percent = u64::from(self.config.threshold.min(100));
        let limit = (100 - percent)
            .saturating_mul(self.rounds.base)
            .saturating_add(percent.saturating_mul(self.most));
        if rtt > limit / 100 {
            self.signs = match self.config.counter_bits {
                CounterBits::Eight => (self.signs + 1) % 256,
                CounterBits::ThirtyTwo => self.signs.saturating_add(1),
            };
        }
    }

    fn begin_round(&mut self, ack: &Ack) {
        self.rounds.begin(ack);
        self.signs = 0;
    }

    /// Whether a round has too few RTTs for a decision. In the article one RTT is enough if the window is at most `MIN_WINDOW`.
    fn few(&self) -> bool {
        let any = self.by_paper() && self.window.cwnd <= MIN_WINDOW && self.rounds.count > 0;
        self.rounds.few() && !any
    }

    /// The decision of a round.
    fn judge(&mut self, ack: &Ack) {
        let (target, queued) = self.rounds.target_and_queue(self.window.cwnd);
        self.queued = queued;
        let window = &mut self.window;
        if window.in_slow_start() {
            if queued > self.config.gamma {
                window.cwnd = window.cwnd.min(target.saturating_add(1));
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else {
                window.slow_start(ack.delivered_segments);
            }
        } else if self.signs > window.cwnd / self.config.fraction_divisor.max(1) {
            self.halve();
        } else if queued > self.config.beta {
            self.step_down();
        } else if queued < self.config.alpha {
            self.step_up();
        }
        let floor = if self.by_paper() { 1 } else { MIN_WINDOW };
        self.window.cwnd = self.window.cwnd.max(floor);
        self.window.ssthresh = self.window.remembered_threshold();
    }

    fn halve(&mut self) {
        let above = self.fwnd == NOT_BELOW;
        if self.by_paper() {
            if self.window.cwnd > 1 {
                self.window.cwnd /= 2;
                self.window.ssthresh = self.window.cwnd;
            } else {
                self.spread(self.fwnd * 2);
            }
        } else if above && self.window.cwnd > MIN_WINDOW {
            self.window.cwnd /= 2;
        } else {
            self.spread(self.fwnd * 4);
        }
    }

    fn step_down(&mut self) {
        let least = if self.by_paper() { 1 } else { MIN_WINDOW };
        if self.fwnd == NOT_BELOW && self.window.cwnd > least {
            self.window.cwnd -= 1;
        } else if !self.by_paper() {
            self.spread(self.fwnd + 2);
        }
        self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
    }

    fn step_up(&mut self) {
        if self.fwnd == NOT_BELOW {
            self.window.cwnd = self.window.cwnd.saturating_add(1);
        } else if self.by_paper() {
            // A fraction of a segment plus one: at least one segment.
            self.fwnd = NOT_BELOW;
        } else {
            self.spread(self.fwnd - 2);
        }
    }

    fn spread(&mut self, round_trips: u32) {
        self.fwnd = round_trips.clamp(NOT_BELOW, self.config.max_fwnd.max(NOT_BELOW));
    }

    /// Grows as Reno does. With a window below one segment, each segment of growth subtracts two round trips from `fwnd` instead.
    fn grow_as_reno(&mut self, ack: &Ack) {
        if self.fwnd == NOT_BELOW {
            self.window.reno(ack);
        } else if self.by_paper() {
            self.step_up();
        } else {
            let (cwnd, cwnd_cnt) = (self.window.cwnd, self.window.cwnd_cnt);
            self.window.reno(ack);
            let grown = self.window.cwnd - cwnd;
            self.spread(self.fwnd.saturating_sub(grown.saturating_mul(2)));
            if self.fwnd > NOT_BELOW {
                (self.window.cwnd, self.window.cwnd_cnt) = (cwnd, cwnd_cnt);
            }
        }
    }
}

impl crate::windowed::Windowed for Nice {
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
        self.sample(ack);
        let judging = self.rounds.judging(ack);
        if !ack.may_grow {
            return;
        }
        if !judging {
            self.grow_as_reno(ack);
        } else if self.rounds.ends(ack) {
            if self.few() {
                self.grow_as_reno(ack);
            } else {
                self.judge(ack);
            }
            self.begin_round(ack);
        } else if self.window.in_slow_start() {
            self.window.slow_start(ack.delivered_segments);
        }
    }

    fn window(&self) -> Bytes {
        if self.fwnd <= NOT_BELOW {
            return self.window.bytes();
        }
        let segments = TOGETHER * self.window.mss().get();
        Bytes::new((segments / u64::from(self.fwnd)).max(1))
    }
    fn send_quantum(&self) -> Option<Bytes> {
        (self.fwnd > NOT_BELOW).then(|| Bytes::new(TOGETHER * self.window.mss().get()))
    }

    fn ssthresh(&mut self, _: Signal, _: Time) -> u32 {
        self.window.halved()
    }
    fn on_enter_recovery(&mut self, _: &Congestion) {
        self.rounds.disturbed();
    }
    fn on_timeout(&mut self, _: &Timeout) {
        self.rounds.disturbed();
    }
    fn on_restart(&mut self, restart: &Restart) {
        let base = self.rounds.base;
        self.rounds.restart(restart);
        if self.by_paper() {
            // In the article the smallest RTT is that of the connection.
            self.rounds.base = base;
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rtt_base_ms", self.rounds.base_millis());
        report("queued_segments", f64::from(self.queued));
        report("congestion_signs", f64::from(self.signs));
        report("round_trips_for_two", f64::from(self.fwnd));
    }
}

#[cfg(test)]
mod tests;
