//! The receiving half of a stream: segments that have arrived, messages reassembled from them, and groups restored with repair packets.

mod groups;
mod parts;

use super::credit::{self, Granted};
use super::send::WINDOW;
use super::wire::{Data, Flags};
use groups::Group;
use parts::Parts;
use std::collections::VecDeque;

/// The place of a segment in the window.
#[derive(Debug, Default)]
struct Slot {
    here: bool,
    delivered: bool,
    flags: Flags,
    bytes: u32,
    head: Vec<u8>,
    /// Its due time by the peer's clock; `None` without a deadline.
    due: Option<u32>,
    /// Its parts that have arrived, while it is incomplete.
    parts: Option<Box<Parts>>,
}

/// Data that waits to be read.
#[derive(Debug)]
struct Unread {
    bytes: u64,
    /// The number of segments that carried it.
    segments: u32,
    head: Vec<u8>,
    due: Option<u32>,
}

impl Unread {
    /// Appends a segment of `bytes` bytes that begins with `head`. The head grows as long as it covers all bytes so far; zeros follow it.
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
    /// The number of the first segment that the peer may still send, and the places from it on.
    base: u32,
    slots: VecDeque<Slot>,
    /// How many of these places, from the first on, are delivered or skipped.
    passed: usize,
    groups: Vec<Group>,
    unread: VecDeque<Unread>,
    /// The beginning of a message that is read in order and whose rest has not arrived.
    begun: Option<Unread>,
    /// How many segments the peer may send, and consumed segments that the connection has not counted yet.
    granted: Granted,
    consumed: u32,
    /// One more than the highest segment number that the peer has sent.
    reached: u32,
    spare: Vec<Vec<u8>>,
    /// The segment that ends the stream, and whether everything before it is delivered.
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
    /// This many segments no longer take up buffer space.
    fn consume(&mut self, segments: u32) {
        self.granted.consume(segments);
        self.consumed += segments;
    }

    /// The number of segments consumed since the last call.
    pub(crate) fn take_consumed(&mut self) -> u32 {
        std::mem::take(&mut self.consumed)
    }

    /// One more than the highest segment number that the peer is known to have sent.
    pub(crate) fn reached(&self) -> u32 {
        self.reached
    }

    /// Records that the peer has sent this many segments. Returns whether it was allowed to.
    fn reach(&mut self, segments: u32) -> bool {
        if segments.wrapping_sub(self.reached) as i32 > 0 {
            self.reached = segments;
        }
        self.granted.covers(self.reached)
    }

    /// How many segments the peer may send.
    pub(crate) fn granted(&mut self) -> &mut Granted {
        &mut self.granted
    }

    /// Whether everything has arrived, the end included.
    pub(crate) fn is_finished(&self) -> bool {
        self.ended
    }

    /// Queues data to be read. Zeros of a stream in order are merged with zeros that wait already.
    fn hand_over(&mut self, unread: Unread, ordered: bool) {
        let Unread { bytes, segments, head, due } = unread;
        // Zeros take up no buffer space.
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

    /// Takes a segment that begins with `head`. Returns `false` if it cannot belong to the stream.
    pub(crate) fn segment(&mut self, data: &Data, head: &[u8]) -> bool {
        self.forward(data.sequence.wrapping_sub(data.distance.into()));
        let place = data.sequence.wrapping_sub(self.base);
        if place as usize >= WINDOW {
            // A segment below the window was settled before; one beyond the window was never allowed.
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

    /// The sender no longer sends segments before `base`.
    pub(crate) fn forward(&mut self, base: u32) {
        let places = base.wrapping_sub(self.base);
        if places == 0 || places as usize > WINDOW {
            return;
        }
        for _ in 0..places {
            let slot = self.slots.pop_front().unwrap_or_default();
            match slot {
                Slot { delivered: true, .. } => {}
                // Segments that waited for a segment that never comes are delivered now.
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
                // The segment is lost, so the beginning of its message is dropped.
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

    /// A place, which must be within the window.
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
        // The `prompt` flag belongs to the packet, not to the segment that repair packets cover.
        let flags = Flags { prompt: false, ..flags };
        self.slots[place] = Slot { here: true, delivered: false, flags, bytes, head: own, due, parts: None };
        if flags.fin {
            self.fin = Some(self.base.wrapping_add(place as u32));
        }
        if !flags.ordered {
            self.deliver_message(place);
        }
    }

    /// Delivers the message that a segment belongs to, if it is complete.
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

    /// Delivers segments that follow in order, and detects the end of the stream.
    fn deliver(&mut self) {
        while let Some(slot) = self.slots.get_mut(self.passed).filter(|slot| slot.here) {
            let fin = slot.flags.fin;
            if !slot.delivered && slot.flags.ordered {
                slot.delivered = true;
                if slot.bytes > 0 {
                    // A segment that may help to restore others keeps its bytes.
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

    /// Takes the next segment of a message that is read in order; in a stream of bytes each segment is a message.
    fn go_on(&mut self, part: Unread, flags: Flags) {
        let whole = match (flags.first, self.begun.take()) {
            (true, None) => part,
            (false, Some(mut begun)) => {
                begun.append(part.bytes, &part.head);
                begun
            }
            // The end of the message before, or the beginning of this one, was given up.
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

    /// Hands over the data that waits to be read: length in bytes, first bytes (zeros follow), and due time by the peer's clock.
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
