//! How much a node takes from a neighbour: bytes and packets a second, and bytes that it holds. A neighbour that sends more loses the rest at
//! this node, and others lose nothing.
//!
//! Messages count as packets do, but a tenth of each bucket is for them alone: a neighbour that sends too much data stays a neighbour.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use weir_base::{Bucket, Bytes, ParameterError, Rate, Span, Time};

/// A neighbour may send at once what its rate gives in this time.
const BURST: Span = Span::from_millis(100);
/// The least burst: a packet of the largest size that a device may have, and 32 packets.
const LEAST_BURST: Bytes = Bytes::new(65_536);
const LEAST_PACKETS: u64 = 32;
/// The part of a bucket that is for messages alone.
const RESERVE: u128 = 10;
/// The least values that leave a neighbour room for the messages of a network of a hundred nodes.
const LEAST_RATE: Rate = Rate::from_bits_per_sec(100_000);
const LEAST_PACKET_RATE: u64 = 100;

/// What a node takes from a neighbour at most; what is left out has no bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Packets with the overlay's header, and messages: at least 100 kbit/s.
    pub rate: Option<Rate>,
    /// Packets, and datagrams of messages, a second: at least 100.
    pub packets: Option<u64>,
    /// Bytes of the neighbour's packets that the node holds at a time, those of its copies included: at least 64 KiB.
    pub queue: Option<Bytes>,
}

impl Config {
    /// The first fault.
    pub fn fault(&self) -> Option<ParameterError> {
        let fault = |key, message: &str, help: &str| Some(ParameterError::new(key, message, help));
        if *self == Config::default() {
            let help = "write for example quota = { rate = \"100 Mbit/s\" }, or leave it out";
            return fault("quota", "a quota without a bound bounds nothing", help);
        }
        if self.rate.is_some_and(|rate| rate < LEAST_RATE) {
            let message = "a quota's `rate` leaves room for messages, 100 kbit/s at least";
            return fault("rate", message, "write for example rate = \"100 Mbit/s\"");
        }
        if self.packets.is_some_and(|packets| packets < LEAST_PACKET_RATE) {
            let message = "a quota's `packets` a second leave room for messages, 100 at least";
            return fault("packets", message, "write for example packets = 20000");
        }
        if self.queue.is_some_and(|queue| queue < LEAST_BURST) {
            let message = "a quota's `queue` has room for the largest packet, 65536 B";
            return fault("queue", message, "write for example queue = \"4 MB\"");
        }
        None
    }
}

/// A rate, and the bucket that it fills.
#[derive(Debug)]
struct Filled {
    rate: u64,
    bucket: Bucket,
    reserve: u128,
}

impl Filled {
    fn new(rate: u64, least: u64) -> Filled {
        let burst = (rate / (1_000_000_000 / BURST.as_nanos())).max(least).into();
        Filled { rate, bucket: Bucket::full(burst), reserve: burst / RESERVE }
    }

    fn has(&mut self, tokens: u128, is_packet: bool, passed: Span) -> bool {
        self.bucket.fill(self.rate, passed);
        self.bucket.has(tokens + if is_packet { self.reserve } else { 0 })
    }
}

/// Bytes that are held, and how many: they count until the last owner lets go.
#[derive(Debug)]
pub(super) struct Share {
    held: Rc<Cell<u64>>,
    bytes: u64,
}

impl Share {
    fn new(held: Rc<Cell<u64>>, bytes: u64) -> Share {
        held.set(held.get() + bytes);
        Share { held, bytes }
    }

    /// The same for a copy.
    pub(super) fn again(&self) -> Share {
        Share::new(self.held.clone(), self.bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.held.set(self.held.get().saturating_sub(self.bytes));
    }
}

/// What is left of a neighbour's quota.
#[derive(Debug)]
pub(super) struct Quota {
    bits: Option<Filled>,
    packets: Option<Filled>,
    queue: Option<u64>,
    filled: Time,
    held: Rc<Cell<u64>>,
    /// Packets and datagrams of messages that were beyond it.
    pub(super) exceeded: u64,
}

impl Quota {
    pub(super) fn new(config: &Config) -> Quota {
        Quota {
            bits: config.rate.map(|rate| Filled::new(rate.bits_per_sec(), 8 * LEAST_BURST.get())),
            packets: config.packets.map(|packets| Filled::new(packets, LEAST_PACKETS)),
            queue: config.queue.map(Bytes::get),
            filled: Time::ZERO,
            held: Rc::default(),
            exceeded: 0,
        }
    }

    /// A packet, or a datagram of messages, has come. Returns whether it is taken.
    pub(super) fn takes(&mut self, bytes: usize, is_packet: bool, now: Time) -> bool {
        let passed = now.since(self.filled);
        self.filled = now;
        let bits = 8 * bytes as u128;
        let has_room = !is_packet || self.queue.is_none_or(|most| self.held.get() + bytes as u64 <= most);
        let has = |filled: &mut Option<Filled>, tokens: u128| {
            filled.as_mut().is_none_or(|filled| filled.has(tokens, is_packet, passed))
        };
        // Both are filled, whatever the first one says.
        let (has_bits, has_packets) = (has(&mut self.bits, bits), has(&mut self.packets, 1));
        if !(has_room && has_bits && has_packets) {
            self.exceeded += 1;
            return false;
        }
        for (filled, tokens) in [(&mut self.bits, bits), (&mut self.packets, 1)] {
            filled.as_mut().map(|filled| filled.bucket.covers(tokens));
        }
        true
    }

    /// A packet of so many bytes is held from now on, until the share is dropped; `None` if they are not bounded.
    pub(super) fn hold(&self, bytes: usize) -> Option<Share> {
        self.queue.map(|_| Share::new(self.held.clone(), bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(json: serde_json::Value) -> Quota {
        let config: Config = serde_json::from_value(json).unwrap();
        assert_eq!(config.fault(), None);
        Quota::new(&config)
    }

    fn taken(quota: &mut Quota, bytes: usize, is_packet: bool, now: Time) -> usize {
        (0..10_000).filter(|_| quota.takes(bytes, is_packet, now)).count()
    }

    #[test]
    fn what_passes_in_a_second_is_the_rate_and_in_a_moment_the_burst() {
        let mut bytes = quota(serde_json::json!({ "rate": "80 Mbit/s" }));
        // 100 ms of 10 MB/s, of which a tenth is for messages.
        assert_eq!(taken(&mut bytes, 1000, true, Time::ZERO), 900);
        assert_eq!(taken(&mut bytes, 1000, false, Time::ZERO), 100);
        assert_eq!(bytes.exceeded, 9_100 + 9_900);
        let mut packets = quota(serde_json::json!({ "packets": 1000 }));
        assert_eq!(taken(&mut packets, 1000, true, Time::ZERO), 90);
        let passed: usize = (1..=1000)
            .map(|millis| {
                (0..5).filter(|_| packets.takes(1000, true, Time::ZERO + Span::from_millis(millis))).count()
            })
            .sum();
        assert_eq!(passed, 1000);
    }

    #[test]
    fn bytes_that_are_held_count_until_they_are_let_go() {
        let mut quota = quota(serde_json::json!({ "queue": "100 kB" }));
        let mut held = vec![];
        while quota.takes(1000, true, Time::ZERO) {
            held.extend(quota.hold(1000));
        }
        assert_eq!(held.len(), 100);
        let copy = held[0].again();
        held.truncate(98);
        assert!(quota.takes(1000, true, Time::ZERO) && !quota.takes(1001, true, Time::ZERO));
        drop(copy);
        assert!(quota.takes(2000, true, Time::ZERO));
        held.clear();
        assert_eq!(quota.held.get(), 0);
        // Messages are not held.
        assert!(quota.takes(1 << 20, false, Time::ZERO));
    }

    #[test]
    fn a_quota_that_leaves_no_room_for_messages_or_bounds_nothing_is_refused() {
        let told = |json| serde_json::from_value::<Config>(json).unwrap().fault().map(|fault| fault.key);
        assert_eq!(told(serde_json::json!({})), Some("quota"));
        assert_eq!(told(serde_json::json!({ "rate": "99 kbit/s" })), Some("rate"));
        assert_eq!(told(serde_json::json!({ "packets": 99 })), Some("packets"));
        assert_eq!(told(serde_json::json!({ "queue": "65535 B" })), Some("queue"));
        assert_eq!(
            told(serde_json::json!({ "rate": "100 kbit/s", "packets": 100, "queue": "65536 B" })),
            None
        );
    }
}
