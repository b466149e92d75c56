//! A probe of the path without a queue, for the time when the filter forgets the smallest RTT. Copa's window should move up and down
//! so that the queue empties every few round trips. A window of a few packets may stand still instead: two packets wait all the time,
//! two more once the smallest RTT is forgotten, and so on until the buffer overflows. The GNAT software has no such probe; the timing
//! of its hosts is never so exact that a window stands still.
//!
//! As in BBR (draft-cardwell-iccrg-bbr-congestion-control-02, section 4.3.4), the window is smaller for a round trip: the packets that
//! the path held at the forgotten RTT, less one. If the smallest RTT has risen by more than Copa's own queue explains, the path is
//! longer, and there is no probe.

use crate::Ack;
use weir_base::{Span, Time};

/// The window of a probe is this many packets smaller than the estimated BDP, so that the queue empties.
const FEWER: f64 = 1.0;
/// Largest rise of the smallest RTT that Copa's own queue can cause at once, as a multiple of the packets that Copa keeps in it.
const OWN: f64 = 2.0;

/// The state of the probes.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// The smallest RTT since the last probe.
    known: Option<Span>,
    /// When the last probe began.
    began: Option<Time>,
    /// The current probe: its window in packets, and the offset beyond which an acknowledgement ends it.
    looking: Option<(f64, u64)>,
}

impl Probe {
    /// Takes an acknowledgement. `over` is the length of the filter of the smallest RTT; `cwnd` packets leave in the `standing` RTT
    /// (in seconds); `wanted` is 1/delta, the packets to keep in the queue.
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
        // The rise of the smallest RTT in packets. Less than one may be an effect of the hosts' timing.
        let risen = smallest.saturating_sub(known).as_secs_f64() * cwnd / standing;
        self.known = Some(if risen > OWN * wanted { smallest } else { known });
        let own = (1.0..=OWN * wanted).contains(&risen);
        if own && self.began.is_none_or(|began| ack.now.since(began) >= over) {
            // Packets that are always lost are not part of the BDP.
            let delivered = ack.rate.map_or(cwnd, |rate| f64::from(rate.delivered).min(cwnd));
            let holds = delivered * known.as_secs_f64() / standing;
            (self.looking, self.began) = (Some((holds - FEWER, ack.next_sequence)), Some(ack.now));
        }
    }

    /// The window of the current probe in packets; `None` if no probe is under way.
    pub(super) fn window(&self) -> Option<f64> {
        self.looking.map(|(window, _)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;
    use crate::testing::{ack, ms};

    /// An acknowledgement on a path that delivers ten packets in a round trip.
    fn at(millis: u64, acknowledged: u64, next: u64) -> Ack {
        let interval = Span::from_millis(10);
        let rate = RateSample { delivered: 10, interval, prior_delivered: 0, losses: 0, app_limited: false };
        Ack { rate: Some(rate), acknowledged, next_sequence: next, ..ack(ms(millis), 1) }
    }

    #[test]
    fn a_rise_of_the_smallest_rtt_by_a_packet_starts_a_probe_of_one_round_trip_once_a_window() {
        let (span, mut probe) = (Span::from_millis, Probe::default());
        let mut look = |millis, acknowledged, next, smallest| {
            probe.on_ack(&at(millis, acknowledged, next), span(smallest), span(800), 0.02, 12.0, 2.0);
            probe.window()
        };
        assert_eq!(look(0, 0, 1000, 10), None);
        assert_eq!(look(900, 1000, 2000, 11), None, "less than a packet");
        // Ten packets are delivered in 20 ms, five in 10 ms. The probe lasts until data that was sent after its start is acknowledged.
        assert_eq!(look(901, 2000, 3000, 12), Some(4.0));
        assert_eq!(look(905, 3000, 4000, 12), Some(4.0));
        assert_eq!(look(911, 3001, 5000, 14), None);
        // The RTT that the probe has found is the new reference, and the next probe waits for a filter length.
        assert_eq!(look(912, 4000, 6000, 14), None);
        assert_eq!(look(1700, 5000, 7000, 16), None);
        assert!(look(1701, 6000, 8000, 16).is_some_and(|window| (window - 6.0).abs() < 1e-9));
    }

    #[test]
    fn a_large_rise_of_the_smallest_rtt_is_a_longer_path() {
        let (span, mut probe) = (Span::from_millis, Probe::default());
        for (millis, smallest) in [(0, 10), (900, 30), (1800, 30)] {
            probe.on_ack(&at(millis, millis, millis + 1), span(smallest), span(800), 0.03, 10.0, 2.0);
            assert_eq!(probe.window(), None);
        }
    }
}
