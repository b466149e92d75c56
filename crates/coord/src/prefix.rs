//! Address prefixes and port ranges in a configuration.

use core::net::IpAddr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An address prefix, in text `10.1.0.0/16`, `2001:db8::/32` or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// The bits of an address, left-aligned in 128 bits, and their number (32 or 128).
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl Prefix {
    /// Whether an address has this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((own, width), (other, other_width)) = (bits(self.address), bits(address));
        width == other_width && (self.length == 0 || (own ^ other) >> (128 - self.length) == 0)
    }

    /// Whether every address with the other prefix also has this prefix.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.length <= other.length && self.contains(other.address)
    }
}

impl From<IpAddr> for Prefix {
    /// The prefix that contains this address only.
    fn from(address: IpAddr) -> Prefix {
        Prefix { address, length: bits(address).1 }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Prefix, String> {
        let wrong = |what: &str| {
            format!(
                "\"{text}\" {what}; write a prefix such as \"10.1.0.0/16\", \"2001:db8::/32\" or one address"
            )
        };
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| wrong("has no IP address"))?;
        let (value, width) = bits(address);
        let length = match length {
            None => width,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|length| *length <= width)
                .ok_or_else(|| wrong("has too long a prefix"))?,
            Some(_) => return Err(wrong("has no prefix length")),
        };
        if length < 128 && value << length != 0 {
            return Err(wrong("has bits behind its prefix"));
        }
        Ok(Prefix { address, length })
    }
}

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

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Prefix, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
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

macro_rules! written_as_text {
    ($type:ident, $schema:tt) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

written_as_text!(Prefix, {
    "type": "string", "description": "A prefix of addresses, or one address.", "examples": ["10.1.0.0/16", "2001:db8::/32"]
});
written_as_text!(Ports, {
    "type": ["string", "integer"], "description": "A port or a range of ports.", "examples": ["9000-9100", 9000]
});

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_contain_their_own_family_only() {
        let v4: Prefix = "0.0.0.0/0".parse().unwrap();
        let v6: Prefix = "2001:db8::/32".parse().unwrap();
        assert!(v4.contains("192.0.2.1".parse().unwrap()) && !v4.contains("2001:db8::1".parse().unwrap()));
        assert!(v6.contains("2001:db8::1".parse().unwrap()) && !v6.contains("2001:db9::1".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::1/129", "", "10.0.0.0/+8"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_prefix_covers_itself_and_longer_ones() {
        let covers = |one: &str, other: &str| one.parse::<Prefix>().unwrap().covers(&other.parse().unwrap());
        assert!(covers("10.2.0.0/16", "10.2.3.0/24") && covers("10.2.0.0/16", "10.2.0.0/16"));
        assert!(!covers("10.2.3.0/24", "10.2.0.0/16") && !covers("10.2.0.0/16", "10.3.0.0/24"));
        assert!(!covers("0.0.0.0/0", "::1"));
    }

    proptest! {
        #[test]
        fn prefixes_and_ports_read_back_as_they_print(a in any::<u32>(), length in 0u8..=32, p in any::<u16>(), q in any::<u16>()) {
            let mask = if length == 0 { 0 } else { u32::MAX << (32 - length) };
            let prefix = Prefix { address: IpAddr::V4((a & mask).into()), length };
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            prop_assert!(prefix.contains(IpAddr::V4(a.into())));
            let ports = Ports { first: p.min(q), last: p.max(q) };
            prop_assert_eq!(ports.to_string().parse(), Ok(ports));
        }
    }
}
