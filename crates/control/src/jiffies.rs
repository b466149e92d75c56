//! The kernel's coarse clock, which some controllers use: ticks of `HZ` = 250 from the start of the run, or of another `HZ` that a
//! controller gives.

use weir_base::{Span, Time};

/// Ticks per second, as in the kernels of Debian and Ubuntu LTS.
pub(crate) const HZ: u64 = 250;
const SECOND_MICROS: u64 = 1_000_000;

/// A time in ticks (Linux `tcp_jiffies32`).
pub(crate) fn ticks(now: Time) -> u64 {
    ticks_at(HZ, now)
}
/// A time in ticks of `hz` per second.
pub(crate) fn ticks_at(hz: u64, now: Time) -> u64 {
    now.since(Time::ZERO).as_micros().saturating_mul(hz) / SECOND_MICROS
}

/// A span in ticks, rounded up (Linux `usecs_to_jiffies`).
pub(crate) fn ticks_of(span: Span) -> u64 {
    ticks_of_at(HZ, span)
}
/// A span in ticks of `hz` per second, rounded up.
pub(crate) fn ticks_of_at(hz: u64, span: Span) -> u64 {
    span.as_micros().saturating_mul(hz).div_ceil(SECOND_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_up_to_ticks_and_times_down() {
        assert_eq!(ticks_of(Span::from_millis(10)), 3);
        assert_eq!(ticks_of(Span::from_millis(20)), 5);
        assert_eq!(ticks(Time::ZERO + Span::from_millis(10)), 2);
        assert_eq!(ticks_of_at(1000, Span::from_micros(10_001)), 11);
        assert_eq!(ticks_at(1000, Time::ZERO + Span::from_micros(10_999)), 10);
    }
}
