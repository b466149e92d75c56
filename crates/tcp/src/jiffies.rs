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

/// Whole jiffies, rounded up (`usecs_to_jiffies`). The sum cannot overflow, since no timer is that long; so no remainder is needed.
#[inline]
fn jiffies_of(micros: u64) -> u64 {
    const ROUND_UP: u64 = JIFFY.as_micros() - 1;
    (micros + ROUND_UP) / JIFFY.as_micros()
}

/// Whole jiffies, rounded up, as microseconds.
#[inline]
pub(crate) fn round_up(micros: u64) -> u64 {
    jiffies_of(micros) * JIFFY.as_micros()
}

/// When a timer of this length, set now, fires.
#[inline]
pub(crate) fn deadline(now: Time, micros: u64) -> Time {
    let jiffies = jiffies_of(micros);
    let expires = now.as_nanos() / JIFFY.as_nanos() + jiffies;
    // Nearly all timers are on the first level, whose unit is a jiffy.
    let fires = if jiffies < LEVEL { expires + 1 } else { on_coarser_level(expires, jiffies) };
    Time::from_nanos(fires * JIFFY.as_nanos())
}

/// The jiffy in which a timer fires that expires in `expires`, after `jiffies`, and is on a level beyond the first.
#[inline(never)]
fn on_coarser_level(expires: u64, jiffies: u64) -> u64 {
    // A unit of the level is a power of two.
    let mut shift = 0;
    while jiffies >= LEVEL << shift && shift < LEVELS * COARSER_SHIFT {
        shift += COARSER_SHIFT;
    }
    ((expires >> shift) + 1) << shift
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
