//! The processing of an acknowledgement: RFC 9293, RFC 2018 and RFC 2883 in the order of Linux `tcp_ack`. First the outstanding
//! segments (SACK, then the cumulative number), then RTT, RACK, the states of recovery, the rate sample, and last the controller.

mod clean;
mod predicted;
mod sack;

use super::accecn::{AccEcnFeedback, Delivered};
use super::rate::Sampling;
use super::sender::{Pending, Rexmit, Sender, micros};
use weir_base::{Span, Time};
use weir_control::{Ack, Phase, Recovery, RttSample, Signal, Timestamps};
use weir_endpoint::Segment;

/// The fields of an arriving segment that concern the sender, in positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) ack: u64,
    /// The peer's sequence position, for the order of window updates.
    pub(crate) seq: u64,
    pub(crate) window: u32,
    pub(crate) has_data: bool,
    pub(crate) ece: bool,
    /// Feedback of Accurate ECN; `None` without it.
    pub(crate) feedback: Option<AccEcnFeedback>,
    pub(crate) tsval: u32,
    pub(crate) tsecr: u32,
    pub(crate) sack: &'a [(u64, u64)],
}

impl<'a> Arrival<'a> {
    /// The fields of an acknowledgement without data or special flags, with its sequence position `seq`.
    #[inline(always)]
    pub(crate) fn plain(segment: &Segment, ack: u64, seq: u64, sack: &'a [(u64, u64)]) -> Arrival<'a> {
        Arrival {
            ack,
            seq,
            window: segment.window,
            has_data: false,
            ece: false,
            feedback: None,
            tsval: segment.tsval,
            tsecr: segment.tsecr,
            sack,
        }
    }
}

/// The effects of an acknowledgement so far (the `FLAG_*` bits of `tcp_input.c`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effects {
    pub(crate) una_advanced: bool,
    pub(crate) data_acked: bool,
    pub(crate) data_sacked: bool,
    pub(crate) window_updated: bool,
    pub(crate) has_data: bool,
    pub(crate) ece: bool,
    pub(crate) dsack: bool,
    pub(crate) dsack_of_probe: bool,
    /// Whether data below the recovery point that was never retransmitted was acknowledged or SACKed.
    pub(crate) original_delivered: bool,
    pub(crate) retransmission_acked: bool,
    pub(crate) lost_retransmission: bool,
    pub(crate) set_timer: bool,
    pub(crate) maybe_delayed: bool,
    pub(crate) echoed: u32,
}

impl Effects {
    /// Whether it is no duplicate (`FLAG_NOT_DUP`).
    pub(crate) fn not_duplicate(&self) -> bool {
        self.has_data || self.window_updated || self.data_acked
    }
    /// Whether it is a duplicate acknowledgement: a segment has arrived that did not advance the cumulative number.
    pub(crate) fn is_duplicate(&self) -> bool {
        !self.una_advanced && !self.not_duplicate() && !self.dsack
    }
    /// `FLAG_CA_ALERT`.
    fn alert(&self) -> bool {
        self.data_sacked || self.ece || self.dsack
    }
    pub(crate) fn forward(&self) -> bool {
        self.data_acked || self.data_sacked
    }
}

/// Values collected while segments are removed or marked (`struct tcp_sacktag_state`).
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    sampling: Sampling,
    /// Lowest position that was delivered out of order.
    reordered: Option<u64>,
    /// Sending times of the first and last newly SACKed original.
    sacked_sent: Option<(u64, u64)>,
    /// Sending times of the first and last newly acknowledged original.
    acked_sent: Option<(u64, u64)>,
    acked_segments: u32,
    rtt: Option<u64>,
}

impl Tally {
    fn reorder(&mut self, position: u64) {
        self.reordered = Some(self.reordered.map_or(position, |low| low.min(position)));
    }

    fn rtt_sample(&self, effects: &Effects) -> Option<RttSample> {
        self.rtt.map(|rtt| RttSample {
            rtt: Span::from_micros(rtt),
            delayed: effects.maybe_delayed,
            queued_back: Span::ZERO,
        })
    }
}

fn widen(range: &mut Option<(u64, u64)>, at: u64) {
    *range = Some((range.map_or(at, |(first, _)| first), at));
}

/// The sender before an acknowledgement, with which its state after it is compared.
#[derive(Debug, Clone, Copy)]
struct Before {
    una: u64,
    in_flight: u32,
    /// Segments delivered so far.
    delivered: u64,
}

/// The fields of an acknowledgement that are passed to the controller.
#[derive(Debug, Clone, Copy)]
struct Report {
    timestamps: Option<Timestamps>,
    /// Newly marked packets.
    ce_packets: u32,
    /// Whether it only advances the cumulative number.
    predicted: bool,
}

impl Sender {
    /// Takes an acknowledgement.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, arrival: &Arrival<'_>, now: Time) {
        self.batch.end();
        if arrival.ack > self.next || arrival.ack + u64::from(self.max_window) < self.una {
            return;
        }
        // Nothing is outstanding, as at the receiving end of a flow: only the window can change.
        if self.board.out() == 0 && arrival.ack == self.una && arrival.sack.is_empty() {
            self.update_window(arrival);
            self.hold_marks(arrival, 0);
            self.window_probes = 0;
            self.window_opened();
            return;
        }
        self.waits = false;
        let mut effects = Effects { echoed: arrival.tsecr, ..Effects::default() };
        let mut tally = Tally::default();
        let (before, lost) = (self.before(), self.board.total_lost);
        let prior_out = self.board.out();
        if arrival.ack < before.una {
            self.on_old_ack(arrival, before.una, &mut effects, &mut tally, now);
            return;
        }
        if arrival.ack > before.una {
            effects.una_advanced = true;
            self.expirations = 0;
        }
        let prior_highest = self.highest_sacked();
        let predicted =
            effects.una_advanced && arrival.sack.is_empty() && arrival.window == self.window && !arrival.ece;
        effects.has_data = arrival.has_data;
        effects.window_updated = self.update_window(arrival);
        if !arrival.sack.is_empty() {
            self.take_sack(arrival, before.una, &mut effects, &mut tally, now);
        }
        effects.ece = arrival.ece && self.ecn.echoes;
        self.window_probes = 0;
        if prior_out == 0 {
            self.hold_marks(arrival, 0);
            self.window_opened();
            return;
        }
        self.clean_queue(before.una, prior_highest, &mut effects, &mut tally, now);
        let segments = (self.delivery.delivered - before.delivered) as u32;
        let ce_packets = self.take_marks(arrival, segments, &mut effects);
        let timestamps = self.timestamps_of(arrival);
        let report = Report { timestamps, ce_packets, predicted };
        self.rack.adapt(tally.sampling.prior_delivered, self.delivery.delivered);
        self.tell_delivered(&effects, &tally, &report, now);
        if self.probe_end != 0 {
            self.on_probe_ack(arrival.ack, &effects, now);
        }
        let mut rexmit = Rexmit::Nothing;
        if !effects.not_duplicate() || effects.alert() || self.phase != Phase::Open {
            rexmit = self.alert(before.una, &mut effects, now);
        }
        let losses = (self.board.total_lost - lost) as u32;
        self.conclude(&before, &effects, &tally, &report, losses, now);
        if rexmit != Rexmit::Nothing {
            self.rexmit = rexmit;
        }
    }

    fn before(&self) -> Before {
        Before { una: self.una, in_flight: self.board.in_flight(), delivered: self.delivery.delivered }
    }

    /// Tells the controller of the delivery, if it asks for that: of all segments since the last time. Without SACK, that which a
    /// duplicate reports counts later in the same acknowledgement, so that the next one tells of it.
    #[inline(always)]
    fn tell_delivered(&mut self, effects: &Effects, tally: &Tally, report: &Report, now: Time) {
        if !self.wants_delivered {
            return;
        }
        let segments = (self.delivery.delivered - self.reported_delivered) as u32;
        self.reported_delivered = self.delivery.delivered;
        self.controller.on_delivered(&weir_control::Delivered {
            now,
            segments,
            acked_segments: tally.acked_segments,
            sacked_out: self.board.sacked,
            ce_packets: report.ce_packets,
            rtt: tally.rtt_sample(effects),
            timestamps: report.timestamps,
            own_ticks: report.timestamps.map_or(0, |_| self.clock.ticks(now)),
            next_sequence: self.next,
            acknowledged: self.una,
            phase: self.phase,
            predicted: report.predicted,
        });
    }

    /// Ends the processing of an acknowledgement whose effects are known: timer, rate sample, and the controller's response. `losses` are
    /// the segments that it marked lost.
    #[inline(always)]
    fn conclude(
        &mut self,
        before: &Before,
        effects: &Effects,
        tally: &Tally,
        report: &Report,
        losses: u32,
        now: Time,
    ) {
        if effects.set_timer {
            self.set_timer_soon(now);
        }
        let segments = (self.delivery.delivered - before.delivered) as u32;
        let rate = self.delivery.sample(&tally.sampling, micros(now), segments, losses, self.least_rtt());
        self.counters.marked += u64::from(report.ce_packets);
        let round_start = effects.una_advanced && self.una > self.round_end;
        if round_start {
            self.round_end = self.next;
        }
        let ack = Ack {
            now,
            delivered_segments: segments,
            delivered_bytes: self.bytes(segments),
            rtt: tally.rtt_sample(effects),
            srtt: self.rtt.srtt().map(Span::from_micros),
            timestamps: report.timestamps,
            rate,
            delivered: self.delivery.delivered,
            lost_segments: losses,
            lost: self.board.total_lost,
            departure: self.pacer.ready_at(),
            ce_packets: report.ce_packets,
            in_flight_before: self.bytes(before.in_flight),
            in_flight: self.bytes(self.board.in_flight()),
            next_sequence: self.next,
            acknowledged: self.una,
            round_start,
            cwnd_limited: self.cwnd_limited(),
            may_grow: !self.reducing() && self.may_raise(effects),
            phase: self.phase,
        };
        self.control(&ack, effects.una_advanced);
    }

    #[inline(always)]
    fn timestamps_of(&self, arrival: &Arrival<'_>) -> Option<Timestamps> {
        if arrival.tsecr == 0 {
            return None;
        }
        Some(Timestamps { peer_ticks: arrival.tsval, echoed_ticks: arrival.tsecr, tick: self.clock.tick })
    }

    /// Newly marked packets by Accurate ECN (`tcp_accecn_process`); `None` if it is not in use.
    fn count_marks(&mut self, arrival: &Arrival<'_>, segments: u32) -> Option<u32> {
        let bytes = self.bytes(segments).get();
        let known = self.ecn.accecn.as_mut()?;
        let delivered = Delivered { segments, bytes, mss: self.mss.into() };
        Some(arrival.feedback.as_ref().map_or(0, |feedback| known.take(feedback, &delivered)))
    }

    /// Keeps marks of an acknowledgement that is not passed to the controller; they count with the next one. Returns whether there
    /// are any.
    fn hold_marks(&mut self, arrival: &Arrival<'_>, segments: u32) -> bool {
        let Some(packets) = self.count_marks(arrival, segments) else { return false };
        self.ecn.held += packets;
        packets > 0
    }

    /// The packets that an acknowledgement newly reports as marked: by Accurate ECN, with those that were held, or all that it delivers
    /// if it has ECE.
    fn take_marks(&mut self, arrival: &Arrival<'_>, newly: u32, effects: &mut Effects) -> u32 {
        match self.count_marks(arrival, newly) {
            Some(packets) => {
                effects.ece |= packets > 0;
                packets + std::mem::take(&mut self.ecn.held)
            }
            None if effects.ece => newly,
            None => 0,
        }
    }

    /// Updates window and pacing rate (`tcp_cong_control`).
    #[inline(always)]
    fn control(&mut self, ack: &Ack, una_advanced: bool) {
        if self.reducing() && !self.own_recovery {
            self.prr.on_ack(
                ack.delivered_segments,
                self.controller_cwnd(),
                self.board.in_flight(),
                una_advanced && ack.lost_segments == 0,
            );
        }
        let mut decision = self.controller.respond(ack, &mut self.random);
        self.follow(&decision);
        if self.own_recovery {
            // A controller may hand recovery back to the transport.
            self.own_recovery = self.controller.recovery() == Recovery::Own;
        }
        if decision.wants_reduction {
            self.enter_reduction(Signal::Own, ack.now);
            decision = self.controller.decision();
        }
        if self.own_recovery && self.controller.holds_back() {
            self.delivery.limited_by_application(self.board.in_flight());
        }
        let (window, srtt8) = (self.controller_window, self.rtt.srtt8());
        let slow_start =
            self.controller_threshold.is_some_and(|threshold| window.get() < threshold.get() / 2);
        self.pacer.update(decision.pacing_rate, window, srtt8, slow_start);
    }

    /// `tcp_may_raise_cwnd`.
    fn may_raise(&self, effects: &Effects) -> bool {
        if self.rack.reordering > super::rack::REORDERING { effects.forward() } else { effects.data_acked }
    }

    /// Takes an old acknowledgement, of which only the SACK blocks can be new.
    fn on_old_ack(
        &mut self,
        arrival: &Arrival<'_>,
        prior_una: u64,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        if arrival.sack.is_empty() {
            return;
        }
        let delivered = self.delivery.delivered;
        self.take_sack(arrival, prior_una, effects, tally, now);
        effects.ece = self.hold_marks(arrival, (self.delivery.delivered - delivered) as u32);
        let rexmit = self.alert(prior_una, effects, now);
        if rexmit != Rexmit::Nothing {
            self.rexmit = rexmit;
        }
    }

    /// Takes the window of a segment when nothing is outstanding and nothing more is acknowledged.
    #[inline]
    pub(crate) fn on_window(&mut self, seq: u64, window: u32) {
        self.take_window(self.una, seq, window);
        self.window_probes = 0;
        self.window_opened();
    }

    /// Takes the window if it is newer than the known one, and returns whether it is (`tcp_ack_update_window`).
    #[inline]
    fn update_window(&mut self, arrival: &Arrival<'_>) -> bool {
        let newer = self.take_window(arrival.ack, arrival.seq, arrival.window);
        self.una = self.una.max(arrival.ack);
        newer
    }

    #[inline]
    fn take_window(&mut self, ack: u64, seq: u64, window: u32) -> bool {
        let newer = ack > self.una
            || seq > self.window_from
            || (seq == self.window_from && (window > self.window || window == 0));
        if newer {
            self.window_from = seq;
            self.window = window;
            self.max_window = self.max_window.max(window);
        }
        newer
    }

    /// Stops the zero-window probe if the window has opened (`tcp_ack_probe`).
    #[inline(always)]
    fn window_opened(&mut self) {
        if self.pending == Pending::ZeroWindow && self.next_fits() {
            self.pending = Pending::Nothing;
            self.deadline = Time::NEVER;
        }
    }
}
