//! Sliding windows of four segments, as ZLR keeps them: of the least depth, of bytes added, and of bytes that came and left.
//!
//! Source: digest A 6.6. A window that is not yet full holds zeros, so nothing is concluded from a part of one.

use weir_base::{Span, Time};

const SEGMENTS: usize = 4;

/// A window; a segment of it holds one value.
#[derive(Debug, Clone)]
pub(crate) struct Window<T> {
    segments: [T; SEGMENTS],
    current: usize,
    /// When the current segment began.
    began: Time,
}

/// Bytes that came and bytes that left, zombies included.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    came: u64,
    left: u64,
}

impl<T: Copy + Default> Window<T> {
    pub(crate) fn new(now: Time) -> Window<T> {
        Window { segments: [T::default(); SEGMENTS], current: 0, began: now }
    }

    /// Ends the segments that are over; a new one begins with this value.
    pub(crate) fn advance(&mut self, length: Span, first: T, now: Time) {
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
}

impl Window<u64> {
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

impl Window<Moved> {
    /// Bytes came.
    pub(crate) fn came(&mut self, bytes: u64) {
        self.segments[self.current].came += bytes;
    }
    /// Bytes left.
    pub(crate) fn gone(&mut self, bytes: u64) {
        self.segments[self.current].left += bytes;
    }
    /// Bytes that came within the window, less those that left.
    pub(crate) fn net(&self) -> i64 {
        let came: u64 = self.segments.iter().map(|moved| moved.came).sum();
        came as i64 - self.left() as i64
    }
    /// Bytes that left.
    pub(crate) fn left(&self) -> u64 {
        self.segments.iter().map(|moved| moved.left).sum()
    }
}
