//! A group at the sender: which of its packets have arrived, and what each round sends.

use super::{Choice, Have};
use std::sync::Arc;
use weir_base::{Span, Time};

/// A group of segments that are protected together.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Its first segment.
    pub(crate) start: u32,
    /// When its first segment was written.
    pub(crate) handed: Time,
    /// When its newest packet left, and how long after that the round ends although the fate of some packets is not known.
    left: Time,
    patience: Span,
    /// How it is sent; `None` if no plan is used, and each segment is sent alone.
    plan: Option<Arc<Choice>>,
    /// Number of segments so far, and whether no more join.
    sources: u8,
    closed: bool,
    round: u8,
    /// Packets of this round whose fate is not known.
    out: u16,
    /// Segments that have arrived, one bit each, and the number of repair packets that have arrived.
    arrived: u32,
    repairs: u8,
    /// Segments that are to be retransmitted, one bit each, and the number of repair packets to be sent.
    again: u32,
    coded: u8,
    next_repair: u8,
}

/// What a group sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The segment with this number in the stream, retransmitted.
    Again(u32),
    /// The repair packet with this number.
    Repair(u8),
}

impl Group {
    /// A group that begins with segment `start`, which was written at `handed`. A round ends at most `patience` after its last packet has
    /// left.
    pub(crate) fn new(start: u32, plan: Option<Arc<Choice>>, handed: Time, patience: Span) -> Group {
        Group {
            start,
            handed,
            left: handed,
            patience,
            plan,
            sources: 0,
            closed: false,
            round: 0,
            out: 0,
            arrived: 0,
            repairs: 0,
            again: 0,
            coded: 0,
            next_repair: 0,
        }
    }

    /// The number of segments in a full group.
    pub(crate) fn k(&self) -> u8 {
        self.plan.as_ref().map_or(1, |choice| choice.plan.k as u8)
    }

    /// The number of its segments so far.
    pub(crate) fn sources(&self) -> u8 {
        self.sources
    }

    /// Whether no more segments join it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the receiver has enough of its packets to restore all segments.
    pub(crate) fn is_complete(&self) -> bool {
        self.closed && self.arrived.count_ones() + u32::from(self.repairs) >= u32::from(self.sources)
    }

    /// The present round, from 0.
    pub(crate) fn round(&self) -> u8 {
        self.round
    }

    /// A segment joins the group and leaves for the first time.
    pub(crate) fn grow(&mut self, now: Time) {
        self.sources += 1;
        self.out += 1;
        self.left = now;
        if self.sources >= self.k() {
            self.close();
        }
    }

    /// Closes the group to further segments. The first round's repair packets are then to be sent, fewer if the group is not full.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        if let Some(choice) = &self.plan {
            let extra = (choice.plan.first - choice.plan.k) * usize::from(self.sources);
            self.coded = extra.div_ceil(choice.plan.k) as u8;
        }
    }

    /// The next packet of this round; it counts as sent. `None` if there is none.
    pub(crate) fn next(&mut self, now: Time) -> Option<Next> {
        if self.has_more() {
            self.left = now;
        }
        if self.again > 0 {
            let at = self.again.trailing_zeros();
            self.again &= self.again - 1;
            self.out += 1;
            return Some(Next::Again(self.start.wrapping_add(at)));
        }
        if self.coded == 0 {
            return None;
        }
        self.coded -= 1;
        self.out += 1;
        let number = self.next_repair;
        // The numbers start again after the last: a repeated repair packet is no worse than a repeated segment.
        self.next_repair = (usize::from(number) + 1) as u8 % super::code::MOST_REPAIRS as u8;
        Some(Next::Repair(number))
    }

    /// Whether a packet of this round is still to be sent.
    pub(crate) fn has_more(&self) -> bool {
        self.again > 0 || self.coded > 0
    }

    /// One of its packets has arrived: a segment at this place, or a repair packet if `None`, sent in `round`. `late`: it counted as lost
    /// before.
    pub(crate) fn arrived(&mut self, segment: Option<u32>, round: u8, late: bool) {
        match segment {
            Some(at) => {
                self.arrived |= 1 << at;
                self.again &= !(1 << at);
            }
            None => self.repairs += 1,
        }
        if self.is_complete() {
            (self.again, self.coded) = (0, 0);
        }
        if !late {
            self.known(round);
        }
    }

    /// One of its packets, sent in `round`, counts as lost.
    pub(crate) fn lost(&mut self, round: u8) {
        self.known(round);
    }

    fn known(&mut self, round: u8) {
        if round == self.round {
            self.out = self.out.saturating_sub(1);
            self.go_on();
        }
    }

    /// When the next round begins although the fate of some packets of this one is not known: a lost acknowledgement must not take the
    /// time that the plan has for later rounds.
    pub(crate) fn due(&self) -> Time {
        let follows =
            self.plan.as_ref().is_some_and(|choice| usize::from(self.round) + 1 < choice.plan.rounds);
        if follows && self.closed && self.out > 0 && !self.has_more() {
            self.left + self.patience
        } else {
            Time::NEVER
        }
    }

    /// Begins the next round if it is due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if now >= self.due() {
            self.out = 0;
            self.go_on();
        }
    }

    /// Begins the next round once the fate of all packets of this round is known. After the last round missing segments are retransmitted
    /// alone until they arrive: late, but delivered.
    fn go_on(&mut self) {
        if !self.closed || self.out > 0 || self.has_more() || self.is_complete() {
            return;
        }
        self.round = self.round.saturating_add(1);
        let missing = !self.arrived & ((1 << self.sources) - 1);
        let packets = self.plan.as_ref().map_or(0, |choice| {
            // Segments that a group lacks to be full count as arrived, since both ends know them.
            let absent = self.k() - self.sources;
            let have = Have { sources: self.arrived.count_ones() as u8 + absent, repairs: self.repairs };
            choice.plan.packets(self.round.into(), have)
        });
        if packets == 0 {
            self.again = missing;
            return;
        }
        let mut left = packets as u32;
        for at in (0..u32::from(self.sources)).filter(|at| missing >> at & 1 == 1) {
            if left == 0 {
                return;
            }
            self.again |= 1 << at;
            left -= 1;
        }
        self.coded = left as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Channel, Goal, choose};
    use super::*;

    /// A full group of a plan for 10 Mbit/s, 10 ms each way and packets of 1,250 bytes, and the packets of its first round.
    fn group(per: f64, deadline: u64) -> (Group, Arc<Choice>) {
        let ms = Span::from_millis;
        let channel = Channel { per, rtt: ms(20), owd: ms(10), packet_time: ms(1), gap: Span::ZERO };
        let choice = Arc::new(choose(&channel, &Goal { deadline: ms(deadline), target: 0.995 }).unwrap());
        let mut group = Group::new(100, Some(choice.clone()), Time::ZERO, ms(20));
        (0..choice.plan.k).for_each(|_| group.grow(Time::ZERO));
        (group, choice)
    }

    fn sent(group: &mut Group) -> Vec<Next> {
        std::iter::from_fn(|| group.next(Time::ZERO)).collect()
    }

    #[test]
    fn a_group_of_one_round_sends_its_repairs_once_and_then_the_missing_segments() {
        // Nine segments and seven repair packets.
        let (mut group, choice) = group(0.2, 30);
        assert_eq!((choice.plan.k, choice.plan.first), (9, 16));
        assert_eq!(sent(&mut group), (0..7).map(Next::Repair).collect::<Vec<_>>());
        // Two segments and one repair arrive; the others are lost, one after another.
        group.arrived(Some(0), group.round, false);
        group.arrived(Some(5), group.round, false);
        group.arrived(None, group.round, false);
        (0..13).for_each(|_| group.lost(group.round));
        let missing = [1, 2, 3, 4, 6, 7, 8].map(|at| Next::Again(100 + at));
        assert_eq!(sent(&mut group), missing);
        // With six of them the group is complete.
        missing[..6].iter().for_each(|next| {
            let Next::Again(sequence) = next else { panic!("a repair packet") };
            group.arrived(Some(sequence - 100), group.round, false);
        });
        assert!(group.is_complete() && !group.has_more());
    }

    #[test]
    fn a_later_round_sends_as_many_packets_as_planned() {
        let (mut group, choice) = group(0.2, 50);
        let repairs = sent(&mut group).len();
        assert_eq!(repairs, choice.plan.first - choice.plan.k);
        // All repairs and one segment are lost.
        (0..choice.plan.k as u32 - 1).for_each(|at| group.arrived(Some(at), group.round, false));
        (0..repairs).for_each(|_| group.lost(group.round));
        assert!(!group.has_more());
        group.lost(group.round);
        let packets = choice.plan.packets(1, Have { sources: choice.plan.k as u8 - 1, repairs: 0 });
        let next = sent(&mut group);
        assert_eq!(next.len(), packets);
        assert_eq!(next[0], Next::Again(100 + choice.plan.k as u32 - 1));
    }

    #[test]
    fn a_group_that_is_not_full_sends_fewer_repairs() {
        let (full, choice) = group(0.2, 30);
        let mut group = Group { sources: 3, closed: false, coded: 0, out: 3, ..full };
        group.close();
        // Three ninths of seven.
        assert_eq!(sent(&mut group).len(), (choice.plan.first - choice.plan.k).div_ceil(3));
        (0..3).for_each(|at| group.arrived(Some(at), group.round, false));
        assert!(group.is_complete());
    }

    #[test]
    fn a_round_begins_on_time_though_an_acknowledgement_is_lost() {
        let (mut group, choice) = group(0.2, 50);
        sent(&mut group);
        // All packets but one segment are lost; nothing is heard of that one.
        (0..choice.plan.first - 1).for_each(|_| group.lost(0));
        let due = Time::ZERO + Span::from_millis(20);
        assert_eq!((group.due(), group.has_more()), (due, false));
        group.on_timer(due);
        assert!(group.has_more() && group.round == 1);
        // Later news of it does not count for the next round.
        let out = sent(&mut group).len() as u16;
        group.lost(0);
        assert_eq!((group.out, group.due()), (out, Time::NEVER));
    }

    #[test]
    fn a_late_acknowledgement_counts() {
        let (mut group, _) = group(0.0, 30);
        group.lost(group.round);
        assert!(group.has_more());
        group.arrived(Some(0), group.round, true);
        assert!(group.is_complete() && !group.has_more());
    }
}
