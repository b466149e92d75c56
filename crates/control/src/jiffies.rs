//! The kernel's coarse clock, in which some controllers count: ticks of `HZ` = 250 from the start of the run.

use weir_base::{Span, Time};

/// Ticks per second; the kernels of Debian and Ubuntu LTS are built so.
pub(crate) const HZ: u64 = 250;
/// Microseconds of a tick.
const TICK_MICROS: u64 = 1_000_000 / HZ;

/// The clock (Linux `tcp_jiffies32`).
pub(crate) fn ticks(now: Time) -> u64 {
    now.as_nanos() / (TICK_MICROS * 1_000)
}

/// A span in ticks, rounded up (Linux `usecs_to_jiffies`).
pub(crate) fn ticks_of(span: Span) -> u64 {
    span.as_micros().div_ceil(TICK_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_milliseconds_are_three_ticks_of_four() {
        assert_eq!(ticks_of(Span::from_millis(10)), 3);
        assert_eq!(ticks_of(Span::from_millis(20)), 5);
        assert_eq!(ticks(Time::ZERO + Span::from_millis(10)), 2);
    }
}
