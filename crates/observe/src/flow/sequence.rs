//! Sequence numbers of 32 bits as places in an endless stream (RFC 9293, section 3.4), and what of it was not seen.

use weir_base::Time;

/// The place of the first number that is seen. What was sent before the capture began has places below it.
pub(super) const START: u64 = 1 << 32;
/// A number further than this from the highest one is of no segment of the flow: the largest window is 2^30 bytes (RFC 7323, section 2.3).
const FURTHEST: i32 = 1 << 30;
/// Most holes that are kept for a direction; the oldest is then given up.
const MOST_HOLES: usize = 256;

/// Counts the numbers of one direction on, past 2^32.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    /// A number and its place.
    known: Option<(u32, u64)>,
}

impl Sequence {
    /// The place of a number; `None` if it is implausibly far from the last one. The first number defines the places.
    pub(super) fn place(&mut self, number: u32) -> Option<u64> {
        let (near, place) = *self.known.get_or_insert((number, START));
        let distance = number.wrapping_sub(near) as i32;
        if distance.checked_abs().is_none_or(|far| far > FURTHEST) {
            return None;
        }
        let found = place.checked_add_signed(distance.into())?;
        if distance > 0 {
            self.known = Some((number, found));
        }
        Some(found)
    }

    /// Whether a number was seen.
    pub(super) fn is_known(&self) -> bool {
        self.known.is_some()
    }
}

/// What showed that something was missing: a segment, or an acknowledgement, beyond it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) at: Time,
    /// The segment's own timestamp.
    pub(super) stamp: Option<u32>,
    /// The segment's IPv4 identification, unless it is 0.
    pub(super) identification: Option<u16>,
}

/// Bytes that were not seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hole {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) opening: Opening,
    /// Whether the receiver has acknowledged them: they passed where the capture did not see them.
    pub(super) is_acked: bool,
}

/// The holes below the highest byte seen, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Holes {
    holes: Vec<Hole>,
    /// Acknowledged bytes of holes that were given up.
    given_up: u64,
}

impl Holes {
    /// Adds a hole above all others.
    pub(super) fn open(&mut self, hole: Hole) {
        if self.holes.len() == MOST_HOLES {
            self.given_up += missed(&self.holes.remove(0));
        }
        self.holes.push(hole);
    }

    /// Takes these bytes out of the holes: how many were in any, and what opened the first of those.
    pub(super) fn fill(&mut self, from: u64, to: u64) -> Option<(u64, Opening)> {
        let first = self.holes.partition_point(|hole| hole.to <= from);
        let behind = first + self.holes[first..].partition_point(|hole| hole.from < to);
        let opening = self.holes[first..behind].first()?.opening;
        let mut bytes = 0;
        let mut rest = vec![];
        for hole in &self.holes[first..behind] {
            bytes += hole.to.min(to) - hole.from.max(from);
            rest.extend((hole.from < from).then_some(Hole { to: from, ..*hole }));
            rest.extend((hole.to > to).then_some(Hole { from: to, ..*hole }));
        }
        self.holes.splice(first..behind, rest);
        Some((bytes, opening))
    }

    /// The receiver has everything below this place.
    pub(super) fn acknowledge(&mut self, to: u64) {
        let end = self.holes.partition_point(|hole| hole.to <= to);
        self.holes[..end].iter_mut().for_each(|hole| hole.is_acked = true);
        if let Some(hole) = self.holes.get_mut(end).filter(|hole| hole.from < to) {
            let acked = Hole { to, is_acked: true, ..*hole };
            hole.from = to;
            self.holes.insert(end, acked);
        }
    }

    /// The bytes that reached the receiver and not the capture, since the first number that was seen.
    pub(super) fn missed(&self) -> u64 {
        self.given_up + self.holes.iter().map(missed).sum::<u64>()
    }

    /// The bytes that were never seen and never acknowledged.
    pub(super) fn unrepaired(&self) -> u64 {
        self.holes.iter().filter(|hole| !hole.is_acked).map(since_start).sum()
    }
}

/// The bytes of a hole, without those before the first number that was seen.
fn since_start(hole: &Hole) -> u64 {
    hole.to.max(START) - hole.from.max(START)
}

fn missed(hole: &Hole) -> u64 {
    if hole.is_acked { since_start(hole) } else { 0 }
}
