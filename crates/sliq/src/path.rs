//! The address of a peer. Its packets may come from a new address, since it has moved or a translator has given it another port; anybody
//! may also have forwarded one of its packets. The peer counts as being there when it sends back, from the new address, a number that was
//! sent there. Until then nothing else is sent to that address, and no more bytes than have come from it.

use core::net::SocketAddr;
use weir_base::{Span, Time};

/// The number is retransmitted after this time, if packets still come from the address.
const AGAIN: Span = Span::from_millis(100);

/// An address from which packets of the peer come, and which is not confirmed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The address.
    pub(crate) address: SocketAddr,
    /// The number that the peer is to send back.
    pub(crate) challenge: u64,
    /// Bytes received from the address, and sent to it.
    received: usize,
    sent: usize,
    due: Time,
}

impl Candidate {
    /// A new address, with the number to send to it.
    pub(crate) fn new(address: SocketAddr, challenge: u64) -> Candidate {
        Candidate { address, challenge, received: 0, sent: 0, due: Time::ZERO }
    }

    /// This many bytes have come from the address.
    pub(crate) fn heard(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
    }

    /// Whether a packet with the number, of this many bytes, is to be sent now; if so, it counts as sent.
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
    fn challenges_are_spaced_and_limited_to_the_bytes_received_from_the_address() {
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
