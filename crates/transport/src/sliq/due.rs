//! Time to go: by when a segment of a stream with a deadline is to be delivered. Packets carry that by their sender's clock, beside the time at
//! which they left; what is between the two is the time to go that waiting at the sender has left. The receiver takes off the way (one-way delay).
//!
//! The GNAT software carries the time that is left, and a repair packet one for each of its segments. As a time by the sender's clock it is the
//! same in each packet of a segment, and stands in what repair packets are made of.

use super::delay::Difference;
use weir_base::{Span, Time};

/// The longest deadline. A packet with more to go is none.
pub(crate) const LONGEST: Span = Span::from_secs(60);
/// What is later than this is told to be as late as this: clocks of 32 bits wrap round after 71 minutes.
const LATEST: u32 = 1_000_000_000;

/// A clock's microseconds, as packets carry them.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

/// What a packet that leaves now tells of a segment that is due then.
pub(crate) fn told(due: u32, now: Time) -> u32 {
    let now = micros(now);
    if (due.wrapping_sub(now) as i32) < -(LATEST as i32) { now.wrapping_sub(LATEST) } else { due }
}

/// Whether a packet that left then may tell so.
pub(crate) fn is_in_range(due: Option<u32>, left: u32) -> bool {
    let longest = LONGEST.as_micros() as i32;
    due.is_none_or(|due| due.wrapping_sub(left) as i32 <= longest)
}

/// The peer's clock, as far as it is known at this end.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerClock {
    differences: Difference,
    /// The smallest round trip, as the peer tells.
    round_trip: Option<u32>,
}

impl PeerClock {
    /// A packet has arrived with this difference of arrival and sending.
    pub(crate) fn heard(&mut self, difference: u32, now: Time) {
        self.differences.take(difference, now);
    }

    /// The peer tells the smallest round trip in microseconds.
    pub(crate) fn told(&mut self, round_trip: u32) {
        self.round_trip = Some(round_trip);
    }

    /// What is due then by the peer's clock, by ours, of which it is now this time. Half of the smallest round trip is taken for the smallest
    /// delay of the way here, so it is wrong by as much as the ways differ, halved. `None` before the round trip is known.
    pub(crate) fn due(&self, due: u32, now: Time) -> Option<Time> {
        let offset = self.differences.smallest()?.wrapping_sub(self.round_trip? / 2);
        let to_go = due.wrapping_add(offset).wrapping_sub(micros(now)) as i32;
        let span = Span::from_micros(to_go.unsigned_abs().into());
        Some(if to_go >= 0 { now + span } else { Time::ZERO + now.since(Time::ZERO).saturating_sub(span) })
    }
}

/// What this end tells of its round trip, for its peer to know how long the way there is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Teller {
    told: Option<(u32, Time)>,
}

/// It is told again when it has changed by more than this part of it, and not sooner than this after the last time.
const CHANGE: u32 = 16;
const PAUSE: Span = Span::from_millis(100);

impl Teller {
    /// What is to be told of a smallest round trip of so much, if anything; it counts as told.
    pub(crate) fn tell(&mut self, round_trip: Span, now: Time) -> Option<u32> {
        let round_trip = round_trip.as_micros() as u32;
        let due = self.told.is_none_or(|(before, at)| {
            round_trip.abs_diff(before) > before / CHANGE && now.since(at) >= PAUSE
        });
        due.then(|| {
            self.told = Some((round_trip, now));
            round_trip
        })
    }

    /// What was told is lost.
    pub(crate) fn tell_again(&mut self) {
        self.told = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_peers_time_is_found_by_half_of_the_round_trip() {
        // The peer's clock is 5 s ahead of ours. A packet that it sent at 7,000 ms has come after 10 ms, another one after 13 ms.
        let mut clock = PeerClock::default();
        clock.heard(2_013_000u32.wrapping_sub(7_000_000), ms(2_013));
        clock.heard(2_110_000u32.wrapping_sub(7_100_000), ms(2_110));
        assert_eq!(clock.due(7_150_000, ms(2_110)), None);
        clock.told(20_000);
        assert_eq!(clock.due(7_150_000, ms(2_110)), Some(ms(2_150)));
        assert_eq!(clock.due(7_050_000, ms(2_110)), Some(ms(2_050)));
    }

    #[test]
    fn what_has_more_to_go_than_a_minute_is_out_of_range_and_what_is_late_is_not() {
        assert!(is_in_range(None, 7));
        assert!(is_in_range(Some(60_000_007), 7) && !is_in_range(Some(60_000_008), 7));
        assert!(is_in_range(Some(u32::MAX), 7));
        // An hour late wraps round, and is told as 1,000 s.
        let late = told(5, ms(2_000_000));
        assert_eq!(late, 1_000_000_000);
        assert_eq!(told(5, ms(3)), 5);
    }

    #[test]
    fn a_round_trip_is_told_once_and_again_when_it_has_changed() {
        let mut teller = Teller::default();
        let us = Span::from_micros;
        assert_eq!(teller.tell(us(16_000), ms(0)), Some(16_000));
        assert_eq!(teller.tell(us(17_000), ms(500)), None);
        assert_eq!(teller.tell(us(18_000), ms(99)), None);
        assert_eq!(teller.tell(us(18_000), ms(100)), Some(18_000));
        teller.tell_again();
        assert_eq!(teller.tell(us(18_000), ms(100)), Some(18_000));
    }
}
