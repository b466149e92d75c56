//! Outages: when the peer is not heard, one packet at a time is sent until it is, so that the path's return is noticed within a
//! round trip, and no window is lost by timeouts.

use weir_base::{Span, Time};

/// A probe leaves each two smoothed RTTs, and no sooner than this.
const LEAST_GAP: Span = Span::from_millis(20);
/// After this long, probes are fewer.
const LONG: Span = Span::from_secs(60);
/// How much fewer.
const SLOWER: u64 = 8;
/// The largest rate of loss that counts, so that the time until an outage is finite (the GNAT software).
const WORST_PER: f64 = 0.9;

/// Whether the peer is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outage {
    /// It is.
    #[default]
    No,
    /// It is not, since this time.
    Since(Time),
}

impl Outage {
    /// How long nothing may be heard, while packets wait to be acknowledged, before it is an outage: two timeouts, and more on a
    /// channel that loses packets both ways (the GNAT software).
    pub(crate) fn patience(timeout: Span, per: f64) -> Span {
        let arrives = 1.0 - per.min(WORST_PER);
        (timeout * 2).scale(1.0 / (arrives * arrives))
    }

    /// Whether it is one.
    pub(crate) fn is_on(self) -> bool {
        self != Outage::No
    }

    /// Time from one probe to the next.
    pub(crate) fn gap(self, srtt: Span, now: Time) -> Span {
        let gap = (srtt * 2).max(LEAST_GAP);
        match self {
            Outage::Since(begin) if now.since(begin) >= LONG => gap * SLOWER,
            _ => gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_lengthen_the_patience() {
        let timeout = Span::from_millis(200);
        assert_eq!(Outage::patience(timeout, 0.0), Span::from_millis(400));
        // Half there and half back: four times.
        assert_eq!(Outage::patience(timeout, 0.5), Span::from_millis(1600));
        assert_eq!(Outage::patience(timeout, 1.0), Outage::patience(timeout, 0.9));
    }

    #[test]
    fn probes_leave_each_two_round_trips_and_fewer_after_a_minute() {
        let outage = Outage::Since(Time::ZERO);
        let at = |secs| Time::ZERO + Span::from_secs(secs);
        assert_eq!(outage.gap(Span::from_millis(50), at(1)), Span::from_millis(100));
        assert_eq!(outage.gap(Span::from_millis(1), at(1)), Span::from_millis(20));
        assert_eq!(outage.gap(Span::from_millis(50), at(60)), Span::from_millis(800));
    }
}
