//! Prefixes of IP addresses, in text `10.1.0.0/16`, `2001:db8::/32` or one address. `ipnet` computes with them. Unlike there, one address
//! is a prefix too, and bits behind a prefix are refused: they are a mistake more often than not.

use core::net::IpAddr;
use core::str::FromStr;
use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;
use std::fmt;

/// A prefix of IP addresses, with the bits behind it clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpNet);

/// A text that is no prefix; it says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixError(String);

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PrefixError {}

impl Prefix {
    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.0.network()
    }

    /// Length in bits.
    pub fn length(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether an address has this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Whether every address with the other prefix also has this prefix.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.0.contains(&other.0)
    }
}

impl From<IpAddr> for Prefix {
    /// The prefix that contains this address only.
    fn from(address: IpAddr) -> Prefix {
        Prefix(address.into())
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let unreadable = || {
            let like = "write it like 10.1.2.3, 10.1.0.0/16 or 2001:db8::/32";
            PrefixError(format!("`{text}` is not an address or a prefix; {like}"))
        };
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| unreadable())?;
        let Some(digits) = length else { return Ok(address.into()) };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let length: u8 = digits.parse().ok().filter(|_| is_number).ok_or_else(unreadable)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let given = IpNet::new(address, length)
            .map_err(|_| PrefixError(format!("`{text}`: a prefix of this kind has at most {most} bits")))?;
        let meant = Prefix(given.trunc());
        if meant.0 == given {
            Ok(meant)
        } else {
            Err(PrefixError(format!("`{text}` has bits behind its prefix; `{meant}` was probably meant")))
        }
    }
}

impl fmt::Display for Prefix {
    /// One address is written without its length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address())?;
        if self.length() < self.0.max_prefix_len() { write!(f, "/{}", self.length()) } else { Ok(()) }
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Prefix, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Prefix {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A prefix of addresses, or one address.",
            "examples": ["10.1.0.0/16", "2001:db8::/32"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes_are_read_as_they_are_written() {
        for text in ["10.1.2.3", "10.1.0.0/16", "0.0.0.0/0", "2001:db8::1", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3/32".parse::<Prefix>(), "10.1.2.3".parse());
        let all = |address: u32, length: u8| {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            let text = format!("{}/{length}", core::net::Ipv4Addr::from_bits(address & mask));
            let prefix: Prefix = text.parse().unwrap();
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
            assert!(prefix.contains(IpAddr::V4(address.into())), "{text} and {address:x}");
        };
        (0..=32).for_each(|length| {
            [0, 1, 0x0a01_0203, 0xdead_beef, u32::MAX].iter().for_each(|address| all(*address, length));
        });
    }

    #[test]
    fn an_invalid_prefix_is_refused_with_the_reason() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert!(
            error("10.1.2.3/16").contains("has bits behind its prefix; `10.1.0.0/16` was probably meant")
        );
        assert!(error("10.1.2.3/33").contains("at most 32 bits"));
        assert!(error("2001:db8::/129").contains("at most 128 bits"));
        for text in
            ["", "/", "10.1.2", "10.0.0/8", "10.1.2.3/", "10.1.2.3/-1", "10.0.0.0/+8", "10.1.2.3/999", "host"]
        {
            assert!(error(text).contains("is not an address"), "{text}");
        }
    }

    #[test]
    fn prefixes_contain_their_own_family_only() {
        let v4: Prefix = "0.0.0.0/0".parse().unwrap();
        let v6: Prefix = "2001:db8::/32".parse().unwrap();
        assert!(v4.contains("192.0.2.1".parse().unwrap()) && !v4.contains("2001:db8::1".parse().unwrap()));
        assert!(v6.contains("2001:db8::1".parse().unwrap()) && !v6.contains("2001:db9::1".parse().unwrap()));
    }

    #[test]
    fn a_prefix_covers_itself_and_longer_ones() {
        let covers = |one: &str, other: &str| one.parse::<Prefix>().unwrap().covers(&other.parse().unwrap());
        assert!(covers("10.2.0.0/16", "10.2.3.0/24") && covers("10.2.0.0/16", "10.2.0.0/16"));
        assert!(!covers("10.2.3.0/24", "10.2.0.0/16") && !covers("10.2.0.0/16", "10.3.0.0/24"));
        assert!(!covers("0.0.0.0/0", "::1"));
    }
}
