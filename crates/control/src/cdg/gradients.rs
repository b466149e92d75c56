//! Delay gradients: the differences of the smallest and of the largest RTT between successive rounds, summed over the last rounds.
//! Source: Linux 6.18 `net/ipv4/tcp_cdg.c` (`tcp_cdg_acked`, `tcp_cdg_grad`), in microseconds.

use crate::Delivered;

/// A fall of the summed gradients by this many microseconds shows that a back-off had an effect.
const EFFECTUAL: i64 = 32;
/// Largest value of `delayed`, the count of acknowledgements that suggest delayed ones.
const MOST_DELAYED: u32 = 5;

/// A pair for the smallest and the largest RTT.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    min: i64,
    max: i64,
}

/// The gradients summed over the last rounds, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trend {
    /// The sum for the smallest RTTs if that is positive, or else for the largest, extrapolated to the whole window.
    pub(super) gradient: i64,
    /// The sums for the smallest and for the largest RTTs, over the rounds so far.
    pub(super) min: i64,
    pub(super) max: i64,
}

impl Trend {
    /// Whether the delay has fallen.
    pub(super) fn fell(&self) -> bool {
        self.min <= -EFFECTUAL || self.max <= -EFFECTUAL
    }
}

/// The gradients of a connection.
#[derive(Debug)]
pub(super) struct Gradients {
    /// RTTs of the current round, 0 before the first; and of the round before, `None` without samples.
    round: Pair,
    before: Option<Pair>,
    /// Recent acknowledgements of two or more segments that have not been followed by one of a single segment.
    delayed: u32,
    /// The last gradients, the oldest at `oldest`.
    last: Vec<Pair>,
    oldest: usize,
    filled: bool,
    sum: Pair,
    gradient: i64,
}

impl Gradients {
    /// Gradients summed over `window` rounds, a power of two.
    pub(super) fn new(window: u32) -> Gradients {
        Gradients {
            round: Pair::default(),
            before: None,
            delayed: 0,
            last: vec![Pair::default(); window.max(1) as usize],
            oldest: 0,
            filled: false,
            sum: Pair::default(),
            gradient: 0,
        }
    }

    /// Takes the RTT of an acknowledgement. A single segment that is acknowledged after pairs has waited for the receiver's delayed-ACK
    /// timer: its RTT can only lower the round's smallest one (Hayes, CAIA technical report 100219A).
    pub(super) fn sample(&mut self, delivered: &Delivered) {
        let Some(rtt) = delivered.rtt.map(|sample| sample.rtt.as_micros() as i64).filter(|&rtt| rtt > 0)
        else {
            return;
        };
        if delivered.sacked_out == 0 {
            if delivered.acked_segments == 1 && self.delayed > 0 {
                self.round.min = self.round.min.min(rtt);
                self.delayed -= 1;
                return;
            }
            if delivered.acked_segments > 1 && self.delayed < MOST_DELAYED {
                self.delayed += 1;
            }
        }
        self.round.min = if self.round.min == 0 { rtt } else { self.round.min.min(rtt) };
        self.round.max = self.round.max.max(rtt);
    }

    /// Whether the round has any RTT.
    pub(super) fn has_samples(&self) -> bool {
        self.round.max != 0
    }
    /// The round's smallest RTT in microseconds; 0 before the first.
    pub(super) fn round_min(&self) -> i64 {
        self.round.min
    }
    /// The newest gradient.
    pub(super) fn last(&self) -> i64 {
        self.gradient
    }

    /// Ends the round and returns the trend; `None` if there was no round before it.
    pub(super) fn end_round(&mut self) -> Option<Trend> {
        let round = std::mem::take(&mut self.round);
        let before = self.before.replace(round)?;
        let newest = Pair { min: round.min - before.min, max: round.max - before.max };
        let oldest = std::mem::replace(&mut self.last[self.oldest], newest);
        self.sum.min += newest.min - oldest.min;
        self.sum.max += newest.max - oldest.max;
        self.oldest = (self.oldest + 1) % self.last.len();
        self.filled |= self.oldest == 0;
        let sum = if self.sum.min > 0 { self.sum.min } else { self.sum.max };
        // The rounds still missing are assumed to be like those so far.
        self.gradient = if self.filled { sum } else { sum * self.last.len() as i64 / self.oldest as i64 };
        Some(Trend { gradient: self.gradient, min: self.sum.min, max: self.sum.max })
    }

    /// Ends the round without a gradient; the next round is compared with it.
    pub(super) fn skip_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.before = (round.max != 0).then_some(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RttSample;
    use crate::testing::{delivered, ms};
    use weir_base::Span;

    fn sample(gradients: &mut Gradients, segments: u32, rtt: u64) {
        let rtt = Some(RttSample { rtt: Span::from_micros(rtt), delayed: false, queued_back: Span::ZERO });
        gradients.sample(&Delivered { rtt, ..delivered(ms(0), segments) });
    }
    /// A round with these two RTTs.
    fn round(gradients: &mut Gradients, min: u64, max: u64) -> Option<Trend> {
        sample(gradients, 2, min);
        sample(gradients, 2, max);
        gradients.end_round()
    }

    #[test]
    fn the_gradient_is_extrapolated_until_the_window_is_filled() {
        let mut gradients = Gradients::new(4);
        assert!(round(&mut gradients, 40_000, 50_000).is_none());
        // 100 us a round are 400 over four rounds, also before four rounds have passed.
        for (n, expected) in [(1, 400), (2, 400), (3, 400), (4, 400), (5, 400)] {
            let trend = round(&mut gradients, 40_000 + n * 100, 50_000).unwrap();
            assert_eq!((trend.gradient, trend.max), (expected, 0), "round {n}");
        }
        // The oldest of four rises leaves the window, and no new one enters it.
        assert_eq!(round(&mut gradients, 40_500, 50_000).unwrap().gradient, 300);
    }

    #[test]
    fn the_largest_rtts_give_the_gradient_where_the_smallest_do_not_rise() {
        let mut gradients = Gradients::new(1);
        round(&mut gradients, 40_000, 50_000);
        assert_eq!(round(&mut gradients, 40_000, 50_070).unwrap().gradient, 70);
        assert_eq!(round(&mut gradients, 40_010, 50_000).unwrap().gradient, 10);
    }

    #[test]
    fn a_fall_of_32_microseconds_counts_as_an_effect() {
        let mut gradients = Gradients::new(8);
        round(&mut gradients, 40_000, 50_000);
        assert!(!round(&mut gradients, 40_000, 49_969).unwrap().fell());
        assert!(round(&mut gradients, 40_000, 49_968).unwrap().fell());
    }

    #[test]
    fn a_delayed_acknowledgement_can_only_lower_the_smallest_rtt() {
        let mut gradients = Gradients::new(8);
        sample(&mut gradients, 2, 40_000);
        sample(&mut gradients, 1, 80_000);
        assert_eq!((gradients.round.min, gradients.round.max), (40_000, 40_000));
        // The next single segment follows no pair.
        sample(&mut gradients, 1, 60_000);
        assert_eq!((gradients.round.min, gradients.round.max), (40_000, 60_000));
        sample(&mut gradients, 2, 50_000);
        sample(&mut gradients, 1, 39_000);
        assert_eq!((gradients.round.min, gradients.round.max), (39_000, 60_000));
    }

    #[test]
    fn a_skipped_round_gives_no_gradient_but_is_the_reference_of_the_next() {
        let mut gradients = Gradients::new(1);
        round(&mut gradients, 40_000, 40_000);
        sample(&mut gradients, 2, 90_000);
        gradients.skip_round();
        assert_eq!(round(&mut gradients, 90_005, 90_005).unwrap().gradient, 5);
        // Without samples there is nothing to compare with.
        gradients.skip_round();
        assert!(round(&mut gradients, 90_000, 90_000).is_none());
    }
}
