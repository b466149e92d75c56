//! Checks of parameters that several workloads share: bounds, and the errors for values beyond them.

use weir_base::{Bytes, ParameterError, Rate, Span};

/// Length of the IPv4 and UDP headers (RFC 791, RFC 768).
pub(crate) const UDP_HEADERS: Bytes = Bytes::new(28);
/// The largest rate of a workload.
const FASTEST: Rate = Rate::from_mbit_per_sec(1_000_000);
/// The largest number of bytes that one flow sends or requests.
const LARGEST: Bytes = Bytes::new(1_000_000_000_000);
/// The longest time that an application waits.
const LONGEST: Span = Span::from_secs(3600);

/// Checks a rate: above zero, and at most `FASTEST`.
pub(crate) fn rate(key: &'static str, rate: Rate) -> Option<ParameterError> {
    if rate.bits_per_sec() == 0 {
        Some(ParameterError::new(key, "a rate of 0 sends nothing", "write a rate above 0 bit/s"))
    } else if rate > FASTEST {
        Some(ParameterError::new(key, format!("{rate} is faster than any link"), "write at most 1000 Gbit/s"))
    } else {
        None
    }
}

/// Checks the length of an IP packet: room for UDP and `more` bytes of payload, and at most `mtu`.
pub(crate) fn packet(key: &'static str, packet: Bytes, more: Bytes, mtu: Bytes) -> Option<ParameterError> {
    let least = UDP_HEADERS + more;
    (packet < least || packet > mtu).then(|| {
        let message = format!("an IP packet with UDP cannot be {packet} long");
        ParameterError::new(key, message, format!("write from {least} to {mtu}, headers included"))
    })
}

/// Checks a size: above zero, and at most `LARGEST`.
pub(crate) fn size(key: &'static str, what: &str, size: Bytes) -> Option<ParameterError> {
    (size == Bytes::ZERO || size > LARGEST).then(|| {
        ParameterError::new(
            key,
            format!("{what} cannot be {size} long"),
            format!("write from 1 B to {LARGEST}"),
        )
    })
}

/// Checks a time: at least `least`, and at most `LONGEST`.
pub(crate) fn span(key: &'static str, what: &str, span: Span, least: Span) -> Option<ParameterError> {
    (span < least || span > LONGEST).then(|| {
        ParameterError::new(
            key,
            format!("{what} cannot last {span}"),
            format!("write from {least} to {LONGEST}"),
        )
    })
}

/// Checks a number per second: above 0, and at most `most`.
pub(crate) fn per_second(key: &'static str, what: &str, number: f64, most: f64) -> Option<ParameterError> {
    (!(number > 0.0 && number <= most)).then(|| {
        let message = format!("{number} {what} a second are not possible");
        ParameterError::new(key, message, format!("write a number above 0 and up to {most}"))
    })
}
