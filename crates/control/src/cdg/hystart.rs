//! HyStart of CDG (Linux 6.18 `net/ipv4/tcp_cdg.c`, `tcp_cdg_hystart_update`): for windows of any size, with trains of
//! acknowledgements less than 3 ms apart that restart when the application limits sending, and without an upper bound of the delay
//! growth that ends slow start. Times are in microseconds.

use crate::Ack;
use crate::hystart::Detect;
use weir_base::Time;

/// Acknowledgements of a train are less than this apart.
const TRAIN_GAP: u64 = 3_000;
/// The shortest train, and the smallest delay, that end slow start.
const LEAST: u64 = 125;
/// Number of RTT samples before a round's delay counts.
const MIN_SAMPLES: u32 = 8;

#[derive(Debug)]
pub(super) struct HyStart {
    detect: Detect,
    /// Smallest RTT; 0 before the first.
    delay_min: u64,
    /// The times of the train's first and newest acknowledgement; `None` before the round's first.
    train: Option<(u64, u64)>,
    samples: u32,
}

impl HyStart {
    pub(super) fn new(detect: Detect) -> HyStart {
        HyStart { detect, delay_min: 0, train: None, samples: 0 }
    }

    /// Begins the next round.
    pub(super) fn begin_round(&mut self) {
        self.train = None;
        self.samples = 0;
    }

    /// Whether slow start ends here; `round_min` is the smallest RTT of the round, 0 before the first.
    pub(super) fn found(&mut self, ack: &Ack, round_min: i64) -> bool {
        let round_min = u64::try_from(round_min).unwrap_or(0);
        self.delay_min = match (self.delay_min, round_min) {
            (least, 0) | (0, least) => least,
            (known, new) => known.min(new),
        };
        if self.delay_min == 0 {
            return false;
        }
        (self.detect != Detect::Delay && self.train_is_long(ack))
            || (self.detect != Detect::AckTrain && self.delay_has_grown(round_min))
    }

    fn train_is_long(&mut self, ack: &Ack) -> bool {
        let now = ack.now.since(Time::ZERO).as_micros();
        match &mut self.train {
            Some((began, newest)) if ack.cwnd_limited => {
                if now >= *newest + TRAIN_GAP {
                    return false;
                }
                *newest = now;
                now > *began + (self.delay_min / 2).max(LEAST)
            }
            train => {
                *train = Some((now, now));
                false
            }
        }
    }

    fn delay_has_grown(&mut self, round_min: u64) -> bool {
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        round_min > (self.delay_min + self.delay_min / 8).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ms};

    /// The number of the acknowledgement, one each `gap` milliseconds, at which slow start ends.
    fn found_at(detect: Detect, gap: u64, round_min: i64) -> Option<u64> {
        let mut hystart = HyStart::new(detect);
        hystart.delay_min = 40_000;
        (0..100).find(|n| hystart.found(&ack(ms(n * gap), 1), round_min))
    }

    #[test]
    fn a_train_longer_than_half_the_delay_ends_slow_start() {
        assert_eq!(found_at(Detect::AckTrain, 1, 40_000), Some(21));
        assert_eq!(found_at(Detect::AckTrain, 2, 40_000), Some(11));
        // 3 ms apart they are no train.
        assert_eq!(found_at(Detect::AckTrain, 3, 40_000), None);
    }

    #[test]
    fn a_delay_that_has_grown_by_more_than_an_eighth_ends_slow_start_after_eight_samples() {
        assert_eq!(found_at(Detect::Delay, 3, 45_000), None);
        assert_eq!(found_at(Detect::Delay, 3, 45_001), Some(8));
    }

    #[test]
    fn an_application_limited_acknowledgement_restarts_the_train() {
        let mut hystart = HyStart::new(Detect::AckTrain);
        hystart.found(&ack(ms(0), 1), 40_000);
        hystart.found(&Ack { cwnd_limited: false, ..ack(ms(2), 1) }, 40_000);
        assert_eq!((3..100).find(|&n| hystart.found(&ack(ms(n), 1), 40_000)), Some(23));
    }

    #[test]
    fn hystart_finds_nothing_without_an_rtt() {
        let mut hystart = HyStart::new(Detect::Both);
        assert!((0..100).all(|n| !hystart.found(&ack(ms(n), 1), 0)));
    }
}
