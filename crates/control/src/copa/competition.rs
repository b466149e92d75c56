//! Competition with flows that fill buffers (NSDI 2018, section 2.2): once the queue has not emptied for five round trips, 1/delta
//! follows the losses as NewReno's window does.

use weir_base::{Span, Time, WindowedMax};

/// The queue is nearly empty if the delay is at most this share of the largest one.
const NEARLY: f64 = 0.1;
/// Length of the filter of the largest RTT in smoothed RTTs, and number of round trips without a nearly empty queue that indicate
/// competition.
const LARGEST_RTTS: u64 = 4;
const EMPTY_RTTS: u32 = 5;

/// Whether other flows fill the buffer, and the delta for that case.
#[derive(Debug)]
pub(super) struct Competition {
    /// Delta without competition.
    default: f64,
    delta: f64,
    largest: WindowedMax<Span>,
    /// Round trips since the queue was last nearly empty.
    not_empty: u32,
    /// Whether the queue was nearly empty in this round trip, and whether there was a loss.
    emptied: bool,
    lost: bool,
}

impl Competition {
    /// No competition so far, with this delta.
    pub(super) fn new(delta: f64) -> Competition {
        let largest = WindowedMax::new();
        Competition { default: delta, delta, largest, not_empty: 0, emptied: false, lost: false }
    }

    /// The current delta.
    pub(super) fn delta(&self) -> f64 {
        if self.not_empty >= EMPTY_RTTS { self.delta } else { self.default }
    }

    /// Takes an RTT sample, with the smoothed RTT in seconds, the smallest RTT and the queuing delay in seconds.
    pub(super) fn take(&mut self, rtt: Span, srtt: f64, smallest: Span, delay: f64, now: Time) {
        let largest = self.largest.update(Span::from_secs_f64(srtt) * LARGEST_RTTS, now, rtt);
        self.emptied |= delay <= NEARLY * largest.saturating_sub(smallest).as_secs_f64();
    }

    /// A loss was detected.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// A round trip has ended.
    pub(super) fn round(&mut self) {
        self.not_empty = if std::mem::take(&mut self.emptied) { 0 } else { self.not_empty + 1 };
        // 1/delta grows by one, and is halved after a loss.
        let packets = 1.0 / self.delta;
        let packets = if std::mem::take(&mut self.lost) { packets / 2.0 } else { packets + 1.0 };
        self.delta =
            if self.not_empty < EMPTY_RTTS { self.default } else { (1.0 / packets).min(self.default) };
    }
}
