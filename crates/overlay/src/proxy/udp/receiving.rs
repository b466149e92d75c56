//! The receiving side of the UDP proxy: lost chunks are restored, chunks and blobs become packets, and packets wait for their predecessors as
//! long as the service and their deadline allow (digest A 7.6).

use super::release::Origin;
use super::trailer::{Chunk, Kind, Repair, Trailers};
use super::{Code, unpack};
use std::collections::{BTreeMap, BTreeSet};
use weir_base::{Span, Time};

/// Groups that are kept for their repairs, newest first.
const GROUPS: usize = 64;
/// Datagrams whose numbers lie farther back than this belong to nothing any more.
const WINDOW: u64 = 4096;
/// Packets that wait at most (digest A 7.6).
const WAITING: usize = 1000;
/// An incomplete packet is given up after this time.
const PATIENCE: Span = Span::from_secs(3);

/// A group whose sources are not all here.
#[derive(Debug, Default)]
struct Group {
    base: Option<u8>,
    first: u64,
    sources: BTreeMap<u8, Vec<u8>>,
    repairs: BTreeMap<u8, Vec<u8>>,
}

/// A packet of which chunks have come.
#[derive(Debug)]
struct Partial {
    chunks: Vec<Option<Vec<u8>>>,
    /// When it is released though predecessors are missing.
    until: Time,
    since: Time,
    is_blob: bool,
    is_timed: bool,
}

/// What the trailers of a datagram say of its packet.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// How long it waits, if it does.
    until: Time,
    waits: bool,
    is_timed: bool,
}

/// The datagrams of a flow become packets again.
#[derive(Debug, Default)]
pub struct Receiving {
    /// The number of the newest datagram, and of the next one that is to be released in order.
    newest: Option<u64>,
    next: u64,
    groups: BTreeMap<u32, Group>,
    /// By the number of a packet's first datagram.
    packets: BTreeMap<u64, Partial>,
    /// The packets that were released, by the same number, as far back as datagrams are taken.
    done: BTreeSet<u64>,
    restored: u64,
    late: u64,
}

impl Receiving {
    /// Datagrams that repairs have restored.
    pub fn restored(&self) -> u64 {
        self.restored
    }
    /// Packets that came after a later one had been released, or were never whole.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Bytes of all that is kept: parts of packets, and what repairs need.
    pub fn held(&self) -> usize {
        let packets = self.packets.values().flat_map(|packet| packet.chunks.iter().flatten());
        let groups =
            self.groups.values().flat_map(|group| group.sources.values().chain(group.repairs.values()));
        packets.chain(groups).map(Vec::len).sum()
    }

    /// A datagram has come; its packet is due then. Whole packets go to `release`, timed ones with the time of their origin. What is no
    /// datagram of the proxy is ignored.
    pub fn datagram(
        &mut self,
        bytes: &[u8],
        due: Option<Time>,
        code: &dyn Code,
        now: Time,
        mut release: impl FnMut(&[u8], Option<Origin>),
    ) {
        let Ok((payload, trailers)) = Trailers::decode(bytes) else { return };
        let number = self.extend(trailers.sequence);
        if self.newest.is_some_and(|newest| number + WINDOW < newest) {
            return;
        }
        self.newest = Some(self.newest.map_or(number, |newest| newest.max(number)));
        let manner = Manner {
            until: (now + trailers.hold).min(due.unwrap_or(Time::NEVER)),
            waits: trailers.is_ordered || !trailers.hold.is_zero(),
            is_timed: trailers.is_timed,
        };
        if let Kind::Original(chunk) = trailers.kind {
            self.chunk(number, chunk, payload, manner, now);
        }
        if trailers.is_coded {
            self.repair(&trailers, number, payload, manner, code, now);
        }
        self.release(now, &mut release);
    }

    /// The whole number of a datagram, next to the newest one.
    fn extend(&self, sequence: u32) -> u64 {
        let Some(newest) = self.newest else { return u64::from(sequence) + WINDOW };
        let ahead = sequence.wrapping_sub((newest - WINDOW) as u32) as i32;
        newest.saturating_add_signed(ahead.into())
    }

    fn chunk(&mut self, number: u64, chunk: Chunk, payload: &[u8], manner: Manner, now: Time) {
        let Some(first) = number.checked_sub(chunk.chunk.into()) else { return };
        if self.done.contains(&first) {
            return;
        }
        if self.next == 0 {
            self.next = first;
        }
        if manner.waits && first < self.next {
            self.late += 1;
            return;
        }
        // Packets that do not wait go as soon as they are whole.
        let until = if manner.waits { manner.until } else { Time::ZERO };
        let (is_blob, is_timed) = (chunk.is_blob, manner.is_timed);
        let chunks = || vec![None; chunk.chunks.into()];
        let new = || Partial { chunks: chunks(), until, since: now, is_blob, is_timed };
        let packet = self.packets.entry(first).or_insert_with(new);
        if let Some(place) = packet.chunks.get_mut(usize::from(chunk.chunk)) {
            *place = Some(payload.to_vec());
        }
    }

    fn repair(
        &mut self,
        trailers: &Trailers,
        number: u64,
        payload: &[u8],
        manner: Manner,
        code: &dyn Code,
        now: Time,
    ) {
        let group = self.groups.entry(trailers.group).or_default();
        match trailers.kind {
            Kind::Original(chunk) => {
                group.first = number.saturating_sub(trailers.slot.into());
                group.sources.insert(trailers.slot, super::symbol(payload, chunk));
            }
            Kind::Repair(Repair { base, .. }) => {
                (group.base, group.first) = (Some(base), number);
                group.repairs.insert(trailers.slot, payload.to_vec());
            }
        }
        let (first, found) = (group.first, group.restore(code));
        for (slot, symbol) in found {
            let Some((chunk, part)) = unpack(&symbol) else { continue };
            self.restored += 1;
            self.chunk(first + u64::from(slot), chunk, part, manner, now);
        }
        while self.groups.len() > GROUPS {
            // Numbers of groups wrap: the oldest is the one after the newest.
            let after = self.groups.range(trailers.group + 1..).next().map(|(group, _)| *group);
            let oldest = after.or_else(|| self.groups.keys().next().copied());
            oldest.and_then(|group| self.groups.remove(&group));
        }
    }

    /// When [`Receiving::on_timer`] is due.
    pub fn next_time(&self) -> Time {
        let due = |packet: &Partial| {
            if packet.is_whole() { packet.until } else { packet.since + PATIENCE }
        };
        self.packets.values().map(due).min().unwrap_or(Time::NEVER)
    }

    /// Packets that have waited for long enough go to `release`.
    pub fn on_timer(&mut self, now: Time, mut release: impl FnMut(&[u8], Option<Origin>)) {
        self.release(now, &mut release);
    }

    fn release(&mut self, now: Time, release: &mut impl FnMut(&[u8], Option<Origin>)) {
        let goes_at_once = |packet: &Partial| packet.is_whole() && packet.until == Time::ZERO;
        while let Some(first) =
            self.packets.iter().find(|(_, one)| goes_at_once(one)).map(|(first, _)| *first)
        {
            self.finish(first, release);
        }
        while let Some((&first, packet)) = self.packets.first_key_value() {
            let full = self.packets.len() > WAITING;
            let is_due = |packet: &Partial| packet.is_whole() && now >= packet.until;
            let follows = first == self.next && packet.is_whole();
            // A packet may not expire before the ones before it: the last that has waited takes those along.
            let takes_along = packet.until != Time::ZERO && self.packets.values().any(is_due);
            let is_given_up = now.since(packet.since) >= PATIENCE;
            if !(full || follows || takes_along || is_given_up) {
                break;
            }
            self.finish(first, release);
        }
        let oldest = self.newest.unwrap_or_default().saturating_sub(WINDOW);
        while self.done.first().is_some_and(|first| *first < oldest) {
            self.done.pop_first();
        }
    }

    /// A packet is released if it is whole, and given up otherwise.
    fn finish(&mut self, first: u64, release: &mut impl FnMut(&[u8], Option<Origin>)) {
        let Some(packet) = self.packets.remove(&first) else { return };
        self.next = self.next.max(first + packet.chunks.len() as u64);
        if packet.is_whole() {
            self.done.insert(first);
            packet.leave(release);
        } else {
            self.late += 1;
        }
    }
}

impl Partial {
    fn is_whole(&self) -> bool {
        self.chunks.iter().all(Option::is_some)
    }

    /// Hands over the packet, or those of a blob.
    fn leave(self, release: &mut impl FnMut(&[u8], Option<Origin>)) {
        let bytes: Vec<u8> = self.chunks.into_iter().flatten().flatten().collect();
        let mut leave = |packet: &[u8]| match packet.split_last_chunk() {
            Some((payload, origin)) if self.is_timed => release(payload, Some(Origin::of_bytes(*origin))),
            None if self.is_timed => {}
            _ => release(packet, None),
        };
        if !self.is_blob {
            return leave(&bytes);
        }
        let mut rest = &bytes[..];
        while let Some((length, after)) = rest.split_first_chunk() {
            let Some((packet, after)) = after.split_at_checked(u16::from_be_bytes(*length).into()) else {
                return;
            };
            leave(packet);
            rest = after;
        }
    }
}

impl Group {
    /// Restores what is missing, if the repairs suffice: the slots, and their symbols.
    fn restore(&mut self, code: &dyn Code) -> Vec<(u8, Vec<u8>)> {
        let Some(base) = self.base else { return Vec::new() };
        let mut sources: Vec<Option<Vec<u8>>> =
            (0..base).map(|slot| self.sources.get(&slot).cloned()).collect();
        let missing: Vec<u8> = (0..base).filter(|slot| sources[usize::from(*slot)].is_none()).collect();
        if missing.is_empty() || missing.len() > self.repairs.len() {
            return Vec::new();
        }
        let repairs: Vec<(usize, &[u8])> =
            self.repairs.iter().map(|(slot, symbol)| (usize::from(*slot), symbol.as_slice())).collect();
        if !code.restore(&mut sources, &repairs) {
            return Vec::new();
        }
        let symbols =
            missing.into_iter().map(|slot| (slot, sources[usize::from(slot)].take().unwrap_or_default()));
        let found: Vec<(u8, Vec<u8>)> = symbols.collect();
        self.sources.extend(found.iter().cloned());
        found
    }
}
