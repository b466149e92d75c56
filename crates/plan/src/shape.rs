//! The sections of networks beyond one bottleneck, as they are written: a chain, a parking lot, a star, a graph. As in
//! [`crate::file`], doc comments here are the user's documentation.

use crate::bottleneck::Bottleneck;
use crate::reader::Beside;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use std::borrow::Cow;
use std::collections::BTreeMap;
use weir_base::Span;

/// Several links in a row, between routers `n0`, `n1` and so on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chain {
    /// RTT from which `bdp` is computed on all its links.
    pub(crate) base_rtt: Option<Span>,
    /// The links by name, from left to right.
    #[allow(dead_code, reason = "read one by one, in the order of the file")]
    pub(crate) links: BTreeMap<String, Bottleneck>,
}

/// Any network. Between two places packets take the path of least delay, by the delays at the start of the run, unless their
/// group has `via`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Graph {
    /// Names of the nodes that forward packets.
    #[serde(default)]
    pub(crate) routers: Vec<String>,
    /// Names of the nodes that forward nothing, where packets begin and end. A host with several links is multihomed: a group
    /// that begins there chooses among them with `via`.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// RTT from which `bdp` is computed on all its links.
    pub(crate) base_rtt: Option<Span>,
    /// The links by name. The direction from `from` to `to` has the link's name and is its `down`; the other is called NAME-up.
    #[allow(dead_code, reason = "read one by one, in the order of the file")]
    pub(crate) links: BTreeMap<String, GraphLink>,
}

/// The ends of a graph's link. The link's own settings stand beside them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Ends {
    /// The router or host where it begins.
    #[schemars(example = &"r1")]
    pub(crate) from: String,
    /// The router or host where it ends.
    #[schemars(example = &"r2")]
    pub(crate) to: String,
    /// Whether it leads from `from` to `to` only; by default both ways.
    #[serde(default)]
    pub(crate) one_way: bool,
}

/// Several equal links in a row. The traffic of a group passes all of them, those between its `from` and `to`, or the one that
/// its `hop` numbers. Routers are `n0`, `n1` and so on, links `hop1`, `hop2` and so on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Row {
    /// Number of links.
    pub(crate) bottlenecks: u64,
    /// RTT from which `bdp` is computed on all its links.
    pub(crate) base_rtt: Option<Span>,
}

/// Equal links from a router `hub` to routers `leaf1`, `leaf2` and so on; the links are `arm1`, `arm2` and so on, down from the
/// hub.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Arms {
    /// Number of links.
    pub(crate) arms: u64,
    /// RTT from which `bdp` is computed on all its links.
    pub(crate) base_rtt: Option<Span>,
}

impl Beside for Ends {
    const OWN: &'static [&'static str] = &["from", "to", "one_way"];
}

impl Beside for Row {
    const OWN: &'static [&'static str] = &["bottlenecks", "base_rtt"];
}

impl Beside for Arms {
    const OWN: &'static [&'static str] = &["arms", "base_rtt"];
}

/// [`Ends`] and a link, for the schema. It is read in two parts, since serde's own way to join them loses places.
#[derive(Debug, Clone)]
pub(crate) struct GraphLink;

impl<'de> Deserialize<'de> for GraphLink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GraphLink, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| GraphLink)
    }
}

/// [`Row`] and its links, for the schema.
pub(crate) struct ParkingLot;

/// [`Arms`] and its links, for the schema.
pub(crate) struct Star;

impl JsonSchema for GraphLink {
    fn schema_name() -> Cow<'static, str> {
        "GraphLink".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        beside_link::<Ends>(generator)
    }
}

impl JsonSchema for ParkingLot {
    fn schema_name() -> Cow<'static, str> {
        "ParkingLot".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        beside_link::<Row>(generator)
    }
}

impl JsonSchema for Star {
    fn schema_name() -> Cow<'static, str> {
        "Star".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        beside_link::<Arms>(generator)
    }
}

/// The schema of a section with a link's keys beside its own; no others.
fn beside_link<T: Beside>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    // A link's own schema is made once, as a definition.
    generator.subschema_for::<Bottleneck>();
    let link = &generator.definitions()[&*Bottleneck::schema_name()];
    let own = schema.ensure_object();
    if let (Some(properties), Some(more)) =
        (own.get_mut("properties").and_then(|p| p.as_object_mut()), link["properties"].as_object())
    {
        properties.extend(more.clone());
    }
    if let (Some(required), Some(more)) =
        (own.get_mut("required").and_then(|r| r.as_array_mut()), link["required"].as_array())
    {
        required.extend(more.clone());
    }
    own.insert("additionalProperties".into(), false.into());
    schema
}
