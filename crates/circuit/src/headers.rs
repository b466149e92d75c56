//! Header lengths, and conversion of rates between layers.

use crate::{Ip, Layer, Request};
use weir_base::{Bytes, Rate};

/// Addresses and type of an Ethernet frame (IEEE 802.3, clause 3), which `tc` counts.
const ETHERNET: u64 = 14;
/// Other bytes on the wire: preamble 8, checksum 4, gap between packets 12 (IEEE 802.3, clauses 3 and 4).
const WIRE: u64 = 24;
/// Headers without options (RFC 791, RFC 8200, RFC 9293).
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const TCP: u64 = 20;
/// Timestamps with their padding (RFC 7323), which Linux sends in every segment.
const TIMESTAMPS: u64 = 12;

/// The lengths of a full segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Payload.
    pub payload: Bytes,
    /// The IP packet.
    pub packet: Bytes,
    /// The frame without its checksum, as `tc` counts it.
    pub frame: Bytes,
    /// All bytes that it takes on the wire.
    pub wire: Bytes,
}

impl Headers {
    /// The lengths of a full segment of a request.
    pub fn of(request: &Request) -> Headers {
        let packet = request.mtu.get();
        let ip = if request.ip == Ip::V4 { IPV4 } else { IPV6 };
        let bytes = Bytes::new;
        Headers {
            payload: bytes(packet.saturating_sub(ip + TCP + TIMESTAMPS)),
            packet: bytes(packet),
            frame: bytes(packet + ETHERNET),
            wire: bytes(packet + ETHERNET + WIRE),
        }
    }

    /// Bytes of a frame that are not payload.
    pub fn of_frame(&self) -> Bytes {
        self.frame - self.payload
    }

    /// Converts a rate in units of one of these lengths into one of another, rounded down.
    pub(crate) fn convert(rate: Rate, from: Bytes, to: Bytes) -> Rate {
        let bits = u128::from(rate.bits_per_sec()) * u128::from(to.get()) / u128::from(from.get());
        Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Converts a rate that counts a layer into one in frames, as `tc` counts them.
    pub(crate) fn in_frames(&self, rate: Rate, layer: Layer) -> Rate {
        let counted = match layer {
            Layer::Wire => self.wire,
            Layer::Frame => self.frame,
            Layer::Packet => self.packet,
        };
        Headers::convert(rate, counted, self.frame)
    }

    /// The payload rate of a rate in frames.
    pub(crate) fn goodput(&self, frames: Rate) -> Rate {
        Headers::convert(frames, self.frame, self.payload)
    }
}
