//! The arguments and results of the hooks of [`Controller`](crate::Controller).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Ecn, Rate, Span, Time};

/// The decisions of a controller: the results of the methods of these names.
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

/// The properties of a connection from which a controller is built, beside its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// When the connection was established.
    pub now: Time,
    /// Largest segment payload, without TCP options (Linux `mss_cache`).
    pub mss: Bytes,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Whether segments are paced even if the controller gives no pacing rate (Linux `sk_pacing_status`).
    pub paced: bool,
    /// Round-trip time of the handshake; `None` if it could not be measured.
    pub rtt: Option<Span>,
}

/// The delivery that an acknowledgement reports.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Segments newly delivered, cumulatively or selectively.
    pub segments: u32,
    /// Segments that left the retransmission queue (Linux `pkts_acked`).
    pub acked_segments: u32,
    /// Segments reported by SACK that are not yet acknowledged cumulatively (Linux `sacked_out`).
    pub sacked_out: u32,
    /// Newly delivered segments that were reported CE, as [`Ack::ce_packets`] counts them.
    pub ce_packets: u32,
    /// Round-trip time of the newest segment that was not retransmitted; `None` if no such segment was delivered.
    pub rtt: Option<RttSample>,
    /// Timestamps of the acknowledgement (RFC 7323); `None` without the option.
    pub timestamps: Option<Timestamps>,
    /// Our clock when the acknowledgement arrived, in the ticks of its timestamps; 0 without the option.
    pub own_ticks: u32,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Offset of the first byte not acknowledged.
    pub acknowledged: u64,
    /// The sender's phase when the acknowledgement arrived.
    pub phase: Phase,
    /// Whether the acknowledgement only advanced the cumulative number: no SACK blocks, no other window, no echo of a mark (Linux
    /// header prediction; otherwise `CA_ACK_SLOWPATH`).
    pub predicted: bool,
}

/// An acknowledgement, as the sender sees it. Segments are counted as the kernel counts packets.
#[derive(Debug, Clone)]
pub struct Ack {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Segments newly delivered, cumulatively or selectively (Linux `acked_sacked`).
    pub delivered_segments: u32,
    /// The payload of these segments. It is less than as many full segments where a transport sends smaller ones, as SLIQ does.
    pub delivered_bytes: Bytes,
    /// Round-trip time of the newest segment that was not retransmitted; `None` if no such segment was delivered.
    pub rtt: Option<RttSample>,
    /// Smoothed RTT after this sample (RFC 6298); `None` before the first sample.
    pub srtt: Option<Span>,
    /// Timestamps of the acknowledgement (RFC 7323); `None` without the option.
    pub timestamps: Option<Timestamps>,
    /// Delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`), if there is one.
    pub rate: Option<RateSample>,
    /// All segments delivered so far, with the handshake as one (Linux `tp->delivered`).
    pub delivered: u64,
    /// Segments newly marked lost.
    pub lost_segments: u32,
    /// All segments ever marked lost (Linux `tp->lost`).
    pub lost: u64,
    /// When the pacer releases the next segment; not later than `now` if it may leave now (Linux `tcp_wstamp_ns`).
    pub departure: Time,
    /// Packets newly reported CE; with classic feedback, the segments acknowledged while ECE was set.
    pub ce_packets: u32,
    /// Bytes in flight before this acknowledgement.
    pub in_flight_before: Bytes,
    /// Bytes in flight after this acknowledgement.
    pub in_flight: Bytes,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Offset of the first byte not acknowledged.
    pub acknowledged: u64,
    /// Whether a round trip ended with this acknowledgement: data sent after the last round's start is acknowledged.
    pub round_start: bool,
    /// Whether the window, not the application or the receiver, limited sending (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the window may grow: no reduction is under way, and data was delivered (Linux `tcp_may_raise_cwnd`).
    pub may_grow: bool,
    /// The sender's phase.
    pub phase: Phase,
}

/// A round-trip time sample.
#[derive(Debug, Clone, Copy)]
pub struct RttSample {
    /// The time from sending to acknowledgement.
    pub rtt: Span,
    /// Whether the receiver may have delayed the acknowledgement.
    pub delayed: bool,
    /// How long the acknowledgement waited in queues on its way back; zero where the transport cannot tell.
    pub queued_back: Span,
}

/// The timestamp option of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Timestamps {
    /// The peer's clock when it sent the acknowledgement, in its ticks.
    pub peer_ticks: u32,
    /// Our clock when we sent the segment that is acknowledged, in our ticks.
    pub echoed_ticks: u32,
    /// Length of a tick, assumed to be the same at both ends.
    pub tick: Span,
}

/// A delivery rate sample: segments delivered over an interval.
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// Segments delivered over the interval.
    pub delivered: u32,
    /// The longer of the sample's send and acknowledgement intervals.
    pub interval: Span,
    /// Segments delivered when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Segments newly marked lost.
    pub losses: u32,
    /// Whether the sample was taken while the application limited sending.
    pub app_limited: bool,
}

/// A segment that is sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When it is sent.
    pub now: Time,
    /// Length of its payload.
    pub bytes: Bytes,
    /// Bytes in flight before it.
    pub in_flight_before: Bytes,
    /// Whether it is a retransmission.
    pub retransmission: bool,
}

/// The congestion at which recovery or a reduction begins.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// When it begins.
    pub now: Time,
    /// The signal of congestion.
    pub signal: Signal,
    /// Bytes in flight.
    pub in_flight: Bytes,
}

/// A signal of congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A loss, detected by acknowledgements.
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
    /// When it fired.
    pub now: Time,
    /// Bytes in flight without those marked lost.
    pub in_flight: Bytes,
    /// Offset of the next new byte to be sent.
    pub next_sequence: u64,
    /// Whether to lower the threshold: false if a loss in this flight has already caused a reduction (Linux `tcp_enter_loss`).
    pub reduce: bool,
    /// All segments delivered so far, as [`Ack::delivered`] counts them.
    pub delivered: u64,
    /// All segments ever marked lost, as [`Ack::lost`] counts them.
    pub lost: u64,
}

/// Sending resumes, or the window was not used.
#[derive(Debug, Clone, Copy)]
pub enum Restart {
    /// The connection was idle for longer than a retransmission timeout (RFC 2861 as in Linux `tcp_cwnd_restart`).
    Idle {
        /// When sending resumes.
        now: Time,
        /// How long nothing was sent.
        idle: Span,
        /// The retransmission timeout.
        rto: Span,
        /// Initial window in segments; an idle time never reduces the window below it.
        initial_window: u32,
    },
    /// Sending begins while nothing is in flight (Linux `CA_EVENT_TX_START`).
    Transmit {
        /// When sending begins.
        now: Time,
        /// How long ago the last segment left.
        idle: Span,
        /// Whether the application limits sending (Linux `tp->app_limited`).
        app_limited: bool,
    },
    /// For a whole timeout the application used only part of the window (Linux `tcp_cwnd_application_limited`).
    Unused {
        /// The current time.
        now: Time,
        /// Largest number of segments in flight in that time.
        used: u32,
        /// Initial window in segments.
        initial_window: u32,
    },
}

/// The sender's phase (Linux `tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Normal operation: no sign of loss or reordering.
    #[default]
    Open,
    /// Duplicate acknowledgements or SACKs have arrived, but no loss is detected.
    Disorder,
    /// The window is being reduced without a loss, for example after an ECN echo.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// A retransmission timeout has occurred.
    Loss,
}

/// Which side reduces the window step by step in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The transport's PRR (RFC 6937).
    Proportional,
    /// The controller: its window always applies.
    Own,
}

/// The codepoint that data segments carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Codepoint {
    /// Not-ECT, even if the lab allows ECN.
    Off,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
}

impl Codepoint {
    /// The codepoint in the IP header (RFC 3168, section 5).
    pub fn as_ecn(self) -> Ecn {
        match self {
            Codepoint::Off => Ecn::NotEct,
            Codepoint::Ect0 => Ecn::Ect0,
            Codepoint::Ect1 => Ecn::Ect1,
        }
    }
}

/// How the receiver reports marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// ECE from a mark until CWR (RFC 3168).
    Classic,
    /// ECE on the acknowledgements of marked segments (RFC 8257).
    Dctcp,
    /// Counters of marks: Accurate ECN (RFC 9768).
    Accurate,
}
