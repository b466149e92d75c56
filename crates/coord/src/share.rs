//! The estimate of one flowshare for the inbound direction. The estimator receives a thinned stream of the application's
//! packets and losses ([`Filter`]), as dense as one flow: the virtual flow.

use crate::Filter;
use crate::config::Measurement;
use crate::estimator::{Conditions, Estimator, Event};
use std::collections::VecDeque;
use weir_base::{Ewma, Random, Span, Time};
use weir_control::tfrc::Losses;

/// Weight of a packet in the long-term mean packet length.
const SIZE_WEIGHT: f64 = 0.01;
/// A run of losses passes the filter in at most this many pieces, so the work for a packet has a bound.
const PIECES: u64 = 64;
/// Later packets of the virtual flow after which a loss is detected (RFC 5348, section 5.1, `NDUPACK`).
const LATER: u8 = 3;
/// Losses that may wait for later packets. If there are more, the oldest is declared at once.
const WAITING: usize = 64;

/// The estimate of one flowshare.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    filter: Filter,
    estimator: Estimator,
    own_detection: bool,
    /// Number of the next event of the virtual stream.
    next: u64,
    /// Losses that the virtual flow has not detected yet, each with the number of its packets that arrived later.
    waiting: VecDeque<(Event, u8)>,
    size: Ewma,
    /// Packets of the virtual stream that were lost.
    lost: u64,
    /// The rate of one flowshare in bytes a second; `None` before the first round trip time.
    available: Option<f64>,
}

impl Share {
    /// A share without history.
    pub(crate) fn new(measurement: &Measurement, random: Random) -> Share {
        let own_detection = measurement.filter.own_detection;
        Share {
            filter: Filter::new(measurement.filter.clone(), random),
            estimator: Estimator::new(&measurement.estimator),
            own_detection,
            next: 0,
            waiting: VecDeque::with_capacity(if own_detection { WAITING } else { 0 }),
            size: Ewma::new(SIZE_WEIGHT),
            lost: 0,
            available: None,
        }
    }

    /// The rate of one flowshare in bytes a second; `None` before the first round trip time.
    pub(crate) fn available(&self) -> Option<f64> {
        self.available
    }

    /// Packets of the application were lost; the loss is detected at `now`.
    pub(crate) fn lost(&mut self, losses: &Losses, rtt: Option<Span>, now: Time) {
        let piece = losses.count.div_ceil(PIECES);
        let mut from = 0;
        while from < losses.count {
            let count = piece.min(losses.count - from);
            let event = self.thin(count, losses.time(from), rtt, count as f64 * self.size());
            if let (Some(event), Some(conditions)) = (event, self.conditions(rtt, rtt.unwrap_or_default())) {
                self.lost += event.count;
                self.take_loss(event, &conditions, now);
            }
            from += count;
        }
    }

    /// A packet of the application has arrived.
    pub(crate) fn arrived(&mut self, now: Time, rtt: Option<Span>, latest: Span, bytes: f64) {
        self.size.update(bytes);
        let event = self.thin(1, now, rtt, bytes);
        let Some(conditions) = self.conditions(rtt, latest) else { return };
        if let Some(event) = event {
            self.count_later(&conditions, now);
            self.estimator.arrived(&event, &conditions);
        }
        self.available = Some(self.estimator.rate(&conditions));
    }

    /// Internal state for the records.
    pub(crate) fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("arriving_mbps", self.filter.arriving() * 8.0 / 1e6);
        report("passed_fraction", self.filter.fraction());
        report("losses_considered", self.lost as f64);
        self.estimator.state(report);
    }

    fn size(&self) -> f64 {
        self.size.value().unwrap_or(0.0)
    }

    /// The state of the path for the estimator; `None` before the first round trip time.
    fn conditions(&self, rtt: Option<Span>, latest: Span) -> Option<Conditions> {
        let (size, receiving) = (self.size(), self.filter.virtual_rate());
        Some(Conditions { rtt: rtt?, latest_rtt: latest, size, receiving })
    }

    /// The virtual event of `count` packets; `None` if the filter passes none of them.
    fn thin(&mut self, count: u64, at: Time, rtt: Option<Span>, bytes: f64) -> Option<Event> {
        let count = self.filter.thin(count, bytes, at, self.available, rtt);
        let event = Event { sequence: self.next, count, at };
        self.next += count;
        (count > 0).then_some(event)
    }

    fn take_loss(&mut self, event: Event, conditions: &Conditions, now: Time) {
        if !self.own_detection {
            self.estimator.lost(&event, conditions, now);
            return;
        }
        if self.waiting.len() == WAITING
            && let Some((oldest, _)) = self.waiting.pop_front()
        {
            self.estimator.lost(&oldest, conditions, now);
        }
        self.waiting.push_back((event, 0));
    }

    /// Counts one more packet of the virtual flow, and passes the losses detected by it to the estimator.
    fn count_later(&mut self, conditions: &Conditions, now: Time) {
        for (_, later) in &mut self.waiting {
            *later += 1;
        }
        while let Some(&(event, LATER..)) = self.waiting.front() {
            self.waiting.pop_front();
            self.estimator.lost(&event, conditions, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator;
    use weir_control::tfrc::Gaps;

    const RTT: Span = Span::from_millis(100);

    /// A share of RAP without thinning, after ten packets of 1,000 bytes, one each 50 ms: a flowshare of several packets a
    /// round trip.
    fn share(own_detection: bool) -> Share {
        let filter = crate::filter::Config { own_detection, enabled: false, ..Default::default() };
        let measurement = Measurement { estimator: estimator::Config::Rap(Default::default()), filter };
        let mut share = Share::new(&measurement, Random::stream(1, "share"));
        for n in 0..10 {
            arrive(&mut share, n);
        }
        share
    }

    fn at(n: u64) -> Time {
        Time::from_nanos(n * 50_000_000)
    }

    fn arrive(share: &mut Share, n: u64) {
        share.arrived(at(n), Some(RTT), RTT, 1000.0);
    }

    /// The loss of number 1, detected when 0, 2, 3 and 4 have arrived.
    fn loss() -> Losses {
        let (mut gaps, mut lost) = (Gaps::default(), None);
        for n in [0, 2, 3, 4] {
            gaps.arrived(n, at(9 + n), |losses| lost = Some(losses));
        }
        lost.unwrap()
    }

    #[test]
    fn without_own_detection_a_loss_halves_the_flowshare_at_once() {
        let mut share = share(false);
        let before = share.available().unwrap();
        share.lost(&loss(), Some(RTT), at(10));
        arrive(&mut share, 10);
        assert_eq!(share.available(), Some(before / 2.0));
    }

    #[test]
    fn with_own_detection_a_loss_counts_after_three_later_packets_of_the_virtual_flow() {
        let mut share = share(true);
        share.lost(&loss(), Some(RTT), at(10));
        let mut rates = Vec::new();
        for n in 10..13 {
            arrive(&mut share, n);
            rates.push(share.available().unwrap());
        }
        assert!(rates[1] >= rates[0], "{rates:?}");
        assert_eq!(rates[2], rates[1] / 2.0);
    }

    #[test]
    fn losses_without_later_packets_are_bounded_in_number() {
        let mut share = share(true);
        let before = share.available().unwrap();
        for _ in 0..2 * WAITING {
            share.lost(&loss(), Some(RTT), at(10));
        }
        assert_eq!(share.waiting.len(), WAITING);
        assert_eq!(share.waiting.capacity(), VecDeque::<(Event, u8)>::with_capacity(WAITING).capacity());
        // The oldest of them were declared at once.
        assert!(share.estimator.rate(&share.conditions(Some(RTT), RTT).unwrap()) < before);
    }
}
