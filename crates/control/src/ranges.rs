//! A check of a parameter's range.

use serde::{Deserialize, Deserializer, de::Error};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// A number within a range. The error names the parameter, since `weir kernel` and `weir sliq` read parameters that have no place in a lab.
pub(crate) fn within<'de, D, T>(deserializer: D, name: &str, range: RangeInclusive<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialOrd + Display,
{
    weir_base::within(deserializer, range).map_err(|error| D::Error::custom(format!("{name}: {error}")))
}
