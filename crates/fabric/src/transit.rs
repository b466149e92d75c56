//! What became of the packets of a flow that stations carry: those that were taken in for its receiver, and those that were given
//! back at the receiver's node, with their times and links. The taps cannot tell this: a packet to many receivers leaves its host once.

use weir_base::{Histogram, Span};

/// Counters of one flow and receiver since they were last taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transits {
    /// Packets that were taken in.
    pub admitted: u64,
    /// Packets that were given back within their deadline; all of them if they have none.
    pub in_time: u64,
    /// Links between stations that the packets passed, added up.
    pub links: u64,
    /// The links that each of them passed; a link counts as a millisecond, since histograms are of times.
    pub hops: Histogram,
    /// The times from the sending host to the receiver's node.
    pub times: Histogram,
    /// What of these times the packets waited in the queues of stations.
    pub waits: Histogram,
}

impl Transits {
    /// A packet is given back.
    pub(crate) fn leaves(&mut self, time: Span, waited: Span, links: u8, in_time: bool) {
        self.in_time += u64::from(in_time);
        self.links += u64::from(links);
        self.hops.record(Span::from_millis(links.into()));
        self.times.record(time);
        self.waits.record(waited);
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.admitted == 0 && self.times.count() == 0
    }

    /// Begins anew, with the histograms' memory.
    pub fn clear(&mut self) {
        (self.admitted, self.in_time, self.links) = (0, 0, 0);
        self.hops.clear();
        self.times.clear();
        self.waits.clear();
    }
}
