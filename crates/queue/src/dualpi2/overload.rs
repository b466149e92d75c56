//! Additions of the preset `weir` to RFC 9332 for overload: the L4S queue has a controller of its own for its drops, and the drops
//! of the limit tell a controller how large the excess is. docs/dualpi2-weir.md gives the reasons and the effect of each alone.

use super::Config;
use crate::pi::Pi;
use weir_base::{Span, Time};

/// Drop probability at which drops begin; they end at zero. A queue of responsive traffic, whose delay is above the target only in
/// bursts, stays below it. The value is a guess.
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

    /// Whether the controller drops packets.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// The square root of the drop probability; zero while the controller does not drop.
    pub(super) fn root(&self) -> f64 {
        if self.on { self.pi.probability() } else { 0.0 }
    }

    /// Takes all steps that are due.
    pub(super) fn update(&mut self, now: Time, delay: impl Fn(Time) -> Option<Span>) {
        self.pi.update(now, delay);
        self.on = if self.on { self.pi.probability() > 0.0 } else { self.pi.squared() >= ONSET };
    }
}

/// Packets that one of the queues loses while the limit, not the controller, drops them.
///
/// The delay of a full queue cannot rise any further, so the controller sees a small, constant error for any load, and takes
/// seconds to find the probability. The limit's drops show it directly: the lost share of the packets is the share to drop.
#[derive(Debug, Default)]
pub(super) struct Losses {
    since: Option<Time>,
    /// Packets that arrived, packets dropped for any reason, and packets that found no room (these since the last update).
    pub(super) offered: u64,
    pub(super) lost: u64,
    pub(super) full: u64,
}

impl Losses {
    /// Called at each update: the smallest p' that the losses require, or `None`. There is one once the queue has been above its
    /// target for `patience`, in which responsive senders would have slowed down, with drops for lack of room in every interval.
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
    fn the_loss_ratio_over_a_tenth_of_a_second_gives_the_base_probability() {
        // 800 arrive where 500 leave: 3/8 are lost, p' = sqrt(0.375) = 0.6124.
        let mut losses = Losses::default();
        let mut told = Vec::new();
        for update in 1..=20 {
            (losses.offered, losses.lost, losses.full) = (losses.offered + 8, losses.lost + 3, 3);
            told.extend(
                losses.update(ms(16 * update), true, Span::from_millis(100)).map(|root| (update, root)),
            );
        }
        // Losses begin at 16 ms, so the first result is at 128 ms (112 ms later), and the next after the same time.
        assert_eq!(told.iter().map(|(update, _)| *update).collect::<Vec<u64>>(), [8, 16]);
        assert!(told.iter().all(|(_, root)| (root - 0.375f64.sqrt()).abs() < 1e-12), "{told:?}");
    }

    #[test]
    fn a_measurement_restarts_when_the_queue_has_room_or_the_delay_is_below_the_target() {
        let mut losses = Losses::default();
        for update in 1..100 {
            (losses.offered, losses.lost) = (losses.offered + 8, losses.lost + 3);
            losses.full = u64::from(update % 6 != 0);
            let above = update % 7 != 0;
            assert_eq!(losses.update(ms(16 * update), above, Span::from_millis(100)), None, "{update}");
        }
    }

    #[test]
    fn drops_begin_at_a_probability_of_one_percent_and_end_at_zero() {
        // Target 5 ms, beta 3.2, alpha 0.16. A delay of 30 ms after zero gives p' = 0.16 x 0.025 + 3.2 x 0.03 = 0.1, whose square is
        // 1 %. Each later update without a queue subtracts 0.0008, the first of them 0.096 in addition.
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
