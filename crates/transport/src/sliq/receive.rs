//! The receiving half of a stream: segments that have arrived, messages put together from them, and groups restored by repair
//! packets.

mod groups;
mod parts;

use super::credit::{self, Granted};
use super::send::WINDOW;
use super::wire::{Data, Flags};
use groups::Group;
use parts::Parts;
use std::collections::VecDeque;

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
    /// Goes on with a segment of so many bytes. The head goes on as long as there is nothing but head.
    fn append(&mut self, bytes: u64, head: &[u8]) {
        if self.head.len() as u64 == self.bytes {
            self.head.extend_from_slice(head);
        }
        self.bytes += bytes;
        self.segments += 1;
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
        self.drop_groups(reached);
        self.ended |= self.fin.is_some_and(reached);
        self.deliver();
    }

    /// This place, which is within the window.
    fn slot(&mut self, place: usize) -> &mut Slot {
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, Slot::default);
        }
        &mut self.slots[place]
    }

    fn put(&mut self, place: usize, flags: Flags, bytes: u32, due: Option<u32>, head: &[u8]) {
        if self.slot(place).here {
            return;
        }
        let mut own = self.spare.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(&head[..head.len().min(bytes as usize)]);
        // How a packet is to be acknowledged is no part of its segment, which repair packets are made of.
        let flags = Flags { prompt: false, ..flags };
        self.slots[place] = Slot { here: true, delivered: false, flags, bytes, head: own, due, parts: None };
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
        let (head, due) = (self.spare.pop().unwrap_or_default(), self.slots[first].due);
        let mut message = Unread { bytes: 0, segments: 0, head, due };
        message.head.clear();
        let fin = self.slots[last].flags.fin;
        for slot in self.slots.range_mut(first..=last) {
            message.append(slot.bytes.into(), &slot.head);
            slot.delivered = true;
        }
        if fin {
            self.consume(message.segments);
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
            (false, Some(mut begun)) => {
                begun.append(part.bytes, &part.head);
                begun
            }
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
mod tests;
