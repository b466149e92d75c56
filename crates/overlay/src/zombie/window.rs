//! A sliding window of four segments, as ZLR keeps it: the least depth and the bytes added and gone within it.
//!
//! Source: digest A 6.6. A window that is not yet full holds the depth zero, so nothing is concluded from a part of one.

use weir_base::{Span, Time};

const SEGMENTS: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    least: u64,
    added: u64,
    came: u64,
    gone: u64,
}

/// The window.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    segments: [Segment; SEGMENTS],
    current: usize,
    /// When the current segment began.
    began: Time,
}

impl Window {
    pub(crate) fn new(now: Time) -> Window {
        Window { segments: [Segment::default(); SEGMENTS], current: 0, began: now }
    }

    /// Ends the segments that are over; a new one begins with the present depth.
    pub(crate) fn advance(&mut self, length: Span, depth: u64, now: Time) {
        let segment = length / SEGMENTS as u64;
        for _ in 0..SEGMENTS {
            if now.since(self.began) < segment {
                return;
            }
            self.began += segment;
            self.current = (self.current + 1) % SEGMENTS;
            self.segments[self.current] = Segment { least: depth, ..Segment::default() };
        }
        // A pause longer than the window: all segments are new.
        if now.since(self.began) >= segment {
            self.began = now;
        }
    }

    /// The depth is now this.
    pub(crate) fn depth(&mut self, depth: u64) {
        let least = &mut self.segments[self.current].least;
        *least = depth.min(*least);
    }
    /// Zombie bytes were added.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.segments[self.current].added += bytes;
    }
    /// Bytes came, zombies included.
    pub(crate) fn came(&mut self, bytes: u64) {
        self.segments[self.current].came += bytes;
    }
    /// Bytes left, zombies included.
    pub(crate) fn gone(&mut self, bytes: u64) {
        self.segments[self.current].gone += bytes;
    }

    /// The least depth within the window.
    pub(crate) fn least(&self) -> u64 {
        self.segments.iter().map(|segment| segment.least).min().unwrap_or(0)
    }
    /// Zombie bytes that were added within it.
    pub(crate) fn added(&self) -> u64 {
        self.segments.iter().map(|segment| segment.added).sum()
    }
    /// Bytes that came, less those that left.
    pub(crate) fn net(&self) -> i64 {
        let count = |of: fn(&Segment) -> u64| self.segments.iter().map(of).sum::<u64>() as i64;
        count(|segment| segment.came) - count(|segment| segment.gone)
    }
    /// Bytes that left.
    pub(crate) fn left(&self) -> u64 {
        self.segments.iter().map(|segment| segment.gone).sum()
    }
}
