//! The kernel's coarse clock. Timeouts are whole jiffies (4 ms at HZ=250), rounded up, and the timer wheel
//! (`kernel/time/timer.c`, `calc_index`) never fires early: it adds one unit of the level that holds the timer. A timeout
//! of 200 ms therefore comes after 200 to 204 ms, one of a second after 1 to 1.032 s. The tick is in phase with the
//! run's clock.

use weir_base::{Span, Time};

/// Length of a jiffy at HZ=250.
pub(crate) const JIFFY: Span = Span::from_millis(4);
/// Entries of a wheel level minus one: the longest delay that it holds, in its own units.
const LEVEL: u64 = 63;
/// Each level is eight times coarser than the one before (`LVL_CLK_SHIFT`).
const COARSER_SHIFT: u32 = 3;
/// Levels beyond the first.
const LEVELS: u32 = 8;

/// Whole jiffies, rounded up (`usecs_to_jiffies`), as microseconds.
pub(crate) fn round_up(micros: u64) -> u64 {
    micros.div_ceil(JIFFY.as_micros()) * JIFFY.as_micros()
}

/// When a timer of this length, set now, fires.
pub(crate) fn deadline(now: Time, micros: u64) -> Time {
    let jiffies = micros.div_ceil(JIFFY.as_micros());
    if jiffies < LEVEL {
        return Time::from_nanos((now.as_nanos() / JIFFY.as_nanos() + jiffies + 1) * JIFFY.as_nanos());
    }
    // A unit of the level is a power of two.
    let mut shift = 0;
    while jiffies >= LEVEL << shift && shift < LEVELS * COARSER_SHIFT {
        shift += COARSER_SHIFT;
    }
    let expires = now.as_nanos() / JIFFY.as_nanos() + jiffies;
    Time::from_nanos((((expires >> shift) + 1) << shift) * JIFFY.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_timer_fires_up_to_one_jiffy_late() {
        assert_eq!(deadline(Time::ZERO, 40_000), Time::ZERO + Span::from_millis(44));
        assert_eq!(deadline(Time::from_nanos(3_999_999), 40_000), Time::ZERO + Span::from_millis(44));
    }

    #[test]
    fn a_timer_of_a_second_fires_on_multiples_of_eight_jiffies() {
        assert_eq!(deadline(Time::ZERO, 1_000_000), Time::ZERO + Span::from_millis(1_024));
    }
}
