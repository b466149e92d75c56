//! Reads two captures side by side and finds the packets that both have.

use super::pending::{Pending, Seen, fingerprint};
use crate::Capture;
use crate::flow::Key;
use crate::packet::Packet;
use std::io::{self, Read};
use weir_base::{Span, Time};

/// What becomes of packets.
pub(super) trait Outcome {
    /// Both captures have it: by their index, on the same clock.
    ///
    /// # Errors
    /// What is made of it cannot be written.
    fn matched(&mut self, seen: [&Seen; 2]) -> io::Result<()>;

    /// Only the capture with this index has it. With `outside` the other one was not running at that time.
    ///
    /// # Errors
    /// What is made of it cannot be written.
    fn unmatched(&mut self, index: usize, seen: &Seen, outside: bool) -> io::Result<()>;
}

/// What the packets themselves do not tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ambiguous: u64,
    pub(super) skipped: [u64; 2],
}

/// One of the two.
struct Side<R> {
    capture: Capture<R>,
    /// Nanoseconds by which its clock is behind the other one.
    behind: u64,
    next: Option<Seen>,
    first: Option<Time>,
    last: Time,
    /// The first of its packets that the other one has.
    common: Option<Time>,
    skipped: u64,
}

impl<R: Read> Side<R> {
    fn new(capture: Capture<R>, behind: u64) -> io::Result<Side<R>> {
        let mut side =
            Side { capture, behind, next: None, first: None, last: Time::ZERO, common: None, skipped: 0 };
        side.advance()?;
        side.first = side.next.map(|seen| seen.at);
        Ok(side)
    }

    /// Reads the next packet, and returns the one before it.
    fn advance(&mut self) -> io::Result<Option<Seen>> {
        let passed = self.next.take();
        self.last = passed.map_or(self.last, |seen| self.last.max(seen.at));
        while let Some(frame) = self.capture.next_frame()? {
            let Ok((packet, bytes)) = Packet::with_bytes(&frame) else {
                self.skipped += 1;
                continue;
            };
            let (key, is_back) = Key::of(&packet);
            self.next = Some(Seen {
                fingerprint: fingerprint(&packet, bytes),
                at: Time::from_nanos(frame.at.as_nanos().saturating_add(self.behind)),
                ecn: packet.ecn,
                ip_bytes: packet.length,
                key,
                is_back,
            });
            break;
        }
        Ok(passed)
    }

    /// Whether it was running when the other one had a packet at this time. While it has more packets, it is; and it was when the other one
    /// had the first packet that both have.
    fn was_running(&self, at: Time, common: Option<Time>) -> bool {
        let first = [self.first, common].into_iter().flatten().min();
        first.is_some_and(|first| first <= at) && (self.next.is_some() || at <= self.last)
    }
}

/// By how much each clock is behind the other, of which the second is `offset` nanoseconds ahead of the first.
pub(super) fn behind(offset: i64) -> [u64; 2] {
    [offset.max(0).unsigned_abs(), offset.min(0).unsigned_abs()]
}

/// Reads two captures to their ends, on the clock that is ahead. The second one's is `offset` nanoseconds ahead of the first, and a packet that
/// takes more than `longest` is not waited for.
pub(super) fn merge<R: Read>(
    captures: [Capture<R>; 2],
    offset: i64,
    longest: Span,
    outcome: &mut impl Outcome,
) -> io::Result<Counts> {
    let [first, second] = captures;
    let [first_behind, second_behind] = behind(offset);
    let mut sides = [Side::new(first, first_behind)?, Side::new(second, second_behind)?];
    let mut pending = [Pending::default(), Pending::default()];
    let mut ambiguous = 0;
    loop {
        let index = match [sides[0].next, sides[1].next] {
            [None, None] => break,
            [Some(first), Some(second)] => usize::from(second.at < first.at),
            [first, _] => usize::from(first.is_none()),
        };
        let Some(seen) = sides[index].advance()? else { break };
        let before = Time::from_nanos(seen.at.as_nanos().saturating_sub(longest.as_nanos()));
        expire(&mut pending, &sides, Some(before), outcome)?;
        match pending[1 - index].take(seen.fingerprint) {
            Some(other) => {
                sides[index].common.get_or_insert(seen.at);
                sides[1 - index].common.get_or_insert(other.at);
                outcome.matched(if index == 0 { [&seen, &other] } else { [&other, &seen] })?;
            }
            None => ambiguous += u64::from(pending[index].add(seen)),
        }
    }
    expire(&mut pending, &sides, None, outcome)?;
    Ok(Counts { ambiguous, skipped: [sides[0].skipped, sides[1].skipped] })
}

/// Gives up the packets from before this time, or all.
fn expire<R: Read>(
    pending: &mut [Pending; 2],
    sides: &[Side<R>; 2],
    before: Option<Time>,
    outcome: &mut impl Outcome,
) -> io::Result<()> {
    for index in [0, 1] {
        while let Some(lost) = pending[index].expire(before) {
            let was_running = sides[1 - index].was_running(lost.at, sides[index].common);
            outcome.unmatched(index, &lost, !was_running)?;
        }
    }
    Ok(())
}

/// The time of the second capture less that of the first of a packet that both have among their first ones, in nanoseconds; `None` if there
/// is no such packet.
pub(super) fn common<R: Read>(captures: [Capture<R>; 2], most: usize) -> io::Result<Option<i64>> {
    let [first, second] = captures;
    let mut sides = [Side::new(first, 0)?, Side::new(second, 0)?];
    let mut known = std::collections::HashMap::new();
    for _ in 0..most {
        let Some(seen) = sides[0].advance()? else { break };
        known.entry(seen.fingerprint).or_insert(seen.at);
    }
    for _ in 0..most {
        let Some(seen) = sides[1].advance()? else { break };
        if let Some(at) = known.get(&seen.fingerprint) {
            return Ok(Some(difference(*at, seen.at)));
        }
    }
    Ok(None)
}

/// The second time less the first, in nanoseconds.
pub(super) fn difference(first: Time, second: Time) -> i64 {
    let difference = i128::from(second.as_nanos()) - i128::from(first.as_nanos());
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
