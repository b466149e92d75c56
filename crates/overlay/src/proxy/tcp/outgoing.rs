//! What a proxy takes from its host and sends to the other proxy until it is acknowledged.
//!
//! Source: digest A 8. The buffer begins with 20 kB. Once a round trip it becomes 2 x RTT x rate where packets wait at the source, at most
//! twice what it was; elsewhere at least twice what was sent in that round trip; from 20 kB to 3 MB. Timeouts are from 1 to 60 s,
//! the first one 6 s, by RFC 6298. Losses are found by time instead of three duplicates (RFC 8985): a network that uses every path at
//! once overtakes its own packets all the time, so the study's threshold would send most packets twice.

use super::segment::{Part, Segment};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_base::{Bytes, Rate, Span, Time};

/// The buffer at first, and its largest size (digest A 8).
const FIRST: u64 = 20_000;
const LARGEST: u64 = 3_000_000;
/// Timeouts: the first one, the least and the longest (digest A 8).
const INITIAL: Span = Span::from_secs(6);
const LEAST: Span = Span::from_secs(1);
const LONGEST: Span = Span::from_secs(60);
/// Packets may be overtaken by so much of the round trip before they count as lost: at first, and after some that did not (RFC 8985,
/// section 6.2.1, without its bound of one round trip: paths may differ by more).
const OVERTAKEN: f64 = 0.25;
const MOST_OVERTAKEN: f64 = 2.0;

/// A part that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    bytes: u32,
    ends: bool,
    at: Time,
    is_repeated: bool,
}

/// One direction's sending half.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    /// The most data of a segment.
    most: u64,
    /// Bytes that the host has given, and whether it gives no more.
    taken: u64,
    ends: bool,
    /// The first position that was never sent.
    fresh: u64,
    /// All before this is acknowledged.
    acknowledged: u64,
    /// The position up to which the other side takes data.
    edge: u64,
    /// Bytes that the other side's host has acknowledged.
    pub(super) delivered: u64,
    sent: BTreeMap<u64, Sent>,
    /// Positions in the order in which they were sent; those that were acknowledged or retransmitted since are stale.
    order: VecDeque<(Time, u64)>,
    lost: BTreeSet<u64>,
    /// When the latest part that was acknowledged was sent.
    newest: Time,
    overtaken: f64,
    rtt: Option<(Span, Span)>,
    backoff: u32,
    timeout_at: Time,
    size: u64,
    round: Round,
    /// Parts that were retransmitted, and those of them that were not lost.
    pub(super) repeated: u64,
    pub(super) needless: u64,
    pub(super) timeouts: u64,
}

/// The present round trip.
#[derive(Debug, Clone, Copy)]
struct Round {
    ends: Time,
    sent: u64,
}

impl Outgoing {
    pub(super) fn new(most: Bytes, window: Bytes, now: Time) -> Outgoing {
        Outgoing {
            most: most.get().max(1),
            taken: 0,
            ends: false,
            fresh: 0,
            acknowledged: 0,
            edge: window.get(),
            delivered: 0,
            sent: BTreeMap::new(),
            order: VecDeque::new(),
            lost: BTreeSet::new(),
            newest: Time::ZERO,
            overtaken: OVERTAKEN,
            rtt: None,
            backoff: 0,
            timeout_at: Time::NEVER,
            size: FIRST,
            round: Round { ends: now + INITIAL, sent: 0 },
            repeated: 0,
            needless: 0,
            timeouts: 0,
        }
    }

    /// How many bytes it takes from the host now.
    pub(super) fn room(&self) -> Bytes {
        let held = self.taken - self.acknowledged.min(self.taken);
        Bytes::new(if self.ends { 0 } else { self.size.saturating_sub(held) })
    }

    /// The host has given bytes. It may give more than there is room for; they are kept all the same.
    pub(super) fn take(&mut self, bytes: Bytes) {
        self.taken += bytes.get();
    }

    /// The host gives no more.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// Whether all, with the end, is acknowledged, by the other host too.
    pub(super) fn is_done(&self) -> bool {
        self.ends && self.acknowledged > self.taken && self.delivered == self.taken
    }

    /// The smoothed round-trip time.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.rtt.map(|(smoothed, _)| smoothed)
    }

    /// All bytes before this position are acknowledged.
    pub(super) fn needs_from(&self) -> u64 {
        self.acknowledged.min(self.taken)
    }

    /// Bytes that wait for their first transmission.
    pub(super) fn unsent(&self) -> Bytes {
        Bytes::new(self.taken.saturating_sub(self.fresh))
    }

    /// The buffer's present size.
    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    /// Bytes that wait for their first transmission, and parts that wait for another one.
    pub(super) fn has_work(&self) -> bool {
        !self.lost.is_empty() || self.fresh_part().is_some()
    }

    /// The next part, lost ones first.
    pub(super) fn next(&mut self, now: Time) -> Option<Part> {
        if let Some(from) = self.lost.pop_first() {
            let part = self.sent.get_mut(&from)?;
            (part.at, part.is_repeated) = (now, true);
            let part = Part { from, bytes: part.bytes, ends: part.ends };
            self.repeated += 1;
            self.has_sent(part, now);
            return Some(part);
        }
        let part = self.fresh_part()?;
        self.sent.insert(part.from, Sent { bytes: part.bytes, ends: part.ends, at: now, is_repeated: false });
        self.fresh = part.to();
        self.has_sent(part, now);
        Some(part)
    }

    fn fresh_part(&self) -> Option<Part> {
        let most = self.edge.min(self.taken).saturating_sub(self.fresh).min(self.most);
        let is_last = self.ends && self.fresh + most == self.taken;
        (most > 0 || is_last).then_some(Part { from: self.fresh, bytes: most as u32, ends: is_last })
    }

    fn has_sent(&mut self, part: Part, now: Time) {
        self.order.push_back((now, part.from));
        self.round.sent += u64::from(part.bytes);
        if self.timeout_at == Time::NEVER {
            self.timeout_at = now + self.timeout();
        }
    }

    fn timeout(&self) -> Span {
        let plain = match self.rtt {
            None => INITIAL,
            Some((smoothed, variance)) => (smoothed + variance * 4).max(LEAST),
        };
        (plain * (1 << self.backoff.min(6))).min(LONGEST)
    }

    /// A segment of the other side says what has come there. The depth of the source's queue is above 0 if packets wait; `rate` is the
    /// rate of admission.
    pub(super) fn acknowledge(&mut self, segment: &Segment, waits: bool, rate: Rate, now: Time) {
        if segment.next > self.fresh {
            return;
        }
        self.delivered = self.delivered.max(segment.delivered.min(self.taken));
        self.edge = self.edge.max(segment.next.saturating_add(segment.window));
        if segment.echo != 0 {
            self.measure(Span::from_micros(u64::from(stamp(now).wrapping_sub(segment.echo))));
        }
        let mut is_new = segment.next > self.acknowledged;
        self.acknowledged = self.acknowledged.max(segment.next);
        while let Some(first) = self.sent.first_entry().filter(|first| *first.key() < segment.next) {
            let (from, part) = first.remove_entry();
            self.has_come(from, part, segment.echo);
        }
        for (from, to) in segment.ranges.iter() {
            let come: Vec<u64> = self.sent.range(from..to).map(|(from, _)| *from).collect();
            for from in come {
                if let Some(part) = self.sent.remove(&from) {
                    is_new = true;
                    self.has_come(from, part, segment.echo);
                }
            }
        }
        if is_new {
            self.backoff = 0;
            self.timeout_at = if self.sent.is_empty() { Time::NEVER } else { now + self.timeout() };
        }
        self.find_lost();
        self.resize(waits, rate, now);
    }

    fn has_come(&mut self, from: u64, part: Sent, echo: u32) {
        self.newest = self.newest.max(part.at);
        self.lost.remove(&from);
        // What answers a stamp from before its last transmission had not been lost.
        let is_older = echo != 0 && (stamp(part.at).wrapping_sub(echo) as i32) > 0;
        if part.is_repeated && is_older {
            self.needless += 1;
            self.overtaken = (2.0 * self.overtaken).min(MOST_OVERTAKEN);
        }
    }

    /// RFC 6298, section 2.
    fn measure(&mut self, rtt: Span) {
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smoothed, variance)) => {
                let error = if rtt > smoothed { rtt - smoothed } else { smoothed - rtt };
                (smoothed.scale(0.875) + rtt.scale(0.125), variance.scale(0.75) + error.scale(0.25))
            }
        });
    }

    /// Parts that were sent so long before one that has come are lost.
    fn find_lost(&mut self) {
        let Some(rtt) = self.rtt() else { return };
        let overtaken = rtt.scale(self.overtaken);
        while let Some(&(at, from)) = self.order.front() {
            let is_present = self.sent.get(&from).is_some_and(|part| part.at == at);
            if is_present && at + overtaken >= self.newest {
                return;
            }
            self.order.pop_front();
            if is_present {
                self.lost.insert(from);
            }
        }
    }

    fn resize(&mut self, waits: bool, rate: Rate, now: Time) {
        let Some(rtt) = self.rtt().filter(|_| now >= self.round.ends || self.round.sent == 0) else {
            // The first round ends when the first sample is there.
            if let Some(rtt) = self.rtt() {
                self.round.ends = self.round.ends.min(now + rtt);
            }
            return;
        };
        if self.round.sent > 0 {
            let wanted = match waits {
                true => (2 * rate.bytes_in(rtt).get()).min(2 * self.size),
                false => self.size.max(2 * self.round.sent),
            };
            self.size = wanted.clamp(FIRST, LARGEST);
        }
        self.round = Round { ends: now + rtt, sent: 0 };
    }

    /// Its time has come: all that was sent counts as lost.
    pub(super) fn on_time(&mut self, now: Time) {
        if now < self.timeout_at {
            return;
        }
        self.backoff += 1;
        self.timeouts += u64::from(!self.sent.is_empty());
        self.lost.extend(self.sent.keys());
        self.order.clear();
        self.timeout_at = if self.sent.is_empty() { Time::NEVER } else { now + self.timeout() };
    }

    /// When it is to be called again.
    pub(super) fn next_time(&self) -> Time {
        self.timeout_at
    }
}

/// A time as a stamp, in microseconds; never 0.
pub(super) fn stamp(now: Time) -> u32 {
    ((now.as_nanos() / 1000) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    /// An answer to what was sent at `sent`, with all before `next` and a range that has come.
    fn answer(next: u64, range: Option<(u64, u64)>, sent: Time) -> Segment {
        let mut segment = Segment { next, window: 1 << 30, echo: stamp(sent), ..Segment::default() };
        if let Some((from, to)) = range {
            segment.ranges.push(from, to);
        }
        segment
    }

    fn mbit(rate: u64) -> Rate {
        Rate::from_mbit_per_sec(rate)
    }

    fn outgoing(bytes: u64) -> Outgoing {
        let mut outgoing = Outgoing::new(Bytes::new(1000), Bytes::new(1 << 30), at(0));
        outgoing.take(Bytes::new(bytes));
        outgoing
    }

    #[test]
    fn the_buffer_follows_the_rate_where_packets_wait_and_what_was_sent_elsewhere() {
        let mut outgoing = outgoing(20_000);
        assert_eq!((outgoing.size().get(), outgoing.room().get()), (20_000, 0));
        while outgoing.next(at(0)).is_some() {}
        // The first sample, 100 ms, begins a round.
        outgoing.acknowledge(&answer(1000, None, at(0)), true, mbit(8), at(100));
        outgoing.take(Bytes::new(30_000));
        while outgoing.next(at(150)).is_some() {}
        // 2 x 0.1 s x 1 MB/s are 200 kB; at most twice 20 kB.
        outgoing.acknowledge(&answer(50_000, None, at(150)), true, mbit(8), at(250));
        assert_eq!(outgoing.size().get(), 40_000);
        // 60 kB were sent in a round and nothing waits: 120 kB.
        outgoing.take(Bytes::new(60_000));
        while outgoing.next(at(260)).is_some() {}
        outgoing.acknowledge(&answer(110_000, None, at(260)), false, mbit(8), at(360));
        assert_eq!(outgoing.size().get(), 120_000);
        // A low rate makes it small again, but no smaller than 20 kB.
        outgoing.take(Bytes::new(1000));
        outgoing.next(at(370));
        outgoing.acknowledge(&answer(111_000, None, at(370)), true, Rate::from_bits_per_sec(10_000), at(480));
        assert_eq!(outgoing.size().get(), 20_000);
    }

    #[test]
    fn a_part_is_lost_when_much_later_ones_have_come() {
        let mut outgoing = outgoing(10_000);
        for number in 0..10 {
            outgoing.next(at(10 * number));
        }
        // The first is missing. With a round trip of 100 ms, 25 ms later ones count.
        for number in 1..3 {
            let sent = at(10 * number);
            outgoing.acknowledge(
                &answer(0, Some((1000, 1000 + 1000 * number)), sent),
                false,
                mbit(1),
                at(100 + 10 * number),
            );
            assert!(!outgoing.has_work(), "{number}");
        }
        outgoing.acknowledge(&answer(0, Some((1000, 4000)), at(30)), false, mbit(1), at(130));
        assert_eq!(outgoing.next(at(130)), Some(Part { from: 0, bytes: 1000, ends: false }));
        // It comes by its first transmission after all: the next one may be overtaken by more.
        outgoing.acknowledge(&answer(4000, None, at(0)), false, mbit(1), at(140));
        assert_eq!((outgoing.repeated, outgoing.needless, outgoing.overtaken), (1, 1, 0.5));
    }

    #[test]
    fn timeouts_begin_with_6_s_and_double_up_to_60() {
        let mut outgoing = outgoing(500);
        outgoing.end();
        let part = Part { from: 0, bytes: 500, ends: true };
        assert_eq!(outgoing.next(at(0)), Some(part));
        let mut last = at(0);
        for seconds in [6, 12, 24, 48, 60, 60] {
            let next = outgoing.next_time();
            assert_eq!(next.since(last), Span::from_secs(seconds));
            outgoing.on_time(next);
            assert_eq!(outgoing.next(next), Some(part));
            last = next;
        }
        let now = last + Span::from_millis(50);
        outgoing.acknowledge(&answer(501, None, last), false, mbit(1), now);
        assert!(!outgoing.is_done(), "its host has nothing yet");
        outgoing.acknowledge(&Segment { delivered: 500, ..answer(501, None, last) }, false, mbit(1), now);
        assert!(outgoing.is_done());
        assert_eq!(outgoing.next_time(), Time::NEVER);
    }

    #[test]
    fn data_beyond_the_other_side_s_window_waits() {
        let mut outgoing = Outgoing::new(Bytes::new(1000), Bytes::new(1500), at(0));
        outgoing.take(Bytes::new(3000));
        assert_eq!(outgoing.next(at(0)).map(|part| part.to()), Some(1000));
        assert_eq!(outgoing.next(at(0)).map(|part| part.to()), Some(1500));
        assert_eq!(outgoing.next(at(0)), None);
        let more = Segment { next: 1500, window: 1500, echo: 1, ..Segment::default() };
        outgoing.acknowledge(&more, false, mbit(1), at(10));
        assert_eq!(outgoing.next(at(10)).map(|part| part.to()), Some(2500));
    }
}
