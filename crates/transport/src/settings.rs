//! What a traffic group asks of its connections, whichever transport carries them. A transport says which of the keys it has a use
//! for ([`crate::Config::keys`]).

use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Clock, Span};

/// [`Settings::rto_min`] where nothing else is said (Linux `TCP_RTO_MIN`).
pub const RTO_MIN: Span = Span::from_millis(200);

/// How a group's connections are set up, at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The sender's congestion controller.
    pub cc: weir_control::Config,
    /// Whether ECN is negotiated.
    pub ecn: bool,
    /// The codepoint of packets that may be marked.
    pub codepoint: weir_control::Codepoint,
    /// How the receiver reports marks.
    pub feedback: weir_control::Feedback,
    /// Whether windows are scaled (RFC 7323).
    pub window_scaling: bool,
    /// Whether acknowledgements are selective (RFC 2018).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sack: bool,
    /// Least of the variance in the retransmission timeout (Linux `tcp_rto_min_us`).
    #[serde(default = "rto_min", skip_serializing_if = "is_rto_min")]
    pub rto_min: Span,
    /// Whether a duplicate acknowledgement lets a new segment go before recovery (RFC 3042).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub limited_transmit: bool,
    /// How long a receiver holds an acknowledgement of a single segment back; none is Linux's way, which adapts and has quick
    /// acknowledgements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Span>,
    /// Whether such a receiver acknowledges also when two segments were read beyond the window that was told (FreeBSD 4).
    #[serde(default, skip_serializing_if = "is_no")]
    pub window_updates: bool,
    /// Send buffer as Linux's `tcp_wmem` (smallest, initial, largest): autotuned up to the largest.
    pub send_buffer: Buffer,
    /// Receive buffer as Linux's `tcp_rmem`.
    pub receive_buffer: Buffer,
    /// Whether the transport paces at Linux's rate when the controller does not give one.
    pub pacing: bool,
    /// What the sending host's timestamps are taken from.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub sender_clock: Clock,
    /// What the receiving host's timestamps are taken from.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub receiver_clock: Clock,
}

impl Settings {
    /// The keys of a traffic group that make them up.
    pub const KEYS: [&'static str; 14] = [
        "cc",
        "ecn",
        "feedback",
        "window_scaling",
        "sack",
        "rto_min",
        "limited_transmit",
        "delayed_ack",
        "window_updates",
        "pacing",
        "send_buffer",
        "receive_buffer",
        "sender_clock",
        "receiver_clock",
    ];
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn is_no(value: &bool) -> bool {
    !*value
}

fn rto_min() -> Span {
    RTO_MIN
}

fn is_rto_min(value: &Span) -> bool {
    *value == RTO_MIN
}

fn is_plain(clock: &Clock) -> bool {
    *clock == Clock::default()
}

/// Linux's three numbers of a socket buffer, in bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Least that is always granted.
    pub min: Bytes,
    /// What a connection starts with.
    pub initial: Bytes,
    /// What autotuning may grow it to.
    pub max: Bytes,
}
