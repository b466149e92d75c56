//! Segments that arrive in parts, since the path's MTU has shrunk after they were cut.

use super::Incoming;
use crate::send::WINDOW;
use crate::wire::Part;

/// Maximum number of parts of a segment: a little more than the largest IP packet has when it is cut to what every path carries.
const MOST: usize = 64;

/// The parts of a segment that have arrived, in order: offset, length and first bytes of each.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<(u16, u16, Vec<u8>)>);

impl Parts {
    /// Takes a part, unless it has arrived before. Returns `false` if it overlaps another one, or if there are too many.
    fn take(&mut self, offset: u16, length: u16, head: &[u8]) -> bool {
        let place = self.0.partition_point(|(other, ..)| *other < offset);
        let end = |(offset, length): (u16, u16)| u32::from(offset) + u32::from(length);
        if let Some((other, other_length, _)) = self.0.get(place) {
            if (*other, *other_length) == (offset, length) {
                return true;
            }
            if end((offset, length)) > u32::from(*other) {
                return false;
            }
        }
        let before = place.checked_sub(1).map(|at| &self.0[at]);
        if before.is_some_and(|(other, other_length, _)| end((*other, *other_length)) > u32::from(offset)) {
            return false;
        }
        self.0.insert(place, (offset, length, head[..head.len().min(length.into())].to_vec()));
        self.0.len() <= MOST
    }

    /// The first bytes of the segment, if all of its parts have arrived.
    fn whole(&self, bytes: u16) -> Option<Vec<u8>> {
        let length: u64 = self.0.iter().map(|(_, length, _)| u64::from(*length)).sum();
        (length == u64::from(bytes)).then(|| {
            let mut head = Vec::new();
            for (offset, _, own) in self.0.iter().filter(|(.., own)| !own.is_empty()) {
                head.resize((*offset).into(), 0);
                head.extend_from_slice(own);
            }
            head
        })
    }
}

impl Incoming {
    /// Takes a part of a segment that begins with `head`. Returns `false` if it cannot belong to the stream.
    pub(crate) fn part(&mut self, part: &Part, head: &[u8]) -> bool {
        let Part { segment, offset, length } = part;
        if *length == 0 || u32::from(*offset) + u32::from(*length) > segment.length.into() {
            return false;
        }
        self.forward(segment.sequence.wrapping_sub(segment.distance.into()));
        let place = segment.sequence.wrapping_sub(self.base) as usize;
        if place >= WINDOW {
            return place > u32::MAX as usize / 2;
        }
        if !self.reach(segment.sequence.wrapping_add(1)) {
            return false;
        }
        let slot = self.slot(place);
        if slot.here {
            return true;
        }
        let parts = slot.parts.get_or_insert_default();
        if !parts.take(*offset, *length, head) {
            return false;
        }
        if let Some(head) = parts.whole(segment.length) {
            self.segment(segment, &head);
        }
        true
    }
}
