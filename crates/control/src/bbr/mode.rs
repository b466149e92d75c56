//! The modes of BBR and their transitions: Startup until the pipe is full, Drain until the queue is empty, then ProbeBW; ProbeRTT
//! from any of them when the smallest RTT has not been measured again for ten seconds.

use super::{Bbr, GAIN_SHIFT, MIN_WINDOW, ONE};
use crate::Ack;
use crate::jiffies::{HZ, ticks};

/// Pacing gains of the phases of a cycle (Linux `bbr_pacing_gain`).
pub(super) const CYCLE: [u64; 8] = [ONE * 5 / 4, ONE * 3 / 4, ONE, ONE, ONE, ONE, ONE, ONE];
/// Length of the filter of the smallest RTT, in ticks (Linux `bbr_min_rtt_win_sec`).
const MIN_RTT_TICKS: u64 = 10 * HZ;
/// Ticks for which ProbeRTT keeps the flight small (Linux `bbr_probe_rtt_mode_ms`).
const PROBE_RTT_TICKS: u64 = HZ / 5;
/// Growth of the rate below which a round indicates a full pipe, and number of such rounds until the pipe counts as full (Linux
/// `bbr_full_bw_thresh`, `bbr_full_bw_cnt`).
const FULL_GROWTH: u64 = ONE * 5 / 4;
const FULL_ROUNDS: u32 = 3;

/// The mode of BBR (Linux `enum bbr_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The rate doubles each round.
    Startup,
    /// The queue of Startup drains.
    Drain,
    /// The pacing rate cycles around the model's rate.
    ProbeBw,
    /// The flight is small, so that the RTT without a queue can be measured.
    ProbeRtt,
}

/// Whether the pipe is full (Linux `bbr_check_full_bw_reached`).
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    pub(super) reached: bool,
    pub(super) rounds: u32,
    pub(super) rate: u64,
}

impl Bbr {
    /// Begins a cycle in the drawn phase, any but the second (Linux `bbr_reset_probe_bw_mode`).
    pub(super) fn begin_cycling(&mut self) {
        self.mode = Mode::ProbeBw;
        self.cycle_phase = CYCLE.len() - 1 - self.drawn.take().unwrap_or(0) as usize;
        self.advance_cycle();
    }

    fn advance_cycle(&mut self) {
        self.cycle_phase = (self.cycle_phase + 1) % CYCLE.len();
        self.cycle_at = self.progress.delivered_at;
    }

    /// Linux `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack) {
            self.advance_cycle();
        }
    }

    /// Whether the phase is over: a phase lasts an RTT, but the probing one until the flight has reached its target or there is a
    /// loss, and the draining one ends as soon as the flight is at most the BDP (Linux `bbr_is_next_cycle_phase`).
    fn phase_is_over(&self, ack: &Ack) -> bool {
        let lasted = self.progress.delivered_at.since(self.cycle_at).as_micros();
        let full_length = self.min_rtt.is_some_and(|min_rtt| lasted > min_rtt);
        if self.pacing_gain == ONE {
            return full_length;
        }
        let in_network = || self.in_network(self.segments(ack.in_flight_before), ack);
        let rate = self.largest_rate();
        if self.pacing_gain > ONE {
            full_length && (ack.lost_segments > 0 || in_network() >= self.inflight(rate, self.pacing_gain))
        } else {
            full_length || in_network() <= self.inflight(rate, ONE)
        }
    }

    /// Linux `bbr_check_full_bw_reached`.
    pub(super) fn check_full(&mut self, app_limited: bool) {
        if self.full.reached || !self.round_start || app_limited {
            return;
        }
        let rate = self.largest_rate();
        if rate >= (self.full.rate * FULL_GROWTH) >> GAIN_SHIFT {
            (self.full.rate, self.full.rounds) = (rate, 0);
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    /// Linux `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            self.ssthresh = self.inflight(self.largest_rate(), ONE);
        }
        if self.mode == Mode::Drain
            && self.in_network(self.segments(ack.in_flight), ack) <= self.inflight(self.largest_rate(), ONE)
        {
            self.begin_cycling();
        }
    }

    /// Updates the smallest RTT, and enters ProbeRTT when it has expired (Linux `bbr_update_min_rtt`).
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let now = ticks(ack.now);
        let expired = now > self.min_rtt_at + MIN_RTT_TICKS;
        if let Some(sample) = ack.rtt {
            let rtt = sample.rtt.as_micros();
            // An equal RTT does not postpone ProbeRTT (Linux since 5.11).
            if self.min_rtt.is_none_or(|least| rtt < least) || (expired && !sample.delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = now;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.probe_rtt_end = None;
        }
        self.holding_back = self.mode == Mode::ProbeRtt;
        if self.holding_back {
            self.dip(ack, now);
        }
        if ack.delivered_segments > 0 {
            self.idle_restart = false;
        }
    }

    /// Handles ProbeRTT, which lasts 200 ms and a round from the time at which the flight is small.
    fn dip(&mut self, ack: &Ack, now: u64) {
        if self.probe_rtt_end.is_some() {
            self.probe_rtt_round |= self.round_start;
            if self.probe_rtt_round {
                self.check_probe_rtt_done(now);
            }
        } else if self.segments(ack.in_flight) <= MIN_WINDOW {
            self.probe_rtt_end = Some(now + PROBE_RTT_TICKS);
            self.probe_rtt_round = false;
            self.next_round = ack.delivered;
        }
    }

    /// Linux `bbr_check_probe_rtt_done`.
    pub(super) fn check_probe_rtt_done(&mut self, now: u64) {
        if self.probe_rtt_end.is_none_or(|end| now <= end) {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.begin_cycling();
        } else {
            self.mode = Mode::Startup;
        }
    }
}
