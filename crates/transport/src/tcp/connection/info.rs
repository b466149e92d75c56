//! What is recorded of a connection.

use super::Connection;
use weir_base::{Bytes, Rate, Span};
use weir_control::{Controller, Phase};

/// What is to be told of a connection (compare `struct tcp_info`).
#[derive(Debug, Clone)]
pub struct Info {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments, once there was a reduction.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Smallest RTT.
    pub min_rtt: Option<Span>,
    /// Retransmission timeout, backed off as it is.
    pub rto: Span,
    /// Segments in flight.
    pub in_flight: u32,
    /// What the sender is doing.
    pub phase: Phase,
    /// Segments sent again, SYNs included (`tcpi_total_retrans`).
    pub retransmitted: u64,
    /// Retransmission timeouts, those of the handshake included.
    pub timeouts: u64,
    /// Recoveries entered without a timeout.
    pub recoveries: u64,
    /// Reductions taken back.
    pub undos: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Segments ever marked lost.
    pub lost: u64,
    /// Degree of reordering assumed, in segments.
    pub reordering: u32,
    /// Pacing rate, whether enforced or not.
    pub pacing_rate: Option<Rate>,
    /// Newest delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments known to have been marked, as the controller was told (`tcpi_delivered_ce`).
    pub delivered_ce: u64,
    /// Bytes acknowledged.
    pub acknowledged: Bytes,
}

impl Connection {
    /// The controller, once the connection is open.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.sender.as_deref().map(|sender| &*sender.controller)
    }

    /// Timeouts, recoveries and undone reductions so far: cheap enough to be asked after every segment.
    #[inline]
    pub fn counts(&self) -> [u64; 3] {
        self.sender.as_deref().map_or([0; 3], |sender| {
            [sender.counters.timeouts, sender.counters.recoveries, sender.counters.undos]
        })
    }

    /// The state to be recorded, once the connection is open.
    pub fn info(&self) -> Option<Info> {
        let sender = self.sender.as_deref()?;
        let mss = u64::from(sender.mss);
        let threshold = sender.controller.slow_start_threshold();
        Some(Info {
            cwnd: sender.cwnd(),
            ssthresh: threshold.map(|threshold| threshold.get() / mss).filter(|&n| n < u64::from(u32::MAX)),
            srtt: sender.rtt.srtt().map(Span::from_micros),
            min_rtt: sender.min_rtt.value().map(Span::from_micros),
            rto: Span::from_micros(sender.rtt.rto()),
            in_flight: sender.board.in_flight(),
            phase: sender.phase,
            retransmitted: sender.counters.retransmitted,
            timeouts: sender.counters.timeouts,
            recoveries: sender.counters.recoveries,
            undos: sender.counters.undos,
            probes: sender.counters.probes,
            lost: sender.board.total_lost,
            reordering: sender.rack.reordering,
            pacing_rate: sender.pacer.rate(),
            delivery_rate: sender.delivery.rate(sender.mss),
            delivered: sender.delivery.delivered,
            delivered_ce: sender.counters.marked,
            acknowledged: Bytes::new(sender.una.saturating_sub(1)),
        })
    }
}
