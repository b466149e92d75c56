//! The receiver's side of acknowledgements: which packets have arrived, and when to send an acknowledgement.

use super::wire::{ACK_HEADER, Ack, MOST_RANGES, RANGE};
use weir_base::{Span, Time};

/// An acknowledgement waits for a second packet at most this long (the GNAT software).
const DELAY: Span = Span::from_millis(40);
/// Number of packets that are acknowledged at once after a gap has closed (the GNAT software).
const EXTRA: u8 = 3;
/// While packets are missing, a prompt acknowledgement is repeated after this time unless another one has left: the sender's next round
/// waits for it. This is short against a round, and long enough for a burst of losses to end.
const AGAIN: Span = Span::from_millis(2);
/// Maximum number of ranges that are remembered. Packets below the lowest of them count as duplicates.
const REMEMBERED: usize = 4 * MOST_RANGES;

/// The packets that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// First and last number of each run of packets that have arrived, lowest first.
    ranges: Vec<(u64, u64)>,
    received: u32,
    /// The newest packet's difference of arrival and sending time in microseconds (modulo 2^32), and when it arrived.
    newest: (u32, Time),
    /// When an acknowledgement is due, `None` if no packet waits for one; and how many packets wait.
    due: Option<Time>,
    waiting: u8,
    extra: u8,
    /// Whether the next acknowledgement is to be repeated.
    repeat: bool,
    ride: Ride,
}

/// How an acknowledgement that is due leaves. It takes 49 bytes less where it rides on a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Ride {
    /// On a data packet, if one leaves now.
    #[default]
    Now,
    /// On a data packet that the pacer lets go when it is due now: it was put off.
    Later,
    /// In a packet of its own.
    Alone,
}

impl Acks {
    /// The highest number that has arrived.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.last().map(|(_, last)| *last)
    }

    /// Records a packet that has arrived, with its difference of arrival and sending time. Returns `false` for a duplicate, and for a
    /// packet too old to tell whether it is one.
    pub(crate) fn take(&mut self, number: u64, difference: u32, now: Time) -> bool {
        // Nearly always the number follows the highest one, or is above it with a gap.
        let at = self.ranges.partition_point(|(_, last)| *last < number);
        if self.ranges.get(at).is_some_and(|(first, _)| *first <= number) {
            return false;
        }
        if at == 0 && self.ranges.len() >= REMEMBERED {
            return false;
        }
        let joins_before = at > 0 && self.ranges[at - 1].1 + 1 == number;
        let joins_after = self.ranges.get(at).is_some_and(|(first, _)| number + 1 == *first);
        match (joins_before, joins_after) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
                self.extra = EXTRA;
            }
            (true, false) => self.ranges[at - 1].1 = number,
            (false, true) => self.ranges[at].0 = number,
            (false, false) => self.ranges.insert(at, (number, number)),
        }
        if self.ranges.len() > REMEMBERED {
            self.ranges.remove(0);
        }
        self.received = self.received.wrapping_add(1);
        self.newest = (difference, now);
        true
    }

    /// The packet that arrived last is to be acknowledged, at once if `prompt`.
    pub(crate) fn ask(&mut self, prompt: bool, now: Time) {
        self.waiting = self.waiting.saturating_add(1);
        self.repeat |= prompt && self.ranges.len() > 1;
        let at_once = prompt || self.waiting >= 2 || self.extra > 0;
        self.extra = self.extra.saturating_sub(1);
        let due = if at_once { now } else { now + DELAY };
        // One that was put off waits for its data packet.
        if self.ride != Ride::Later || self.due.is_none() {
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
        }
    }

    /// Whether an acknowledgement is due that may ride on a data packet.
    pub(crate) fn may_ride(&self, now: Time) -> bool {
        self.due() <= now && self.ride != Ride::Alone
    }

    /// Whether a data packet that leaves now takes an acknowledgement along: one that is due, or that was put off.
    pub(crate) fn rides(&self, now: Time) -> bool {
        self.may_ride(now) || self.due.is_some() && self.ride == Ride::Later
    }

    /// The next data packet leaves at this time: the acknowledgement waits for it, but only once.
    pub(crate) fn put_off(&mut self, until: Time) {
        match self.ride {
            Ride::Now => (self.due, self.ride) = (Some(until), Ride::Later),
            Ride::Later | Ride::Alone => self.ride = Ride::Alone,
        }
    }

    /// No data packet takes the acknowledgement.
    pub(crate) fn go_alone(&mut self) {
        self.ride = Ride::Alone;
    }

    /// Bytes of the next acknowledgement's frame at most.
    pub(crate) fn most_bytes(&self) -> u32 {
        (ACK_HEADER + RANGE * self.ranges.len().min(MOST_RANGES)) as u32
    }

    /// When an acknowledgement is due.
    pub(crate) fn due(&self) -> Time {
        self.due.unwrap_or(Time::NEVER)
    }

    /// The acknowledgement, which leaves now; `None` before any packet has arrived.
    pub(crate) fn tell(&mut self, now: Time) -> Option<Ack> {
        let (_, largest) = *self.ranges.last()?;
        self.due = std::mem::take(&mut self.repeat).then(|| now + AGAIN);
        (self.waiting, self.ride) = (0, Ride::Now);
        let (difference, at) = self.newest;
        let waited = now.since(at).as_micros().min(u16::MAX.into()) as u16;
        let mut ack = Ack::new(largest as u32, self.received, difference, waited);
        let mut next = 0;
        for (at, (first, last)) in self.ranges.iter().rev().enumerate() {
            let Ok(before) = u16::try_from(last - first) else {
                // The rest of a run longer than a range can express was acknowledged before, and so were the ranges below it.
                match at {
                    0 => ack.set_first(u16::MAX),
                    _ => drop(ack.push((next - last - 1).min(u16::MAX.into()) as u16, u16::MAX)),
                }
                break;
            };
            if at == 0 {
                ack.set_first(before);
            } else {
                let Ok(missing) = u16::try_from(next - last - 1) else { break };
                if !ack.push(missing, before) {
                    break;
                }
            }
            next = *first;
        }
        Some(ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn taken(acks: &mut Acks) -> Vec<(u32, u32)> {
        let ack = acks.tell(Time::ZERO).unwrap();
        ack.ranges().map(|(high, low)| (ack.largest - high, ack.largest - low)).collect()
    }

    #[test]
    fn ranges_grow_merge_and_are_acknowledged_highest_first() {
        let mut acks = Acks::default();
        for number in [0, 1, 2, 5, 9, 8, 4] {
            assert!(acks.take(number, 0, Time::ZERO));
        }
        assert_eq!(taken(&mut acks), [(9, 8), (5, 4), (2, 0)]);
        assert!(!acks.take(5, 0, Time::ZERO));
        assert!(acks.take(3, 0, Time::ZERO));
        assert_eq!(taken(&mut acks), [(9, 8), (5, 0)]);
        assert_eq!(acks.tell(Time::ZERO).unwrap().received, 8);
    }

    #[test]
    fn each_second_packet_is_acknowledged_or_one_after_40_ms() {
        let mut acks = Acks::default();
        acks.take(0, 0, ms(0));
        acks.ask(false, ms(0));
        assert_eq!(acks.due(), ms(40));
        acks.take(1, 0, ms(1));
        acks.ask(false, ms(1));
        assert_eq!(acks.due(), ms(1));
        acks.tell(ms(1));
        assert_eq!(acks.due(), Time::NEVER);
        acks.take(2, 0, ms(2));
        acks.ask(true, ms(2));
        assert_eq!(acks.due(), ms(2));
    }

    #[test]
    fn an_awaited_acknowledgement_is_repeated_once_where_packets_are_lost() {
        let mut acks = Acks::default();
        acks.take(0, 0, ms(0));
        acks.ask(true, ms(0));
        acks.tell(ms(0));
        assert_eq!(acks.due(), Time::NEVER);
        acks.take(2, 0, ms(1));
        acks.ask(true, ms(1));
        let first = acks.tell(ms(1)).unwrap();
        assert_eq!(acks.due(), ms(3));
        let second = acks.tell(ms(3)).unwrap();
        assert_eq!((second.largest, second.delay), (first.largest, 2000));
        assert_eq!(acks.due(), Time::NEVER);
    }

    #[test]
    fn three_packets_are_acknowledged_at_once_after_a_gap_closes() {
        let mut acks = Acks::default();
        for number in [0, 2, 1] {
            acks.take(number, 0, ms(0));
        }
        for at in 0..4 {
            acks.ask(false, ms(at));
            assert_eq!(acks.due(), if at < 3 { ms(at) } else { ms(43) });
            acks.tell(ms(at));
        }
    }

    #[test]
    fn an_acknowledgement_that_is_due_is_put_off_once_for_a_data_packet() {
        let mut acks = Acks::default();
        for number in [0, 1] {
            acks.take(number, 0, ms(0));
            acks.ask(false, ms(0));
        }
        assert!(acks.may_ride(ms(0)));
        acks.put_off(ms(3));
        acks.take(2, 0, ms(1));
        acks.ask(true, ms(1));
        assert_eq!(acks.due(), ms(3));
        assert!(!acks.may_ride(ms(1)) && acks.rides(ms(1)));
        assert!(acks.may_ride(ms(3)));
        acks.put_off(ms(6));
        assert_eq!((acks.due(), acks.may_ride(ms(3))), (ms(3), false));
        acks.tell(ms(3));
        assert_eq!(acks.due(), Time::NEVER);
    }

    #[test]
    fn any_number_of_packets_may_wait_for_one_acknowledgement() {
        let mut acks = Acks::default();
        for number in 0..1000 {
            acks.take(number, 0, ms(0));
            acks.ask(false, ms(0));
        }
        assert_eq!(taken(&mut acks), [(999, 0)]);
    }

    #[test]
    fn the_remembered_ranges_are_bounded_and_older_packets_count_as_received() {
        let mut acks = Acks::default();
        for number in 0..1000 {
            assert!(acks.take(2 * number, 0, Time::ZERO));
        }
        assert_eq!(acks.ranges.len(), REMEMBERED);
        assert!(!acks.take(1, 0, Time::ZERO));
        assert_eq!(taken(&mut acks).len(), MOST_RANGES);
    }
}
