//! `[run]`, as it is written: how each run goes. Doc comments here are the user's documentation.

use crate::probability::Probability;
use crate::run::Ip;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use weir_base::Span;
use weir_fabric::Outage;

/// How each run goes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timing {
    /// How long a run lasts.
    pub(crate) duration: Span,
    /// Time from the start of the run that metrics leave out; by default a fifth of the duration, and nothing if all
    /// traffic is transfers.
    pub(crate) warmup: Option<Span>,
    /// The lab's seed: every random number follows from it.
    pub(crate) seed: u64,
    /// How often each cell of the tree is run, each time with another seed.
    pub(crate) repeats: u32,
    /// Named parts of the run with metrics of their own, which claims can name (`in = "NAME"`): each from one time to another,
    /// counted from the start of the run, `["22 s", "30 s"]`, or from the `start` of a traffic group, `{ from = "2 s", to = "10
    /// s", of = "GROUP" }`.
    pub(crate) windows: BTreeMap<String, WindowTimes>,
    /// Length of a sample period of the records.
    pub(crate) sample: Span,
    /// Whether every packet is recorded.
    pub(crate) packets: bool,
    /// How RTT samples are taken: "segments" pairs each segment with the first acknowledgement that covers it, cumulative or
    /// selective; "acknowledgements" pairs each cumulative acknowledgement with the segment that it ends with, as Wireshark
    /// does.
    pub(crate) round_trips: weir_fabric::RoundTrips,
    /// Each flow starts later by a random time below this; "0 s" turns it off.
    pub(crate) start_jitter: Span,
    /// A sending host delays each packet by a random time below this, without reordering: "auto" is the time that the group's
    /// bottleneck needs for a packet; "0 s" turns it off.
    pub(crate) host_jitter: HostJitter,
    /// Times in which all hosts hold what they would send, as where other work has their processor: `[{ at = "10 s", for = "2 ms" }]`.
    /// Datagrams that are sent at exact times are not held. Live hosts have pauses of their own besides.
    pub(crate) host_pauses: Vec<Outage>,
    /// IP version of the hosts, 4 or 6, unless their group has its own.
    pub(crate) ip: Ip,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            duration: Span::from_secs(10),
            warmup: None,
            seed: 1,
            repeats: 1,
            windows: BTreeMap::new(),
            sample: Span::from_millis(100),
            packets: false,
            round_trips: weir_fabric::RoundTrips::default(),
            start_jitter: Span::from_millis(100),
            host_jitter: HostJitter::Auto,
            host_pauses: Vec::new(),
            ip: Ip::V4,
        }
    }
}

/// How long a sending host may hold a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HostJitter {
    /// One serialisation time of a packet at the group's bottleneck.
    Auto,
    /// Up to this long.
    Within(Span),
}

impl<'de> Deserialize<'de> for HostJitter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostJitter, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if text == "auto" {
            Ok(HostJitter::Auto)
        } else {
            text.parse().map(HostJitter::Within).map_err(D::Error::custom)
        }
    }
}

impl JsonSchema for HostJitter {
    fn schema_name() -> Cow<'static, str> {
        "HostJitter".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "examples": ["auto", "0 s", "1.2 ms"] })
    }
}

/// A window as a lab file has it: `["22 s", "30 s"]`, or a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WindowTimes {
    pub(crate) from: Span,
    pub(crate) to: Span,
    pub(crate) of: Option<String>,
    pub(crate) tolerance: Option<Probability>,
}

/// A window with more than its two times.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Detailed {
    /// Where it begins: from the start of the run, or of the group that `of` names.
    from: Span,
    /// Where it ends, likewise.
    to: Span,
    /// The traffic group from whose `start` the two times count; by default they count from the start of the run.
    #[schemars(example = &"bulk")]
    of: Option<String>,
    /// How close one-second means must be to their final value to count as settled (`settling_time_s`): a share of that value,
    /// by default "10 %".
    tolerance: Option<Probability>,
}

impl<'de> Deserialize<'de> for WindowTimes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WindowTimes, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = WindowTimes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "two times, for example [\"22 s\", \"30 s\"], or a table of `from`, `to` and `of`",
                )
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WindowTimes, A::Error> {
                let mut times = Vec::new();
                while let Some(time) = seq.next_element::<Span>()? {
                    times.push(time);
                }
                match times.as_slice() {
                    [from, to] => Ok(WindowTimes { from: *from, to: *to, of: None, tolerance: None }),
                    _ => Err(A::Error::custom(format!(
                        "a window has two times, but this one has {}; write for example [\"22 s\", \"30 s\"]",
                        times.len()
                    ))),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WindowTimes, A::Error> {
                let Detailed { from, to, of, tolerance } =
                    Detailed::deserialize(MapAccessDeserializer::new(map))?;
                Ok(WindowTimes { from, to, of, tolerance })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for WindowTimes {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, detailed) = (generator.subschema_for::<Span>(), generator.subschema_for::<Detailed>());
        schemars::json_schema!({
            "description": "A part of a run, from one time to another: two times, or a table.",
            "anyOf": [{ "type": "array", "items": time, "minItems": 2, "maxItems": 2 }, detailed]
        })
    }
}
