//! `overlay` of a traffic group: whether and how the overlay carries its flows. Doc comments here are the user's documentation.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_base::{Bytes, Rate, Span};
use weir_overlay::utility::{self, log};

/// Whether a packet waits behind others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// In the order of arrival.
    Normal,
    /// Before normal packets, the most urgent first.
    Sensitive,
    /// Before normal and sensitive packets, in the order of arrival: what a network's control says.
    Control,
}

/// How the overlay carries a group's flows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Use {
    /// The utility by which each flow is admitted (`weir list utilities`); by default "log". In its place `priority`, `cap` and `shape` of LOG
    /// may stand here.
    pub(crate) admit: Option<utility::Config>,
    /// Priority of LOG: flows share a bottleneck in proportion to it. Short for `admit = { kind = "log", priority = .. }`.
    pub(crate) priority: Option<f64>,
    /// The most that each flow may send, of LOG.
    pub(crate) cap: Option<Rate>,
    /// Shape of LOG in seconds per bit; its inverse is subtracted from the rate.
    pub(crate) shape: Option<f64>,
    /// The time within which each packet must arrive; by default it need not.
    pub(crate) deadline: Option<Span>,
    /// Each flow ends when so many bytes of its payload were admitted; by default at its time alone.
    pub(crate) size: Option<Bytes>,
    /// Name of a set of flows that are on together or not at all. Groups of one name are one set, which the planner of the node where they
    /// enter keeps together.
    #[schemars(example = &"NAME")]
    pub(crate) coupled: Option<String>,
    /// "control", "sensitive" or "normal"; by default sensitive if there is a deadline. Control has no deadline.
    pub(crate) class: Option<Class>,
    /// Name of the multicast group; by default the traffic group's own. Traffic groups of one name share its bin, and each names the
    /// members that its packets are for.
    #[schemars(example = &"viewers")]
    pub(crate) group: Option<String>,
}

impl Use {
    /// The utility, and those keys of the short form that stand beside `admit`.
    pub(crate) fn utility(&self) -> (utility::Config, Vec<&'static str>) {
        let given = [
            ("priority", self.priority.is_some()),
            ("cap", self.cap.is_some()),
            ("shape", self.shape.is_some()),
        ];
        if let Some(admit) = &self.admit {
            let beside = given.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key);
            return (admit.clone(), beside.collect());
        }
        let log::Config { priority, cap, shape } = log::Config::default();
        let log = log::Config {
            priority: self.priority.unwrap_or(priority),
            cap: self.cap.unwrap_or(cap),
            shape: self.shape.unwrap_or(shape),
        };
        (utility::Config::Log(log), Vec::new())
    }
}

/// Whether the overlay carries a group's flows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// With the defaults, or not at all.
    Whether(bool),
    /// In this way.
    As(Use),
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Choice, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Choice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a table of `admit`, `priority`, `cap`, `deadline` and others")
            }
            fn visit_bool<E: Error>(self, whether: bool) -> Result<Choice, E> {
                Ok(Choice::Whether(whether))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice, A::Error> {
                Use::deserialize(MapAccessDeserializer::new(map)).map(Choice::As)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "OverlayChoice".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Use>();
        schemars::json_schema!({ "anyOf": [{ "type": "boolean" }, table] })
    }
}
