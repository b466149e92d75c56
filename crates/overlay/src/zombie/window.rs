//! Sliding windows of four segments, as ZLR keeps them: of the least depth, of bytes added, of bytes that came, and of bytes that left.
//!
//! Source: digest A 6.6. A window that is not yet full holds zeros, so nothing is concluded from a part of one.

use weir_base::{Span, Time};

const SEGMENTS: usize = 4;

/// A window; a segment of it holds one value in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    segments: [u64; SEGMENTS],
    current: usize,
    /// When the current segment began.
    began: Time,
}

impl Window {
    pub(crate) fn new(now: Time) -> Window {
        Window { segments: [0; SEGMENTS], current: 0, began: now }
    }

    /// Ends the segments that are over; a new one begins with this value.
    pub(crate) fn advance(&mut self, length: Span, first: u64, now: Time) {
        let segment = length / SEGMENTS as u64;
        for _ in 0..SEGMENTS {
            if now.since(self.began) < segment {
                return;
            }
            self.began += segment;
            self.current = (self.current + 1) % SEGMENTS;
            self.segments[self.current] = first;
        }
        // A pause longer than the window: all segments are new.
        if now.since(self.began) >= segment {
            self.began = now;
        }
    }

    /// The value is now this, if it was more.
    pub(crate) fn lower(&mut self, value: u64) {
        let least = &mut self.segments[self.current];
        *least = value.min(*least);
    }
    /// So much is added.
    pub(crate) fn add(&mut self, value: u64) {
        self.segments[self.current] += value;
    }
    /// The least value within the window.
    pub(crate) fn least(&self) -> u64 {
        self.segments.iter().copied().min().unwrap_or(0)
    }
    /// What was added within it.
    pub(crate) fn sum(&self) -> u64 {
        self.segments.iter().sum()
    }
}
