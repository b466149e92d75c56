//! Round-trip times as Vegas gathers them: the smallest of the connection, and those of the round that is under way. Source:
//! Linux 6.18 `net/ipv4/tcp_vegas.c`. A round begins anew after anything that makes its samples stale.

use crate::{Ack, Phase, Restart};
use weir_base::Span;

/// RTT samples in a round up to which they may all be of delayed acknowledgements (Linux `tcp_vegas_cong_avoid`).
const FEW: u32 = 2;

/// What the round trips told. Microseconds, one added so that none is zero.
#[derive(Debug)]
pub(crate) struct RttRounds {
    /// Smallest RTT of the connection (Linux `baseRTT`); `u64::MAX` before any.
    pub(crate) base: u64,
    /// Smallest RTT of the round (Linux `minRTT`); `u64::MAX` before any.
    pub(crate) min: u64,
    /// Samples in the round (Linux `cntRTT`).
    pub(crate) count: u32,
    enabled: bool,
    /// The round ends when this offset has been passed; unknown until the first acknowledgement.
    end: u64,
}

impl RttRounds {
    pub(crate) fn new() -> RttRounds {
        RttRounds { base: u64::MAX, min: u64::MAX, count: 0, enabled: true, end: 0 }
    }

    /// Takes the sample of an acknowledgement, where it has one, and returns it.
    pub(crate) fn sample(&mut self, ack: &Ack) -> Option<u64> {
        let rtt = ack.rtt?.rtt.as_micros() + 1;
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.count += 1;
        Some(rtt)
    }

    /// Whether delays may be judged: not while losses are repaired, and when that has ended from a new round on (Linux
    /// `tcp_vegas_state`).
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

    /// Whether the round has too few samples to be judged.
    pub(crate) fn few(&self) -> bool {
        self.count <= FEW
    }

    /// The next round begins.
    pub(crate) fn begin(&mut self, ack: &Ack) {
        self.end = ack.next_sequence;
        self.count = 0;
        self.min = u64::MAX;
    }

    /// What the window would be without a queue, and how many segments wait in one: `cwnd * base / min` and
    /// `cwnd * (min - base) / base`.
    pub(crate) fn target_and_queue(&self, cwnd: u32) -> (u32, u32) {
        let cwnd = u64::from(cwnd);
        let narrow = |segments: u64| u32::try_from(segments).unwrap_or(u32::MAX);
        let target = cwnd.saturating_mul(self.base) / self.min.max(1);
        let queue = cwnd.saturating_mul(self.min.saturating_sub(self.base)) / self.base.max(1);
        (narrow(target), narrow(queue))
    }

    /// A loss or a mark is answered: what was measured before it is stale (Linux `tcp_vegas_disable`).
    pub(crate) fn disturbed(&mut self) {
        self.enabled = false;
    }

    /// Everything is forgotten when sending begins again after idleness; all that was sent before has been acknowledged, so the
    /// next acknowledgement ends a round that is too short to be judged (Linux `tcp_vegas_cwnd_event`).
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
