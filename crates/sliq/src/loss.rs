//! The sender's record of its packets: what each carried, and whether it was acknowledged or counts as lost.

use super::wire::Ack;
use std::collections::VecDeque;
use weir_base::{Span, Time};

/// A packet counts as lost when one with a number higher by this has arrived (the GNAT software; RFC 9002, section 6.1.1).
const LATER: u64 = 3;
/// A packet that counts as lost is remembered until this many later packets have left, so that a late acknowledgement still counts.
const REMEMBERED: u64 = 1024;

/// The content of a packet, as far as its loss matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing that is retransmitted: an acknowledgement, a request, a probe or padding.
    Nothing,
    /// A control frame; if it is lost, its present value is sent instead.
    Control,
    /// A segment of a stream.
    Segment {
        /// The stream's number.
        stream: u8,
        /// The segment's number.
        sequence: u32,
        /// The round of its group.
        round: u8,
    },
    /// A part of a segment of a stream.
    Part {
        /// The stream's number.
        stream: u8,
        /// The segment's number.
        sequence: u32,
        /// The part's index, from 0.
        part: u8,
    },
    /// A repair packet of a stream's group.
    Repair {
        /// The stream's number.
        stream: u8,
        /// The group's first segment.
        start: u32,
        /// The round of its group.
        round: u8,
    },
}

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is in flight.
    Out,
    /// It has arrived.
    Arrived,
    /// It counts as lost.
    Lost,
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) at: Time,
    pub(crate) content: Content,
    pub(crate) fate: Fate,
    /// The index of the controller that it belongs to, and its length as the controller counts it.
    pub(crate) owner: u8,
    pub(crate) bytes: u32,
    /// The offset of its end among the bytes that the controller has sent.
    pub(crate) end: u64,
    /// The state of the controller's delivery when the packet was sent (draft-cheng-iccrg-delivery-rate-estimation).
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Time,
    pub(crate) first_sent_at: Time,
    pub(crate) app_limited: bool,
}

/// The packets that were sent, as long as an acknowledgement may still change something.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The number of the first packet in flight, and the packets from it on.
    first: u64,
    records: VecDeque<Record>,
    /// Earlier packets that count as lost, by number.
    lost: VecDeque<(u64, Record)>,
    /// The highest number that has arrived.
    largest: Option<u64>,
    /// Packets in flight that are to be acknowledged.
    out: u32,
}

impl Log {
    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// The number of packets in flight that are to be acknowledged.
    pub(crate) fn out(&self) -> u32 {
        self.out
    }

    /// The packet with the next number leaves.
    pub(crate) fn push(&mut self, record: Record) {
        self.out += u32::from(record.fate == Fate::Out);
        self.records.push_back(record);
    }

    /// Takes an acknowledgement: passes each packet that is acknowledged for the first time to `to`, lowest number first, with its fate
    /// before. Returns `false`, and changes nothing, if it covers packets that were never sent.
    pub(crate) fn acknowledged(&mut self, ack: &Ack, largest: u64, mut to: impl FnMut(u64, &Record)) -> bool {
        if largest >= self.next() {
            return false;
        }
        self.largest = Some(self.largest.map_or(largest, |before| before.max(largest)));
        let mut ranges = [(0, 0); super::wire::MOST_RANGES];
        let mut count = 0;
        for (range, (high, low)) in ranges.iter_mut().zip(ack.ranges()) {
            let Some(high) = largest.checked_sub(high.into()) else { break };
            *range = (largest.saturating_sub(low.into()), high);
            count += 1;
        }
        for (low, high) in ranges[..count].iter().rev() {
            let at = self.lost.partition_point(|(number, _)| number < low);
            while self.lost.get(at).is_some_and(|(number, _)| number <= high) {
                self.lost.remove(at).iter().for_each(|(number, record)| to(*number, record));
            }
            for number in (*low).max(self.first)..=*high {
                let Some(record) = self.records.get_mut((number - self.first) as usize) else { break };
                if record.fate == Fate::Arrived {
                    continue;
                }
                self.out -= u32::from(record.fate == Fate::Out);
                to(number, record);
                record.fate = Fate::Arrived;
            }
        }
        self.forget();
        true
    }

    /// Finds packets that count as lost: those that three later packets have overtaken, and those sent at least `patience` ago while a
    /// later one has arrived. Returns when the next packet will count as lost by time; never if there is none.
    pub(crate) fn detect(&mut self, patience: Span, now: Time, mut to: impl FnMut(u64, &Record)) -> Time {
        let mut next = Time::NEVER;
        let Some(largest) = self.largest else { return next };
        for number in self.first..largest {
            let record = &mut self.records[(number - self.first) as usize];
            if record.fate != Fate::Out {
                continue;
            }
            let due = record.at + patience;
            if number + LATER <= largest || due <= now {
                record.fate = Fate::Lost;
                self.out -= 1;
                to(number, record);
            } else {
                next = next.min(due);
            }
        }
        self.forget();
        next
    }

    /// All packets in flight count as lost.
    pub(crate) fn lose_all(&mut self, mut to: impl FnMut(u64, &Record)) {
        for (at, record) in self.records.iter_mut().enumerate() {
            if record.fate == Fate::Out {
                record.fate = Fate::Lost;
                to(self.first + at as u64, record);
            }
        }
        self.out = 0;
        self.forget();
    }

    /// Drops records before the first packet in flight, but keeps lost packets, whose acknowledgements may come late.
    fn forget(&mut self) {
        while let Some(record) = self.records.front().filter(|record| record.fate != Fate::Out) {
            if record.fate == Fate::Lost {
                self.lost.push_back((self.first, *record));
            }
            self.records.pop_front();
            self.first += 1;
        }
        let next = self.next();
        while self.lost.front().is_some_and(|(number, _)| *number + REMEMBERED < next) {
            self.lost.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Ten packets, sent a millisecond apart from 0.
    fn ten() -> Log {
        let mut log = Log::default();
        for n in 0..10 {
            log.push(Record {
                at: ms(n),
                content: Content::Control,
                fate: Fate::Out,
                owner: 0,
                bytes: 100,
                end: 0,
                delivered: 0,
                delivered_at: Time::ZERO,
                first_sent_at: Time::ZERO,
                app_limited: false,
            });
        }
        log
    }

    fn ack(largest: u32, before: u16) -> Ack {
        let mut ack = Ack::new(largest, 0, 0, 0);
        ack.set_first(before);
        ack
    }

    fn acknowledged(log: &mut Log, ack: &Ack) -> Vec<u64> {
        let mut numbers = Vec::new();
        assert!(log.acknowledged(ack, ack.largest.into(), |number, _| numbers.push(number)));
        numbers
    }

    fn lost(log: &mut Log, now: Time) -> (Vec<u64>, Time) {
        let mut numbers = Vec::new();
        let next = log.detect(Span::from_millis(100), now, |number, _| numbers.push(number));
        (numbers, next)
    }

    #[test]
    fn a_packet_is_lost_after_three_later_ones_or_after_a_time() {
        let mut log = ten();
        assert_eq!(acknowledged(&mut log, &ack(5, 0)), [5]);
        assert_eq!(log.out(), 9);
        // 0 to 2 are three or more below 5; 3 counts as lost at 103 ms.
        assert_eq!(lost(&mut log, ms(50)), (vec![0, 1, 2], ms(103)));
        assert_eq!(lost(&mut log, ms(103)), (vec![3], ms(104)));
        assert_eq!(log.out(), 5);
    }

    #[test]
    fn each_acknowledged_packet_is_reported_once_even_if_it_was_declared_lost() {
        let mut log = ten();
        acknowledged(&mut log, &ack(9, 0));
        assert_eq!(lost(&mut log, ms(50)).0, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(acknowledged(&mut log, &ack(9, 9)), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(acknowledged(&mut log, &ack(9, 9)).is_empty());
        assert_eq!(log.out(), 0);
    }

    #[test]
    fn acknowledgements_of_unsent_packets_are_ignored() {
        let mut log = ten();
        assert!(!log.acknowledged(&ack(10, 10), 10, |_, _| panic!("a packet that was never sent")));
        // A range that reaches below 0 ends there.
        assert_eq!(acknowledged(&mut log, &ack(2, 500)), [0, 1, 2]);
    }

    #[test]
    fn a_timeout_declares_every_outstanding_packet_lost() {
        let mut log = ten();
        acknowledged(&mut log, &ack(1, 1));
        let mut numbers = Vec::new();
        log.lose_all(|number, _| numbers.push(number));
        assert_eq!(numbers, (2..10).collect::<Vec<_>>());
        assert_eq!(log.out(), 0);
    }

    /// Three thousand packets.
    fn many() -> Log {
        let mut log = Log::default();
        let one = ten().records[0];
        (0..3000).for_each(|_| log.push(one));
        log
    }

    #[test]
    fn acknowledged_packets_are_removed_from_the_log() {
        let mut log = many();
        acknowledged(&mut log, &ack(2999, 2999));
        assert_eq!((log.records.len(), log.lost.len(), log.next()), (0, 0, 3000));
    }

    #[test]
    fn the_newest_lost_packets_are_remembered_for_late_acknowledgements() {
        let mut log = many();
        acknowledged(&mut log, &ack(2999, 0));
        assert_eq!(lost(&mut log, ms(50)).0.len(), 2997);
        // 2997 and 2998 have not been overtaken by three packets yet.
        assert_eq!((log.records.len(), log.lost.len(), log.next()), (3, 1021, 3000));
        let first = 3000 - REMEMBERED as u32;
        assert_eq!(acknowledged(&mut log, &ack(first, 10)), [u64::from(first)]);
        assert!(acknowledged(&mut log, &ack(first, 10)).is_empty());
    }
}
