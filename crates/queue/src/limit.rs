//! How much a queue may hold: in packets, bytes, time or bandwidth-delay products.

use crate::{Backlog, Link};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use weir_base::WORDS;
use weir_base::{Bytes, Span, UnitError};

/// A limit as a lab file writes it: `"1000 packets"`, `"64 KiB"`, `"20 ms"` or `"2 bdp"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A number of packets, whatever their size.
    Packets(u32),
    /// A number of IP bytes.
    Bytes(Bytes),
    /// What the link sends in this time, at its initial rate.
    Time(Span),
    /// Multiples of the bandwidth-delay product (initial rate times base RTT), rounded up to packets of the MTU.
    Bdp(f64),
}

/// A limit resolved for one link: a number of packets or of IP bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Packets(u32),
    Bytes(Bytes),
}

/// How many packets and how many IP bytes fit into a queue; the largest numbers where there is no limit. Both are compared for each packet,
/// which is cheaper than to look which of them is limited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    packets: u32,
    bytes: Bytes,
}

impl Limit {
    /// The limit on this link. A limit in BDP on a link without a base RTT is one packet; the plan refuses such labs.
    pub(crate) fn resolve(self, link: &Link) -> Size {
        match self {
            Limit::Packets(packets) => Size::Packets(packets),
            Limit::Bytes(bytes) => Size::Bytes(bytes),
            Limit::Time(span) => Size::Bytes(link.rate.bytes_in(span).max(link.mtu)),
            Limit::Bdp(factor) => Size::Packets(packets_of_bdp(factor, link)),
        }
    }

    /// The room of a queue with this limit on this link.
    pub(crate) fn room(self, link: &Link) -> Room {
        match self.resolve(link) {
            Size::Packets(packets) => Room { packets, bytes: Bytes::new(u64::MAX) },
            Size::Bytes(bytes) => Room { packets: u32::MAX, bytes },
        }
    }
}

/// `factor` bandwidth-delay products in packets of the MTU, rounded up; at least one.
fn packets_of_bdp(factor: f64, link: &Link) -> u32 {
    let bdp = link.rate.bytes_in(link.base_rtt.unwrap_or(Span::ZERO)).get() as f64 * factor;
    // Half a byte of slack, so that a product that is a whole number of packets is not rounded up to one more.
    let packets = ((bdp - 0.5) / link.mtu.get() as f64).ceil();
    packets.clamp(1.0, f64::from(u32::MAX)) as u32
}

impl Room {
    /// The part of this room that holds at most this number of bytes.
    pub(crate) fn within(self, bytes: Bytes) -> Room {
        Room { bytes: self.bytes.min(bytes), ..self }
    }

    /// Whether a packet of this IP length fits beside the backlog.
    #[inline]
    pub(crate) fn fits(self, backlog: Backlog, length: u32) -> bool {
        backlog.packets < self.packets && backlog.bytes + Bytes::new(length.into()) <= self.bytes
    }

    /// Whether the backlog is larger than the room.
    #[inline]
    pub(crate) fn is_exceeded(self, backlog: Backlog) -> bool {
        backlog.packets > self.packets || backlog.bytes > self.bytes
    }
}

impl FromStr for Limit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Limit, UnitError> {
        let text = text.trim();
        let unit =
            text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | ' ' | '-' | '+'));
        let number = text[..text.len() - unit.len()].trim().replace('_', "");
        let wrong = |message: String| UnitError {
            message,
            help: "write for example \"1000 packets\", \"64 KiB\", \"20 ms\" or \"2 bdp\"".into(),
        };
        if number.starts_with('-') {
            return Err(wrong("a limit cannot be negative".into()));
        }
        let positive = |limit: Limit, zero: bool| {
            if zero { Err(wrong("a queue with a limit of 0 holds no packet".into())) } else { Ok(limit) }
        };
        match unit {
            "packet" | "packets" | "p" => {
                let packets: u32 =
                    number.parse().map_err(|_| wrong(format!("\"{number}\" is not a number of packets")))?;
                positive(Limit::Packets(packets), packets == 0)
            }
            "bdp" | "BDP" => match number.parse::<f64>() {
                Ok(factor) if factor.is_finite() && factor <= 1e6 => {
                    positive(Limit::Bdp(factor), factor == 0.0)
                }
                _ => Err(wrong(format!("\"{number}\" is not a number of BDP"))),
            },
            _ => match (text.parse::<Bytes>(), text.parse::<Span>()) {
                (Ok(bytes), _) => positive(Limit::Bytes(bytes), bytes == Bytes::ZERO),
                (_, Ok(span)) => positive(Limit::Time(span), span.is_zero()),
                (Err(error), Err(_)) if unit.is_empty() => Err(wrong(error.message)),
                _ => Err(wrong(format!("\"{unit}\" is not a unit of a queue's limit"))),
            },
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(packets) => write!(f, "{packets} packets"),
            Limit::Bytes(bytes) => write!(f, "{bytes}"),
            Limit::Time(span) => write!(f, "{span}"),
            Limit::Bdp(factor) => write!(f, "{factor} bdp"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Limit, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "How much a queue may hold: packets, bytes, time at the link's initial rate, or bdp.",
            (WORDS): "a limit with its unit (packets, bytes as in \"64 KiB\", time at the link's rate, or bdp)",
            "examples": ["1000 packets", "64 KiB", "20 ms", "2 bdp"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Rate;

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(50),
        base_rtt: Some(Span::from_millis(48)),
        mtu: Bytes::new(1500),
    };

    #[test]
    fn one_bdp_of_50_mbit_and_48_ms_is_200_packets() {
        assert_eq!(Limit::Bdp(1.0).resolve(&LINK), Size::Packets(200));
        assert_eq!("2 bdp".parse::<Limit>().unwrap().resolve(&LINK), Size::Packets(400));
    }

    #[test]
    fn a_limit_in_time_is_the_bytes_that_the_link_sends_in_that_time() {
        assert_eq!("10 ms".parse::<Limit>().unwrap().resolve(&LINK), Size::Bytes(Bytes::new(62_500)));
    }

    #[test]
    fn printed_limits_read_back_and_invalid_ones_are_refused() {
        for text in ["1000 packets", "64 KiB", "20 ms", "2 bdp", "0.5 bdp"] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
        }
        for text in ["", "10", "0 packets", "-1 packets", "nan bdp", "10 furlongs"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
