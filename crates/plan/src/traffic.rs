//! `[traffic.NAME]`, as it is written. Doc comments here are the user's documentation.

use crate::each::{Places, Times};
use crate::run::Ip;
use crate::ways::Direction;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_base::{Bytes, Clock, Span};
use weir_control::Codepoint;
use weir_transport::Buffer;

/// A traffic group: flows of one kind between a pair of hosts of their own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Traffic {
    /// How many flows; by default as many as the longest list of `rtt`, `start` and `to` has entries, or one. Where flows arrive at
    /// random, how many sources they come from in equal parts.
    pub(crate) flows: Option<u64>,
    /// What the application does.
    pub(crate) workload: weir_workload::Config,
    /// What carries its data (`weir list transports`); by default TCP for streams and UDP for datagrams.
    pub(crate) transport: Option<weir_transport::Config>,
    /// Congestion controller; by default "cubic".
    pub(crate) cc: Option<weir_control::Config>,
    /// Whether TCP negotiates ECN, and the codepoint of its packets: `true` is the controller's own, "ect0" or "ect1" another.
    /// By default true where `feedback` is not classic, as DCTCP and Prague need it. The live engine's kernel sends ECT(0);
    /// for "ect1" packets are relabelled as they leave their host.
    pub(crate) ecn: Option<EcnChoice>,
    /// How the receiver tells of marks: "classic" (RFC 3168), "dctcp" (RFC 8257) or "accurate" (RFC 9768); by default what
    /// the controller needs.
    pub(crate) feedback: Option<weir_control::Feedback>,
    /// Whether TCP scales its windows (RFC 7323); by default true. Without it no window is above 65,535 bytes.
    pub(crate) window_scaling: Option<bool>,
    /// Whether TCP's acknowledgements are selective (RFC 2018); by default true. Without it losses are found and repaired by
    /// duplicate acknowledgements alone (NewReno, RFC 6582).
    pub(crate) sack: Option<bool>,
    /// Least of the variance in TCP's retransmission timeout, which is longer than it by a round trip; by default 200 ms, Linux's.
    pub(crate) rto_min: Option<Span>,
    /// Whether TCP sends a new segment for each of the first two duplicate acknowledgements (RFC 3042); by default true, as
    /// Linux does. On the simulator only.
    pub(crate) limited_transmit: Option<bool>,
    /// How long TCP's receivers hold the acknowledgement of a single segment back; every second segment is then acknowledged at once,
    /// and none before that (RFC 5681, section 4.2). By default the delay adapts and acknowledgements are quick at first, as on
    /// Linux. On the simulator only.
    pub(crate) delayed_ack: Option<Span>,
    /// Whether receivers with such a delay acknowledge also when the application has read two segments beyond the window that was
    /// told, as FreeBSD 4 does: two acknowledgements for three segments. By default false. On the simulator only.
    pub(crate) window_updates: Option<bool>,
    /// Which way the data flows.
    pub(crate) direction: Direction,
    /// The sending host, by a name that groups which share it have in common; `[nic.NAME]` gives it a card, and `hosts` there makes
    /// several of it. By default each group has one of its own.
    pub(crate) host: Option<String>,
    /// The base round-trip time of its flows, at least the path's own: the rest is delay between a host and its router. A time for
    /// all, a list that the flows go through in turn (`["10 ms", "40 ms"]`), or a range (`{ from = "10 ms", to = "100 ms" }`).
    pub(crate) rtt: Option<Times>,
    /// Send buffer: a size that is fixed, or Linux's `tcp_wmem` `{ min, initial, max }`, autotuned; by default 4 KiB,
    /// 16 KiB and 4 MiB.
    pub(crate) send_buffer: Option<Memory>,
    /// Receive buffer: a size that is fixed, or Linux's `tcp_rmem` `{ min, initial, max }`, autotuned; by default 4 KiB,
    /// 128 KiB and 6 MiB.
    pub(crate) receive_buffer: Option<Memory>,
    /// Whether TCP paces at Linux's rate when the controller does not set one; by default false.
    pub(crate) pacing: Option<bool>,
    /// The clock that the sending host's timestamps are taken from: `offset` at the start of the run, `skew_ppm` by which it
    /// runs fast, `tick` in which it counts; by default drawn for each connection, none and 1 ms. The hosts that the live engine
    /// makes share one.
    pub(crate) sender_clock: Option<Clock>,
    /// The same of the receiving host.
    pub(crate) receiver_clock: Option<Clock>,
    /// When its flows start: a time for all, a list that they go through in turn, or a range, such as
    /// `{ from = "0 s", to = "9 s" }`.
    pub(crate) start: Times,
    /// When its applications stop sending; by default at the end of the run.
    pub(crate) stop: Option<Span>,
    /// Where its data enters the network: a router or host by name. By default the first router of a chain or parking lot.
    pub(crate) from: Option<String>,
    /// Where its data leaves the network: a router or host, or a station that answers. By default the last router of a chain or
    /// parking lot. A list has a receiver at each, and the flows go to them in turn.
    pub(crate) to: Option<Places>,
    /// The one link of a chain or parking lot that its data passes, by its number from 1, instead of `from` and `to`.
    pub(crate) hop: Option<u64>,
    /// Links and routers of a graph that its data passes, in this order, each by its name; between them it takes the way of
    /// least delay. By default it takes that all along.
    pub(crate) via: Option<Vec<String>>,
    /// The same for the way back, which acknowledgements take. By default what `via` names, in reverse, without links that
    /// lead one way only.
    pub(crate) back: Option<Vec<String>>,
    /// What its hosts speak: IP 4 or 6; by default what `run.ip` says.
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
    /// With this one.
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
    /// Autotuned as Linux does; what is none is Linux's default.
    Tuned(Tuned),
}

/// Linux's three numbers of an autotuned buffer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tuned {
    /// Least that is always granted.
    pub(crate) min: Option<Bytes>,
    /// What a connection starts with.
    pub(crate) initial: Option<Bytes>,
    /// What autotuning may grow it to.
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
