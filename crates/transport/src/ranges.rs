//! Parameters that must lie in a range: a value of a lab outside its range is an error that names the range.

use serde::{Deserialize, Deserializer, de::Error};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Reads a value and checks that it lies in the range.
pub(crate) fn within<'de, T, D>(deserializer: D, range: RangeInclusive<T>) -> Result<T, D::Error>
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

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn parameters_out_of_range_are_refused_with_the_range() {
        let error = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
        for (text, range) in [
            (r#"{ "kind": "tfrc", "timeout_rtts": -1.0 }"#, "-1 is out of range; write 1 to 100"),
            (r#"{ "kind": "rap", "decrease": 1.5 }"#, "1.5 is out of range; write 0.1 to 0.9"),
            (r#"{ "kind": "rudp", "application": 32 }"#, "32 is out of range; write 0 to 31"),
            (r#"{ "kind": "rudp", "address": 250 }"#, "250 is out of range; write 0 to 249"),
        ] {
            assert!(error(text).contains(range), "{}", error(text));
        }
    }
}
