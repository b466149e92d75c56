//! How much of a core the pump may use: never more than 90 % in any 100 ms. The kernel stops a real-time thread that uses 95 %
//! of a second for the rest of that second (`sched_rt_runtime_us`), and a thread that never sleeps starves the hosts that it
//! feeds. So the pump first gives up spinning, then sleeps although packets are due.

use weir_base::{Span, Time};

/// The window over which use is counted.
const WINDOW: Span = Span::from_millis(100);
/// Slots of the window. The oldest slot is counted whole, so the count is never below the true use.
const SLOTS: usize = 20;
/// Length of a slot.
const SLOT: Span = Span::from_millis(5);
/// Used time from which the pump no longer spins: spinning before many releases a second would use a core up to gain
/// microseconds.
const NO_SPIN: Span = Span::from_millis(60);
/// Used time from which releases are gathered: sleeping and waking for each would cost more than the work itself.
const GATHER: Span = Span::from_millis(72);
/// How long they are gathered, from the first on.
const GATHERING: Span = Span::from_micros(80);
/// Releases in a window from which they are gathered, whatever was used: one in 40 us, as full packets are at 300 Mbit/s. Waiting for each
/// would use the whole allowance, which the programs at the hosts need for such a load.
const DENSE: u64 = 2500;
/// How long these are gathered. At 917 Mbit/s of full packets, gathering for 20, 30, 40, 60 and 80 us took 0.52, 0.50, 0.46, 0.45 and 0.42
/// of a core, and half of the packets were at most 39, 55, 65, 96 and 119 us late (2026-11-29, two cores that compiled meanwhile).
const DENSE_GATHERING: Span = Span::from_micros(40);
/// Used time from which the pump sleeps, whatever is due: 3 ms below the bound, so that the last turn of work fits in.
const MUST_SLEEP: Span = Span::from_millis(87);

/// Counts the processor time that the pump uses, including the kernel's time to put it to sleep and wake it up.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Time used in each slot, at the slot's number modulo the length: one slot more than the window has.
    slots: [Span; SLOTS + 1],
    /// Packets released in each slot, and all together.
    releases: [u64; SLOTS + 1],
    released: u64,
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
    /// Sleeping so much longer that several releases are done together.
    Gather(Span),
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
        // The oldest slot began more than a window ago; the others together are a window at most.
        let oldest = self.slots[(slot as usize + 1) % (SLOTS + 1)];
        self.peak = self.peak.max(self.sum.saturating_sub(oldest));
    }

    /// Counts packets that were released in the stretch that ends now.
    pub(crate) fn released(&mut self, packets: u64, now: Time) {
        let slot = now.as_nanos() / SLOT.as_nanos();
        self.advance(slot);
        self.releases[slot as usize % (SLOTS + 1)] += packets;
        self.released += packets;
    }

    /// What is allowed now.
    pub(crate) fn allowance(&mut self, now: Time) -> Allowance {
        self.advance(now.as_nanos() / SLOT.as_nanos());
        match self.sum {
            sum if sum >= MUST_SLEEP => Allowance::Sleep,
            sum if sum >= GATHER => Allowance::Gather(GATHERING),
            _ if self.released >= DENSE => Allowance::Gather(DENSE_GATHERING),
            sum if sum >= NO_SPIN => Allowance::Work,
            _ => Allowance::Spin,
        }
    }

    /// The highest use of any window, as a share of a core.
    pub(crate) fn peak(&self) -> f64 {
        self.peak.as_secs_f64() / WINDOW.as_secs_f64()
    }

    /// Forgets what has left the window when `slot` is the newest.
    fn advance(&mut self, slot: u64) {
        let steps = slot.saturating_sub(self.newest).min(SLOTS as u64 + 1);
        for step in 0..steps {
            let at = (slot - step) as usize % (SLOTS + 1);
            self.sum -= std::mem::take(&mut self.slots[at]);
            self.released -= std::mem::take(&mut self.releases[at]);
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
    fn a_thread_that_never_sleeps_must_sleep_within_ninety_milliseconds() {
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
    fn sleep_restores_the_allowance() {
        let mut budget = Budget::default();
        (1..=88).for_each(|at| budget.used(Span::from_millis(1), ms(at)));
        assert_eq!(budget.allowance(ms(88)), Allowance::Sleep);
        assert_eq!(budget.allowance(ms(111)), Allowance::Gather(GATHERING));
        assert_eq!(budget.allowance(ms(126)), Allowance::Work);
        assert_eq!(budget.allowance(ms(151)), Allowance::Spin);
        assert_eq!(budget.allowance(ms(1000)), Allowance::Spin);
    }

    #[test]
    fn dense_releases_are_gathered_whatever_was_used() {
        let mut budget = Budget::default();
        (1..=100).for_each(|at| budget.released(24, ms(at)));
        assert_eq!(budget.allowance(ms(100)), Allowance::Spin);
        (101..=200).for_each(|at| budget.released(26, ms(at)));
        assert_eq!(budget.allowance(ms(200)), Allowance::Gather(DENSE_GATHERING));
        budget.used(Span::from_millis(88), ms(200));
        assert_eq!(budget.allowance(ms(200)), Allowance::Sleep);
        assert_eq!(budget.allowance(ms(400)), Allowance::Spin);
    }
}
