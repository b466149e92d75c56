//! Congestion marks (RFC 9000, section 13.4): the receiver counts the codepoints of packets that have arrived. The sender checks whether
//! the path preserves codepoints, and how many packets were marked since the last acknowledgement.
//!
//! Unlike in the RFC, only data packets carry a codepoint, and only those of controllers that ask for it.

use super::wire;
use weir_base::Ecn;

/// The counts of this end, and those that the peer has reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    arrived: wire::Marks,
    /// The counts in the newest acknowledgement, and in the one before.
    told: wire::Marks,
    before: wire::Marks,
}

fn sum(marks: &wire::Marks) -> u32 {
    marks.ect0.wrapping_add(marks.ect1).wrapping_add(marks.ce)
}

impl Marks {
    /// A packet has arrived with this codepoint.
    pub(crate) fn arrived(&mut self, ecn: Ecn) {
        let count = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.arrived.ect0,
            Ecn::Ect1 => &mut self.arrived.ect1,
            Ecn::Ce => &mut self.arrived.ce,
        };
        *count = count.wrapping_add(1);
    }

    /// The counts to report; `None` if no packet with a codepoint has arrived.
    pub(crate) fn tell(&self) -> Option<wire::Marks> {
        (self.arrived != wire::Marks::default()).then_some(self.arrived)
    }

    /// Takes counts from the peer. Older counts are ignored.
    pub(crate) fn on_counts(&mut self, marks: wire::Marks) {
        if sum(&marks).wrapping_sub(sum(&self.told)) as i32 > 0 {
            self.told = marks;
        }
    }

    /// Takes an acknowledgement newer than those before, for `packets` packets that had left with a codepoint. Returns how many more were
    /// marked, or `None` if the path does not preserve codepoints.
    pub(crate) fn marked(&mut self, packets: u32) -> Option<u32> {
        let (told, before) = (self.told, self.before);
        self.before = told;
        let more = sum(&told).wrapping_sub(sum(&before));
        let ce = told.ce.wrapping_sub(before.ce);
        (more >= packets && ce <= more).then_some(ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arriving_packets_are_counted_by_codepoint() {
        let mut marks = Marks::default();
        marks.arrived(Ecn::NotEct);
        assert_eq!(marks.tell(), None);
        for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::Ect0, Ecn::Ect1] {
            marks.arrived(ecn);
        }
        assert_eq!(marks.tell(), Some(wire::Marks { ect0: 2, ect1: 1, ce: 1 }));
    }

    #[test]
    fn a_path_that_clears_codepoints_is_detected() {
        let mut marks = Marks::default();
        marks.on_counts(wire::Marks { ect0: 3, ect1: 0, ce: 2 });
        assert_eq!(marks.marked(5), Some(2));
        // An acknowledgement that was overtaken.
        marks.on_counts(wire::Marks { ect0: 2, ect1: 0, ce: 1 });
        assert_eq!(marks.marked(0), Some(0));
        assert_eq!(marks.marked(1), None);
    }
}
