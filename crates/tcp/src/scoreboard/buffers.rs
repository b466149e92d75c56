//! Which segments share a buffer in the send queue: Linux merges SACKed neighbours (`tcp_shift_skb_data`), and each merger frees the head
//! of a buffer.

use super::{MERGED, SACKED, Scoreboard, Sent};

impl Scoreboard {
    /// A segment that has just been SACKed joins the buffer of a SACKed one of the same length before it, and the one behind it then
    /// does so too (`tcp_shift_skb_data`). One behind it alone does not, since Linux looks at that after a merger only.
    pub(super) fn merge(&mut self, number: u64) {
        let len = self.get(number).len;
        let is_alike = |sent: &Sent| sent.has(SACKED) && sent.len == len;
        if number == self.first || !is_alike(self.get(number - 1)) {
            return;
        }
        self.join(number);
        if number + 1 != self.next && is_alike(self.get(number + 1)) {
            self.join(number + 1);
        }
    }

    fn join(&mut self, number: u64) {
        let sent = self.get_mut(number);
        let joins = !sent.has(MERGED);
        sent.marks |= MERGED;
        self.merged += u32::from(joins);
    }

    /// The first segment keeps the buffer that it has shared with those before it (`tcp_trim_head`).
    pub(super) fn split_first(&mut self) {
        if self.merged > 0 && self.first != self.next {
            let slot = self.slot(self.first);
            self.merged -= u32::from(self.slots[slot].has(MERGED));
            self.slots[slot].marks &= !MERGED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MSS, send};
    use super::*;

    #[test]
    fn a_segment_joins_the_buffer_of_a_sacked_one_before_it_and_then_the_one_behind_it() {
        let mut board = Scoreboard::new(MSS);
        send(&mut board, 10);
        let mut merged = |numbers: &[u64]| {
            numbers.iter().for_each(|number| board.mark_sacked(*number));
            board.merged
        };
        assert_eq!(merged(&[1, 3, 5, 7, 8]), 1, "8 joins 7");
        assert_eq!(merged(&[2]), 3, "2 joins 1, and 3 joins it");
        assert_eq!(merged(&[4]), 5, "4 and 5 do too");
        assert_eq!(merged(&[0]), 5, "nothing stands before 0, so that 1 keeps its own");
        // 1 to 5 share a buffer, and 7 and 8. What is acknowledged leaves it.
        (0..3).for_each(|_| board.pop());
        assert_eq!((board.first(), board.merged), (3, 3), "4, 5 and 8 are left");
        (0..7).for_each(|_| board.pop());
        assert_eq!(board.merged, 0);
    }
}
