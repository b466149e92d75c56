//! The packets that have come and have not left.

use super::header::Header;
use super::{Event, HEADER};
use std::collections::{HashMap, VecDeque};
use weir_base::{Bytes, Ecn, Span, Time};

/// A packet, or what is left of one that the queue has split.
#[derive(Debug)]
struct Entry {
    packet: u64,
    came: Time,
    codepoint: Ecn,
    /// Segments that have not left, and the bytes of them.
    segments: u32,
    bytes: u32,
    flow: Option<u64>,
    /// Its sequence number, and the bytes from there on that can be its own.
    sequence: Option<u32>,
    reach: u32,
}

/// A packet that was found, or some segments of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) came: Time,
    pub(super) codepoint: Ecn,
    pub(super) segments: u64,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    entries: HashMap<u64, Entry>,
    by_packet: HashMap<u64, u64>,
    /// Packets of several segments, in the order in which they came.
    by_flow: HashMap<u64, VecDeque<u64>>,
    next: u64,
    segments: u64,
    bytes: u64,
}

impl Waiting {
    /// Segments and bytes that wait.
    pub(super) fn held(&self) -> (u64, Bytes) {
        (self.segments, Bytes::new(self.bytes))
    }

    /// A packet has come. Returns how many segments are forgotten, since another packet has their address now.
    pub(super) fn came(&mut self, event: &Event<'_>, header: &Header) -> u64 {
        let mut forgotten = 0;
        if let Some(&id) = self.by_packet.get(&event.packet)
            && self.entries.get(&id).is_some_and(|entry| entry.segments == 1)
        {
            // One of several segments may have been split; its segments are still in the queue.
            forgotten = self.remove(id);
        }
        let id = self.next;
        self.next += 1;
        let segments = event.segments.max(1);
        let entry = Entry {
            packet: event.packet,
            came: event.at,
            codepoint: header.ecn(),
            segments,
            bytes: event.bytes,
            flow: header.flow,
            sequence: header.sequence,
            reach: event.bytes,
        };
        if let Some(flow) = header.flow.filter(|_| segments > 1) {
            self.by_flow.entry(flow).or_default().push_back(id);
        }
        self.segments += u64::from(segments);
        self.bytes += u64::from(event.bytes);
        self.entries.insert(id, entry);
        self.by_packet.insert(event.packet, id);
        forgotten
    }

    /// Takes the packet of an event, or the segment of one that was split.
    pub(super) fn take(&mut self, event: &Event<'_>, header: &Header) -> Option<Found> {
        // A single packet, or a large one that has not been split.
        if let Some(&id) = self.by_packet.get(&event.packet)
            && let Some(entry) = self.entries.get(&id)
            && (entry.segments == event.segments.max(1) && entry.flow == header.flow)
        {
            return self.whole(id);
        }
        self.part(event, header)
    }

    /// Takes the packet with this address.
    pub(super) fn take_whole(&mut self, packet: u64) -> Option<Found> {
        let id = *self.by_packet.get(&packet)?;
        self.whole(id)
    }

    fn whole(&mut self, id: u64) -> Option<Found> {
        let entry = self.entries.get(&id)?;
        let found =
            Found { came: entry.came, codepoint: entry.codepoint, segments: u64::from(entry.segments) };
        self.remove(id);
        Some(found)
    }

    /// Takes one segment, or several, of a packet that was split: the first of its flow that has it.
    fn part(&mut self, event: &Event<'_>, header: &Header) -> Option<Found> {
        let ids = self.by_flow.get(&header.flow?)?;
        let has = |entry: &Entry| match (entry.sequence, header.sequence) {
            (Some(from), Some(at)) => at.wrapping_sub(from) < entry.reach,
            _ => true,
        };
        let id = *ids.iter().find(|id| self.entries.get(id).is_some_and(has))?;
        let entry = self.entries.get_mut(&id)?;
        let segments = event.segments.max(1).min(entry.segments);
        let found = Found { came: entry.came, codepoint: entry.codepoint, segments: u64::from(segments) };
        if segments == entry.segments {
            self.remove(id);
        } else {
            // The segments have a header each; the packet has one for all.
            let bytes = event.bytes.min(entry.bytes);
            entry.segments -= segments;
            entry.bytes -= bytes;
            self.segments -= u64::from(segments);
            self.bytes -= u64::from(bytes);
        }
        Some(found)
    }

    /// Removes an entry. Returns its segments.
    fn remove(&mut self, id: u64) -> u64 {
        let Some(entry) = self.entries.remove(&id) else { return 0 };
        if self.by_packet.get(&entry.packet) == Some(&id) {
            self.by_packet.remove(&entry.packet);
        }
        if let Some(flow) = entry.flow
            && let Some(ids) = self.by_flow.get_mut(&flow)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_flow.remove(&flow);
            }
        }
        self.segments -= u64::from(entry.segments);
        self.bytes -= u64::from(entry.bytes);
        u64::from(entry.segments)
    }

    /// Forgets packets that came longer ago than this. Returns their segments.
    pub(super) fn forget(&mut self, now: Time, longest: Span) -> u64 {
        let old = self.entries.iter().filter(|(_, entry)| now.since(entry.came) > longest);
        let old: Vec<u64> = old.map(|(id, _)| *id).collect();
        old.into_iter().map(|id| self.remove(id)).sum()
    }
}

const _: () = assert!(HEADER >= 48, "a header has the ports and the sequence number of TCP over IPv6");
