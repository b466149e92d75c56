//! What a receiver's node counts of a flow whose packets have a deadline (digest A 7.6).
//!
//! The study counts while it holds packets back to put them in order, and nothing otherwise. Here nothing is held back: a packet's fate is
//! known when a later packet of the flow would be late, since each packet is due before those that were sent after it.

use std::collections::VecDeque;
use weir_base::{Span, Time};

/// A report is made this often (digest A 7.6).
pub const PERIOD: Span = Span::from_millis(100);
/// A flow of which nothing came for so long is forgotten (digest A 7.6).
pub const SILENCE: Span = Span::from_secs(3);
/// Marks that are kept at most; a deadline of 33 s has more periods, and is then judged less often.
const MARKS: usize = 64;
/// Numbers of packets have so many bits.
const BITS: u32 = 24;

/// The newest packet at some time, and how many came in time of it and those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    highest: u64,
    in_time: u64,
    due: Time,
}

/// The count of one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The newest packet, and when it is due.
    highest: u64,
    due: Time,
    in_time: u64,
    bytes: u64,
    marks: VecDeque<Mark>,
    settled: (u64, u64),
    heard: Time,
}

impl Received {
    /// A flow whose first packet has this number. What was sent before it is not counted as lost: the report would be of another time.
    pub fn new(sequence: u32, due: Time, now: Time) -> Received {
        let highest = u64::from(sequence).saturating_sub(1);
        let (marks, settled) = (VecDeque::new(), (highest, highest));
        Received { highest, due, in_time: highest, bytes: 0, marks, settled, heard: now }
    }

    /// A packet has come.
    pub fn on_packet(&mut self, sequence: u32, bytes: u64, due: Time, now: Time) {
        self.heard = now;
        let number = self.extend(sequence);
        let is_in_time = now <= due;
        if number > self.highest {
            (self.highest, self.due) = (number, due);
        }
        if is_in_time {
            self.in_time += 1;
            self.bytes += bytes;
            let before = self.marks.iter_mut().rev().take_while(|mark| mark.highest >= number);
            before.for_each(|mark| mark.in_time += 1);
        }
    }

    /// The whole number of a packet, next to the newest one.
    fn extend(&self, sequence: u32) -> u64 {
        let ahead = (sequence.wrapping_sub(self.highest as u32) << (32 - BITS)) as i32 >> (32 - BITS);
        self.highest.saturating_add_signed(ahead.into())
    }

    /// A period has ended: the newest packet of which the fate and that of all before it is known, how many of these came in time, and the
    /// bytes of all that did. `None` if nothing new is known.
    pub fn on_period(&mut self, now: Time) -> Option<(u64, u64, u64)> {
        let last = self.marks.back().map_or(self.settled.0, |mark| mark.highest);
        if self.highest > last && self.marks.len() < MARKS {
            self.marks.push_back(Mark { highest: self.highest, in_time: self.in_time, due: self.due });
        }
        let mut settled = None;
        while let Some(mark) = self.marks.front().filter(|mark| mark.due <= now) {
            // A packet that came twice counts once too often.
            settled = Some((mark.highest, mark.in_time.min(mark.highest)));
            self.marks.pop_front();
        }
        self.settled = settled?;
        Some((self.settled.0, self.settled.1, self.bytes))
    }

    /// Whether nothing has come for long.
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.heard) >= SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }
    /// A packet that was sent at a time with a deadline of 50 ms, and took so long.
    fn take(received: &mut Received, sequence: u32, sent: u64, took: u64) {
        received.on_packet(sequence, 1000, at(sent + 50), at(sent + took));
    }

    #[test]
    fn a_packet_that_is_still_on_its_way_is_not_lost() {
        let mut received = Received::new(1, at(50), at(10));
        take(&mut received, 1, 0, 10);
        take(&mut received, 3, 60, 10);
        // Packet 2, sent at 58 ms, may come until 108 ms.
        assert_eq!(received.on_period(at(100)), None);
        take(&mut received, 2, 58, 45);
        assert_eq!(received.on_period(at(110)), Some((3, 3, 3000)));
    }

    #[test]
    fn a_late_packet_and_a_missing_one_are_lost() {
        let mut received = Received::new(1, at(50), at(10));
        take(&mut received, 1, 0, 10);
        take(&mut received, 2, 20, 60);
        take(&mut received, 4, 60, 10);
        received.on_period(at(100));
        assert_eq!(received.on_period(at(200)), Some((4, 2, 2000)));
        assert_eq!(received.on_period(at(300)), None);
        assert!(!received.is_silent(at(3000)) && received.is_silent(at(3070)));
    }

    #[test]
    fn numbers_go_on_beyond_24_bits() {
        let mut received = Received::new(0xff_ffff, at(50), at(0));
        take(&mut received, 0xff_ffff, 0, 0);
        take(&mut received, 0, 1, 0);
        take(&mut received, 1, 2, 0);
        received.on_period(at(3));
        assert_eq!(received.on_period(at(100)), Some((0x100_0001, 0x100_0001, 3000)));
    }
}
