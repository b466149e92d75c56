//! ECN codepoints of the IP header (RFC 3168, section 5; RFC 9331 for ECT(1)), and DSCPs (RFC 2474).

use core::fmt;
use core::str::FromStr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The two ECN bits of an IP header.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a drop is the only congestion signal.
    #[default]
    #[serde(alias = "off")]
    NotEct = 0,
    /// ECN-capable, low-latency service (RFC 9331).
    #[serde(alias = "ect(1)")]
    Ect1 = 1,
    /// ECN-capable, classic.
    #[serde(alias = "ect(0)")]
    Ect0 = 2,
    /// Congestion experienced: the packet is marked.
    Ce = 3,
}

/// All codepoints in the order of their bits: the element at `c as usize` is `c`.
pub const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

impl Ecn {
    /// The codepoint in the two low bits of a TOS or traffic-class byte.
    pub fn from_bits(bits: u8) -> Ecn {
        CODEPOINTS[(bits & 3) as usize]
    }

    /// Whether a queue may mark this packet instead of dropping it.
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// The name used in records and reports: `not-ect`, `ect1`, `ect0`, `ce`.
    pub fn name(self) -> &'static str {
        ["not-ect", "ect1", "ect0", "ce"][self as usize]
    }
}

/// The six DSCP bits of an IP header (RFC 2474): how a network is asked to treat a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dscp(u8);

/// Names of DSCPs: class selectors (RFC 2474), assured forwarding (RFC 2597), expedited forwarding (RFC 3246), voice admit (RFC 5865) and
/// lower effort (RFC 8622). `DF` and `BE` are other names of `CS0`.
const NAMES: [(&str, u8); 25] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
    ("DF", 0),
    ("BE", 0),
];

impl Dscp {
    /// A DSCP by its number.
    ///
    /// # Errors
    /// The number is above 63.
    pub fn new(number: u8) -> Result<Dscp, String> {
        if number < 64 {
            return Ok(Dscp(number));
        }
        Err(format!("{number} is no DSCP: they are names such as EF, or numbers from 0 to 63"))
    }

    /// The DSCP in a TOS or traffic-class byte.
    pub fn from_bits(bits: u8) -> Dscp {
        Dscp(bits >> 2)
    }

    /// Its number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// The TOS or traffic-class byte of a packet with this DSCP and this codepoint.
    pub fn with(self, ecn: Ecn) -> u8 {
        self.0 << 2 | ecn as u8
    }

    /// Whether it asks for nothing.
    pub fn is_default(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for Dscp {
    type Err = String;

    /// Reads a name, in letters of either case, or a number.
    fn from_str(text: &str) -> Result<Dscp, String> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        match named.map(|(_, number)| *number).or_else(|| text.parse().ok()) {
            Some(number) => Dscp::new(number),
            None => Err(format!(
                "`{text}` is no DSCP: they are names such as EF, CS1 or AF41, or numbers from 0 to 63"
            )),
        }
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dscp, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP: a name such as \"EF\", or a number from 0 to 63")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Dscp, E> {
                Dscp::new(u8::try_from(number).unwrap_or(u8::MAX)).map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Dscp, E> {
                self.visit_u64(u64::try_from(number).unwrap_or(u64::MAX))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A DSCP: a name (\"EF\", \"CS1\", \"AF41\"), or a number from 0 to 63.",
            "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0, "maximum": 63 }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read_and_written() {
        // RFC 3246: EF is 101110. RFC 2597: AF41 is 100010. RFC 8622: LE is 000001.
        for (text, number, name) in [
            ("EF", 0b10_1110, "EF"),
            ("af41", 0b10_0010, "AF41"),
            ("le", 1, "LE"),
            ("be", 0, "CS0"),
            ("7", 7, "7"),
            ("46", 46, "EF"),
        ] {
            let dscp: Dscp = text.parse().unwrap();
            assert_eq!((dscp.get(), dscp.to_string().as_str()), (number, name));
        }
        for text in ["64", "256", "-1", "XF", ""] {
            assert!(text.parse::<Dscp>().is_err(), "{text}");
        }
        assert_eq!(serde_json::from_str::<Dscp>("46").unwrap(), "EF".parse().unwrap());
        assert!(
            serde_json::from_str::<Dscp>("300").unwrap_err().to_string().contains("numbers from 0 to 63")
        );
    }

    #[test]
    fn dscp_and_codepoint_share_a_byte() {
        let ef: Dscp = "EF".parse().unwrap();
        // RFC 3246's codepoint before ECT(0): 0xB8 and 2.
        assert_eq!((ef.with(Ecn::NotEct), ef.with(Ecn::Ect0)), (0xB8, 0xBA));
        assert_eq!((Dscp::from_bits(0xBA), Ecn::from_bits(0xBA)), (ef, Ecn::Ect0));
    }
}
