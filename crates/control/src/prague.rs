//! TCP Prague: DCTCP for the Internet. It sends ECT(1), needs counters of marks (RFC 9768), is paced, and keeps a fractional
//! window. Unmarked segments grow the window even during a reduction, a flow with a short round trip grows as slowly as one with a
//! longer round trip, and the response to a loss is Reno's. Source: draft-briscoe-iccrg-prague-congestion-control, and the L4S
//! team's Linux `net/ipv4/tcp_prague.c`, whose functions are named.
//!
//! Differences from that module: after a timeout slow start ends at half the old window (there at no threshold), the fractional
//! window is at least a segment (there it may be zero), and there is no detection of classic ECN queues (there it is off by
//! default). Without ECN there are no marks and Prague is a paced Reno; the kernel's then becomes Reno.

use crate::{
    Ack, Codepoint, Congestion, Controller, Feedback, NO_THRESHOLD, Phase, Recovery, Restart, Signal, Start,
    Timeout,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Random, Rate, Span, Time};

/// Parameters of Prague, named as the module parameters of `tcp_prague` without their prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How growth is made independent of the round trip.
    pub rtt_scaling: RttScaling,
    /// Target round trip: a flow with a shorter one behaves as if it had this one. 0 switches scaling off.
    pub rtt_target: Span,
    /// Number of rounds after slow start before growth is scaled: short flows keep the fast growth of their short round trip.
    pub rtt_transition: u32,
}

/// How growth is made independent of the round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttScaling {
    /// Not at all: one segment each round trip.
    None,
    /// Flows of a round trip up to the target get the same rate.
    Rate,
    /// Growth is scaled less on very short paths: the rate there is higher, but there is at least one mark in eight round trips.
    Scalable,
    /// The flow behaves as if its round trip were longer by the target.
    Additive,
}

impl Default for Config {
    fn default() -> Config {
        Config { rtt_scaling: RttScaling::Rate, rtt_target: Span::from_millis(25), rtt_transition: 500 }
    }
}

/// Binary places of the window and of the share of marks (Linux `CWND_UNIT`, `PRAGUE_ALPHA_BITS`).
const SHIFT: u32 = 20;
const ONE: u64 = 1 << SHIFT;
/// Weight of the newest round in the share of marks, a 16th (Linux `PRAGUE_SHIFT_G`).
const SHIFT_G: u32 = 4;
/// Steps of a reduction stop at this number of segments (Linux `MIN_CWND`).
const MIN_WINDOW: u32 = 2;
/// Growth is not scaled above this RTT in microseconds (Linux `MAX_SCALED_RTT`).
const LONGEST_SCALED: u64 = 100_000;
/// The knee and the smallest RTT of [`RttScaling::Scalable`], in microseconds: about 16 and 1.5 ms.
const SCALABLE: (u64, u64) = (1 << 14, (1 << 10) + (1 << 9));
/// Bytes of headers in addition to the payload: pacing counts whole packets (Linux `tcp_mss_to_mtu`).
const HEADERS: u64 = 20 + 20 + 12;
/// A train lasts at most 2^-12 s (Linux `prague_burst_shift`), but has at least two segments (`tcp_min_tso_segs`).
const BURST_SHIFT: u32 = 12;
const LEAST_BURST: u64 = 2;

/// A connection under Prague.
#[derive(Debug)]
pub(crate) struct Prague {
    config: Config,
    mss: u64,
    /// The fractional window in 2^-20 segments, and the window in segments, which follows it by one each acknowledgement.
    fraction: u64,
    cwnd: u32,
    ssthresh: u32,
    /// Smoothed share of marked segments, in 2^-20, times 16 so that no remainder is lost (Linux `upscaled_alpha`).
    alpha: u64,
    /// Whether there was a mark yet: until then the share stays at its initial value, one.
    saw_mark: bool,
    alpha_at: Time,
    reduced_at: Option<Time>,
    /// The round ends when this offset is acknowledged; `delivered` and `marked` are the round's segments.
    round_end: u64,
    delivered: u64,
    marked: u64,
    /// Rounds since slow start.
    rounds: u32,
    /// Growth for a whole window of unmarked segments, in 2^-20 segments.
    increase: u64,
    /// Whether recovery from a loss is under way.
    in_loss: bool,
    phase: Phase,
    /// `fraction`, `cwnd` and the threshold before the last loss; `None` after an undo.
    prior: Option<(u64, u32, u32)>,
    srtt: Option<Span>,
    pacing_rate: Option<Rate>,
}

impl Prague {
    pub(crate) fn new(config: &Config, start: &Start) -> Prague {
        let cwnd = start.initial_window.max(1);
        let mut prague = Prague {
            config: config.clone(),
            mss: start.mss.get().max(1),
            fraction: u64::from(cwnd) << SHIFT,
            cwnd,
            ssthresh: NO_THRESHOLD,
            alpha: ONE << SHIFT_G,
            saw_mark: false,
            alpha_at: start.now,
            reduced_at: None,
            round_end: 0,
            delivered: 0,
            marked: 0,
            rounds: 0,
            increase: ONE,
            in_loss: false,
            phase: Phase::Open,
            prior: None,
            srtt: start.rtt,
            pacing_rate: None,
        };
        prague.pace();
        prague
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The fractional window in whole segments, rounded up (Linux `prague_frac_cwnd_to_snd_cwnd`).
    fn whole(&self) -> u32 {
        u32::try_from(self.fraction.div_ceil(ONE)).map_or(u32::MAX, |n| n.max(1))
    }

    fn set_whole(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
        self.fraction = u64::from(cwnd) << SHIFT;
    }

    /// Whether growth is scaled now (Linux `prague_is_rtt_indep`).
    fn scales(&self) -> bool {
        self.config.rtt_scaling != RttScaling::None
            && !self.config.rtt_target.is_zero()
            && !self.in_slow_start()
            && self.rounds >= self.config.rtt_transition
    }

    /// The round trip as which a scaled flow behaves (Linux `prague_target_rtt`).
    fn target(&self) -> Span {
        match self.config.rtt_scaling {
            RttScaling::Additive => self.config.rtt_target + self.srtt.unwrap_or(Span::ZERO),
            _ => self.config.rtt_target,
        }
    }

    /// Updates `increase` (Linux `prague_ai_ack_increase`): a segment, or less if the round trip is shorter than the target, in
    /// proportion to its square, since rounds are more frequent and each segment is a larger part of the rate.
    fn update_increase(&mut self) {
        let rtt = self.srtt.map_or(0, |srtt| srtt.as_micros());
        self.increase = ONE;
        if rtt == 0 || rtt > LONGEST_SCALED || !self.scales() {
            return;
        }
        let target = self.target().as_micros();
        let scaled = |numerator: u64, divisor: u64| {
            let whole = u128::from(numerator) * u128::from(rtt) + u128::from(divisor / 2);
            u64::try_from(whole / u128::from(divisor.max(1))).unwrap_or(ONE)
        };
        self.increase = match self.config.rtt_scaling {
            RttScaling::Scalable => {
                let (knee, least) = SCALABLE;
                let slope = (ONE / 8) * knee + ONE * rtt.saturating_sub(least).min(knee);
                scaled(slope, knee * knee)
            }
            _ if rtt >= target => ONE,
            _ => scaled(rtt << SHIFT, target.saturating_mul(target)),
        };
    }

    /// Grows the fractional window for unmarked segments, and lets `cwnd` follow it (Linux `prague_update_cwnd`).
    fn update_window(&mut self, ack: &Ack) {
        self.saw_mark |= ack.ce_packets > 0;
        let mut unmarked = ack.delivered_segments.saturating_sub(ack.ce_packets);
        if unmarked > 0 && !self.in_loss && ack.cwnd_limited {
            if self.in_slow_start() {
                let cwnd = self.cwnd.saturating_add(unmarked).min(self.ssthresh);
                unmarked -= cwnd - self.cwnd;
                self.set_whole(cwnd);
                if unmarked == 0 {
                    self.update_increase();
                    return;
                }
            }
            let whole = u64::from(self.whole());
            let growth = (u64::from(unmarked) * self.increase + whole / 2) / whole;
            self.fraction = self.fraction.saturating_add(growth.max(unmarked.into()));
        }
        let whole = self.whole();
        if self.cwnd > whole && self.cwnd > MIN_WINDOW {
            self.cwnd -= 1;
            self.ssthresh = self.cwnd;
            self.update_increase();
        } else if self.cwnd < whole {
            self.cwnd += 1;
            self.update_increase();
        }
    }

    /// Updates the smoothed share of marks once a round trip, or once a target round trip if growth is scaled (Linux
    /// `prague_should_update_ewma`, `prague_update_alpha`).
    fn update_alpha(&mut self, ack: &Ack) {
        self.delivered += u64::from(ack.delivered_segments);
        self.marked += u64::from(ack.ce_packets);
        let too_early = self.scales() && ack.now.since(self.alpha_at) < self.target();
        if ack.acknowledged < self.round_end || too_early {
            return;
        }
        if self.saw_mark {
            let share = (self.marked << SHIFT) / self.delivered.max(1);
            self.alpha = (self.alpha - (self.alpha >> SHIFT_G) + share).min(ONE << SHIFT_G);
            self.alpha_at = ack.now;
        }
        self.round_end = ack.next_sequence;
        (self.delivered, self.marked) = (0, 0);
        if !self.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.update_increase();
    }

    /// Sets the pacing rate: a window per smoothed RTT, twice that early in slow start (Linux `prague_update_pacing_rate`).
    fn pace(&mut self) {
        let Some(srtt) = self.srtt.filter(|srtt| !srtt.is_zero()) else { return };
        let packet_bits = (self.mss + HEADERS) * 8;
        let doubled = if self.cwnd < self.ssthresh / 2 { 2 } else { 1 };
        let window = u128::from(self.fraction) * u128::from(packet_bits * doubled);
        let bits = ((window * 1_000_000_000 / u128::from(srtt.as_nanos())) + u128::from(ONE / 2)) >> SHIFT;
        self.pacing_rate = Some(Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX).max(8)));
    }

    /// Halves the fractional window for a loss (Linux `prague_enter_loss`).
    fn enter_loss(&mut self) {
        // Linux `tcp_current_ssthresh`.
        let remembered = match self.phase {
            Phase::Cwr | Phase::Recovery => self.ssthresh,
            _ => self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4),
        };
        self.prior = Some((self.fraction, self.cwnd, remembered));
        self.fraction = (self.fraction - self.fraction / 2).max(ONE);
        self.in_loss = true;
        self.update_increase();
    }

    /// Reduces the fractional window by half of the share of marks; a scaled flow does so once a target round trip (Linux
    /// `prague_enter_cwr`).
    fn enter_reduction(&mut self, now: Time) {
        let again = self.reduced_at.is_some_and(|at| now.since(at) < self.target());
        if self.scales() && again {
            return;
        }
        self.reduced_at = Some(now);
        let alpha = self.alpha >> SHIFT_G;
        let cut = (u128::from(alpha) * u128::from(self.fraction) + u128::from(ONE)) >> (SHIFT + 1);
        self.fraction = self.fraction.saturating_sub(cut as u64).max(ONE);
    }
}

impl Controller for Prague {
    /// Linux `prague_cong_control`.
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        self.srtt = ack.srtt.or(self.srtt);
        // A loss during a reduction for marks.
        if ack.phase == Phase::Recovery && self.phase == Phase::Cwr {
            self.enter_loss();
        }
        self.phase = ack.phase;
        self.in_loss &= ack.phase != Phase::Open;
        self.update_window(ack);
        self.update_alpha(ack);
        self.pace();
    }

    fn on_enter_recovery(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Loss => {
                self.enter_loss();
                self.phase = Phase::Recovery;
            }
            Signal::Ecn | Signal::Own | Signal::Refused => {
                self.enter_reduction(congestion.now);
                self.phase = Phase::Cwr;
            }
        }
    }
    /// Linux `prague_cwnd_undo`, `tcp_undo_cwnd_reduction`.
    fn on_undo(&mut self, _: Time) {
        if let Some((fraction, cwnd, ssthresh)) = self.prior.take() {
            self.fraction = self.fraction.max(fraction);
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
        self.in_loss = false;
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.reduce {
            self.enter_loss();
            self.ssthresh = self.whole().max(MIN_WINDOW);
        }
        // Slow start begins at once, as in Linux, where the window may grow in the state Loss.
        self.in_loss = false;
        self.phase = Phase::Loss;
        let in_flight = timeout.in_flight.get().div_ceil(self.mss);
        self.set_whole(u32::try_from(in_flight + 1).unwrap_or(u32::MAX));
        self.pace();
    }
    /// Linux does not inform controllers with their own recovery of an idle time; the window stays.
    fn on_restart(&mut self, _: &Restart) {}

    fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.get().max(1);
    }
    fn window(&self) -> Bytes {
        Bytes::new(u64::from(self.cwnd) * self.mss)
    }
    fn slow_start_threshold(&self) -> Option<Bytes> {
        Some(match self.ssthresh {
            NO_THRESHOLD => Bytes::new(u64::MAX),
            segments => Bytes::new(u64::from(segments) * self.mss),
        })
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }
    fn recovery(&self) -> Recovery {
        Recovery::Own
    }
    fn codepoint(&self) -> Codepoint {
        Codepoint::Ect1
    }
    fn feedback(&self) -> Feedback {
        Feedback::Accurate
    }
    fn send_quantum(&self) -> Option<Bytes> {
        let segments = self
            .pacing_rate
            .map_or(0, |rate| (rate.bits_per_sec() / 8 / (self.mss + HEADERS)) >> BURST_SHIFT);
        Some(Bytes::new(segments.max(LEAST_BURST).saturating_mul(self.mss)))
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("cwnd_segments", f64::from(self.cwnd));
        report("fractional_cwnd_segments", self.fraction as f64 / ONE as f64);
        report("alpha", (self.alpha >> SHIFT_G) as f64 / ONE as f64);
        report("increase_segments", self.increase as f64 / ONE as f64);
        report("rounds", f64::from(self.rounds));
    }
}

#[cfg(test)]
mod tests;
