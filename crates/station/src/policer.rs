//! A policer: the single-rate three-colour marker of RFC 2697 in its colour-blind mode. Its committed bucket fills at the
//! rate; tokens for which it has no room go into the excess bucket. A packet that the committed bucket covers is green, one
//! that the excess bucket covers is yellow, any other is red. Red packets are dropped, green and yellow ones pass. The records
//! have the counts of each colour.
//!
//! A burst counts IP bytes; buckets are full at the start (section 3).

use crate::{Parameters, StationContext};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use weir_base::{Bucket, Bytes, Rate, Time};
use weir_fabric::{Net, Station, Wire};

/// Parameters of the policer, in the terms of RFC 2697.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Committed information rate, counted in IP bytes.
    #[serde(deserialize_with = "rate")]
    pub rate: Rate,
    /// Committed burst size: IP bytes that may pass as green after an idle time. A larger packet is never green.
    pub burst: Bytes,
    /// Excess burst size: IP bytes that may pass as yellow beyond the committed burst. The excess bucket fills only while the
    /// committed bucket is full.
    pub excess_burst: Bytes,
}

impl Default for Config {
    /// 10 Mbit/s, a burst of 100 ms at this rate, and no excess burst.
    fn default() -> Config {
        Config { rate: Rate::from_mbit_per_sec(10), burst: Bytes::new(125_000), excess_burst: Bytes::ZERO }
    }
}

/// A rate above zero.
fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    match Rate::deserialize(deserializer)? {
        rate if rate.bits_per_sec() == 0 => {
            Err(D::Error::custom("with a rate of 0 no packet passes; write at least 1 bit/s"))
        }
        rate => Ok(rate),
    }
}

/// These bytes in tokens, which are bits.
fn bits(bytes: u64) -> u128 {
    8 * u128::from(bytes)
}

/// Packets of one colour.
#[derive(Debug, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

/// The state of a policer.
#[derive(Debug)]
pub(crate) struct Policer {
    rate: Rate,
    committed: Bucket,
    excess: Bucket,
    /// When tokens were last added.
    filled: Time,
    green: Count,
    yellow: Count,
    red: Count,
}

impl Policer {
    pub(crate) fn new(config: &Config, _: &StationContext) -> Policer {
        Policer {
            rate: config.rate,
            committed: Bucket::full(bits(config.burst.get())),
            excess: Bucket::full(bits(config.excess_burst.get())),
            filled: Time::ZERO,
            green: Count::default(),
            yellow: Count::default(),
            red: Count::default(),
        }
    }

    /// Colours a packet of this many bytes, and returns the count of its colour.
    fn colour(&mut self, bytes: u64, now: Time) -> &mut Count {
        let passed = now.since(self.filled);
        self.filled = now;
        let over = self.committed.fill(self.rate.bits_per_sec(), passed);
        self.excess.add(over);
        let tokens = bits(bytes);
        if self.committed.covers(tokens) {
            &mut self.green
        } else if self.excess.covers(tokens) {
            &mut self.yellow
        } else {
            &mut self.red
        }
    }
}

impl Parameters for Config {}

impl<P: Wire> Station<P> for Policer {
    fn packet(&mut self, packet: P, _: Option<usize>, net: &mut Net<'_, P>) {
        let red_before = self.red.packets;
        let bytes = u64::from(packet.wire_length());
        let count = self.colour(bytes, net.now());
        count.packets += 1;
        count.bytes += bytes;
        if self.red.packets > red_before { net.discard(packet) } else { net.forward(packet) }
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("green_packets", self.green.packets as f64);
        report("yellow_packets", self.yellow.packets as f64);
        report("red_packets", self.red.packets as f64);
        report("green_bytes", self.green.bytes as f64);
        report("yellow_bytes", self.yellow.bytes as f64);
        report("red_bytes", self.red.bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sent, past, state};
    use weir_base::Ecn;

    /// Packets of 1000 bytes at these times in milliseconds: which of them pass, and how many were green, yellow and red.
    fn police(text: &str, at: &[u64]) -> (Vec<u64>, [f64; 3]) {
        let config: Config = serde_json::from_str(text).unwrap();
        let sent: Vec<Sent> = at.iter().map(|&ms| Sent { ms, length: 1000, ecn: Ecn::NotEct }).collect();
        let (arrived, fabric) = past(Box::new(Policer::new(&config, &StationContext::default())), 2, &sent);
        let colours =
            ["green_packets", "yellow_packets", "red_packets"].map(|name| state(&fabric, name).unwrap());
        assert_eq!(fabric.totals().discarded as f64, colours[2]);
        (arrived.iter().map(|packet| packet.number).collect(), colours)
    }

    #[test]
    fn packets_within_the_committed_bucket_are_green_and_those_within_the_excess_bucket_yellow() {
        // 8 Mbit/s fill a packet's 1000 bytes in a millisecond. Two, then three packets are covered.
        let text = r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "excess_burst": "3 kB" }"#;
        assert_eq!(police(text, &[0; 7]), (vec![0, 1, 2, 3, 4], [2.0, 3.0, 2.0]));
        // A millisecond later there is a token for one more, which is green.
        assert_eq!(police(text, &[0, 0, 0, 0, 0, 0, 1, 1]), (vec![0, 1, 2, 3, 4, 6], [3.0, 3.0, 2.0]));
    }

    #[test]
    fn the_excess_bucket_fills_only_with_tokens_that_overflow_the_committed_one() {
        let text = r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "excess_burst": "3 kB" }"#;
        // Both buckets are empty at 0 ms; after 3 ms two of three tokens are in the committed bucket and one in the excess
        // bucket.
        assert_eq!(police(text, &[0, 0, 0, 0, 0, 3, 3, 3, 3]).1, [4.0, 4.0, 1.0]);
        // A long idle time fills both buckets, and no more.
        assert_eq!(police(text, &[0, 0, 0, 0, 0, 90, 90, 90, 90, 90, 90]).1, [4.0, 6.0, 1.0]);
    }

    #[test]
    fn without_an_excess_burst_there_is_no_yellow_and_a_packet_above_the_burst_never_passes() {
        assert_eq!(police(r#"{ "rate": "8 Mbit/s", "burst": "1500 B" }"#, &[0, 0, 1]).1, [2.0, 0.0, 1.0]);
        assert_eq!(police(r#"{ "rate": "8 Mbit/s", "burst": "999 B" }"#, &[0, 9, 99]).1, [0.0, 0.0, 3.0]);
    }

    #[test]
    fn the_policed_rate_is_exact_to_the_bit() {
        // 3 Mbit/s are 375 bytes a millisecond: 375,000 in a second of a packet each millisecond, and 2000 to begin with.
        let at: Vec<u64> = (0..=1000).collect();
        assert_eq!(police(r#"{ "rate": "3 Mbit/s", "burst": "2 kB" }"#, &at).1, [377.0, 0.0, 624.0]);
    }

    #[test]
    fn a_rate_of_zero_is_refused() {
        let refused = serde_json::from_str::<Config>(r#"{ "rate": "0 bit/s" }"#).unwrap_err().to_string();
        assert!(refused.contains("at least 1 bit/s"), "{refused}");
    }
}
