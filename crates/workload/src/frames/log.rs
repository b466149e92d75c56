//! The log of the frames at the receiving application: complete frames with the time that they took, and lost frames.
//!
//! Frames are counted by their due time, which both ends know from the lab. A frame that is incomplete some time after its deadline
//! counts as lost. Frames whose deadline is after the end of the run are not counted, since it is unknown whether they would have
//! been on time.

use super::{Part, due};
use crate::{Bytes, Span, Time};
use std::collections::VecDeque;

/// How long after its deadline a frame may still be completed: long enough to measure how late late frames are.
const PATIENCE: Span = Span::from_secs(1);
/// Largest distance of a valid frame number from the oldest frame in the log.
const FARTHEST: u32 = 1_000_000;

/// The fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFate {
    /// All its packets were read by its deadline, the last one this long after the frame was due to leave.
    OnTime(Span),
    /// All packets were read, the last one after the deadline and this long after the frame was due to leave.
    Late(Span),
    /// Not all packets were read.
    Lost,
}

/// A frame and its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRecord {
    /// Number of the frame, from 0.
    pub number: u32,
    /// The frame's fate.
    pub fate: FrameFate,
}

/// A frame in the log.
#[derive(Debug, Clone, Default)]
struct Slot {
    /// A bit for each packet, set if it has been read.
    seen: Vec<u64>,
    received: u16,
    whole: bool,
}

/// The frames of one flow at the receiving application.
#[derive(Debug, Clone)]
pub struct FrameLog {
    fps: f64,
    deadline: Span,
    start: Time,
    /// No frame is due from this time on.
    stop: Time,
    end: Time,
    /// Number of the oldest frame in `slots`.
    first: u32,
    slots: VecDeque<Slot>,
    /// Of a stream: the number and size in bytes of each frame that was written and is not whole at the receiver, and the bytes of the
    /// first of them that were read.
    streamed: VecDeque<(u32, u64)>,
    taken: u64,
}

impl FrameLog {
    pub(super) fn new(fps: f64, deadline: Span, start: Time, stop: Time, end: Time) -> FrameLog {
        FrameLog {
            fps,
            deadline,
            start,
            stop,
            end,
            first: 0,
            slots: VecDeque::new(),
            streamed: VecDeque::new(),
            taken: 0,
        }
    }

    /// The application begins to write a frame of this many bytes to a stream.
    pub(crate) fn begun(&mut self, number: u32, bytes: Bytes) {
        self.streamed.push_back((number, bytes.get()));
    }

    /// The receiver has read so many more bytes of the stream. Reports the frames that are whole now.
    pub(crate) fn read_stream(&mut self, bytes: u64, now: Time, mut tell: impl FnMut(FrameRecord)) {
        self.taken += bytes;
        while let Some((frame, size)) = self.streamed.front().copied().filter(|(_, size)| *size <= self.taken)
        {
            self.taken -= size;
            self.streamed.pop_front();
            self.read(Part { frame, index: 0, parts: 1 }, now).into_iter().for_each(&mut tell);
        }
    }

    fn due(&self, number: u32) -> Time {
        self.start + due(self.fps, number)
    }

    /// Whether the frame is due before the stop, and its deadline is within the run.
    fn counts(&self, number: u32) -> bool {
        let due = self.due(number);
        due < self.stop && due + self.deadline <= self.end
    }

    /// A packet was read. Returns the record of its frame if that is complete now, or else `None`. A duplicate counts once.
    pub fn read(&mut self, part: Part, now: Time) -> Option<FrameRecord> {
        let place = part.frame.checked_sub(self.first).filter(|place| *place < FARTHEST)? as usize;
        if !self.counts(part.frame) {
            return None;
        }
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, Slot::default);
        }
        let slot = &mut self.slots[place];
        let (word, bit) = (usize::from(part.index / 64), 1 << (part.index % 64));
        if slot.seen.len() <= word {
            slot.seen.resize(usize::from(part.parts).div_ceil(64).max(word + 1), 0);
        }
        if slot.whole || slot.seen[word] & bit != 0 {
            return None;
        }
        slot.seen[word] |= bit;
        slot.received += 1;
        if slot.received < part.parts {
            return None;
        }
        slot.whole = true;
        let took = now.since(self.due(part.frame));
        let fate = if took <= self.deadline { FrameFate::OnTime(took) } else { FrameFate::Late(took) };
        Some(FrameRecord { number: part.frame, fate })
    }

    /// Reports the frames that count as lost by now; at the end of the run, all incomplete ones whose deadline has passed.
    pub fn settle(&mut self, now: Time, mut tell: impl FnMut(FrameRecord)) {
        let patience = if now >= self.end { Span::ZERO } else { PATIENCE };
        while self.counts(self.first) && self.due(self.first) + self.deadline + patience <= now {
            if !self.slots.pop_front().is_some_and(|slot| slot.whole) {
                tell(FrameRecord { number: self.first, fate: FrameFate::Lost });
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Ten frames per second from 1 s on, with a deadline of 50 ms; the run ends at 3 s.
    fn log(stop: u64) -> FrameLog {
        FrameLog::new(10.0, Span::from_millis(50), at(1000), at(stop), at(3000))
    }

    fn part(frame: u32, index: u16) -> Part {
        Part { frame, index, parts: 2 }
    }

    fn lost(log: &mut FrameLog, now: u64) -> Vec<u32> {
        let mut lost = vec![];
        log.settle(at(now), |frame| {
            assert_eq!(frame.fate, FrameFate::Lost);
            lost.push(frame.number);
        });
        lost
    }

    #[test]
    fn a_frame_is_complete_when_all_its_packets_have_arrived_in_any_order_and_counts_once() {
        let mut log = log(3000);
        assert_eq!(log.read(part(0, 1), at(1010)), None);
        assert_eq!(log.read(part(0, 1), at(1015)), None, "the same packet again");
        let fate = FrameFate::OnTime(Span::from_millis(50));
        assert_eq!(log.read(part(0, 0), at(1050)), Some(FrameRecord { number: 0, fate }));
        assert_eq!(log.read(part(0, 0), at(1060)), None);
        assert_eq!(log.read(part(1, 0), at(1130)), None);
        let fate = FrameFate::Late(Span::from_millis(51));
        assert_eq!(log.read(part(1, 1), at(1151)), Some(FrameRecord { number: 1, fate }));
        assert!(lost(&mut log, 2150).is_empty());
    }

    #[test]
    fn frames_of_a_stream_are_whole_by_their_sizes_and_a_frame_that_was_not_written_is_lost() {
        let mut log = log(3000);
        // Frame 1 was dropped by its source.
        log.begun(0, Bytes::new(1000));
        log.begun(2, Bytes::new(500));
        let mut told = vec![];
        let mut read =
            |bytes, ms| log.read_stream(bytes, at(ms), |frame| told.push((frame.number, frame.fate)));
        read(999, 1020);
        read(101, 1040);
        read(400, 1300);
        let (soon, late) = (Span::from_millis(40), Span::from_millis(100));
        assert_eq!(told, [(0, FrameFate::OnTime(soon)), (2, FrameFate::Late(late))]);
        assert_eq!(lost(&mut log, 2300), [1]);
    }

    #[test]
    fn a_frame_that_is_incomplete_a_second_after_its_deadline_is_lost() {
        let mut log = log(3000);
        log.read(part(1, 0), at(1101));
        log.read(part(2, 0), at(1201));
        log.read(part(2, 1), at(1201));
        assert!(lost(&mut log, 2049).is_empty());
        assert_eq!(lost(&mut log, 2150), [0, 1], "frame 0 never showed up, of frame 1 a packet is missing");
        assert_eq!(log.read(part(1, 1), at(2200)), None, "too late for a frame that was given up");
    }

    #[test]
    fn at_the_end_exactly_the_frames_whose_deadline_has_passed_are_counted() {
        // Frames 0 to 19 are due before 3 s. The deadline of frame 19 is at 2.95 s, that of the next frame at 3.05 s.
        let mut whole = log(9000);
        assert_eq!(lost(&mut whole, 3000), (0..20).collect::<Vec<_>>());
        assert_eq!(whole.read(Part { frame: 20, index: 0, parts: 1 }, at(3000)), None);
        // With a stop at 1.25 s there are frames 0, 1 and 2.
        assert_eq!(lost(&mut log(1250), 3000), [0, 1, 2]);
    }

    #[test]
    fn every_frame_has_one_fate_despite_loss_delay_and_duplication() {
        let mut random = crate::Random::stream(1, "test");
        for case in 0..200 {
            // Twenty frames of up to 130 packets; each packet arrives once, twice or never, within two seconds.
            let mut log = log(9000);
            let mut arrivals = vec![];
            for frame in 0..20u32 {
                let parts = 1 + random.below(130) as u16;
                for index in 0..parts {
                    for _ in 0..random.below(40).min(2) {
                        let later = Span::from_millis(random.below(2000));
                        arrivals.push((log.due(frame) + later, Part { frame, index, parts }));
                    }
                }
            }
            arrivals.sort_by_key(|(now, _)| *now);
            let mut fates = [0; 20];
            let mut seen = |frame: FrameRecord| fates[frame.number as usize] += 1;
            for (now, part) in arrivals.into_iter().filter(|(now, _)| *now < at(3000)) {
                log.settle(now, &mut seen);
                log.read(part, now).map(&mut seen);
            }
            log.settle(at(3000), &mut seen);
            assert_eq!(fates, [1; 20], "case {case}");
        }
    }
}
