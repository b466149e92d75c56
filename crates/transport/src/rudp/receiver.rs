//! What has arrived: segments in order for the application, and what is to be acknowledged.

use super::wire::{Header, NO_HOLE};
use std::collections::VecDeque;

/// Segments ahead of the next expected one that are kept.
const WINDOW: u32 = 1 << 16;

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// The next segment that is expected.
    next: u32,
    /// Lengths of the segments from the next one on, where they have arrived; the first is none.
    ahead: VecDeque<Option<u32>>,
    /// The segment at which the peer's stream ends.
    fin: Option<u32>,
    /// Bytes in order that were not read.
    bytes: u64,
    /// Packet numbers that are to be echoed.
    echoes: VecDeque<u32>,
}

impl Receiver {
    /// A segment of `length` bytes has arrived in the packet of this number; the end of the stream is one of none.
    pub(crate) fn arrived(&mut self, number: u32, sequence: u32, length: u32, fin: bool) {
        self.echoes.push_back(number);
        let ahead = sequence.wrapping_sub(self.next);
        if ahead >= WINDOW {
            return;
        }
        if fin {
            self.fin.get_or_insert(sequence);
        }
        let at = ahead as usize;
        if self.ahead.len() <= at {
            self.ahead.resize(at + 1, None);
        }
        self.ahead[at] = Some(length);
        while let Some(Some(length)) = self.ahead.front() {
            self.bytes += u64::from(*length);
            self.ahead.pop_front();
            self.next = self.next.wrapping_add(1);
        }
    }

    /// The next acknowledgement, if one is due.
    pub(crate) fn ack(&mut self) -> Option<Header> {
        let echo = self.echoes.pop_front()?;
        Some(Header::Ack {
            echo,
            ack: self.next,
            hole: if self.ahead.is_empty() { NO_HOLE } else { self.next },
        })
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn owes(&self) -> bool {
        !self.echoes.is_empty()
    }

    /// Bytes that have come in order since the last call.
    pub(crate) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    /// Whether the whole stream has arrived.
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin == self.next.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_in_order_and_each_packet_is_acknowledged() {
        let mut receiver = Receiver::default();
        receiver.arrived(10, 0, 100, false);
        receiver.arrived(12, 2, 300, false);
        assert_eq!(receiver.take(), 100);
        assert_eq!(receiver.ack(), Some(Header::Ack { echo: 10, ack: 1, hole: 1 }));
        receiver.arrived(13, 1, 200, false);
        receiver.arrived(14, 3, 0, true);
        assert_eq!((receiver.take(), receiver.finished()), (500, true));
        assert_eq!(receiver.ack(), Some(Header::Ack { echo: 12, ack: 4, hole: NO_HOLE }));
        receiver.arrived(15, 1, 200, false);
        assert_eq!(receiver.take(), 0, "a duplicate");
    }
}
