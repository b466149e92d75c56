//! Student's t distribution (Student 1908; Abramowitz and Stegun 26.7.1): its distribution function by way of the
//! regularised incomplete beta function, and its quantiles by bisection. Only functions that give the same bits on every
//! machine are used.

use weir_base::math::{exp, ln, sqrt};

/// The t below which a share `probability` in `(0, 1)` of the distribution with this many degrees of freedom lies.
///
/// Without degrees of freedom, or for a probability outside `(0, 1)`, there is no quantile: infinity with the right sign.
pub fn quantile(probability: f64, degrees: u32) -> f64 {
    if probability < 0.5 {
        return -quantile(1.0 - probability, degrees);
    }
    if degrees == 0 || probability >= 1.0 || probability.is_nan() {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while distribution(high, degrees) < probability && high < f64::MAX / 2.0 {
        (low, high) = (high, high * 2.0);
    }
    // Bisects until no double lies between the ends: 1,100 steps at most, about 60 in practice.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if distribution(middle, degrees) < probability { low = middle } else { high = middle }
    }
}

/// The share of Fisher's F distribution with these degrees of freedom, of the numerator first, that lies above `ratio` (Abramowitz
/// and Stegun 26.6.2).
pub fn f_tail(ratio: f64, numerator: f64, denominator: f64) -> f64 {
    incomplete_beta(denominator / (denominator + numerator * ratio), denominator / 2.0, numerator / 2.0)
}

/// The share of the distribution that lies below `t >= 0`.
fn distribution(t: f64, degrees: u32) -> f64 {
    let n = f64::from(degrees);
    1.0 - 0.5 * incomplete_beta(n / (n + t * t), n / 2.0, 0.5)
}

/// The regularised incomplete beta function I_x(a, b) (Abramowitz and Stegun 26.5.8, its continued fraction).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly only below the mean; above it, the other tail is computed (26.5.2).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let factor = a * ln(x) + b * ln(1.0 - x) + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    exp(factor) * continued_fraction(x, a, b) / a
}

/// The continued fraction of the incomplete beta function, evaluated from the front (Lentz 1976).
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    /// Keeps a denominator from being zero.
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    // The number of terms needed grows with the square root of the larger parameter.
    let terms = 200 + sqrt(a.max(b)) as u32 * 10;
    for m in (1..terms).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            value *= c * d;
        }
        if (value - before).abs() <= value.abs() * f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10, and NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
        let table = [
            (0.975, 1, 12.706),
            (0.975, 2, 4.303),
            (0.975, 3, 3.182),
            (0.975, 4, 2.776),
            (0.975, 5, 2.571),
            (0.975, 9, 2.262),
            (0.975, 29, 2.045),
            (0.975, 100, 1.984),
            (0.975, 100_000, 1.960),
            (0.95, 1, 6.314),
            (0.95, 10, 1.812),
            (0.90, 7, 1.415),
            (0.99, 4, 3.747),
            (0.995, 1, 63.657),
            (0.995, 20, 2.845),
            (0.999, 3, 10.215),
        ];
        for (probability, degrees, expected) in table {
            let t = quantile(probability, degrees);
            assert!(
                (t - expected).abs() <= 0.0005 + 1e-9,
                "t({probability}, {degrees}) = {t}, not {expected}"
            );
        }
    }

    #[test]
    fn tails_of_f_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook, section 1.3.6.7.3: upper critical values at 5 % and 1 %.
        for (ratio, numerator, denominator, expected) in
            [(161.448, 1.0, 1.0, 0.05), (3.326, 5.0, 10.0, 0.05), (5.994, 4.0, 10.0, 0.01)]
        {
            let tail = f_tail(ratio, numerator, denominator);
            assert!((tail - expected).abs() < 2e-4, "F({ratio}; {numerator}, {denominator}) = {tail}");
        }
    }

    #[test]
    fn quantiles_mirror_around_zero_and_ends_are_infinite() {
        assert_eq!(quantile(0.025, 4), -quantile(0.975, 4));
        assert!(quantile(0.5, 3).abs() < 1e-12);
        assert_eq!(quantile(0.975, 0), f64::INFINITY);
        assert_eq!(quantile(1.0, 3), f64::INFINITY);
        assert_eq!(quantile(0.0, 3), f64::NEG_INFINITY);
        assert_eq!(quantile(f64::NAN, 3), f64::INFINITY);
    }
}
