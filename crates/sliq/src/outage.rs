//! Outages: while nothing is heard from the peer, single probes are sent until it answers. The path's return is then noticed within a
//! round trip, and the window is not lost to timeouts.

use weir_base::{Span, Time};

/// Minimum time between probes. Otherwise a probe leaves every two smoothed RTTs.
pub(super) const LEAST_GAP: Span = Span::from_millis(20);
/// After this time in an outage, probes are less frequent.
const LONG: Span = Span::from_secs(60);
/// The factor by which their gap grows.
const SLOWER: u64 = 8;
/// Higher rates of loss count as this one, so that the time until an outage is finite (the GNAT software).
const WORST_PER: f64 = 0.9;

/// The state of the peer: heard or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outage {
    /// It is heard.
    #[default]
    No,
    /// It has not been heard; the outage began at this time.
    Since(Time),
}

impl Outage {
    /// The time without a packet from the peer, while packets wait to be acknowledged, after which an outage begins: two timeouts, and
    /// more on a channel that loses packets in both directions (the GNAT software).
    pub(crate) fn patience(timeout: Span, per: f64) -> Span {
        let arrives = 1.0 - per.min(WORST_PER);
        (timeout * 2).scale(1.0 / (arrives * arrives))
    }

    /// Whether there is an outage.
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
    fn the_timeout_before_an_outage_grows_with_the_loss_rate() {
        let timeout = Span::from_millis(200);
        assert_eq!(Outage::patience(timeout, 0.0), Span::from_millis(400));
        // Half of the packets are lost in each direction: four times.
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
