//! A connection between two nodes of an overlay: which stream carries what, and what its driver must know of the path.
//!
//! Source: digest A 3.1 (streams), A 3.8. The study has a fifth stream with packets that probe the capacity; here packet pairs measure it
//! at the start.

use super::wire::{DATA_HEADER, DUE, HEADER, TAG};
use super::{DeliveryName, Drop, FastStart, Order, Parameters, SealName, StreamParameters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Rate, Span};

/// Depths and signs of life: one waits, and a newer one takes its place.
pub const DEPTHS: u8 = 0;
/// Packets that are sensitive to latency.
pub const SENSITIVE: u8 = 1;
/// Other messages between nodes.
pub const CONTROL: u8 = 2;
/// Other packets.
pub const DATA: u8 = 3;

/// Retransmissions of a packet at most (digest A 3.1).
const LIMIT: u32 = 5;
/// Packets that a stream of data holds, and datagrams that the stream of control holds (digest A 3.1).
const PACKETS: u64 = 246;
const CONTROLS: u64 = 100;
/// Parameters of the connections between nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The congestion controllers: one, or two in the order of preference. A controller that fills buffers gives way to one that does not
    /// while packets with a deadline are on their way.
    #[schemars(length(min = 1, max = 2))]
    pub cc: Vec<weir_control::Config>,
    /// Whether packets have the length of encrypted and authenticated ones.
    pub seal: SealName,
    /// How packets that are sensitive to latency are delivered.
    pub sensitive: StreamParameters,
}

impl Default for Config {
    fn default() -> Config {
        let cc = ["cubic", "copa"].into_iter().filter_map(|name| name.parse().ok()).collect();
        let sensitive = StreamParameters {
            delivery: DeliveryName::SemiReliable,
            limit: LIMIT,
            order: Some(Order::Any),
            priority: 3,
            queue: packets(PACKETS),
            ..StreamParameters::default()
        };
        Config { cc, seal: SealName::Noise, sensitive }
    }
}

/// Room for so many full packets.
fn packets(count: u64) -> Bytes {
    Bytes::new(count * 1500)
}

impl Config {
    /// The first value outside its range, by name.
    pub fn fault(&self) -> Option<&'static str> {
        let lacks_deadline =
            self.sensitive.delivery == DeliveryName::ArqFec && self.sensitive.deadline.is_none();
        let names_none = !(1..=2).contains(&self.cc.len());
        names_none.then_some("cc").or(lacks_deadline.then_some("sensitive"))
    }

    /// Bytes that SLIQ puts around a packet.
    pub fn headers(&self, has_due: bool) -> Bytes {
        let tag = if self.seal == SealName::None { 0 } else { TAG };
        let due = if has_due { DUE } else { 0 };
        Bytes::new((HEADER + DATA_HEADER + due + tag) as u64)
    }

    /// The further streams: [`SENSITIVE`], [`CONTROL`] and [`DATA`].
    pub fn streams(&self) -> [StreamParameters; 3] {
        let control = StreamParameters {
            priority: 4,
            queue: packets(CONTROLS),
            delivery: DeliveryName::SemiReliable,
            limit: LIMIT,
            ..Config::default().sensitive
        };
        let data = StreamParameters { priority: 5, queue: packets(PACKETS), ..control.clone() };
        [self.sensitive.clone(), control, data]
    }

    /// Parameters of the connection and of its first stream, [`DEPTHS`].
    pub fn parameters(&self) -> Parameters {
        let depths = StreamParameters {
            delivery: DeliveryName::BestEffort,
            order: Some(Order::Any),
            priority: 2,
            // One message waits; a newer one takes its place.
            queue: Bytes::new(1),
            drop: Drop::Oldest,
            ..StreamParameters::default()
        };
        let (seal, fast_start) = (self.seal, FastStart::Always);
        Parameters { stream: depths, seal, fast_start, ..Parameters::default() }
    }
}

/// What is known of the path to the peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// The rate that it carries, with headers; `None` before the first measurement.
    pub capacity: Option<Rate>,
    /// Mean time from the hand-over of a message to its arrival.
    pub delay: Span,
    /// The variance of that time in seconds squared.
    pub variance: f64,
    /// The share of packets that it loses.
    pub loss: f64,
}

impl Path {
    /// The share of packets that are lost in all of their transmissions.
    pub fn lost_for_good(&self) -> f64 {
        (0..=LIMIT).fold(1.0, |lost, _| lost * self.loss)
    }
}
