//! The configuration of an aggregation point: the applications that may use it, with their addresses and ports. Packets of
//! other applications pass the aggregation point without coordination.
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
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::fmt;
pub use weir_base::Ports;
pub use weir_base::Prefix;
use weir_base::{Span, within};

/// An aggregation point's configuration. `A` is the type of an application: in a lab it has no addresses, since the lab knows
/// its endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, bound(deserialize = "A: Deserialize<'de>"))]
pub struct Config<A = Application> {
    /// The applications that may use the aggregation point. Packets of other applications pass unchanged.
    #[schemars(extend("examples" = [[{ "id": 1, "estimator": "tfrc" }]]))]
    pub application: Vec<A>,
    /// Key shared with the other AP, 32 hexadecimal digits. With a key, every header is of version 2 and sealed.
    #[schemars(with = "Option<String>", example = &"00112233445566778899aabbccddeeff")]
    pub peer_key: Option<Key>,
    /// Time for which a flow and its cells are kept after its last packet. `FLOW.num` counts the flow until then. The source
    /// gives no value.
    pub flow_lifetime: Span,
    /// Time for which the measurements of an application are kept after its last packet.
    pub application_lifetime: Span,
    /// Length of the intervals over which loss fractions are computed. The source gives no value.
    pub loss_interval: Span,
    /// Largest number of packets a second that the aggregation point reflects for each application.
    pub reflections_per_second: u32,
}

impl<A> Default for Config<A> {
    fn default() -> Config<A> {
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
    /// The application's number in the header (cid), 0 to 31.
    #[serde(deserialize_with = "application_id")]
    #[schemars(range(max = 31))]
    pub id: u8,
    /// The application's name in counters and reports.
    pub name: String,
    /// Addresses of the application's endpoints at this site, as prefixes.
    pub local: Vec<Prefix>,
    /// UDP ports of the application's endpoints at this site.
    pub local_ports: Ports,
    /// Addresses of the application's endpoints at the other site, as prefixes.
    pub remote: Vec<Prefix>,
    /// UDP ports of the application's endpoints at the other site.
    pub remote_ports: Ports,
    /// Largest number of flows of the application, 1 to 128. Flow ids are below this number.
    #[serde(default = "all_flows", deserialize_with = "flows")]
    #[schemars(range(min = 1, max = 128))]
    pub flows: u8,
    /// Key shared with the application's endpoints, 32 hexadecimal digits. With a key, every header is of version 2 and sealed.
    #[serde(default)]
    #[schemars(with = "Option<String>", example = &"00112233445566778899aabbccddeeff")]
    pub key: Option<Key>,
    /// Estimator of the rate of one flowshare.
    #[serde(default = "tfrc")]
    pub estimator: estimator::Config,
    /// Filter that chooses the packets for the estimator.
    #[serde(default)]
    pub filter: filter::Config,
}

/// Estimator and filter of an application's path.
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

fn application_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    byte_within(deserializer, 0..=31)
}

fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    byte_within(deserializer, 1..=header::FLOWS as i64)
}

/// Reads a larger type first, so that an error names the range for numbers that fit in no byte too.
fn byte_within<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: std::ops::RangeInclusive<i64>,
) -> Result<u8, D::Error> {
    u8::try_from(within(deserializer, range)?).map_err(D::Error::custom)
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Line and column of the error in the text, from 1; `None` if it has no single place.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// A correct value or name; `None` if there is no suggestion.
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

impl<A> Config<A> {
    /// The same configuration with other applications.
    pub fn with<B>(&self, application: Vec<B>) -> Config<B> {
        let Config {
            application: _,
            peer_key,
            flow_lifetime,
            application_lifetime,
            loss_interval,
            reflections_per_second,
        } = *self;
        Config {
            application,
            peer_key,
            flow_lifetime,
            application_lifetime,
            loss_interval,
            reflections_per_second,
        }
    }
}

impl Config {
    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// [`ConfigError`] with the place, the mistake and a suggestion.
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

    /// Checks that values are within their ranges and consistent with each other.
    ///
    /// # Errors
    /// The first value that is not.
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
                return wrong(format!("`{name}` is empty, so no packet belongs to the application"), help);
            }
        }
        let ranges = match &self.estimator {
            estimator::Config::Tfrc(tfrc) => {
                let acked = ("estimator.packets_acked", tfrc.packets_acked.map(f64::from), 1.0, 2.0);
                let of_reno = [acked, ("estimator.timeout_rtts", tfrc.timeout_rtts, 1.0, 100.0)];
                let given =
                    |(name, value, least, most): (_, Option<f64>, _, _)| Some((name, value?, least, most));
                let given: Vec<_> = of_reno.into_iter().filter_map(given).collect();
                if let (Some((name, ..)), estimator::Tcp::Rack) = (given.first(), tfrc.tcp) {
                    let what = format!("the equation for `tcp = \"rack\"` does not contain `{name}`");
                    return wrong(what, "remove it, or write tcp = \"reno\"");
                }
                given
            }
            estimator::Config::Rap(rap) => vec![
                ("estimator.decrease", rap.decrease, 0.1, 0.9),
                ("estimator.fast_weight", rap.fast_weight, 0.001, 1.0),
                ("estimator.slow_weight", rap.slow_weight, 0.001, 1.0),
            ],
        };
        let averaging = ("filter.averaging_rtts", self.filter.averaging_rtts, 0.01, 100.0);
        for (name, value, least, most) in ranges.into_iter().chain([averaging]) {
            // NaN is in no range.
            if !(least..=most).contains(&value) {
                return wrong(format!("`{name}` is {value}"), &format!("write {least} to {most}"));
            }
        }
        Ok(())
    }

    /// Estimator and filter of its path.
    pub fn measurement(&self) -> Measurement {
        Measurement { estimator: self.estimator.clone(), filter: self.filter.clone() }
    }
}

/// The expected name nearest to the unknown one in an error of serde (`unknown field `x`, expected one of `a`, `b``); `None`
/// if no name is within three edits.
fn nearest(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let wrong = message.starts_with("unknown").then(|| names.next())??;
    let (distance, name) = names.map(|name| (strsim::damerau_levenshtein(wrong, name), name)).min()?;
    (distance <= 3).then(|| name.to_string())
}

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
        assert_eq!(application.remote[0].to_string(), "10.2.3.4");
        assert!(application.local_ports.contains(9100) && !application.local_ports.contains(9101));
        assert_eq!(config.flow_lifetime, Span::from_secs(2));
        assert!(config.peer_key.is_some() && !application.filter.enabled);
        assert_eq!(application.estimator.name(), "tfrc");
    }

    #[test]
    fn an_error_gives_the_place_the_fault_and_a_correction() {
        assert_eq!(
            error("local_ports", "locl_ports"),
            "line 9, column 1: unknown field `locl_ports`, expected one of `id`, `name`, `local`, `local_ports`, \
             `remote`, `remote_ports`, `flows`, `key`, `estimator`, `filter`; did you mean `local_ports`?"
        );
        assert_eq!(error("id = 3", "id = 32"), "line 6, column 6: 32 is out of range; write 0 to 31");
        assert_eq!(
            error("10.1.0.0/16", "10.1.2.0/16"),
            "line 8, column 9: `10.1.2.0/16` has bits behind its prefix; `10.1.0.0/16` was probably meant"
        );
        assert_eq!(
            error("\"9000-9100\"", "\"9100-9000\""),
            "line 9, column 15: \"9100-9000\" is not a range of ports; write 9000 or \"9000-9100\""
        );
        assert_eq!(
            error("[\"10.1.0.0/16\"]", "[]"),
            "application `array`: `local` is empty, so no packet belongs to the application; name at least one prefix \
             such as \"10.1.0.0/16\""
        );
        assert!(error("\"2 s\"", "\"0 s\"").contains("`flow_lifetime` is zero"));
        assert!(error("0e0f\"", "0e0\"").contains("32 hexadecimal digits"));
        assert!(error("default_rate", "timeout_rtts = 0.5, default_rate").contains("write 1 to 100"));
        for key in ["packets_acked = 1", "timeout_rtts = 4.0"] {
            assert_eq!(
                error("default_rate", &format!("tcp = \"rack\", {key}, default_rate")),
                format!(
                    "application `array`: the equation for `tcp = \"rack\"` does not contain `estimator.{}`; remove it, or \
                     write tcp = \"reno\"",
                    key.split(' ').next().unwrap()
                )
            );
        }
    }

    #[test]
    fn two_applications_do_not_share_an_id() {
        let second = GOOD.split_once("[[").unwrap().1.replace("array", "other");
        let error = Config::from_toml(&format!("{GOOD}\n[[{second}")).unwrap_err();
        assert_eq!(error.message, "applications `array` and `other` both have the id 3");
    }

    proptest! {
        /// A good text damaged at one place is either refused or makes an aggregation point.
        #[test]
        fn every_accepted_configuration_makes_an_aggregation_point(
            at in 0..GOOD.len(), cut in 0usize..12, put in r#"[-0-9a-z."\[\]{}=, \n]{0,12}"#,
        ) {
            let end = (at + cut).min(GOOD.len());
            let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
            if let Ok(config) = Config::from_toml(&text) {
                prop_assert!(crate::Point::new(&config, 1, 1).is_ok());
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = Config::from_toml(&text);
        }
    }
}
