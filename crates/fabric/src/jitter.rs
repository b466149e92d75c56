//! Jitter: an independent random delay for each packet, from one of four distributions. With reordering, a packet arrives
//! when its own delay is over; without it, no earlier than the packets sent before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Random, Span, math};

/// Random delay added to each packet's propagation delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Jitter {
    /// Distribution of the delay: `uniform` below `up_to`; `normal` with `mean` and `deviation`, where a negative draw
    /// counts as zero; `pareto` with `mean` and `shape`; `mixture` with `parts`.
    pub distribution: Distribution,
    /// Upper bound of the delay. A larger draw of another distribution than `uniform` is cut to it; for these the default is an hour.
    pub up_to: Option<Span>,
    /// Mean of `normal` or `pareto`, before draws are cut.
    pub mean: Option<Span>,
    /// Standard deviation of `normal`, before draws are cut.
    pub deviation: Option<Span>,
    /// Shape of `pareto`, above 1; the smaller, the heavier the tail.
    pub shape: f64,
    /// Parts of a `mixture`, of which each delay is drawn from one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Whether packets may overtake each other.
    pub reorder: bool,
}

/// The distribution of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All values below the bound are equally likely.
    #[default]
    Uniform,
    /// Normal distribution.
    Normal,
    /// Power law: most delays are short, a few are very long.
    Pareto,
    /// One of several normal distributions, or of several values (digest A 10).
    Mixture,
}

/// A part of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// How often it is chosen, beside the shares of the other parts: above 0.
    pub share: f64,
    /// Its mean.
    pub mean: Span,
    /// Its standard deviation; by default 0, so that it is a single value.
    #[serde(default)]
    pub deviation: Span,
}

/// The longest delay that is ever added.
const LONGEST: Span = Span::from_secs(3600);

impl Default for Jitter {
    /// No jitter.
    fn default() -> Jitter {
        Jitter {
            distribution: Distribution::Uniform,
            up_to: None,
            mean: None,
            deviation: None,
            shape: 3.0,
            parts: Vec::new(),
            reorder: false,
        }
    }
}

impl Jitter {
    /// Uniform jitter below `up_to`, without reordering.
    pub fn uniform(up_to: Span) -> Jitter {
        Jitter { up_to: Some(up_to), ..Jitter::default() }
    }

    /// Whether no delay is ever added.
    pub fn is_none(&self) -> bool {
        let zero = |span: Option<Span>| span.unwrap_or_default().is_zero();
        match self.distribution {
            Distribution::Uniform => zero(self.up_to),
            Distribution::Normal => zero(self.mean) && zero(self.deviation),
            Distribution::Pareto => zero(self.mean),
            Distribution::Mixture => {
                self.parts.iter().all(|part| part.mean.is_zero() && part.deviation.is_zero())
            }
        }
    }

    /// Draws a part of the mixture.
    fn part(&self, random: &mut Random) -> Part {
        let none = Part { share: 0.0, mean: Span::ZERO, deviation: Span::ZERO };
        let mut left = random.unit() * self.parts.iter().map(|part| part.share).sum::<f64>();
        let chosen = self.parts.iter().find(|part| {
            left -= part.share;
            left < 0.0
        });
        // Rounding may leave a little behind the last part.
        chosen.or(self.parts.last()).copied().unwrap_or(none)
    }

    /// Draws a delay.
    pub(crate) fn draw(&self, random: &mut Random) -> Span {
        let cut = |nanos: f64| Span::from_nanos(nanos.max(0.0) as u64).min(self.up_to.unwrap_or(LONGEST));
        let around = |mean: Span, deviation: Span, random: &mut Random| {
            cut(mean.as_nanos() as f64 + normal(random) * deviation.as_nanos() as f64)
        };
        let mean = self.mean.unwrap_or_default();
        match self.distribution {
            Distribution::Uniform => random.within(self.up_to.unwrap_or_default()),
            Distribution::Normal => around(mean, self.deviation.unwrap_or_default(), random),
            Distribution::Mixture => {
                let part = self.part(random);
                if part.deviation.is_zero() {
                    cut(part.mean.as_nanos() as f64)
                } else {
                    around(part.mean, part.deviation, random)
                }
            }
            Distribution::Pareto => {
                // Inverse transform. The scale that gives this mean is mean (shape - 1) / shape.
                let scale = mean.as_nanos() as f64 * (self.shape - 1.0) / self.shape;
                cut(scale * math::pow(1.0 - random.unit(), -1.0 / self.shape))
            }
        }
    }
}

/// A number from the standard normal distribution, by the polar method (Marsaglia and Bray, "A Convenient Method for
/// Generating Normal Variables", SIAM Review 6, 1964).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * random.unit() - 1.0, 2.0 * random.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * math::sqrt(-2.0 * math::ln(square) / square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation in milliseconds over 200,000 draws, and the largest.
    fn measure(jitter: Jitter) -> (f64, f64, Span) {
        let mut random = Random::stream(3, "jitter");
        let draws: Vec<Span> = (0..200_000).map(|_| jitter.draw(&mut random)).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().map(|d| d.as_millis_f64()).sum::<f64>() / n;
        let variance = draws.iter().map(|d| (d.as_millis_f64() - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt(), draws.into_iter().max().unwrap())
    }

    #[test]
    fn each_distribution_has_its_mean_and_deviation() {
        let ms = |ms| Some(Span::from_millis(ms));
        let (mean, deviation, most) = measure(Jitter::uniform(Span::from_millis(6)));
        assert!((mean - 3.0).abs() < 0.02 && (deviation - 6.0 / 12f64.sqrt()).abs() < 0.02);
        assert!(most < Span::from_millis(6));
        let normal = Jitter {
            distribution: Distribution::Normal,
            mean: ms(10),
            deviation: ms(2),
            ..Jitter::default()
        };
        let (mean, deviation, _) = measure(normal);
        assert!((mean - 10.0).abs() < 0.02 && (deviation - 2.0).abs() < 0.02, "{mean} {deviation}");
        // Shape 3: variance is mean^2 / (shape (shape - 2)) = 25 / 3; its estimate converges slowly.
        let pareto = Jitter { distribution: Distribution::Pareto, mean: ms(5), ..Jitter::default() };
        let (mean, _, most) = measure(pareto.clone());
        assert!((mean - 5.0).abs() < 0.05 && most > Span::from_millis(50), "{mean} {most}");
        let (_, _, most) = measure(Jitter { up_to: ms(20), ..pareto });
        assert_eq!(most, Span::from_millis(20));
    }

    #[test]
    fn a_mixture_has_the_mean_and_deviation_of_its_parts() {
        let part = |share, mean, deviation| Part {
            share,
            mean: Span::from_millis(mean),
            deviation: Span::from_millis(deviation),
        };
        let mixture = |parts| Jitter { distribution: Distribution::Mixture, parts, ..Jitter::default() };
        // Nine of ten around 10 ms, one around 30: 12 ms. Within the parts 4 ms^2, between them 0.9 x 2^2 + 0.1 x 18^2 = 36.
        let (mean, deviation, _) = measure(mixture(vec![part(9.0, 10, 2), part(1.0, 30, 2)]));
        assert!((mean - 12.0).abs() < 0.05 && (deviation - 40f64.sqrt()).abs() < 0.05, "{mean} {deviation}");
        // Values alone: 1 ms or 5 ms, in equal parts.
        let (mean, deviation, most) = measure(mixture(vec![part(0.5, 1, 0), part(0.5, 5, 0)]));
        assert!((mean - 3.0).abs() < 0.02 && (deviation - 2.0).abs() < 0.01, "{mean} {deviation}");
        assert_eq!(most, Span::from_millis(5));
        assert!(mixture(vec![part(1.0, 0, 0)]).is_none() && !mixture(vec![part(1.0, 1, 0)]).is_none());
    }

    #[test]
    fn only_a_jitter_of_zero_is_none() {
        assert!(Jitter::default().is_none() && Jitter::uniform(Span::ZERO).is_none());
        assert!(!Jitter::uniform(Span::from_nanos(1)).is_none());
    }
}
