//! Why there is no plan for a request.

use weir_base::{Bytes, Rate};

/// Why a request cannot be planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Less than a byte a second.
    #[error("a circuit needs a rate above 0")]
    NoRate,
    /// Less than a microsecond.
    #[error("a circuit needs a round trip of at least 1 us")]
    NoRoundTrip,
    /// No packet of IP is so small, or so large.
    #[error("an MTU of {mtu} cannot be: expected {least} to {most}")]
    Mtu {
        /// What was asked for.
        mtu: Bytes,
        /// The smallest that is taken.
        least: Bytes,
        /// The largest.
        most: Bytes,
    },
    /// A clock that never ticks.
    #[error("a kernel ticks at least once a second")]
    NoTicks,
    /// A window of nothing, or of many times what the path holds.
    #[error("a window of {percent} % of rate times round trip cannot be: expected {least} to {most} %")]
    WindowPercent {
        /// What was asked for.
        percent: u32,
        /// The smallest that is taken.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// It does not fit.
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
            Refusal::NoRoundTrip => "measure it with a ping of full size, for example 26ms",
            Refusal::Mtu { .. } => "`ip link` tells the device's; all devices on the path must carry it",
            Refusal::NoTicks => "the kernel's CONFIG_HZ is 100, 250, 300 or 1000",
            Refusal::WindowPercent { .. } => "130 fills the circuit (section 3.5.1 of the thesis)",
            Refusal::AboveCard { .. } => "reserve at most the card's rate, or send from another device",
        }
    }
}
