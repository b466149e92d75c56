//! The request for a plan: a circuit, and the host that sends over it.

use crate::{Guarantee, Refusal};
use serde::Serialize;
use weir_base::{Bytes, Rate, Span};

/// Which traffic comes first on a circuit without a full guarantee (section 3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// The transfer keeps its rate; background traffic suffers losses.
    #[default]
    Transfer,
    /// Background traffic keeps its rate; the transfer reduces its own.
    Background,
}

/// The bytes of a packet that the provider's rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// All bytes on the wire: preamble, frame, checksum and gap.
    Wire,
    /// The frame without its checksum, as `tc` counts.
    #[default]
    Frame,
    /// The IP packet.
    Packet,
}

/// The version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ip {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// The timers that wake a shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timers {
    /// High-resolution timers (`CONFIG_HIGH_RES_TIMERS`).
    #[default]
    Fine,
    /// High-resolution timers in a busy host that handles them late, by up to this time.
    Late(Span),
    /// The kernel's tick, this many times a second (`CONFIG_HZ`).
    Tick(u32),
}

/// A circuit and the host that sends over it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// The circuit's rate, as the provider gives it.
    pub rate: Rate,
    /// The round trip to the other end, with nothing queued.
    pub rtt: Span,
    /// The largest IP packet.
    pub mtu: Bytes,
    /// The bytes that the rate counts.
    pub layer: Layer,
    /// The version of IP.
    pub ip: Ip,
    /// The guarantee of the network.
    pub guarantee: Guarantee,
    /// Which traffic comes first if the guarantee is not full.
    pub priority: Priority,
    /// The rate of the sender's card; `None` if it is unknown.
    pub card: Option<Rate>,
    /// The timers that wake the shaper.
    pub timers: Timers,
    /// Whether the kernel hands the card packets of many segments (TSO, GSO).
    pub offloads: bool,
    /// The window in percent of rate times round trip.
    pub window_percent: u32,
}

/// The window with the highest throughput in section 3.5.1, on both hosts, at 0.5 and at 50 ms.
const WINDOW_PERCENT: u32 = 130;
/// Largest packet of Ethernet without jumbo frames.
const MTU: Bytes = Bytes::new(1500);
/// The smallest packet that every IPv6 path carries (RFC 8200, section 5), and the largest IP packet.
const MTUS: (Bytes, Bytes) = (Bytes::new(1280), Bytes::new(65_535));
/// The smallest and the largest window that Circuit TCP accepts, in percent.
const WINDOW_PERCENTS: (u32, u32) = (1, 1000);

impl Request {
    /// A request for a guaranteed circuit of this rate and round trip, with defaults for everything else.
    pub fn new(rate: Rate, rtt: Span) -> Request {
        Request {
            rate,
            rtt,
            mtu: MTU,
            layer: Layer::default(),
            ip: Ip::default(),
            guarantee: Guarantee::default(),
            priority: Priority::default(),
            card: None,
            timers: Timers::default(),
            offloads: true,
            window_percent: WINDOW_PERCENT,
        }
    }

    /// Whether it can be planned for.
    ///
    /// # Errors
    /// A value is zero or out of its range, or the circuit is faster than the card.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.rate.bits_per_sec() < 8 {
            return Err(Refusal::NoRate);
        }
        if self.rtt.as_micros() == 0 {
            return Err(Refusal::NoRoundTrip);
        }
        if !(MTUS.0..=MTUS.1).contains(&self.mtu) {
            return Err(Refusal::Mtu { mtu: self.mtu, least: MTUS.0, most: MTUS.1 });
        }
        if self.timers == Timers::Tick(0) {
            return Err(Refusal::NoTicks);
        }
        let (least, most) = WINDOW_PERCENTS;
        if !(least..=most).contains(&self.window_percent) {
            return Err(Refusal::WindowPercent { percent: self.window_percent, least, most });
        }
        match self.card {
            Some(card) if self.rate > card => Err(Refusal::AboveCard { rate: self.rate, card }),
            _ => Ok(()),
        }
    }
}
