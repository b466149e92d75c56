//! Round-trip times for Vegas: the smallest of the connection, and those of the current round. Source: Linux 6.18
//! `net/ipv4/tcp_vegas.c`. A round restarts after any event that makes its samples stale.

use crate::{Ack, Phase, Restart};
use weir_base::Span;

/// Number of RTT samples in a round up to which all may be of delayed acknowledgements (Linux `tcp_vegas_cong_avoid`).
const FEW: u32 = 2;

/// RTTs of the connection and of the round, in microseconds plus one, so that none is zero.
#[derive(Debug)]
pub(crate) struct RttRounds {
    /// Smallest RTT of the connection (Linux `baseRTT`); `u64::MAX` before the first.
    pub(crate) base: u64,
    /// Smallest RTT of the round (Linux `minRTT`); `u64::MAX` before the first.
    pub(crate) min: u64,
    /// Samples in the round (Linux `cntRTT`).
    pub(crate) count: u32,
    enabled: bool,
    /// The round ends when an acknowledgement passes this offset; 0 before the first acknowledgement.
    end: u64,
}

impl RttRounds {
    pub(crate) fn new() -> RttRounds {
        RttRounds { base: u64::MAX, min: u64::MAX, count: 0, enabled: true, end: 0 }
    }

    /// Takes the RTT sample of an acknowledgement and returns it; `None` if it has none.
    pub(crate) fn sample(&mut self, ack: &Ack) -> Option<u64> {
        let rtt = ack.rtt?.rtt.as_micros() + 1;
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.count += 1;
        Some(rtt)
    }

    /// Whether delays count: only in the open phase. A new round begins when that phase begins again (Linux `tcp_vegas_state`).
    pub(crate) fn judging(&mut self, ack: &Ack) -> bool {
        let open = ack.phase == Phase::Open;
        if open && !self.enabled {
            self.begin(ack);
        }
        self.enabled = open;
        open
    }

    /// Whether a round ends with this acknowledgement.
    pub(crate) fn ends(&self, ack: &Ack) -> bool {
        ack.acknowledged > self.end
    }

    /// Whether the round has too few samples for a decision.
    pub(crate) fn few(&self) -> bool {
        self.count <= FEW
    }

    /// Begins the next round.
    pub(crate) fn begin(&mut self, ack: &Ack) {
        self.end = ack.next_sequence;
        self.count = 0;
        self.min = u64::MAX;
    }

    /// The window without a queue, `cwnd * base / min`, and the segments in the queue, `cwnd * (min - base) / base`.
    pub(crate) fn target_and_queue(&self, cwnd: u32) -> (u32, u32) {
        let cwnd = u64::from(cwnd);
        let narrow = |segments: u64| u32::try_from(segments).unwrap_or(u32::MAX);
        let target = cwnd.saturating_mul(self.base) / self.min.max(1);
        let queue = cwnd.saturating_mul(self.min.saturating_sub(self.base)) / self.base.max(1);
        (narrow(target), narrow(queue))
    }

    /// A reduction begins: earlier measurements are stale (Linux `tcp_vegas_disable`).
    pub(crate) fn disturbed(&mut self) {
        self.enabled = false;
    }

    /// Resets all samples when sending resumes after an idle time. All earlier data has been acknowledged, so the next
    /// acknowledgement ends a round that is too short for a decision (Linux `tcp_vegas_cwnd_event`).
    pub(crate) fn restart(&mut self, restart: &Restart) {
        if matches!(restart, Restart::Idle { .. } | Restart::Transmit { .. }) {
            *self = RttRounds { end: self.end, enabled: self.enabled, ..RttRounds::new() };
        }
    }

    /// For the records: the smallest RTT of the connection in milliseconds.
    pub(crate) fn base_millis(&self) -> f64 {
        if self.base == u64::MAX { 0.0 } else { Span::from_micros(self.base).as_millis_f64() }
    }
}

#[cfg(test)]
impl RttRounds {
    /// The offset that ends the round.
    pub(crate) fn end_for_test(&self) -> u64 {
        self.end
    }
}
