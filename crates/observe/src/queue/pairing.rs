//! Which arrival a departure or a drop belongs to.

use super::Sighting;
use core::hash::{BuildHasherDefault, Hasher};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use weir_base::{Ecn, Time};

/// A packet that has arrived and not left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    since: Time,
    packet: u64,
    flow: u32,
    sequence: u32,
    bytes: u32,
    ecn: Ecn,
    /// Bytes of data in each part but the last, and the number of parts.
    part_bytes: u32,
    all_parts: u32,
    /// Parts that have not left, and their bytes by the arrival's length.
    pub(super) parts: u32,
    pub(super) bytes_left: u32,
}

/// The arrival of a packet, or of the large packet that it is a part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) since: Time,
    pub(super) ecn: Ecn,
    /// By how much the backlog falls.
    pub(super) bytes: u32,
}

impl Found {
    /// A packet that does not wait.
    pub(super) fn at_once(sighting: &Sighting) -> Found {
        Found { since: sighting.at, ecn: sighting.ecn, bytes: sighting.bytes }
    }
}

/// Spreads addresses of the kernel's buffers, which nobody outside chooses, in a few instructions: each packet is looked up twice.
#[derive(Debug, Default)]
struct OfAddresses(u64);

impl OfAddresses {
    /// 2^64 by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
}

impl Hasher for OfAddresses {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(OfAddresses::FACTOR);
        // A table takes the lowest bits, into which a product brings the least.
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Large packets that wait at most. Departures of more than these would have been lost.
const MOST_LARGE: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// Packets of one segment, by address.
    single: HashMap<u64, Waiting, BuildHasherDefault<OfAddresses>>,
    /// Packets of several segments, by flow, in the order of their arrival: a split one frees its address at once.
    large: HashMap<u32, VecDeque<Waiting>>,
    large_packets: usize,
    waiting: u64,
}

impl Pairing {
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Takes an arrival in. Returns an earlier one that cannot be there any more, whose departure was not seen.
    pub(super) fn arrive(&mut self, sighting: &Sighting) -> Option<Waiting> {
        let Sighting { at, packet, flow, sequence, bytes, segments, segment_bytes, ecn, .. } = *sighting;
        let parts = u32::from(segments);
        let waiting = Waiting {
            since: at,
            packet,
            flow,
            sequence,
            bytes,
            ecn,
            part_bytes: u32::from(segment_bytes.max(1)),
            all_parts: parts,
            parts,
            bytes_left: bytes,
        };
        self.waiting += u64::from(parts);
        let forgotten = if segments > 1 {
            let full = self.large_packets >= MOST_LARGE;
            let queue = self.large.entry(flow).or_default();
            queue.push_back(waiting);
            let oldest = full.then(|| queue.pop_front()).flatten();
            self.large_packets += usize::from(oldest.is_none());
            oldest
        } else {
            self.single.insert(packet, waiting)
        };
        self.waiting -= forgotten.map_or(0, |it| u64::from(it.parts));
        forgotten
    }

    /// Takes a packet, or a part of one, out. `None` if no arrival of it was seen.
    pub(super) fn leave(&mut self, sighting: &Sighting) -> Option<Found> {
        let Sighting { packet, flow, bytes, segments, .. } = *sighting;
        if segments == 1
            && let Entry::Occupied(found) = self.single.entry(packet)
            && (found.get().flow, found.get().bytes) == (flow, bytes)
        {
            let Waiting { since, ecn, .. } = found.remove();
            self.waiting -= 1;
            return Some(Found { since, ecn, bytes });
        }
        self.leave_large(sighting)
    }

    fn leave_large(&mut self, sighting: &Sighting) -> Option<Found> {
        let queue = self.large.get_mut(&sighting.flow)?;
        let is_whole = |it: &Waiting| it.packet == sighting.packet && it.bytes == sighting.bytes;
        // A packet that follows may begin where the last part ends, which is one more part on at most.
        let has_part = |it: &Waiting| {
            let offset = sighting.sequence.wrapping_sub(it.sequence);
            u32::from(sighting.segments) <= it.parts
                && offset.is_multiple_of(it.part_bytes)
                && offset / it.part_bytes < it.all_parts
        };
        let place = queue.iter().position(is_whole).or_else(|| queue.iter().position(has_part))?;
        let waiting = &mut queue[place];
        let parts = u32::from(sighting.segments).min(waiting.parts);
        waiting.parts -= parts;
        // Each part has headers of its own, which the large packet has once.
        let bytes =
            if waiting.parts == 0 { waiting.bytes_left } else { sighting.bytes.min(waiting.bytes_left) };
        waiting.bytes_left -= bytes;
        let found = Found { since: waiting.since, ecn: waiting.ecn, bytes };
        self.waiting -= u64::from(parts);
        if waiting.parts == 0 {
            queue.remove(place);
            self.large_packets -= 1;
            if queue.is_empty() {
                self.large.remove(&sighting.flow);
            }
        }
        Some(found)
    }
}
