//! What a controller is told, and what it answers: the arguments of the hooks of [`Controller`](crate::Controller).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Ecn, Rate, Span, Time};

/// What a controller has decided: the answers of the methods of these names.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    /// [`Controller::window`].
    pub window: Bytes,
    /// [`Controller::slow_start_threshold`].
    pub threshold: Option<Bytes>,
    /// [`Controller::pacing_rate`].
    pub pacing_rate: Option<Rate>,
    /// [`Controller::wants_reduction`].
    pub wants_reduction: bool,
}

/// What a controller is built from, besides its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// When the connection was established.
    pub now: Time,
    /// Largest segment payload, options taken off (Linux `mss_cache`).
    pub mss: Bytes,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Whether segments are paced even where the controller asks for no rate (Linux `sk_pacing_status`).
    pub paced: bool,
    /// Round-trip time of the handshake, where it could be measured.
    pub rtt: Option<Span>,
}

/// What an acknowledgement delivered.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// When it arrived.
    pub now: Time,
    /// Segments newly delivered, cumulatively or selectively.
    pub segments: u32,
    /// Segments that left the retransmission queue (Linux `pkts_acked`).
    pub acked_segments: u32,
    /// Segments reported by SACK that are not yet acknowledged cumulatively (Linux `sacked_out`).
    pub sacked_out: u32,
    /// Those of the delivered ones that were reported CE, as [`Ack::ce_packets`] counts them.
    pub ce_packets: u32,
    /// Round-trip time of the newest segment that was sent once only.
    pub rtt: Option<RttSample>,
    /// Timestamps of the segment (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Offset of the first byte not acknowledged.
    pub acknowledged: u64,
    /// What the sender was doing when it arrived.
    pub phase: Phase,
    /// Whether it moved the cumulative number and told nothing else: no SACK blocks, no other window, no echo of a mark
    /// (Linux header prediction; otherwise `CA_ACK_SLOWPATH`).
    pub predicted: bool,
}

/// An acknowledgement, seen from the sender. Segments are counted as the kernel counts packets.
#[derive(Debug, Clone)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly acknowledged cumulatively.
    pub acked: Bytes,
    /// Bytes newly acknowledged selectively.
    pub sacked: Bytes,
    /// Segments newly delivered, cumulatively or selectively (Linux `acked_sacked`).
    pub delivered_segments: u32,
    /// Segments that left the retransmission queue (Linux `pkts_acked`).
    pub acked_segments: u32,
    /// Round-trip time of the newest segment that was sent once only.
    pub rtt: Option<RttSample>,
    /// Smoothed RTT after this sample (RFC 6298), once there is one.
    pub srtt: Option<Span>,
    /// Smallest RTT that the transport knows of (Linux `tcp_min_rtt`).
    pub min_rtt: Option<Span>,
    /// Timestamps of the segment (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Delivery rate (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`).
    pub rate: Option<RateSample>,
    /// All segments delivered so far, the handshake counted as one (Linux `tp->delivered`).
    pub delivered: u64,
    /// Segments newly marked lost.
    pub lost_segments: u32,
    /// All segments ever marked lost (Linux `tp->lost`).
    pub lost: u64,
    /// When the pacer lets the next segment go; not later than now where nothing is paced (Linux `tcp_wstamp_ns`).
    pub departure: Time,
    /// Packets newly reported CE; with classic feedback, the segments acknowledged while ECE was set.
    pub ce_packets: u32,
    /// Their bytes.
    pub ce_bytes: Bytes,
    /// Bytes in flight before this acknowledgement.
    pub in_flight_before: Bytes,
    /// Bytes in flight after it.
    pub in_flight: Bytes,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Offset of the first byte not acknowledged.
    pub acknowledged: u64,
    /// Whether a round trip ended with this acknowledgement: data sent after the last round's start is acknowledged.
    pub round_start: bool,
    /// Whether the window, not the application or the receiver, was what limited sending (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the window may grow: no reduction is under way and data moved forward (Linux `tcp_may_raise_cwnd`).
    pub may_grow: bool,
    /// What the sender is doing.
    pub phase: Phase,
}

/// A round-trip time.
#[derive(Debug, Clone, Copy)]
pub struct RttSample {
    /// The time from sending to acknowledgement.
    pub rtt: Span,
    /// Whether the receiver may have held the acknowledgement back.
    pub delayed: bool,
}

/// The timestamp option of the segment that acknowledges.
#[derive(Debug, Clone, Copy)]
pub struct Timestamps {
    /// The peer's clock when it sent the acknowledgement, in its ticks.
    pub peer_ticks: u32,
    /// Our clock when we sent the segment that is acknowledged, in our ticks.
    pub echoed_ticks: u32,
    /// Our clock now, in our ticks.
    pub own_ticks: u32,
    /// Length of a tick, taken to be the same at both ends.
    pub tick: Span,
}

/// What was delivered over which time.
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// Segments delivered over the interval.
    pub delivered: u32,
    /// The longer of its send and acknowledgement intervals.
    pub interval: Span,
    /// Segments delivered when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Segments newly marked lost.
    pub losses: u32,
    /// Whether the sample was taken while the application limited sending.
    pub app_limited: bool,
}

/// A segment that leaves.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// Bytes in flight before it.
    pub in_flight_before: Bytes,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// Why recovery begins.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// When.
    pub now: Time,
    /// What told of congestion.
    pub signal: Signal,
    /// Bytes in flight.
    pub in_flight: Bytes,
}

/// What told of congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A loss that was detected by acknowledgements.
    Loss,
    /// An ECN echo.
    Ecn,
    /// The controller itself, by [`Controller::wants_reduction`].
    Own,
    /// The sending host's own queue refused a segment, which stays unsent (Linux `tcp_enter_cwr` on `NET_XMIT_DROP`).
    Refused,
}

/// The retransmission timer fired.
#[derive(Debug, Clone, Copy)]
pub struct Timeout {
    /// When.
    pub now: Time,
    /// Bytes in flight after everything lost was taken off.
    pub in_flight: Bytes,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Whether the threshold is to be lowered: false when this flight was already answered with a reduction
    /// (Linux `tcp_enter_loss`).
    pub reduce: bool,
    /// All segments delivered so far, as [`Ack::delivered`] counts them.
    pub delivered: u64,
    /// All segments ever marked lost, as [`Ack::lost`] counts them.
    pub lost: u64,
}

/// Sending begins again, or the window was not used.
#[derive(Debug, Clone, Copy)]
pub enum Restart {
    /// The connection was idle for longer than a retransmission timeout (RFC 2861 as Linux has it, `tcp_cwnd_restart`).
    Idle {
        /// When.
        now: Time,
        /// How long nothing was sent.
        idle: Span,
        /// The retransmission timeout.
        rto: Span,
        /// Initial window in segments; the window never falls below it for idleness.
        initial_window: u32,
    },
    /// Sending begins while nothing is in flight (Linux `CA_EVENT_TX_START`).
    Transmit {
        /// When.
        now: Time,
        /// How long ago the last segment left.
        idle: Span,
        /// Whether the application limits sending (Linux `tp->app_limited`).
        app_limited: bool,
    },
    /// For a whole timeout the application used only part of the window (Linux `tcp_cwnd_application_limited`).
    Unused {
        /// When.
        now: Time,
        /// The most segments that were in flight.
        used: u32,
        /// Initial window in segments.
        initial_window: u32,
    },
}

/// What the sender is doing (Linux `tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// All is well.
    #[default]
    Open,
    /// Duplicate acknowledgements or SACKs, no loss yet.
    Disorder,
    /// The window comes down after an ECN echo.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Who walks the window down in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The transport's PRR (RFC 6937).
    Proportional,
    /// The controller: its window holds at every moment.
    Own,
}

/// The codepoint that data segments carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Codepoint {
    /// None, even where the lab allows ECN.
    Off,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
}

impl Codepoint {
    /// As it stands in the IP header (RFC 3168, section 5).
    pub fn as_ecn(self) -> Ecn {
        match self {
            Codepoint::Off => Ecn::NotEct,
            Codepoint::Ect0 => Ecn::Ect0,
            Codepoint::Ect1 => Ecn::Ect1,
        }
    }
}

/// How the receiver tells of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// ECE until CWR (RFC 3168).
    Classic,
    /// ECE follows the marks (RFC 8257).
    Dctcp,
    /// Counted (RFC 9768).
    Accurate,
}
