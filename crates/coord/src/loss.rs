//! Loss detection between two APs (section 4.1.2): a missing number is lost once three later packets have arrived. Its time of
//! loss is interpolated between its neighbours (equation 2.5), as in [`weir_control::tfrc::Gaps`].
//!
//! The source is silent on restarts. A restart of the other AP is no loss. In version 2 a new epoch shows it. In version 1 a
//! jump of more than 3,000 forwards or 100 backwards counts as a restart if the next packet continues it (the rule of RFC 3550,
//! appendix A.1), and the path calls [`Detector::restart`] when a peer stops echoing. An outage of version 1 that is longer than
//! 3,000 packets is therefore not counted as loss.

use crate::header::Version;
use weir_base::Time;
use weir_control::tfrc::{Gaps, Losses};

/// Kind of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The first packet with its number.
    New,
    /// The number was seen or declared lost before, or is far from the others: the packet is no evidence of the path.
    Stale,
    /// The first packet, or the first after a restart of the other AP.
    Restart,
}

/// Largest jumps of the numbers that are no restart.
struct Limits {
    forward: u64,
    backward: u64,
}

impl Limits {
    fn of(version: Version) -> Limits {
        match version {
            // RFC 3550, appendix A.1: MAX_DROPOUT and MAX_MISORDER.
            Version::One => Limits { forward: 3_000, backward: 100 },
            // Three seconds of outage at 300,000 packets a second. Restarts are recognized by the epoch.
            Version::Two => Limits { forward: 1 << 20, backward: 1 << 16 },
        }
    }
}

/// Where the unwrapped numbers of version 1 begin.
const UNWRAPPED_FROM: u64 = 1 << 32;

/// Finds lost packets among the numbers of those that arrive.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    gaps: Gaps,
    /// The number that would continue the last jump.
    jumped: Option<u64>,
}

impl Detector {
    /// Takes the number of a packet that arrived and calls `lost` for each run of losses that it reveals. In version 1 only
    /// the low 16 bits of the number count.
    #[inline]
    pub fn arrived(&mut self, number: u64, version: Version, now: Time, lost: impl FnMut(Losses)) -> Outcome {
        let Some(highest) = self.gaps.highest() else { return self.begin(number, version, now) };
        let sequence = match version {
            // The nearest number with these low bits.
            Version::One => {
                highest.wrapping_add_signed(((number as u16).wrapping_sub(highest as u16) as i16).into())
            }
            Version::Two => number,
        };
        let limits = Limits::of(version);
        let far = if sequence > highest {
            sequence - highest > limits.forward
        } else {
            highest - sequence > limits.backward
        };
        if far {
            let newer_epoch = version == Version::Two && sequence >> 32 > highest >> 32;
            if newer_epoch || self.jumped == Some(sequence) {
                return self.begin(number, version, now);
            }
            self.jumped = Some(sequence.wrapping_add(1));
            return Outcome::Stale;
        }
        self.jumped = None;
        if self.gaps.arrived(sequence, now, lost) { Outcome::New } else { Outcome::Stale }
    }

    /// The other AP has restarted: the next packet is the first one.
    pub fn restart(&mut self) {
        *self = Detector::default();
    }

    fn begin(&mut self, number: u64, version: Version, now: Time) -> Outcome {
        self.restart();
        let first = match version {
            // Leaves room for numbers below the first one.
            Version::One => UNWRAPPED_FROM | number & 0xffff,
            Version::Two => number,
        };
        self.gaps.arrived(first, now, |_| {});
        Outcome::Restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn packet_c_of_the_reference_trace_is_lost_when_three_later_packets_have_arrived() {
        // C is 15; B, D and F are 14, 16 and 17.
        let (mut detector, mut lost) = (Detector::default(), Vec::new());
        for (number, at) in [(14, 280), (16, 400), (17, 705), (18, 800)] {
            assert!(lost.is_empty());
            detector
                .arrived(number, Version::One, ms(at), |run| lost.push((run.first, run.count, run.time(0))));
        }
        assert_eq!(lost, [(UNWRAPPED_FROM + 15, 1, ms(340))]);
    }

    #[test]
    fn sequence_numbers_of_16_bits_wrap() {
        let (mut detector, mut lost) = (Detector::default(), Vec::new());
        for (number, at) in [(65_534, 0), (65_535, 1), (1, 3), (2, 4), (3, 5)] {
            detector
                .arrived(number, Version::One, ms(at), |run| lost.push((run.first, run.count, run.time(0))));
        }
        assert_eq!(lost, [(UNWRAPPED_FROM + 65_536, 1, ms(2))]);
    }

    #[test]
    fn a_jump_in_version_1_is_a_restart_only_if_the_next_packet_continues_it() {
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

    #[test]
    fn a_sequence_number_below_the_first_one_causes_no_loss() {
        for (version, below) in [(Version::One, 0xfffa), (Version::Two, u64::MAX)] {
            let mut detector = Detector::default();
            for number in [5, 6, below, 7, 8, 9, 10] {
                detector.arrived(number, version, ms(1), |run| panic!("{run:?}"));
            }
        }
    }
}
