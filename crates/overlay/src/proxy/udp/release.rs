//! Smoothed release: packets leave the receiving proxy with the spacing that they had at their origin (digest A 7.6).

use std::collections::VecDeque;
use weir_base::{Span, Time};

/// Weight of the newest traversal (digest A 7.6).
const GAIN: f64 = 0.1;
/// Packets that wait at most (digest A 7.6).
const WAITING: usize = 1000;
/// Longest wait of a packet, whatever times its sender tells.
const LONGEST: Span = Span::from_secs(1);

/// When a packet came to the sending proxy: microseconds of a clock of that node, modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// That of a packet that comes now.
    pub fn at(now: Time) -> Origin {
        Origin(now.since(Time::ZERO).as_micros() as u32)
    }

    /// As it is written behind a packet, big-endian.
    pub fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// As it is read.
    pub fn of_bytes(bytes: [u8; 4]) -> Origin {
        Origin(u32::from_be_bytes(bytes))
    }
}

/// Packets that wait for their time: each leaves when it has taken as long as packets take on average, and at once if it has taken longer.
/// The clocks of the two nodes may differ by any time, since only differences of what packets have taken count.
#[derive(Debug)]
pub struct Release<P> {
    /// The newest origin, in whole microseconds.
    newest: Option<i64>,
    /// What packets take on average, in nanoseconds, with the difference of the clocks.
    average: Option<f64>,
    waiting: VecDeque<(Time, P)>,
}

impl<P> Default for Release<P> {
    fn default() -> Release<P> {
        Release { newest: None, average: None, waiting: VecDeque::new() }
    }
}

impl<P> Release<P> {
    /// A packet of this origin has come, which waits until `latest` at most. If too many wait, the oldest is returned at once.
    pub fn packet(&mut self, origin: Origin, latest: Option<Time>, packet: P, now: Time) -> Option<P> {
        let took = now.since(Time::ZERO).as_nanos() as f64 - 1e3 * self.extend(origin) as f64;
        let average = self.average.map_or(took, |average| average + GAIN * (took - average));
        self.average = Some(average);
        let wait = Span::from_nanos((average - took).max(0.0) as u64).min(LONGEST);
        let leaves = (now + wait).min(latest.unwrap_or(Time::NEVER));
        let last = self.waiting.back().map_or(now, |(last, _)| *last);
        // Packets stay in order.
        self.waiting.push_back((leaves.max(last), packet));
        if self.waiting.len() > WAITING { self.waiting.pop_front().map(|(_, packet)| packet) } else { None }
    }

    /// The whole number of an origin, next to the newest one.
    fn extend(&mut self, origin: Origin) -> i64 {
        let whole = self.newest.map_or(i64::from(origin.0), |newest| {
            newest + i64::from(origin.0.wrapping_sub(newest as u32).cast_signed())
        });
        self.newest = Some(whole.max(self.newest.unwrap_or(whole)));
        whole
    }

    /// The packets that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &P> {
        self.waiting.iter().map(|(_, packet)| packet)
    }

    /// When the next packet leaves.
    pub fn next_time(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// A packet whose time has come.
    pub fn pop(&mut self, now: Time) -> Option<P> {
        if self.next_time() > now {
            return None;
        }
        self.waiting.pop_front().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_packet_that_was_faster_waits_for_the_average_and_a_slower_one_goes_at_once() {
        let mut release = Release::default();
        release.packet(Origin::at(at(0)), None, 1, at(40));
        assert_eq!((release.next_time(), release.pop(at(40))), (at(40), Some(1)));
        // It took 20 ms: the average is 38 ms.
        release.packet(Origin::at(at(30)), None, 2, at(50));
        assert_eq!((release.next_time(), release.pop(at(60)), release.pop(at(68))), (at(68), None, Some(2)));
        // It took 60 ms: the average is 40.2 ms, which is past.
        release.packet(Origin::at(at(60)), None, 3, at(120));
        assert_eq!(release.pop(at(120)), Some(3));
        // It took 10 ms, and is due before the average of 37.18 ms is over.
        release.packet(Origin::at(at(120)), Some(at(150)), 4, at(130));
        assert_eq!(release.next_time(), at(150));
    }

    #[test]
    fn the_clock_of_the_other_node_may_show_any_time_and_begin_anew() {
        // Packets of one each 10 ms come after 5 and 15 ms in turn. The clock there is 2^32 microseconds at the 50th.
        let begins = Time::ZERO + Span::from_micros((1 << 32) - 500_000);
        let (mut release, mut left) = (Release::default(), Vec::new());
        for number in 0..200 {
            let origin = Origin::at(begins + Span::from_millis(10 * number));
            let comes = at(10 * number + if number % 2 == 0 { 5 } else { 15 });
            while release.next_time() < comes {
                let leaves = release.next_time();
                left.push((release.pop(leaves).unwrap(), leaves));
            }
            release.packet(origin, None, number, comes);
        }
        assert!(left.iter().map(|(number, _)| *number).eq(0..left.len() as u64) && left.len() > 195);
        // On average they take 10 ms: even packets wait for about 5 ms, and odd ones not at all.
        let waits = |parity: u64| {
            let of = left.iter().filter(move |(number, _)| *number >= 100 && number % 2 == parity);
            let came = |number: u64| at(10 * number + if parity == 0 { 5 } else { 15 });
            of.map(move |(number, leaves)| leaves.since(came(*number)).as_micros()).collect::<Vec<_>>()
        };
        assert!(waits(0).iter().all(|wait| (4000..6000).contains(wait)), "{:?}", waits(0));
        assert!(waits(1).iter().all(|wait| *wait == 0), "{:?}", waits(1));
    }

    #[test]
    fn no_packet_waits_longer_than_a_second_whatever_its_sender_tells() {
        let mut release = Release::default();
        release.packet(Origin::at(at(0)), None, 1, at(0));
        release.pop(at(0));
        release.packet(Origin::at(at(1_000_000)), None, 2, at(10));
        assert_eq!(release.next_time(), at(1010));
    }
}
