//! Transmission: segments forced by a timer, then retransmissions in sequence order (`tcp_xmit_retransmit_queue`), then new data
//! (`tcp_write_xmit`), as far as the window, the receiver and the pacer allow.

use super::batch::Next;
use super::scoreboard::{FIN, SACKED, Sent};
use super::sender::{Forced, Pending, Rexmit, Sender, micros};
use weir_base::{Bytes, Span, Time};
use weir_control::{Phase, Restart, Signal};

/// The data of 1/1024 second at the pacing rate may wait below TCP (`sk_pacing_shift`).
const SMALL_QUEUE_SHIFT: u32 = 10;
/// Largest amount that may wait below TCP (`tcp_limit_output_bytes`, 4 MiB).
const LARGEST_SMALL_QUEUE: u64 = 4 << 20;
/// IPv4 and TCP header with timestamps.
const SEGMENT_HEADERS: u64 = 52;

/// A segment of the sequence space that leaves now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) start: u64,
    pub(crate) len: u16,
    pub(crate) fin: bool,
    /// Whether it is new data, which may carry ECT and CWR.
    pub(crate) new: bool,
    pub(crate) cwr: bool,
    pub(crate) push: bool,
}

impl Sender {
    /// Whether written data or the FIN has not been sent yet.
    pub(crate) fn has_new_data(&self) -> bool {
        self.next < self.written.end || (self.written.closed && !self.fin_sent)
    }

    /// Payload bytes of the next new segment, and whether it carries the FIN; `None` if there is nothing to send yet.
    pub(crate) fn next_segment(&self) -> Option<(u16, bool)> {
        let left = self.written.beyond(self.next);
        if left > u64::from(self.mss) || (left == u64::from(self.mss) && !self.written.closed) {
            return Some((self.mss, false));
        }
        if self.written.closed {
            return (!self.fin_sent).then_some((left as u16, true));
        }
        // Nagle's algorithm with Minshall's change (`tcp_minshall_check`): a short segment waits only while another one is out.
        (left > 0 && self.una >= self.short_end).then_some((left as u16, false))
    }

    /// Whether the next new segment fits into the receiver's window.
    pub(crate) fn next_fits(&self) -> bool {
        self.next_segment().is_some_and(|(len, _)| self.next + u64::from(len) <= self.window_end())
    }

    /// The host's queue accepts no packet now: data that would leave stays unsent, and the window is reduced (`tcp_enter_cwr` on
    /// `NET_XMIT_DROP`). Returns whether there was such data.
    pub(crate) fn refused(&mut self, now: Time) -> bool {
        let refused = self.would_send(now);
        if refused {
            self.enter_reduction(Signal::Refused, now);
        }
        self.end_burst(now);
        refused
    }

    /// Segments of the window in use: those in flight and, before recovery and without limited transmit (RFC 3042), also those
    /// reported by duplicate acknowledgements.
    #[inline]
    fn occupied(&self) -> u32 {
        let in_flight = self.board.in_flight();
        if self.limited_transmit || !matches!(self.phase, Phase::Open | Phase::Disorder) {
            return in_flight;
        }
        in_flight + self.board.sacked
    }

    /// Whether [`Sender::poll`] would return data.
    fn would_send(&mut self, now: Time) -> bool {
        if self.written.endless {
            self.fill_buffer();
        }
        let room = self.occupied() < self.cwnd() && now >= self.new_data_ready_at();
        let lost = self.rexmit == Rexmit::Lost && self.board.retrans < self.board.lost;
        let forced = matches!(self.forced, Forced::Head | Forced::ProbeOld | Forced::ProbeNew);
        forced || (room && (lost || self.next_fits()))
    }

    /// Bytes of this connection that may wait below TCP, so that the host's queue stays short (`tcp_small_queue_check`): the data of
    /// 1/1024 second at the pacing rate, at least two segments.
    pub(crate) fn small_queue(&self) -> u64 {
        let rate = self.pacer.rate().map_or(0, |rate| rate.bits_per_sec() / 8);
        let least = 2 * (u64::from(self.mss) + SEGMENT_HEADERS);
        (rate >> SMALL_QUEUE_SHIFT).max(least).min(LARGEST_SMALL_QUEUE)
    }

    /// The next segment that may leave now.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.at_rest() {
            self.waits = true;
            self.note_limit_of_data(now);
            return None;
        }
        self.poll_queues(now)
    }

    /// Whether [`Sender::poll`] would return nothing and change nothing.
    pub(crate) fn would_wait(&self) -> bool {
        self.at_rest() || (self.is_settled() && self.is_full())
    }

    /// Whether nothing waits to be sent and the last burst is settled.
    #[inline]
    fn at_rest(&self) -> bool {
        !self.written.endless && self.is_settled() && !self.has_new_data()
    }

    /// Whether the last burst is settled, and no segment leaves before new data.
    #[inline]
    fn is_settled(&self) -> bool {
        self.sends_new_data_first() && self.burst == 0 && !self.timer_due
    }

    /// Whether neither a segment that is forced by a timer nor a retransmission is due.
    #[inline]
    fn sends_new_data_first(&self) -> bool {
        self.forced == Forced::Nothing && self.rexmit == Rexmit::Nothing
    }

    /// Whether the window has no room for another segment.
    #[inline]
    fn is_full(&self) -> bool {
        self.board.in_flight() >= self.cwnd()
    }

    #[inline(always)]
    fn poll_queues(&mut self, now: Time) -> Option<Outgoing> {
        if !self.sends_new_data_first()
            && let Some(outgoing) = self.poll_first(now)
        {
            return Some(outgoing);
        }
        let outgoing = self.poll_new(now);
        if outgoing.is_none() {
            self.end_burst(now);
        }
        outgoing
    }

    /// The next forced segment or retransmission, which go before new data.
    #[inline(never)]
    fn poll_first(&mut self, now: Time) -> Option<Outgoing> {
        if self.forced != Forced::Nothing
            && let Some(outgoing) = self.poll_forced(now)
        {
            return Some(outgoing);
        }
        if self.rexmit == Rexmit::New && self.next <= self.high_seq {
            if let Some(outgoing) = self.poll_new(now) {
                return Some(outgoing);
            }
            self.frto = false;
            self.rexmit = Rexmit::Lost;
        }
        if self.rexmit == Rexmit::Lost {
            if let Some(outgoing) = self.poll_lost(now) {
                return Some(outgoing);
            }
            if now >= self.pacer.ready_at() {
                self.rexmit = Rexmit::Nothing;
            }
        }
        None
    }

    /// Whether the window is below one segment.
    #[inline]
    pub(crate) fn is_sub_mss(&self) -> bool {
        self.sub_mss.is_at_work()
    }

    /// Earliest departure time of new data under the pacer and a window below one segment.
    #[inline]
    pub(crate) fn new_data_ready_at(&self) -> Time {
        let ready = self.pacer.ready_at();
        if !self.is_sub_mss() {
            return ready;
        }
        ready.max(self.sub_mss.next_at(self.rtt.srtt8(), self.mss, self.controller_window))
    }

    /// `ready`, the time at which the pacer allows a segment; [`Time::NEVER`] if the window or a lack of data holds it back.
    pub(crate) fn held_until(&self, ready: Time) -> Time {
        let room = self.occupied() < self.cwnd();
        let waiting = self.rexmit == Rexmit::Lost || self.next_fits() || self.written.endless;
        if room && waiting { ready } else { Time::NEVER }
    }

    fn poll_forced(&mut self, now: Time) -> Option<Outgoing> {
        match std::mem::replace(&mut self.forced, Forced::Nothing) {
            Forced::Head if self.board.head().is_some_and(|head| !head.has(SACKED)) => {
                Some(self.resend(self.board.first(), true, now))
            }
            Forced::ProbeOld if self.board.out() > 0 => {
                let outgoing = self.resend(self.board.next() - 1, false, now);
                self.probe_sent(true, now);
                Some(outgoing)
            }
            Forced::ProbeNew => {
                let (len, fin) = self.next_segment()?;
                let outgoing = self.send_new(len, fin, now);
                self.probe_sent(false, now);
                Some(outgoing)
            }
            Forced::ZeroWindow => {
                let start = self.una.saturating_sub(1);
                Some(Outgoing { start, len: 0, fin: false, new: false, cwr: false, push: false })
            }
            _ => None,
        }
    }

    fn poll_lost(&mut self, now: Time) -> Option<Outgoing> {
        if now < self.pacer.ready_at()
            || self.board.in_flight() >= self.cwnd()
            || self.board.retrans >= self.board.lost
        {
            return None;
        }
        let number = self.board.next_waiting()?;
        let sent = self.board.get(number);
        if sent.start >= self.window_end() && sent.start != self.una {
            return None;
        }
        if number == self.board.first() && self.pending != Pending::Reorder {
            self.pending = Pending::Nothing;
            self.rearm_timeout(now);
        }
        let outgoing = self.resend(number, true, now);
        if self.reducing() {
            self.prr.on_sent();
        }
        Some(outgoing)
    }

    fn resend(&mut self, number: u64, counted: bool, now: Time) -> Outgoing {
        let at = micros(now);
        let idle = self.board.out() == 0;
        if self.wants_sent {
            self.tell_sent(u64::from(self.board.get(number).len), true, now);
        }
        self.board.mark_resent(number, at, counted);
        self.delivery.on_sent(self.board.get_mut(number), at, idle);
        self.counters.retransmitted += 1;
        if counted {
            self.undo.on_retransmit(self.clock.ticks(now));
        }
        let sent = *self.board.get(number);
        let fin = sent.has(FIN);
        let len = sent.len - u16::from(fin);
        self.pacer.on_sent(Bytes::new(u64::from(len)), now);
        self.last_sent = now;
        Outgoing { start: sent.start, len, fin, new: false, cwr: false, push: false }
    }

    /// The next segment of new data: the first of a batch if there can be one.
    #[inline(always)]
    fn poll_new(&mut self, now: Time) -> Option<Outgoing> {
        if self.begin_batch() {
            match self.next_in_batch(now) {
                Next::Segment(outgoing) => return Some(outgoing),
                Next::Full => return None,
                Next::Over => {}
            }
        }
        self.poll_single(now)
    }

    /// Begins the batch that [`Sender::poll`] would begin, and returns whether there is one.
    #[inline(always)]
    pub(crate) fn begins_answer(&mut self) -> bool {
        self.sends_new_data_first() && self.begin_batch()
    }

    /// The next segment of new data, which may be short, the first after an idle time, paced, or carry FIN or CWR.
    #[inline(never)]
    fn poll_single(&mut self, now: Time) -> Option<Outgoing> {
        let (len, fin) = self.next_segment()?;
        if self.board.out() == 0 {
            self.restart_after_idle(now);
        }
        if now < self.new_data_ready_at()
            || self.occupied() >= self.cwnd()
            || self.next + u64::from(len) > self.window_end()
        {
            return None;
        }
        let outgoing = self.send_new(len, fin, now);
        self.burst += 1;
        if self.reducing() {
            self.prr.on_sent();
        }
        Some(outgoing)
    }

    /// Begins a batch if full segments may leave without anything between them, and returns whether it does.
    #[inline(always)]
    fn begin_batch(&mut self) -> bool {
        if self.written.endless {
            self.fill_buffer();
        }
        let in_flight = self.board.in_flight();
        let alike = self.phase == Phase::Open
            && in_flight > 0
            && !self.wants_sent
            && !self.pacer.is_enforced()
            && !self.is_sub_mss()
            && !self.ecn.cwr_queued;
        if alike {
            // The last segment before a FIN carries it.
            let data = self.written.end - u64::from(self.written.closed);
            let room = self.controller_cwnd().saturating_sub(in_flight);
            self.batch.begin(room, data.min(self.window_end()));
        }
        alike
    }

    /// The next segment of the batch. The burst ends with the one that fills the window.
    #[inline(always)]
    pub(crate) fn next_in_batch(&mut self, now: Time) -> Next<Outgoing> {
        let next = self.next + u64::from(self.mss);
        match self.batch.next(next) {
            Next::Segment(()) => {}
            Next::Full => return Next::Full,
            Next::Over => return Next::Over,
        }
        self.burst += 1;
        let (at, start, len) = (micros(now), self.next, self.mss);
        let mut sent = Sent::new(start, len, false, at);
        self.next = next;
        self.delivery.on_sent(&mut sent, at, false);
        self.board.push(sent);
        self.pacer.on_sent(Bytes::new(u64::from(len)), now);
        self.last_sent = now;
        if self.batch.is_full() {
            self.end_full_batch(now);
        }
        let push = self.written.pushes(next);
        Next::Segment(Outgoing { start, len, fin: false, new: true, cwr: false, push })
    }

    #[inline(always)]
    fn send_new(&mut self, len: u16, fin: bool, now: Time) -> Outgoing {
        let at = micros(now);
        let start = self.next;
        let idle = self.board.out() == 0;
        if self.board.in_flight() == 0 {
            let idle = now.since(self.last_sent);
            let app_limited = self.delivery.is_app_limited();
            self.controller.on_restart(&Restart::Transmit { now, idle, app_limited });
            self.read_window();
        }
        if self.wants_sent {
            self.tell_sent(u64::from(len), false, now);
        }
        let mut sent = Sent::new(start, len + u16::from(fin), fin, at);
        self.next = sent.end();
        self.delivery.on_sent(&mut sent, at, idle);
        self.board.push(sent);
        if len < self.mss {
            self.short_end = self.next;
        }
        self.fin_sent |= fin;
        // If a probe may be due, the end of the burst sets the timer.
        if (idle || self.pending == Pending::Probe) && !self.may_probe() {
            self.rearm_timeout(now);
        }
        self.pacer.on_sent(Bytes::new(u64::from(len)), now);
        self.sub_mss.on_sent(now);
        self.last_sent = now;
        let cwr = len > 0 && std::mem::take(&mut self.ecn.cwr_queued);
        // Trains of segments (GSO), whose ends also carry PSH, are not modelled.
        let push = self.written.pushes(self.next);
        Outgoing { start, len, fin, new: true, cwr, push }
    }

    fn tell_sent(&mut self, bytes: u64, retransmission: bool, now: Time) {
        let in_flight_before = self.bytes(self.board.in_flight());
        let bytes = Bytes::new(bytes);
        self.controller.on_sent(&weir_control::Sent { now, bytes, in_flight_before, retransmission });
        self.read_window();
    }

    /// Ends a burst when no more segments may leave: validates the window and schedules the probe (end of `tcp_write_xmit`).
    pub(crate) fn end_burst(&mut self, now: Time) {
        self.batch.end();
        let is_full = self.is_full();
        if is_full {
            self.note_full_window(now);
        } else {
            self.note_limit_of_data(now);
        }
        let limited = is_full && self.has_new_data();
        if limited {
            self.usage.note_limit(self.board.out(), self.next, now);
        } else if self.burst > 0 {
            self.judge_window(now);
        }
        let timer_due = std::mem::take(&mut self.timer_due);
        if timer_due && self.burst == 0 {
            self.set_timer(now);
        }
        if self.burst > 0 {
            self.schedule_probe(false, now);
        } else if self.board.out() == 0 && !self.is_sub_mss() {
            self.guard_window(now);
        }
        self.burst = 0;
        if std::mem::take(&mut self.filled) {
            self.check_app_limited();
        }
        self.waits = is_full && self.sends_new_data_first();
    }

    /// The same after a segment of a batch that has filled the window.
    #[inline(never)]
    fn end_full_batch(&mut self, now: Time) {
        self.batch.end();
        self.note_full_window(now);
        if self.has_new_data() {
            self.usage.note_limit(self.board.out(), self.next, now);
        } else {
            self.judge_window(now);
        }
        self.timer_due = false;
        self.schedule_probe(false, now);
        self.burst = 0;
        self.filled = false;
        self.waits = self.sends_new_data_first();
    }

    /// The application writes. Notes if there has been less data than the window allows (`tcp_rate_check_app_limited`). An application
    /// that waits for room in the send buffer does not write, so it does not limit the sender meanwhile.
    #[inline]
    pub(crate) fn check_app_limited(&mut self) {
        let starved = self.written.beyond(self.next) < u64::from(self.mss);
        let in_flight = self.board.in_flight();
        if starved && in_flight < self.cwnd() && self.board.lost <= self.board.retrans {
            self.delivery.limited_by_application(in_flight);
        }
    }

    /// `tcp_cwnd_validate`, if no new data waits for the window.
    fn judge_window(&mut self, now: Time) {
        let out = self.board.out();
        let usage = &mut self.usage;
        if self.una >= usage.round_end || (!usage.limited && out > usage.most_out) {
            usage.limited = false;
            usage.most_out = out;
            usage.round_end = self.next;
        }
        if self.cwnd_limited() {
            self.usage.used = 0;
            self.usage.stamp = now;
            return;
        }
        self.usage.used = self.usage.used.max(out);
        let waited = now.since(self.usage.stamp).as_micros();
        if self.slow_start_after_idle && waited >= self.rtt.rto() && !self.own_recovery {
            if self.phase == Phase::Open && !self.written.endless {
                let initial_window = self.initial_window;
                self.controller.on_restart(&Restart::Unused { now, used: self.usage.used, initial_window });
                self.read_window();
                self.usage.used = 0;
            }
            self.usage.stamp = now;
        }
    }

    /// Reduces the window after an idle time (`tcp_slow_start_after_idle_check`).
    fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        let rto = Span::from_micros(self.rtt.rto());
        // A window below one segment causes idle times by itself.
        if !self.slow_start_after_idle
            || self.own_recovery
            || self.is_sub_mss()
            || idle <= rto
            || self.idle_since == self.last_sent
        {
            return;
        }
        let initial_window = self.initial_window;
        self.controller.on_restart(&Restart::Idle { now, idle, rto, initial_window });
        self.read_window();
        self.usage.stamp = now;
        self.usage.used = 0;
        self.idle_since = self.last_sent;
    }
}
