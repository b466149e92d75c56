//! Batches: full segments of new data that leave one after the other in answer to one event, as far as the windows allow.
//! The first of them has been looked at in every respect; those after it differ from it in nothing but their place, so that
//! only room and data are looked at again. There are batches where nothing happens between two segments: while all is well
//! (the open phase), without pacing or a window below one segment.

/// What may follow the new segment that has just left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch {
    /// Segments for which the congestion window has room.
    room: u32,
    /// No segment may end beyond this position; 0 where there is no batch.
    end: u64,
}

/// What comes next in a batch.
pub(crate) enum Next<T> {
    /// Another segment.
    Segment(T),
    /// Nothing: the congestion window is full.
    Full,
    /// There is no batch, or it is over for another reason.
    Over,
}

impl Batch {
    /// There is room for so many segments, none of which may end beyond `end`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, room: u32, end: u64) {
        *self = Batch { room, end };
    }

    /// It is over.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.end = 0;
    }

    /// Whether a segment that ends here leaves in it.
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
