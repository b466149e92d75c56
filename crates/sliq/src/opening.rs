//! The requests for a connection: when each leaves, and the round trip of its answer. The requests are numbered from 0; the number is the
//! request's packet number, and the answer repeats it.
//!
//! The GNAT software sends 32 requests, one each 333 ms. If half of the packets are lost, a request and its answer pass once in four
//! times, and one in three connections takes longer than a second to open. Requests of the first second therefore leave each 100 ms: one
//! in eighteen connections takes longer. They are fewer bytes than the initial window of a TCP sender (RFC 6928).

use weir_base::{Span, Time};

/// The gap between requests of the first second, and between later ones (the GNAT software).
const FIRST_GAP: Span = Span::from_millis(100);
const FIRST: Span = Span::from_secs(1);
const GAP: Span = Span::from_millis(333);
/// Requests are sent for this long (the GNAT software: 32 gaps).
const PATIENCE: Span = Span::from_millis(32 * 333);
/// Maximum number of requests: each answer with a cookie, which anybody may forge, triggers one.
const MOST: usize = 64;

/// The requests for a connection.
#[derive(Debug)]
pub(super) struct Opening {
    /// When each request left.
    sent: Vec<Time>,
    due: Time,
}

impl Default for Opening {
    fn default() -> Opening {
        Opening { sent: Vec::new(), due: Time::NEVER }
    }
}

impl Opening {
    /// When the next request leaves; never after the last.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// The next request is to leave at once.
    pub(super) fn hurry(&mut self, now: Time) {
        self.due = now;
    }

    /// No more requests leave.
    pub(super) fn end(&mut self) {
        self.due = Time::NEVER;
    }

    /// Whether a request has left.
    #[cfg(feature = "seal")]
    pub(super) fn has_begun(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether no more requests leave, since no answer has come in time.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.sent.len() >= MOST || self.sent.first().is_some_and(|first| now.since(*first) >= PATIENCE)
    }

    /// A request leaves. Returns its number.
    pub(super) fn send(&mut self, now: Time) -> u32 {
        self.sent.push(now);
        let early = now.since(self.sent[0]) < FIRST;
        self.due = now + if early { FIRST_GAP } else { GAP };
        self.sent.len() as u32 - 1
    }

    /// The time since the request with this number left; `None` if there is no such request.
    pub(super) fn round_trip(&self, number: u64, now: Time) -> Option<Span> {
        Some(now.since(*self.sent.get(usize::try_from(number).ok()?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn ten_requests_leave_in_the_first_second_and_three_in_each_later_one() {
        let mut opening = Opening::default();
        opening.hurry(ms(5000));
        let mut times = Vec::new();
        while !opening.is_over(opening.due()) {
            times.push(opening.due());
            assert_eq!(opening.send(opening.due()) as usize, times.len() - 1);
        }
        let until = |end| times.iter().filter(|time| **time < ms(end)).count();
        assert_eq!((until(6000), until(7000), until(15_656), times.len()), (10, 14, 39, 39));
    }

    #[test]
    fn a_reply_gives_the_round_trip_time_of_the_request_that_it_answers() {
        let mut opening = Opening::default();
        opening.send(ms(0));
        opening.send(ms(100));
        assert_eq!(opening.round_trip(0, ms(250)), Some(Span::from_millis(250)));
        assert_eq!(opening.round_trip(1, ms(250)), Some(Span::from_millis(150)));
        assert_eq!(opening.round_trip(2, ms(250)), None);
    }
}
