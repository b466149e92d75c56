//! Round trips at the capture: from a segment to the acknowledgement that its arrival brought about. The acknowledgement tells which segment
//! that was.
//!
//! - While nothing is missing at the receiver, it is the segment that ends where the acknowledgement does.
//! - While something is missing, an acknowledgement that advances answers the segment that filled the gap, which begins where the last
//!   acknowledgement ended. One that does not advance answers the segment at the end of its first SACK block (RFC 2018, section 4).
//!
//! A segment that was retransmitted gives no sample, since the answer may be to either copy (Karn and Partridge, Improving Round-Trip
//! Time Estimates in Reliable Transport Protocols, 1987).

use crate::rate::elapsed;
use crate::spread::Spread;
use std::collections::VecDeque;
use weir_base::Time;

/// Most segments of a direction that wait for their acknowledgement. Of more, runs at equal distances are kept, so that the samples are
/// spread over the window.
const MOST_WAITING: usize = 16;
/// Segments of a run. A receiver acknowledges each second segment (RFC 9293, section 3.8.6.3), so of single segments perhaps none would be at the
/// end of an acknowledgement.
const RUN: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Sent {
    to: u64,
    at: Time,
    length: u32,
    run: u16,
    /// The bits by which runs were left out beside its own, which it stands for.
    left_out: u16,
}

impl Sent {
    fn from(&self) -> u64 {
        self.to - u64::from(self.length)
    }

    /// Itself and those that were left out, so that large windows count as much as they have segments.
    fn stands_for(&self) -> u32 {
        u32::from(self.left_out) + 1
    }
}

/// What an acknowledgement says of the receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) at: Time,
    /// The place up to which the last one acknowledged, and up to which this one does.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The first SACK block, unless it reports a duplicate.
    pub(super) first_block: Option<(u64, u64)>,
    /// Whether SACK blocks report that something is missing.
    pub(super) has_gap: bool,
}

/// The round trips of one direction's segments.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrips {
    samples: Spread,
    waiting: VecDeque<Sent>,
    segments: u32,
    /// Runs whose number has none of these bits are kept: all of them, or each second, fourth and so on.
    left_out: u16,
    /// Whether the last acknowledgement reported a gap.
    had_gap: bool,
}

impl RoundTrips {
    /// A segment of new data passes.
    pub(super) fn send(&mut self, from: u64, to: u64, at: Time) {
        // The low bits are all that is asked of it.
        let run = (self.segments / RUN) as u16;
        if self.segments.is_multiple_of(RUN) && self.waiting.len() <= MOST_WAITING / 4 {
            self.left_out >>= 1;
        }
        self.segments = self.segments.wrapping_add(1);
        if run & self.left_out == 0 && self.waiting.len() == MOST_WAITING {
            self.left_out = self.left_out << 1 | 1;
            let left_out = self.left_out;
            self.waiting.retain(|sent| sent.run & left_out == 0);
            self.waiting.iter_mut().for_each(|sent| sent.left_out = left_out);
        }
        if run & self.left_out == 0 && self.waiting.len() < MOST_WAITING {
            let (length, left_out) = ((to - from) as u32, self.left_out);
            self.waiting.push_back(Sent { to, at, length, run, left_out });
        }
    }

    /// These bytes pass again. Unless the receiver reports a gap, all that waits behind them is in doubt.
    pub(super) fn send_again(&mut self, from: u64, to: u64) {
        let had_gap = self.had_gap;
        self.waiting.retain(|sent| had_gap && (sent.to <= from || to <= sent.from()));
    }

    /// An acknowledgement passes.
    pub(super) fn acknowledge(&mut self, answer: &Answer) {
        let Answer { at, from, to, first_block, has_gap } = *answer;
        if to > from {
            match (self.had_gap, has_gap) {
                (true, _) => self.sample(at, None, |sent| sent.from() == from),
                (false, false) => {
                    let covered = self.waiting.iter().take_while(|sent| sent.to <= to);
                    let stands_for = covered.map(Sent::stands_for).sum();
                    self.sample(at, Some(stands_for), |sent| sent.to == to);
                }
                // What brought it about is behind the gap.
                (false, true) => {}
            }
            while self.waiting.front().is_some_and(|sent| sent.to <= to) {
                self.waiting.pop_front();
            }
        }
        if let Some((low, high)) = first_block {
            if to == from || !self.had_gap {
                self.sample(at, None, |sent| sent.to == high);
            }
            self.waiting.retain(|sent| sent.from() < low || high < sent.to);
        }
        self.had_gap = has_gap;
    }

    /// The sample stands for so many segments: those that are acknowledged with the answered one, or for it alone.
    fn sample(&mut self, at: Time, stands_for: Option<u32>, is_answered: impl Fn(&Sent) -> bool) {
        if let Some(sent) = self.waiting.iter().find(|sent| is_answered(sent)) {
            self.samples.record(elapsed(sent.at, at), stands_for.unwrap_or(sent.stands_for()));
        }
    }

    /// All of them.
    pub(super) fn samples(&self) -> &Spread {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Span;

    const SIZE: u64 = 1000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Segment n, at this millisecond.
    fn send(round_trips: &mut RoundTrips, millis: u64, segment: u64) {
        round_trips.send(segment * SIZE, (segment + 1) * SIZE, at(millis));
    }

    /// An acknowledgement that moves from one segment to another, with a SACK block of the segments from a to b, b excluded.
    fn answer(round_trips: &mut RoundTrips, millis: u64, from: u64, to: u64, sack: Option<(u64, u64)>) {
        let first_block = sack.map(|(low, high)| (low * SIZE, high * SIZE));
        let (from, to) = (from * SIZE, to * SIZE);
        round_trips.acknowledge(&Answer { at: at(millis), from, to, first_block, has_gap: sack.is_some() });
    }

    /// Number, sum, shortest and longest in ms.
    fn samples(round_trips: &RoundTrips) -> (u64, u64, u64, u64) {
        let all = round_trips.samples().histogram();
        let millis = |span: Option<Span>| span.unwrap().as_nanos() / 1_000_000;
        let sum = (all.mean().unwrap().as_nanos() * all.count() + 500_000) / 1_000_000;
        (all.count(), sum, millis(all.min()), millis(all.max()))
    }

    #[test]
    fn in_order_the_segment_at_the_end_of_an_acknowledgement_is_answered() {
        let mut it = RoundTrips::default();
        (0..4).for_each(|segment| send(&mut it, 10 * segment, segment));
        // Sent at 10 and at 30 ms. Each answers two segments.
        answer(&mut it, 110, 0, 2, None);
        answer(&mut it, 150, 2, 4, None);
        assert_eq!(samples(&it), (4, 2 * 100 + 2 * 120, 100, 120));
    }

    #[test]
    fn an_overtaken_segment_and_those_that_overtook_it_have_their_own_round_trips() {
        let mut it = RoundTrips::default();
        (0..5).for_each(|segment| send(&mut it, segment, segment));
        answer(&mut it, 100, 0, 1, None);
        // Segment 1 is overtaken by 2 and 3. It arrives 107 ms after it was sent, and is answered with all three.
        answer(&mut it, 102, 1, 1, Some((2, 3)));
        answer(&mut it, 103, 1, 1, Some((2, 4)));
        answer(&mut it, 108, 1, 4, None);
        answer(&mut it, 109, 4, 5, None);
        assert_eq!(samples(&it), (5, 100 + 100 + 100 + 107 + 105, 100, 107));
    }

    #[test]
    fn a_gap_that_a_retransmission_fills_gives_no_sample() {
        let mut it = RoundTrips::default();
        (0..4).for_each(|segment| send(&mut it, segment, segment));
        answer(&mut it, 101, 0, 1, None);
        answer(&mut it, 102, 1, 1, Some((2, 3)));
        it.send_again(SIZE, 2 * SIZE);
        answer(&mut it, 103, 1, 1, Some((2, 4)));
        // 200 ms after segment 1 was sent first.
        answer(&mut it, 201, 1, 4, None);
        assert_eq!(samples(&it), (3, 101 + 100 + 100, 100, 101));
    }

    #[test]
    fn without_sack_nothing_that_was_sent_before_a_retransmission_gives_a_sample() {
        let mut it = RoundTrips::default();
        (0..3).for_each(|segment| send(&mut it, segment, segment));
        it.send_again(0, SIZE);
        answer(&mut it, 300, 0, 3, None);
        send(&mut it, 301, 3);
        answer(&mut it, 401, 3, 4, None);
        assert_eq!(samples(&it), (1, 100, 100, 100));
    }

    #[test]
    fn of_a_large_window_segments_all_over_it_are_sampled() {
        // A window of 200 segments, sent at once every 400 ms. Two are acknowledged each 2 ms from 100 ms on: round trips from 100 to 298 ms.
        let mut it = RoundTrips::default();
        for round in 0..50 {
            let (start, first) = (400 * round, 200 * round);
            (first..first + 200).for_each(|segment| send(&mut it, start, segment));
            for pair in 0..100 {
                answer(&mut it, start + 100 + 2 * pair, first + 2 * pair, first + 2 * pair + 2, None);
            }
        }
        let (count, sum, ..) = samples(&it);
        // There are 10,000 segments; the samples stand for all of them.
        assert!((8000..12000).contains(&count), "{count} samples");
        // The mean of all is 199 ms.
        let mean = sum / count;
        assert!((170..230).contains(&mean), "mean {mean} ms of {count}");
    }

    #[test]
    fn windows_of_different_sizes_count_by_their_segments() {
        // Windows of 160 segments with round trips of 100 ms, and of 16 with 20 ms, in turn; the second segment of each pair is answered.
        let (mut it, mut next) = (RoundTrips::default(), 0);
        for round in 0..100 {
            let (start, segments, took) =
                if round % 2 == 0 { (200 * round, 160, 100) } else { (200 * round, 16, 20) };
            (next..next + segments).for_each(|segment| send(&mut it, start, segment));
            for pair in 0..segments / 2 {
                answer(&mut it, start + took, next + 2 * pair, next + 2 * pair + 2, None);
            }
            next += segments;
        }
        // 160 segments of 100 ms, 16 of 20 ms: 92.7 ms.
        let (count, sum, ..) = samples(&it);
        assert!((88..97).contains(&(sum / count)), "mean {} ms of {count}", sum / count);
    }
}
