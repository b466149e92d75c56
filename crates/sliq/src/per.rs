//! The rate of loss, from the number of packets sent and arrived. Every packet has a number, so the difference of two numbers is the
//! number of packets sent between them.
//!
//! The GNAT software takes one measurement over at least 200 arrivals and two seconds. This estimate takes shorter measurements, and their
//! mean as long as they agree: it is as steady on a steady channel, and follows a change within a second.

use weir_base::{Span, Time};

/// A measurement covers at least this many packets and this much time.
const PACKETS: u64 = 100;
const TIME: Span = Span::from_millis(250);
/// The mean covers at most this many packets: older ones lose weight.
const MOST: f64 = 10_000.0;
/// A measurement agrees with the mean if it is within this many standard deviations of it. One in 400 is further away by chance; it counts
/// only if the next one confirms it.
const DEVIATIONS: f64 = 3.0;
/// A measurement further away than this counts at once.
const FAR: f64 = 5.0;

/// The rate of loss on the way to the peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Per {
    /// The end of the last measurement: the highest packet number, the number of packets that had arrived, and the time.
    from: Option<(u64, u32, Time)>,
    /// Packets sent and lost since the rate last changed.
    sent: f64,
    lost: f64,
    /// The last measurement if it disagreed with the mean and is not confirmed: whether it was above the mean, and its packets sent and
    /// lost.
    doubted: Option<(bool, f64, f64)>,
    /// Lost packets that do not count: those that were too long for the path.
    apart: u64,
}

impl Per {
    /// Takes the peer's report: `received` packets have arrived, `largest` is the highest number.
    pub(crate) fn take(&mut self, largest: u64, received: u32, now: Time) {
        let Some((number, before, at)) = self.from else {
            self.from = Some((largest, received, now));
            return;
        };
        let sent = largest.saturating_sub(number);
        if sent < PACKETS || now.since(at) < TIME {
            return;
        }
        self.from = Some((largest, received, now));
        // More packets may be counted than numbers have passed, since a packet may arrive after one with a higher number.
        let arrived = (u64::from(received.wrapping_sub(before)) + std::mem::take(&mut self.apart)).min(sent);
        let (sent, lost) = (sent as f64, (sent - arrived) as f64);
        let mean = self.mean();
        let deviation = (mean * (1.0 - mean) / sent).sqrt().max(1.0 / sent);
        let (off, doubted) = ((lost / sent - mean) / deviation, self.doubted.take());
        if off.abs() > DEVIATIONS && self.sent > 0.0 {
            let above = off > 0.0;
            if off.abs() < FAR && doubted.is_none_or(|(side, ..)| side != above) {
                self.doubted = Some((above, sent, lost));
                return;
            }
            (self.sent, self.lost) = (0.0, 0.0);
        } else if let Some((_, sent, lost)) = doubted {
            // It was chance, and counts in the mean.
            (self.sent, self.lost) = (self.sent + sent, self.lost + lost);
        }
        let kept = (MOST / (self.sent + sent)).min(1.0);
        self.sent = (self.sent + sent) * kept;
        self.lost = (self.lost + lost) * kept;
    }

    /// This many packets were lost because they were too long; they do not count.
    pub(crate) fn set_apart(&mut self, packets: u32) {
        self.apart += u64::from(packets);
    }

    fn mean(&self) -> f64 {
        if self.sent > 0.0 { self.lost / self.sent } else { 0.0 }
    }

    /// The rate of loss, 0 to 1; 0 before the first measurement.
    pub(crate) fn rate(&self) -> f64 {
        self.mean()
    }

    /// Drops all measurements: the path was interrupted, for instance.
    pub(crate) fn restart(&mut self) {
        *self = Per::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets a millisecond apart, loses the last of every `nth`, and reports each of the others.
    struct Channel {
        per: Per,
        number: u64,
        received: u32,
        now: Time,
    }

    impl Channel {
        fn new() -> Channel {
            Channel { per: Per::default(), number: 0, received: 0, now: Time::ZERO }
        }

        fn carry(&mut self, packets: u64, nth: u64) {
            for _ in 0..packets {
                self.number += 1;
                self.now += Span::from_millis(1);
                if !self.number.is_multiple_of(nth) {
                    self.received += 1;
                    self.per.take(self.number, self.received, self.now);
                }
            }
        }
    }

    #[test]
    fn the_loss_rate_is_the_share_of_sent_packets_that_were_lost() {
        let mut channel = Channel::new();
        channel.carry(1001, 10);
        // Measurements end each 250 packets, of which 25 are lost.
        assert!((channel.per.rate() - 0.1).abs() < 0.005, "{}", channel.per.rate());
    }

    #[test]
    fn a_change_is_followed_within_a_second() {
        let mut channel = Channel::new();
        channel.carry(20_000, 10);
        channel.carry(800, 2);
        assert!((channel.per.rate() - 0.5).abs() < 0.01, "{}", channel.per.rate());
        channel.carry(800, 10);
        assert!((channel.per.rate() - 0.1).abs() < 0.01, "{}", channel.per.rate());
        channel.carry(800, u64::MAX);
        assert_eq!(channel.per.rate(), 0.0);
    }

    #[test]
    fn a_single_outlying_measurement_is_only_averaged_in() {
        let mut channel = Channel::new();
        channel.carry(2_000, 5);
        // One measurement with 0.28 of 250 packets lost, 3.2 deviations above 0.2, which happens by chance once in 700 measurements.
        channel.received -= 20;
        channel.carry(500, 5);
        assert!((channel.per.rate() - 0.208).abs() < 0.003, "{}", channel.per.rate());
    }

    #[test]
    fn too_few_packets_leave_the_loss_rate_at_zero() {
        let mut channel = Channel::new();
        channel.carry(99, 2);
        assert_eq!(channel.per.rate(), 0.0);
    }
}
