//! A check of a parameter's range.

use serde::{Deserialize, Deserializer, de};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// A number within a range; the error names the parameter and the range.
pub(crate) fn within<'de, D, T>(deserializer: D, name: &str, range: RangeInclusive<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialOrd + Display,
{
    let value = T::deserialize(deserializer)?;
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(de::Error::custom(format!("{name} is {value}, expected {least} to {most}")))
}
