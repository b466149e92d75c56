//! The departure times of a flow's packets: the gap behind a packet is its transmission time at the flow's rate.
//!
//! The flows of an application all follow one rate, so packets that once left together keep leaving together, and a full queue
//! drops more of them than of packets that arrive one by one (phase effects; Floyd and Jacobson, "On Traffic Phase Effects in
//! Packet-Switched Gateways", 1992). With `jitter` each gap is drawn at random around its length, which keeps the rate and removes
//! the phase effects.
//!
//! A full queue also drops more of packets that arrive in pairs than of single ones. TCP sends two segments for each delayed
//! acknowledgement (RFC 5681, section 4.2). With `burst` that many packets leave together, followed by the sum of their gaps, so
//! that a flow loses about as much as a TCP flow beside it. Fewer packets leave together where TCP would send fewer.

use weir_base::{Bytes, Random, Rate, Span, Time};

/// The clock of a flow's packets.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Planned departure time of the last packets, their total length in bytes, and the factor on the gap behind them.
    left: Option<(Time, u32, f64)>,
    /// Packets that may still leave with the last one.
    together: u32,
    jitter: f64,
    burst: u32,
    random: Random,
}

impl Pacer {
    /// A pacer that varies each gap at random by up to the fraction `jitter` of its length, and lets `burst` packets leave together.
    pub(crate) fn new(jitter: f64, burst: u32, random: Random) -> Pacer {
        Pacer { left: None, together: 0, jitter, burst, random }
    }

    /// When the next packet may leave at this rate; [`Time::ZERO`] before the first.
    pub(crate) fn due(&self, rate: Rate) -> Time {
        self.left.map_or(Time::ZERO, |(at, length, factor)| match self.together {
            0 => at + gap(length, rate).scale(factor),
            _ => at,
        })
    }

    /// A packet of this length leaves now, at or after the due time. `most` is the number of packets that may leave together now.
    pub(crate) fn leaves(&mut self, length: u32, most: u64, rate: Rate, now: Time) {
        if let (Some((at, before, factor)), 1..) = (self.left, self.together) {
            self.together -= 1;
            if now.since(at) <= gap(length, rate) {
                self.left = Some((at, before + length, factor));
                return;
            }
        }
        let due = self.due(rate);
        self.together = most.min(self.burst.into()).saturating_sub(1) as u32;
        // A sender that is late by less than a gap catches up; an idle sender does not.
        let at = if self.left.is_some() && now.since(due) <= gap(length, rate) { due } else { now };
        let factor =
            if self.jitter > 0.0 { 1.0 + self.jitter * (2.0 * self.random.unit() - 1.0) } else { 1.0 };
        self.left = Some((at, length, factor));
    }
}

fn gap(length: u32, rate: Rate) -> Span {
    rate.time_to_send(Bytes::new(length.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Departure times of packets of 1,250 bytes at 10 Mbit/s, in nanoseconds: one packet each millisecond.
    fn departures(jitter: f64, packets: usize) -> Vec<u64> {
        let rate = Rate::from_mbit_per_sec(10);
        let mut pacer = Pacer::new(jitter, 1, Random::stream(1, "pacer"));
        let mut times = Vec::new();
        for _ in 0..packets {
            let due = pacer.due(rate);
            pacer.leaves(1250, 10, rate, due);
            times.push(due.as_nanos());
        }
        times
    }

    #[test]
    fn without_jitter_all_gaps_are_alike() {
        assert_eq!(departures(0.0, 4), [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn jitter_spreads_the_gaps_and_keeps_the_rate() {
        let times = departures(0.5, 10_001);
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (500_000..1_500_000).contains(gap)));
        // Uniform over a millisecond: a standard deviation of 289 us, and a hundredth of it for the mean of 10,000.
        assert!((times[10_000] / 10_000).abs_diff(1_000_000) < 9_000, "{}", times[10_000]);
        assert!(gaps.iter().filter(|gap| **gap < 600_000).count() > 900, "a tenth is below 600 us");
    }

    #[test]
    fn a_burst_leaves_at_once_and_is_followed_by_the_gap_of_all_its_packets() {
        let rate = Rate::from_mbit_per_sec(10);
        let departures = |most| {
            let mut pacer = Pacer::new(0.0, 2, Random::stream(1, "pacer"));
            let times = (0..5).map(|_| {
                let due = pacer.due(rate);
                pacer.leaves(1250, most, rate, due);
                due.as_nanos() / 1_000_000
            });
            times.collect::<Vec<_>>()
        };
        assert_eq!(departures(2), [0, 0, 2, 2, 4]);
        assert_eq!(departures(9), [0, 0, 2, 2, 4]);
        assert_eq!(departures(1), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_late_packet_of_a_burst_starts_a_new_burst() {
        let rate = Rate::from_mbit_per_sec(10);
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let mut pacer = Pacer::new(0.0, 2, Random::stream(1, "pacer"));
        pacer.leaves(1250, 9, rate, at(0));
        for due in [at(5000), at(7000)] {
            pacer.leaves(1250, 9, rate, at(5000));
            assert_eq!(pacer.due(rate), due);
        }
    }

    #[test]
    fn a_late_sender_catches_up_by_less_than_one_gap() {
        let rate = Rate::from_mbit_per_sec(10);
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let mut pacer = Pacer::new(0.0, 1, Random::stream(1, "pacer"));
        pacer.leaves(1250, 10, rate, at(0));
        pacer.leaves(1250, 10, rate, at(1900));
        assert_eq!(pacer.due(rate), at(2000));
        pacer.leaves(1250, 10, rate, at(5000));
        assert_eq!(pacer.due(rate), at(6000));
    }
}
