//! What a connection is configured with: sizes, buffers and switches, with the defaults of Linux 6.18.

use weir_base::{Bytes, Clock, Span};
use weir_control::{Codepoint, Feedback};

/// Configuration of one endpoint. Both ends of a connection should agree on `mss`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The congestion controller of this side's data.
    pub controller: weir_control::Config,
    /// Largest payload of a segment: MTU 1500 less 40 bytes of headers and 12 of timestamps.
    pub mss: u16,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Whether ECN is asked for and granted (RFC 3168).
    pub ecn: bool,
    /// The codepoint of packets that may be marked.
    pub codepoint: Codepoint,
    /// How this side tells of marks, and understands what the other side tells. Both ends have to be of one mind about
    /// [`Feedback::Dctcp`], which nothing on the wire negotiates.
    pub feedback: Feedback,
    /// Send buffer: start and largest value (Linux `tcp_wmem`). Equal values switch autotuning off.
    pub send_buffer: (Bytes, Bytes),
    /// Receive buffer: start and largest value (Linux `tcp_rmem`). Equal values switch autotuning off.
    pub receive_buffer: (Bytes, Bytes),
    /// Whether windows are scaled (RFC 7323, section 2; Linux `tcp_window_scaling`): none is above 65,535 bytes otherwise.
    pub window_scaling: bool,
    /// Whether selective acknowledgements are in use (RFC 2018; Linux `tcp_sack`). Both ends have to be of one mind.
    pub sack: bool,
    /// Least of the variance in the retransmission timeout, so that the timeout is longer than it (Linux `tcp_rto_min_us`).
    pub rto_min: Span,
    /// Whether the first two duplicate acknowledgements let a new segment go each (RFC 3042).
    pub limited_transmit: bool,
    /// How long the acknowledgement of a single segment is held back, with every second one acknowledged at once (RFC 5681, section
    /// 4.2); none is Linux's delay, which adapts and has quick acknowledgements.
    pub delayed_ack: Option<Span>,
    /// Whether, with such a delay, what the application reads is acknowledged once the window is two segments wider than was told
    /// (FreeBSD 4, `tcp_output.c`): two acknowledgements for three segments.
    pub window_updates: bool,
    /// Whether to pace although the controller gives no rate: at 200 % of window over smoothed RTT in slow start, at
    /// 120 % after it (Linux `tcp_update_pacing_rate`).
    pub pacing: bool,
    /// Whether the window falls back after idleness (Linux `tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Whether duplicate acknowledgements are thinned out while data is missing (Linux `tcp_comp_sack_nr`, 44 against 0).
    pub compress_sack: bool,
    /// What its timestamps are taken from (RFC 7323).
    pub clock: Clock,
    /// Initial sequence number.
    pub initial_sequence: u32,
    /// Seed of the stream that the controller draws from.
    pub seed: u64,
}

impl Config {
    /// The defaults of Linux 6.18 with this controller.
    pub fn new(controller: weir_control::Config) -> Config {
        let (codepoint, feedback) = controller.signals();
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
            rto_min: crate::RTO_MIN,
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
