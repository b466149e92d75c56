//! Segments that are too long for the path's present MTU. A segment that was not sent is cut into several. One that was sent keeps its
//! number and leaves in parts, each as long as every path carries, so that its parts stay the same however often the path changes.

use super::{Item, Outgoing, Segment, State};
use crate::aec::group::Group;
use crate::wire::{Flags, Part};

/// The parts of a segment, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Parts that are to be sent.
    again: u64,
    /// Parts that have not arrived.
    missing: u64,
}

impl Parts {
    /// The parts of a segment of `bytes` bytes, each of `part` bytes but the last.
    fn new(bytes: u32, part: u32) -> Parts {
        // The largest IP packet has at most 57 parts.
        let all = u64::MAX >> (64 - bytes.div_ceil(part).clamp(1, 64));
        Parts { again: all, missing: all }
    }
}

impl Outgoing {
    /// Sets the payload of full segments, in bytes.
    pub(crate) fn cut(&mut self, payload: u32) {
        let payload = self.room_of(payload);
        let shorter = payload < self.payload;
        self.payload = payload;
        if !shorter {
            return;
        }
        let unsent = self.segments.split_off(self.sent);
        for segment in unsent {
            self.cut_unsent(segment);
        }
        // Plans do not cover parts: groups with a segment that is too long are dissolved, and each of their segments is sent alone.
        let (base, mut alone) = (self.base, Vec::new());
        let too_long = |group: &Group, segments: &std::collections::VecDeque<Segment>| {
            let at = group.start.wrapping_sub(base) as usize;
            segments.range(at..at + usize::from(group.sources())).any(|segment| segment.bytes > payload)
        };
        self.groups.retain(|group| {
            let given_up = too_long(group, &self.segments);
            if given_up {
                let at = group.start.wrapping_sub(base) as usize;
                alone.extend(at..at + usize::from(group.sources()));
            }
            !given_up
        });
        for at in alone {
            if self.segments[at].state == State::Waiting {
                self.send_later(at);
            }
        }
    }

    /// Puts back a segment that was not sent, as several segments if it is too long.
    fn cut_unsent(&mut self, segment: Segment) {
        let Segment { head, bytes, flags, handed, .. } = segment;
        if bytes <= self.payload {
            self.segments.push_back(Segment::waiting(head, bytes, flags, handed));
            return;
        }
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(self.payload);
            let ends = at + length == bytes;
            let messages = self.messages;
            let flags = Flags {
                first: flags.first && (at == 0 || !messages),
                last: flags.last && (ends || !messages),
                ..flags
            };
            let head = head.part(at as usize..(at + length) as usize);
            self.segments.push_back(Segment::waiting(head, length, flags, handed));
            at += length;
        }
    }

    /// Retransmits a segment that is lost: whole, or its next part.
    pub(super) fn send_again(&mut self, at: usize) -> Option<Item> {
        let (payload, part_length) = (self.payload, self.base_payload);
        let segment = &mut self.segments[at];
        if segment.parts.is_none() && segment.bytes > payload {
            segment.sent += 1;
            segment.parts = Some(Box::new(Parts::new(segment.bytes, part_length)));
        }
        let bytes = segment.bytes;
        let Some(parts) = &mut segment.parts else { return Some(self.send(at, 0)) };
        if parts.again == 0 {
            // All of its parts that were to be sent have arrived since.
            segment.state = State::Waiting;
            return None;
        }
        let index = parts.again.trailing_zeros();
        parts.again &= parts.again - 1;
        let more = parts.again > 0;
        let offset = index * part_length;
        let length = (bytes - offset).min(part_length);
        let part = Part { segment: self.data(at), offset: offset as u16, length: length as u16 };
        self.retransmitted += 1;
        if more {
            self.lost.push_front(part.segment.sequence);
        } else {
            self.segments[at].state = State::Waiting;
        }
        Some(Item::Part(part, index as u8))
    }

    /// A part of a segment was acknowledged.
    pub(crate) fn part_arrived(&mut self, sequence: u32, part: u8) {
        let at = self.at(sequence);
        let Some(segment) = self.segments.get_mut(at) else { return };
        let Some(parts) = &mut segment.parts else { return };
        let bit = 1 << part;
        (parts.missing, parts.again) = (parts.missing & !bit, parts.again & !bit);
        if parts.missing == 0 {
            self.settle(at);
            self.advance();
        }
    }

    /// A part of a segment counts as lost.
    pub(crate) fn part_lost(&mut self, sequence: u32, part: u8) {
        let at = self.at(sequence);
        let Some(segment) = self.segments.get(at).filter(|segment| segment.state != State::Settled) else {
            return;
        };
        if self.gives_up(segment) {
            return self.give_up(at);
        }
        let waits = segment.state == State::Waiting;
        let Some(parts) = &mut self.segments[at].parts else { return };
        parts.again |= parts.missing & 1 << part;
        if parts.again > 0 && waits {
            self.send_later(at);
        }
    }
}
