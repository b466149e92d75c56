//! Fixed or random times.

use crate::{Random, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of times around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Times {
    /// All times equal the mean.
    Fixed,
    /// Exponential: memoryless.
    Exponential,
}

impl Times {
    /// The next time, with this mean. A fixed time uses no random number.
    pub(crate) fn draw(self, mean: Span, random: &mut Random) -> Span {
        match self {
            Times::Fixed => mean,
            Times::Exponential => exponential(mean, random),
        }
    }
}

/// An exponentially distributed time with this mean, by inversion; at most 37 times the mean, since a draw has 53 bits.
pub(crate) fn exponential(mean: Span, random: &mut Random) -> Span {
    let factor = -weir_base::math::ln(1.0 - random.unit());
    Span::from_nanos((mean.as_nanos() as f64 * factor + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_mean_and_an_equal_deviation() {
        let (mean, mut random) = (Span::from_millis(10), Random::stream(3, "test"));
        let times: Vec<f64> =
            (0..100_000).map(|_| Times::Exponential.draw(mean, &mut random).as_millis_f64()).collect();
        let average = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - average) * (time - average)).sum::<f64>() / 1e5;
        assert!((average - 10.0).abs() < 0.1, "{average}");
        assert!((variance - 100.0).abs() < 3.0, "{variance}");
    }

    #[test]
    fn fixed_times_draw_no_random_number() {
        let (mut used, mut other) = (Random::stream(3, "test"), Random::stream(3, "test"));
        assert_eq!(Times::Fixed.draw(Span::from_millis(7), &mut used), Span::from_millis(7));
        assert_eq!(used.bits(), other.bits());
    }
}
