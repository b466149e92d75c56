//! Which retransmissions were needless: the original had arrived. The receiver says so by a duplicate SACK (RFC 2883), or by the echo of
//! the original's timestamp in the acknowledgement that covers it (RFC 3522, section 3.2).

use std::collections::VecDeque;

/// Most retransmissions that wait for a word of the receiver; later ones replace the oldest.
const MOST_WAITING: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// No acknowledgement covers it yet.
    None,
    /// One covers it, and does not say that it was needless.
    Acked,
    Needless,
}

#[derive(Debug, Clone, Copy)]
struct Repeat {
    from: u64,
    to: u64,
    stamp: Option<u32>,
    word: Word,
}

/// The latest retransmissions of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats {
    latest: VecDeque<Repeat>,
    needless: u64,
}

impl Repeats {
    /// A retransmission passes. With `was_acked` the capture has seen its acknowledgement already.
    pub(super) fn add(&mut self, from: u64, to: u64, stamp: Option<u32>, was_acked: bool) {
        if self.latest.len() == MOST_WAITING {
            self.latest.pop_front();
        }
        let word = if was_acked { Word::Needless } else { Word::None };
        self.needless += u64::from(was_acked);
        self.latest.push_back(Repeat { from, to, stamp, word });
    }

    /// An acknowledgement moves from one place to another, and echoes this timestamp. The echo tells of the segment at the left edge alone:
    /// those behind it leave the echo as it is (RFC 7323, section 4.3).
    pub(super) fn acknowledge(&mut self, from: u64, to: u64, echo: Option<u32>) {
        for repeat in self.latest.iter_mut().filter(|repeat| repeat.word == Word::None && repeat.to <= to) {
            let is_earlier = |(echo, stamp): (u32, u32)| (echo.wrapping_sub(stamp) as i32) < 0;
            let is_needless = repeat.from <= from && echo.zip(repeat.stamp).is_some_and(is_earlier);
            repeat.word = if is_needless { Word::Needless } else { Word::Acked };
            self.needless += u64::from(is_needless);
        }
    }

    /// The receiver has these bytes for the second time.
    pub(super) fn duplicate(&mut self, from: u64, to: u64) {
        let mut covered = self.latest.iter_mut().filter(|repeat| repeat.from < to && from < repeat.to);
        if let Some(repeat) = covered.find(|repeat| repeat.word != Word::Needless) {
            repeat.word = Word::Needless;
            self.needless += 1;
        }
    }

    /// How many were needless.
    pub(super) fn needless(&self) -> u64 {
        self.needless
    }
}
