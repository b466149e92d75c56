//! ECN codepoints of the IP header (RFC 3168, section 5; RFC 9331 for ECT(1)).

use serde::{Deserialize, Serialize};

/// The two ECN bits of an IP header.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a drop is the only congestion signal.
    #[default]
    #[serde(alias = "off")]
    NotEct = 0,
    /// ECN-capable, low-latency service (RFC 9331).
    #[serde(alias = "ect(1)")]
    Ect1 = 1,
    /// ECN-capable, classic.
    #[serde(alias = "ect(0)")]
    Ect0 = 2,
    /// Congestion experienced: the packet is marked.
    Ce = 3,
}

/// All codepoints in the order of their bits: the element at `c as usize` is `c`.
pub const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

impl Ecn {
    /// The codepoint in the two low bits of a TOS or traffic-class byte.
    pub fn from_bits(bits: u8) -> Ecn {
        CODEPOINTS[(bits & 3) as usize]
    }

    /// Whether a queue may mark this packet instead of dropping it.
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// The name used in records and reports: `not-ect`, `ect1`, `ect0`, `ce`.
    pub fn name(self) -> &'static str {
        ["not-ect", "ect1", "ect0", "ce"][self as usize]
    }
}
