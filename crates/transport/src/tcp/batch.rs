//! Batches: full segments of new data that leave one after the other in answer to one event, as far as the windows allow.
//! The first of them has been looked at in every respect; those after it differ from it in nothing but their place, so that
//! only room and data are looked at again. There are batches where nothing happens between two segments: while all is well
//! (the open phase), without pacing or a window below one segment.

use super::scoreboard::Sent;
use super::sender::{Sender, micros};
use super::transmit::Outgoing;
use weir_base::{Bytes, Time};
use weir_control::Phase;

/// What may follow the new segment that has just left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch {
    /// Segments for which the congestion window has room.
    room: u32,
    /// No segment may end beyond this position; 0 where there is no batch.
    end: u64,
}

/// What comes next in a batch.
pub(crate) enum Next {
    /// Another segment.
    Segment(Outgoing),
    /// Nothing: the congestion window is full.
    Full,
    /// There is no batch, or it is over for another reason.
    Over,
}

impl Sender {
    /// A new segment has left: begins a batch, if others like it may follow.
    #[inline(always)]
    pub(crate) fn begin_batch(&mut self) {
        let alike =
            self.phase == Phase::Open && !self.wants_sent && !self.pacer.is_enforced() && !self.is_sub_mss();
        if alike {
            // The last segment before a FIN carries it.
            let data = self.written.end - u64::from(self.written.closed);
            let room = self.cwnd().saturating_sub(self.board.in_flight());
            self.batch = Batch { room, end: data.min(self.window_end()) };
        }
    }

    /// Something has happened, or nothing more is to leave.
    #[inline]
    pub(crate) fn end_batch(&mut self) {
        self.batch.end = 0;
    }

    /// The next segment of the batch.
    #[inline(always)]
    pub(crate) fn next_in_batch(&mut self, now: Time) -> Next {
        let Batch { room, end } = self.batch;
        if end == 0 {
            return Next::Over;
        }
        let next = self.next + u64::from(self.mss);
        if room == 0 || next > end {
            self.end_batch();
            return if room == 0 { Next::Full } else { Next::Over };
        }
        self.batch.room = room - 1;
        self.burst += 1;
        let (at, start, len) = (micros(now), self.next, self.mss);
        let mut sent = Sent::new(start, len, false, at);
        self.next = next;
        self.delivery.on_sent(&mut sent, at, false);
        self.board.push(sent);
        self.pacer.on_sent(Bytes::new(u64::from(len)), now);
        let push = next >= self.written.end && !self.written.endless;
        Next::Segment(Outgoing { start, len, fin: false, new: true, cwr: false, push })
    }
}
