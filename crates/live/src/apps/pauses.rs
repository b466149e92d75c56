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
    /// The thread's time without a processor, when it was last read; `None` before that.
    waited: Option<Span>,
    /// The beginning and end of each in microseconds, in order; none touches the next.
    all: Vec<(u64, u64)>,
}

impl Pauses {
    /// The thread has woken up; it went to sleep at `since`.
    pub(super) fn woke(&mut self, since: Time, now: Time) {
        if now.since(since) >= SHORTEST {
            self.note(since, now, thread_wait().unwrap_or_default());
        }
    }

    /// The thread was away for some time; in all, it has `waited` for a processor so long.
    pub(crate) fn note(&mut self, since: Time, now: Time, waited: Span) {
        let before = self.waited.replace(waited).unwrap_or(waited);
        // It may have waited a little each time before.
        let length = waited.saturating_sub(before).min(now.since(since));
        if length < SHORTEST || self.all.len() >= MOST {
            return;
        }
        let end = now.as_nanos() / 1_000;
        let begin = now.as_nanos().saturating_sub(length.as_nanos()).div_ceil(1_000);
        match self.all.last_mut() {
            Some((_, last)) if begin <= *last => *last = end,
            _ => self.all.push((begin, end)),
        }
    }

    /// How many there were, and the longest.
    pub(crate) fn count_and_longest(&self) -> (usize, Span) {
        let longest = self.all.iter().map(|(begin, end)| end - begin).max().unwrap_or_default();
        (self.all.len(), Span::from_micros(longest))
    }

    /// For the run's records: the beginning and the length of each pause, in ms.
    pub(crate) fn record(&self) -> Value {
        let ms = |micros: u64| micros as f64 / 1e3;
        self.all.iter().map(|(begin, end)| json!([ms(*begin), ms(end - begin)])).collect()
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
        // What it has waited for before the first look is not known.
        pauses.note(at(0), at(1_000), us(700));
        // It was ready to run for the last 2.5 of 3 ms.
        pauses.note(at(10_000), at(13_000), us(3_200));
        // It slept for a millisecond, and then had a processor at once.
        pauses.note(at(13_000), at(14_050), us(3_210));
        // Most of what it has waited for since then was before this pause.
        pauses.note(at(20_000), at(21_500), us(9_000));
        // The next one follows at once.
        pauses.note(at(21_500), at(22_500), us(10_000));
        assert_eq!(pauses.record(), json!([[10.5, 2.5], [20.0, 2.5]]));
        assert_eq!(pauses.count_and_longest(), (2, us(2_500)));
    }
}
