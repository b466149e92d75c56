//! The configuration of a connection: sizes, buffers and switches, with the defaults of Linux 6.18.

use weir_base::{Bytes, Clock, Span};
use weir_control::{Codepoint, Feedback};

/// Configuration of one endpoint. Both ends of a connection should agree on `mss`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The congestion controller of this side's data.
    pub controller: weir_control::Config,
    /// Largest payload of a segment in bytes. Default: MTU 1500 minus 40 bytes of headers and 12 of timestamps.
    pub mss: u16,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Whether ECN is requested and granted (RFC 3168).
    pub ecn: bool,
    /// The ECN codepoint of packets that may be marked.
    pub codepoint: Codepoint,
    /// How this side reports marks and interprets the other side's reports. Both ends must agree on [`Feedback::Dctcp`], which is
    /// not negotiated.
    pub feedback: Feedback,
    /// Send buffer: start and largest value (Linux `tcp_wmem`). Equal values switch autotuning off.
    pub send_buffer: (Bytes, Bytes),
    /// Receive buffer: start and largest value (Linux `tcp_rmem`). Equal values switch autotuning off.
    pub receive_buffer: (Bytes, Bytes),
    /// Whether windows are scaled (RFC 7323, section 2; Linux `tcp_window_scaling`). Otherwise they are at most 65,535 bytes.
    pub window_scaling: bool,
    /// Whether selective acknowledgements are used (RFC 2018; Linux `tcp_sack`). Both ends must agree.
    pub sack: bool,
    /// Smallest variance term of the retransmission timeout; the timeout is always longer (Linux `tcp_rto_min_us`).
    pub rto_min: Span,
    /// Whether each of the first two duplicate acknowledgements allows a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Delay of the acknowledgement of a single segment, with every second segment acknowledged at once (RFC 5681, section 4.2);
    /// `None` for Linux's algorithm, which adapts the delay and has quick acknowledgements.
    pub delayed_ack: Option<Span>,
    /// Whether, with `delayed_ack`, reads of the application cause an acknowledgement once the window is two segments larger than
    /// advertised (FreeBSD 4, `tcp_output.c`): two acknowledgements for three segments.
    pub window_updates: bool,
    /// Whether to pace even if the controller gives no rate: at 200 % of window over smoothed RTT in slow start, at 120 % after
    /// it (Linux `tcp_update_pacing_rate`).
    pub pacing: bool,
    /// Whether the congestion window is reduced after an idle time (Linux `tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Whether duplicate acknowledgements are compressed while data is missing (Linux `tcp_comp_sack_nr`: 44 if so, 0 if not).
    pub compress_sack: bool,
    /// The clock of its timestamps (RFC 7323).
    pub clock: Clock,
    /// Initial sequence number.
    pub initial_sequence: u32,
    /// Seed of the controller's random numbers.
    pub seed: u64,
}

impl Config {
    /// The defaults of Linux 6.18 with this controller.
    pub fn new(controller: weir_control::Config) -> Config {
        let signals = controller.signals();
        Config::with_signals(controller, signals)
    }

    /// The same, with another codepoint and feedback than the controller's own.
    pub(super) fn with_signals(
        controller: weir_control::Config,
        (codepoint, feedback): (Codepoint, Feedback),
    ) -> Config {
        Config {
            controller,
            codepoint,
            feedback,
            mss: 1448,
            initial_window: 10,
            ecn: false,
            send_buffer: (Bytes::new(16_384), Bytes::new(4 << 20)),
            receive_buffer: (Bytes::new(131_072), Bytes::new(32 << 20)),
            window_scaling: true,
            sack: true,
            rto_min: weir_endpoint::RTO_MIN,
            limited_transmit: true,
            delayed_ack: None,
            window_updates: false,
            pacing: false,
            slow_start_after_idle: true,
            compress_sack: true,
            clock: Clock::default(),
            initial_sequence: 0,
            seed: 0,
        }
    }
}
