//! The data that the application has written to a connection. The handshake keeps it until the connection is open, then the
//! sender does.

/// The written data, and whether more will follow. Positions count from the SYN, which has position 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Position after the last byte.
    pub(crate) end: u64,
    /// Whether the application always has more: the buffer is filled again whenever it is woken.
    pub(crate) endless: bool,
    /// Whether an endless application refills the buffer at once, without waiting to be woken.
    pub(crate) greedy: bool,
    /// Whether the application has closed its side: a FIN follows the written data.
    pub(crate) closed: bool,
    /// Where unsent data ends that filled the buffer, in order; [`NONE`] from the last one on.
    pub(crate) fills: [u64; FILLS],
}

/// A buffer is filled again when a third of it is free, so no more than three fills wait to be sent.
const FILLS: usize = 4;
const NONE: u64 = u64::MAX;

impl Default for Written {
    fn default() -> Written {
        Written { end: 1, endless: false, greedy: false, closed: false, fills: [NONE; FILLS] }
    }
}

impl Written {
    /// From now on the application always has data.
    pub(crate) fn write_forever(&mut self, greedy: bool) {
        (self.endless, self.greedy) = (true, greedy);
    }

    /// The data that is written so far has filled the buffer: its last segment carries PSH (`tcp_mark_push`).
    pub(crate) fn note_fill(&mut self) {
        if let Some(free) = self.fills.iter_mut().find(|fill| **fill == NONE) {
            *free = self.end;
        }
    }

    /// Whether a segment with data up to here carries PSH: it ends the data that filled the buffer, or all data of an application that
    /// has not more. A write after it, which finds room, takes PSH off a segment that is not sent (`tcp_sendmsg_locked`).
    #[inline]
    pub(crate) fn pushes(&mut self, to: u64) -> bool {
        if to >= self.fills[0] {
            self.take_fills(to);
            return true;
        }
        to >= self.end && !self.endless
    }

    #[cold]
    fn take_fills(&mut self, to: u64) {
        while to >= self.fills[0] && self.fills[0] != NONE {
            self.fills.rotate_left(1);
            self.fills[FILLS - 1] = NONE;
        }
    }

    /// The application has written its last byte.
    pub(crate) fn close(&mut self) {
        (self.endless, self.closed) = (false, true);
    }

    /// Number of written bytes beyond this position.
    #[inline]
    pub(crate) fn beyond(&self, position: u64) -> u64 {
        self.end.saturating_sub(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segment_that_ends_each_fill_of_the_buffer_carries_psh() {
        let mut written = Written { end: 101, endless: true, ..Written::default() };
        written.note_fill();
        written.end = 131;
        written.note_fill();
        let pushed: Vec<u64> = (1..).map(|n| 1 + 10 * n).take(13).filter(|to| written.pushes(*to)).collect();
        assert_eq!(pushed, [101, 131]);
    }

    #[test]
    fn a_segment_that_ends_two_fills_carries_one_psh() {
        let mut written = Written { end: 8, endless: true, ..Written::default() };
        written.note_fill();
        written.end = 10;
        written.note_fill();
        assert!(written.pushes(11) && !written.pushes(21));
    }

    #[test]
    fn the_end_of_data_carries_psh_unless_more_follows_without_end() {
        let mut written = Written { end: 101, ..Written::default() };
        assert!(!written.pushes(91) && written.pushes(101));
        written.write_forever(false);
        assert!(!written.pushes(101));
    }
}
