//! How much of a core the pump may use: never more than 90 % in any 100 ms. The kernel stops a real-time thread that uses
//! 95 % of a second for the rest of it (`sched_rt_runtime_us`), and a thread that never sleeps starves the hosts that it
//! feeds. So the pump first gives up spinning, then sleeps although packets are due.

use weir_base::{Span, Time};

/// The stretch of time that is looked at.
const WINDOW: Span = Span::from_millis(100);
/// Parts that it is divided into; the oldest is counted whole, so the truth is never above what is counted.
const SLOTS: usize = 20;
/// Length of a part.
const SLOT: Span = Span::from_millis(5);
/// From here on no spinning: many releases a second, each spun for, would use a core up for microseconds of punctuality.
const NO_SPIN: Span = Span::from_millis(60);
/// From here on releases are gathered: sleeping and waking for each would cost more than the work itself.
const GATHER: Span = Span::from_millis(72);
/// From here on sleep, whatever is due: 3 ms below the bound, so that the last turn of work fits in.
const MUST_SLEEP: Span = Span::from_millis(87);

/// Counts the processor time that the pump uses, what the kernel needs to put it to sleep and to wake it up included.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Time used in each slot; the slot of a time is its number modulo the length. One more than the window has.
    slots: [Span; SLOTS + 1],
    /// Number of the newest slot.
    newest: u64,
    sum: Span,
    peak: Span,
}

/// What the budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// Spinning before a release.
    Spin,
    /// Sleeping until each release, but no spinning.
    Work,
    /// Sleeping a little longer, so that several releases are done together.
    Gather,
    /// Nothing: sleep first.
    Sleep,
}

impl Budget {
    /// Counts processor time that was used in the stretch that ends now. Times do not go back.
    pub(crate) fn used(&mut self, span: Span, now: Time) {
        let slot = now.as_nanos() / SLOT.as_nanos();
        self.advance(slot);
        self.slots[slot as usize % (SLOTS + 1)] += span;
        self.sum += span;
        // The oldest slot is more than a window ago at its beginning; without it the rest is a window at most.
        let oldest = self.slots[(slot as usize + 1) % (SLOTS + 1)];
        self.peak = self.peak.max(self.sum.saturating_sub(oldest));
    }

    /// What is allowed now.
    pub(crate) fn allowance(&mut self, now: Time) -> Allowance {
        self.advance(now.as_nanos() / SLOT.as_nanos());
        match self.sum {
            sum if sum >= MUST_SLEEP => Allowance::Sleep,
            sum if sum >= GATHER => Allowance::Gather,
            sum if sum >= NO_SPIN => Allowance::Work,
            _ => Allowance::Spin,
        }
    }

    /// The busiest that any window was, as a share of a core.
    pub(crate) fn peak(&self) -> f64 {
        self.peak.as_secs_f64() / WINDOW.as_secs_f64()
    }

    /// Forgets what has left the window when `slot` is the newest.
    fn advance(&mut self, slot: u64) {
        let steps = slot.saturating_sub(self.newest).min(SLOTS as u64 + 1);
        for step in 0..steps {
            let old = &mut self.slots[(slot - step) as usize % (SLOTS + 1)];
            self.sum -= *old;
            *old = Span::ZERO;
        }
        self.newest = self.newest.max(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_thread_that_never_rests_is_told_to_within_ninety_milliseconds() {
        let mut budget = Budget::default();
        let mut now = ms(1000);
        while budget.allowance(now) != Allowance::Sleep {
            now += Span::from_micros(100);
            budget.used(Span::from_micros(100), now);
        }
        assert!(now <= ms(1090), "{now}");
        assert!(budget.peak() <= 0.9, "{}", budget.peak());
    }

    #[test]
    fn rest_brings_the_allowance_back() {
        let mut budget = Budget::default();
        (1..=88).for_each(|at| budget.used(Span::from_millis(1), ms(at)));
        assert_eq!(budget.allowance(ms(88)), Allowance::Sleep);
        assert_eq!(budget.allowance(ms(111)), Allowance::Gather);
        assert_eq!(budget.allowance(ms(126)), Allowance::Work);
        assert_eq!(budget.allowance(ms(151)), Allowance::Spin);
        assert_eq!(budget.allowance(ms(1000)), Allowance::Spin);
    }
}
