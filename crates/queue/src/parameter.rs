//! Ranges of parameters that several disciplines share. An error message says what to write instead.

use serde::{Deserialize, Deserializer, de::Error};
use weir_base::{Bytes, Rate, Span, within};

/// Shortest period of an update: about the time of a packet of 1500 bytes at 100 Mbit/s; a shorter one measures nothing new.
const SHORTEST_PERIOD: Span = Span::from_micros(100);
/// Largest weight of a controller: far beyond what is stable (Linux takes up to 2^32/16, RFC 8033 proposes 0.125 and 1.25).
const LARGEST_WEIGHT: f64 = 100.0;
/// Largest number of buckets of a flow queue (Linux `fq_codel_change` takes 65536).
pub(crate) const MOST_FLOWS: u32 = 65_536;
/// Smallest and largest quantum: the smallest that Linux `fq_codel_change` accepts, and a mebibyte.
const QUANTA: [Bytes; 2] = [Bytes::new(256), Bytes::new(1 << 20)];
/// Smallest rate of a shaper: a byte a second, the unit of rates in Linux's interface.
const SMALLEST_RATE: Rate = Rate::from_bits_per_sec(8);
/// Smallest and largest bucket of a shaper: the shortest Ethernet frame, and a gibibyte, which Linux's 64-bit integers hold.
const BURSTS: [Bytes; 2] = [Bytes::new(64), Bytes::new(1 << 30)];

/// A rate of a shaper.
pub(crate) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    match Rate::deserialize(deserializer)? {
        rate if rate >= SMALLEST_RATE => Ok(rate),
        rate => {
            Err(D::Error::custom(format!("a rate of {rate} sends nothing; write at least {SMALLEST_RATE}")))
        }
    }
}

/// A shaper's burst: the bytes it may send at once.
pub(crate) fn burst<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    within(deserializer, BURSTS[0]..=BURSTS[1])
}

pub(crate) fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    match Span::deserialize(deserializer)? {
        period if period >= SHORTEST_PERIOD => Ok(period),
        period => {
            Err(D::Error::custom(format!("{period} is too short a period; write at least {SHORTEST_PERIOD}")))
        }
    }
}

/// A weight in 1/s.
pub(crate) fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0..=LARGEST_WEIGHT)
}

/// A share or a probability; 0 to 1.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0..=1.0)
}

/// A factor that couples two probabilities; 0 to 255 (a byte in Linux).
pub(crate) fn coupling<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0..=255.0)
}

/// A number of buckets.
pub(crate) fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=MOST_FLOWS)
}

/// The bytes that a queue may send in one turn.
pub(crate) fn quantum<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    within(deserializer, QUANTA[0]..=QUANTA[1])
}
