//! What is counted of a queue's packets, by the codepoint at arrival.

use weir_base::{Ecn, Histogram, Span};

/// Counts of packets since they were last taken ([`super::Watched::take_counts`]). Arrays are indexed by ECN codepoint at arrival; of a
/// packet that left without having been seen to arrive, by that at departure.
#[derive(Debug, Clone, Default)]
pub struct QueueCounts {
    /// Packets that came, those that were refused too.
    pub arrived: [u64; 4],
    /// Packets that left.
    pub sent: [u64; 4],
    /// Bytes of their frames.
    pub sent_bytes: [u64; 4],
    /// Of these packets, the ones that the queue marked CE.
    pub marked: [u64; 4],
    /// Packets that were dropped, at arrival or after waiting. A large one counts once.
    pub dropped: [u64; 4],
    /// Sojourns of the packets that left and had been seen to arrive.
    pub sojourn: [Histogram; 4],
}

impl QueueCounts {
    pub(super) fn arrived(&mut self, ecn: Ecn, packets: u64) {
        self.arrived[ecn as usize] += packets;
    }

    pub(super) fn left(&mut self, ecn: Ecn, packets: u64, bytes: u32) {
        self.sent[ecn as usize] += packets;
        self.sent_bytes[ecn as usize] += u64::from(bytes);
    }

    /// Each of these packets has waited so long.
    pub(super) fn waited(&mut self, ecn: Ecn, packets: u64, sojourn: Span, is_marked: bool) {
        self.marked[ecn as usize] += if is_marked { packets } else { 0 };
        (0..packets).for_each(|_| self.sojourn[ecn as usize].record(sojourn));
    }

    pub(super) fn dropped(&mut self, ecn: Ecn) {
        self.dropped[ecn as usize] += 1;
    }

    /// Adds later counts.
    pub fn merge(&mut self, later: &QueueCounts) {
        let add = |sums: &mut [u64; 4], parts: &[u64; 4]| {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        };
        add(&mut self.arrived, &later.arrived);
        add(&mut self.sent, &later.sent);
        add(&mut self.sent_bytes, &later.sent_bytes);
        add(&mut self.marked, &later.marked);
        add(&mut self.dropped, &later.dropped);
        self.sojourn.iter_mut().zip(&later.sojourn).for_each(|(sum, part)| sum.merge(part));
    }
}
