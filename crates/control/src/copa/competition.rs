//! Competition with flows that fill buffers (NSDI 2018, section 2.2): while the queue does not empty for five round trips, delta follows
//! the losses as NewReno's window would.

use weir_base::{Span, Time, WindowedMax};

/// The queue is nearly empty when less than this part of what waited at most waits.
const NEARLY: f64 = 0.1;
/// Over how many smoothed RTTs that most is looked for, and over how many round trips an empty queue is.
const LARGEST_RTTS: u64 = 4;
const EMPTY_RTTS: u32 = 5;

/// Whether others fill the buffer, and delta then.
#[derive(Debug)]
pub(super) struct Competition {
    /// Delta as long as there is none.
    default: f64,
    delta: f64,
    largest: WindowedMax<Span>,
    /// Round trips since the queue was last nearly empty.
    not_empty: u32,
    /// Whether the queue was nearly empty, and something was lost, in this round trip.
    emptied: bool,
    lost: bool,
}

impl Competition {
    /// None so far; delta is this.
    pub(super) fn new(delta: f64) -> Competition {
        let largest = WindowedMax::new();
        Competition { default: delta, delta, largest, not_empty: 0, emptied: false, lost: false }
    }

    /// Delta as it is now.
    pub(super) fn delta(&self) -> f64 {
        if self.not_empty >= EMPTY_RTTS { self.delta } else { self.default }
    }

    /// An RTT, with the smoothed and the smallest one and how long packets wait, in seconds.
    pub(super) fn take(&mut self, rtt: Span, srtt: f64, smallest: Span, delay: f64, now: Time) {
        let largest = self.largest.update(Span::from_secs_f64(srtt) * LARGEST_RTTS, now, rtt);
        self.emptied |= delay <= NEARLY * largest.saturating_sub(smallest).as_secs_f64();
    }

    /// Something was lost.
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
