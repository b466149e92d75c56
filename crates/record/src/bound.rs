//! A bound on a difference between two results: part of a metric's definition, used by comparisons.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Greatest difference between two results that agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// In the metric's unit (points, for a percentage).
    Absolute(f64),
    /// As a share of the reference: 0.15 is 15 %.
    Relative(f64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Absolute(bound) => write!(f, "{bound}"),
            // To a millionth, so that 7 % is not printed as 7.000000000000001 %.
            Bound::Relative(bound) => write!(f, "{}%", (bound * 1e8).round() / 1e6),
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    /// A number in the metric's unit, or a share with `%`.
    fn from_str(text: &str) -> Result<Bound, String> {
        let share = text.trim_end().strip_suffix('%');
        let number = share.unwrap_or(text).trim().parse::<f64>().ok();
        match number.filter(|number| number.is_finite() && *number >= 0.0) {
            Some(number) if share.is_some() => Ok(Bound::Relative(number / 100.0)),
            Some(number) => Ok(Bound::Absolute(number)),
            None => Err(format!(
                "`{text}` is not a bound: give a number in the metric's unit, or a share such as 15%"
            )),
        }
    }
}
