//! Whether the depth of a bin still rises, and how many flows may start at once (digest A 9.1, A 9.2).

use super::seen::BinSeen;
use weir_base::Bytes;

/// Reports without a new maximum after which depth is taken as steady (digest A 9.1).
const STEADY: u32 = 8;
/// Flows that start at once at most (digest A 9.2).
const MOST: u32 = 4;

/// The trend of one bin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trend {
    most: Bytes,
    depth: Bytes,
    rising: u32,
    /// How many flows may start at the next decision.
    starts: u32,
}

impl Default for Trend {
    fn default() -> Trend {
        Trend { most: Bytes::ZERO, depth: Bytes::ZERO, rising: STEADY, starts: 1 }
    }
}

impl Trend {
    pub(super) fn on_report(&mut self, bin: &BinSeen) {
        self.depth = bin.depth;
        if bin.peak > self.most {
            (self.most, self.rising) = (bin.peak, STEADY);
        } else {
            self.rising = self.rising.saturating_sub(1);
        }
    }

    /// Whether the depth has had no new maximum for long enough.
    pub(super) fn is_steady(&self) -> bool {
        self.rising == 0
    }

    /// How many flows may start now.
    pub(super) fn starts(&self) -> u32 {
        self.starts
    }

    /// So many flows have started: the depth is compared with the present one from now on. Twice as many may start next time.
    pub(super) fn started(&mut self) {
        (self.most, self.rising) = (self.depth, STEADY);
        self.starts = (2 * self.starts).min(MOST);
    }

    /// A flow has stopped again: one at a time.
    pub(super) fn failed(&mut self) {
        self.starts = 1;
    }
}
