//! The value of a quantity one round trip ago, with a resolution of an eighth of a round trip: the value that the senders
//! followed when they sent the packets that arrive now.

use weir_base::{Span, Time};

/// Number of values kept, one for each part of a round trip.
const PARTS: u64 = 8;

/// A delay line of one round trip.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lag {
    values: [f64; PARTS as usize],
    /// Number of values, and the index of the oldest one once the line is full.
    count: usize,
    oldest: usize,
    next: Time,
}

impl Lag {
    /// Takes the present value and returns the value of a round trip ago, or the oldest one if the line is not full yet.
    #[inline]
    pub(crate) fn update(&mut self, value: f64, rtt: Span, now: Time) -> f64 {
        if now >= self.next {
            self.next = now + rtt / PARTS;
            if self.count < self.values.len() {
                self.values[self.count] = value;
                self.count += 1;
            } else {
                self.values[self.oldest] = value;
                self.oldest = (self.oldest + 1) % self.values.len();
            }
        }
        if self.count < self.values.len() { self.values[0] } else { self.values[self.oldest] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_returns_the_values_of_one_round_trip_ago() {
        let (mut lag, rtt) = (Lag::default(), Span::from_millis(80));
        let of = |ms: u64, lag: &mut Lag| lag.update(ms as f64, rtt, Time::from_nanos(ms * 1_000_000));
        assert_eq!([0, 10, 40, 70].map(|ms| of(ms, &mut lag)), [0.0; 4], "the oldest that there is");
        let later: Vec<f64> = (71..400).map(|ms| ms as f64 - of(ms, &mut lag)).collect();
        // Eight values, one each 10 ms: between 70 and 80 ms old, once the line is full.
        assert!(later[80..].iter().all(|age| (69.0..=81.0).contains(age)), "{later:?}");
    }
}
