//! `[traffic.NAME]` as a lab file writes it. Doc comments here are the user's documentation.

use crate::carriage::Choice;
use crate::each::{Places, Times};
use crate::per_direction::Direction;
use crate::run::Ip;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;
use weir_base::{Bytes, Clock, Dscp, Span};
use weir_control::Codepoint;
use weir_endpoint::Buffer;

/// A traffic group: flows of one kind between a pair of hosts of their own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Traffic {
    /// How many flows; by default as many as the longest list of `rtt`, `start` and `to` has entries, or one. Where flows arrive at
    /// random, how many sources they come from in equal parts.
    pub(crate) flows: Option<u64>,
    /// What the application does.
    pub(crate) workload: weir_workload::Config,
    /// Transport of its data (`weir list transports`); by default TCP for streams and UDP for datagrams.
    pub(crate) transport: Option<weir_transport::Config>,
    /// Congestion controller; by default "cubic".
    pub(crate) cc: Option<weir_control::Config>,
    /// Whether TCP negotiates ECN, and with which codepoint: `true` takes the controller's own, "ect0" or "ect1" another. By
    /// default true if `feedback` is not classic, as DCTCP and Prague need it. The live engine's kernel sends ECT(0); for
    /// "ect1" packets are relabelled as they leave their host.
    pub(crate) ecn: Option<EcnChoice>,
    /// DSCP of its packets in both directions: a name such as "EF", or a number; by default "CS0". Bands of queues may select by it. A
    /// command sets its own.
    pub(crate) dscp: Dscp,
    /// How the receiver reports marks: "classic" (RFC 3168), "dctcp" (RFC 8257) or "accurate" (RFC 9768); by default what the
    /// controller needs.
    pub(crate) feedback: Option<weir_control::Feedback>,
    /// Whether TCP scales its windows (RFC 7323); by default true. Without it no window is above 65,535 bytes.
    pub(crate) window_scaling: Option<bool>,
    /// Whether TCP's acknowledgements are selective (RFC 2018); by default true. Without it losses are found and repaired by
    /// duplicate acknowledgements alone (NewReno, RFC 6582).
    pub(crate) sack: Option<bool>,
    /// Lower bound of the variance term in TCP's retransmission timeout, which is the smoothed round-trip time plus this term;
    /// by default 200 ms, as in Linux.
    pub(crate) rto_min: Option<Span>,
    /// Whether TCP sends a new segment for each of the first two duplicate acknowledgements (RFC 3042); by default true, as
    /// Linux does. On the simulator only.
    pub(crate) limited_transmit: Option<bool>,
    /// How long TCP's receivers delay the acknowledgement of a single segment; every second segment is then acknowledged at
    /// once, and no other one (RFC 5681, section 4.2). By default the delay adapts and the first acknowledgements are not
    /// delayed, as in Linux. On the simulator only.
    pub(crate) delayed_ack: Option<Span>,
    /// Whether receivers with `delayed_ack` also acknowledge when the application has read two segments beyond the advertised
    /// window, as FreeBSD 4 does: two acknowledgements for three segments. By default false. On the simulator only.
    pub(crate) window_updates: Option<bool>,
    /// Direction of the data.
    pub(crate) direction: Direction,
    /// Name of the sending host, which groups with the same name share; `[nic.NAME]` gives it a card, and `hosts` there makes
    /// several such hosts. By default each group has a sending host of its own.
    #[schemars(example = &"laptop")]
    pub(crate) host: Option<String>,
    /// Base round-trip time of its flows, at least the path's own; the difference is delay between a host and its router. One
    /// time for all flows, a list that the flows take in turn (`["10 ms", "40 ms"]`), or a range (`{ from = "10 ms", to = "100
    /// ms" }`).
    pub(crate) rtt: Option<Times>,
    /// Send buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_wmem`, autotuned; by default 4 KiB, 16 KiB and
    /// 4 MiB.
    pub(crate) send_buffer: Option<Memory>,
    /// Receive buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_rmem`, autotuned; by default 4 KiB, 128 KiB
    /// and 6 MiB.
    pub(crate) receive_buffer: Option<Memory>,
    /// Whether TCP paces at Linux's rate when the controller does not set one; by default false.
    pub(crate) pacing: Option<bool>,
    /// Clock of the sending host's timestamps: `offset` at the start of the run (by default drawn for each connection),
    /// `skew_ppm` by which it runs fast (by default 0), and the length of its `tick` (by default 1 ms). The hosts of the live
    /// engine share one clock.
    pub(crate) sender_clock: Option<Clock>,
    /// Clock of the receiving host's timestamps, with the keys of `sender_clock`.
    pub(crate) receiver_clock: Option<Clock>,
    /// When its flows start: one time for all, a list that they take in turn, or a range, such as `{ from = "0 s", to = "9 s"
    /// }`.
    pub(crate) start: Times,
    /// When its applications stop sending; by default at the end of the run.
    pub(crate) stop: Option<Span>,
    /// Where its data enters the network: a router or host by name. By default the first router of a chain or parking lot.
    #[schemars(example = &"a")]
    pub(crate) from: Option<String>,
    /// Where its data leaves the network: a router or host, or a station that answers. By default the last router of a chain or
    /// parking lot. With a list there is a receiver at each place, and the flows take them in turn.
    #[schemars(example = &"b")]
    pub(crate) to: Option<Places>,
    /// Where its data leaves the network, each packet at all of these places, which the overlay does; instead of `to`. Each receiver
    /// counts as a flow.
    #[schemars(example = json!(["b", "c"]))]
    pub(crate) multicast: Option<Places>,
    /// How the overlay carries its flows: a table of `admit` (or `priority`, `cap`, `shape`), `deadline`, `size`, `coupled`, `class` and
    /// `group`; by default with their defaults if the lab has `[overlay]`. With false its packets take the path of least delay.
    pub(crate) overlay: Option<Choice>,
    /// The one link of a chain or parking lot that its data passes, by its number from 1, instead of `from` and `to`.
    pub(crate) hop: Option<u64>,
    /// Names of the links and routers of a graph that its data passes, in this order; between them it takes the path of least
    /// delay. By default its whole path is the one of least delay.
    #[schemars(example = json!(["r1", "r2"]))]
    pub(crate) via: Option<Vec<String>>,
    /// The same for the path back, which acknowledgements take. By default the names of `via` in reverse, without one-way
    /// links.
    #[schemars(example = json!(["r2", "r1"]))]
    pub(crate) back: Option<Vec<String>>,
    /// IP version of its hosts, 4 or 6; by default `run.ip`.
    pub(crate) ip: Option<Ip>,
}

impl Traffic {
    /// How many flows it takes for each entry of its lists to be used.
    pub(crate) fn listed(&self) -> u64 {
        let places = self.to.as_ref().map_or(1, |Places(names)| names.len() as u64);
        self.rtt.as_ref().map_or(1, Times::flows).max(self.start.flows()).max(places)
    }

    /// How many flows it has.
    pub(crate) fn flows(&self) -> u64 {
        self.flows.unwrap_or_else(|| self.listed())
    }
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            flows: None,
            workload: weir_workload::Config::Bulk(Default::default()),
            transport: None,
            cc: None,
            ecn: None,
            dscp: Dscp::default(),
            feedback: None,
            window_scaling: None,
            sack: None,
            rto_min: None,
            limited_transmit: None,
            delayed_ack: None,
            window_updates: None,
            direction: Direction::Down,
            host: None,
            rtt: None,
            send_buffer: None,
            receive_buffer: None,
            pacing: None,
            sender_clock: None,
            receiver_clock: None,
            start: Times::One(Span::ZERO),
            stop: None,
            from: None,
            to: None,
            multicast: None,
            overlay: None,
            hop: None,
            via: None,
            back: None,
            ip: None,
        }
    }
}

/// Whether ECN is negotiated, and with which codepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EcnChoice {
    /// Not at all, or with the controller's own codepoint.
    Agreed(bool),
    /// With this codepoint.
    As(Codepoint),
}

impl<'de> Deserialize<'de> for EcnChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EcnChoice, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = EcnChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, \"ect0\" or \"ect1\"")
            }
            fn visit_bool<E: Error>(self, agreed: bool) -> Result<EcnChoice, E> {
                Ok(EcnChoice::Agreed(agreed))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<EcnChoice, E> {
                match text {
                    "ect0" => Ok(EcnChoice::As(Codepoint::Ect0)),
                    "ect1" => Ok(EcnChoice::As(Codepoint::Ect1)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for EcnChoice {
    fn schema_name() -> Cow<'static, str> {
        "EcnChoice".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "enum": [true, false, "ect0", "ect1"] })
    }
}

/// A socket buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Memory {
    /// Of one size from beginning to end.
    Fixed(Bytes),
    /// Autotuned as in Linux; `None` is Linux's default.
    Tuned(Tuned),
}

/// Linux's three numbers of an autotuned buffer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tuned {
    /// Size that is always granted.
    pub(crate) min: Option<Bytes>,
    /// Size at the start of a connection.
    pub(crate) initial: Option<Bytes>,
    /// Largest size that autotuning may give the buffer.
    pub(crate) max: Option<Bytes>,
}

impl Memory {
    /// The three numbers, `default` where they are not given.
    pub(crate) fn or(self, default: Buffer) -> Buffer {
        match self {
            Memory::Fixed(size) => Buffer { min: size, initial: size, max: size },
            Memory::Tuned(Tuned { min, initial, max }) => Buffer {
                min: min.unwrap_or(default.min),
                initial: initial.unwrap_or(default.initial),
                max: max.unwrap_or(default.max),
            },
        }
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Memory, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Memory;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size with its unit, for example \"4 MB\", or a table of `min`, `initial` and `max`",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Memory, E> {
                text.parse().map(Memory::Fixed).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Memory, A::Error> {
                Tuned::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Memory::Tuned)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Memory {
    fn schema_name() -> Cow<'static, str> {
        "Memory".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (fixed, tuned) = (generator.subschema_for::<Bytes>(), generator.subschema_for::<Tuned>());
        schemars::json_schema!({ "anyOf": [fixed, tuned] })
    }
}
