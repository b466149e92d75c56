//! Loss detection by sequence numbers (section 4.1.2). A missing number is lost once three later packets have arrived
//! without it, and its time of arrival is interpolated between the nearest packets that did arrive (equation 2.5).
//!
//! The source is silent on what follows; these are our readings:
//! - A packet that arrives after it was declared lost, or twice, changes nothing.
//! - A restart of the other AP is no loss. Version 2 says so by its epoch. In version 1 a jump of more than 3,000 forwards or
//!   100 backwards is believed when the next packet continues it (the rule of RFC 3550, appendix A.1), and the path tells of
//!   a peer that has stopped echoing ([`Detector::restart`]). An outage of version 1 that is longer than 3,000 packets is
//!   therefore not counted as loss.

use crate::header::Version;
use weir_base::Time;

/// Later packets that make a missing one lost.
const LATER: u8 = 3;
/// Gaps that may be open at once. Three later packets close a gap, so more than four need duplicates in odd orders.
const GAPS: usize = 8;

/// A packet that arrived: its number and when.
type Arrival = (u64, Time);

/// Consecutive packets that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Losses {
    /// Number of the first one.
    pub first: u64,
    /// How many there are, at least one.
    pub count: u64,
    before: Arrival,
    after: Arrival,
}

impl Losses {
    /// When the `n`-th of them would have arrived, counted from zero.
    pub fn time(&self, n: u64) -> Time {
        let ((s_before, t_before), (s_after, t_after)) = (self.before, self.after);
        let (ahead, width) = (self.first + n - s_before, s_after - s_before);
        // A packet that filled part of the gap may have come after the one behind the gap; the time then runs backwards.
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

/// What an arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The first with its number.
    New,
    /// Seen before or declared lost before, or far from the others: it says nothing of the path.
    Stale,
    /// The first packet, or the first after a restart of the other AP.
    Restart,
}

/// How far numbers may jump before a jump is a restart.
struct Limits {
    forward: u64,
    backward: u64,
}

impl Limits {
    fn of(version: Version) -> Limits {
        match version {
            // RFC 3550, appendix A.1: MAX_DROPOUT and MAX_MISORDER.
            Version::One => Limits { forward: 3_000, backward: 100 },
            // Three seconds of outage at 300,000 packets a second. The epoch tells restarts.
            Version::Two => Limits { forward: 1 << 20, backward: 1 << 16 },
        }
    }
}

/// Finds lost packets among the numbers of those that arrive.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    /// The highest number so far, unwrapped, and when it arrived.
    highest: Option<Arrival>,
    gaps: [Gap; GAPS],
    open: usize,
    /// The number that would continue the last jump.
    jumped: Option<u64>,
}

impl Detector {
    /// Takes the number of a packet that arrived and hands out the losses that this makes certain. Of version 1 the low 16
    /// bits count.
    #[inline]
    pub fn arrived(
        &mut self,
        number: u64,
        version: Version,
        now: Time,
        mut lost: impl FnMut(Losses),
    ) -> Outcome {
        let Some((highest, highest_at)) = self.highest else { return self.begin(number, now) };
        let sequence = match version {
            // The nearest number with these low bits.
            Version::One => {
                highest.wrapping_add_signed((number as u16).wrapping_sub(highest as u16) as i16 as i64)
            }
            Version::Two => number,
        };
        if sequence == highest + 1 && self.open == 0 {
            self.highest = Some((sequence, now));
            self.jumped = None;
            return Outcome::New;
        }
        let limits = Limits::of(version);
        let forward = sequence.wrapping_sub(highest);
        let far = forward > limits.forward && highest.wrapping_sub(sequence) > limits.backward;
        if far {
            let newer_epoch = version == Version::Two && sequence >> 32 > highest >> 32;
            if newer_epoch || self.jumped == Some(sequence) {
                return self.begin(number, now);
            }
            self.jumped = Some(sequence.wrapping_add(1));
            return Outcome::Stale;
        }
        self.jumped = None;
        if sequence > highest {
            self.count_later(self.open);
            if sequence > highest + 1 {
                let gap = Gap {
                    first: highest + 1,
                    last: sequence - 1,
                    before: (highest, highest_at),
                    after: (sequence, now),
                    later: 1,
                };
                self.insert(self.open, gap, &mut lost);
            }
            self.highest = Some((sequence, now));
        } else if !self.fill(sequence, now, &mut lost) {
            return Outcome::Stale;
        }
        while self.open > 0 && self.gaps[0].later >= LATER {
            self.declare_first(&mut lost);
        }
        Outcome::New
    }

    /// The other AP has restarted: the next packet is the first one.
    pub fn restart(&mut self) {
        *self = Detector::default();
    }

    fn begin(&mut self, number: u64, now: Time) -> Outcome {
        *self = Detector { highest: Some((number, now)), ..Detector::default() };
        Outcome::Restart
    }

    /// One more packet has arrived after each of the first `gaps` gaps.
    fn count_later(&mut self, gaps: usize) {
        for gap in &mut self.gaps[..gaps] {
            gap.later += 1;
        }
    }

    /// Takes a number out of the gap that it is in; false when it is in none.
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
            // Where the list was full, the gap before has been declared and this one moved down.
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

    /// The runs that a list of (number, ms) makes lost: first number, count, time of the first in ms.
    fn lost(version: Version, arrivals: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let (mut detector, mut lost) = (Detector::default(), Vec::new());
        for &(number, at) in arrivals {
            detector.arrived(number, version, ms(at), |run| {
                lost.push((run.first, run.count, run.time(0).as_nanos() / 1_000_000));
            });
        }
        lost
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_have_arrived() {
        // 15 is missing in the reference trace (14, 16): two later packets are not enough.
        assert_eq!(lost(Version::One, &[(14, 0), (16, 20), (17, 30)]), []);
        assert_eq!(lost(Version::One, &[(14, 0), (16, 20), (17, 30), (18, 40)]), [(15, 1, 10)]);
        assert_eq!(
            lost(Version::One, &[(14, 0), (16, 20), (17, 30), (15, 35), (18, 40)]),
            [],
            "it came late"
        );
    }

    #[test]
    fn the_time_of_a_loss_lies_between_its_neighbours_by_number() {
        let mut detector = Detector::default();
        let mut times = Vec::new();
        for (number, at) in [(10, 100), (14, 180), (15, 200), (16, 220)] {
            detector.arrived(number, Version::Two, ms(at), |run| {
                times.extend((0..run.count).map(|n| run.time(n)));
            });
        }
        assert_eq!(times, [ms(120), ms(140), ms(160)]);
    }

    #[test]
    fn a_gap_that_is_filled_in_part_is_lost_in_two_parts() {
        // 13 arrives late; 11 and 12 then have three later packets, 14 has them with 17.
        let arrivals = [(10, 0), (15, 50), (16, 60), (13, 65), (17, 70)];
        assert_eq!(lost(Version::Two, &arrivals), [(11, 2, 21), (14, 1, 57)]);
    }

    #[test]
    fn numbers_of_16_bits_wrap() {
        let arrivals = [(65_534, 0), (65_535, 1), (1, 3), (2, 4), (3, 5)];
        assert_eq!(lost(Version::One, &arrivals), [(65_536, 1, 2)]);
    }

    #[test]
    fn a_jump_of_version_1_is_a_restart_when_the_next_packet_continues_it() {
        let mut detector = Detector::default();
        let mut outcomes = Vec::new();
        for number in [100, 101, 40_000, 102, 40_001, 40_002, 40_003] {
            let none = |run: Losses| panic!("{run:?}");
            outcomes.push(detector.arrived(number, Version::One, ms(0), none));
        }
        use Outcome::{New, Restart, Stale};
        assert_eq!(outcomes, [Restart, New, Stale, New, Stale, Restart, New]);
    }

    #[test]
    fn a_new_epoch_of_version_2_is_a_restart_and_a_long_outage_is_a_loss() {
        let mut detector = Detector::default();
        let mut total = 0;
        for number in [1 << 32, (1 << 32) + 500_000, (1 << 32) + 500_001, (1 << 32) + 500_002] {
            detector.arrived(number, Version::Two, ms(1), |run| total += run.count);
        }
        assert_eq!(total, 499_999);
        let none = |run: Losses| panic!("{run:?}");
        assert_eq!(detector.arrived((7 << 32) + 3, Version::Two, ms(2), none), Outcome::Restart);
        assert_eq!(detector.arrived((1 << 32) + 500_003, Version::Two, ms(2), none), Outcome::Stale);
    }

    #[test]
    fn a_duplicate_is_stale() {
        let mut detector = Detector::default();
        let none = |run: Losses| panic!("{run:?}");
        for (number, outcome) in
            [(5, Outcome::Restart), (6, Outcome::New), (6, Outcome::Stale), (5, Outcome::Stale)]
        {
            assert_eq!(detector.arrived(number, Version::Two, ms(0), none), outcome);
        }
    }

    proptest! {
        #[test]
        fn each_number_arrives_or_is_lost_and_never_twice(
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
            let (mut detector, mut arrived, mut gone) = (Detector::default(), Vec::new(), Vec::new());
            for (at, number) in numbers.iter().enumerate() {
                let outcome = detector.arrived(*number, Version::Two, ms(at as u64), |run| {
                    gone.extend(run.first..run.first + run.count);
                });
                if outcome != Outcome::Stale {
                    arrived.push(*number);
                }
            }
            let mut all = [arrived, gone].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..=last + 16).collect::<Vec<_>>());
        }
    }
}
