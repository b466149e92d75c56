//! The times of acknowledgements as in Linux: at once for every second full segment, in quick mode, when a gap closes or a
//! duplicate arrives; compressed while data is missing (`__tcp_ack_snd_check`), but not for so long that SACK blocks are never reported
//! (`tcp_sack_compress_send_ack`, called by the connection); otherwise after a delay that adapts to the arrivals
//! (`tcp_event_data_recv`, `tcp_send_delayed_ack`). A fixed delay follows RFC 5681, section 4.2, only, as in BSD: every second
//! segment, and no quick mode. BSD also sends a window update when the application has read two segments beyond the last advertised
//! window (`tcp_output.c` of FreeBSD 4). The acknowledgement of a second segment leaves before that segment is read, so its window
//! is one segment smaller, and the third segment is acknowledged as soon as it is read: two acknowledgements for three segments.

use super::jiffies;
use weir_base::{Span, Time};

/// Shortest delay: 40 ms (`TCP_ATO_MIN`, `TCP_DELACK_MIN`), in microseconds.
const MIN: u64 = 40_000;
/// Longest delay: 200 ms (`TCP_DELACK_MAX`).
const MAX: u64 = 200_000;
/// Largest number of segments acknowledged one by one at the start (`TCP_MAX_QUICKACKS`).
pub(crate) const MAX_QUICK: u32 = 16;
/// Duplicate acknowledgements sent one by one before compression begins (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u32 = 3;
/// Largest number of duplicate acknowledgements that are compressed into one (`tcp_comp_sack_nr`).
const MOST_COMPRESSED: u32 = 44;
/// Longest delay of compressed acknowledgements (`tcp_comp_sack_delay_ns`).
const COMPRESS: Span = Span::from_millis(1);
/// Divisor of the RTT that bounds their delay: a 20th, 5 %.
const COMPRESS_PART: u64 = 20;

/// The receiver's state that [`DelayedAck::check`] uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) received_to: u64,
    pub(crate) gaps: bool,
    /// Smoothed RTT in microseconds; `None` before the first sample.
    pub(crate) rtt: Option<u64>,
    /// Eight times the smaller of `rtt` and the RTT measured by the receiver, in microseconds; 0 before the first sample, and without
    /// gaps.
    pub(crate) least_rtt8: u64,
}

/// The acknowledgement policy of one receiver.
#[derive(Debug, Clone)]
pub(crate) struct DelayedAck {
    /// Present delay in microseconds; 0 before the first data.
    ato: u64,
    last_data: Time,
    quick: u32,
    /// Whether data has arrived that is not acknowledged.
    scheduled: bool,
    now_due: bool,
    /// Whether the sender has paused, by PSH or a short segment.
    pushed: bool,
    /// Whether data was recently sent in answer, which turns quick mode off (`icsk_ack.pingpong`).
    interactive: bool,
    largest: u64,
    rto: u64,
    deadline: Time,
    /// A fixed delay in microseconds; `None` if the delay adapts.
    fixed: Option<u64>,
    /// Whether a window update is sent once two segments were read.
    window_updates: bool,
    /// Bytes that the application had not read when the window was last advertised.
    unread: u64,
    compress: bool,
    compressed: u32,
    compress_deadline: Time,
    duplicates: u32,
    duplicates_at: u64,
}

impl DelayedAck {
    /// A policy with or without compression of duplicates. The delay adapts if `fixed` is `None`. With `window_updates`, a window
    /// update is sent once two segments were read.
    pub(crate) fn new(compress: bool, fixed: Option<Span>, window_updates: bool) -> DelayedAck {
        DelayedAck {
            ato: 0,
            last_data: Time::ZERO,
            quick: 0,
            scheduled: false,
            now_due: false,
            pushed: false,
            interactive: false,
            // The smallest assumed MSS of a peer (`TCP_MSS_DEFAULT`).
            largest: 536,
            rto: super::rto::RTO_INITIAL,
            deadline: Time::NEVER,
            fixed: fixed.map(Span::as_micros),
            window_updates,
            unread: 0,
            compress,
            compressed: 0,
            compress_deadline: Time::NEVER,
            duplicates: 0,
            duplicates_at: 0,
        }
    }

    /// In-order data has arrived (`tcp_event_data_recv`). `window` gives the bytes of the advertised window before it.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, len: u64, rto: u64, now: Time, window: impl FnOnce() -> u64) {
        self.scheduled = true;
        self.rto = rto;
        self.largest = self.largest.max(len);
        if self.ato == 0 {
            self.quicken(window(), MAX_QUICK);
            self.ato = MIN;
        } else {
            // With so small a gap, the gap in jiffies is at most half of the shortest delay: no division is needed.
            if now.since(self.last_data) < Span::from_micros(MIN / 2) {
                self.ato = self.ato / 2 + MIN / 2;
            } else {
                self.adapt(window(), rto, now);
            }
        }
        self.last_data = now;
    }

    /// Adapts the delay to the gap since the last data.
    #[inline(never)]
    fn adapt(&mut self, window: u64, rto: u64, now: Time) {
        let jiffy = jiffies::JIFFY.as_nanos();
        let gap = (now.as_nanos() / jiffy - self.last_data.as_nanos() / jiffy) * (jiffy / 1_000);
        if gap <= MIN / 2 {
            self.ato = self.ato / 2 + MIN / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(rto);
        } else if gap > rto {
            // The sender failed to restart its window: help it.
            self.quicken(window, MAX_QUICK);
        }
    }

    fn quicken(&mut self, window: u64, most: u32) {
        if self.fixed.is_some() {
            return;
        }
        let segments = (window / (2 * self.largest)) as u32;
        let segments = if segments == 0 { 2 } else { segments };
        self.quick = self.quick.max(segments.min(most));
    }

    /// `tcp_enter_quickack_mode`.
    pub(crate) fn enter_quick(&mut self, window: u64, most: u32) {
        self.quicken(window, most);
        self.interactive = false;
        self.ato = MIN;
        self.scheduled = true;
    }

    /// Out-of-order data has arrived.
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }
    /// A gap was closed or a mark has arrived: the next check sends an acknowledgement.
    pub(crate) fn demand(&mut self) {
        self.scheduled = true;
        self.now_due = true;
    }

    /// Whether an acknowledgement must leave now, without [`DelayedAck::check`]. `unacknowledged` is the number of bytes received in
    /// order that are not acknowledged.
    #[inline]
    pub(crate) fn is_due(&self, unacknowledged: u64) -> bool {
        self.scheduled
            && (unacknowledged > self.largest || (self.quick > 0 && !self.interactive) || self.now_due)
    }

    /// Whether an acknowledgement that is not [due](DelayedAck::is_due) must leave now; otherwise sets a timer.
    #[inline(always)]
    pub(crate) fn check(&mut self, check: Check, now: Time) -> bool {
        if !self.scheduled {
            return false;
        }
        if !check.gaps {
            return self.delay(check.rtt, now);
        }
        !self.compress_one(check, now)
    }

    /// The sender has paused (`ICSK_ACK_PUSHED`).
    pub(crate) fn see_push(&mut self) {
        self.pushed = true;
    }

    /// The application has read all in-order data, of which `unacknowledged` bytes are not acknowledged. Returns whether an
    /// acknowledgement leaves at once (`tcp_cleanup_rbuf`; in BSD `tcp_usr_rcvd`).
    pub(crate) fn after_read(&self, unacknowledged: u64, gaps: bool) -> bool {
        if self.fixed.is_some() {
            let opened = self.unread + unacknowledged;
            return self.window_updates && unacknowledged > 0 && opened >= 2 * self.largest;
        }
        self.scheduled && self.pushed && !self.interactive && !gaps
    }

    /// Whether an acknowledgement tells that a read has doubled the window.
    #[inline]
    pub(crate) fn updates_window(&self) -> bool {
        self.fixed.is_none()
    }

    /// Compresses a duplicate acknowledgement if that is allowed, and returns whether it did.
    #[inline(never)]
    fn compress_one(&mut self, check: Check, now: Time) -> bool {
        if !self.compress || self.compressed >= MOST_COMPRESSED {
            return false;
        }
        if self.duplicates_at != check.received_to {
            self.duplicates_at = check.received_to;
            self.duplicates = 0;
        }
        if self.duplicates < UNCOMPRESSED {
            self.duplicates += 1;
            return false;
        }
        self.compressed += 1;
        if self.compress_deadline == Time::NEVER {
            let part = Span::from_micros(check.least_rtt8 / 8) / COMPRESS_PART;
            self.compress_deadline = now + part.min(COMPRESS);
        }
        true
    }

    /// Whether a compressed acknowledgement waits.
    #[inline]
    pub(crate) fn is_compressing(&self) -> bool {
        self.compressed > 0
    }

    /// Whether segments are acknowledged one by one.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Largest payload seen in one segment.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    /// `tcp_send_delayed_ack`. Returns whether the running timer is so close that the acknowledgement leaves now.
    #[inline(always)]
    fn delay(&mut self, rtt: Option<u64>, now: Time) -> bool {
        let mut wait = self.ato;
        if wait > MIN {
            wait = wait.min(rtt.map_or(MAX, |rtt| jiffies::round_up(rtt).max(MIN)));
        }
        let wait = self.fixed.unwrap_or(wait.min(MAX));
        if self.deadline != Time::NEVER && self.deadline <= now + Span::from_micros(wait / 4) {
            return self.fixed.is_none();
        }
        // A running timer is never delayed.
        self.deadline = self.deadline.min(jiffies::deadline(now, wait));
        false
    }

    /// Whether an acknowledgement is delayed (`ICSK_ACK_TIMER`).
    pub(crate) fn is_delaying(&self) -> bool {
        self.deadline != Time::NEVER
    }

    /// The window has opened: the next acknowledgement is not delayed (`tcp_grow_window`).
    pub(crate) fn tell_opening(&mut self) {
        self.quick |= u32::from(self.fixed.is_none());
    }

    /// Data leaves. Data in answer to data that has just arrived carries the acknowledgement (`tcp_event_data_sent`).
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        // There is no delay before the first data; a sender that receives no data calls this for every segment.
        if self.ato > 0 && now.since(self.last_data).as_micros() < self.ato {
            self.interactive = true;
        }
    }

    /// An acknowledgement has left, alone or with data (`tcp_event_ack_sent`), while `unread` bytes were not read.
    pub(crate) fn on_ack_sent(&mut self, unread: u64) {
        self.unread = unread;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = MIN;
            }
        }
        self.scheduled = false;
        self.now_due = false;
        self.pushed = false;
        self.deadline = Time::NEVER;
        self.compressed = 0;
        self.compress_deadline = Time::NEVER;
    }

    /// The earliest of its deadlines.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline.min(self.compress_deadline)
    }

    /// Handles deadlines that have passed. Returns whether an acknowledgement must leave.
    pub(crate) fn on_timer(&mut self, now: Time) -> bool {
        if now >= self.compress_deadline {
            self.compress_deadline = Time::NEVER;
            return self.compressed > 0;
        }
        if now < self.deadline {
            return false;
        }
        self.deadline = Time::NEVER;
        if !self.scheduled {
            return false;
        }
        // The delay has expired: it was too short, or the exchange was not interactive.
        if self.interactive {
            self.interactive = false;
            self.ato = MIN;
        } else {
            self.ato = (self.ato * 2).min(self.rto);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an acknowledgement must leave now.
    fn leaves(ack: &mut DelayedAck, unacknowledged: u64, gaps: bool) -> bool {
        let check = Check { received_to: 1, gaps, rtt: Some(20_000), least_rtt8: 160_000 };
        ack.is_due(unacknowledged) || ack.check(check, Time::ZERO)
    }

    /// The numbers of the full segments that are acknowledged at once, if `segments` of them arrive one by one.
    fn acknowledged(ack: &mut DelayedAck, segments: u32) -> Vec<u32> {
        let mut pending = 0;
        let mut sent = Vec::new();
        for n in 0..segments {
            ack.on_data(1448, 220_000, Time::ZERO, || 65_160);
            pending += 1448;
            if leaves(ack, pending, false) {
                ack.on_ack_sent(0);
                pending = 0;
                sent.push(n);
            }
        }
        sent
    }

    #[test]
    fn the_first_sixteen_segments_are_acknowledged_one_by_one_then_every_second() {
        let mut ack = DelayedAck::new(true, None, false);
        assert_eq!(acknowledged(&mut ack, 24), (0..16).chain([17, 19, 21, 23]).collect::<Vec<_>>());
    }

    #[test]
    fn with_a_fixed_delay_every_second_segment_is_acknowledged_from_the_first_on() {
        let mut ack = DelayedAck::new(false, Some(Span::from_millis(100)), false);
        assert_eq!(acknowledged(&mut ack, 6), [1, 3, 5]);
        ack.on_data(1448, 220_000, Time::ZERO, || 65_160);
        assert!(!leaves(&mut ack, 1448, false));
        let late = ack.deadline();
        assert!(late >= Time::ZERO + Span::from_millis(100) && late <= Time::ZERO + Span::from_millis(104));
        assert!(ack.on_timer(late));
    }

    #[test]
    fn with_window_updates_two_of_three_segments_are_acknowledged() {
        // FreeBSD 4: the second segment is acknowledged at once, before it is read; the third when it is read, since the window is
        // then two segments larger than advertised.
        let mut ack = DelayedAck::new(false, Some(Span::from_millis(100)), true);
        let (mut pending, mut at_once, mut after_read) = (0, vec![], vec![]);
        for n in 1..=9 {
            ack.on_data(1448, 220_000, Time::ZERO, || 65_160);
            pending += 1448;
            let (due, unread) = (leaves(&mut ack, pending, false), 1448);
            if due || ack.after_read(pending, false) {
                ack.on_ack_sent(if due { unread } else { 0 });
                pending = 0;
                if due { at_once.push(n) } else { after_read.push(n) }
            }
        }
        assert_eq!((at_once, after_read), (vec![2, 5, 8], vec![3, 6, 9]));
        assert!(!ack.after_read(0, false), "what is read without new data is not told of");
    }

    #[test]
    fn a_lone_segment_waits_40_ms() {
        let mut ack = DelayedAck::new(true, None, false);
        ack.on_data(1448, 220_000, Time::ZERO, || 65_160);
        ack.quick = 0;
        assert!(!leaves(&mut ack, 1448, false));
        assert_eq!(ack.deadline(), Time::ZERO + Span::from_millis(44));
        assert!(ack.on_timer(ack.deadline()));
    }

    #[test]
    fn three_duplicate_acknowledgements_leave_at_once_and_more_wait_a_twentieth_of_the_rtt() {
        let mut ack = DelayedAck::new(true, None, false);
        let mut at_once = 0;
        for _ in 0..5 {
            ack.schedule();
            if leaves(&mut ack, 0, true) {
                ack.on_ack_sent(0);
                at_once += 1;
            }
        }
        assert_eq!(at_once, 3);
        assert_eq!(ack.deadline(), Time::ZERO + Span::from_millis(1));
        assert!(ack.on_timer(ack.deadline()));
    }
}
