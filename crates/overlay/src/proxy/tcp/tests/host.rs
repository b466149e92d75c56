//! A host beside its proxy: it sends a stream whose bytes follow from their positions, and checks each byte of the stream that it reads.

use super::super::{Admission, Relay, Segment};
use std::collections::BTreeMap;
use weir_base::{Bytes, Time};

/// The longest part of a segment.
pub(crate) const MOST: Bytes = Bytes::new(1200);

/// One end of a connection. The ends are 0 and 1.
#[derive(Debug)]
pub(crate) struct Host {
    end: usize,
    /// The state of its proxy.
    pub(crate) relay: Relay,
    /// What it sends in all, what of it it has given, and whether it keeps its stream open when it has given all.
    pub(crate) total: u64,
    given: u64,
    pub(crate) keeps: bool,
    /// Data that has come and was not given to the host, by position.
    held: BTreeMap<u64, Vec<u8>>,
    /// Bytes that it has read, and whether the other stream has ended.
    pub(crate) received: u64,
    pub(crate) saw_end: bool,
}

/// The byte at a position of the stream that this end reads.
fn byte(end: usize, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ end as u64) as u8
}

impl Host {
    pub(crate) fn new(end: usize, total: u64, now: Time) -> Host {
        Host {
            end,
            relay: Relay::new(MOST, now),
            total,
            given: 0,
            keeps: false,
            held: BTreeMap::new(),
            received: 0,
            saw_end: false,
        }
    }

    /// Gives its proxy what that takes.
    pub(crate) fn give(&mut self) {
        let more = self.relay.room().get().min(self.total - self.given);
        self.given += more;
        self.relay.take(Bytes::new(more));
        if self.given == self.total && !self.keeps {
            self.relay.end();
        }
    }

    /// A segment of its proxy, with its data.
    pub(crate) fn encode(&self, segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        segment.encode(&mut bytes);
        if let Some(part) = segment.part {
            bytes.extend((0..u64::from(part.bytes)).map(|at| byte(1 - self.end, part.from + at)));
        }
        bytes
    }

    /// A segment has come, and the host reads what is ready.
    pub(crate) fn receive(&mut self, bytes: &[u8], admission: &Admission, now: Time) {
        let (segment, data) = Segment::decode(bytes, 0).unwrap();
        self.relay.receive(&segment, admission, now);
        if let Some(part) = segment.part {
            self.held.insert(part.from, data.to_vec());
        }
        let ready = self.relay.ready().get();
        let to = self.received + ready;
        while self.received < to {
            let (&from, data) =
                self.held.range(..=self.received).next_back().expect("what is ready is there");
            let skip = (self.received - from) as usize;
            for &told in data[skip..].iter().take((to - self.received) as usize) {
                assert_eq!(told, byte(self.end, self.received), "at {} of {}", self.received, self.end);
                self.received += 1;
            }
        }
        let received = self.received;
        self.held.retain(|from, data| from + data.len() as u64 > received);
        self.relay.give(Bytes::new(ready), now);
        self.relay.acknowledged(received, now);
        self.saw_end |= self.relay.ends();
    }
}
