//! Fast start (the GNAT software, for its Copa): pairs of packets that leave back to back at the start of a connection. The gap between
//! the arrivals of a pair is the time that the bottleneck takes for one packet. Windows then open to the path's rate without slow start.
//!
//! The receiver's acknowledgements tell when each packet has arrived, so no further kind of packet is needed. The software limits the rate
//! to 11,500 packets per second; here there is no limit.

use weir_base::{Bytes, Rate, Span, Time};

/// Number of pairs. The first one does not count, since the path is not yet warm.
const PAIRS: usize = 11;
/// UDP payload of a packet in bytes, if the path carries that.
pub(crate) const PACKET: u32 = 1000;
/// The pairs leave over twice the sum of a round trip and this time.
const ASIDE: Span = Span::from_millis(25);
/// How long after the last pair its acknowledgements are awaited.
const PATIENCE: Span = Span::from_secs(1);
/// The measurement needs at least this many gaps.
const FEWEST: usize = 3;
/// If the pairs' round trips differ, others have filled a queue. The rate is then limited to this many packets in the time by which they
/// differ.
const IN_QUEUE: u64 = 4;

/// A pair: of each packet its number, its sending time by the sender's 32-bit clock in microseconds and by this end's time, and its
/// arrival by the receiver's clock in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    sent: [Option<(u64, u32, Time)>; 2],
    arrived: [Option<u32>; 2],
}

impl Pair {
    /// Time between the arrivals; `None` if one is not known, or if they are not in order.
    fn gap(&self) -> Option<Span> {
        let [Some(first), Some(second)] = self.arrived else { return None };
        let gap = second.wrapping_sub(first) as i32;
        (gap > 0).then(|| Span::from_micros(gap as u64))
    }
}

/// The pairs of a connection.
#[derive(Debug)]
pub(crate) struct Train {
    packet: u32,
    pairs: [Pair; PAIRS],
    /// Number of packets that have left, when the next one is due, and the time between pairs.
    left: usize,
    due: Time,
    apart: Span,
    /// The smallest and the largest round trip of its packets.
    round_trips: Option<(Span, Span)>,
}

impl Train {
    /// The pairs of a connection with this round trip. Packets have `packet` bytes of UDP payload.
    pub(crate) fn new(packet: u32, rtt: Span, now: Time) -> Train {
        let apart = (rtt + ASIDE) * 2 / PAIRS as u64;
        Train { packet, pairs: [Pair::default(); PAIRS], left: 0, due: now, apart, round_trips: None }
    }

    /// UDP payload of a packet in bytes.
    pub(crate) fn packet(&self) -> u32 {
        self.packet
    }

    /// When the next packet is due, if packets may leave, or the measurement ends.
    pub(crate) fn next_timer(&self, may_leave: bool) -> Time {
        if may_leave || self.left == 2 * PAIRS { self.due } else { Time::NEVER }
    }

    /// Whether a packet leaves now.
    pub(crate) fn sends(&self, now: Time) -> bool {
        self.left < 2 * PAIRS && now >= self.due
    }

    /// A packet has left.
    pub(crate) fn sent(&mut self, number: u64, clock: u32, now: Time) {
        self.pairs[self.left / 2].sent[self.left % 2] = Some((number, clock, now));
        self.left += 1;
        self.due = match self.left {
            left if left == 2 * PAIRS => now + PATIENCE,
            left if left % 2 == 0 => now + self.apart,
            _ => now,
        };
    }

    /// Takes an acknowledgement whose newest packet has this number, with the packet's difference of arrival and sending time in
    /// microseconds.
    pub(crate) fn on_ack(&mut self, number: u64, difference: u32, held: Span, now: Time) {
        for pair in &mut self.pairs {
            for (sent, arrived) in pair.sent.iter().zip(&mut pair.arrived) {
                let Some((_, clock, at)) = sent.filter(|(own, ..)| *own == number) else { continue };
                if arrived.is_none() {
                    *arrived = Some(clock.wrapping_add(difference));
                    let rtt = now.since(at).saturating_sub(held);
                    let (least, most) = self.round_trips.unwrap_or((rtt, rtt));
                    self.round_trips = Some((least.min(rtt), most.max(rtt)));
                }
            }
        }
        let last = self.pairs.last().is_some_and(|pair| pair.arrived[1].is_some());
        if last {
            self.due = now;
        }
    }

    /// Whether the measurement has ended.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.left == 2 * PAIRS && now >= self.due
    }

    /// The path's rate by the pairs' gaps, and its smallest round trip; `None` if too few pairs have arrived. `headers`: bytes before the
    /// UDP payload.
    pub(crate) fn measured(&self, headers: u32) -> Option<(Rate, Span)> {
        let packet = Bytes::new(u64::from(self.packet + headers));
        let gaps: Vec<Span> = self.pairs[1..].iter().filter_map(Pair::gap).collect();
        let (least, most) = self.round_trips?;
        if gaps.len() < FEWEST {
            return None;
        }
        let rate = |gap: Span| Rate::from_bytes_in(packet, gap).bits_per_sec();
        let mean = gaps.iter().map(|gap| rate(*gap)).sum::<u64>() / gaps.len() as u64;
        let differ = most - least;
        let in_queue = if differ.is_zero() { u64::MAX } else { rate(differ).saturating_mul(IN_QUEUE) };
        Some((Rate::from_bits_per_sec(mean.min(in_queue)), least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A train over a path with this round trip. Its bottleneck takes `takes` microseconds for a packet, and packets for which `loses` is
    /// true are lost. Returns the measured rate in bit/s, and the smallest round trip.
    fn over(rtt: Span, takes: u32, loses: impl Fn(u64) -> bool) -> Option<(u64, Span)> {
        let (mut train, mut now, mut number) = (Train::new(PACKET, rtt, Time::ZERO), Time::ZERO, 10);
        let mut acks = Vec::new();
        while train.left < 2 * PAIRS {
            now = now.max(train.next_timer(true));
            assert!(train.sends(now));
            let clock = (now.as_nanos() / 1000) as u32;
            train.sent(number, clock, now);
            let queued = takes * (1 + (number % 2) as u32);
            if !loses(number) {
                // The receiver's clock is 7 s behind.
                let difference = queued.wrapping_sub(7_000_000);
                acks.push((number, difference, now + rtt + Span::from_micros(queued.into())));
            }
            number += 1;
        }
        for (number, difference, at) in acks {
            train.on_ack(number, difference, Span::ZERO, at);
            now = now.max(at);
        }
        assert!(train.is_over(now + PATIENCE));
        train.measured(28).map(|(rate, least)| (rate.bits_per_sec(), least))
    }

    #[test]
    fn the_gap_within_a_pair_gives_the_bottleneck_rate() {
        let rtt = Span::from_millis(300);
        // 1,028 bytes in 822 us.
        let rate = 1028 * 8 * 1_000_000 / 822;
        assert_eq!(over(rtt, 822, |_| false), Some((rate, rtt + Span::from_micros(822))));
        // Pairs with a lost packet are not used; the others are.
        assert_eq!(over(rtt, 822, |number| number % 4 == 0).unwrap().0, rate);
        assert_eq!(over(rtt, 822, |number| number % 2 == 0), None);
    }

    #[test]
    fn a_train_whose_packets_may_not_leave_has_no_timer_until_all_have_left() {
        let mut train = Train::new(PACKET, Span::from_millis(100), Time::ZERO);
        while train.left < 2 * PAIRS {
            let due = train.next_timer(true);
            assert_eq!(train.next_timer(false), Time::NEVER);
            train.sent(train.left as u64, 0, due);
        }
        assert!(train.next_timer(false) < Time::NEVER, "its end");
    }

    #[test]
    fn pairs_are_spread_over_two_round_trips_and_50_ms() {
        let mut train = Train::new(PACKET, Span::from_millis(85), Time::ZERO);
        for number in 0..22 {
            assert_eq!(train.next_timer(true), Time::ZERO + Span::from_millis(20) * (number / 2), "{number}");
            train.sent(number, 0, train.next_timer(true));
        }
        assert!(!train.sends(train.next_timer(true)) && train.is_over(train.next_timer(true)));
    }
}
