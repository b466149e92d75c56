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
    /// The position from which on a segment may carry PSH as the first fill says.
    pub(crate) next_push: u64,
    /// Unsent data with segments that carry PSH, in order; [`Fill::NONE`] from the last one on.
    pub(crate) fills: [Fill; FILLS],
}

/// A buffer is filled again when a third of it is free, so no more than three fills wait to be sent.
const FILLS: usize = 4;
/// Bytes that an application writes with one call, as those of live runs do (`TURN` of `kernel_socket.rs`). A larger amount is several calls.
const CALL: u64 = 65_536;

/// Data that the application has written without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    /// Position after its last byte.
    end: u64,
    /// Whether it has filled the buffer. Then its last segment carries PSH.
    full: bool,
    /// Half of the largest window that the peer had advertised: so much data may follow a segment with PSH until another one carries it
    /// (`forced_push`).
    half: u64,
    /// End of the call that wrote the next segment, and end of the last data with PSH (`pushed_seq`).
    call_end: u64,
    pushed: u64,
}

impl Fill {
    const NONE: Fill = Fill { end: u64::MAX, full: false, half: 0, call_end: u64::MAX, pushed: u64::MAX };

    /// The position from which on a segment may carry PSH.
    fn next(&self) -> u64 {
        self.end.min(self.call_end).min(self.pushed.saturating_add(self.half + 1))
    }

    /// Whether the segment that ends here carries PSH. A call marks the segment that it completes half a window behind the last mark, and the
    /// last one. The next call takes the mark off a segment to which it adds data (`tcp_sendmsg_locked`).
    fn pushes(&mut self, to: u64) -> bool {
        if to >= self.end {
            return self.full;
        }
        let within = to <= self.call_end;
        if within {
            self.pushed = to;
        }
        while self.call_end <= to {
            self.pushed = self.call_end;
            self.call_end += CALL;
        }
        within
    }
}

impl Default for Written {
    fn default() -> Written {
        Written {
            end: 1,
            endless: false,
            greedy: false,
            closed: false,
            next_push: u64::MAX,
            fills: [Fill::NONE; FILLS],
        }
    }
}

impl Written {
    /// From now on the application always has data.
    pub(crate) fn write_forever(&mut self, greedy: bool) {
        (self.endless, self.greedy) = (true, greedy);
    }

    /// The application has written the data from this position on. It may have filled the buffer: then its last segment carries PSH
    /// (`tcp_mark_push`). `max_window` is the largest window that the peer has advertised, in bytes.
    pub(crate) fn note(&mut self, from: u64, full: bool, max_window: u32) {
        let half = u64::from(max_window / 2);
        if !full && self.end - from <= half {
            return;
        }
        if let Some(free) = self.fills.iter_mut().find(|fill| **fill == Fill::NONE) {
            *free = Fill { end: self.end, full, half, call_end: from + CALL, pushed: from };
            self.next_push = self.fills[0].next();
        }
    }

    /// Whether a segment with data up to here carries PSH: as its [`Fill`] says, or because it ends all data of an application that
    /// has not more. A write after it, which finds room, takes PSH off a segment that is not sent (`tcp_sendmsg_locked`).
    #[inline]
    pub(crate) fn pushes(&mut self, to: u64) -> bool {
        (to >= self.next_push && self.fill_pushes(to)) || (to >= self.end && !self.endless)
    }

    #[cold]
    fn fill_pushes(&mut self, to: u64) -> bool {
        let mut pushes = self.fills[0].pushes(to);
        while to >= self.fills[0].end {
            self.fills.rotate_left(1);
            self.fills[FILLS - 1] = Fill::NONE;
            pushes |= to >= self.fills[0].next() && self.fills[0].pushes(to);
        }
        self.next_push = self.fills[0].next();
        pushes
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
        written.note(1, true, 65_160);
        written.end = 131;
        written.note(101, true, 65_160);
        let pushed: Vec<u64> = (1..).map(|n| 1 + 10 * n).take(13).filter(|to| written.pushes(*to)).collect();
        assert_eq!(pushed, [101, 131]);
    }

    #[test]
    fn a_segment_that_ends_two_fills_carries_one_psh() {
        let mut written = Written { end: 8, endless: true, ..Written::default() };
        written.note(1, true, 65_160);
        written.end = 10;
        written.note(8, true, 65_160);
        assert!(written.pushes(11) && !written.pushes(21));
    }

    #[test]
    fn the_end_of_data_carries_psh_unless_more_follows_without_end() {
        let mut written = Written { end: 101, ..Written::default() };
        assert!(!written.pushes(91) && written.pushes(101));
        written.write_forever(false);
        assert!(!written.pushes(101));
    }

    /// The segments of 1,448 bytes, by number from 1, that carry PSH.
    fn pushed(mut written: Written, segments: u64) -> Vec<u64> {
        (1..=segments).filter(|n| written.pushes(1 + n * 1448)).collect()
    }

    #[test]
    fn a_large_fill_carries_psh_in_each_call_half_a_window_behind_the_last() {
        // As captured from Linux 6.18: buffers of 4 MiB and 8 MiB, filled by calls of 64 KiB while the window was 65,160 bytes.
        let mut written = Written { end: 1 + 4_000_000, endless: true, ..Written::default() };
        written.note(1, true, 65_160);
        let captured = [23, 68, 114, 159, 204, 249, 295, 340, 385, 430, 476, 521, 566, 611];
        assert_eq!(pushed(written, 650), captured);
    }

    #[test]
    fn a_large_window_leaves_psh_to_the_end_of_a_fill() {
        let mut written = Written { end: 1 + 400 * 1448, endless: true, ..Written::default() };
        written.note(1, true, 131_072);
        assert_eq!(pushed(written, 400), [400]);
    }

    #[test]
    fn a_small_window_needs_psh_several_times_in_a_call() {
        // Half a window is 16,000 bytes: 12, 24 and 36 segments, and no 48th, which only the second call completes (65,536 bytes are 45.3).
        // The second call's first is the 57th: 65,536 + 16,000 bytes are 56.3 segments.
        let mut written = Written { end: 1 + 60 * 1448, ..Written::default() };
        written.note(1, false, 32_000);
        assert_eq!(pushed(written, 60), [12, 24, 36, 57, 60]);
    }

    #[test]
    fn a_segment_that_ends_a_call_carries_psh() {
        let mut written = Written { end: 1 + 3 * CALL, endless: true, ..Written::default() };
        written.note(1, true, 1 << 20);
        let pushed: Vec<u64> = (1..=48).filter(|n| written.pushes(1 + n * 4096)).collect();
        assert_eq!(pushed, [16, 32, 48]);
    }
}
