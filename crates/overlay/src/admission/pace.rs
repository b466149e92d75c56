//! The pace of a flow: how much credit it lacks for its next packet. Credit comes at the flow's rate, so a wait ends sooner when the rate rises.

use weir_base::{Bytes, Rate, Span, Time};

/// Longest time by which a late packet may be caught up (digest A 7.3).
pub const CATCH_UP: Span = Span::from_millis(2);

/// Credit in billionths of a bit: a rate in bit/s gives a whole number of them in each nanosecond, so nothing is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Credit(i128);

impl Credit {
    pub(crate) const ZERO: Credit = Credit(0);
    /// More than any flow is given.
    pub(crate) const MAX: Credit = Credit(i128::MAX);

    /// What a rate gives in a time.
    pub(crate) fn given(rate: Rate, time: Span) -> Credit {
        Credit(i128::from(rate.bits_per_sec()) * i128::from(time.as_nanos()))
    }
    /// What a packet takes.
    fn of(bytes: Bytes) -> Credit {
        Credit(8_000_000_000 * i128::from(bytes.get()))
    }
    pub(crate) fn plus(self, other: Credit) -> Credit {
        Credit(self.0 + other.0)
    }
    pub(crate) fn minus(self, other: Credit) -> Credit {
        Credit(self.0 - other.0)
    }
    /// When a rate will have given it, from a time on; [`Time::NEVER`] at rate zero.
    pub(crate) fn due(self, rate: Rate, from: Time) -> Time {
        let (Ok(lacks), rate) = (u128::try_from(self.0), rate.bits_per_sec()) else { return from };
        if rate == 0 {
            return if lacks == 0 { from } else { Time::NEVER };
        }
        // A packet lacks less than 64 bits can hold, which are divided faster.
        let nanos = match u64::try_from(lacks) {
            Ok(lacks) => lacks.div_ceil(rate),
            Err(_) => u64::try_from(lacks.div_ceil(rate.into())).unwrap_or(u64::MAX),
        };
        from + Span::from_nanos(nanos)
    }
}

/// The pace of one flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    rate: Rate,
    /// What the flow lacked at this time; below zero if it was late.
    lacks: Credit,
    at: Time,
}

impl Pace {
    /// A flow that lacks nothing.
    pub(super) fn new(rate: Rate, now: Time) -> Pace {
        Pace::resumed(rate, Credit::ZERO, now)
    }
    /// A flow that lacks so much now.
    pub(super) fn resumed(rate: Rate, lacks: Credit, now: Time) -> Pace {
        Pace { rate, lacks, at: now }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// What the flow lacks now.
    pub(super) fn lacks(&self, now: Time) -> Credit {
        self.lacks.minus(Credit::given(self.rate, now.since(self.at)))
    }

    /// The rate is another one from now on.
    pub(super) fn set(&mut self, rate: Rate, now: Time) {
        if rate != self.rate {
            *self = Pace::resumed(rate, self.lacks(now), now);
        }
    }

    /// When the next packet may go; [`Time::NEVER`] at rate zero.
    pub(super) fn next_time(&self) -> Time {
        if self.rate.bits_per_sec() == 0 { Time::NEVER } else { self.lacks.due(self.rate, self.at) }
    }

    /// A packet goes now.
    pub(super) fn admitted(&mut self, bytes: Bytes, now: Time) {
        let late = Credit::ZERO.minus(Credit::given(self.rate, CATCH_UP));
        *self = Pace::resumed(self.rate, self.lacks(now).max(late).plus(Credit::of(bytes)), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_exact_and_its_time_is_rounded_up() {
        let (rate, from) = (Rate::from_bits_per_sec(3), Time::from_nanos(5));
        // 8 bits at 3 bit/s take 2.67 s.
        assert_eq!(Credit::of(Bytes::new(1)).due(rate, from), Time::from_nanos(5 + 2_666_666_667));
        let rest = Credit::of(Bytes::new(1)).minus(Credit::given(rate, Span::from_secs(2)));
        assert_eq!(rest, Credit(2_000_000_000));
        assert_eq!(Credit::ZERO.minus(rest).due(rate, from), from);
        let zero = Rate::from_bits_per_sec(0);
        assert_eq!((rest.due(zero, from), Credit::ZERO.due(zero, from)), (Time::NEVER, from));
        // 2^61 bits are more billionths than 64 bits hold: at 1 Gbit/s they take 2.3e18 ns.
        let (large, fast) = (Credit::of(Bytes::new(1 << 58)), Rate::from_mbit_per_sec(1000));
        assert_eq!(large.due(fast, Time::ZERO), Time::from_nanos(1 << 61));
    }

    #[test]
    fn what_is_lacked_stays_when_the_rate_falls_to_zero() {
        let mbit = Rate::from_mbit_per_sec;
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut pace = Pace::new(mbit(8), Time::ZERO);
        pace.admitted(Bytes::new(4000), at(0));
        pace.set(mbit(0), at(1));
        assert_eq!(pace.next_time(), Time::NEVER);
        // 3 of 4 ms were left at 8 Mbit/s: 3000 bytes take 12 ms at 2 Mbit/s.
        pace.set(mbit(2), at(100));
        assert_eq!(pace.next_time(), at(112));
    }
}
