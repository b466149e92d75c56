//! The groups of a stream with a deadline: how each is protected, what its rounds send, and when they begin.

use super::{Item, Outgoing, SYMBOL_HEADER};
use crate::aec::group::{Group, Next};
use crate::aec::{Channel, Plan, code};
use crate::wire::Repair;
use weir_base::{Bytes, Rate, Span, Time};

/// A queue hinders a stream if an empty queue would raise its plan's efficiency by more than this.
const HINDERED: f64 = 0.02;
/// A stream is behind when its packets have waited for longer than this fraction (1/4) of its deadline to be sent.
const BEHIND: u64 = 4;
/// A plan may use this share of the packets that the path carries; if it would use more, a plan for an empty queue is preferred.
const MOST_LOAD: f64 = 0.75;
/// A round waits for missing acknowledgements for this fraction (1/2) of the time that the plan leaves, shared among its rounds: the next
/// acknowledgement makes up for a lost one. The rest is a margin for errors in estimates of the path.
const SPARE: u64 = 2;
/// Later packets that must arrive before one counts as lost; a round of a group has to wait for them.
const LATER: u64 = 3;

/// The present state of the path to the peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathNow {
    /// The rate of loss, 0 to 1.
    pub(crate) per: f64,
    /// The time within which nearly every packet is acknowledged. A round does not wait longer for the others.
    pub(crate) rtt: Span,
    /// The longest one-way delay.
    pub(crate) owd: Span,
    /// The smallest round trip and one-way delay: those of an empty queue.
    pub(crate) least: (Span, Span),
    /// The rate at which packets leave, and the header bytes that it counts for each packet.
    pub(crate) rate: Rate,
    pub(crate) around: u32,
}

impl PathNow {
    /// The same path with an empty queue.
    fn empty(&self) -> PathNow {
        let (rtt, owd) = self.least;
        PathNow { rtt, owd, ..*self }
    }
}

impl Outgoing {
    /// Sets the present state of the path.
    pub(crate) fn set_path(&mut self, path: PathNow) {
        self.path = Some(path);
    }

    /// The path as this stream's plans see it; `None` before its state is known.
    pub(crate) fn channel(&self) -> Option<Channel> {
        Some(self.channel_of(&self.path?))
    }

    /// Whether the stream has data, and an empty queue on the path would let it keep its deadline, or keep it with fewer packets.
    pub(crate) fn is_hindered(&mut self, path: &PathNow) -> bool {
        let (now, better) = (self.channel_of(path), self.channel_of(&path.empty()));
        let Some(planner) = self.planner.as_mut().filter(|_| !self.segments.is_empty()) else { return false };
        let Some(better) = planner.plan(&better, Span::ZERO).filter(|plan| plan.reaches_target) else {
            return false;
        };
        let now = planner.plan(&now, Span::ZERO).filter(|plan| plan.reaches_target);
        now.is_none_or(|now| now.plan.efficiency + HINDERED < better.plan.efficiency)
    }

    fn channel_of(&self, path: &PathNow) -> Channel {
        let PathNow { per, rtt, owd, rate, around, .. } = *path;
        let length = self.length.value().unwrap_or(self.payload.into());
        let packet_time = rate.time_to_send(Bytes::new(length as u64 + u64::from(around)));
        let gap = if self.full { Span::ZERO } else { self.gap() };
        Channel { per, rtt: rtt + packet_time * LATER, owd, packet_time, gap }
    }

    /// The plan of its newest group; `None` without one.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.newest.as_ref().map(|choice| &choice.plan)
    }

    /// Whether the stream has a deadline, for which plans are made.
    pub(crate) fn is_planned(&self) -> bool {
        self.planner.is_some()
    }

    /// The next item of a group to send; `None` if the group has nothing to send.
    pub(super) fn next_of(&mut self, group: usize, now: Time) -> Option<Item> {
        let group = self.groups.get_mut(group)?;
        let (start, k, round) = (group.start, group.sources(), group.round());
        match group.next(now)? {
            Next::Again(sequence) => {
                let at = self.at(sequence);
                Some(self.send(at, round))
            }
            Next::Repair(number) => {
                let at = self.at(start);
                let group = self.segments.range(at..at + usize::from(k));
                let longest = group.map(|segment| segment.bytes).max().unwrap_or(0) as usize + SYMBOL_HEADER;
                self.coded += 1;
                let distance = at as u16;
                let length = longest as u16;
                Some(Item::Repair(Repair { stream: self.id, start, k, number, distance, length }, round))
            }
        }
    }

    /// Adds a segment that leaves for the first time to a group.
    pub(super) fn join_group(&mut self, at: usize, now: Time) {
        let channel = self.channel();
        let empty = self.path.map(|path| self.channel_of(&path.empty()));
        let Some(planner) = &mut self.planner else { return };
        if self.groups.back().is_none_or(Group::is_closed) {
            let handed = self.segments[at].handed;
            let waited = now.since(handed);
            let plan = channel.and_then(|channel| {
                let mut plan = planner.plan(&channel, waited)?;
                // Packets wait for too long if more is sent than the path carries. Repair packets would make that worse.
                let behind = waited > planner.deadline() / BEHIND && !self.full;
                let packets = channel.gap.as_secs_f64() / channel.packet_time.as_secs_f64();
                // A plan that fills the path keeps up the queue for which it was made.
                if !self.full && plan.plan.sent > packets * MOST_LOAD {
                    let drains = empty.and_then(|empty| planner.plan(&empty, Span::ZERO));
                    plan = drains.filter(|drains| drains.plan.sent < plan.plan.sent).unwrap_or(plan);
                }
                (!behind || (plan.reaches_target && plan.plan.sent < packets)).then_some(plan)
            });
            self.newest.clone_from(&plan);
            if let Some(choice) = &plan {
                self.modes[choice.plan.mode as usize] += 1;
            }
            let spare = plan.as_ref().map_or(Span::ZERO, |choice| {
                let latest = waited + choice.plan.latest;
                planner.deadline().saturating_sub(latest) / SPARE / (choice.plan.rounds as u64 - 1).max(1)
            });
            let patience = channel.map_or(Span::ZERO, |channel| channel.rtt + spare);
            self.groups.push_back(Group::new(self.base.wrapping_add(at as u32), plan, handed, patience));
        }
        if let Some(group) = self.groups.back_mut() {
            group.grow(now);
        }
        // The end of the stream closes the group.
        let fin = self.segments[at].flags.fin;
        if let Some(group) = self.groups.back_mut().filter(|group| fin && !group.is_closed()) {
            group.close();
        }
    }

    /// Mean time from one write to the next.
    fn gap(&self) -> Span {
        Span::from_secs_f64(self.gap.value().unwrap_or(0.0))
    }

    /// When the newest group is to be closed although it is not full, since nothing more was written.
    fn closes_at(&self) -> Time {
        let Some(group) =
            self.groups.back().filter(|group| !group.is_closed() && self.sent == self.segments.len())
        else {
            return Time::NEVER;
        };
        let gap = self.channel().map_or(self.gap(), |channel| channel.gap.max(channel.packet_time));
        group.handed + gap * (u64::from(group.k()) + 1)
    }

    /// When [`Outgoing::on_timer`] is due.
    pub(crate) fn next_timer(&self) -> Time {
        self.groups.iter().map(Group::due).fold(self.closes_at(), Time::min)
    }

    /// Closes a group that waits for segments in vain, and begins rounds that are due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let closes = now >= self.closes_at();
        if let Some(group) = self.groups.back_mut().filter(|_| closes) {
            group.close();
        }
        self.groups.iter_mut().for_each(|group| group.on_timer(now));
    }

    /// Writes the first bytes of a repair packet: the coded sum of the group's segments, each behind its length, flags and due time. Zeros
    /// follow.
    pub(crate) fn repair(&mut self, repair: &Repair, into: &mut Vec<u8>) {
        let at = self.at(repair.start);
        let mut symbols: [Vec<u8>; code::MOST_SOURCES] = Default::default();
        let mut count = 0;
        for (symbol, segment) in symbols.iter_mut().zip(self.segments.range(at..at + usize::from(repair.k))) {
            *symbol = self.symbols.pop().unwrap_or_default();
            symbol.clear();
            symbol.extend((segment.bytes as u16).to_be_bytes());
            symbol.push(segment.flags.bits());
            symbol.extend(self.due(segment).unwrap_or_default().to_be_bytes());
            symbol.extend_from_slice(&segment.head);
            count += 1;
        }
        let mut slices = [&[][..]; code::MOST_SOURCES];
        slices.iter_mut().zip(&symbols).for_each(|(slice, symbol)| *slice = symbol);
        code::encode(&slices[..count], repair.number.into(), into);
        self.symbols.extend(symbols.into_iter().take(count));
    }

    /// A repair packet of the group that begins at `start` was acknowledged or counts as lost.
    pub(crate) fn repair_fate(&mut self, start: u32, round: u8, arrived: bool, late: bool) {
        self.arrived += u64::from(arrived);
        let Some(group) = self.group(start) else { return };
        if arrived {
            group.arrived(None, round, late);
            self.settle_groups();
        } else {
            group.lost(round);
        }
    }

    pub(super) fn group(&mut self, sequence: u32) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| sequence.wrapping_sub(group.start) < u32::from(group.sources()))
    }

    /// Settles the segments of complete groups.
    pub(super) fn settle_groups(&mut self) {
        for at in 0..self.groups.len() {
            let group = &self.groups[at];
            if group.is_complete() {
                let (start, sources) = (group.start, group.sources());
                (0..u32::from(sources)).for_each(|n| self.settle(self.at(start.wrapping_add(n))));
            }
        }
        self.groups.retain(|group| !group.is_complete());
        self.advance();
    }
}
