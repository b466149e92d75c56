//! Round-trip estimation and the retransmission timeout: RFC 6298 in the integer arithmetic of Linux `tcp_rtt_estimator`. The
//! variance decays once a round trip, and the floor of 200 ms bounds the variance, not the sum.

use super::jiffies;
use weir_base::Span;

/// Largest timeout, microseconds (`TCP_RTO_MAX`).
const RTO_MAX: u64 = 120_000_000;
/// Timeout before the first sample, microseconds (`TCP_TIMEOUT_INIT`, RFC 6298 section 2.1).
pub(crate) const RTO_INITIAL: u64 = 1_000_000;

/// The estimator. All times are in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    /// Eight times the smoothed RTT; 0 before the first sample.
    srtt8: u64,
    mdev4: u64,
    mdev_max4: u64,
    rttvar4: u64,
    /// The variance may shrink when this position is acknowledged.
    round_end: u64,
    rto: u64,
    /// Smallest variance term.
    least: u64,
}

impl RttEstimator {
    /// An estimator without samples, whose variance term is at least `least`.
    pub(crate) fn new(least: Span) -> RttEstimator {
        let least = least.as_micros();
        RttEstimator { srtt8: 0, mdev4: 0, mdev_max4: 0, rttvar4: 0, round_end: 0, rto: RTO_INITIAL, least }
    }

    /// Takes a sample in microseconds. `una` is the first unacknowledged position, `next` the next position to be sent.
    #[inline(always)]
    pub(crate) fn sample(&mut self, rtt: u64, una: u64, next: u64) {
        if self.srtt8 == 0 {
            self.srtt8 = (rtt << 3).max(1);
            self.mdev4 = rtt << 1;
            self.rttvar4 = self.mdev4.max(self.least);
            self.mdev_max4 = self.rttvar4;
            self.round_end = next;
        } else {
            self.smooth(rtt as i64);
            if self.mdev4 > self.mdev_max4 {
                self.mdev_max4 = self.mdev4;
                self.rttvar4 = self.rttvar4.max(self.mdev_max4);
            }
            if una > self.round_end {
                self.rttvar4 -= self.rttvar4.saturating_sub(self.mdev_max4) >> 2;
                self.round_end = next;
                self.mdev_max4 = self.least;
            }
        }
        self.rto = jiffies::round_up((self.srtt8 >> 3) + self.rttvar4).min(RTO_MAX);
    }

    #[inline(always)]
    fn smooth(&mut self, rtt: i64) {
        let mut error = rtt - (self.srtt8 >> 3) as i64;
        self.srtt8 = (self.srtt8 as i64 + error).max(1) as u64;
        let deviation = (self.mdev4 >> 2) as i64;
        if error < 0 {
            // A falling RTT must not raise the variance as a rising one does.
            error = -error - deviation;
            if error > 0 {
                error >>= 3;
            }
        } else {
            error -= deviation;
        }
        self.mdev4 = (self.mdev4 as i64 + error) as u64;
    }

    /// Smoothed RTT in microseconds; `None` before the first sample.
    pub(crate) fn srtt(&self) -> Option<u64> {
        (self.srtt8 != 0).then_some(self.srtt8 >> 3)
    }
    /// Eight times the smoothed RTT (Linux `srtt_us`), 0 before the first sample.
    pub(crate) fn srtt8(&self) -> u64 {
        self.srtt8
    }
    /// The timeout in microseconds, with its backoff.
    pub(crate) fn rto(&self) -> u64 {
        self.rto
    }
    /// The smallest variance term in microseconds (`tcp_rto_min_us`).
    pub(crate) fn least(&self) -> u64 {
        self.least
    }
    /// Doubles the timeout (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(RTO_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_endpoint::RTO_MIN;

    #[test]
    fn the_first_rto_is_the_first_sample_plus_the_minimum() {
        let mut rtt = RttEstimator::new(RTO_MIN);
        assert_eq!(rtt.rto(), 1_000_000);
        rtt.sample(20_000, 1, 10);
        assert_eq!(rtt.srtt(), Some(20_000));
        assert_eq!(rtt.rto(), 220_000);
    }

    #[test]
    fn the_timeout_doubles_and_a_sample_resets_it() {
        let mut rtt = RttEstimator::new(RTO_MIN);
        rtt.sample(20_000, 1, 10);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), 880_000);
        rtt.sample(20_000, 2, 10);
        assert_eq!(rtt.rto(), 220_000);
    }

    #[test]
    fn a_spike_raises_the_variance_and_a_round_trip_later_it_shrinks_by_a_quarter() {
        let mut rtt = RttEstimator::new(RTO_MIN);
        rtt.sample(100_000, 1, 10);
        rtt.sample(900_000, 2, 10);
        // mdev4 200,000 + (800,000 - 50,000) = 950,000.
        assert_eq!(rtt.rto(), 200_000 + 952_000);
        rtt.sample(200_000, 11, 20);
        rtt.sample(200_000, 21, 30);
        // mdev4 712,500, then 534,375; variance 950,000 - (950,000 - 534,375) / 4, in whole jiffies.
        assert_eq!(rtt.rto(), 1_048_000);
    }
}
