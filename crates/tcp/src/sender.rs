//! The sending half of a connection: its state and derived values. `ack.rs` handles acknowledgements, `recovery.rs` congestion and
//! recovery states, `timers.rs` the timers, `transmit.rs` the transmission of segments.
//!
//! Positions count sequence space from the SYN, which is 0; the first byte of data is 1. Times are in microseconds, as in the
//! kernel.

use super::config::Config;
use super::rack::{Conditions, Rack};
use super::rate::Delivery;
use super::rto::RttEstimator;
use super::scoreboard::Scoreboard;
use super::undo::Undo;
use super::written::Written;
use weir_base::{Bytes, Clock, Random, Span, Time, WindowedMin};
use weir_control::{Controller, Decision, Phase, Recovery, Start};
use weir_endpoint::Prr;

/// Time window of the smallest RTT (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// The purpose for which the single retransmission timer is set (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    /// The retransmission timeout.
    Retransmit,
    /// A tail loss probe.
    Probe,
    /// RACK's reordering window.
    Reorder,
    /// A probe of a window too small for the next segment.
    ZeroWindow,
}

/// The retransmissions that an acknowledgement allows (argument of `tcp_xmit_recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rexmit {
    Nothing,
    /// Segments that are marked lost.
    Lost,
    /// F-RTO: new data first, lost segments only if there is none.
    New,
}

/// A segment that a timer sends regardless of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forced {
    Nothing,
    /// The oldest segment, after a timeout.
    Head,
    /// The newest segment again, as a probe.
    ProbeOld,
    /// New data as a probe.
    ProbeNew,
    /// A segment without data below the window, which makes the peer advertise its window.
    ZeroWindow,
}

/// Whether the window limits sending, and how much of it was used (`tcp_cwnd_validate`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    pub(crate) limited: bool,
    pub(crate) most_out: u32,
    pub(crate) round_end: u64,
    pub(crate) used: u32,
    pub(crate) stamp: Time,
}

impl Usage {
    /// The window limits sending now: `out` segments are outstanding, and `next` is the next position to be sent.
    #[inline(always)]
    pub(crate) fn note_limit(&mut self, out: u32, next: u64, now: Time) {
        *self = Usage { limited: true, most_out: out, round_end: next, used: 0, stamp: now };
    }
}

/// Counters for the records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) recoveries: u64,
    pub(crate) undos: u64,
    pub(crate) probes: u64,
    pub(crate) marked: u64,
}

/// ECN state of the sender (RFC 3168, RFC 9768).
#[derive(Debug, Clone, Default)]
pub(crate) struct EcnSender {
    /// Whether the peer reports marks by ECE, to which CWR is the answer.
    pub(crate) echoes: bool,
    /// Counters by which the peer reports marks; `None` without Accurate ECN.
    pub(crate) accecn: Option<super::accecn::SenderCounters>,
    /// Marked packets that have yet to be reported to the controller.
    pub(crate) held: u32,
    /// Whether the next new segment carries CWR.
    pub(crate) cwr_queued: bool,
}

pub(crate) struct Sender {
    pub(crate) mss: u16,
    pub(crate) initial_window: u32,
    pub(crate) slow_start_after_idle: bool,
    /// Whether selective acknowledgements are used.
    pub(crate) sack: bool,
    /// Whether duplicate acknowledgements allow new segments before recovery (RFC 3042).
    pub(crate) limited_transmit: bool,
    pub(crate) board: Scoreboard,
    /// First unacknowledged position, and the next position to be sent for the first time.
    pub(crate) una: u64,
    pub(crate) next: u64,
    /// End of the last segment sent with less than the MSS (`snd_sml`).
    pub(crate) short_end: u64,
    pub(crate) written: Written,
    pub(crate) fin_sent: bool,
    /// The receiver's window, and its largest value so far.
    pub(crate) window: u32,
    pub(crate) max_window: u32,
    /// Sequence number (of the peer) of the last segment that updated the window (`snd_wl1`).
    pub(crate) window_from: u64,
    pub(crate) phase: Phase,
    pub(crate) high_seq: u64,
    pub(crate) undo: Undo,
    pub(crate) prr: Prr,
    pub(crate) frto: bool,
    /// Consecutive timeouts.
    pub(crate) expirations: u32,
    pub(crate) window_probes: u32,
    /// End of the outstanding data when a tail loss probe was sent; 0 if no probe is out.
    pub(crate) probe_end: u64,
    pub(crate) probe_is_copy: bool,
    pub(crate) rack: Rack,
    pub(crate) rtt: RttEstimator,
    pub(crate) min_rtt: WindowedMin<u64>,
    pub(crate) delivery: Delivery,
    pub(crate) dsacked: u64,
    /// The SACK blocks of the last acknowledgement.
    pub(crate) known_blocks: [(u64, u64); 4],
    pub(crate) pending: Pending,
    pub(crate) deadline: Time,
    /// Whether the timer must be set anew after the transmissions that answer an acknowledgement.
    pub(crate) timer_due: bool,
    pub(crate) rexmit: Rexmit,
    pub(crate) forced: Forced,
    /// New segments since the queue was last found empty or blocked.
    pub(crate) burst: u32,
    pub(crate) batch: super::batch::Batch,
    /// Whether [`Sender::poll`] would return nothing and change nothing until data is written, an acknowledgement arrives or a timer
    /// fires: nothing is left to send and nothing is outstanding, or the window is full.
    pub(crate) waits: bool,
    /// Whether nothing was sent since a predicted acknowledgement. The batch that answers it begins only when the host takes segments: an
    /// application without end is then woken.
    pub(crate) answers: bool,
    /// Whether the application has filled the send buffer. Its last write, which finds no room, comes after the burst.
    pub(crate) filled: bool,
    pub(crate) usage: Usage,
    pub(crate) chrono: super::chrono::Chrono,
    pub(crate) last_sent: Time,
    /// `last_sent` when the window was last reduced after an idle time.
    pub(crate) idle_since: Time,
    pub(crate) round_end: u64,
    pub(crate) ecn: EcnSender,
    pub(crate) counters: Counters,
    pub(crate) controller: Box<dyn Controller>,
    /// The controller's window as of its last decision, in bytes and in segments.
    pub(crate) controller_window: Bytes,
    controller_segments: u32,
    /// The controller's threshold as of its last decision.
    pub(crate) controller_threshold: Option<Bytes>,
    pub(crate) own_recovery: bool,
    pub(crate) wants_sent: bool,
    pub(crate) wants_delivered: bool,
    /// Number of delivered segments of which the controller has been told, if it wants to be.
    pub(crate) reported_delivered: u64,
    pub(crate) random: Random,
    pub(crate) pacer: super::pacer::Pacer,
    pub(crate) sub_mss: super::sub_mss::SubMssPacing,
    /// The clock of its timestamps.
    pub(crate) clock: Clock,
    pub(crate) buffer: super::buffer::SendBuffer,
}

impl Sender {
    /// The sender of a connection that has just been established. `rtt` is the RTT of the handshake in microseconds; `None` if the
    /// handshake gave no sample.
    pub(crate) fn new(config: &Config, written: Written, now: Time, window: u32, rtt: Option<u64>) -> Sender {
        let start = Start {
            now,
            mss: Bytes::new(u64::from(config.mss)),
            initial_window: config.initial_window,
            paced: config.pacing,
            rtt: rtt.map(Span::from_micros),
        };
        let controller = config.controller.build(&start);
        let mut sender = Sender {
            mss: config.mss,
            initial_window: config.initial_window,
            slow_start_after_idle: config.slow_start_after_idle,
            sack: config.sack,
            limited_transmit: config.limited_transmit,
            board: Scoreboard::new(config.mss),
            una: 1,
            next: 1,
            short_end: 0,
            written,
            fin_sent: false,
            window,
            max_window: window,
            window_from: 0,
            phase: Phase::Open,
            high_seq: 0,
            undo: Undo::default(),
            prr: Prr::default(),
            frto: false,
            expirations: 0,
            window_probes: 0,
            probe_end: 0,
            probe_is_copy: false,
            rack: Rack::default(),
            rtt: RttEstimator::new(config.rto_min),
            min_rtt: WindowedMin::new(),
            delivery: Delivery::new(micros(now)),
            dsacked: 0,
            known_blocks: [(0, 0); 4],
            pending: Pending::Nothing,
            deadline: Time::NEVER,
            timer_due: false,
            rexmit: Rexmit::Nothing,
            forced: Forced::Nothing,
            burst: 0,
            batch: super::batch::Batch::default(),
            waits: false,
            answers: false,
            filled: false,
            usage: Usage { stamp: now, ..Usage::default() },
            chrono: super::chrono::Chrono::new(now),
            last_sent: now,
            idle_since: Time::NEVER,
            round_end: 1,
            ecn: EcnSender::default(),
            counters: Counters::default(),
            own_recovery: controller.recovery() == Recovery::Own,
            wants_sent: controller.wants_sent(),
            wants_delivered: controller.wants_delivered(),
            reported_delivered: 1,
            buffer: super::buffer::SendBuffer::new(config, controller.windows_buffered()),
            controller,
            controller_window: Bytes::ZERO,
            controller_segments: 1,
            controller_threshold: None,
            random: Random::stream(config.seed, "controller"),
            pacer: super::pacer::Pacer::new(config.pacing),
            sub_mss: super::sub_mss::SubMssPacing::default(),
            clock: config.clock,
        };
        sender.read_window();
        // The controller may begin with a window of its own (`tcp_init_buffer_space` follows `tcp_init_congestion_control`).
        sender.buffer.expand(sender.cwnd());
        if let Some(rtt) = rtt {
            sender.handshake_rtt(now, rtt);
        }
        sender.pace_from_start();
        if sender.has_new_data() {
            sender.check_app_limited();
        }
        sender
    }

    /// Applies the controller's pacing rate from the first segment on.
    fn pace_from_start(&mut self) {
        let given = self.controller.pacing_rate();
        if given.is_some() {
            self.pacer.update(given, self.controller_window, self.rtt.srtt8(), false);
        }
    }

    /// The window in segments: PRR's window during a reduction, otherwise the controller's, which is at least one segment.
    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        if self.reducing() && !self.own_recovery { self.prr.cwnd() } else { self.controller_cwnd() }
    }

    /// The controller's window in segments, as of its last decision.
    pub(crate) fn controller_cwnd(&self) -> u32 {
        self.controller_segments
    }

    /// Reads the controller's decision again, after a call that may change it.
    pub(crate) fn read_window(&mut self) {
        let decision = self.controller.decision();
        self.follow(&decision);
    }

    /// Takes over window and threshold of a decision of the controller.
    #[inline]
    pub(crate) fn follow(&mut self, decision: &Decision) {
        self.controller_threshold = decision.threshold;
        if decision.window != self.controller_window {
            self.take_window_over(decision.window);
        }
    }

    /// Takes a changed window of the controller and converts it into segments.
    #[inline(never)]
    fn take_window_over(&mut self, window: Bytes) {
        self.controller_window = window;
        let segments = (window.get() / u64::from(self.mss)).min(u64::from(u32::MAX)) as u32;
        self.controller_segments = if segments > 0 { segments } else { self.quantum() };
        let quantum = if segments > 0 { 0 } else { self.controller_segments };
        self.sub_mss.set_quantum(quantum, self.last_sent);
    }

    /// Segments that leave together if the window is below one segment.
    fn quantum(&self) -> u32 {
        let quantum = self.controller.send_quantum().map_or(1, |bytes| bytes.get() / u64::from(self.mss));
        quantum.clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Whether a window reduction is under way (`tcp_in_cwnd_reduction`).
    pub(crate) fn reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// Whether the window is below the threshold (`tcp_in_slow_start`).
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        // The window with one more segment is still within the threshold.
        let more = (u64::from(self.cwnd()) + 1) * u64::from(self.mss);
        self.controller_threshold.is_some_and(|threshold| more <= threshold.get())
    }

    /// Whether the window limited sending (`tcp_is_cwnd_limited`).
    #[inline(always)]
    pub(crate) fn cwnd_limited(&self) -> bool {
        self.usage.limited || (self.in_slow_start() && self.cwnd() < 2 * self.usage.most_out)
    }

    /// End of the receiver's window.
    pub(crate) fn window_end(&self) -> u64 {
        self.una + u64::from(self.window)
    }

    /// The smallest RTT in microseconds; `u32::MAX` before the first sample.
    pub(crate) fn least_rtt(&self) -> u64 {
        self.min_rtt.value().unwrap_or(u64::from(u32::MAX))
    }

    /// Takes the RTT sample of the handshake, in microseconds.
    fn handshake_rtt(&mut self, now: Time, rtt: u64) {
        self.sample_min_rtt(now, rtt);
        self.rtt.sample(rtt, self.una, self.next);
    }

    #[inline(always)]
    pub(crate) fn sample_min_rtt(&mut self, now: Time, rtt: u64) {
        // A sample of zero would mean "never measured" in the kernel.
        self.min_rtt.update(MIN_RTT_WINDOW, now, rtt.max(1));
    }

    pub(crate) fn conditions(&self, now: Time) -> Conditions {
        Conditions {
            now: micros(now),
            min_rtt: self.least_rtt(),
            srtt8: self.rtt.srtt8(),
            recovering: matches!(self.phase, Phase::Recovery | Phase::Loss),
        }
    }

    pub(crate) fn bytes(&self, segments: u32) -> Bytes {
        Bytes::new(u64::from(segments) * u64::from(self.mss))
    }

    /// End of the highest SACKed segment (`tcp_highest_sack_seq`).
    pub(crate) fn highest_sacked(&self) -> u64 {
        match self.board.sacked {
            0 => self.una,
            _ if self.sack => self.board.highest_sacked_end,
            _ => self.next,
        }
    }

    /// Whether all written data and the FIN are acknowledged.
    pub(crate) fn all_acknowledged(&self) -> bool {
        self.fin_sent && self.una == self.next
    }
}

/// Microseconds since the start, as in `tcp_mstamp`.
pub(crate) fn micros(now: Time) -> u64 {
    now.as_nanos() / 1_000
}

/// The instant of this microsecond.
pub(crate) fn instant(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}
