//! Port ranges in a configuration.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A port or a range of ports, in text `9000` or `"9000-9100"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// Every port.
    pub const ALL: Ports = Ports { first: 0, last: u16::MAX };

    /// The ports from `first` to `last`; `None` if `first` is above `last`.
    pub const fn new(first: u16, last: u16) -> Option<Ports> {
        if first <= last { Some(Ports { first, last }) } else { None }
    }

    /// Whether a port is in the range.
    pub fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for Ports {
    type Err = String;
    fn from_str(text: &str) -> Result<Ports, String> {
        let wrong = || format!("\"{text}\" is not a range of ports; write 9000 or \"9000-9100\"");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |digits: &str| digits.trim().parse::<u16>().map_err(|_| wrong());
        let (first, last) = (port(first)?, port(last)?);
        (first <= last).then_some(Ports { first, last }).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ports, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a port or a range of ports such as \"9000-9100\"")]
        enum Written {
            Number(u16),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(port) => Ok(Ports { first: port, last: port }),
            Written::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Ports {
    fn schema_name() -> Cow<'static, str> {
        "Ports".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "description": "A port or a range of ports.",
            "examples": ["9000-9100", 9000]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ports_read_back_as_they_print(p in any::<u16>(), q in any::<u16>()) {
            let ports = Ports { first: p.min(q), last: p.max(q) };
            prop_assert_eq!(ports.to_string().parse(), Ok(ports));
        }
    }
}
