//! Batches: full segments of new data that leave one after the other in answer to one event, as far as the windows allow.
//! The conditions are checked when a batch begins. Its segments differ only in their position, so only room and data are checked again.
//! A batch needs a state in which nothing happens between two segments: the open phase with data in flight, without pacing and with a
//! window of at least one segment.

/// The segments of new data that may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch {
    /// Segments for which the congestion window has room.
    room: u32,
    /// No segment may end beyond this position; 0 if there is no batch.
    end: u64,
}

/// The next step of a batch.
pub(crate) enum Next<T> {
    /// Another segment.
    Segment(T),
    /// No segment: the congestion window is full.
    Full,
    /// There is no batch, or it is over for another reason.
    Over,
}

impl Batch {
    /// Begins a batch of at most `room` segments, none of which may end beyond `end`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, room: u32, end: u64) {
        *self = Batch { room, end };
    }

    /// Whether the batch has filled the congestion window.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Whether another segment may follow.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.end > 0 && self.room > 0
    }

    /// Ends the batch.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.end = 0;
    }

    /// Whether a segment that ends at this position leaves in the batch.
    #[inline(always)]
    pub(crate) fn next(&mut self, end_of_next: u64) -> Next<()> {
        let Batch { room, end } = *self;
        if end == 0 {
            return Next::Over;
        }
        if room == 0 || end_of_next > end {
            self.end();
            return if room == 0 { Next::Full } else { Next::Over };
        }
        self.room = room - 1;
        Next::Segment(())
    }
}
