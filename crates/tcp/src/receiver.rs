//! The receiving half of a connection: the data that has arrived and is not yet read, the ECN echo (RFC 3168, or RFC 8257,
//! section 3.2, as in Linux `dctcp_ece_ack_update`), and the fields of the next acknowledgement. Positions count from the peer's
//! SYN.

use super::accecn::{ReceiverCounters, flags_of};
use super::config::Config;
use super::delack::{Check, DelayedAck, MAX_QUICK};
use super::reassembly::Reassembly;
use super::window::ReceiveWindow;
use weir_base::{Clock, Ecn, Time};
use weir_control::Feedback;
use weir_endpoint::{Flags, Segment};

pub(crate) struct Receiver {
    /// Next position expected.
    pub(crate) next: u64,
    /// `next` when the last acknowledgement left.
    last_acked: u64,
    /// Position of the FIN; `None` before it has arrived.
    fin: Option<u64>,
    unread: u64,
    /// Bytes that were not read when the present acknowledgement became due.
    unread_when_due: u64,
    /// Bytes that have become in order by the segment that filled a gap, until they are acknowledged.
    filled: u64,
    pub(crate) reassembly: Reassembly,
    pub(crate) acks: DelayedAck,
    pub(crate) window: ReceiveWindow,
    /// Whether nothing has arrived since the window was last advertised, so that it is unchanged.
    window_is_advertised: bool,
    clock: Clock,
    /// How marks are reported; `None` without ECN.
    pub(crate) feedback: Option<Feedback>,
    /// Whether ECE is sent: until CWR arrives, or as long as marks arrive (DCTCP).
    echo: bool,
    /// Whether the last packet was marked (DCTCP's CE state).
    ce: bool,
    /// Counters of marks; `None` without Accurate ECN.
    pub(crate) accecn: Option<ReceiverCounters>,
    /// Whether data with ECT or CE has arrived.
    ect_seen: bool,
    /// Newest timestamp to echo (`ts_recent`).
    pub(crate) recent: u32,
    sack: bool,
    /// A range that is not reported yet: the compressed acknowledgements that wait must leave before it; `None` if there is none.
    unreported: Option<(u64, u64)>,
    /// Whether an acknowledgement must leave now.
    pub(crate) ack_due: bool,
}

/// A segment with data or FIN, in positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    pub(crate) cwr: bool,
    pub(crate) push: bool,
    pub(crate) ecn: Ecn,
    /// The timestamp that it echoes.
    pub(crate) echo: u32,
}

impl Data {
    /// The data of a segment that begins at `start`, with the codepoint of its packet.
    #[inline(always)]
    pub(crate) fn of(segment: &Segment, start: u64, ecn: Ecn) -> Data {
        Data {
            start,
            len: u64::from(segment.len),
            fin: segment.flags.has(Flags::FIN),
            cwr: segment.flags.has(Flags::CWR),
            push: segment.flags.has(Flags::PSH),
            ecn,
            echo: segment.tsecr,
        }
    }
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        Receiver {
            next: 1,
            last_acked: 1,
            fin: None,
            unread: 0,
            unread_when_due: 0,
            filled: 0,
            reassembly: Reassembly::default(),
            acks: DelayedAck::new(
                config.sack && config.compress_sack,
                config.delayed_ack,
                config.window_updates,
            ),
            window: ReceiveWindow::new(config),
            window_is_advertised: false,
            clock: config.clock,
            feedback: None,
            echo: false,
            ce: false,
            accecn: None,
            ect_seen: false,
            recent: 0,
            sack: config.sack,
            unreported: None,
            ack_due: false,
        }
    }

    /// Takes data. `rtt` is the smoothed RTT and `rto` the retransmission timeout, in microseconds.
    #[inline(never)]
    pub(crate) fn on_data(&mut self, data: &Data, rtt: Option<u64>, rto: u64, now: Time) {
        self.take_in(data, rtt, rto, now);
    }

    /// The same, inlined at the call for the most frequent segments, so that checks made there are not repeated.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, data: &Data, rtt: Option<u64>, rto: u64, now: Time) {
        self.window_is_advertised = false;
        if data.len >= self.acks.largest() {
            self.window.sample_rtt(data.echo, &self.clock, now);
        }
        let end = data.start + data.len;
        let end_with_fin = end + u64::from(data.fin);
        if data.cwr && matches!(self.feedback, Some(Feedback::Classic | Feedback::Dctcp)) {
            self.echo = false;
            // The peer has reduced its window, perhaps to one segment, so this segment is acknowledged at once.
            self.acks.demand();
        }
        if data.start < self.next && end_with_fin <= self.next {
            self.reassembly.note_duplicate(data.start, end_with_fin);
            self.acks.enter_quick(self.window.offered(self.next), MAX_QUICK);
            self.ack_due = true;
            return;
        }
        if data.start > self.next {
            self.take_ahead(data, end_with_fin, rtt, now);
            return;
        }
        if data.fin {
            self.fin.get_or_insert(end);
        }
        let gaps = self.take_in_order(data, end_with_fin, rto, now);
        self.judge_ack(gaps, rtt, now);
    }

    /// Decides whether an acknowledgement leaves now. `gaps` says that data is missing.
    #[inline(always)]
    fn judge_ack(&mut self, gaps: bool, rtt: Option<u64>, now: Time) {
        if self.acks.is_due(self.next - self.last_acked) {
            self.ack_due = true;
            self.unread_when_due = self.unread;
        } else {
            self.ack_due |= self.leaves_anyway(gaps, rtt, now);
        }
    }

    /// Whether an acknowledgement that is not due leaves now nevertheless. `gaps` says that data is missing.
    #[inline(always)]
    fn leaves_anyway(&mut self, gaps: bool, rtt: Option<u64>, now: Time) -> bool {
        let least_rtt8 = if gaps { self.least_rtt8(rtt) } else { 0 };
        let check = Check { received_to: self.next, gaps, rtt, least_rtt8 };
        self.acks.check(check, now) || self.acks.after_read(self.next - self.last_acked, gaps)
    }

    /// Takes data beyond the next position expected. Data outside the window is only acknowledged.
    #[inline(never)]
    fn take_ahead(&mut self, data: &Data, end: u64, rtt: Option<u64>, now: Time) {
        if data.start >= self.window.edge() {
            self.acks.enter_quick(self.window.offered(self.next), MAX_QUICK);
            self.ack_due = true;
            return;
        }
        if data.fin {
            self.fin.get_or_insert(data.start + data.len);
        }
        self.see_codepoint(data.ecn);
        self.reassembly.place(data.start, end);
        if self.sack && self.acks.is_compressing() && self.reassembly.displaces(data.start, end) {
            self.unreported = Some((data.start, end));
        } else {
            self.reassembly.note(data.start, end);
            self.acks.schedule();
        }
        // Without SACK the window stays: an acknowledgement with another one is no duplicate (`tcp_data_queue_ofo`).
        if self.sack && self.window.open(data.len, self.reassembly.held(), false) {
            self.acks.tell_opening();
        }
        self.window.hold(self.reassembly.reaches().saturating_sub(self.next));
        if self.unreported.is_none() {
            self.judge_ack(true, rtt, now);
        }
    }

    /// Whether the compressed acknowledgements must leave with the SACK blocks from before the last data, since the data's own block
    /// displaces one that they have not reported (`tcp_sack_new_ofo_skb`).
    #[inline]
    pub(crate) fn must_tell_blocks(&self) -> bool {
        self.unreported.is_some()
    }

    /// They have left. The data that displaced a block is reported by the next acknowledgement, and demands none itself.
    pub(crate) fn on_blocks_sent(&mut self) {
        self.on_ack_sent();
        if let Some((start, end)) = self.unreported.take() {
            self.reassembly.note(start, end);
        }
    }

    /// Takes data that continues the data in order. Returns whether other data is still missing.
    #[inline(always)]
    fn take_in_order(&mut self, data: &Data, end: u64, rto: u64, now: Time) -> bool {
        let start = data.start;
        if start < self.next {
            self.reassembly.note_duplicate(start, self.next);
        }
        let before = self.next;
        let (mut reached, mut beyond) = (end, 0);
        if !self.reassembly.is_empty() {
            reached = self.reassembly.advance(end);
            beyond = self.reassembly.reaches().saturating_sub(reached);
            if beyond == 0 {
                self.acks.demand();
            }
            self.filled = reached - before;
        }
        self.unread += reached - before;
        self.next = reached;
        if let Some(fin) = self.fin
            && reached > fin
        {
            // The FIN takes a position, and is acknowledged at once.
            self.unread -= 1;
            self.acks.demand();
        }
        let len = end - start;
        if data.len > self.acks.largest() {
            self.window.measure(data.len);
        }
        self.acks.on_data(len, rto, now, || self.window.offered(before));
        self.see_codepoint(data.ecn);
        if self.window.open(len, self.reassembly.held(), true) {
            self.acks.tell_opening();
        }
        self.window.autotune(reached, beyond, now);
        if data.push || data.len < self.acks.largest() {
            self.acks.see_push();
        }
        beyond > 0
    }

    fn least_rtt8(&self, rtt: Option<u64>) -> u64 {
        let (seen, smoothed) = (self.window.rtt8(), rtt.map_or(0, |rtt| rtt * 8));
        if smoothed == 0 || seen == 0 { smoothed.max(seen) } else { smoothed.min(seen) }
    }

    /// Whether the delayed acknowledgement must leave before this data is processed, since the data changes ECE (RFC 8257, section
    /// 3.2).
    pub(crate) fn must_tell_first(&self, start: u64, end: u64, ecn: Ecn) -> bool {
        self.feedback == Some(Feedback::Dctcp)
            && ecn.is_capable()
            && (ecn == Ecn::Ce) != self.ce
            && self.acks.is_delaying()
            && end > self.next
            && start < self.window.edge()
    }

    /// The delayed acknowledgement leaves with the state before the data that starts here.
    pub(crate) fn on_delayed_ack_sent(&mut self, start: u64) {
        if start > self.next {
            self.on_ack_sent();
        }
    }

    /// ECE of DCTCP: the mark of the last packet. A change is reported at once.
    fn follow_mark(&mut self, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        if ecn.is_capable() {
            if marked != self.ce {
                self.acks.demand();
            }
            (self.ce, self.echo) = (marked, marked);
        }
    }

    /// `tcp_data_ecn_check`.
    #[inline]
    fn see_codepoint(&mut self, ecn: Ecn) {
        if let Some(feedback) = self.feedback {
            self.answer_codepoint(feedback, ecn);
        }
    }

    fn answer_codepoint(&mut self, feedback: Feedback, ecn: Ecn) {
        if feedback == Feedback::Dctcp {
            self.follow_mark(ecn);
        }
        match ecn {
            Ecn::Ce => {
                self.ect_seen = true;
                if self.accecn.is_some() {
                    return;
                }
                if !self.echo {
                    // The first mark is reported at once.
                    self.acks.enter_quick(self.window.offered(self.next), 2);
                }
                self.echo = true;
            }
            Ecn::NotEct => {
                // A retransmission (never ECT) from a sender that uses ECT: a segment was lost.
                if self.ect_seen {
                    self.acks.enter_quick(self.window.offered(self.next), 2);
                }
            }
            Ecn::Ect0 | Ecn::Ect1 => self.ect_seen = true,
        }
    }

    /// The flags by which an acknowledgement reports marks.
    #[inline]
    pub(crate) fn echo(&self) -> Flags {
        match &self.accecn {
            Some(counted) => flags_of(counted.ace()),
            None if self.echo => Flags::ECE,
            None => Flags::NONE,
        }
    }

    /// The window to advertise now, in bytes.
    #[inline]
    pub(crate) fn tell_window(&mut self) -> u32 {
        if self.window_is_advertised {
            return self.window.last_advertised();
        }
        self.window_is_advertised = true;
        // What fills a gap is acknowledged before the application reads it.
        self.window.tell(self.next, self.reassembly.held() + self.filled)
    }

    /// An acknowledgement has left, alone or with data.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self) {
        self.last_acked = self.next;
        self.acks.on_ack_sent(std::mem::take(&mut self.unread_when_due));
        // The application reads it then, and that may open the window.
        self.ack_due = std::mem::take(&mut self.filled) > 0
            && self.acks.updates_window()
            && self.window.doubles(self.next, self.reassembly.held());
        self.window_is_advertised &= !self.ack_due;
    }

    /// Whether the next segment would have the same receiver fields as the one that has just left, if nothing arrives in between.
    #[inline]
    pub(crate) fn has_said_all(&self) -> bool {
        self.accecn.is_none() && !self.acks.is_quick()
    }

    /// The last acknowledged position (`rcv_wup`).
    pub(crate) fn last_acked(&self) -> u64 {
        self.last_acked
    }

    /// Keeps the timestamp of a segment that starts here, to echo it, if it is the newest and the segment covers the last acknowledged
    /// position (RFC 7323, section 4.3; `tcp_replace_ts_recent`).
    #[inline(always)]
    pub(crate) fn take_timestamp(&mut self, start: u64, tsval: u32) {
        if start <= self.last_acked && (tsval.wrapping_sub(self.recent) as i32) >= 0 {
            self.recent = tsval;
        }
    }

    /// The application reads all data that has arrived in order. Returns the number of bytes.
    pub(crate) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }

    /// Whether all data up to the FIN has arrived.
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }
}
