//! Round-trip times: the smoothed RTT with its deviation, the smallest and the largest RTT, and the timeouts derived from them.

use weir_base::{Span, Time, WindowedMax, WindowedMin};

/// The retransmission timeout is no shorter than this.
const LEAST_TIMEOUT: Span = Span::from_millis(200);
/// The timeout before the first sample (RFC 6298, section 2).
const FIRST_TIMEOUT: Span = Span::from_secs(1);
/// The timeout is no longer than this, however often it is doubled (the GNAT software).
const LONGEST_TIMEOUT: Span = Span::from_secs(64);
/// The longest time for which the receiver may hold back an acknowledgement, plus the tolerance of timers (the GNAT software: 40 ms and 4
/// ms).
const HELD_BACK: Span = Span::from_millis(44);
/// Deviations that a fast timeout adds to the smoothed RTT (the GNAT software).
const FAST_DEVIATIONS: f64 = 5.0;
/// Window of the largest RTT: a queue that comes and goes within it counts.
const LARGEST_OVER: Span = Span::from_secs(2);
/// Window of the smallest RTT (the GNAT software has at least 10 s).
const SMALLEST_OVER: Span = Span::from_secs(10);

/// The round-trip times of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    /// Smoothed RTT and mean deviation, in seconds; `None` before the first sample.
    smoothed: Option<(f64, f64)>,
    smallest: WindowedMin<Span>,
    largest: WindowedMax<Span>,
    /// Timeouts in a row.
    backoff: u32,
}

impl Rtt {
    pub(crate) fn new() -> Rtt {
        Rtt { smoothed: None, smallest: WindowedMin::new(), largest: WindowedMax::new(), backoff: 0 }
    }

    /// Takes an RTT sample (RFC 6298, section 2). Each transmission has its own number, so retransmissions give samples too.
    pub(crate) fn take(&mut self, sample: Span, now: Time) {
        let rtt = sample.as_secs_f64();
        self.smoothed = Some(match self.smoothed {
            Some((smoothed, deviation)) => {
                let deviation = deviation + ((smoothed - rtt).abs() - deviation) / 4.0;
                (smoothed + (rtt - smoothed) / 8.0, deviation)
            }
            None => (rtt, rtt / 2.0),
        });
        self.smallest.update(SMALLEST_OVER, now, sample);
        self.largest.update(LARGEST_OVER, now, sample);
        self.backoff = 0;
    }

    /// The smoothed RTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.smoothed.map(|(smoothed, _)| Span::from_secs_f64(smoothed))
    }

    /// The smallest RTT of the last 10 s; `None` without a sample.
    pub(crate) fn smallest(&self) -> Option<Span> {
        self.smallest.value()
    }

    /// The largest RTT of the last 2 s; `None` without a sample.
    pub(crate) fn largest(&self) -> Option<Span> {
        self.largest.value()
    }

    /// The smoothed RTT plus this many deviations.
    fn within(&self, deviations: f64) -> Option<Span> {
        self.smoothed.map(|(smoothed, deviation)| Span::from_secs_f64(smoothed + deviations * deviation))
    }

    /// The time after which a packet counts as lost if a later one has arrived: the smoothed RTT plus four deviations.
    pub(crate) fn patience(&self) -> Span {
        self.within(4.0).unwrap_or(FIRST_TIMEOUT)
    }

    /// The retransmission timeout before it is doubled.
    pub(crate) fn first_timeout(&self) -> Span {
        let timeout = if self.smoothed.is_some() { self.patience() + HELD_BACK } else { FIRST_TIMEOUT };
        timeout.max(LEAST_TIMEOUT)
    }

    /// The retransmission timeout, doubled for each timeout in a row.
    pub(crate) fn timeout(&self) -> Span {
        (self.first_timeout() * (1 << self.backoff.min(9))).min(LONGEST_TIMEOUT)
    }

    /// The retransmission timeout if few packets are in flight, so that the loss of all of them is likely and says little. It is never
    /// doubled.
    pub(crate) fn fast_timeout(&self) -> Span {
        self.within(FAST_DEVIATIONS).map_or(FIRST_TIMEOUT, |fast| fast + HELD_BACK)
    }

    /// A timeout has passed.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn the_retransmission_timeout_matches_values_computed_by_hand() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.take(ms(100), Time::ZERO);
        // 100 + 4 * 50, and 44 for the acknowledgement.
        assert_eq!((rtt.patience(), rtt.timeout()), (ms(300), ms(344)));
        // The deviation comes to 50 - 50 / 4 = 37.5.
        rtt.take(ms(100), Time::ZERO);
        assert_eq!((rtt.smoothed(), rtt.patience()), (Some(ms(100)), ms(250)));
        rtt.back_off();
        assert_eq!(rtt.timeout(), ms(588));
        // A fast one is not doubled: 100 + 5 * 37.5, and 44.
        assert_eq!(rtt.fast_timeout(), Span::from_micros(331_500));
        rtt.take(ms(100), Time::ZERO);
        assert!(rtt.timeout() < ms(294));
    }

    #[test]
    fn the_timeout_is_never_below_200_ms_nor_above_64_s() {
        let mut rtt = Rtt::new();
        (0..20).for_each(|_| rtt.take(ms(1), Time::ZERO));
        assert_eq!(rtt.timeout(), ms(200));
        (0..30).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), Span::from_secs(64));
    }
}
