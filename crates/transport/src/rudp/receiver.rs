//! The receiving half: segments in order for the application, and pending acknowledgements.

use super::wire::{Header, NO_HOLE};
use std::collections::VecDeque;

/// Largest number of segments that are kept from the next expected one on.
const WINDOW: u32 = 1 << 13;

/// A segment that has arrived.
#[derive(Debug, Default, Clone)]
struct Arrived {
    length: u32,
    /// Its bytes, if the connection carries them.
    content: Vec<u8>,
}

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// The next segment that is expected.
    next: u32,
    /// The segments from the next expected one on; `None` for each that is missing, as the first always is.
    ahead: VecDeque<Option<Arrived>>,
    /// The segment at which the peer's stream ends.
    fin: Option<u32>,
    /// Bytes in order that are not read: their number, and the bytes themselves.
    bytes: u64,
    content: Vec<u8>,
    /// Packet numbers to be echoed.
    echoes: VecDeque<u32>,
}

impl Receiver {
    /// A segment of `length` bytes has arrived in the packet of this number; `content` holds its bytes if they are carried. The end
    /// of the stream is a segment of zero bytes. A segment too far ahead to be kept is not acknowledged.
    pub(crate) fn arrived(&mut self, number: u32, sequence: u32, length: u32, content: &[u8], fin: bool) {
        let ahead = sequence.wrapping_sub(self.next);
        if (ahead as i32) < 0 {
            self.echoes.push_back(number);
            return;
        }
        if ahead >= WINDOW {
            return;
        }
        self.echoes.push_back(number);
        if fin {
            self.fin.get_or_insert(sequence);
        }
        let at = ahead as usize;
        if self.ahead.len() <= at {
            self.ahead.resize(at + 1, None);
        }
        self.ahead[at].get_or_insert_with(|| Arrived { length, content: content.to_vec() });
        while let Some(Some(Arrived { length, content })) = self.ahead.front_mut() {
            self.bytes += u64::from(*length);
            self.content.append(content);
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

    /// Calls `to` with the number of bytes that arrived in order since the last call and the bytes themselves, if there are any.
    pub(crate) fn take(&mut self, to: &mut dyn FnMut(u64, &[u8])) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            to(bytes, &self.content);
            self.content.clear();
        }
    }

    /// Whether the whole stream has arrived.
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin == self.next.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(receiver: &mut Receiver) -> (u64, Vec<u8>) {
        let mut all = (0, vec![]);
        receiver.take(&mut |bytes, content| all = (bytes, content.to_vec()));
        all
    }

    #[test]
    fn segments_are_read_in_order_and_each_packet_is_acknowledged() {
        let mut receiver = Receiver::default();
        receiver.arrived(10, 0, 3, b"abc", false);
        receiver.arrived(12, 2, 2, b"fg", false);
        assert_eq!(taken(&mut receiver), (3, b"abc".to_vec()));
        assert_eq!(receiver.ack(), Some(Header::Ack { echo: 10, ack: 1, hole: 1 }));
        receiver.arrived(13, 1, 2, b"de", false);
        receiver.arrived(14, 3, 0, b"", true);
        assert_eq!((taken(&mut receiver), receiver.finished()), ((4, b"defg".to_vec()), true));
        assert_eq!(receiver.ack(), Some(Header::Ack { echo: 12, ack: 4, hole: NO_HOLE }));
        receiver.arrived(15, 1, 2, b"de", false);
        assert_eq!(taken(&mut receiver), (0, vec![]), "a duplicate");
    }

    #[test]
    fn a_segment_beyond_the_window_is_not_acknowledged() {
        let mut receiver = Receiver::default();
        receiver.arrived(1, WINDOW, 100, b"", false);
        assert_eq!(receiver.ack(), None);
        receiver.arrived(2, WINDOW - 1, 100, b"", false);
        receiver.arrived(3, u32::MAX, 100, b"", false);
        assert!(receiver.ack().is_some() && receiver.ack().is_some(), "one is kept, one is old");
    }
}
