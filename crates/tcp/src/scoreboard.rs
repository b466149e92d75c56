//! The outstanding segments: a ring of sent segments indexed by segment number, with the marks of Linux (`TCPCB_*`), the counters
//! that follow from them, and the list in order of transmission that RACK walks (`tsorted_sent_queue`). A second ring of bits
//! shows which segments are lost and wait for retransmission, so the next one is found without a scan of the window.
//!
//! While no segment is SACKed, lost or retransmitted, the order of transmission is that of the ring, and the list is not kept. It
//! is linked when a segment first leaves its place, and dropped when all segments outstanding at that time are gone.

mod buffers;

/// Marks of a segment.
pub(crate) const SACKED: u8 = 1;
/// A retransmission is in flight.
pub(crate) const RETRANS: u8 = 2;
pub(crate) const LOST: u8 = 4;
/// The segment was sent more than once.
pub(crate) const EVER_RETRANS: u8 = 8;
/// The segment carries the FIN, which takes one position after its payload.
pub(crate) const FIN: u8 = 16;
/// The segment is in the list in order of transmission.
const LISTED: u8 = 32;
/// The segment shares the buffer of the one before it.
const MERGED: u8 = 64;

const NONE: u32 = u32::MAX;
/// Number of slots at the start of a connection.
const FIRST_SLOTS: usize = 16;

/// A segment that was sent. Times are in microseconds, positions count from the SYN.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) sent_at: u64,
    /// State at the time of sending, for the rate sample: segments delivered, the time of the last delivery, and the time at which
    /// the flight's first segment was sent.
    pub(crate) delivered: u64,
    /// 0 after the segment's rate sample is taken.
    pub(crate) delivered_at: u64,
    pub(crate) first_sent_at: u64,
    /// Slot indices of the neighbours in order of transmission.
    prev: u32,
    next: u32,
    /// Length in sequence space: payload and FIN.
    pub(crate) len: u16,
    pub(crate) marks: u8,
    pub(crate) app_limited: bool,
}

impl Sent {
    /// A segment of `len` positions that leaves at `sent_at`.
    pub(crate) fn new(start: u64, len: u16, fin: bool, sent_at: u64) -> Sent {
        Sent { start, len, sent_at, marks: if fin { FIN } else { 0 }, ..Sent::default() }
    }
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    pub(crate) fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
}

/// The outstanding segments `first..next`.
#[derive(Debug, Clone)]
pub(crate) struct Scoreboard {
    slots: Vec<Sent>,
    /// One bit for each slot: lost and not retransmitted.
    waiting: Vec<u64>,
    mask: usize,
    first: u64,
    next: u64,
    /// Whether the order of transmission is that of the ring, so that no list is linked.
    in_order: bool,
    /// No segment from this one on has left its place in the list.
    disturbed_to: u64,
    /// Ends of the list in order of transmission.
    oldest: u32,
    newest: u32,
    /// No segment before this one waits for retransmission.
    hint: u64,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    /// Segments that share the buffer of the one before them.
    pub(crate) merged: u32,
    /// End of the highest SACKed segment; meaningful while `sacked` is not 0.
    pub(crate) highest_sacked_end: u64,
    /// Number of segments ever marked lost.
    pub(crate) total_lost: u64,
    mss: u64,
}

impl Scoreboard {
    pub(crate) fn new(mss: u16) -> Scoreboard {
        Scoreboard {
            slots: Vec::new(),
            waiting: Vec::new(),
            mask: 0,
            first: 0,
            next: 0,
            in_order: true,
            disturbed_to: 0,
            oldest: NONE,
            newest: NONE,
            hint: 0,
            sacked: 0,
            lost: 0,
            retrans: 0,
            merged: 0,
            highest_sacked_end: 0,
            total_lost: 0,
            mss: u64::from(mss),
        }
    }

    /// Segments outstanding (`packets_out`).
    pub(crate) fn out(&self) -> u32 {
        (self.next - self.first) as u32
    }
    /// Segments believed to be in the network (RFC 6675 pipe, `tcp_packets_in_flight`).
    pub(crate) fn in_flight(&self) -> u32 {
        self.out() - self.sacked - self.lost + self.retrans
    }
    /// Number of the first outstanding segment.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }
    /// Number of the next new segment.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
    fn slot(&self, number: u64) -> usize {
        number as usize & self.mask
    }
    pub(crate) fn get(&self, number: u64) -> &Sent {
        &self.slots[self.slot(number)]
    }
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut Sent {
        let slot = self.slot(number);
        &mut self.slots[slot]
    }
    /// The oldest outstanding segment.
    pub(crate) fn head(&self) -> Option<&Sent> {
        (self.first != self.next).then(|| self.get(self.first))
    }

    /// Appends a segment that is being sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, mut sent: Sent) {
        if self.out() as usize == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.next);
        sent.marks |= LISTED;
        self.slots[slot] = sent;
        self.next += 1;
        if !self.in_order {
            self.append(slot as u32);
        }
    }

    /// A segment is about to leave its place in the list.
    #[inline]
    fn disturb(&mut self) {
        if self.in_order {
            self.link_all();
        }
        self.disturbed_to = self.next;
    }

    #[cold]
    fn link_all(&mut self) {
        self.in_order = false;
        (self.oldest, self.newest) = (NONE, NONE);
        for number in self.first..self.next {
            self.append(self.slot(number) as u32);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(FIRST_SLOTS);
        let (old_mask, mask) = (self.mask, size - 1);
        let mut slots = vec![Sent::default(); size];
        let mut waiting = vec![0; size.div_ceil(64)];
        let mut moved = vec![NONE; self.slots.len()];
        for number in self.first..self.next {
            let (from, to) = (number as usize & old_mask, number as usize & mask);
            slots[to] = self.slots[from];
            moved[from] = to as u32;
            if self.waiting[from / 64] >> (from % 64) & 1 == 1 {
                waiting[to / 64] |= 1 << (to % 64);
            }
        }
        if !self.in_order {
            let relocate = |slot: u32| if slot == NONE { NONE } else { moved[slot as usize] };
            for number in self.first..self.next {
                let sent = &mut slots[number as usize & mask];
                if sent.has(LISTED) {
                    (sent.prev, sent.next) = (relocate(sent.prev), relocate(sent.next));
                }
            }
            (self.oldest, self.newest) = (relocate(self.oldest), relocate(self.newest));
        }
        (self.slots, self.waiting, self.mask) = (slots, waiting, mask);
    }

    fn append(&mut self, slot: u32) {
        let last = self.newest;
        let sent = &mut self.slots[slot as usize];
        (sent.prev, sent.next) = (last, NONE);
        sent.marks |= LISTED;
        self.newest = slot;
        if last == NONE {
            self.oldest = slot;
        } else {
            self.slots[last as usize].next = slot;
        }
    }

    fn unlist(&mut self, slot: usize) {
        let Sent { prev, next, marks, .. } = self.slots[slot];
        if marks & LISTED == 0 {
            return;
        }
        self.slots[slot].marks &= !LISTED;
        if prev == NONE {
            self.oldest = next
        } else {
            self.slots[prev as usize].next = next
        }
        if next == NONE { self.newest = prev } else { self.slots[next as usize].prev = prev }
    }

    /// Removes the oldest segment and updates the counters.
    #[inline]
    pub(crate) fn pop(&mut self) {
        let slot = self.slot(self.first);
        if !self.in_order {
            self.unlist(slot);
            self.in_order = self.first + 1 >= self.disturbed_to;
        }
        let marks = self.slots[slot].marks;
        self.first += 1;
        if marks & (SACKED | LOST | RETRANS) == 0 {
            return;
        }
        self.sacked -= u32::from(marks & SACKED != 0);
        self.split_first();
        self.retrans -= u32::from(marks & RETRANS != 0);
        if marks & LOST != 0 {
            self.lost -= 1;
            self.set_waiting(slot, false);
        }
    }

    /// Whether no outstanding segment is SACKed, lost or retransmitted: the segments differ only in positions and times.
    pub(crate) fn is_plain(&self) -> bool {
        self.in_order && self.lost == 0
    }

    /// Removes the segments of a [plain](Scoreboard::is_plain) board that end at or before this position. Returns the first and the
    /// last of them and their number; `None` if there are none.
    #[inline(always)]
    pub(crate) fn pop_through(&mut self, position: u64) -> Option<(Sent, Sent, u32)> {
        let (from, mut to) = (self.first, self.first);
        while to != self.next && self.get(to).end() <= position {
            to += 1;
        }
        if to == from {
            return None;
        }
        self.first = to;
        Some((*self.get(from), *self.get(to - 1), (to - from) as u32))
    }

    /// Marks a segment SACKed, with the bookkeeping of Linux `tcp_sacktag_one`. The caller has checked that it was not, and has taken
    /// its rate sample.
    pub(crate) fn mark_sacked(&mut self, number: u64) {
        self.disturb();
        let slot = self.slot(number);
        self.unlist(slot);
        let sent = &mut self.slots[slot];
        let (marks, end) = (sent.marks, sent.end());
        sent.marks |= SACKED;
        sent.delivered_at = 0;
        if marks & LOST != 0 {
            sent.marks &= !(LOST | RETRANS);
            self.lost -= 1;
            // A retransmission that was never believed lost is still in flight.
            self.retrans -= u32::from(marks & RETRANS != 0);
            self.set_waiting(slot, false);
        }
        self.highest_sacked_end = if self.sacked == 0 { end } else { self.highest_sacked_end.max(end) };
        self.sacked += 1;
        if marks & (LOST | RETRANS) != RETRANS {
            self.merge(number);
        }
    }

    /// Clears the retransmission mark: a DSACK reported the arrival of the retransmission.
    pub(crate) fn clear_retransmission(&mut self, number: u64) {
        let sent = self.get_mut(number);
        if sent.has(RETRANS) {
            sent.marks &= !RETRANS;
            self.retrans -= 1;
        }
    }

    /// Marks a segment lost (`tcp_mark_skb_lost`). Returns whether it was a retransmission that was lost again.
    pub(crate) fn mark_lost(&mut self, number: u64) -> bool {
        let slot = self.slot(number);
        let sent = &mut self.slots[slot];
        if sent.has(SACKED) {
            return false;
        }
        let again = sent.has(LOST) && sent.has(RETRANS);
        if sent.has(LOST) && !again {
            return false;
        }
        if again {
            sent.marks &= !RETRANS;
            self.retrans -= 1;
        } else {
            sent.marks |= LOST;
            self.lost += 1;
        }
        self.total_lost += 1;
        if !self.slots[slot].has(RETRANS) {
            self.set_waiting(slot, true);
            self.hint = self.hint.min(number);
        }
        again
    }

    /// Records that a segment is retransmitted now: it becomes the newest. `counted` is false for a probe, which Linux does not
    /// count as a retransmission in flight (`tcp_send_loss_probe`).
    pub(crate) fn mark_resent(&mut self, number: u64, now: u64, counted: bool) {
        self.disturb();
        let slot = self.slot(number);
        self.unlist(slot);
        self.append(slot as u32);
        let sent = &mut self.slots[slot];
        sent.sent_at = now;
        sent.marks |= EVER_RETRANS;
        if counted && !sent.has(RETRANS) {
            sent.marks |= RETRANS;
            self.retrans += 1;
            self.set_waiting(slot, false);
        }
    }

    /// Clears all loss marks (`tcp_undo_cwnd_reduction` with `unmark_loss`).
    pub(crate) fn unmark_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        for number in self.first..self.next {
            let slot = self.slot(number);
            self.slots[slot].marks &= !LOST;
        }
        self.lost = 0;
        self.waiting.fill(0);
    }

    /// Clears all SACK marks: the receiver has discarded data that it had reported (RFC 2018, section 8).
    pub(crate) fn forget_sacks(&mut self) {
        self.disturb();
        for number in self.first..self.next {
            let slot = self.slot(number);
            if self.slots[slot].has(SACKED) {
                self.slots[slot].marks &= !(SACKED | MERGED);
                self.unlist(slot);
                self.append(slot as u32);
            }
        }
        (self.sacked, self.merged) = (0, 0);
    }

    fn set_waiting(&mut self, slot: usize, waiting: bool) {
        if waiting {
            self.waiting[slot / 64] |= 1 << (slot % 64);
        } else {
            self.waiting[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// The number of the first segment that is lost and not retransmitted; `None` if there is none.
    pub(crate) fn next_waiting(&mut self) -> Option<u64> {
        let mut number = self.hint.max(self.first);
        while number < self.next {
            let slot = self.slot(number);
            let word = self.waiting[slot / 64] >> (slot % 64);
            if word != 0 {
                number += u64::from(word.trailing_zeros());
                self.hint = number;
                return (number < self.next).then_some(number);
            }
            number += (64 - slot % 64).min(self.slots.len() - slot) as u64;
        }
        self.hint = self.next;
        None
    }

    /// The number of the first segment that starts at or after this position.
    pub(crate) fn at_or_after(&self, position: u64) -> u64 {
        let Some(head) = self.head() else { return self.next };
        if position <= head.start {
            return self.first;
        }
        // Exact while all segments are full; too low, but never too high, after short segments.
        let mut low = (self.first + (position - head.start) / self.mss).min(self.next);
        if low < self.next && self.get(low).start == position {
            return low;
        }
        let mut high = self.next;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).start < position { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The number of the segment that was sent first; `None` if the list is empty.
    pub(crate) fn oldest_sent(&self) -> Option<u64> {
        if self.in_order {
            return (self.first != self.next).then_some(self.first);
        }
        self.number_of(self.oldest)
    }
    /// The number of the segment sent next after this one; `None` after the newest.
    pub(crate) fn sent_after(&self, number: u64) -> Option<u64> {
        if self.in_order {
            return (number + 1 < self.next).then_some(number + 1);
        }
        self.number_of(self.get(number).next)
    }
    /// Removes a segment from the list in order of transmission until it is retransmitted.
    pub(crate) fn leave_list(&mut self, number: u64) {
        self.disturb();
        let slot = self.slot(number);
        self.unlist(slot);
    }

    fn number_of(&self, slot: u32) -> Option<u64> {
        (slot != NONE).then(|| {
            let ahead = (slot as usize).wrapping_sub(self.first as usize) & self.mask;
            self.first + ahead as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const MSS: u16 = 1000;

    pub(super) fn send(board: &mut Scoreboard, segments: u64) {
        for _ in 0..segments {
            let number = board.next();
            board.push(Sent::new(1 + number * u64::from(MSS), MSS, false, number));
        }
    }
    fn in_order_of_transmission(board: &Scoreboard) -> Vec<u64> {
        std::iter::successors(board.oldest_sent(), |&number| board.sent_after(number)).collect()
    }

    #[test]
    fn segments_stay_in_order_of_transmission_across_losses_and_retransmissions() {
        let mut board = Scoreboard::new(MSS);
        send(&mut board, 5);
        board.pop();
        assert_eq!(in_order_of_transmission(&board), [1, 2, 3, 4]);
        board.mark_sacked(3);
        board.mark_lost(1);
        assert_eq!(in_order_of_transmission(&board), [1, 2, 4]);
        board.mark_resent(1, 5, true);
        // The ring grows from 16 slots to 32 with the list in use.
        send(&mut board, 20);
        let expected: Vec<u64> = [2, 4, 1].into_iter().chain(5..25).collect();
        assert_eq!(in_order_of_transmission(&board), expected);
        // Once all segments outstanding at the retransmission are gone, the order is that of the ring again.
        (0..4).for_each(|_| board.pop());
        assert_eq!(in_order_of_transmission(&board), (5..25).collect::<Vec<_>>());
        send(&mut board, 1);
        board.leave_list(5);
        assert_eq!(in_order_of_transmission(&board), (6..26).collect::<Vec<_>>());
        (0..21).for_each(|_| board.pop());
        assert_eq!((board.out(), board.oldest_sent()), (0, None));
    }
}
