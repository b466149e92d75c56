//! Where a peer is. Its packets may come from another address than before, since it has moved or a translator has given it another
//! port; anybody may also have sent a packet of its on from elsewhere. It counts as there when a number that was sent to the new
//! address comes back from it; until then nothing else goes there, and no more than has come from there.

use core::net::SocketAddr;
use weir_base::{Span, Time};

/// The number is retransmitted after this long, if packets still come from there.
const AGAIN: Span = Span::from_millis(100);

/// An address from which packets of the peer come, and which is not proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// It.
    pub(crate) address: SocketAddr,
    /// The number that is to come back.
    pub(crate) challenge: u64,
    /// Bytes that have come from there and were sent there.
    received: usize,
    sent: usize,
    due: Time,
}

impl Candidate {
    /// A packet has come from an address.
    pub(crate) fn new(address: SocketAddr, challenge: u64) -> Candidate {
        Candidate { address, challenge, received: 0, sent: 0, due: Time::ZERO }
    }

    /// So many bytes have come from there.
    pub(crate) fn heard(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
    }

    /// Whether a packet of so many bytes with the number is to be sent now; if so, it is.
    pub(crate) fn asks(&mut self, bytes: usize, now: Time) -> bool {
        let may = now >= self.due && self.sent + bytes <= self.received;
        if may {
            (self.sent, self.due) = (self.sent + bytes, now + AGAIN);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_sent_than_has_come_and_not_again_at_once() {
        let mut candidate = Candidate::new("192.0.2.1:9".parse().unwrap(), 5);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        candidate.heard(50);
        assert!(candidate.asks(37, at(0)));
        candidate.heard(24);
        assert!(!candidate.asks(37, at(99)), "too early");
        assert!(candidate.asks(37, at(100)));
        assert!(!candidate.asks(37, at(300)), "that would be more than has come");
    }
}
