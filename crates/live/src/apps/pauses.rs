//! How long other work kept the application thread from its processor when it was to wake up. Peers wait as long for what it would have
//! read or written, and a queue that holds less than such a pause overflows.

use serde_json::{Value, json};
use weir_base::{Span, Time};
use weir_linux::clock::thread_wait;

/// The longest sleep of the thread. Epoll counts sleeps in milliseconds.
pub(super) const SLEEP: Span = Span::from_millis(1);
/// A shorter time is no pause: a thread that has slept wakes up late by tenths of a millisecond.
const SHORTEST: Span = Span::from_micros(500);
/// Most pauses that are kept; a run with more is one on a busy machine.
const MOST: usize = 10_000;

/// The pauses so far.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// The thread's time without a processor, when it was last read.
    waited: Span,
    /// The beginning and length of each, in order.
    all: Vec<(Time, Span)>,
}

impl Pauses {
    /// The thread has woken up; it went to sleep at `since`.
    pub(super) fn woke(&mut self, since: Time, now: Time) {
        if now.since(since) >= SHORTEST {
            self.note(since, now, thread_wait().unwrap_or_default());
        }
    }

    /// The thread was away for some time; in all, it has `waited` for a processor so long.
    fn note(&mut self, since: Time, now: Time, waited: Span) {
        // It may have waited a little each time before.
        let length = waited.saturating_sub(std::mem::replace(&mut self.waited, waited)).min(now.since(since));
        if length >= SHORTEST && self.all.len() < MOST {
            self.all.push((Time::ZERO + now.since(Time::ZERO + length), length));
        }
    }

    /// How many there were, and the longest.
    pub(crate) fn count_and_longest(&self) -> (usize, Span) {
        (self.all.len(), self.all.iter().map(|(_, length)| *length).max().unwrap_or_default())
    }

    /// For the run's records: the beginning and the length of each pause, in ms.
    pub(crate) fn record(&self) -> Value {
        let ms = |span: Span| (span.as_millis_f64() * 1e3).round() / 1e3;
        self.all.iter().map(|(at, length)| json!([ms(at.since(Time::ZERO)), ms(*length)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_away_without_a_processor_was_paused() {
        let us = Span::from_micros;
        let at = |micros| Time::ZERO + us(micros);
        let mut pauses = Pauses::default();
        // It was ready to run for the last 2.5 of 3 ms.
        pauses.note(at(10_000), at(13_000), us(2_500));
        // It slept for a millisecond, and then had a processor at once.
        pauses.note(at(13_000), at(14_050), us(2_510));
        // Most of what it has waited for since then was before this pause.
        pauses.note(at(20_000), at(21_500), us(9_000));
        assert_eq!(pauses.record(), json!([[10.5, 2.5], [20.0, 1.5]]));
        assert_eq!(pauses.count_and_longest(), (2, us(2_500)));
    }
}
