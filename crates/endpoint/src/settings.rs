//! The settings of a traffic group's connections, common to all transports. `weir_transport::Config::keys` lists the keys that a transport
//! uses.

use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Clock, Span};

/// Default of [`Settings::rto_min`] (Linux `TCP_RTO_MIN`).
pub const RTO_MIN: Span = Span::from_millis(200);

/// The settings of a group's connections, at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The sender's congestion controller.
    pub cc: weir_control::Config,
    /// Whether ECN is negotiated.
    pub ecn: bool,
    /// The ECN codepoint of packets that may be marked.
    pub codepoint: weir_control::Codepoint,
    /// How the receiver reports marks.
    pub feedback: weir_control::Feedback,
    /// Whether windows are scaled (RFC 7323).
    pub window_scaling: bool,
    /// Whether acknowledgements are selective (RFC 2018).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sack: bool,
    /// Smallest variance term of the retransmission timeout (Linux `tcp_rto_min_us`).
    #[serde(default = "rto_min", skip_serializing_if = "is_rto_min")]
    pub rto_min: Span,
    /// Whether a duplicate acknowledgement lets a new segment go before recovery (RFC 3042).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub limited_transmit: bool,
    /// Delay of the acknowledgement of a single segment; `None` for Linux's algorithm, which adapts the delay and has quick
    /// acknowledgements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Span>,
    /// Whether a receiver with `delayed_ack` also acknowledges when the application has read two segments beyond the advertised
    /// window (FreeBSD 4).
    #[serde(default, skip_serializing_if = "is_no")]
    pub window_updates: bool,
    /// Send buffer as Linux's `tcp_wmem` (smallest, initial, largest): autotuned up to the largest.
    pub send_buffer: Buffer,
    /// Receive buffer as Linux's `tcp_rmem`.
    pub receive_buffer: Buffer,
    /// Whether the transport paces at Linux's rate when the controller does not give one.
    pub pacing: bool,
    /// The clock of the sending host's timestamps.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub sender_clock: Clock,
    /// The clock of the receiving host's timestamps.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub receiver_clock: Clock,
}

impl Settings {
    /// The keys of a traffic group from which the settings are read.
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

    /// The settings of Linux where nothing else is asked for.
    pub fn usual() -> Settings {
        let cc = weir_control::Config::Cubic(Default::default());
        let (codepoint, feedback) = cc.signals();
        Settings {
            cc,
            ecn: false,
            codepoint,
            feedback,
            window_scaling: true,
            sack: true,
            rto_min: RTO_MIN,
            limited_transmit: true,
            delayed_ack: None,
            window_updates: false,
            send_buffer: Buffer::SEND,
            receive_buffer: Buffer::RECEIVE,
            pacing: false,
            sender_clock: Clock::default(),
            receiver_clock: Clock::default(),
        }
    }
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

/// Linux's three limits of a socket buffer, in bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Size that is always granted.
    pub min: Bytes,
    /// Size at the start of a connection.
    pub initial: Bytes,
    /// Largest size with autotuning.
    pub max: Bytes,
}

impl Buffer {
    /// Linux's `tcp_wmem` (Documentation/networking/ip-sysctl.rst): 4 KiB, 16 KiB, 4 MiB.
    pub const SEND: Buffer =
        Buffer { min: Bytes::new(4096), initial: Bytes::new(16_384), max: Bytes::new(4_194_304) };
    /// Linux's `tcp_rmem` (Documentation/networking/ip-sysctl.rst): 4 KiB, 128 KiB, 6 MiB.
    pub const RECEIVE: Buffer =
        Buffer { min: Bytes::new(4096), initial: Bytes::new(131_072), max: Bytes::new(6_291_456) };
}
