//! The recorded state of a connection.

use super::Connection;
use std::ops::Deref;
use weir_base::{Bytes, Span, Time};
use weir_control::{Controller, Phase};
use weir_endpoint::{Limits, Sample};

/// The state of a connection (compare `struct tcp_info`).
#[derive(Debug, Clone)]
pub struct Info {
    /// The state that every transport has.
    pub sample: Sample,
    /// The phase of the sender.
    pub phase: Phase,
    /// Recoveries entered without a timeout.
    pub recoveries: u64,
    /// Reductions that were undone.
    pub undos: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Segments ever marked lost.
    pub lost: u64,
    /// Degree of reordering assumed, in segments.
    pub reordering: u32,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments known to be marked, as reported to the controller (`tcpi_delivered_ce`).
    pub delivered_ce: u64,
}

impl Deref for Info {
    type Target = Sample;
    fn deref(&self) -> &Sample {
        &self.sample
    }
}

impl Connection {
    /// The controller; `None` before the connection is open.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.sender.as_deref().map(|sender| &*sender.controller)
    }

    /// Numbers of timeouts, recoveries and undone reductions so far. Cheap enough for a call after every segment.
    #[inline]
    pub fn counts(&self) -> [u64; 3] {
        self.sender.as_deref().map_or([0; 3], |sender| {
            [sender.counters.timeouts, sender.counters.recoveries, sender.counters.undos]
        })
    }

    /// For how long the sender was limited by what so far; `None` before the connection is open.
    pub fn limits(&self, now: Time) -> Option<Limits> {
        self.sender.as_deref().map(|sender| sender.limits(now))
    }

    /// The state to be recorded; `None` before the connection is open.
    pub fn info(&self) -> Option<Info> {
        let sender = self.sender.as_deref()?;
        let mss = u64::from(sender.mss);
        let threshold = sender.controller.slow_start_threshold();
        let sample = Sample {
            cwnd: sender.cwnd(),
            ssthresh: threshold.map(|threshold| threshold.get() / mss).filter(|&n| n < u64::from(u32::MAX)),
            srtt: sender.rtt.srtt().map(Span::from_micros),
            min_rtt: sender.min_rtt.value().map(Span::from_micros),
            rto: Span::from_micros(sender.rtt.rto()),
            in_flight: sender.board.in_flight(),
            retransmitted: sender.counters.retransmitted,
            timeouts: sender.counters.timeouts,
            spurious: sender.sack.then_some(sender.dsacked),
            pacing_rate: sender.pacer.rate(),
            delivery_rate: sender.delivery.rate(sender.mss),
            acknowledged: Bytes::new(sender.una.saturating_sub(1)),
        };
        Some(Info {
            sample,
            phase: sender.phase,
            recoveries: sender.counters.recoveries,
            undos: sender.counters.undos,
            probes: sender.counters.probes,
            lost: sender.board.total_lost,
            reordering: sender.rack.reordering,
            delivered: sender.delivery.delivered,
            delivered_ce: sender.counters.marked,
        })
    }
}
