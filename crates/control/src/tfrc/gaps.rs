//! Lost packets by their sequence numbers (RFC 5348, section 5.1): a missing number is lost once three later packets have
//! arrived without it. Its time of arrival is interpolated between the nearest packets that did arrive (section 5.2).
//!
//! A packet that arrives twice, or after it was declared lost, changes nothing.

use weir_base::Time;

/// Later packets that make a missing one lost (RFC 5348, section 5.1, `NDUPACK`).
const LATER: u8 = 3;
/// Gaps that may be open at once. Three later packets close a gap, so more than four need packets in odd orders.
const GAPS: usize = 8;

/// A packet that arrived: its number and when.
type Arrival = (u64, Time);

/// Consecutive packets that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Losses {
    /// Number of the first one.
    pub first: u64,
    /// Number of lost packets, at least one.
    pub count: u64,
    before: Arrival,
    after: Arrival,
}

impl Losses {
    /// The time at which the `n`-th of them, counted from zero, would have arrived.
    pub fn time(&self, n: u64) -> Time {
        let ((s_before, t_before), (s_after, t_after)) = (self.before, self.after);
        let (ahead, width) = (self.first + n - s_before, s_after - s_before);
        // A packet that filled part of the gap may have arrived after the one behind the gap; the time then decreases.
        let (from, to) = (i128::from(t_before.as_nanos()), i128::from(t_after.as_nanos()));
        Time::from_nanos((from + (to - from) * i128::from(ahead) / i128::from(width)) as u64)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    first: u64,
    last: u64,
    before: Arrival,
    after: Arrival,
    /// Packets after this gap that have arrived since it opened.
    later: u8,
}

/// Finds lost packets among the numbers of those that arrive.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    /// The highest number so far, with its arrival; `None` before the first packet.
    highest: Option<Arrival>,
    gaps: [Gap; GAPS],
    open: usize,
}

impl Gaps {
    /// The highest number that has arrived; `None` before the first packet.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.highest.map(|(number, _)| number)
    }

    /// Takes the number of a packet that arrived, and gives `lost` the losses that this makes certain. Returns whether the number is
    /// new: it neither arrived before nor was declared lost. The first number of all is new.
    #[inline]
    pub fn arrived(&mut self, sequence: u64, now: Time, mut lost: impl FnMut(Losses)) -> bool {
        let Some((highest, highest_at)) = self.highest else {
            self.highest = Some((sequence, now));
            return true;
        };
        if sequence > highest {
            self.count_later(self.open);
            if sequence - highest > 1 {
                let (before, after) = ((highest, highest_at), (sequence, now));
                let gap = Gap { first: highest + 1, last: sequence - 1, before, after, later: 1 };
                self.insert(self.open, gap, &mut lost);
            }
            self.highest = Some((sequence, now));
        } else if !self.fill(sequence, now, &mut lost) {
            return false;
        }
        while self.open > 0 && self.gaps[0].later >= LATER {
            self.declare_first(&mut lost);
        }
        true
    }

    /// Counts one more packet after each of the first `gaps` gaps.
    fn count_later(&mut self, gaps: usize) {
        for gap in &mut self.gaps[..gaps] {
            gap.later += 1;
        }
    }

    /// Removes a number from the gap that contains it; false if no gap does.
    fn fill(&mut self, sequence: u64, now: Time, lost: &mut impl FnMut(Losses)) -> bool {
        let inside = |gap: &Gap| (gap.first..=gap.last).contains(&sequence);
        let Some(at) = self.gaps[..self.open].iter().position(inside) else { return false };
        let gap = self.gaps[at];
        self.remove(at);
        self.count_later(at);
        if gap.last > sequence {
            self.insert(at, Gap { first: sequence + 1, before: (sequence, now), ..gap }, lost);
        }
        if gap.first < sequence {
            // If the list was full, the first gap has been declared lost, and this one has moved down.
            let at = at.min(self.open);
            let lower = Gap { last: sequence - 1, after: (sequence, now), later: gap.later + 1, ..gap };
            self.insert(at, lower, lost);
        }
        true
    }

    fn insert(&mut self, mut at: usize, gap: Gap, lost: &mut impl FnMut(Losses)) {
        if self.open == GAPS {
            self.declare_first(lost);
            at = at.saturating_sub(1);
        }
        self.gaps.copy_within(at..self.open, at + 1);
        self.gaps[at] = gap;
        self.open += 1;
    }

    fn remove(&mut self, at: usize) {
        self.gaps.copy_within(at + 1..self.open, at);
        self.open -= 1;
    }

    fn declare_first(&mut self, lost: &mut impl FnMut(Losses)) {
        let Gap { first, last, before, after, .. } = self.gaps[0];
        self.remove(0);
        lost(Losses { first, count: last - first + 1, before, after });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// The losses that a list of arrivals (number, ms) makes certain: first number, count, time of the first in ms.
    fn lost(arrivals: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let (mut gaps, mut lost) = (Gaps::default(), Vec::new());
        for &(number, at) in arrivals {
            gaps.arrived(number, ms(at), |run| {
                lost.push((run.first, run.count, run.time(0).as_nanos() / 1_000_000));
            });
        }
        lost
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_have_arrived() {
        assert_eq!(lost(&[(14, 0), (16, 20), (17, 30)]), []);
        assert_eq!(lost(&[(14, 0), (16, 20), (17, 30), (18, 40)]), [(15, 1, 10)]);
        assert_eq!(lost(&[(14, 0), (16, 20), (17, 30), (15, 35), (18, 40)]), [], "it came late");
    }

    #[test]
    fn the_time_of_a_loss_lies_between_its_neighbours_by_number() {
        let (mut gaps, mut times) = (Gaps::default(), Vec::new());
        for (number, at) in [(10, 100), (14, 180), (15, 200), (16, 220)] {
            gaps.arrived(number, ms(at), |run| times.extend((0..run.count).map(|n| run.time(n))));
        }
        assert_eq!(times, [ms(120), ms(140), ms(160)]);
    }

    #[test]
    fn a_partly_filled_gap_is_lost_in_two_parts() {
        // 13 arrives late; 11 and 12 then have three later packets, and 14 has them once 17 arrives.
        let arrivals = [(10, 0), (15, 50), (16, 60), (13, 65), (17, 70)];
        assert_eq!(lost(&arrivals), [(11, 2, 21), (14, 1, 57)]);
    }

    #[test]
    fn each_sequence_number_is_new_only_once() {
        let mut gaps = Gaps::default();
        for (number, new) in [(5, true), (7, true), (7, false), (6, true), (6, false), (5, false), (4, false)]
        {
            assert_eq!(gaps.arrived(number, ms(0), |run| panic!("{run:?}")), new, "{number}");
        }
    }

    proptest! {
        #[test]
        fn each_sequence_number_arrives_or_is_lost_exactly_once(
            steps in prop::collection::vec((0u64..4, any::<bool>()), 10..300), seed in any::<u64>(),
        ) {
            // Numbers with gaps, neighbours swapped here and there, then 16 in order to close every gap.
            let mut numbers = vec![0];
            for (skip, _) in &steps {
                numbers.push(numbers.last().unwrap() + 1 + skip);
            }
            for (at, (_, swap)) in steps.iter().enumerate() {
                if *swap && at + 3 < numbers.len() {
                    numbers.swap(at + 1, at + 1 + (seed >> (at % 60) & 2) as usize);
                }
            }
            let last = *numbers.iter().max().unwrap();
            numbers.extend(last + 1..last + 17);
            let (mut gaps, mut arrived, mut gone) = (Gaps::default(), Vec::new(), Vec::new());
            for (at, number) in numbers.iter().enumerate() {
                let new = gaps.arrived(*number, ms(at as u64), |run| {
                    gone.extend(run.first..run.first + run.count);
                });
                if new {
                    arrived.push(*number);
                }
            }
            let mut all = [arrived, gone].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..=last + 16).collect::<Vec<_>>());
        }
    }
}
