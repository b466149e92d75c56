//! What the hooks of a controller take: the events of `weir_control`, with times in nanoseconds, sizes in bytes and rates in bits per
//! second.

use super::Stream;
use pyo3::prelude::*;
use weir_base::{Bytes, Span, Time};
use weir_control::Restart::{Idle, Transmit, Unused};
use weir_control::{self as control, Phase, Signal};

/// Declares a class of Python with the values of an event.
macro_rules! event {
    ($(#[$doc:meta])* $Name:ident($Event:ty) {
        $($(#[$what:meta])* $value:ident: $Type:ty = |$event:ident| $of:expr;)+
    }) => {
        $(#[$doc])*
        #[pyclass(module = "weir._weir", frozen)]
        pub(crate) struct $Name(pub(super) $Event);

        #[pymethods]
        impl $Name {
            $(
                $(#[$what])*
                #[getter]
                fn $value(&self) -> $Type {
                    let $event = &self.0;
                    $of
                }
            )+
        }
    };
}

fn at(time: Time) -> u64 {
    time.as_nanos()
}
fn ns(span: Span) -> u64 {
    span.as_nanos()
}
fn bytes(bytes: Bytes) -> u64 {
    bytes.get()
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Cwr => "cwr",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

event! {
    /// A connection that has just been established.
    Start(control::Start) {
        /// When it was established, in ns.
        now: u64 = |start| at(start.now);
        /// Largest payload of a segment, in bytes.
        mss: u64 = |start| bytes(start.mss);
        /// Initial window in segments.
        initial_window: u32 = |start| start.initial_window;
        /// Whether segments are paced even if the controller gives no rate.
        paced: bool = |start| start.paced;
        /// Round-trip time of the handshake in ns; None if it could not be measured.
        rtt: Option<u64> = |start| start.rtt.map(ns);
    }
}

/// An acknowledgement with the random numbers of its connection.
pub(crate) struct Acknowledged {
    pub(super) ack: control::Ack,
    pub(super) random: Stream,
}

event! {
    /// An acknowledgement, as the sender sees it.
    Ack(Acknowledged) {
        /// When it arrived, in ns.
        now: u64 = |it| at(it.ack.now);
        /// Segments newly delivered, cumulatively or selectively.
        delivered_segments: u32 = |it| it.ack.delivered_segments;
        /// Round-trip time in ns of the newest segment that was not retransmitted; None if no such segment was delivered.
        rtt: Option<u64> = |it| it.ack.rtt.map(|sample| ns(sample.rtt));
        /// Whether the receiver may have delayed the acknowledgement, so that `rtt` is too long.
        delayed: bool = |it| it.ack.rtt.is_some_and(|sample| sample.delayed);
        /// Smoothed RTT in ns after this sample (RFC 6298); None before the first sample.
        srtt: Option<u64> = |it| it.ack.srtt.map(ns);
        /// Its timestamps (RFC 7323); None without the option.
        timestamps: Option<Timestamps> = |it| it.ack.timestamps.map(Timestamps);
        /// The sample of the delivery rate, if there is one.
        rate: Option<RateSample> = |it| it.ack.rate.map(RateSample);
        /// All segments delivered so far, with the handshake as one.
        delivered: u64 = |it| it.ack.delivered;
        /// Segments newly marked lost.
        lost_segments: u32 = |it| it.ack.lost_segments;
        /// All segments ever marked lost.
        lost: u64 = |it| it.ack.lost;
        /// When the pacer releases the next segment, in ns; not later than `now` if it may leave now.
        departure: u64 = |it| at(it.ack.departure);
        /// Packets newly reported CE; with classic feedback, the segments acknowledged while ECE was set.
        ce_packets: u32 = |it| it.ack.ce_packets;
        /// Bytes in flight before this acknowledgement.
        in_flight_before: u64 = |it| bytes(it.ack.in_flight_before);
        /// Bytes in flight after this acknowledgement.
        in_flight: u64 = |it| bytes(it.ack.in_flight);
        /// Offset of the next new byte to be sent.
        next_sequence: u64 = |it| it.ack.next_sequence;
        /// Offset of the first byte not acknowledged.
        acknowledged: u64 = |it| it.ack.acknowledged;
        /// Whether a round trip ended with this acknowledgement.
        round_start: bool = |it| it.ack.round_start;
        /// Whether the window, not the application or the receiver, limited sending.
        cwnd_limited: bool = |it| it.ack.cwnd_limited;
        /// Whether the window may grow: no reduction is under way, and data was delivered.
        may_grow: bool = |it| it.ack.may_grow;
        /// The sender's phase: "open", "disorder", "cwr", "recovery" or "loss".
        phase: &'static str = |it| phase(it.ack.phase);
        /// The connection's own random.Random, seeded by the run.
        random: Stream = |it| it.random.clone();
    }
}

event! {
    /// The timestamps of an acknowledgement.
    Timestamps(control::Timestamps) {
        /// The peer's clock when it sent the acknowledgement, in its ticks.
        peer_ticks: u32 = |stamps| stamps.peer_ticks;
        /// Our clock when we sent the segment that is acknowledged, in our ticks.
        echoed_ticks: u32 = |stamps| stamps.echoed_ticks;
        /// Length of a tick in ns, assumed to be the same at both ends.
        tick: u64 = |stamps| ns(stamps.tick);
    }
}

event! {
    /// A sample of the delivery rate: segments delivered over an interval.
    RateSample(control::RateSample) {
        /// Segments delivered over the interval.
        delivered: u32 = |sample| sample.delivered;
        /// The longer of the sample's send and acknowledgement intervals, in ns.
        interval: u64 = |sample| ns(sample.interval);
        /// Segments delivered when the newest acknowledged segment was sent.
        prior_delivered: u64 = |sample| sample.prior_delivered;
        /// Segments newly marked lost.
        losses: u32 = |sample| sample.losses;
        /// Whether the sample was taken while the application limited sending.
        app_limited: bool = |sample| sample.app_limited;
    }
}

event! {
    /// The congestion at which recovery or a reduction begins.
    Congestion(control::Congestion) {
        /// When it begins, in ns.
        now: u64 = |congestion| at(congestion.now);
        /// Its signal: "loss", "ecn", "own" (by wants_reduction) or "refused" (the host's own queue refused a segment).
        signal: &'static str = |congestion| match congestion.signal {
            Signal::Loss => "loss",
            Signal::Ecn => "ecn",
            Signal::Own => "own",
            Signal::Refused => "refused",
        };
        /// Bytes in flight.
        in_flight: u64 = |congestion| bytes(congestion.in_flight);
    }
}

event! {
    /// The retransmission timer fired.
    Timeout(control::Timeout) {
        /// When it fired, in ns.
        now: u64 = |timeout| at(timeout.now);
        /// Bytes in flight without those marked lost.
        in_flight: u64 = |timeout| bytes(timeout.in_flight);
        /// Offset of the next new byte to be sent.
        next_sequence: u64 = |timeout| timeout.next_sequence;
        /// Whether to lower the threshold: false if a loss in this flight has already caused a reduction.
        reduce: bool = |timeout| timeout.reduce;
        /// All segments delivered so far, with the handshake as one.
        delivered: u64 = |timeout| timeout.delivered;
        /// All segments ever marked lost.
        lost: u64 = |timeout| timeout.lost;
    }
}

event! {
    /// Sending resumes, or the window was not used. Values that a kind does not have are None.
    Restart(control::Restart) {
        /// "idle": nothing was sent for longer than a retransmission timeout. "transmit": sending begins while nothing is in flight.
        /// "unused": for a whole timeout the application used only part of the window.
        kind: &'static str = |restart| match restart {
            Idle { .. } => "idle",
            Transmit { .. } => "transmit",
            Unused { .. } => "unused",
        };
        /// The current time in ns.
        now: u64 = |restart| match *restart {
            Idle { now, .. } | Transmit { now, .. } | Unused { now, .. } => at(now),
        };
        /// How long nothing was sent, in ns ("idle", "transmit").
        idle: Option<u64> = |restart| match *restart {
            Idle { idle, .. } | Transmit { idle, .. } => Some(ns(idle)),
            Unused { .. } => None,
        };
        /// The retransmission timeout in ns ("idle").
        rto: Option<u64> = |restart| match *restart {
            Idle { rto, .. } => Some(ns(rto)),
            _ => None,
        };
        /// Initial window in segments ("idle", "unused").
        initial_window: Option<u32> = |restart| match *restart {
            Idle { initial_window, .. } | Unused { initial_window, .. } => Some(initial_window),
            Transmit { .. } => None,
        };
        /// Whether the application limits sending ("transmit").
        app_limited: Option<bool> = |restart| match *restart {
            Transmit { app_limited, .. } => Some(app_limited),
            _ => None,
        };
        /// Largest number of segments in flight in that time ("unused").
        used: Option<u32> = |restart| match *restart {
            Unused { used, .. } => Some(used),
            _ => None,
        };
    }
}

event! {
    /// A segment that is sent.
    Sent(control::Sent) {
        /// When it is sent, in ns.
        now: u64 = |sent| at(sent.now);
        /// Length of its payload in bytes.
        bytes: u64 = |sent| bytes(sent.bytes);
        /// Bytes in flight before it.
        in_flight_before: u64 = |sent| bytes(sent.in_flight_before);
        /// Whether it is a retransmission.
        retransmission: bool = |sent| sent.retransmission;
    }
}

event! {
    /// The delivery that an acknowledgement reports.
    Delivered(control::Delivered) {
        /// When the acknowledgement arrived, in ns.
        now: u64 = |delivered| at(delivered.now);
        /// Segments newly delivered, cumulatively or selectively.
        segments: u32 = |delivered| delivered.segments;
        /// Segments that left the retransmission queue.
        acked_segments: u32 = |delivered| delivered.acked_segments;
        /// Segments reported by SACK that are not yet acknowledged cumulatively.
        sacked_out: u32 = |delivered| delivered.sacked_out;
        /// Newly delivered segments that were reported CE.
        ce_packets: u32 = |delivered| delivered.ce_packets;
        /// Round-trip time in ns of the newest segment that was not retransmitted; None if no such segment was delivered.
        rtt: Option<u64> = |delivered| delivered.rtt.map(|sample| ns(sample.rtt));
        /// Whether the receiver may have delayed the acknowledgement, so that `rtt` is too long.
        delayed: bool = |delivered| delivered.rtt.is_some_and(|sample| sample.delayed);
        /// Its timestamps (RFC 7323); None without the option.
        timestamps: Option<Timestamps> = |delivered| delivered.timestamps.map(Timestamps);
        /// Our clock when the acknowledgement arrived, in the ticks of its timestamps; 0 without the option.
        own_ticks: u32 = |delivered| delivered.own_ticks;
        /// Offset of the next new byte to be sent.
        next_sequence: u64 = |delivered| delivered.next_sequence;
        /// Offset of the first byte not acknowledged.
        acknowledged: u64 = |delivered| delivered.acknowledged;
        /// The sender's phase: "open", "disorder", "cwr", "recovery" or "loss".
        phase: &'static str = |delivered| phase(delivered.phase);
        /// Whether the acknowledgement only advanced the cumulative number: no SACK blocks, no other window, no echo of a mark.
        predicted: bool = |delivered| delivered.predicted;
    }
}

/// Adds the classes to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Start>()?;
    module.add_class::<Ack>()?;
    module.add_class::<Timestamps>()?;
    module.add_class::<RateSample>()?;
    module.add_class::<Congestion>()?;
    module.add_class::<Timeout>()?;
    module.add_class::<Restart>()?;
    module.add_class::<Sent>()?;
    module.add_class::<Delivered>()
}
