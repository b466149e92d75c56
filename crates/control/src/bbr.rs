//! BBR, version 1: a model of the path, which is the largest recent delivery rate and the smallest recent RTT, sets the pacing
//! rate and the window. Source: Cardwell et al., "BBR: Congestion-Based Congestion Control" (2016), in the integers of Linux 6.18
//! `net/ipv4/tcp_bbr.c`, whose functions are named at each method.
//!
//! As in the kernel, rates are segments per microsecond times 2^24, gains are in 1/256, and coarse times in ticks of 4 ms. Sums
//! that wrap at 32 or 64 bits in the kernel are wider or saturate here.

mod aggregation;
mod long_term;
mod mode;

use crate::jiffies::ticks;
use crate::{
    Ack, Congestion, Controller, NO_THRESHOLD, Phase, RateSample, Recovery, Restart, Start, Timeout,
};
use aggregation::Aggregation;
use long_term::{LongTerm, Progress, Verdict};
use mode::{CYCLE, FullPipe, Mode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Random, Rate, Span, Time, WindowedMax};

/// Parameters of BBR: none, as in Linux.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// Binary places of a rate (Linux `BW_SCALE`).
const RATE_SHIFT: u32 = 24;
/// Binary places of a gain (Linux `BBR_SCALE`), and a gain of one.
const GAIN_SHIFT: u32 = 8;
const ONE: u64 = 1 << GAIN_SHIFT;
/// 2/ln 2, the smallest gain that doubles the rate each round (Linux `bbr_high_gain`), and its inverse (`bbr_drain_gain`).
const HIGH_GAIN: u64 = ONE * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = ONE * 1000 / 2885;
/// The window in BDP once the path is known (Linux `bbr_cwnd_gain`).
const WINDOW_GAIN: u64 = 2 * ONE;
/// Number of phases among which the first of a cycle is drawn (Linux `bbr_cycle_rand`).
const CYCLE_CHOICES: u64 = 7;
/// Number of rounds whose largest rate is the model's (Linux `bbr_bw_rtts`).
const RATE_ROUNDS: u64 = CYCLE.len() as u64 + 2;
/// The smallest window (Linux `bbr_cwnd_min_target`).
const MIN_WINDOW: u32 = 4;
/// The window in segments before an RTT is known; the window may always grow until as many segments are delivered (Linux
/// `TCP_INIT_CWND`).
const INITIAL_WINDOW: u32 = 10;
/// The pacing rate is this much below the model's, in percent (Linux `bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;
/// Pacing rate in bytes/s below which segments leave one by one (Linux `bbr_min_tso_rate`).
const SINGLE_SEGMENT_RATE: u64 = 1_200_000 / 8;
/// A train holds the data of 2^-10 s (Linux `sk_pacing_shift`), at most 64 KiB less headers and 127 segments.
const TRAIN_SHIFT: u32 = 10;
const LARGEST_TRAIN: u64 = 65_536 - 321;
const MOST_SEGMENTS: u64 = 0x7f;
/// RTT in microseconds for the first pacing rate if none was measured.
const NOMINAL_RTT: u64 = 1_000;

/// A connection under BBR.
#[derive(Debug)]
pub(crate) struct Bbr {
    mss: u64,
    mode: Mode,
    cwnd: u32,
    ssthresh: u32,
    /// The window before recovery or ProbeRTT.
    prior_cwnd: u32,
    /// Largest delivery rate; the filter's clock counts a round as a nanosecond.
    rate: WindowedMax<u64>,
    rounds: u64,
    /// The round ends with data that was sent when this many segments had been delivered.
    next_round: u64,
    round_start: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
    full: FullPipe,
    /// Smallest RTT in microseconds, and the tick in which it was measured.
    min_rtt: Option<u64>,
    min_rtt_at: u64,
    /// The tick after which ProbeRTT ends, set once the flight is small enough, and whether a round has passed since then.
    probe_rtt_end: Option<u64>,
    probe_rtt_round: bool,
    /// Whether the rate is reduced on purpose, so that rate samples do not measure the path.
    holding_back: bool,
    pacing_gain: u64,
    window_gain: u64,
    cycle_phase: usize,
    cycle_at: Time,
    /// The phase in which the next cycle begins; drawn in advance, since not every hook has a random stream.
    drawn: Option<u64>,
    /// The sender's phase at the last acknowledgement.
    phase: Phase,
    packet_conservation: bool,
    idle_restart: bool,
    /// Pacing rate in bytes per second, and its train in segments.
    pacing_rate: u64,
    train: u32,
    srtt: Option<Span>,
    has_seen_rtt: bool,
    progress: Progress,
}

impl Bbr {
    pub(crate) fn new(_: &Config, start: &Start) -> Bbr {
        let progress = Progress { delivered: 1, lost: 0, delivered_at: start.now };
        let mut bbr = Bbr {
            mss: start.mss.get().max(1),
            mode: Mode::Startup,
            cwnd: start.initial_window.max(1),
            ssthresh: NO_THRESHOLD,
            prior_cwnd: 0,
            rate: WindowedMax::new(),
            rounds: 0,
            next_round: 0,
            round_start: false,
            long_term: LongTerm::new(&progress),
            aggregation: Aggregation::new(start.now),
            full: FullPipe::default(),
            min_rtt: start.rtt.map(|rtt| rtt.as_micros().max(1)),
            min_rtt_at: ticks(start.now),
            probe_rtt_end: None,
            probe_rtt_round: false,
            holding_back: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            cycle_phase: 0,
            cycle_at: Time::ZERO,
            drawn: None,
            phase: Phase::Open,
            packet_conservation: false,
            idle_restart: false,
            pacing_rate: 0,
            train: 1,
            srtt: start.rtt,
            has_seen_rtt: false,
            progress,
        };
        bbr.pace_from_rtt();
        bbr
    }

    /// The largest rate of the last rounds (Linux `bbr_max_bw`).
    fn largest_rate(&self) -> u64 {
        self.rate.value().unwrap_or(0)
    }

    /// The model's rate (Linux `bbr_bw`).
    fn model_rate(&self) -> u64 {
        self.long_term.rate().unwrap_or_else(|| self.largest_rate())
    }

    /// Sets the first pacing rate: a window per RTT, times the high gain (Linux `bbr_init_pacing_rate_from_rtt`).
    fn pace_from_rtt(&mut self) {
        let rtt = self.srtt.map(|srtt| srtt.as_micros().max(1));
        self.has_seen_rtt = rtt.is_some();
        let rate = (u64::from(self.cwnd) << RATE_SHIFT) / rtt.unwrap_or(NOMINAL_RTT);
        self.pace(pacing_rate(rate, self.mss, HIGH_GAIN));
    }

    /// Linux `bbr_set_pacing_rate`.
    fn set_pacing_rate(&mut self, rate: u64, gain: u64) {
        let rate = pacing_rate(rate, self.mss, gain);
        if !self.has_seen_rtt && self.srtt.is_some() {
            self.pace_from_rtt();
        }
        if self.full.reached || rate > self.pacing_rate {
            self.pace(rate);
        }
    }

    fn pace(&mut self, rate: u64) {
        if rate == self.pacing_rate {
            return;
        }
        self.pacing_rate = rate;
        let train = (rate >> TRAIN_SHIFT).min(LARGEST_TRAIN) / self.mss;
        self.train = train.max(self.least_train().into()).min(MOST_SEGMENTS) as u32;
    }

    /// Linux `bbr_min_tso_segs`.
    fn least_train(&self) -> u32 {
        if self.pacing_rate < SINGLE_SEGMENT_RATE { 1 } else { 2 }
    }

    /// Saves the window for the end of recovery or ProbeRTT (Linux `bbr_save_cwnd`).
    fn save_window(&mut self) {
        self.prior_cwnd = if recovering(self.phase) || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// `gain` bandwidth-delay products in segments, rounded up (Linux `bbr_bdp`).
    fn bdp(&self, rate: u64, gain: u64) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_WINDOW };
        let scaled = rate.saturating_mul(min_rtt).saturating_mul(gain) >> GAIN_SHIFT;
        let segments = scaled.saturating_add((1 << RATE_SHIFT) - 1) >> RATE_SHIFT;
        u32::try_from(segments).unwrap_or(u32::MAX)
    }

    /// A window plus room for trains at both hosts, rounded up to an even number, and two more segments in the phase that must
    /// exceed the BDP (Linux `bbr_quantization_budget`).
    fn with_trains(&self, window: u32) -> u32 {
        let window = window.saturating_add(3 * self.train).saturating_add(1) & !1;
        let probing = self.mode == Mode::ProbeBw && self.cycle_phase == 0;
        if probing { window.saturating_add(2) } else { window }
    }

    /// Linux `bbr_inflight`.
    fn inflight(&self, rate: u64, gain: u64) -> u32 {
        self.with_trains(self.bdp(rate, gain))
    }

    /// The segments that will be in the network when the pacer releases the next train (Linux `bbr_packets_in_net_at_edt`).
    fn in_network(&self, in_flight: u32, ack: &Ack) -> u32 {
        let wait = ack.departure.since(ack.now).as_micros();
        let delivered = self.model_rate().saturating_mul(wait) >> RATE_SHIFT;
        let then = if self.pacing_gain > ONE { in_flight.saturating_add(self.train) } else { in_flight };
        u64::from(then).saturating_sub(delivered) as u32
    }

    fn segments(&self, bytes: Bytes) -> u32 {
        u32::try_from(bytes.get().div_ceil(self.mss)).unwrap_or(u32::MAX)
    }

    /// Takes the rate sample, and counts rounds (Linux `bbr_update_bw`).
    fn update_rate(&mut self, ack: &Ack, sample: &RateSample) {
        if sample.prior_delivered >= self.next_round {
            self.next_round = ack.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(ack.lost_segments, sample.app_limited);
        let interval = sample.interval.as_micros().max(1);
        let rate = ((u64::from(sample.delivered) << RATE_SHIFT) / interval).min(u32::MAX.into());
        // A sample that the application limited counts only if it is at least the largest rate.
        if !sample.app_limited || rate >= self.largest_rate() {
            let (window, at) = (Span::from_nanos(RATE_ROUNDS), Time::from_nanos(self.rounds));
            self.rate.update(window, at, rate);
        }
    }

    fn sample_long_term(&mut self, losses: u32, app_limited: bool) {
        let cycling = self.mode == Mode::ProbeBw;
        let (round_start, mss) = (self.round_start, self.mss);
        match self.long_term.sample(&self.progress, losses, app_limited, round_start, cycling, mss) {
            Verdict::Unchanged => {}
            Verdict::Policed => self.pacing_gain = ONE,
            Verdict::Expired => self.begin_cycling(),
        }
    }

    /// Linux `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.rate().is_some() => (ONE, WINDOW_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_phase], WINDOW_GAIN),
            Mode::ProbeRtt => (ONE, ONE),
        };
    }

    /// Linux `bbr_set_cwnd`.
    fn set_window(&mut self, ack: &Ack, rate: u64) {
        let acked = ack.delivered_segments;
        if acked > 0 {
            self.cwnd = self.recover_or_restore(ack);
            if !self.packet_conservation {
                self.approach_target(ack, rate);
            }
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW);
        }
    }

    /// Grows the window by the delivered segments towards the target; once the pipe is full, the target is also the upper bound.
    fn approach_target(&mut self, ack: &Ack, rate: u64) {
        let acked = ack.delivered_segments;
        let extra = if self.full.reached { self.aggregation.extra(rate) } else { 0 };
        let target = self.with_trains(self.bdp(rate, self.window_gain).saturating_add(extra));
        if self.full.reached {
            self.cwnd = self.cwnd.saturating_add(acked).min(target);
        } else if self.cwnd < target || ack.delivered < u64::from(INITIAL_WINDOW) {
            self.cwnd = self.cwnd.saturating_add(acked);
        }
        self.cwnd = self.cwnd.max(MIN_WINDOW);
    }

    /// The window in and after recovery: packet conservation in the first round of recovery; after recovery, at least the window
    /// before it (Linux `bbr_set_cwnd_to_recover_or_restore`).
    fn recover_or_restore(&mut self, ack: &Ack) -> u32 {
        let before = std::mem::replace(&mut self.phase, ack.phase);
        let mut cwnd = self.cwnd.saturating_sub(ack.lost_segments).max(1);
        let conserved = self.segments(ack.in_flight).saturating_add(ack.delivered_segments);
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.packet_conservation = true;
            self.next_round = ack.delivered;
            cwnd = conserved;
        } else if recovering(before) && !recovering(ack.phase) {
            self.packet_conservation = false;
            cwnd = cwnd.max(self.prior_cwnd);
        }
        if self.packet_conservation { cwnd.max(conserved) } else { cwnd }
    }
}

/// Whether losses are being repaired (Linux: a state of `TCP_CA_Recovery` or more).
fn recovering(phase: Phase) -> bool {
    matches!(phase, Phase::Recovery | Phase::Loss)
}

/// A rate times a gain, less the margin, in bytes per second (Linux `bbr_rate_bytes_per_sec`).
fn pacing_rate(rate: u64, mss: u64, gain: u64) -> u64 {
    let bytes = rate.saturating_mul(mss).saturating_mul(gain) >> GAIN_SHIFT;
    bytes.saturating_mul(1_000_000 / 100 * (100 - MARGIN_PERCENT)) >> RATE_SHIFT
}

impl Controller for Bbr {
    /// Linux `bbr_main`.
    fn on_ack(&mut self, ack: &Ack, random: &mut Random) {
        self.progress.delivered = ack.delivered;
        self.progress.lost = ack.lost;
        if ack.delivered_segments > 0 {
            self.progress.delivered_at = ack.now;
        }
        self.srtt = ack.srtt.or(self.srtt);
        self.drawn.get_or_insert_with(|| random.below(CYCLE_CHOICES));
        self.round_start = false;
        if let Some(sample) = &ack.rate {
            self.update_rate(ack, sample);
            let (rate, cwnd) = (self.model_rate(), self.cwnd);
            self.aggregation.update(ack, rate, self.round_start, cwnd);
        }
        self.update_cycle(ack);
        self.check_full(ack.rate.is_some_and(|sample| sample.app_limited));
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
        let rate = self.model_rate();
        self.set_pacing_rate(rate, self.pacing_gain);
        self.set_window(ack, rate);
    }

    /// Saves the window for the end of recovery and does not reduce it (Linux `bbr_ssthresh`).
    fn on_enter_recovery(&mut self, _: &Congestion) {
        self.save_window();
    }
    /// Linux `bbr_undo_cwnd`.
    fn on_undo(&mut self, _: Time) {
        (self.full.rate, self.full.rounds) = (0, 0);
        self.long_term.reset(&self.progress);
    }
    /// Linux `tcp_enter_loss`, `bbr_set_state`.
    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.reduce {
            self.save_window();
        }
        self.cwnd = self.segments(timeout.in_flight).saturating_add(1);
        self.phase = Phase::Loss;
        self.full.rate = 0;
        self.round_start = true;
        self.progress.delivered = timeout.delivered;
        self.progress.lost = timeout.lost;
        self.sample_long_term(1, false);
    }
    /// Linux `bbr_cwnd_event`. The window stays after an idle time, since the rate is known.
    fn on_restart(&mut self, restart: &Restart) {
        let Restart::Transmit { now, app_limited, .. } = *restart else { return };
        if app_limited {
            self.idle_restart = true;
            self.aggregation.restart(now);
            match self.mode {
                Mode::ProbeBw => self.set_pacing_rate(self.model_rate(), ONE),
                Mode::ProbeRtt => self.check_probe_rtt_done(ticks(now)),
                Mode::Startup | Mode::Drain => {}
            }
        }
        // As in `tcp_rate_skb_sent` when nothing is in flight.
        self.progress.delivered_at = now;
    }

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
        Some(Rate::from_bits_per_sec(self.pacing_rate.saturating_mul(8)))
    }
    fn recovery(&self) -> Recovery {
        Recovery::Own
    }
    fn send_quantum(&self) -> Option<Bytes> {
        Some(Bytes::new(u64::from(self.least_train()) * self.mss))
    }
    /// `bbr_sndbuf_expand`: data in flight, data acknowledged late, and data to be sent next.
    fn windows_buffered(&self) -> u32 {
        3
    }
    fn keeps_queues_short(&self) -> bool {
        true
    }
    fn holds_back(&self) -> bool {
        self.holding_back
    }
    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let mbit = |rate: u64| rate as f64 * self.mss as f64 * 8.0 / f64::from(1u32 << RATE_SHIFT);
        report("cwnd_segments", f64::from(self.cwnd));
        report("mode", f64::from(self.mode as u8));
        report("bandwidth_mbps", mbit(self.model_rate()));
        report("rtt_min_ms", self.min_rtt.unwrap_or(0) as f64 / 1e3);
        report("pacing_gain", self.pacing_gain as f64 / ONE as f64);
        report("cwnd_gain", self.window_gain as f64 / ONE as f64);
        report("full_pipe", f64::from(u8::from(self.full.reached)));
        report("long_term", f64::from(u8::from(self.long_term.rate().is_some())));
        report("extra_acked_segments", f64::from(self.aggregation.most()));
        report("rounds", self.rounds as f64);
    }
}

#[cfg(test)]
mod tests;
