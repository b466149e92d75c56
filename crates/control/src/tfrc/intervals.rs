//! The loss event rate (RFC 5348, sections 5.2 to 5.5): the inverse of a weighted mean of the last eight loss intervals and the
//! open one. Losses within a round trip of the first one are one loss event. While the open interval is more than twice the
//! mean, older ones lose weight (history discounting).

use weir_base::{Span, Time};

/// Number of closed loss intervals in the mean.
const INTERVALS: usize = 8;
/// Weights of the intervals, newest first (RFC 5348, section 5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Smallest discount factor of an old interval (RFC 5348, section 5.5).
const LEAST_DISCOUNT: f64 = 0.5;

/// A history of loss intervals, in packets.
#[derive(Debug, Clone)]
pub struct LossIntervals {
    discounting: bool,
    /// Start of the open interval: number and time of the loss that began the last loss event; `None` before the first.
    open: Option<(u64, Time)>,
    /// The latest number that arrived or was lost.
    latest: u64,
    /// Closed intervals, newest first, and the factors by which discounting has reduced their weights.
    intervals: [f64; INTERVALS],
    discounts: [f64; INTERVALS],
    closed: usize,
    /// Sums over the closed intervals, which change only at a loss event.
    sums: Sums,
}

/// Weighted sums of closed intervals and sums of the weights: with the open interval as the newest, and without it.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    behind_open: (f64, f64),
    alone: (f64, f64),
}

impl LossIntervals {
    /// A history without losses.
    pub fn new(discounting: bool) -> LossIntervals {
        LossIntervals {
            discounting,
            open: None,
            latest: 0,
            intervals: [0.0; INTERVALS],
            discounts: [1.0; INTERVALS],
            closed: 0,
            sums: Sums::default(),
        }
    }

    /// The packet of this number has arrived.
    #[inline]
    pub fn arrived(&mut self, sequence: u64) {
        self.latest = self.latest.max(sequence);
    }

    /// `count` packets from this number on were lost; the first would have arrived at `at`. `first_interval` returns the length of
    /// the interval before the first loss of all, in packets. Returns whether a loss event begins.
    pub fn lost(
        &mut self,
        sequence: u64,
        count: u64,
        at: Time,
        rtt: Span,
        first_interval: impl FnOnce() -> f64,
    ) -> bool {
        self.latest = self.latest.max(sequence + count.saturating_sub(1));
        match self.open {
            Some((_, since)) if at.since(since) <= rtt => return false,
            Some((start, _)) => {
                let interval = sequence.saturating_sub(start) as f64;
                self.close(interval, self.discount(interval));
            }
            None => self.close(first_interval(), 1.0),
        }
        self.open = Some((sequence, at));
        true
    }

    /// The loss event rate, in (0, 1]; `None` before the first loss.
    pub fn loss_event_rate(&self) -> Option<f64> {
        let (start, _) = self.open?;
        let open = self.latest.saturating_sub(start) as f64;
        let discount = self.discount(open);
        let Sums { behind_open, alone } = self.sums;
        let with_open = (open + discount * behind_open.0) / (1.0 + discount * behind_open.1);
        Some((1.0 / with_open.max(alone.0 / alone.1)).min(1.0))
    }

    /// Number of closed intervals, at most eight.
    pub fn closed(&self) -> usize {
        self.closed
    }

    /// The factor by which an open interval of this length reduces the weights of old ones; 0.5 to 1.
    fn discount(&self, open: f64) -> f64 {
        let mean = self.sums.alone.0 / self.sums.alone.1;
        if self.discounting && self.closed > 0 && open > 2.0 * mean {
            (2.0 * mean / open).max(LEAST_DISCOUNT)
        } else {
            1.0
        }
    }

    /// Closes an interval; older ones keep `discount` of their weight.
    fn close(&mut self, interval: f64, discount: f64) {
        self.intervals.copy_within(..INTERVALS - 1, 1);
        self.discounts.copy_within(..INTERVALS - 1, 1);
        for old in &mut self.discounts[1..] {
            *old *= discount;
        }
        (self.intervals[0], self.discounts[0]) = (interval.max(1.0), 1.0);
        self.closed = (self.closed + 1).min(INTERVALS);
        self.sums = Sums::default();
        let kept = self.intervals.iter().zip(&self.discounts).take(self.closed);
        for (i, (interval, discount)) in kept.enumerate() {
            let add = |sums: &mut (f64, f64), weight: f64| {
                sums.0 += weight * discount * interval;
                sums.1 += weight * discount;
            };
            add(&mut self.sums.alone, WEIGHTS[i]);
            if let Some(weight) = WEIGHTS.get(i + 1) {
                add(&mut self.sums.behind_open, *weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);

    /// A history of twelve losses, at every `gap`-th number and ten round trips apart; the first interval is `gap` too.
    fn regular(gap: u64, discounting: bool) -> LossIntervals {
        let mut history = LossIntervals::new(discounting);
        for n in 1..=12 {
            let at = Time::from_nanos(n * 500_000_000);
            assert!(history.lost(n * gap, 1, at, RTT, || gap as f64));
        }
        history
    }

    fn mean(history: &LossIntervals) -> f64 {
        1.0 / history.loss_event_rate().unwrap()
    }

    #[test]
    fn the_loss_event_rate_of_equal_intervals_is_their_inverse() {
        assert!((mean(&regular(50, true)) - 50.0).abs() < 1e-9);
        assert_eq!(WEIGHTS.iter().sum::<f64>(), 6.0);
        assert_eq!(LossIntervals::new(true).loss_event_rate(), None);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = regular(50, true);
        let last = Time::from_nanos(12 * 500_000_000);
        assert!(!history.lost(610, 3, last + RTT, RTT, || 0.0));
        assert!(history.lost(620, 1, last + RTT + Span::from_millis(1), RTT, || 0.0));
        assert_eq!(history.intervals[..2], [20.0, 50.0]);
    }

    #[test]
    fn an_open_interval_counts_only_once_it_raises_the_mean() {
        let mut history = regular(60, false);
        history.arrived(12 * 60 + 59);
        assert!((mean(&history) - 60.0).abs() < 1e-9);
        // The open interval is the newest of the eight: weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2.
        history.arrived(12 * 60 + 120);
        assert!((mean(&history) - (120.0 + 5.0 * 60.0) / 6.0).abs() < 1e-9);
    }

    #[test]
    fn old_intervals_lose_weight_while_the_open_one_is_long() {
        let mut history = regular(60, true);
        // 180 is three times the mean: the old intervals keep 2/3 of their weight.
        history.arrived(12 * 60 + 180);
        let expected = (180.0 + 2.0 / 3.0 * 300.0) / (1.0 + 2.0 / 3.0 * 5.0);
        assert!((mean(&history) - expected).abs() < 1e-9);
        // 600 is ten times the mean: the old intervals keep half of their weight, the minimum.
        history.arrived(12 * 60 + 600);
        let expected = (600.0 + 0.5 * 300.0) / (1.0 + 0.5 * 5.0);
        assert!((mean(&history) - expected).abs() < 1e-9);
    }

    #[test]
    fn a_discount_stays_when_the_open_interval_closes() {
        let mut history = regular(60, true);
        history.lost(12 * 60 + 180, 1, Time::from_nanos(20_000_000_000), RTT, || 0.0);
        // 180, then seven of 60 at 2/3: weights 1; 2/3 of 1, 1, 1, 0.8, 0.6, 0.4, 0.2.
        let expected = (180.0 + 2.0 / 3.0 * 5.0 * 60.0) / (1.0 + 2.0 / 3.0 * 5.0);
        assert!((mean(&history) - expected).abs() < 1e-9);
    }
}
