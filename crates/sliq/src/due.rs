//! Due times: when a segment of a stream with a deadline is to be delivered. A packet carries the due time and the time at which it left,
//! both by its sender's clock; their difference is the time that is left when it leaves. The receiver subtracts the one-way delay.
//!
//! The GNAT software carries the time that is left, and a repair packet one such time per segment. A due time by the sender's clock is the
//! same in each packet of a segment, so repair packets can cover it.

use super::delay::Difference;
use weir_base::{Span, Time};

/// The longest deadline. A packet with more time left is not valid.
pub(crate) const LONGEST: Span = Span::from_secs(60);
/// Segments later than this (in microseconds) are sent as late as this: clocks of 32 bits wrap after 71 minutes.
const LATEST: u32 = 1_000_000_000;

/// A time in microseconds, modulo 2^32, as packets carry it.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

/// The due time that a packet that leaves now carries, for a segment due at `due`.
pub(crate) fn on_wire(due: u32, now: Time) -> u32 {
    let now = micros(now);
    if (due.wrapping_sub(now) as i32) < -(LATEST as i32) { now.wrapping_sub(LATEST) } else { due }
}

/// Whether a packet that left at `left` may carry this due time; `None` is always valid.
pub(crate) fn is_in_range(due: Option<u32>, left: u32) -> bool {
    let longest = LONGEST.as_micros() as i32;
    due.is_none_or(|due| due.wrapping_sub(left) as i32 <= longest)
}

/// The offset of the peer's clock, as far as this end knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerClock {
    differences: Difference,
    /// The smallest round trip in microseconds that the peer has told.
    round_trip: Option<u32>,
}

impl PeerClock {
    /// A packet has arrived with this difference of arrival and sending time.
    pub(crate) fn heard(&mut self, difference: u32, now: Time) {
        self.differences.take(difference, now);
    }

    /// The peer tells the smallest round trip in microseconds.
    pub(crate) fn set_smallest_rtt(&mut self, round_trip: u32) {
        self.round_trip = Some(round_trip);
    }

    /// Converts a due time by the peer's clock to this end's clock, at which it is `now`. Half of the smallest round trip counts as the
    /// smallest delay to this end, so the error is half of the difference of the two directions' delays. `None` before the round trip is
    /// known.
    pub(crate) fn due(&self, due: u32, now: Time) -> Option<Time> {
        let offset = self.differences.smallest()?.wrapping_sub(self.round_trip? / 2);
        let to_go = due.wrapping_add(offset).wrapping_sub(micros(now)) as i32;
        let span = Span::from_micros(to_go.unsigned_abs().into());
        Some(if to_go >= 0 { now + span } else { Time::ZERO + now.since(Time::ZERO).saturating_sub(span) })
    }
}

/// The round trip that this end has told its peer, which needs it to know the one-way delay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Teller {
    told: Option<(u32, Time)>,
}

/// The round trip is told again when it has changed by more than 1/16, and at least this time after the last.
const CHANGE: u32 = 16;
const PAUSE: Span = Span::from_millis(100);

impl Teller {
    /// The round trip in microseconds to tell the peer, `None` if the peer knows it well enough; it then counts as told.
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

    /// The packet that told it is lost.
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
    fn the_peers_clock_is_estimated_with_half_the_round_trip_time() {
        // The peer's clock is 5 s ahead of ours. Its packet of 7,000 ms arrives after 10 ms, and a later one after 13 ms.
        let mut clock = PeerClock::default();
        clock.heard(2_013_000u32.wrapping_sub(7_000_000), ms(2_013));
        clock.heard(2_110_000u32.wrapping_sub(7_100_000), ms(2_110));
        assert_eq!(clock.due(7_150_000, ms(2_110)), None);
        clock.set_smallest_rtt(20_000);
        assert_eq!(clock.due(7_150_000, ms(2_110)), Some(ms(2_150)));
        assert_eq!(clock.due(7_050_000, ms(2_110)), Some(ms(2_050)));
    }

    #[test]
    fn a_deadline_more_than_a_minute_ahead_is_out_of_range_and_a_late_one_is_not() {
        assert!(is_in_range(None, 7));
        assert!(is_in_range(Some(60_000_007), 7) && !is_in_range(Some(60_000_008), 7));
        assert!(is_in_range(Some(u32::MAX), 7));
        // An hour late would wrap around; it is sent as 1,000 s late.
        let late = on_wire(5, ms(2_000_000));
        assert_eq!(late, 1_000_000_000);
        assert_eq!(on_wire(5, ms(3)), 5);
    }

    #[test]
    fn a_round_trip_time_is_reported_once_and_again_when_it_has_changed() {
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
