//! What a link's queue reports in the packets that leave it: how long each has waited, and how many of its kind (with an ECN codepoint, or
//! without) were dropped before it. A packet that cannot hold a report leaves the drops to the next one.

use crate::wire::Wire;
use weir_base::{Ecn, Time};

/// Drops that no packet has reported yet, by kind.
#[derive(Debug, Default)]
pub(super) struct Reporting {
    drops: [u64; 2],
}

impl Reporting {
    /// The queue has dropped a packet that arrived with this codepoint.
    pub(super) fn dropped(&mut self, class: Ecn) {
        self.drops[usize::from(class.is_capable())] += 1;
    }

    /// A packet leaves the queue.
    pub(super) fn leave<P: Wire>(&mut self, packet: &mut P, now: Time) {
        let drops = &mut self.drops[usize::from(packet.class().is_capable())];
        if let Some(left) = packet.report(now.since(packet.arrived()), *drops) {
            *drops = left;
        }
    }
}
