//! A segment between two TCP proxies, and its bytes: what has come in the other direction, and perhaps data. A relayed stream's end counts
//! as one position after its last byte, so that it is acknowledged as bytes are.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | bits: 1 opens, 2 has a position, 4 ends the stream, 8 resets |
//! | 4, 4 | stamp of the sender's clock in microseconds; the stamp that is answered, or 0 |
//! | number | position before which all has come |
//! | number | bytes that the receiving host has acknowledged |
//! | number | bytes after that position that may come |
//! | 1, numbers | ranges that have come beyond it: their count, then for each the gap before it and its length |
//! | number | position of the data, if it has one; the rest is data |
//!
//! Numbers have groups of seven bits, lowest first.

use crate::message::{Malformed, bytes::Reader, bytes::Writer};

const OPENS: u8 = 1;
const POSITION: u8 = 2;
const ENDS: u8 = 4;
const RESETS: u8 = 8;

/// Most ranges of a segment.
pub const MOST_RANGES: usize = 8;
/// Bytes of the largest header.
pub const LONGEST: usize = 1 + 8 + 3 * 9 + 1 + MOST_RANGES * 18 + 9;
/// Positions up to this can be written.
const LAST: u64 = 1 << 56;

/// Ranges of positions that have come, ascending and disjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranges {
    held: [(u64, u64); MOST_RANGES],
    count: usize,
}

impl Ranges {
    /// Adds a range from one position to before another; it is left out if there is no room.
    pub fn push(&mut self, from: u64, to: u64) {
        if let Some(place) = self.held.get_mut(self.count) {
            *place = (from, to);
            self.count += 1;
        }
    }

    /// Removes the last range. Returns whether there was one.
    pub fn pop(&mut self) -> bool {
        let is_there = self.count > 0;
        self.count -= usize::from(is_there);
        is_there
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.held.iter().take(self.count).copied()
    }
}

/// Where a segment's data belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Position of its first byte.
    pub from: u64,
    /// Bytes of data.
    pub bytes: u32,
    /// Whether the stream ends behind them.
    pub ends: bool,
}

impl Part {
    /// The position after it.
    pub fn to(&self) -> u64 {
        self.from + u64::from(self.bytes) + u64::from(self.ends)
    }
}

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Whether its sender has not heard the other side yet.
    pub opens: bool,
    /// Whether the connection is given up.
    pub resets: bool,
    /// The sender's clock, in microseconds.
    pub stamp: u32,
    /// The stamp of the segment that is answered; 0 if none is.
    pub echo: u32,
    /// All positions before this have come.
    pub next: u64,
    /// The receiving host has acknowledged so many bytes.
    pub delivered: u64,
    /// So many positions from `next` on may come.
    pub window: u64,
    /// What has come beyond `next`.
    pub ranges: Ranges,
    /// Its data.
    pub part: Option<Part>,
}

impl Segment {
    /// Writes the header behind the bytes that are there; the data follows it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut writer = Writer(bytes);
        let ends = self.part.is_some_and(|part| part.ends);
        let bits =
            [(self.opens, OPENS), (self.part.is_some(), POSITION), (ends, ENDS), (self.resets, RESETS)];
        writer.u8(bits.iter().filter(|(set, _)| *set).fold(0, |bits, (_, bit)| bits | bit));
        writer.u32(self.stamp);
        writer.u32(self.echo);
        writer.varint(self.next);
        writer.varint(self.delivered);
        writer.varint(self.window);
        writer.u8(self.ranges.count as u8);
        let mut before = self.next;
        for (from, to) in self.ranges.iter() {
            writer.varint(from.saturating_sub(before));
            writer.varint(to.saturating_sub(from));
            before = to;
        }
        if let Some(part) = &self.part {
            writer.varint(part.from);
        }
    }

    /// Reads a header and returns the data behind it. `zeros` bytes of data follow that are not in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no segment.
    pub fn decode(bytes: &[u8], zeros: u32) -> Result<(Segment, &[u8]), Malformed> {
        let mut reader = Reader(bytes);
        let bits = reader.u8()?;
        let has = |bit: u8| bits & bit != 0;
        if bits & !(OPENS | POSITION | ENDS | RESETS) != 0 || has(ENDS) && !has(POSITION) {
            return Err(Malformed);
        }
        let (stamp, echo) = (reader.u32()?, reader.u32()?);
        let position =
            |reader: &mut Reader<'_>| reader.varint().ok().filter(|at| *at <= LAST).ok_or(Malformed);
        let next = position(&mut reader)?;
        let delivered = position(&mut reader)?;
        let window = position(&mut reader)?;
        let mut ranges = Ranges::default();
        let mut before = next;
        let count = usize::from(reader.u8()?);
        if count > MOST_RANGES {
            return Err(Malformed);
        }
        for _ in 0..count {
            let from = before + position(&mut reader)?;
            let to = from + position(&mut reader)?;
            if from <= before || to <= from || to > LAST {
                return Err(Malformed);
            }
            ranges.push(from, to);
            before = to;
        }
        let mut part = None;
        if has(POSITION) {
            let from = position(&mut reader)?;
            let length = u32::try_from(reader.0.len()).ok().and_then(|length| length.checked_add(zeros));
            let own = Part { from, bytes: length.ok_or(Malformed)?, ends: has(ENDS) };
            if own.to() <= own.from || own.to() > LAST {
                return Err(Malformed);
            }
            part = Some(own);
        } else if !reader.0.is_empty() || zeros > 0 {
            return Err(Malformed);
        }
        let (opens, resets) = (has(OPENS), has(RESETS));
        Ok((Segment { opens, resets, stamp, echo, next, delivered, window, ranges, part }, reader.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segments() -> impl Strategy<Value = Segment> {
        let numbers = (any::<u32>(), any::<u32>(), 0..1u64 << 40, 0..1u64 << 40, 0..1u64 << 30);
        let ranges = proptest::collection::vec((1..1u64 << 20, 1..1u64 << 20), 0..=MOST_RANGES);
        let part = proptest::option::of((0..1u64 << 40, 1..2000u32, any::<bool>()));
        (any::<bool>(), any::<bool>(), numbers, ranges, part).prop_map(
            |(opens, resets, (stamp, echo, next, delivered, window), gaps, part)| {
                let (mut ranges, mut before) = (Ranges::default(), next);
                for (gap, length) in gaps {
                    ranges.push(before + gap, before + gap + length);
                    before += gap + length;
                }
                let part = part.map(|(from, bytes, ends)| Part { from, bytes, ends });
                Segment { opens, resets, stamp, echo, next, delivered, window, ranges, part }
            },
        )
    }

    proptest! {
        #[test]
        fn a_segment_is_what_was_written(segment in segments(), kept in 0..2000u32) {
            let mut bytes = Vec::new();
            segment.encode(&mut bytes);
            prop_assert!(bytes.len() <= LONGEST);
            // Some of the data is in the bytes, the rest are zeros that only count.
            let data = segment.part.map_or(0, |part| part.bytes);
            let kept = kept.min(data);
            bytes.resize(bytes.len() + kept as usize, 7);
            let (read, rest) = Segment::decode(&bytes, data - kept).unwrap();
            prop_assert_eq!(read, segment);
            prop_assert_eq!(rest.len(), kept as usize);
        }

        #[test]
        fn other_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..80), zeros in 0..9u32) {
            if let Ok((segment, _)) = Segment::decode(&bytes, zeros) {
                let mut before = segment.next;
                for (from, to) in segment.ranges.iter() {
                    prop_assert!(before < from && from < to);
                    before = to;
                }
            }
        }
    }
}
