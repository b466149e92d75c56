//! The clock of a host, as the timestamps of its segments show it (RFC 7323): how far it is ahead, how fast it runs and how fine
//! it counts. What a host measures for itself, such as an RTT, is not touched by it.

use crate::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clock that counts in ticks. It shows 1 at the start of the run, unless it is ahead: 0 would be the stamp that echoes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// What it shows at the start of the run.
    pub offset: Span,
    /// By how many millionths it runs fast; negative: slow (-100000 to 100000).
    #[schemars(range(min = -100_000, max = 100_000))]
    pub skew_ppm: i32,
    /// Length of a tick (1 us to 1 s): 1 ms is Linux since 4.13, 4 ms before that with HZ = 250, 1 us a route with
    /// `tcp_usec_ts` (6.7).
    pub tick: Span,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { offset: Span::ZERO, skew_ppm: 0, tick: MILLISECOND }
    }
}

const MILLISECOND: Span = Span::from_millis(1);

impl Clock {
    /// What it shows, in ticks, counted on over the end of 32 bits.
    #[inline]
    pub fn ticks(&self, now: Time) -> u32 {
        // Nearly every clock is the plain one, and division by a constant is quick.
        if *self == Clock::default() {
            return (now.as_nanos() / MILLISECOND.as_nanos() + 1) as u32;
        }
        let nanos = i128::from(now.as_nanos());
        let shown =
            nanos + nanos * i128::from(self.skew_ppm) / 1_000_000 + i128::from(self.offset.as_nanos());
        (shown / i128::from(self.tick.as_nanos().max(1)) + 1) as u32
    }

    /// The time since it showed this, by its own count; `None` if that is yet to come.
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
    fn a_clock_is_ahead_runs_fast_and_counts_coarsely() {
        let clock = Clock { offset: Span::from_secs(10), skew_ppm: 100, tick: Span::from_millis(4) };
        // 10 s are 2500 ticks. After 400 s it has gained 40 ms: ten ticks.
        assert_eq!(clock.ticks(at(0)), 2_501);
        assert_eq!(clock.ticks(at(3)), 2_501);
        assert_eq!(clock.ticks(at(400_000)), 2_501 + 100_000 + 10);
        let slow = Clock { skew_ppm: -100, ..Clock::default() };
        assert_eq!(slow.ticks(at(400_000)), 400_001 - 40);
    }

    #[test]
    fn microseconds_wrap_after_71_minutes_and_go_on() {
        let clock = Clock { tick: Span::from_micros(1), ..Clock::default() };
        let before = clock.ticks(at(4_294_967));
        assert_eq!(before, 4_294_967_001);
        assert_eq!(clock.since(before, at(4_294_968)), Some(Span::from_millis(1)));
    }

    #[test]
    fn what_is_yet_to_come_has_no_age() {
        let clock = Clock { tick: Span::from_millis(4), ..Clock::default() };
        assert_eq!(clock.since(3, at(20)), Some(Span::from_millis(12)));
        assert_eq!(clock.since(7, at(20)), None);
    }
}
