//! What the parameters of several workloads have in common: bounds, and how a value beyond them is told.

use weir_base::{Bytes, Rate, Span};

/// IPv4 and UDP headers (RFC 791, RFC 768).
pub(crate) const UDP_HEADERS: Bytes = Bytes::new(28);
/// The fastest that anything here sends.
const FASTEST: Rate = Rate::from_mbit_per_sec(1_000_000);
/// The most bytes that one flow sends or asks for.
const LARGEST: Bytes = Bytes::new(1_000_000_000_000);
/// The longest that an application waits.
const LONGEST: Span = Span::from_secs(3600);

/// Something wrong with a parameter beyond its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
    /// What would be right.
    pub help: String,
}

impl Fault {
    pub(crate) fn new(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { key, message: message.into(), help: help.into() }
    }
}

/// A rate above nothing and within what any link has.
pub(crate) fn rate(key: &'static str, rate: Rate) -> Option<Fault> {
    if rate.bits_per_sec() == 0 {
        Some(Fault::new(key, "a rate of nothing sends nothing", "write a rate above 0 bit/s"))
    } else if rate > FASTEST {
        Some(Fault::new(key, format!("{rate} is faster than any link"), "write at most 1000 Gbit/s"))
    } else {
        None
    }
}

/// The length of an IP packet with UDP and `more` bytes of payload at least.
pub(crate) fn packet(key: &'static str, packet: Bytes, more: Bytes, mtu: Bytes) -> Option<Fault> {
    let least = UDP_HEADERS + more;
    (packet < least || packet > mtu).then(|| {
        let message = format!("an IP packet with UDP cannot be {packet} long");
        Fault::new(key, message, format!("write from {least} to {mtu}, headers included"))
    })
}

/// A size above nothing and below all measure.
pub(crate) fn size(key: &'static str, what: &str, size: Bytes) -> Option<Fault> {
    (size == Bytes::ZERO || size > LARGEST).then(|| {
        Fault::new(key, format!("{what} cannot be {size} long"), format!("write from 1 B to {LARGEST}"))
    })
}

/// A time of so much at least.
pub(crate) fn span(key: &'static str, what: &str, span: Span, least: Span) -> Option<Fault> {
    (span < least || span > LONGEST).then(|| {
        Fault::new(key, format!("{what} cannot last {span}"), format!("write from {least} to {LONGEST}"))
    })
}

/// A number of things a second.
pub(crate) fn per_second(key: &'static str, what: &str, number: f64, most: f64) -> Option<Fault> {
    (!(number > 0.0 && number <= most)).then(|| {
        let message = format!("{number} {what} a second are not possible");
        Fault::new(key, message, format!("write a number above 0 and up to {most}"))
    })
}
