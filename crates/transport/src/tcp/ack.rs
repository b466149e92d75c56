//! The processing of an acknowledgement: RFC 9293, RFC 2018 and RFC 2883 in the order of Linux `tcp_ack`. First the outstanding
//! segments (SACK, then the cumulative number), then RTT, RACK, the states of recovery, the rate sample, and last the controller.

mod sack;

use super::accecn::{AccEcnFeedback, Delivered};
use super::rate::Sampling;
use super::scoreboard::{EVER_RETRANS, LOST, SACKED};
use super::sender::{Pending, Rexmit, Sender, instant, micros};
use super::undo::before;
use weir_base::{Bytes, Span, Time};
use weir_control::{Ack, Phase, Recovery, RttSample, Signal, Timestamps};

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
    pub(crate) told: Option<AccEcnFeedback>,
    pub(crate) tsval: u32,
    pub(crate) tsecr: u32,
    pub(crate) sack: &'a [(u64, u64)],
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
    sacked_bytes: u64,
    acked_segments: u32,
    rtt: Option<u64>,
}

impl Tally {
    fn reorder(&mut self, position: u64) {
        self.reordered = Some(self.reordered.map_or(position, |low| low.min(position)));
    }

    fn rtt_sample(&self, effects: &Effects) -> Option<RttSample> {
        self.rtt.map(|rtt| RttSample { rtt: Span::from_micros(rtt), delayed: effects.maybe_delayed })
    }
}

fn widen(range: &mut Option<(u64, u64)>, at: u64) {
    *range = Some((range.map_or(at, |(first, _)| first), at));
}

impl Sender {
    /// Takes an acknowledgement.
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
        let mut effects = Effects { echoed: arrival.tsecr, ..Effects::default() };
        let mut tally = Tally::default();
        let (prior_una, prior_out) = (self.una, self.board.out());
        let (prior_delivered, prior_lost) = (self.delivery.delivered, self.board.total_lost);
        let in_flight_before = self.board.in_flight();
        if arrival.ack < prior_una {
            self.on_old_ack(arrival, prior_una, &mut effects, &mut tally, now);
            return;
        }
        if arrival.ack > prior_una {
            effects.una_advanced = true;
            self.expirations = 0;
        }
        let prior_highest = self.highest_sacked();
        let predicted =
            effects.una_advanced && arrival.sack.is_empty() && arrival.window == self.window && !arrival.ece;
        effects.has_data = arrival.has_data;
        effects.window_updated = self.update_window(arrival);
        if !arrival.sack.is_empty() {
            self.take_sack(arrival, prior_una, &mut effects, &mut tally, now);
        }
        effects.ece = arrival.ece && self.ecn.echoes;
        self.window_probes = 0;
        if prior_out == 0 {
            self.hold_marks(arrival, 0);
            self.window_opened();
            return;
        }
        self.clean_queue(prior_una, prior_highest, &mut effects, &mut tally, now);
        let newly = (self.delivery.delivered - prior_delivered) as u32;
        let counted = self.count_marks(arrival, newly);
        effects.ece |= counted.is_some_and(|(packets, _)| packets > 0);
        let (ce_packets, ce_bytes) = match counted {
            Some((packets, bytes)) => {
                let (held_packets, held_bytes) = std::mem::take(&mut self.ecn.held);
                (packets + held_packets, bytes + held_bytes)
            }
            None if effects.ece => (newly, self.bytes(newly)),
            None => (0, Bytes::ZERO),
        };
        self.rack.adapt(tally.sampling.prior_delivered, self.delivery.delivered);
        if self.wants_delivered {
            self.controller.on_delivered(&weir_control::Delivered {
                now,
                segments: newly,
                acked_segments: tally.acked_segments,
                sacked_out: self.board.sacked,
                ce_packets,
                rtt: tally.rtt_sample(&effects),
                timestamps: self.timestamps_of(arrival, now),
                next_sequence: self.next,
                acknowledged: self.una,
                phase: self.phase,
                predicted,
            });
        }
        if self.probe_end != 0 {
            self.on_probe_ack(arrival.ack, &effects, now);
        }
        let mut rexmit = Rexmit::Nothing;
        if !effects.not_duplicate() || effects.alert() || self.phase != Phase::Open {
            rexmit = self.alert(prior_una, &mut effects, now);
        }
        if effects.set_timer {
            self.set_timer_soon(now);
        }
        let losses = (self.board.total_lost - prior_lost) as u32;
        let rate = self.delivery.sample(&tally.sampling, micros(now), newly, losses, self.least_rtt());
        self.counters.marked += u64::from(ce_packets);
        let round_start = effects.una_advanced && self.una > self.round_end;
        if round_start {
            self.round_end = self.next;
        }
        let ack = Ack {
            now,
            acked: Bytes::new(self.una - prior_una),
            sacked: Bytes::new(tally.sacked_bytes),
            delivered_segments: newly,
            acked_segments: tally.acked_segments,
            rtt: tally.rtt_sample(&effects),
            srtt: self.rtt.srtt().map(Span::from_micros),
            min_rtt: self.min_rtt.value().map(Span::from_micros),
            timestamps: self.timestamps_of(arrival, now),
            rate,
            delivered: self.delivery.delivered,
            lost_segments: losses,
            lost: self.board.total_lost,
            departure: self.pacer.ready_at().max(now),
            ce_packets,
            ce_bytes,
            in_flight_before: self.bytes(in_flight_before),
            in_flight: self.bytes(self.board.in_flight()),
            next_sequence: self.next,
            acknowledged: self.una,
            round_start,
            cwnd_limited: self.cwnd_limited(),
            may_grow: !self.reducing() && self.may_raise(&effects),
            phase: self.phase,
        };
        self.control(&ack, &effects, losses);
        if rexmit != Rexmit::Nothing {
            self.rexmit = rexmit;
        }
    }

    fn timestamps_of(&self, arrival: &Arrival<'_>, now: Time) -> Option<Timestamps> {
        (arrival.tsecr != 0).then(|| Timestamps {
            peer_ticks: arrival.tsval,
            echoed_ticks: arrival.tsecr,
            own_ticks: self.clock.ticks(now),
            tick: self.clock.tick,
        })
    }

    /// Newly marked packets and bytes by Accurate ECN (`tcp_accecn_process`); `None` if it is not in use.
    fn count_marks(&mut self, arrival: &Arrival<'_>, segments: u32) -> Option<(u32, Bytes)> {
        let bytes = self.bytes(segments).get();
        let known = self.ecn.accecn.as_mut()?;
        let (packets, marked) = match &arrival.told {
            Some(told) => known.take(told, &Delivered { segments, bytes, mss: self.mss.into() }),
            None => (0, 0),
        };
        Some((packets, Bytes::new(marked)))
    }

    /// Keeps marks of an acknowledgement that is not passed to the controller; they count with the next one. Returns whether there
    /// are any.
    fn hold_marks(&mut self, arrival: &Arrival<'_>, segments: u32) -> bool {
        let Some((packets, bytes)) = self.count_marks(arrival, segments) else { return false };
        self.ecn.held = (self.ecn.held.0 + packets, self.ecn.held.1 + bytes);
        packets > 0
    }

    /// Updates window and pacing rate (`tcp_cong_control`).
    fn control(&mut self, ack: &Ack, effects: &Effects, losses: u32) {
        if self.reducing() && !self.own_recovery {
            self.prr.on_ack(
                ack.delivered_segments,
                self.controller_cwnd(),
                self.board.in_flight(),
                effects.una_advanced && losses == 0,
            );
        }
        self.controller.on_ack(ack, &mut self.random);
        let mut decision = self.read_window();
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

    /// Removes the cumulatively acknowledged segments and samples the RTT (`tcp_clean_rtx_queue`).
    fn clean_queue(
        &mut self,
        prior_una: u64,
        prior_highest: u64,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let prior_sacked = self.board.sacked;
        let low = if self.board.is_plain() {
            self.clean_plain(effects, tally, now)
        } else {
            self.clean_marked(effects, tally, now)
        };
        self.sample_rtt(prior_una, prior_sacked, effects, tally, now);
        if !self.sack {
            if effects.data_acked {
                self.remove_duplicates(tally.acked_segments);
            }
            // Without SACK it is unknown which segments arrived before the retransmission.
            effects.original_delivered &= !effects.retransmission_acked;
        } else if effects.data_acked
            && let Some(low) = low
            && low < prior_highest
        {
            let highest = self.highest_sacked();
            self.rack.saw_reordering(low, highest, u64::from(self.mss));
        }
    }

    /// Removes segments of a board without marks, for which the first and the last segment suffice. Returns the start of the first;
    /// `None` if there are none.
    #[inline]
    fn clean_plain(&mut self, effects: &mut Effects, tally: &mut Tally, now: Time) -> Option<u64> {
        let (first, mut last, count) = self.board.pop_through(self.una)?;
        tally.acked_sent = Some((first.sent_at, last.sent_at));
        tally.acked_segments += count;
        effects.data_acked = true;
        effects.original_delivered |= first.end() <= self.high_seq;
        if self.sack {
            self.delivery.delivered += u64::from(count);
            self.rack.advance(micros(now), self.least_rtt(), false, last.sent_at, last.end());
        }
        self.delivery.on_delivered(&mut tally.sampling, &mut last);
        Some(first.start)
    }

    /// Removes segments one by one, by their marks. Returns the start of the first segment that is newly delivered and was never
    /// retransmitted; `None` if there is none.
    #[inline(never)]
    fn clean_marked(&mut self, effects: &mut Effects, tally: &mut Tally, now: Time) -> Option<u64> {
        let mut low = None;
        while let Some(head) = self.board.head() {
            if head.end() > self.una {
                break;
            }
            let number = self.board.first();
            if !head.has(SACKED) {
                self.deliver_head(number, effects, tally, now);
                if !self.board.get(number).has(EVER_RETRANS) && low.is_none() {
                    low = Some(self.board.get(number).start);
                }
            } else if head.has(EVER_RETRANS) {
                effects.retransmission_acked = true;
            }
            self.delivery.on_delivered(&mut tally.sampling, self.board.get_mut(number));
            self.board.pop();
            tally.acked_segments += 1;
            effects.data_acked = true;
        }
        low
    }

    /// The oldest segment is delivered by the cumulative number.
    fn deliver_head(&mut self, number: u64, effects: &mut Effects, tally: &mut Tally, now: Time) {
        let head = *self.board.get(number);
        let resent = head.has(EVER_RETRANS);
        if resent {
            effects.retransmission_acked = true;
        } else {
            widen(&mut tally.acked_sent, head.sent_at);
            effects.original_delivered |= head.end() <= self.high_seq;
        }
        if !self.sack {
            return;
        }
        self.delivery.delivered += 1;
        let spurious = resent && before(effects.echoed, self.clock.ticks(instant(head.sent_at)));
        if !spurious {
            self.rack.advance(micros(now), self.least_rtt(), resent, head.sent_at, head.end());
        }
        debug_assert!(!head.has(LOST) || self.board.lost > 0);
    }

    /// Samples the RTT (`tcp_ack_update_rtt`), and decides whether the timer is set anew.
    fn sample_rtt(
        &mut self,
        prior_una: u64,
        prior_sacked: u32,
        effects: &mut Effects,
        tally: &mut Tally,
        now: Time,
    ) {
        let at = micros(now);
        let (mut sample, mut newest) = (None, None);
        if let Some((first, last)) = tally.acked_sent
            && !effects.retransmission_acked
        {
            sample = Some(at - first);
            newest = Some(at - last);
            effects.maybe_delayed = tally.acked_segments == 1
                && prior_sacked == 0
                && self.una - prior_una < u64::from(self.mss)
                && tally.sampling.prior_delivered + 1 == self.delivery.delivered
                && !effects.alert();
        }
        let mut by_sack = None;
        if let Some((first, last)) = tally.sacked_sent {
            by_sack = Some(at - first);
            newest = Some(at - last);
        }
        sample = sample.or(by_sack);
        if sample.is_none() && effects.echoed != 0 && effects.data_acked {
            let since = self.clock.since(effects.echoed, now);
            if let Some(since) = since {
                sample = Some(since.max(self.clock.tick).as_micros());
                newest = sample;
            }
        }
        tally.rtt = newest;
        if let (Some(sample), Some(newest)) = (sample, newest) {
            if !(effects.maybe_delayed && newest > self.least_rtt()) {
                self.sample_min_rtt(now, newest);
            }
            self.rtt.sample(sample, self.una, self.next);
        }
        let head_sent = self.board.head().map(|head| head.sent_at);
        if effects.data_acked {
            effects.set_timer = true;
        } else if let (Some(sent_at), Some(rtt)) = (head_sent, by_sack) {
            // Only for data sent after the head; otherwise the timeout could be delayed without end.
            effects.set_timer = rtt > at.saturating_sub(sent_at);
        }
    }

    /// Stops the zero-window probe if the window has opened (`tcp_ack_probe`).
    fn window_opened(&mut self) {
        if self.pending == Pending::ZeroWindow && self.next_fits() {
            self.pending = Pending::Nothing;
            self.deadline = Time::NEVER;
        }
    }
}
