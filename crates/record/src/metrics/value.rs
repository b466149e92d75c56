//! The value of a metric: a count, a number, a distribution, or undefined.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_base::{Histogram, Span};

/// The value of a metric; `null` in JSON if it is undefined.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Undefined: no packet was sent or arrived, or no flow completed.
    #[default]
    Undefined,
    /// A count.
    Count(u64),
    /// A number in the metric's unit.
    Number(f64),
    /// A distribution in the metric's unit.
    Distribution(Distribution),
}

// By hand: what serde derives copies a value and tries one variant after another, which a summary of 5,000 runs has millions of.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a distribution or null")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Undefined)
            }
            fn visit_u64<E>(self, count: u64) -> Result<Value, E> {
                Ok(Value::Count(count))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(u64::try_from(number).map_or(Value::Number(number as f64), Value::Count))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Number(number))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                Distribution::deserialize(MapAccessDeserializer::new(map)).map(Value::Distribution)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Mean and percentiles (nearest rank).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// 1st percentile.
    pub p1: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Distribution {
    /// The distribution of a histogram's times, in milliseconds, with an exact mean. `None` if the histogram is empty.
    pub fn of_millis(histogram: &Histogram) -> Option<Distribution> {
        let count = histogram.count();
        let mean = (count > 0).then(|| histogram.sum() as f64 / count as f64 / 1e6)?;
        let shares = histogram.percentiles(&[0.01, 0.25, 0.5, 0.75, 0.99]);
        let [p1, p25, p50, p75, p99] = <[Span; 5]>::try_from(shares).ok()?.map(Span::as_millis_f64);
        Some(Distribution { count, mean, p1, p25, p50, p75, p99 })
    }

    /// The distribution of some numbers. `None` without numbers.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Distribution> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        let count = sorted.len();
        if count == 0 {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let rank = |p: f64| (libm::ceil(p * count as f64) as usize).clamp(1, count);
        let at = |p| sorted.get(rank(p) - 1).copied();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        Some(Distribution {
            count: count as u64,
            mean,
            p1: at(0.01)?,
            p25: at(0.25)?,
            p50: at(0.5)?,
            p75: at(0.75)?,
            p99: at(0.99)?,
        })
    }

    /// The distribution with `change` applied to every number but the count; `change` must be linear and increasing.
    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Distribution {
        let Distribution { count, mean, p1, p25, p50, p75, p99 } = self;
        let [mean, p1, p25, p50, p75, p99] = [mean, p1, p25, p50, p75, p99].map(change);
        Distribution { count, mean, p1, p25, p50, p75, p99 }
    }
}

impl Value {
    /// The value as a single number, for comparisons and tables: the mean of a distribution; `None` if undefined.
    pub fn scalar(&self) -> Option<f64> {
        match self {
            Value::Undefined => None,
            Value::Count(count) => Some(*count as f64),
            Value::Number(number) => Some(*number),
            Value::Distribution(distribution) => Some(distribution.mean),
        }
    }

    /// The distribution, if it is one.
    pub fn distribution(&self) -> Option<&Distribution> {
        match self {
            Value::Distribution(distribution) => Some(distribution),
            _ => None,
        }
    }

    /// The value with six significant digits; undefined if it is not finite.
    pub fn rounded(self) -> Value {
        match self {
            Value::Number(number) => Value::from(Some(round(number))),
            Value::Distribution(distribution) => Value::from(Some(distribution.map(round))),
            other => other,
        }
    }
}

/// Rounds to six significant digits. Whole numbers of up to six digits, often counts and zeros, take no work.
fn round(number: f64) -> f64 {
    if number.abs() < 1e6 && number == f64::from(number as i32) {
        return number;
    }
    round_in_binary(number).unwrap_or_else(|| round_by_text(number))
}

/// Rounds to six digits by way of text: exact for every number, but about a thousand instructions.
fn round_by_text(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// The powers of ten that a double holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Rounds to six digits in doubles, where these are exact enough: six digits as a whole number, multiplied or divided by an
/// exact power of ten, give the double nearest to the decimal (Clinger 1990: How to read floating point numbers accurately).
/// `None` if the digits from the seventh on are too near to a half, and for very large and very small numbers.
fn round_in_binary(number: f64) -> Option<f64> {
    // More than the error of one product below 10^6, which is 2^-34, and of a second one if a product gave the decade.
    const UNCERTAIN: f64 = 1e-9;
    let size = number.abs();
    let below_one = POWERS_OF_TEN.iter().position(|power| size * power >= 1.0)?;
    let (digits, power, larger) = if below_one > 0 {
        let power = *POWERS_OF_TEN.get(below_one + 5)?;
        (size * power, power, false)
    } else {
        let decade = POWERS_OF_TEN.iter().position(|power| *power > size)? - 1;
        let power = POWERS_OF_TEN[decade.abs_diff(5)];
        if decade > 5 { (size / power, power, true) } else { (size * power, power, false) }
    };
    if (digits - digits.trunc() - 0.5).abs() < UNCERTAIN {
        return None;
    }
    let digits = f64::from((digits + 0.5) as u32);
    Some((if larger { digits * power } else { digits / power }).copysign(number))
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Value {
        number.filter(|n| n.is_finite()).map_or(Value::Undefined, Value::Number)
    }
}
impl From<Option<u64>> for Value {
    fn from(count: Option<u64>) -> Value {
        count.map_or(Value::Undefined, Value::Count)
    }
}
impl From<Option<Distribution>> for Value {
    fn from(distribution: Option<Distribution>) -> Value {
        distribution.map_or(Value::Undefined, Value::Distribution)
    }
}

/// `part` as a share of `whole`, in percent; `None` if `whole` is 0.
pub(crate) fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(100.0 * part as f64, whole as f64)
}

/// A quotient; `None` if the divisor is 0.
pub(crate) fn ratio(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor != 0.0).then(|| dividend / divisor)
}

/// Bytes over a time as megabits per second; `None` if the time is 0.
pub(crate) fn mbps(bytes: u64, over: Span) -> Option<f64> {
    ratio(bytes as f64 * 8.0, over.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_numbers_are_by_nearest_rank() {
        let d = Distribution::of((1..=200).map(f64::from)).unwrap();
        assert_eq!(
            (d.count, d.mean, d.p1, d.p25, d.p50, d.p75, d.p99),
            (200, 100.5, 2.0, 50.0, 100.0, 150.0, 198.0)
        );
        let one = Distribution::of([7.0]).unwrap();
        assert_eq!((one.p1, one.p99, one.mean), (7.0, 7.0, 7.0));
        assert_eq!(Distribution::of([]), None);
    }

    #[test]
    fn six_digits_are_kept_and_undefined_is_null() {
        let json = |v: Value| serde_json::to_string(&v.rounded()).unwrap();
        assert_eq!(json(Value::Number(12.345678901)), "12.3457");
        assert_eq!(json(Value::Number(1234567.8)), "1234570.0");
        assert_eq!(json(Value::Number(f64::NAN)), "null");
        assert_eq!(json(Value::Number(f64::INFINITY)), "null");
        assert_eq!(json(Value::Count(u64::MAX)), u64::MAX.to_string());
        assert_eq!(json(Value::Undefined), "null");
    }

    #[test]
    fn values_read_back_by_their_form() {
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        assert_eq!(read("null"), Some(Value::Undefined));
        assert_eq!(read("7"), Some(Value::Count(7)));
        assert_eq!(read("7.0"), Some(Value::Number(7.0)));
        assert_eq!(read("-7"), Some(Value::Number(-7.0)));
        let spread = Distribution::of([1.5, 2.5]).unwrap();
        assert_eq!(read(&serde_json::to_string(&spread).unwrap()), Some(Value::Distribution(spread)));
        for other in ["true", "\"7\"", "[7]", "{}", "{\"count\": 1}"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn rounding_in_binary_is_rounding_by_text(
            anything in any::<f64>(), digits in 0u64..20_000_000, places in -25i32..25, half in any::<bool>(),
        ) {
            // Numbers of up to seven or eight digits, and those halfway between two of fewer digits.
            let digits = if half { digits / 10 * 10 + 5 } else { digits };
            let decimal: f64 = format!("{digits}e{places}").parse().unwrap();
            let near = [decimal, f64::from_bits(decimal.to_bits() + 1), -decimal / 3.0];
            for number in near.into_iter().chain([anything]) {
                if let Some(rounded) = round_in_binary(number) {
                    prop_assert_eq!(rounded.to_bits(), round_by_text(number).to_bits(), "{:e}", number);
                }
            }
        }
    }

    #[test]
    fn usual_numbers_are_rounded_in_binary() {
        for number in [12.345678901, 0.000123456789, 99.99999, 1e-9, 123456789.0, 0.1 + 0.2] {
            assert_eq!(round_in_binary(number), Some(round_by_text(number)), "{number}");
        }
        let undecided = [1234565.0, 0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300];
        assert_eq!(undecided.map(round_in_binary), [None; 6]);
    }

    #[test]
    fn values_read_back_as_they_were_written() {
        let distribution = Distribution::of([1.5, 2.5]).unwrap();
        for value in
            [Value::Undefined, Value::Count(3), Value::Number(3.0), Value::Distribution(distribution)]
        {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "{text}");
        }
    }
}
