//! What an administrator says of an aggregation point: which applications may use it, from where to where and on which
//! ports. Whoever is not named is denied.
//!
//! ```
//! let text = r#"
//!     [[application]]
//!     id = 1
//!     name = "immersion"
//!     local = ["10.1.0.0/16"]
//!     local_ports = "9000-9100"
//!     remote = ["10.2.0.0/16", "2001:db8::/32"]
//!     remote_ports = 9000
//!     estimator = "rap"
//! "#;
//! let config = weir_coord::Config::from_toml(text).unwrap();
//! assert_eq!(config.application[0].flows, 128);
//! ```

use crate::seal::Key;
use crate::{estimator, filter, header};
use core::net::IpAddr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use weir_base::Span;

/// An aggregation point's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The applications that may use it; others pass untouched.
    pub application: Vec<Application>,
    /// Key that is shared with the other AP, 32 hexadecimal digits. With it, every header is of version 2 and sealed.
    #[schemars(with = "Option<String>")]
    pub peer_key: Option<Key>,
    /// How long a flow and what it wrote are kept after its last packet. `FLOW.num` counts flows until then. The source
    /// gives no value.
    pub flow_lifetime: Span,
    /// How long what was measured for an application is kept after its last packet.
    pub application_lifetime: Span,
    /// Over how long a loss fraction is taken. The source gives no value.
    pub loss_interval: Span,
    /// Packets a second that each application may have reflected.
    pub reflections_per_second: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            application: Vec::new(),
            peer_key: None,
            flow_lifetime: Span::from_secs(5),
            application_lifetime: Span::from_secs(60),
            loss_interval: Span::from_secs(1),
            reflections_per_second: 1000,
        }
    }
}

/// An application that may use the aggregation point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its number in the header (cid), 0 to 31.
    #[serde(deserialize_with = "within::<0, 31, _>")]
    #[schemars(range(max = 31))]
    pub id: u8,
    /// Its name in counters and reports.
    pub name: String,
    /// Addresses of its endpoints at this site, as prefixes.
    pub local: Vec<Prefix>,
    /// UDP ports of its endpoints at this site.
    pub local_ports: Ports,
    /// Addresses of its endpoints at the other site, as prefixes.
    pub remote: Vec<Prefix>,
    /// UDP ports of its endpoints at the other site.
    pub remote_ports: Ports,
    /// How many flows it may have, 1 to 128; their ids are below that.
    #[serde(default = "all_flows", deserialize_with = "within::<1, 128, _>")]
    #[schemars(range(min = 1, max = 128))]
    pub flows: u8,
    /// Key that is shared with its endpoints, 32 hexadecimal digits. With it, every header is of version 2 and sealed.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub key: Option<Key>,
    /// How the rate of a flowshare is estimated.
    #[serde(default = "tfrc")]
    pub estimator: estimator::Config,
    /// How the estimator's packets are chosen.
    #[serde(default)]
    pub filter: filter::Config,
}

/// How an application's path is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The estimator of a flowshare.
    pub estimator: estimator::Config,
    /// The filter in front of it.
    pub filter: filter::Config,
}

impl Default for Measurement {
    fn default() -> Measurement {
        Measurement { estimator: tfrc(), filter: filter::Config::default() }
    }
}

const fn all_flows() -> u8 {
    header::FLOWS as u8
}

fn tfrc() -> estimator::Config {
    estimator::Config::Tfrc(estimator::TfrcConfig::default())
}

fn within<'de, const LOW: u8, const HIGH: u8, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let number = i64::deserialize(deserializer)?;
    match u8::try_from(number) {
        Ok(small) if (LOW..=HIGH).contains(&small) => Ok(small),
        _ => Err(D::Error::custom(format!("{number} is not a number from {LOW} to {HIGH}"))),
    }
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Line and column, from 1, where the text says it.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that can be said.
    pub help: Option<String>,
}

impl ConfigError {
    fn new(message: String, help: &str) -> ConfigError {
        ConfigError { place: None, message, help: Some(help.into()) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// What is wrong and where, with what would be right.
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        let config: Config = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or(text);
                let line_starts = before.rfind('\n').map_or(0, |newline| newline + 1);
                (before.matches('\n').count() + 1, before[line_starts..].chars().count() + 1)
            });
            let help = nearest(error.message()).map(|name| format!("did you mean `{name}`?"));
            ConfigError { place, message: error.message().trim().to_string(), help }
        })?;
        config.check()?;
        Ok(config)
    }

    /// Sees to it that values fit each other and their ranges.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let applications = &self.application;
        for (n, application) in applications.iter().enumerate() {
            if let Some(other) = applications[..n].iter().find(|other| other.id == application.id) {
                let Application { id, name, .. } = application;
                let message = format!("applications `{}` and `{name}` both have the id {id}", other.name);
                return Err(ConfigError::new(message, "give each an id of its own, 0 to 31"));
            }
            application.check()?;
        }
        for (name, span) in [
            ("flow_lifetime", self.flow_lifetime),
            ("application_lifetime", self.application_lifetime),
            ("loss_interval", self.loss_interval),
        ] {
            if span.is_zero() {
                return Err(ConfigError::new(format!("`{name}` is zero"), "write a time such as \"5 s\""));
            }
        }
        Ok(())
    }
}

impl Application {
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String, help: &str| {
            Err(ConfigError::new(format!("application `{}`: {what}", self.name), help))
        };
        if usize::from(self.id) >= header::APPLICATIONS {
            return wrong(format!("id {} does not fit the header", self.id), "ids are 0 to 31");
        }
        if !(1..=header::FLOWS).contains(&self.flows.into()) {
            return wrong(format!("{} flows do not fit the header", self.flows), "write 1 to 128");
        }
        for (name, prefixes) in [("local", &self.local), ("remote", &self.remote)] {
            if prefixes.is_empty() {
                let help = "name at least one prefix such as \"10.1.0.0/16\"";
                return wrong(format!("`{name}` is empty, so no packet is ever the application's"), help);
            }
        }
        let ranges = match &self.estimator {
            estimator::Config::Tfrc(tfrc) => vec![
                ("estimator.packets_acked", tfrc.packets_acked.into(), 1.0, 2.0),
                ("estimator.timeout_rtts", tfrc.timeout_rtts, 1.0, 100.0),
            ],
            estimator::Config::Rap(rap) => vec![
                ("estimator.decrease", rap.decrease, 0.1, 0.9),
                ("estimator.fast_weight", rap.fast_weight, 0.001, 1.0),
                ("estimator.slow_weight", rap.slow_weight, 0.001, 1.0),
            ],
        };
        let averaging = ("filter.averaging_rtts", self.filter.averaging_rtts, 0.01, 100.0);
        for (name, value, least, most) in ranges.into_iter().chain([averaging]) {
            // Not a number is in no range.
            if !(least..=most).contains(&value) {
                return wrong(format!("`{name}` is {value}"), &format!("write {least} to {most}"));
            }
        }
        Ok(())
    }

    /// How its path is measured.
    pub fn measurement(&self) -> Measurement {
        Measurement { estimator: self.estimator.clone(), filter: self.filter.clone() }
    }
}

/// The name nearest to the unknown one in an error of serde's (`unknown field `x`, expected one of `a`, `b``).
fn nearest(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let wrong = message.starts_with("unknown").then(|| names.next())??;
    let (distance, name) = names.map(|name| (strsim::damerau_levenshtein(wrong, name), name)).min()?;
    (distance <= 3).then(|| name.to_string())
}

/// A prefix of addresses, in text `10.1.0.0/16`, `2001:db8::/32` or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// The bits of an address, first bit of the address first, and how many there are.
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

    /// Whether a port is one of them.
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
        let wrong = || format!("\"{text}\" is no range of ports; write 9000 or \"9000-9100\"");
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

    const GOOD: &str = r#"
peer_key = "000102030405060708090a0b0c0d0e0f"
flow_lifetime = "2 s"

[[application]]
id = 3
name = "array"
local = ["10.1.0.0/16"]
local_ports = "9000-9100"
remote = ["10.2.3.4"]
remote_ports = 9000
estimator = { kind = "tfrc", variant = "dissertation", default_rate = "2 Mbit/s" }
filter = { enabled = false }
"#;

    fn error(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Config::from_toml(&GOOD.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = Config::from_toml(GOOD).unwrap();
        let application = &config.application[0];
        assert_eq!((application.id, application.flows), (3, 128));
        assert_eq!(application.remote[0].to_string(), "10.2.3.4/32");
        assert!(application.local_ports.contains(9100) && !application.local_ports.contains(9101));
        assert_eq!(config.flow_lifetime, Span::from_secs(2));
        assert!(config.peer_key.is_some() && !application.filter.enabled);
        assert_eq!(application.estimator.name(), "tfrc");
    }

    #[test]
    fn an_error_says_where_what_and_what_would_be_right() {
        assert_eq!(
            error("local_ports", "locl_ports"),
            "line 9, column 1: unknown field `locl_ports`, expected one of `id`, `name`, `local`, `local_ports`, \
             `remote`, `remote_ports`, `flows`, `key`, `estimator`, `filter`; did you mean `local_ports`?"
        );
        assert_eq!(error("id = 3", "id = 32"), "line 6, column 6: 32 is not a number from 0 to 31");
        assert_eq!(
            error("10.1.0.0/16", "10.1.2.0/16"),
            "line 8, column 9: \"10.1.2.0/16\" has bits behind its prefix; write a prefix such as \"10.1.0.0/16\", \
             \"2001:db8::/32\" or one address"
        );
        assert_eq!(
            error("\"9000-9100\"", "\"9100-9000\""),
            "line 9, column 15: \"9100-9000\" is no range of ports; write 9000 or \"9000-9100\""
        );
        assert_eq!(
            error("[\"10.1.0.0/16\"]", "[]"),
            "application `array`: `local` is empty, so no packet is ever the application's; name at least one prefix \
             such as \"10.1.0.0/16\""
        );
        assert!(error("\"2 s\"", "\"0 s\"").contains("`flow_lifetime` is zero"));
        assert!(error("0e0f\"", "0e0\"").contains("32 hexadecimal digits"));
        assert!(error("default_rate", "timeout_rtts = 0.5, default_rate").contains("write 1 to 100"));
    }

    #[test]
    fn two_applications_do_not_share_an_id() {
        let second = GOOD.split_once("[[").unwrap().1.replace("array", "other");
        let error = Config::from_toml(&format!("{GOOD}\n[[{second}")).unwrap_err();
        assert_eq!(error.message, "applications `array` and `other` both have the id 3");
    }

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

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = Config::from_toml(&text);
        }
    }
}
