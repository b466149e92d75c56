//! `overlay` of a traffic group: whether and how the overlay carries its flows. Doc comments here are the user's documentation.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_base::{Rate, Span};
use weir_overlay::admission;

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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Use {
    /// Priority: flows share a bottleneck in proportion to it.
    pub(crate) priority: f64,
    /// The most that each flow may send.
    pub(crate) cap: Rate,
    /// Shape of the utility in seconds per bit; its inverse is subtracted from the rate.
    pub(crate) shape: f64,
    /// The time within which each packet must arrive; by default it need not.
    pub(crate) deadline: Option<Span>,
    /// "control", "sensitive" or "normal"; by default sensitive if there is a deadline. Control has no deadline.
    pub(crate) class: Option<Class>,
    /// Name of the multicast group; by default the traffic group's own. Traffic groups of one name share its bin, and each names the
    /// members that its packets are for.
    pub(crate) group: Option<String>,
}

impl Default for Use {
    fn default() -> Use {
        let admission::Config { priority, cap, shape } = admission::Config::default();
        Use { priority, cap, shape, deadline: None, class: None, group: None }
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
                f.write_str("true, false, or a table of `priority`, `cap`, `deadline` and `class`")
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
