//! Acknowledgements that come in lumps: how many more segments were acknowledged than the rate explains, in the worst of the
//! last five to ten rounds, may be in flight on top, so that sending goes on between lumps (Linux
//! `bbr_update_ack_aggregation`).

use super::RATE_SHIFT;
use crate::Ack;
use weir_base::Time;

/// Rounds of each of the two windows (Linux `bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// An epoch that has seen so many segments is old (Linux `bbr_ack_epoch_acked_reset_thresh`).
const OLD_EPOCH: u32 = 1 << 20;
/// What is added is at most what the rate carries in so many microseconds (Linux `bbr_extra_acked_max_us`).
const MOST_MICROS: u64 = 100_000;

/// The state of the estimator.
#[derive(Debug)]
pub(super) struct Aggregation {
    /// Since when acknowledgements have come faster than the rate, and how many segments they were.
    since: Time,
    acked: u32,
    /// The most that came too much, in this window of rounds and in the one before.
    most: [u32; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Aggregation {
        Aggregation { since: now, acked: 0, most: [0; 2], rounds: 0 }
    }

    /// A new epoch, as after idleness.
    pub(super) fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0);
    }

    /// The most that came too much.
    pub(super) fn most(&self) -> u32 {
        self.most[0].max(self.most[1])
    }

    /// What may be in flight on top at this rate (Linux `bbr_ack_aggregation_cwnd`).
    pub(super) fn extra(&self, rate: u64) -> u32 {
        let most = rate.saturating_mul(MOST_MICROS) >> RATE_SHIFT;
        u64::from(self.most()).min(most) as u32
    }

    /// Takes an acknowledgement that came with a rate sample.
    pub(super) fn update(&mut self, ack: &Ack, rate: u64, round_start: bool, cwnd: u32) {
        let delivered = ack.delivered_segments;
        if delivered == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.most = [0, self.most[0]];
            }
        }
        let micros = ack.now.since(self.since).as_micros();
        let mut expected = rate.saturating_mul(micros) >> RATE_SHIFT;
        // Slower than the rate, or very old: a new epoch.
        if u64::from(self.acked) <= expected || self.acked.saturating_add(delivered) >= OLD_EPOCH {
            self.restart(ack.now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(delivered).min(OLD_EPOCH - 1);
        let extra = u64::from(self.acked).saturating_sub(expected).min(cwnd.into()) as u32;
        self.most[0] = self.most[0].max(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ms};

    /// One segment each millisecond.
    const RATE: u64 = (1 << RATE_SHIFT) / 1_000 + 1;

    #[test]
    fn what_comes_faster_than_the_rate_counts() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(20), 10), RATE, false, 100);
        // Twenty milliseconds explain the ten; the epoch begins with them. Two later ten more have come: two are explained.
        assert_eq!(aggregation.most(), 10);
        aggregation.update(&ack(ms(22), 10), RATE, false, 100);
        assert_eq!(aggregation.most(), 18);
        // Never more than the window.
        aggregation.update(&ack(ms(22), 50), RATE, false, 40);
        assert_eq!(aggregation.most(), 40);
    }

    #[test]
    fn a_lump_is_forgotten_after_five_to_ten_rounds() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(1), 30), RATE, false, 100);
        for round in 1..=10 {
            assert_eq!(aggregation.most(), 30, "round {round}");
            aggregation.update(&ack(ms(round * 100), 1), RATE, true, 100);
        }
        assert_eq!(aggregation.most(), 1);
    }

    #[test]
    fn what_is_added_is_what_the_rate_carries_in_100_ms_at_most() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(1), 150), RATE, false, 1000);
        assert_eq!(aggregation.extra(RATE), 100);
        assert_eq!(aggregation.extra(10 * RATE), 150);
    }
}
