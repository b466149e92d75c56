//! Smoothed release: packets of an inelastic flow leave the receiving proxy with the spacing that they had at their origin (digest A 7.6).

use std::collections::VecDeque;
use weir_base::{Span, Time};

/// Weight of the newest traversal (digest A 7.6).
const GAIN: f64 = 0.1;
/// Packets that wait at most (digest A 7.6).
const WAITING: usize = 1000;

/// Packets that wait for their time. A packet that was sent at some time leaves that much later which packets take on average; at once if
/// that is past.
#[derive(Debug)]
pub struct Release<P> {
    average: Option<Span>,
    waiting: VecDeque<(Time, P)>,
}

impl<P> Default for Release<P> {
    fn default() -> Release<P> {
        Release { average: None, waiting: VecDeque::new() }
    }
}

impl<P> Release<P> {
    /// A packet that was sent then has come. If too many wait, the oldest is returned at once.
    pub fn packet(&mut self, sent: Time, packet: P, now: Time) -> Option<P> {
        let took = now.since(sent);
        let average = match self.average {
            Some(average) => average.scale(1.0 - GAIN) + took.scale(GAIN),
            None => took,
        };
        self.average = Some(average);
        let last = self.waiting.back().map_or(now, |(last, _)| *last);
        // Packets stay in order.
        self.waiting.push_back(((sent + average).max(last), packet));
        if self.waiting.len() > WAITING { self.waiting.pop_front().map(|(_, packet)| packet) } else { None }
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

    #[test]
    fn a_packet_that_was_faster_waits_for_the_average_and_a_slower_one_goes_at_once() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut release = Release::default();
        release.packet(at(0), 1, at(40));
        assert_eq!((release.next_time(), release.pop(at(40))), (at(40), Some(1)));
        // It took 20 ms: the average is 38 ms.
        release.packet(at(30), 2, at(50));
        assert_eq!((release.next_time(), release.pop(at(60)), release.pop(at(68))), (at(68), None, Some(2)));
        // It took 60 ms: the average is 40.2 ms, which is past.
        release.packet(at(60), 3, at(120));
        assert_eq!(release.pop(at(120)), Some(3));
    }
}
