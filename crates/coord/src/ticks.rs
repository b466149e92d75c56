//! The 24-bit clock of the probe fields (section 3.2, figure of the time format). A tick is 2^-16 s (15.26 us) and the
//! clock wraps every 256 s.
//!
//! The source describes the low byte of the UNIX seconds and the upper 16 of 32 bits of microseconds. Read literally, this
//! format has a resolution of 65 ms. Here the 16 bits are a binary fraction of a second, so differences are taken modulo 2^24.

use weir_base::{Span, Time};

/// An instant or a difference on the 24-bit clock of one AP. Clocks of two APs are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks(u32);

/// Ticks in a second.
const TICKS_PER_SECOND: u64 = 1 << 16;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
const MASK: u32 = (1 << 24) - 1;
/// Half of the clock's range: differences above it are negative.
const HALF: u32 = 1 << 23;

impl Ticks {
    /// The low 24 bits of a number.
    pub const fn new(ticks: u32) -> Ticks {
        Ticks(ticks & MASK)
    }
    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The clock at an instant, rounded down.
    pub fn at(now: Time) -> Ticks {
        let (seconds, nanos) = (now.as_nanos() / NANOS_PER_SECOND, now.as_nanos() % NANOS_PER_SECOND);
        Ticks::new((seconds * TICKS_PER_SECOND + nanos * TICKS_PER_SECOND / NANOS_PER_SECOND) as u32)
    }
    /// The length of a span, rounded to the nearest tick; `None` from 128 s on, which is the limit of a difference.
    pub fn of(span: Span) -> Option<Ticks> {
        let (seconds, nanos) = (span.as_nanos() / NANOS_PER_SECOND, span.as_nanos() % NANOS_PER_SECOND);
        let ticks = seconds.checked_mul(TICKS_PER_SECOND)?
            + (nanos * TICKS_PER_SECOND + NANOS_PER_SECOND / 2) / NANOS_PER_SECOND;
        (ticks < HALF.into()).then_some(Ticks(ticks as u32))
    }
    /// This instant or difference minus another one, modulo 2^24.
    pub const fn minus(self, other: Ticks) -> Ticks {
        Ticks::new(self.0.wrapping_sub(other.0))
    }
    /// The span of this difference; `None` if it is negative (128 s or more).
    pub fn span(self) -> Option<Span> {
        let nanos = (u64::from(self.0) * NANOS_PER_SECOND) >> 16;
        (self.0 < HALF).then(|| Span::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_65536_ticks_and_256_seconds_wrap() {
        assert_eq!(Ticks::at(Time::from_nanos(NANOS_PER_SECOND)).get(), 65_536);
        assert_eq!(Ticks::at(Time::from_nanos(256 * NANOS_PER_SECOND + NANOS_PER_SECOND / 2)).get(), 32_768);
        assert_eq!(Ticks::new(10).minus(Ticks::new(MASK)).get(), 11);
    }

    #[test]
    fn spans_keep_their_length_to_half_a_tick() {
        let span = Span::from_micros(17_200);
        let back = Ticks::of(span).unwrap().span().unwrap();
        assert!(back.as_nanos().abs_diff(span.as_nanos()) <= NANOS_PER_SECOND / TICKS_PER_SECOND / 2 + 1);
        assert_eq!(Ticks::of(Span::from_secs(128)), None);
        assert_eq!(Ticks::new(HALF).span(), None);
    }
}
