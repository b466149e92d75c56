//! A look at the path without a queue, for when the smallest RTT is forgotten. Copa's window is to move up and down so that the queue
//! empties every few round trips. A window of a few packets may stand still instead: two packets wait all the time, and when the
//! smallest RTT is forgotten, two more, until the buffer overflows. The GNAT software has no such look; its hosts never keep time
//! so well that a window stands still.
//!
//! As with BBR (draft-cardwell-iccrg-bbr-congestion-control-02, section 4.3.4), fewer packets are under way for a round trip: as many as
//! the path held at the RTT that was forgotten, less one. Where the smallest RTT has risen by more than Copa lets wait, the path is longer.

use crate::Ack;
use weir_base::{Span, Time};

/// Packets fewer than the path is thought to hold: the queue is to be empty.
const FEWER: f64 = 1.0;
/// By so many times what Copa lets wait the smallest RTT may rise at once by its own queue.
const OWN: f64 = 2.0;

/// When the path is looked at, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// The smallest RTT since the last look.
    known: Option<Span>,
    /// When the last look began.
    began: Option<Time>,
    /// The window meanwhile, in packets; it ends when something that was sent after this offset is acknowledged.
    looking: Option<(f64, u64)>,
}

impl Probe {
    /// An acknowledgement has come. The smallest RTT is looked for over `over`; `cwnd` packets leave in the `standing` RTT, of which
    /// `wanted` are to wait.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        smallest: Span,
        over: Span,
        standing: f64,
        cwnd: f64,
        wanted: f64,
    ) {
        if let Some((_, until)) = self.looking {
            if ack.acknowledged > until {
                (self.looking, self.known) = (None, Some(smallest));
            }
            return;
        }
        let known = self.known.map_or(smallest, |known| known.min(smallest));
        // By how many packets' time it has risen. Less than one may be the hosts' own time.
        let risen = smallest.saturating_sub(known).as_secs_f64() * cwnd / standing;
        self.known = Some(if risen > OWN * wanted { smallest } else { known });
        let own = (1.0..=OWN * wanted).contains(&risen);
        if own && self.began.is_none_or(|began| ack.now.since(began) >= over) {
            // Of what is lost all the time the path holds nothing.
            let delivered = ack.rate.map_or(cwnd, |rate| f64::from(rate.delivered).min(cwnd));
            let holds = delivered * known.as_secs_f64() / standing;
            (self.looking, self.began) = (Some((holds - FEWER, ack.next_sequence)), Some(ack.now));
        }
    }

    /// The most packets that may be under way now.
    pub(super) fn window(&self) -> Option<f64> {
        self.looking.map(|(window, _)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;
    use crate::testing::{ack, ms};

    /// An acknowledgement at a time, of a path that delivers ten packets in a round trip.
    fn at(millis: u64, acknowledged: u64, next: u64) -> Ack {
        let interval = Span::from_millis(10);
        let rate = RateSample { delivered: 10, interval, prior_delivered: 0, losses: 0, app_limited: false };
        Ack { rate: Some(rate), acknowledged, next_sequence: next, ..ack(ms(millis), 1) }
    }

    #[test]
    fn a_smallest_rtt_that_rises_by_a_packet_is_looked_at_for_a_round_trip_and_once_a_window() {
        let (span, mut probe) = (Span::from_millis, Probe::default());
        let mut look = |millis, acknowledged, next, smallest| {
            probe.on_ack(&at(millis, acknowledged, next), span(smallest), span(800), 0.02, 12.0, 2.0);
            probe.window()
        };
        assert_eq!(look(0, 0, 1000, 10), None);
        assert_eq!(look(900, 1000, 2000, 11), None, "less than a packet");
        // Ten packets are delivered in 20 ms: in 10 ms five. Until something is acknowledged that was sent since.
        assert_eq!(look(901, 2000, 3000, 12), Some(4.0));
        assert_eq!(look(905, 3000, 4000, 12), Some(4.0));
        assert_eq!(look(911, 3001, 5000, 14), None);
        // What it has found is what rises next, and not before a window has passed.
        assert_eq!(look(912, 4000, 6000, 14), None);
        assert_eq!(look(1700, 5000, 7000, 16), None);
        assert!(look(1701, 6000, 8000, 16).is_some_and(|window| (window - 6.0).abs() < 1e-9));
    }

    #[test]
    fn a_smallest_rtt_that_rises_by_much_is_a_longer_path() {
        let (span, mut probe) = (Span::from_millis, Probe::default());
        for (millis, smallest) in [(0, 10), (900, 30), (1800, 30)] {
            probe.on_ack(&at(millis, millis, millis + 1), span(smallest), span(800), 0.03, 10.0, 2.0);
            assert_eq!(probe.window(), None);
        }
    }
}
