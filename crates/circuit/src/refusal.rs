//! Why there is no plan for a request.

use weir_base::{Bytes, Rate};

/// Why a request cannot be planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The rate is below one byte a second.
    #[error("a circuit needs a rate above 0")]
    NoRate,
    /// The round trip is below a microsecond.
    #[error("a circuit needs a round trip of at least 1 us")]
    NoRoundTrip,
    /// The MTU is too small or too large for IP.
    #[error("an MTU of {mtu} is out of range: expected {least} to {most}")]
    Mtu {
        /// The MTU of the request.
        mtu: Bytes,
        /// The smallest accepted MTU.
        least: Bytes,
        /// The largest accepted MTU.
        most: Bytes,
    },
    /// The clock has zero ticks a second.
    #[error("the kernel's HZ must be at least 1")]
    NoTicks,
    /// The window is zero, or too many times the bandwidth-delay product.
    #[error("a window of {percent} % of the BDP is out of range: expected {least} to {most} %")]
    WindowPercent {
        /// The window of the request.
        percent: u32,
        /// The smallest accepted window.
        least: u32,
        /// The largest accepted window.
        most: u32,
    },
    /// The circuit is faster than the card.
    #[error("a circuit of {rate} does not fit a card of {card}")]
    AboveCard {
        /// The circuit's rate.
        rate: Rate,
        /// The card's.
        card: Rate,
    },
}

impl Refusal {
    /// What a person can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Refusal::NoRate => "give the rate that the provider has reserved, for example 4gbit",
            Refusal::NoRoundTrip => "measure it with a ping of full size, and give for example 26ms",
            Refusal::Mtu { .. } => "`ip link` shows the device's MTU; all devices on the path must carry it",
            Refusal::NoTicks => "give the kernel's CONFIG_HZ: 100, 250, 300 or 1000",
            Refusal::WindowPercent { .. } => "130 fills the circuit (section 3.5.1 of the thesis)",
            Refusal::AboveCard { .. } => "reserve at most the card's rate, or send from another device",
        }
    }
}
