//! Parameters that must lie in a range: a value of a lab outside its range is an error that names the range.

use serde::{Deserialize, Deserializer, de::Error};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Reads a value and checks that it lies in the range.
///
/// # Errors
/// The deserializer's, and a value outside the range.
pub fn within<'de, T, D>(deserializer: D, range: RangeInclusive<T>) -> Result<T, D::Error>
where
    T: Deserialize<'de> + PartialOrd + Display,
    D: Deserializer<'de>,
{
    let value = T::deserialize(deserializer)?;
    // NaN is in no range.
    if range.contains(&value) {
        return Ok(value);
    }
    Err(D::Error::custom(format!("{value} is out of range; write {} to {}", range.start(), range.end())))
}
