//! The sections of a lab file, as they are written. Doc comments here are the user's documentation: they become the JSON
//! schema's descriptions and the help in diagnostics.

use crate::each::{Places, Times};
use crate::host::Nic;
use crate::link::{Jitters, Losses, Speed};
use crate::plot::Plot;
use crate::probability::Probability;
use crate::read::WAYS;
use crate::run::Ip;
use crate::shape::{Chain, Graph, ParkingLot, Star};
use crate::words::Words;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use weir_base::{Bytes, Clock, Span};
use weir_control::Codepoint;
use weir_fabric::{Outage, Wifi};
use weir_transport::Buffer;

/// A lab file. Only its schema is used: the sections are read one by one, so that all their errors are found.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub(crate) struct File {
    /// Version of the lab format: 1.
    #[schemars(extend("const" = 1))]
    format: u32,
    /// The lab's name: letters, digits, `-` and `_`. By default the file's own.
    name: Option<String>,
    /// What the lab shows, in a sentence.
    title: Option<String>,
    /// Another lab file, relative to this one, whose settings hold unless they are given here. Tables are joined key by
    /// key; a table with a `kind`, the whole of `[vary]`, lists and plain values are replaced.
    extends: Option<String>,
    /// How each run goes.
    run: Option<Timing>,
    /// One bottleneck between two routers, with all hosts around it.
    dumbbell: Option<Bottleneck>,
    /// Several links in a row.
    chain: Option<Chain>,
    /// Several equal links in a row, with traffic over all of them and traffic over one.
    parking_lot: Option<ParkingLot>,
    /// Equal links around a hub.
    star: Option<Star>,
    /// Any network: routers, hosts, and links between them.
    graph: Option<Graph>,
    /// Machines at routers by name: policers, middleboxes, responders.
    #[serde(default)]
    stations: BTreeMap<String, crate::station::Section>,
    /// Traffic groups by name, each with its own pair of hosts unless they share a sender.
    traffic: BTreeMap<String, Traffic>,
    /// Network cards, by the names of the hosts that groups send from (`host`).
    nic: Option<BTreeMap<String, Nic>>,
    /// What varies. A path and a list of values (`"dumbbell.queue" = ["tail-drop", "pie"]`), or a name and a table of
    /// labels, each with several settings at once (`mix = { "reno v cubic" = { "traffic.a.cc" = "reno" } }`). The product
    /// of all levels is the tree of runs; their order is the order of the report.
    vary: Option<BTreeMap<String, Level>>,
    /// Labels of some levels, one or a list for each: cells with others are not in the tree, and what is claimed of them is
    /// not judged.
    only: Option<BTreeMap<String, Words>>,
    /// What is expected of the results: claims, which `weir reproduce` judges.
    expect: Option<Vec<BTreeMap<String, serde_json::Value>>>,
    /// Two metrics against each other, drawn in the report.
    plot: Option<Vec<Plot>>,
    /// Settings that hold only when a study is reproduced in full (`weir reproduce --full`), by their paths:
    /// `"run.repeats" = 10`, `"vary.mix" = { .. }`.
    full: Option<BTreeMap<String, serde_json::Value>>,
    /// Settings that hold only when a study is reproduced on real Linux (`weir reproduce --on live`), by their paths, such as
    /// what there is time for: `"only.rate" = "10 Mbit/s"`. A study's labs without it are then left out, unless none
    /// has it; it is not taken over from a lab that is extended.
    live: Option<BTreeMap<String, serde_json::Value>>,
}

/// A level of the tree.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(crate) enum Level {
    /// Values of the setting that the level's name is the path of.
    Values(Vec<serde_json::Value>),
    /// Labels, each with the settings that it stands for.
    Labels(BTreeMap<String, BTreeMap<String, serde_json::Value>>),
}

/// How each run goes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timing {
    /// How long a run lasts.
    pub(crate) duration: Span,
    /// What is cut off before metrics are computed; by default a fifth of the duration.
    pub(crate) warmup: Option<Span>,
    /// The lab's seed: every random number follows from it.
    pub(crate) seed: u64,
    /// How often each cell of the tree is run, each time with another seed.
    pub(crate) repeats: u32,
    /// Named parts of the run, of which metrics are taken as of the whole and claims can be made (`in = "NAME"`): each from
    /// one time to another, counted from the start of the run, `["22 s", "30 s"]`, or from the `start` of a traffic group,
    /// `{ from = "2 s", to = "10 s", of = "GROUP" }`.
    pub(crate) windows: BTreeMap<String, crate::window::Written>,
    /// Length of a sample period of the records.
    pub(crate) sample: Span,
    /// Whether every packet is recorded.
    pub(crate) packets: bool,
    /// What gives an RTT sample: "segments", each with the first acknowledgement that covers it, selective ones too; or
    /// "acknowledgements", each cumulative one with the segment that it ends with, as Wireshark counts.
    pub(crate) round_trips: weir_fabric::RoundTrips,
    /// Each flow starts later by a random time below this; "0 s" turns it off.
    pub(crate) start_jitter: Span,
    /// A sending host holds each packet for a random time below this, in order: "auto" is the time that the group's
    /// bottleneck needs for a packet; "0 s" turns it off.
    pub(crate) host_jitter: HostJitter,
    /// What hosts speak, unless their group says otherwise: IP 4 or 6.
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

/// A value that may differ by direction: `{ down = .., up = .. }`. Down is where the lab's data flows unless a group says
/// `direction = "up"`. What a plain value means is said by the setting itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ways<T> {
    /// One value, without a direction.
    Plain(T),
    /// One for each direction.
    Each {
        /// Of the direction down.
        down: Option<T>,
        /// Of the direction up.
        up: Option<T>,
    },
}

impl<T: Clone> Ways<T> {
    /// Both directions, a plain value counting for both.
    pub(crate) fn both(self) -> [Option<T>; 2] {
        match self {
            Ways::Plain(value) => [Some(value.clone()), Some(value)],
            Ways::Each { down, up } => [down, up],
        }
    }
    /// Both directions, a plain value counting for down alone.
    pub(crate) fn down_only(self) -> [Option<T>; 2] {
        match self {
            Ways::Plain(value) => [Some(value), None],
            Ways::Each { down, up } => [down, up],
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ways<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ways<T>, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Ways<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or a table of one for each direction, `down` and `up`")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Ways<T>, D::Error> {
                T::deserialize(deserializer).map(Ways::Plain)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ways<T>, A::Error> {
                let (mut down, mut up) = (None, None);
                while let Some(key) = map.next_key::<Direction>()? {
                    match key {
                        Direction::Down => down = Some(map.next_value()?),
                        Direction::Up => up = Some(map.next_value()?),
                    }
                }
                Ok(Ways::Each { down, up })
            }
        }
        deserializer.deserialize_newtype_struct(WAYS, Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Ways<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Ways_{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let plain = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [plain.clone(), {
            "type": "object",
            "properties": { "down": plain.clone(), "up": plain },
            "additionalProperties": false
        }] })
    }
}

/// A direction through the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// From left to right.
    #[default]
    Down,
    /// From right to left.
    Up,
}

/// A link in both directions: the dumbbell's bottleneck, or one of a chain. A value for each direction is written
/// `{ down = .., up = .. }`. Written plainly, what the link is (rate, wifi, delay, queue, overhead) holds both ways; what it
/// does to packets beside (loss, jitter, duplicate, corrupt, outage, drop, hold, schedule) holds for `down`, the way of the
/// data.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bottleneck {
    /// How fast it sends, counted in IP bytes and `overhead`: a rate, or `{ trace = "FILE" }` for a recorded link. Limits in
    /// time and in bdp are computed from a trace's mean rate.
    pub(crate) rate: Ways<Speed>,
    /// How it contends for a radio channel, as a station of 802.11n does: `rate` is then the radio's. `{}` takes the
    /// defaults.
    pub(crate) wifi: Option<Ways<Wifi>>,
    /// Base round-trip time, without queues and serialisation: half of it each way. Either this or `delay`.
    pub(crate) rtt: Option<Span>,
    /// Propagation delay, one way.
    pub(crate) delay: Option<Ways<Span>>,
    /// The queue before it; by default tail drop of 1000 packets.
    pub(crate) queue: Option<Ways<weir_queue::Config>>,
    /// Which packets are lost on the way: each with a probability, 0.01 or "1 %", or in bursts, `{ mean = "1 %", burst = 5 }`.
    /// Plain: down only.
    pub(crate) loss: Option<Ways<Losses>>,
    /// Delay that is drawn for each packet on top of the propagation delay: "5 ms" for a uniform one below that, or a table.
    /// Packets keep their order unless it says `reorder = true`. Plain: down only.
    pub(crate) jitter: Option<Ways<Jitters>>,
    /// Probability that a packet arrives twice. Plain: down only.
    pub(crate) duplicate: Option<Ways<Probability>>,
    /// Probability that a packet arrives damaged, and is thrown away by the host that it reaches. Plain: down only.
    pub(crate) corrupt: Option<Ways<Probability>>,
    /// Times in which it begins to send nothing, and its queue holds: `[{ at = "10 s", for = "2 s" }]`. Plain: down only.
    pub(crate) outage: Option<Ways<Vec<Outage>>>,
    /// Packets that are lost on arrival, by their number in order of arrival at the link, from 1, all packets counted.
    /// Plain: down only.
    pub(crate) drop: Option<Ways<Vec<u64>>>,
    /// Packets that are held back until others have passed them. Plain: down only.
    pub(crate) hold: Option<Ways<Vec<Held>>>,
    /// Bytes that each packet costs beside its IP length (14 for an Ethernet header).
    pub(crate) overhead: Option<Ways<Bytes>>,
    /// Largest IP packet that it carries; by default "1500 B", as Ethernet. Hosts send no larger packets than their paths carry.
    pub(crate) mtu: Option<Bytes>,
    /// Changes of rate, delay, loss, jitter, duplication or corruption over time. Plain: down only.
    pub(crate) schedule: Option<Ways<Vec<Change>>>,
}

/// A packet that others overtake.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    /// Its number in order of arrival at the link, from 1.
    pub(crate) packet: u64,
    /// How many later packets pass it.
    pub(crate) by: u64,
}

/// A change of a link at a time; what is not named stays.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// When, from the start of the run.
    pub(crate) at: Span,
    /// New rate, or a trace that begins then.
    pub(crate) rate: Option<Speed>,
    /// New propagation delay, one way.
    pub(crate) delay: Option<Span>,
    /// New loss.
    pub(crate) loss: Option<Losses>,
    /// New jitter.
    pub(crate) jitter: Option<Jitters>,
    /// New probability that a packet arrives twice.
    pub(crate) duplicate: Option<Probability>,
    /// New probability that a packet arrives damaged.
    pub(crate) corrupt: Option<Probability>,
}

/// A traffic group: flows of one kind between a pair of hosts of their own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Traffic {
    /// How many flows; by default as many as the longest list of `rtt`, `start` and `to` has entries, or one.
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
    /// Which way the data flows.
    pub(crate) direction: Direction,
    /// The sending host, by a name that groups which share it have in common; `[nic.NAME]` gives it a card. By default each group
    /// has one of its own.
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
