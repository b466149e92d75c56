//! What the preset `weir` does in overload that RFC 9332 does not: the L4S queue has a controller of its own for its drops, and
//! what the limit drops tells a controller how much too much arrives. docs/dualpi2-weir.md says why, with what each does alone.

use super::Config;
use crate::pi::Pi;
use weir_base::{Span, Time};

/// Drops begin when so large a share is needed, and end when none is: a queue of responsive traffic, whose delay passes the
/// target only in bursts, stays below it. A guess; PIE too begins to act on what it is sure of from 1 % on (RFC 8033, section 5.1).
const ONSET: f64 = 0.01;

/// A controller of drops for the L4S queue alone.
#[derive(Debug)]
pub(super) struct Separate {
    pub(super) pi: Pi,
    on: bool,
}

impl Separate {
    pub(super) fn new(config: &Config) -> Separate {
        Separate {
            pi: Pi::new(config.overload_target, config.tupdate, config.alpha, config.beta, 1.0),
            on: false,
        }
    }

    /// Whether it drops.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// What is squared for the probability of its drops.
    pub(super) fn root(&self) -> f64 {
        if self.on { self.pi.probability() } else { 0.0 }
    }

    /// Takes all steps that are due.
    pub(super) fn update(&mut self, now: Time, delay: impl Fn(Time) -> Option<Span>) {
        self.pi.update(now, delay);
        self.on = if self.on { self.pi.probability() > 0.0 } else { self.pi.squared() >= ONSET };
    }
}

/// What one of the queues loses while the limit decides, not its controller.
///
/// A full queue's delay cannot rise any more, so the controller sees a small, constant error whatever arrives, and takes seconds
/// to find a probability that the limit's own drops spell out: the share of packets lost is the share that has to be dropped.
#[derive(Debug, Default)]
pub(super) struct Losses {
    since: Option<Time>,
    /// Packets that arrived, those that were dropped for whatever reason, and those that found no room since the last update.
    pub(super) offered: u64,
    pub(super) lost: u64,
    pub(super) full: u64,
}

impl Losses {
    /// Called with each update: what p' has to be at least, once the queue has stood above its target, with drops for lack of
    /// room in every interval, for so long that responsive senders would have made room.
    pub(super) fn update(&mut self, now: Time, above_target: bool, patience: Span) -> Option<f64> {
        if !above_target || self.full == 0 {
            *self = Losses::default();
            return None;
        }
        self.full = 0;
        if now.since(*self.since.get_or_insert(now)) < patience {
            return None;
        }
        let share = self.lost as f64 / self.offered.max(1) as f64;
        *self = Losses::default();
        Some(share.min(1.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn what_is_lost_for_a_tenth_of_a_second_says_what_has_to_be_dropped() {
        // 800 arrive where 500 leave: 3/8 are lost, p' = sqrt(0.375) = 0.6124.
        let mut losses = Losses::default();
        let mut told = Vec::new();
        for update in 1..=20 {
            (losses.offered, losses.lost, losses.full) = (losses.offered + 8, losses.lost + 3, 3);
            told.extend(
                losses.update(ms(16 * update), true, Span::from_millis(100)).map(|root| (update, root)),
            );
        }
        // From 16 ms on, so first at 128 ms (112 ms later), then again after as long.
        assert_eq!(told.iter().map(|(update, _)| *update).collect::<Vec<u64>>(), [8, 16]);
        assert!(told.iter().all(|(_, root)| (root - 0.375f64.sqrt()).abs() < 1e-12), "{told:?}");
    }

    #[test]
    fn an_interval_with_room_or_below_the_target_begins_anew() {
        let mut losses = Losses::default();
        for update in 1..100 {
            (losses.offered, losses.lost) = (losses.offered + 8, losses.lost + 3);
            losses.full = u64::from(update % 6 != 0);
            let above = update % 7 != 0;
            assert_eq!(losses.update(ms(16 * update), above, Span::from_millis(100)), None, "{update}");
        }
    }

    #[test]
    fn drops_begin_when_one_percent_is_needed_and_end_when_none_is() {
        // Target 5 ms, beta 3.2, alpha 0.16. A delay of 30 ms after none is p' = 0.16 x 0.025 + 3.2 x 0.03 = 0.1, whose square is
        // 1 %; then each update without a queue takes off 0.0008, and the first one 0.096 beside.
        let config = Config::default();
        let mut separate = Separate::new(&config);
        let mut now = Time::ZERO;
        let mut step = |separate: &mut Separate, delay: u64| {
            now += Span::from_millis(16);
            separate.update(now, |_| Some(Span::from_millis(delay)));
            separate.is_on()
        };
        assert!(!step(&mut separate, 29));
        assert_eq!(separate.root(), 0.0);
        assert!(step(&mut separate, 31));
        assert!(separate.root() > 0.1);
        assert!(step(&mut separate, 1));
        let after = (0..100).take_while(|_| step(&mut separate, 0)).count();
        assert!((1..20).contains(&after), "{after}");
    }
}
