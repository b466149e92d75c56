//! SLIQ, the transport between overlay nodes of the GNAT report (section 3): streams over lossy paths. Each stream has its own
//! reliability; a stream may have a deadline, which it keeps with a given probability.
//!
//! Every packet has its own number, and acknowledgements list ranges of these numbers; a retransmission is a new packet. Several
//! congestion controllers may share a connection: the first one that may send takes a packet, and only that one learns its fate.
//! docs/sliq.md says what is implemented and what is not. `connection.rs` is the file to open first.
#![forbid(unsafe_code)]

mod acks;
pub mod aec;
mod capacity;
mod connection;
mod credit;
mod delay;
mod departure;
mod due;
#[cfg(feature = "seal")]
pub mod envelope;
mod flight;
#[cfg(feature = "seal")]
pub mod handshake;
pub mod hop;
#[cfg(feature = "seal")]
pub mod host;
#[cfg(feature = "seal")]
pub mod link;
mod loss;
mod marks;
mod mtu;
mod opening;
mod outage;
mod passage;
#[cfg(feature = "seal")]
mod path;
mod per;
mod receive;
mod rtt;
mod schedule;
#[cfg(feature = "seal")]
pub mod seal;
#[cfg(feature = "seal")]
pub mod secrets;
mod send;
mod shared;
pub mod simulated;
mod train;
pub mod wire;

use connection::Connection;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use shared::{Handle, Shared};
use weir_base::within;
use weir_base::{Bytes, Random, Span};
use weir_coord::participation::{Coordination, Identity};
use weir_endpoint::{Endpoint, FullPacket, Settings, Setup};

/// A connection ends when nothing was heard from the peer for this long. The study has no such timeout.
const IDLE: Span = Span::from_secs(300);
/// The shortest time between keepalive packets: probes of a silent peer are no more frequent (the GNAT software).
const LEAST_KEEPALIVE: Span = outage::LEAST_GAP;
/// The lowest priority (the GNAT software).
const LOWEST_PRIORITY: u8 = 7;

/// The longest deadline of a stream.
pub const LONGEST_DEADLINE: Span = due::LONGEST;

/// Maximum number of streams of a connection (the GNAT software).
pub const MOST_STREAMS: usize = 32;

/// Parameters of SLIQ. The controller is the group's `cc`; without one, Copa comes first and CUBIC second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// How the flow's stream is delivered.
    #[serde(deserialize_with = "stream")]
    pub stream: StreamParameters,
    /// A second controller, which takes the packets that the group's `cc` may not send. A controller that fills buffers is suspended while
    /// a stream with a deadline needs it.
    pub second: Option<weir_control::Config>,
    /// The application of the Coordination Protocol in which the connection takes part as one flow. Packets then leave at the rate that
    /// aggregation points report, without a congestion controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordination: Option<Coordination>,
    /// Name of the connection that the flow's stream belongs to. Flows with the same name, between the same hosts, are streams of one
    /// connection.
    #[schemars(example = &"both")]
    pub connection: Option<String>,
    /// A keepalive packet is sent after this time without a packet from the peer, 20 ms or more; by default, never.
    #[serde(deserialize_with = "keepalive")]
    pub keepalive: Option<Span>,
    /// The connection ends after this time without a packet from the peer, if all data is acknowledged.
    pub idle: Span,
    /// Whether packets are encrypted and authenticated.
    pub seal: SealName,
    /// Whether packets begin with a UDP payload of 1,200 bytes, grow to the size that the path is found to carry, and shrink when it no
    /// longer carries that size (RFC 8899). By default packets are as long as the lab's links allow.
    pub search_mtu: bool,
    /// When packet pairs measure the path's rate at the start of a connection; congestion windows then open to that rate.
    pub fast_start: FastStart,
}

/// When a connection begins with packet pairs that measure the path's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FastStart {
    /// Never: windows grow by slow start.
    Never,
    /// For controllers that keep queues short (Copa), if the first round trip is longer than 50 ms (the GNAT software).
    #[default]
    Long,
    /// For all controllers that have a slow start, over any path.
    Always,
}

/// How packets are protected against eavesdropping and forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SealName {
    /// No protection.
    #[default]
    None,
    /// Encrypted and authenticated with keys from a handshake of the Noise protocol. On the simulator packets are not encrypted but have
    /// the length of sealed ones.
    Noise,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            stream: StreamParameters::default(),
            second: None,
            coordination: None,
            connection: None,
            keepalive: None,
            idle: IDLE,
            seal: SealName::None,
            search_mtu: false,
            fast_start: FastStart::default(),
        }
    }
}

/// How a stream is delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamParameters {
    /// How losses are repaired.
    pub delivery: DeliveryName,
    /// With `arq-fec`: the time within which a packet is to be delivered, from when it is written; above 0, at most 60 s.
    pub deadline: Option<Span>,
    /// With `arq-fec`: the share of packets to be delivered within the deadline, 0.5 to 0.9999.
    #[serde(deserialize_with = "target")]
    #[schemars(range(min = 0.5, max = 0.9999))]
    pub target: f64,
    /// With `semi-reliable`: maximum number of retransmissions of a packet.
    pub limit: u32,
    /// In which order the stream is read; by default, byte streams as `written` and datagrams in `any` order.
    pub order: Option<Order>,
    /// Priority among the streams of a connection: 0 is sent first, 7 last. Streams of the same priority take turns.
    #[serde(deserialize_with = "priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
    /// Size of the send queue: bytes that may wait for their first transmission.
    pub queue: Bytes,
    /// Which datagrams are dropped at the sender before they are sent.
    pub drop: Drop,
}

impl Default for StreamParameters {
    fn default() -> StreamParameters {
        StreamParameters {
            delivery: DeliveryName::Reliable,
            deadline: None,
            target: 0.995,
            limit: 5,
            order: None,
            priority: 3,
            drop: Drop::Newest,
            queue: Bytes::new(256 * 1024),
        }
    }
}

/// How losses are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryName {
    /// Lost packets are retransmitted until they arrive.
    Reliable,
    /// Lost packets are not repaired.
    BestEffort,
    /// Lost packets are retransmitted up to `limit` times.
    SemiReliable,
    /// Retransmissions and repair packets, so that a deadline is kept with a given probability.
    ArqFec,
}

/// In which order a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// In the order in which it was written.
    Written,
    /// As it arrives.
    Any,
}

/// Which datagrams are dropped before they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drop {
    /// The datagram that is being written when the send queue is full.
    Newest,
    /// The datagrams that have waited longest when the send queue is full.
    Oldest,
    /// The datagrams that can no longer arrive in time, whether or not the queue is full: later ones need what they would take of the
    /// path. When the queue is full, as `newest`.
    Late,
}

/// How losses are repaired, with the parameters that this takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Delivery {
    BestEffort,
    Reliable,
    SemiReliable { limit: u32 },
    ArqFec { deadline: Span, target: f64 },
}

impl StreamParameters {
    fn delivery(&self) -> Delivery {
        match (self.delivery, self.deadline) {
            (DeliveryName::BestEffort, _) => Delivery::BestEffort,
            (DeliveryName::SemiReliable, _) => Delivery::SemiReliable { limit: self.limit },
            (DeliveryName::ArqFec, Some(deadline)) => Delivery::ArqFec { deadline, target: self.target },
            (DeliveryName::Reliable | DeliveryName::ArqFec, _) => Delivery::Reliable,
        }
    }
}

fn target<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.5..=0.9999)
}

fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 0..=LOWEST_PRIORITY)
}

fn keepalive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let keepalive = Option::<Span>::deserialize(deserializer)?;
    match keepalive.filter(|keepalive| *keepalive < LEAST_KEEPALIVE) {
        None => Ok(keepalive),
        Some(short) => Err(D::Error::custom(format!(
            "a keepalive each {short} is out of range; write {LEAST_KEEPALIVE} or more, or leave it out"
        ))),
    }
}

/// Reads a stream's parameters. A deadline without `arq-fec`, and `arq-fec` without a deadline, are errors.
fn stream<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StreamParameters, D::Error> {
    let stream = StreamParameters::deserialize(deserializer)?;
    match (stream.delivery, stream.deadline) {
        (DeliveryName::ArqFec, None) => {
            Err(D::Error::custom("`arq-fec` needs a deadline: write deadline = \"50 ms\""))
        }
        (DeliveryName::ArqFec, Some(deadline)) if deadline.is_zero() || deadline > LONGEST_DEADLINE => {
            Err(D::Error::custom(format!(
                "a deadline of {deadline} is out of range; write more than 0 s, up to {LONGEST_DEADLINE}"
            )))
        }
        (DeliveryName::ArqFec, Some(_)) => Ok(stream),
        (_, None) if stream.drop == Drop::Late => Err(D::Error::custom(
            "drop = \"late\" needs a deadline: write delivery = \"arq-fec\" and deadline = \"50 ms\"",
        )),
        (_, None) => Ok(stream),
        (_, Some(_)) => Err(D::Error::custom("a deadline has no effect without delivery = \"arq-fec\"")),
    }
}

impl Parameters {
    fn controllers(&self, setup: &Setup<'_>) -> Vec<weir_control::Config> {
        let cc = setup.settings.map(|settings: &Settings| settings.cc.clone());
        cc.into_iter().chain(self.second.clone()).collect()
    }
}

/// The number of a flow's connection, below 2^24. Both ends derive the same number, since both are made for the same flow.
fn number(setup: &Setup<'_>) -> u32 {
    (Random::stream_of(setup.seed, "sliq connection", setup.flow).bits() & 0xff_ffff) as u32
}

/// The controllers of a connection for which none is named: Copa, and CUBIC for what Copa may not send. Copa is not slowed down by losses,
/// and CUBIC goes on where jitter, a short buffer or other traffic stop Copa (labs/sliq-default.toml; the GNAT report's own pair).
pub fn default_controllers() -> [weir_control::Config; 2] {
    [weir_control::Config::Copa(Default::default()), weir_control::Config::Cubic(Default::default())]
}

/// A full packet of a stream with these parameters, if packets are at most `mtu` bytes long, `ip_header` bytes of them the IP header.
pub fn full_packet(parameters: &Parameters, mtu: Bytes, ip_header: Bytes) -> FullPacket {
    let (payload, around) = connection::full_packet(parameters, mtu.get() as u32, ip_header.get() as u32);
    FullPacket { payload: Bytes::new(payload.into()), length: Bytes::new((payload + around).into()) }
}

/// The two ends of a flow's connection whose packets are not sealed: at the host that sends the flow's data, and at the host that
/// receives it. Neither is open.
pub fn ends(parameters: &Parameters, setup: &Setup<'_>) -> [Box<dyn Endpoint>; 2] {
    let controllers = parameters.controllers(setup);
    ["sliq sender", "sliq receiver"].map(|name| {
        let random = Random::stream_of(setup.seed, name, setup.flow);
        let identity = Identity::in_lab(setup.flow);
        let connection = Connection::new(parameters, &controllers, setup, number(setup), &identity, random);
        boxed(parameters, connection)
    })
}

/// The same, with packets that are sealed if the parameters say so; `None` if the system gives no randomness.
#[cfg(feature = "seal")]
pub fn protected_ends(parameters: &Parameters, setup: &Setup<'_>) -> Option<[Box<dyn Endpoint>; 2]> {
    match parameters.seal {
        SealName::None => Some(ends(parameters, setup)),
        SealName::Noise => link::pair(parameters, &parameters.controllers(setup), setup).ok(),
    }
}

/// An end as its flow's endpoint: a handle if other flows may join the connection.
fn boxed(parameters: &Parameters, end: impl Shared + 'static) -> Box<dyn Endpoint> {
    match parameters.connection {
        Some(_) => Box::new(Handle::first(end)),
        None => Box::new(end),
    }
}

#[cfg(test)]
mod tests {
    use crate::Parameters;

    #[test]
    fn parameters_without_effect_and_out_of_range_are_refused() {
        let read = |text: &str| serde_json::from_str::<Parameters>(text).map_err(|error| error.to_string());
        assert!(read(r#"{ "stream": { "delivery": "arq-fec", "deadline": "50 ms" } }"#).is_ok());
        for (text, told) in [
            (r#"{ "stream": { "delivery": "arq-fec" } }"#, "needs a deadline"),
            (r#"{ "stream": { "deadline": "50 ms" } }"#, "has no effect without"),
            (r#"{ "stream": { "drop": "late" } }"#, "needs a deadline"),
            (r#"{ "stream": { "delivery": "arq-fec", "deadline": "61 s" } }"#, "up to 60 s"),
            (r#"{ "stream": { "delivery": "arq-fec", "deadline": "0 s" } }"#, "write more than 0 s"),
            (r#"{ "stream": { "priority": 8 } }"#, "8 is out of range; write 0 to 7"),
            (r#"{ "stream": { "target": 1.0 } }"#, "1 is out of range; write 0.5 to 0.9999"),
            (r#"{ "keepalive": "0 s" }"#, "write 20 ms or more"),
            (r#"{ "keepalive": "1 ns" }"#, "write 20 ms or more"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
