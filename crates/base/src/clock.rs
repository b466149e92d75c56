//! The clock of a host, as the timestamps of its segments show it (RFC 7323): its offset, its skew and the length of its tick. The
//! host's own measurements, such as the RTT, do not use this clock.

use crate::{Random, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clock that counts in ticks. It shows 1 at the start of the run if its offset is 0, since a timestamp of 0 echoes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// The clock's value at the start of the run. By default it is drawn for each connection, as Linux gives each connection an offset
    /// of its own (4.10 and later, `net.ipv4.tcp_timestamps` = 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// Skew in millionths: positive if the clock runs fast, negative if it runs slow (-100000 to 100000).
    #[schemars(range(min = -100_000, max = 100_000))]
    pub skew_ppm: i32,
    /// Length of a tick (1 us to 1 s). Linux has 1 ms since 4.13, had 4 ms before with HZ = 250, and has 1 us on a route with
    /// `tcp_usec_ts` (6.7).
    pub tick: Span,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { offset: None, skew_ppm: 0, tick: MILLISECOND }
    }
}

const MILLISECOND: Span = Span::from_millis(1);

impl Clock {
    /// The clock with an offset: the lab's, or one drawn from all values of a timestamp.
    pub fn started(self, random: &mut Random) -> Clock {
        let drawn = self.tick * random.below(1 << 32);
        Clock { offset: Some(self.offset.unwrap_or(drawn)), ..self }
    }

    /// The clock's value in ticks, which wraps at 32 bits.
    #[inline(always)]
    pub fn ticks(&self, now: Time) -> u32 {
        // Nearly every clock has these values, and division by a constant is fast.
        if self.skew_ppm == 0 && self.tick == MILLISECOND {
            let offset = self.offset.unwrap_or_default();
            return ((now.as_nanos() + offset.as_nanos()) / MILLISECOND.as_nanos() + 1) as u32;
        }
        self.ticks_of_any(now)
    }

    /// The value of a clock with any skew and any tick.
    #[inline(never)]
    fn ticks_of_any(&self, now: Time) -> u32 {
        let offset = self.offset.unwrap_or_default();
        let nanos = i128::from(now.as_nanos());
        let shown = nanos + nanos * i128::from(self.skew_ppm) / 1_000_000 + i128::from(offset.as_nanos());
        (shown / i128::from(self.tick.as_nanos().max(1)) + 1) as u32
    }

    /// The time since the clock showed `shown`, by its own count; `None` if that is in the future.
    #[inline]
    pub fn since(&self, shown: u32, now: Time) -> Option<Span> {
        let ticks = self.ticks(now).wrapping_sub(shown);
        ((ticks as i32) >= 0).then(|| self.tick * u64::from(ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_plain_clock_counts_milliseconds_from_one() {
        assert_eq!([0, 1, 2_500].map(|millis| Clock::default().ticks(at(millis))), [1, 2, 2_501]);
    }

    #[test]
    fn a_clock_has_an_offset_a_skew_and_a_tick() {
        let clock = Clock { offset: Some(Span::from_secs(10)), skew_ppm: 100, tick: Span::from_millis(4) };
        // 10 s are 2500 ticks. After 400 s the clock has gained 40 ms: ten ticks.
        assert_eq!(clock.ticks(at(0)), 2_501);
        assert_eq!(clock.ticks(at(3)), 2_501);
        assert_eq!(clock.ticks(at(400_000)), 2_501 + 100_000 + 10);
        let slow = Clock { skew_ppm: -100, ..Clock::default() };
        assert_eq!(slow.ticks(at(400_000)), 400_001 - 40);
    }

    #[test]
    fn an_offset_is_drawn_from_the_seed_where_none_is_given() {
        let random = || Random::stream(1, "clock");
        let drawn = Clock::default().started(&mut random());
        assert_eq!(drawn, Clock::default().started(&mut random()));
        assert!(drawn.ticks(at(0)) > 1);
        assert_eq!(drawn.ticks(at(2_500)), drawn.ticks(at(0)).wrapping_add(2_500));
        let given = Clock { offset: Some(Span::ZERO), ..Clock::default() };
        assert_eq!(given.started(&mut random()), given);
    }

    #[test]
    fn a_microsecond_clock_wraps_after_71_minutes_and_ages_stay_correct() {
        let clock = Clock { tick: Span::from_micros(1), ..Clock::default() };
        let before = clock.ticks(at(4_294_967));
        assert_eq!(before, 4_294_967_001);
        assert_eq!(clock.since(before, at(4_294_968)), Some(Span::from_millis(1)));
    }

    #[test]
    fn a_timestamp_in_the_future_has_no_age() {
        let clock = Clock { tick: Span::from_millis(4), ..Clock::default() };
        assert_eq!(clock.since(3, at(20)), Some(Span::from_millis(12)));
        assert_eq!(clock.since(7, at(20)), None);
    }
}
