//! The sending half of a stream: its segments from the first that is not settled on, their retransmission, and their protection. A message
//! that is longer than a segment is cut here and reassembled by the receiving half. A segment is settled when it was acknowledged or given
//! up.

mod groups;
mod item;
mod parts;
mod written;

pub(crate) use groups::PathNow;
pub(crate) use item::Item;

use super::aec::group::Group;
use super::aec::{Choice, Goal, Mode, Planner};
use super::credit::{self, Allowed};
use super::due;
use super::passage::Passage;
use super::wire::{DUE, Data, Flags};
use super::{Delivery, Drop, Order, StreamParameters};
use parts::Parts;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_base::{Ewma, Time};
use written::{Cutter, Written};

/// Maximum number of segments from the first that is not settled to the last that was sent (the GNAT software).
pub(crate) const WINDOW: usize = 32_768;
/// Bytes before a segment in the input of a repair packet: its length, its flags and its due time.
pub(crate) const SYMBOL_HEADER: usize = 3 + DUE;
/// The share of the loss allowed by a target that plans use up: the rest is a margin for errors in estimates of the path.
const PLANNED_LOSS: f64 = 0.8;
/// Weight of a new length in the mean length of a segment.
const LENGTH_WEIGHT: f64 = 0.05;
/// Weight of a new gap in the mean gap between writes.
const GAP_WEIGHT: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was not sent, or it is not known yet whether it is to be retransmitted.
    Waiting,
    /// It is to be retransmitted.
    Lost,
    /// It was acknowledged or given up.
    Settled,
}

/// A segment of a message or of the stream.
#[derive(Debug)]
struct Segment {
    /// Its first bytes, until it is settled; zeros follow.
    head: Written,
    bytes: u32,
    flags: Flags,
    /// When it was written.
    handed: Time,
    state: State,
    /// How often it was sent.
    sent: u32,
    /// The fate of its parts, if it was cut after it was sent.
    parts: Option<Box<Parts>>,
}

impl Segment {
    /// A segment that was not sent yet.
    fn waiting(head: Written, bytes: u32, flags: Flags, handed: Time) -> Segment {
        Segment { head, bytes, flags, handed, state: State::Waiting, sent: 0, parts: None }
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    id: u8,
    delivery: Delivery,
    priority: u8,
    ordered: bool,
    /// Whether each write is a message, which is delivered whole.
    messages: bool,
    /// In bytes: a full segment, and a segment that every path carries.
    payload: u32,
    base_payload: u32,
    /// Bytes that may wait to be sent, and which messages are dropped beyond that.
    limit: u64,
    drop: Drop,
    /// How many segments the peer accepts.
    allowed: Allowed,
    /// The number of the first segment that is not settled, and the segments from it on.
    base: u32,
    segments: VecDeque<Segment>,
    /// How many of these segments were sent.
    sent: usize,
    lost: VecDeque<u32>,
    /// Bytes that wait for their first transmission, and bytes that are not settled.
    unsent: u64,
    unsettled: u64,
    /// Whether the application always has data.
    full: bool,
    closed: bool,
    /// Whether segments were given up since the peer was last told.
    forward: bool,
    groups: VecDeque<Group>,
    planner: Option<Planner>,
    path: Option<PathNow>,
    /// Mean length of a segment in bytes.
    length: Ewma,
    newest: Option<Arc<Choice>>,
    /// Number of groups that were begun with a plan, by its mode.
    pub(crate) modes: [u64; Mode::ALL.len()],
    /// Mean time from one write to the next, in seconds, and the time of the last write.
    gap: Ewma,
    handed: Option<Time>,
    /// Buffers for the input of repair packets.
    symbols: Vec<Vec<u8>>,
    /// Repair packets that were sent.
    pub(crate) coded: u64,
    /// For a stream with a deadline: packets that arrived, duplicates and repair packets included; and segments that are settled.
    pub(crate) arrived: u64,
    pub(crate) usable: u64,
    pub(crate) retransmitted: u64,
    pub(crate) settled: u64,
    /// Bytes of messages that were dropped before they were sent.
    pub(crate) dropped: u64,
    /// How long its segments take from the hand-over to their arrival.
    pub(crate) passage: Passage,
}

impl Outgoing {
    /// A stream of messages or of bytes. `payload` and `base_payload`: bytes of a segment without a deadline, on the present path and on
    /// one that carries only the base.
    pub(crate) fn new(
        id: u8,
        parameters: &StreamParameters,
        messages: bool,
        (payload, base_payload): (u32, u32),
    ) -> Outgoing {
        let delivery = parameters.delivery();
        let planner = match delivery {
            Delivery::ArqFec { deadline, target } => {
                let target = 1.0 - (1.0 - target) * PLANNED_LOSS;
                Some(Planner::new(Goal { deadline, target }))
            }
            _ => None,
        };
        let mut outgoing = Outgoing {
            id,
            delivery,
            priority: parameters.priority,
            ordered: parameters.order.map_or(!messages, |order| order == Order::Written),
            messages,
            payload: 0,
            base_payload: 0,
            limit: parameters.queue.get(),
            drop: parameters.drop,
            allowed: Allowed::new(credit::STREAM),
            base: 0,
            segments: VecDeque::new(),
            sent: 0,
            lost: VecDeque::new(),
            unsent: 0,
            unsettled: 0,
            full: false,
            closed: false,
            forward: false,
            groups: VecDeque::new(),
            planner,
            path: None,
            length: Ewma::new(LENGTH_WEIGHT),
            newest: None,
            modes: [0; Mode::ALL.len()],
            gap: Ewma::new(GAP_WEIGHT),
            handed: None,
            symbols: Vec::new(),
            coded: 0,
            arrived: 0,
            usable: 0,
            retransmitted: 0,
            settled: 0,
            dropped: 0,
            passage: Passage::default(),
        };
        (outgoing.payload, outgoing.base_payload) =
            (outgoing.room_of(payload), outgoing.room_of(base_payload));
        outgoing
    }

    /// The payload of a segment, if one without a deadline carries this much.
    fn room_of(&self, payload: u32) -> u32 {
        if self.planner.is_some() { payload.saturating_sub(DUE as u32).max(1) } else { payload }
    }

    /// Takes a message whole or not at all, or as many bytes of a byte stream as there is room for. Returns the number of bytes taken.
    pub(crate) fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> u64 {
        if self.messages && self.drop == Drop::Oldest {
            self.make_room(bytes);
        }
        let room = self.limit.saturating_sub(self.unsent);
        let taken = if self.messages { bytes } else { bytes.min(room) };
        // If nothing else waits, a message may be longer than the limit.
        if self.closed || taken == 0 || (taken > room && self.unsent > 0) || self.segments.len() >= WINDOW {
            return 0;
        }
        if let Some(before) = self.handed.replace(now) {
            self.gap.update(now.since(before).as_secs_f64());
        }
        let mut cutter = Cutter::new(&head[..head.len().min(taken as usize)], self.payload);
        let mut left = taken;
        while left > 0 {
            let length = left.min(self.payload.into());
            let (first, last) = (!self.messages || left == taken, !self.messages || left == length);
            let flags = Flags { first, last, ..Flags::default() };
            self.push(cutter.next(), length as u32, flags, now);
            left -= length;
        }
        taken
    }

    /// Drops the messages that have waited longest, until there is room for this many bytes.
    fn make_room(&mut self, bytes: u64) {
        while self.unsent + bytes > self.limit && self.drop_first() {}
    }

    /// Drops the next message that was not sent yet, unless a part of it was sent. Returns whether one was dropped.
    fn drop_first(&mut self) -> bool {
        if !self.segments.get(self.sent).is_some_and(|segment| segment.flags.first && !segment.flags.fin) {
            return false;
        }
        while let Some(segment) = self.segments.remove(self.sent) {
            self.unsent -= u64::from(segment.bytes);
            self.unsettled -= u64::from(segment.bytes);
            self.dropped += u64::from(segment.bytes);
            if segment.flags.last {
                break;
            }
        }
        true
    }

    /// The path is back after an outage: best-effort messages that waited are dropped as out of date.
    pub(crate) fn drop_stale(&mut self) {
        while self.messages && self.delivery == Delivery::BestEffort && self.drop_first() {}
    }

    fn push(&mut self, head: Written, bytes: u32, flags: Flags, handed: Time) {
        self.unsent += u64::from(bytes);
        self.length.update(bytes.into());
        self.unsettled += u64::from(bytes);
        let flags = Flags { ordered: self.ordered, coded: self.planner.is_some(), ..flags };
        self.segments.push_back(Segment::waiting(head, bytes, flags, handed));
    }

    /// From now on the application always has data.
    pub(crate) fn keep_full(&mut self) {
        self.full = true;
    }

    /// The application has closed the stream.
    pub(crate) fn close(&mut self, now: Time) {
        if !std::mem::replace(&mut self.closed, true) {
            self.full = false;
            self.push(
                Written::default(),
                0,
                Flags { first: true, last: true, fin: true, ..Flags::default() },
                now,
            );
            if let Some(group) = self.groups.back_mut().filter(|group| !group.is_closed()) {
                group.close();
            }
        }
    }

    /// Whether all that was written is settled.
    pub(crate) fn is_settled(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of a full segment, and whether each write is a message.
    pub(crate) fn shape(&self) -> (u32, bool) {
        (self.payload, self.messages)
    }

    /// Bytes that were written and are not settled.
    pub(crate) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// Bytes that wait for their first transmission.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// When a segment that is not settled was handed over.
    pub(crate) fn handed(&self, sequence: u32) -> Option<Time> {
        let segment = self.segments.get(self.at(sequence))?;
        (segment.state != State::Settled).then_some(segment.handed)
    }

    /// The stream's priority: 0 goes first.
    pub(crate) fn priority(&self) -> u8 {
        self.priority
    }

    /// The peer accepts this many segments in all.
    pub(crate) fn allow(&mut self, segments: u32) {
        self.allowed.raise(segments);
    }

    /// Whether there is a segment to send for the first time, and the peer accepts it.
    pub(crate) fn has_new(&self) -> bool {
        (self.full || self.sent < self.segments.len()) && self.sent < WINDOW && self.allowed.has_room()
    }

    /// Whether a retransmission or a repair packet is to be sent.
    pub(crate) fn has_again(&self) -> bool {
        !self.lost.is_empty() || self.groups.iter().any(Group::has_more)
    }

    /// The first segment that may still be sent, if the peer is to be told that segments were given up; it then counts as told.
    pub(crate) fn take_forward(&mut self) -> Option<u32> {
        std::mem::take(&mut self.forward).then_some(self.base)
    }

    /// The packet that told the peer of given-up segments may be lost: it is told again.
    pub(crate) fn forward_again(&mut self) {
        self.forward = matches!(self.delivery, Delivery::BestEffort | Delivery::SemiReliable { .. });
    }

    fn at(&self, sequence: u32) -> usize {
        sequence.wrapping_sub(self.base) as usize
    }

    /// Drops the messages that were not sent yet and would arrive after their deadline, if they took as long as the slowest packets do.
    /// A message that has waited for less than half its deadline stays: where the path itself is too slow, waiting is not the cause.
    pub(crate) fn drop_late(&mut self, now: Time) {
        let Some((planner, path)) = self.planner.as_ref().zip(self.path.as_ref()) else { return };
        if self.drop != Drop::Late || !self.messages {
            return;
        }
        let deadline = planner.deadline();
        let patience = deadline.saturating_sub(path.owd).max(deadline / 2);
        while self.segments.get(self.sent).is_some_and(|segment| now.since(segment.handed) > patience)
            && self.drop_first()
        {}
    }

    /// The next item to send: retransmissions first, then repair packets, then new segments.
    pub(crate) fn next(&mut self, now: Time) -> Option<Item> {
        while let Some(sequence) = self.lost.pop_front() {
            let at = self.at(sequence);
            if self.segments.get(at).is_some_and(|segment| segment.state == State::Lost)
                && let Some(item) = self.send_again(at)
            {
                return Some(item);
            }
        }
        for group in 0..self.groups.len() {
            if let Some(item) = self.next_of(group, now) {
                return Some(item);
            }
        }
        if !self.has_new() {
            return None;
        }
        self.allowed.take();
        if self.sent == self.segments.len() {
            self.push(
                Written::default(),
                self.payload,
                Flags { first: true, last: true, ..Flags::default() },
                now,
            );
        }
        let at = self.sent;
        self.sent += 1;
        self.unsent -= u64::from(self.segments[at].bytes);
        self.join_group(at, now);
        Some(self.send(at, 0))
    }

    fn send(&mut self, at: usize, round: u8) -> Item {
        let segment = &mut self.segments[at];
        let again = segment.sent > 0;
        segment.sent += 1;
        segment.state = State::Waiting;
        self.retransmitted += u64::from(again);
        Item::Data { data: self.data(at), again, round }
    }

    /// The data frame of a segment.
    fn data(&self, at: usize) -> Data {
        let segment = &self.segments[at];
        Data {
            flags: segment.flags,
            stream: self.id,
            sequence: self.base.wrapping_add(at as u32),
            distance: at as u16,
            length: segment.bytes as u16,
            due: self.due(segment),
        }
    }

    /// The due time of a segment by this end's clock, in microseconds; `None` without a deadline.
    fn due(&self, segment: &Segment) -> Option<u32> {
        Some(due::micros(segment.handed + self.planner.as_ref()?.deadline()))
    }

    /// The first bytes of a segment; zeros follow.
    pub(crate) fn head(&self, sequence: u32) -> &[u8] {
        self.segments.get(self.at(sequence)).map_or(&[], |segment| &segment.head)
    }

    /// A segment was acknowledged. `late`: it counted as lost before.
    pub(crate) fn arrived(&mut self, sequence: u32, round: u8, late: bool) {
        self.arrived += u64::from(self.planner.is_some());
        if let Some(group) = self.group(sequence) {
            let at = sequence.wrapping_sub(group.start);
            group.arrived(Some(at), round, late);
            self.settle_groups();
            return;
        }
        let at = self.at(sequence);
        self.settle(at);
        self.advance();
    }

    /// A segment's packet counts as lost.
    pub(crate) fn lost(&mut self, sequence: u32, round: u8) {
        if let Some(group) = self.group(sequence) {
            return group.lost(round);
        }
        let at = self.at(sequence);
        // The fate of a segment that was cut since is that of its parts.
        let whole = |segment: &&Segment| segment.state == State::Waiting && segment.parts.is_none();
        let Some(segment) = self.segments.get(at).filter(whole) else { return };
        if self.gives_up(segment) {
            self.give_up(at);
        } else {
            self.send_later(at);
        }
    }

    /// Whether a lost segment is given up instead of retransmitted.
    fn gives_up(&self, segment: &Segment) -> bool {
        match self.delivery {
            // The end of a stream is reliable.
            _ if segment.flags.fin => false,
            Delivery::BestEffort => true,
            Delivery::SemiReliable { limit } => segment.sent > limit,
            Delivery::Reliable | Delivery::ArqFec { .. } => false,
        }
    }

    fn give_up(&mut self, at: usize) {
        self.forward = true;
        self.settle(at);
        self.advance();
    }

    /// Queues a segment for retransmission.
    fn send_later(&mut self, at: usize) {
        let sequence = self.base.wrapping_add(at as u32);
        self.segments[at].state = State::Lost;
        // A segment that is lost again goes before later ones: its reader waits for it.
        let place = self.lost.partition_point(|other| (other.wrapping_sub(sequence) as i32) < 0);
        self.lost.insert(place, sequence);
    }

    fn settle(&mut self, at: usize) {
        if let Some(segment) = self.segments.get_mut(at).filter(|segment| segment.state != State::Settled) {
            (segment.state, segment.head) = (State::Settled, Written::default());
            self.usable += 1;
            self.unsettled -= u64::from(segment.bytes);
            self.settled += u64::from(segment.bytes);
        }
    }

    fn advance(&mut self) {
        while self.sent > 0 && self.segments.front().is_some_and(|segment| segment.state == State::Settled) {
            self.segments.pop_front();
            self.base = self.base.wrapping_add(1);
            self.sent -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
