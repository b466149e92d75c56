//! The body of a simulated packet behind its IP header: a TCP segment, or a UDP datagram with a short head of real bytes and a
//! count of zeros. Payload that is never read is represented by its length.

use crate::Segment;

/// A UDP header (RFC 768).
const UDP_HEADER: u32 = 8;
/// The IPv4 header that [`Segment::packet_len`] includes.
const IPV4_HEADER: u32 = 20;

/// The body of a packet.
#[derive(Debug, Clone)]
pub enum Body {
    /// TCP.
    Segment(Segment),
    /// UDP.
    Datagram(Datagram),
}

/// The payload of a UDP datagram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Datagram {
    /// The first bytes of the payload.
    pub head: Vec<u8>,
    /// Number of zeros behind them.
    pub zeros: u32,
}

impl Datagram {
    /// Length of the payload in bytes.
    pub fn payload(&self) -> u32 {
        self.head.len() as u32 + self.zeros
    }

    /// Sets a payload of `bytes` bytes that begins with `head`; a longer head is cut. The buffer of the old head is reused.
    #[inline]
    pub fn set(&mut self, head: &[u8], bytes: u32) {
        let head = &head[..head.len().min(bytes as usize)];
        self.head.clear();
        self.head.extend_from_slice(head);
        self.zeros = bytes - head.len() as u32;
    }

    /// Appends all bytes of the payload.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.head);
        bytes.resize(bytes.len() + self.zeros as usize, 0);
    }
}

impl Body {
    /// The segment, for writing. A datagram is replaced by an empty segment.
    #[inline]
    pub fn segment_mut(&mut self) -> &mut Segment {
        if !matches!(self, Body::Segment(_)) {
            *self = Body::Segment(Segment::default());
        }
        match self {
            Body::Segment(segment) => segment,
            Body::Datagram(_) => unreachable!("the body was made a segment just above"),
        }
    }

    /// The datagram, for writing. A segment is replaced by an empty datagram.
    #[inline]
    pub fn datagram_mut(&mut self) -> &mut Datagram {
        if !matches!(self, Body::Datagram(_)) {
            *self = Body::Datagram(Datagram::default());
        }
        match self {
            Body::Datagram(datagram) => datagram,
            Body::Segment(_) => unreachable!("the body was made a datagram just above"),
        }
    }

    /// Length in bytes behind the IP header, the header of TCP or UDP included.
    #[inline]
    pub fn length(&self) -> u32 {
        match self {
            Body::Segment(segment) => segment.packet_len() - IPV4_HEADER,
            Body::Datagram(datagram) => UDP_HEADER + datagram.payload(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_its_headers_and_its_payload() {
        let mut body = Body::Segment(Segment { len: 1448, ..Segment::default() });
        // 20 bytes of TCP header, 12 of timestamps.
        assert_eq!(body.length(), 1448 + 32);
        body.datagram_mut().set(b"head", 100);
        assert_eq!(body.length(), 108);
        body.datagram_mut().set(b"longer than three", 3);
        let Body::Datagram(datagram) = &body else { panic!("not a datagram") };
        assert_eq!((datagram.head.as_slice(), datagram.zeros), (&b"lon"[..], 0));
    }
}
