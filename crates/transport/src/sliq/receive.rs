//! The receiving half of a stream: segments that have arrived, messages put together from them, and groups restored by repair
//! packets.

mod parts;

use super::aec::code;
use super::credit::{self, Granted};
use super::send::{SYMBOL_HEADER, WINDOW};
use super::wire::{Data, Flags, Repair};
use parts::Parts;
use std::collections::VecDeque;

/// Groups whose repair packets are kept.
const MOST_GROUPS: usize = 256;
/// A segment's place.
#[derive(Debug, Default)]
struct Slot {
    here: bool,
    delivered: bool,
    flags: Flags,
    bytes: u32,
    head: Vec<u8>,
    /// By when it is to be delivered, by the peer's clock.
    due: Option<u32>,
    /// Parts of it that are here while it is not.
    parts: Option<Box<Parts>>,
}

/// A group some of whose segments are missing, with its repair packets: number and first bytes each.
#[derive(Debug)]
struct Group {
    start: u32,
    k: u8,
    repairs: Vec<(usize, Vec<u8>)>,
}

/// What waits to be read.
#[derive(Debug)]
struct Unread {
    bytes: u64,
    /// How many segments it came in.
    segments: u32,
    head: Vec<u8>,
    due: Option<u32>,
}

impl Unread {
    /// With what follows. The head goes on as long as there is nothing but head.
    fn and(mut self, next: Unread) -> Unread {
        if self.head.len() as u64 == self.bytes {
            self.head.extend_from_slice(&next.head);
        }
        self.bytes += next.bytes;
        self.segments += next.segments;
        self
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The first segment that the peer may still send, and the places from it on.
    base: u32,
    slots: VecDeque<Slot>,
    /// How many of those are delivered in a row, or were passed by.
    passed: usize,
    groups: Vec<Group>,
    unread: VecDeque<Unread>,
    /// The beginning of a message that is read in order, of which more is to come.
    begun: Option<Unread>,
    /// What the peer may send, and segments that the connection has not been told of.
    granted: Granted,
    consumed: u32,
    /// One more than the highest segment that the peer has sent.
    reached: u32,
    spare: Vec<Vec<u8>>,
    /// The segment that ends the stream, and whether all is delivered that comes before.
    fin: Option<u32>,
    ended: bool,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            base: 0,
            slots: VecDeque::new(),
            passed: 0,
            groups: Vec::new(),
            unread: VecDeque::new(),
            begun: None,
            granted: Granted::new(credit::STREAM),
            consumed: 0,
            reached: 0,
            spare: Vec::new(),
            fin: None,
            ended: false,
        }
    }
}

impl Incoming {
    /// Segments no longer take room.
    fn consume(&mut self, segments: u32) {
        self.granted.consume(segments);
        self.consumed += segments;
    }

    /// How many segments have been consumed since this was asked.
    pub(crate) fn take_consumed(&mut self) -> u32 {
        std::mem::take(&mut self.consumed)
    }

    /// How many segments the peer has sent, as far as is known.
    pub(crate) fn reached(&self) -> u32 {
        self.reached
    }

    /// The peer has sent so many segments. Answers whether it may have.
    fn reach(&mut self, segments: u32) -> bool {
        if segments.wrapping_sub(self.reached) as i32 > 0 {
            self.reached = segments;
        }
        self.granted.covers(self.reached)
    }

    /// What the peer may send.
    pub(crate) fn granted(&mut self) -> &mut Granted {
        &mut self.granted
    }

    /// Whether everything has arrived, the end included.
    pub(crate) fn is_finished(&self) -> bool {
        self.ended
    }

    /// Has something wait to be read. Zeros of a stream in order join those that wait already.
    fn hand_over(&mut self, unread: Unread, ordered: bool) {
        let Unread { bytes, segments, head, due } = unread;
        // Zeros take no room.
        let segments = if head.is_empty() {
            self.consume(segments);
            0
        } else {
            segments
        };
        match self.unread.back_mut() {
            Some(last) if ordered && head.is_empty() && last.head.is_empty() && last.due == due => {
                last.bytes += bytes;
                last.segments += segments;
            }
            _ => self.unread.push_back(Unread { bytes, segments, head, due }),
        }
    }

    /// A segment has arrived, which begins with `head`. Answers `false` where it cannot belong to the stream.
    pub(crate) fn segment(&mut self, data: &Data, head: &[u8]) -> bool {
        self.forward(data.sequence.wrapping_sub(data.distance.into()));
        let place = data.sequence.wrapping_sub(self.base);
        if place as usize >= WINDOW {
            // It was settled before; what is beyond the window was never allowed.
            return place > u32::MAX / 2;
        }
        if !self.reach(data.sequence.wrapping_add(1)) {
            return false;
        }
        self.put(place as usize, data.flags, data.length.into(), data.due, head);
        self.restore(data.sequence);
        self.deliver();
        true
    }

    /// A repair packet has arrived, which begins with `head`. Answers `false` where it cannot belong to the stream.
    pub(crate) fn repair(&mut self, repair: &Repair, head: &[u8]) -> bool {
        if repair.k == 0
            || usize::from(repair.k) > code::MOST_SOURCES
            || usize::from(repair.number) >= code::MOST_REPAIRS
        {
            return false;
        }
        self.forward(repair.start.wrapping_sub(repair.distance.into()));
        let place = repair.start.wrapping_sub(self.base) as usize;
        if place + usize::from(repair.k) > WINDOW {
            return place > u32::MAX as usize / 2;
        }
        if !self.reach(repair.start.wrapping_add(repair.k.into())) {
            return false;
        }
        let at = match self.groups.iter().position(|group| group.start == repair.start) {
            Some(at) if self.groups[at].k != repair.k => return false,
            Some(at) => at,
            None => {
                if self.groups.len() >= MOST_GROUPS {
                    self.groups.remove(0);
                }
                self.groups.push(Group { start: repair.start, k: repair.k, repairs: Vec::new() });
                self.groups.len() - 1
            }
        };
        let repairs = &mut self.groups[at].repairs;
        let number = usize::from(repair.number);
        if repairs.len() < usize::from(repair.k) && repairs.iter().all(|(other, _)| *other != number) {
            let mut own = self.spare.pop().unwrap_or_default();
            own.clear();
            own.extend_from_slice(head);
            repairs.push((number, own));
        }
        self.restore(repair.start);
        self.deliver();
        true
    }

    /// Segments before this one are no longer sent.
    pub(crate) fn forward(&mut self, base: u32) {
        let places = base.wrapping_sub(self.base);
        if places == 0 || places as usize > WINDOW {
            return;
        }
        for _ in 0..places {
            let slot = self.slots.pop_front().unwrap_or_default();
            match slot {
                Slot { delivered: true, .. } => {}
                // What waited for a segment that never comes is delivered now.
                Slot {
                    here: true,
                    bytes: 1..,
                    head,
                    due,
                    flags: flags @ Flags { ordered: true, .. },
                    ..
                } => {
                    self.go_on(Unread { bytes: slot.bytes.into(), segments: 1, head, due }, flags);
                    continue;
                }
                Slot { here: true, .. } => self.consume(1),
                // The rest of its message is of no use.
                Slot { .. } => {
                    let begun = self.begun.take().map_or(0, |begun| begun.segments);
                    self.consume(1 + begun);
                }
            }
            if slot.head.capacity() > 0 {
                self.spare.push(slot.head);
            }
        }
        self.base = base;
        self.passed = self.passed.saturating_sub(places as usize);
        let reached = |sequence: u32| sequence.wrapping_sub(base) > u32::MAX / 2;
        let mut at = 0;
        while at < self.groups.len() {
            if reached(self.groups[at].start) {
                let group = self.groups.swap_remove(at);
                self.spare.extend(group.repairs.into_iter().map(|(_, head)| head));
            } else {
                at += 1;
            }
        }
        self.ended |= self.fin.is_some_and(reached);
        self.deliver();
    }

    fn put(&mut self, place: usize, flags: Flags, bytes: u32, due: Option<u32>, head: &[u8]) {
        while self.slots.len() <= place {
            self.slots.push_back(Slot::default());
        }
        let slot = &mut self.slots[place];
        if slot.here {
            return;
        }
        let mut own = self.spare.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(&head[..head.len().min(bytes as usize)]);
        // How a packet is to be acknowledged is no part of its segment, which repair packets are made of.
        let flags = Flags { prompt: false, ..flags };
        *slot = Slot { here: true, delivered: false, flags, bytes, head: own, due, parts: None };
        if flags.fin {
            self.fin = Some(self.base.wrapping_add(place as u32));
        }
        if !flags.ordered {
            self.deliver_message(place);
        }
    }

    /// Delivers the message that a segment belongs to, if all of it is here.
    fn deliver_message(&mut self, place: usize) {
        let whole = |slot: &Slot| slot.here && !slot.delivered;
        let (mut first, mut last) = (place, place);
        while !self.slots[first].flags.first {
            let Some(before) = first.checked_sub(1).filter(|at| whole(&self.slots[*at])) else { return };
            first = before;
        }
        while !self.slots[last].flags.last {
            if !self.slots.get(last + 1).is_some_and(whole) {
                return;
            }
            last += 1;
        }
        let segments = (last + 1 - first) as u32;
        let (head, due) = (self.spare.pop().unwrap_or_default(), self.slots[first].due);
        let mut message = Unread { bytes: 0, segments, head, due };
        message.head.clear();
        let fin = self.slots[last].flags.fin;
        for slot in self.slots.range_mut(first..=last) {
            // The head goes on as long as the segments are nothing but head.
            if message.head.len() as u64 == message.bytes {
                message.head.extend_from_slice(&slot.head);
            }
            message.bytes += u64::from(slot.bytes);
            slot.delivered = true;
        }
        if fin {
            self.consume(segments);
        } else {
            self.hand_over(message, false);
        }
    }

    /// Delivers what follows in order, and finds the end of the stream.
    fn deliver(&mut self) {
        while let Some(slot) = self.slots.get_mut(self.passed).filter(|slot| slot.here) {
            let fin = slot.flags.fin;
            if !slot.delivered && slot.flags.ordered {
                slot.delivered = true;
                if slot.bytes > 0 {
                    // A segment that may be needed to restore others keeps its bytes.
                    let head =
                        if slot.flags.coded { slot.head.clone() } else { std::mem::take(&mut slot.head) };
                    let (bytes, due, flags) = (slot.bytes.into(), slot.due, slot.flags);
                    self.go_on(Unread { bytes, segments: 1, head, due }, flags);
                } else {
                    self.consume(1);
                }
            }
            self.ended |= fin;
            self.passed += 1;
        }
    }

    /// The next part of a message that is read in order; streams of bytes have one part each.
    fn go_on(&mut self, part: Unread, flags: Flags) {
        let whole = match (flags.first, self.begun.take()) {
            (true, None) => part,
            (false, Some(begun)) => begun.and(part),
            // The end, or the beginning, of one was given up.
            (_, begun) => {
                begun.into_iter().for_each(|begun| self.consume(begun.segments));
                if !flags.first {
                    return self.consume(part.segments);
                }
                part
            }
        };
        if flags.last {
            self.hand_over(whole, true);
        } else {
            self.begun = Some(whole);
        }
    }

    /// Restores the group that this segment belongs to, if enough of it is here.
    fn restore(&mut self, sequence: u32) {
        let Some(at) =
            self.groups.iter().position(|group| sequence.wrapping_sub(group.start) < u32::from(group.k))
        else {
            return;
        };
        let group = &self.groups[at];
        let (place, k) = (group.start.wrapping_sub(self.base) as usize, usize::from(group.k));
        let here = |n: &usize| self.slots.get(place + n).is_some_and(|slot| slot.here);
        let missing = (0..k).filter(|n| !here(n)).count();
        if missing == 0 {
            self.drop_group(at);
            return;
        }
        if missing > group.repairs.len() {
            return;
        }
        let mut symbols: Vec<Option<Vec<u8>>> = (0..k)
            .map(|n| {
                let slot = self.slots.get(place + n).filter(|slot| slot.here)?;
                let mut symbol = (slot.bytes as u16).to_be_bytes().to_vec();
                symbol.push(slot.flags.bits());
                symbol.extend(slot.due.unwrap_or_default().to_be_bytes());
                symbol.extend_from_slice(&slot.head);
                Some(symbol)
            })
            .collect();
        let lost: Vec<usize> = (0..k).filter(|n| symbols[*n].is_none()).collect();
        let repairs: Vec<(usize, &[u8])> =
            group.repairs.iter().map(|(number, head)| (*number, head.as_slice())).collect();
        if code::restore(&mut symbols, &repairs) {
            for n in lost {
                let Some(symbol) = symbols[n].take().filter(|symbol| symbol.len() >= SYMBOL_HEADER) else {
                    continue;
                };
                let bytes = u16::from_be_bytes([symbol[0], symbol[1]]);
                let due = u32::from_be_bytes([symbol[3], symbol[4], symbol[5], symbol[6]]);
                if let Some(flags) = Flags::from_bits(symbol[2]) {
                    self.put(place + n, flags, bytes.into(), Some(due), &symbol[SYMBOL_HEADER..]);
                }
            }
        }
        self.drop_group(at);
    }

    fn drop_group(&mut self, at: usize) {
        let group = self.groups.swap_remove(at);
        self.spare.extend(group.repairs.into_iter().map(|(_, head)| head));
    }

    /// Hands over what waits to be read: length, first bytes, and by when it was to be, by the peer's clock, each.
    pub(crate) fn read(&mut self, mut to: impl FnMut(u64, &[u8], Option<u32>)) {
        while let Some(Unread { bytes, segments, head, due }) = self.unread.pop_front() {
            self.consume(segments);
            to(bytes, &head, due);
            if head.capacity() > 0 {
                self.spare.push(head);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Flags =
        Flags { ordered: false, first: true, last: true, fin: false, prompt: false, coded: false };

    fn data(sequence: u32, distance: u16, flags: Flags, length: u16) -> Data {
        Data { flags, stream: 0, sequence, distance, length, due: flags.coded.then_some(9) }
    }

    fn read(incoming: &mut Incoming) -> Vec<(u64, Vec<u8>)> {
        let mut read = Vec::new();
        incoming.read(|bytes, head, _| read.push((bytes, head.to_vec())));
        read
    }

    #[test]
    fn an_ordered_stream_waits_for_what_is_missing() {
        let mut incoming = Incoming::default();
        let flags = Flags { ordered: true, ..MESSAGE };
        incoming.segment(&data(1, 1, flags, 20), b"b");
        assert!(read(&mut incoming).is_empty());
        incoming.segment(&data(0, 0, flags, 10), b"a");
        incoming.segment(&data(0, 0, flags, 10), b"a");
        assert_eq!(read(&mut incoming), [(10, b"a".to_vec()), (20, b"b".to_vec())]);
        // Of 2 nothing is sent any more.
        incoming.segment(&data(3, 1, flags, 30), b"d");
        assert!(read(&mut incoming).is_empty());
        incoming.forward(3);
        assert_eq!(read(&mut incoming), [(30, b"d".to_vec())]);
    }

    #[test]
    fn messages_in_order_are_put_together_and_what_is_given_up_takes_the_rest_of_its_message_along() {
        let mut incoming = Incoming::default();
        let part = |first, last| Flags { ordered: true, first, last, ..MESSAGE };
        incoming.segment(&data(1, 1, part(false, true), 3), b"end");
        incoming.segment(&data(2, 2, part(true, true), 5), b"whole");
        incoming.segment(&data(0, 0, part(true, false), 5), b"begin");
        assert_eq!(read(&mut incoming), [(8, b"beginend".to_vec()), (5, b"whole".to_vec())]);
        // Of 3 and 4 the second is given up, of 5 and 6 the first.
        incoming.segment(&data(3, 0, part(true, false), 1), b"a");
        incoming.segment(&data(6, 0, part(false, true), 1), b"b");
        incoming.segment(&data(7, 0, part(true, true), 1), b"c");
        assert_eq!(read(&mut incoming), [(1, b"c".to_vec())]);
        assert_eq!(incoming.take_consumed(), 8, "what takes no room");
    }

    #[test]
    fn messages_are_put_together_and_delivered_as_they_come() {
        let mut incoming = Incoming::default();
        incoming.segment(&data(3, 3, MESSAGE, 5), b"later");
        incoming.segment(&data(2, 2, Flags { first: false, ..MESSAGE }, 3), b"end");
        incoming.segment(&data(0, 0, Flags { last: false, ..MESSAGE }, 5), b"begin");
        assert_eq!(read(&mut incoming), [(5, b"later".to_vec())]);
        incoming.segment(&data(1, 1, Flags { first: false, last: false, ..MESSAGE }, 3), b"mid");
        assert_eq!(read(&mut incoming), [(11, b"beginmidend".to_vec())]);
    }

    #[test]
    fn a_repair_packet_brings_back_a_segment_that_was_lost() {
        let flags = Flags { coded: true, ..MESSAGE };
        let symbol = |bytes: u16, head: &[u8]| {
            let mut symbol = bytes.to_be_bytes().to_vec();
            symbol.push(flags.bits());
            symbol.extend(9u32.to_be_bytes());
            symbol.extend_from_slice(head);
            symbol
        };
        let (a, b) = (symbol(100, b"first"), symbol(60, b"the second"));
        let mut sum = Vec::new();
        code::encode(&[&a, &b], 7, &mut sum);
        let mut incoming = Incoming::default();
        incoming.segment(&data(1, 1, flags, 60), b"the second");
        let repair = Repair { stream: 0, start: 0, k: 2, number: 7, distance: 0, length: 107 };
        assert!(incoming.repair(&repair, &sum));
        let read = read(&mut incoming);
        assert_eq!(read[0], (60, b"the second".to_vec()));
        assert_eq!(read[1].0, 100);
        assert!(read[1].1.starts_with(b"first") && read[1].1[5..].iter().all(|byte| *byte == 0));
        assert!(!incoming.repair(&Repair { k: 0, ..repair }, &[]));
        assert!(!incoming.repair(&Repair { k: 17, ..repair }, &[]));
    }

    #[test]
    fn what_is_beyond_the_window_does_not_belong_to_the_stream() {
        let mut incoming = Incoming::default();
        assert!(!incoming.segment(&data(WINDOW as u32 + 5, u16::MAX, MESSAGE, 1), &[]));
    }
}
