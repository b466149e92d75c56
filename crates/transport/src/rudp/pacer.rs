//! When the next packet of a flow leaves: a gap after the last one, as long as the last one takes at the flow's rate.
//!
//! The flows of an application all follow one rate, so that packets that once left together keep leaving together, and a full
//! queue drops more of them than of packets that come one by one (phase effects; Floyd and Jacobson, "On Traffic Phase Effects in
//! Packet-Switched Gateways", 1992). With `jitter` each gap is drawn from around its length, which keeps the rate and ends the phases.

use weir_base::{Bytes, Random, Rate, Span, Time};

/// The clock of a flow's packets.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// When the last packet was to leave, its length, and by what the gap behind it is longer or shorter.
    left: Option<(Time, u32, f64)>,
    jitter: f64,
    random: Random,
}

impl Pacer {
    /// A pacer that draws each gap from this part of its length below it to as much above it.
    pub(crate) fn new(jitter: f64, random: Random) -> Pacer {
        Pacer { left: None, jitter, random }
    }

    /// When the next packet may leave at this rate; at once before the first.
    pub(crate) fn due(&self, rate: Rate) -> Time {
        self.left.map_or(Time::ZERO, |(at, length, factor)| at + gap(length, rate).scale(factor))
    }

    /// A packet of this length leaves now, at or after the time that is due.
    pub(crate) fn leaves(&mut self, length: u32, rate: Rate, now: Time) {
        let due = self.due(rate);
        // A sender that is late by less than a gap makes up for it; one that was idle does not.
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

    /// When each of so many packets of 1,250 bytes leaves at 10 Mbit/s: one in a millisecond.
    fn departures(jitter: f64, packets: usize) -> Vec<u64> {
        let rate = Rate::from_mbit_per_sec(10);
        let mut pacer = Pacer::new(jitter, Random::stream(1, "pacer"));
        let mut times = Vec::new();
        for _ in 0..packets {
            let due = pacer.due(rate);
            pacer.leaves(1250, rate, due);
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
    fn a_late_sender_makes_up_for_less_than_a_gap() {
        let rate = Rate::from_mbit_per_sec(10);
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let mut pacer = Pacer::new(0.0, Random::stream(1, "pacer"));
        pacer.leaves(1250, rate, at(0));
        pacer.leaves(1250, rate, at(1900));
        assert_eq!(pacer.due(rate), at(2000));
        pacer.leaves(1250, rate, at(5000));
        assert_eq!(pacer.due(rate), at(6000));
    }
}
