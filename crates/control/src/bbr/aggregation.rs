//! Aggregated acknowledgements: the largest excess of acknowledged segments over those that the rate explains, in the last five to
//! ten rounds, is added to the window, so that sending continues between aggregates (Linux `bbr_update_ack_aggregation`).

use super::RATE_SHIFT;
use crate::Ack;
use weir_base::Time;

/// Rounds of each of the two windows (Linux `bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// Number of acknowledged segments after which an epoch ends (Linux `bbr_ack_epoch_acked_reset_thresh`).
const OLD_EPOCH: u32 = 1 << 20;
/// The addition is at most the data of the rate in this many microseconds (Linux `bbr_extra_acked_max_us`).
const MOST_MICROS: u64 = 100_000;

/// The state of the estimator.
#[derive(Debug)]
pub(super) struct Aggregation {
    /// Start of the epoch, in which acknowledgements have arrived faster than the rate, and the segments acknowledged in it.
    since: Time,
    acked: u32,
    /// Largest excess in segments, in this window of rounds and in the one before.
    most: [u32; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Aggregation {
        Aggregation { since: now, acked: 0, most: [0; 2], rounds: 0 }
    }

    /// Begins a new epoch, as after an idle time.
    pub(super) fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0);
    }

    /// The largest excess in segments.
    pub(super) fn most(&self) -> u32 {
        self.most[0].max(self.most[1])
    }

    /// The segments added to the window at this rate (Linux `bbr_ack_aggregation_cwnd`).
    pub(super) fn extra(&self, rate: u64) -> u32 {
        let most = rate.saturating_mul(MOST_MICROS) >> RATE_SHIFT;
        u64::from(self.most()).min(most) as u32
    }

    /// Takes an acknowledgement with a rate sample.
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
        // Acknowledgements are no faster than the rate, or the epoch is old: a new epoch begins.
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
    fn segments_acknowledged_faster_than_the_rate_count_as_aggregation() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(20), 10), RATE, false, 100);
        // Twenty milliseconds explain ten segments, so the epoch begins with them. Ten more follow 2 ms later, of which two are
        // explained.
        assert_eq!(aggregation.most(), 10);
        aggregation.update(&ack(ms(22), 10), RATE, false, 100);
        assert_eq!(aggregation.most(), 18);
        // The excess is at most the window.
        aggregation.update(&ack(ms(22), 50), RATE, false, 40);
        assert_eq!(aggregation.most(), 40);
    }

    #[test]
    fn an_aggregate_is_forgotten_after_five_to_ten_rounds() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(1), 30), RATE, false, 100);
        for round in 1..=10 {
            assert_eq!(aggregation.most(), 30, "round {round}");
            aggregation.update(&ack(ms(round * 100), 1), RATE, true, 100);
        }
        assert_eq!(aggregation.most(), 1);
    }

    #[test]
    fn the_extra_window_is_at_most_100_ms_at_the_rate() {
        let mut aggregation = Aggregation::new(ms(0));
        aggregation.update(&ack(ms(1), 150), RATE, false, 1000);
        assert_eq!(aggregation.extra(RATE), 100);
        assert_eq!(aggregation.extra(10 * RATE), 150);
    }
}
