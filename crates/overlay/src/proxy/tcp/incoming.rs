//! What comes from the other proxy, until the host has it.
//!
//! Source: digest A 8 (an acknowledgement for every second segment, or 200 ms after one). The study answers at once what is out of order. Here
//! packets use several paths, so that most are: a single one is answered after [`REORDERED`], which halves what answers take of the links.

use super::segment::{Part, Ranges};
use std::collections::BTreeMap;
use weir_base::{Bytes, Span, Time};

/// Longest delay of an acknowledgement (digest A 8).
const DELAY: Span = Span::from_millis(200);
/// The same while segments are missing: much less than a path's delay, so that losses are repaired as soon.
const REORDERED: Span = Span::from_millis(5);
/// Segments that are acknowledged at once when so many wait (digest A 8).
pub const EVERY: u32 = 2;
/// Most ranges beyond a gap that are kept: a range takes some memory however short it is.
const MOST_RANGES: usize = 4_096;

/// One direction's receiving half.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    /// Bytes that are held for the host at most.
    limit: u64,
    /// All before this has come.
    next: u64,
    /// What has come beyond: begins and ends.
    ranges: BTreeMap<u64, u64>,
    /// The range to which the last segment was added: it is told first.
    latest: u64,
    /// The position of the end, if it is known.
    end: Option<u64>,
    /// Bytes that the host was given, and that it has acknowledged.
    pub(super) given: u64,
    pub(super) acknowledged: u64,
    /// The right edge of the window that was told last.
    told: u64,
    waiting: u32,
    pub(super) echo: u32,
    /// When an acknowledgement is due.
    pub(super) due: Time,
}

impl Incoming {
    pub(super) fn new(limit: Bytes) -> Incoming {
        Incoming {
            limit: limit.get(),
            next: 0,
            ranges: BTreeMap::new(),
            latest: 0,
            end: None,
            given: 0,
            acknowledged: 0,
            told: limit.get(),
            waiting: 0,
            echo: 0,
            due: Time::NEVER,
        }
    }

    /// The last byte's position, as far as bytes have come in order.
    fn whole(&self) -> u64 {
        self.end.map_or(self.next, |end| self.next.min(end))
    }

    /// Bytes that can be given to the host.
    pub(super) fn ready(&self) -> Bytes {
        Bytes::new(self.whole() - self.given)
    }

    /// The host was given bytes.
    pub(super) fn give(&mut self, bytes: Bytes, segment: Bytes, now: Time) {
        self.given = (self.given + bytes.get()).min(self.whole());
        // A window that was nearly shut is open again.
        let was_shut = self.told.saturating_sub(self.next) < 2 * segment.get();
        if was_shut && self.given + self.limit >= self.told + 2 * segment.get() {
            self.due = now;
        }
    }

    /// Whether all has come, with the end, and the host was given it.
    pub(super) fn is_whole(&self) -> bool {
        self.end.is_some_and(|end| self.given == end && self.next > end)
    }

    /// Whether the host has also acknowledged it.
    pub(super) fn is_done(&self) -> bool {
        self.is_whole() && self.acknowledged == self.given
    }

    /// Whether a part lies within the window.
    pub(super) fn takes(&self, part: &Part) -> bool {
        part.from.saturating_add(part.bytes.into()) <= self.given + self.limit
    }

    /// A part has come. Returns false if it contradicts what came before.
    pub(super) fn receive(&mut self, part: Part, stamp: u32, now: Time) -> bool {
        let bytes_end = part.to() - u64::from(part.ends);
        let contradicts = match self.end {
            Some(end) => bytes_end > end || part.ends && bytes_end != end,
            None => part.ends && self.ranges.values().any(|&to| to > bytes_end),
        };
        if contradicts || part.ends && bytes_end < self.whole() {
            return false;
        }
        if !self.takes(&part) {
            // The other side sends it again.
            self.due = now;
            return true;
        }
        let is_in_order = part.from <= self.next && part.to() > self.next && self.ranges.is_empty();
        if part.to() > self.next && (self.ranges.len() < MOST_RANGES || part.from <= self.next) {
            if part.ends {
                self.end = Some(bytes_end);
            }
            self.insert(part.from.max(self.next), part.to());
        }
        self.waiting += 1;
        // The stamp of the first segment that waits makes the delay of the answer count (RFC 7323, section 4.3).
        if self.waiting == 1 || !is_in_order {
            self.echo = stamp;
        }
        let due = match self.waiting {
            EVERY.. => now,
            _ if is_in_order => now + DELAY,
            _ => now + REORDERED,
        };
        self.due = self.due.min(due);
        true
    }

    fn insert(&mut self, mut from: u64, mut to: u64) {
        while let Some((&first, &last)) = self.ranges.range(..=to).next_back() {
            if last < from {
                break;
            }
            self.ranges.remove(&first);
            (from, to) = (from.min(first), to.max(last));
        }
        if from <= self.next {
            self.next = to;
        } else {
            self.ranges.insert(from, to);
            self.latest = from;
        }
    }

    /// What is said of it: the next position, the window, and ranges. Nothing waits for an acknowledgement then.
    pub(super) fn tell(&mut self) -> (u64, u64, Ranges, u32) {
        let mut ranges = Ranges::default();
        // The ranges from the latest on, since older ones were told before; the first ones if the latest is the last.
        let from = self.ranges.range(self.latest..).next().map_or(0, |(from, _)| *from);
        let later = self.ranges.range(from..);
        let count = later.clone().count();
        let missing = super::segment::MOST_RANGES.saturating_sub(count);
        let skipped = self.ranges.range(..from).count().saturating_sub(missing);
        for (&from, &to) in self.ranges.iter().skip(skipped) {
            ranges.push(from, to);
        }
        let edge = self.given + self.limit;
        self.told = self.told.max(edge);
        (self.waiting, self.due) = (0, Time::NEVER);
        let window = edge.saturating_sub(self.next);
        (self.next, window, ranges, std::mem::take(&mut self.echo))
    }

    /// Bytes that are held for the host.
    pub(super) fn held(&self) -> Bytes {
        let beyond: u64 = self.ranges.iter().map(|(from, to)| to - from).sum();
        Bytes::new(self.whole() - self.given + beyond)
    }
}
