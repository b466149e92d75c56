//! Datagrams that leave for programs one after another. Those of one flow go to the kernel together, as many as it takes in a packet: it
//! then looks once for the way to the program, and parts them at the program's socket (as UDP GRO and GSO do, since Linux 6.2).

use super::device::Device;
use weir_overlay::site::datagram::{IP, PROTOCOL_UDP, UDP, checksum, pseudo_header, read, udp_checksum};

/// Length of the headers of a datagram without options.
const HEADERS: usize = IP + UDP;
/// The most datagrams in a packet: Linux has taken that many since 4.18 (`UDP_MAX_SEGMENTS`).
const MOST: usize = 64;
/// The longest packet.
const LONGEST: usize = u16::MAX as usize;

/// The datagrams that wait.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// The first one, then the payloads of the others.
    bytes: Vec<u8>,
    count: usize,
    /// Length of the first one's payload.
    segment: usize,
    /// The last one was shorter than the others, so no further one can follow.
    is_closed: bool,
}

impl Bundle {
    /// A datagram leaves by this device: now, or with those that follow it.
    pub(super) fn deliver(&mut self, datagram: &[u8], device: &Device) {
        if !device.takes_bundles() {
            return device.send(datagram);
        }
        let may_follow = is_plain(datagram);
        if may_follow && self.takes(datagram) {
            self.bytes.extend_from_slice(&datagram[HEADERS..]);
            self.count += 1;
            self.is_closed = datagram.len() - HEADERS < self.segment;
            return;
        }
        self.flush(device);
        if !may_follow {
            return device.send(datagram);
        }
        self.bytes.extend_from_slice(datagram);
        (self.count, self.segment, self.is_closed) = (1, datagram.len() - HEADERS, false);
    }

    /// Whether a plain datagram may follow those that wait: what its headers say is theirs, but for its number, which nobody needs where it
    /// is not a fragment (RFC 6864), and its checksums.
    fn takes(&self, datagram: &[u8]) -> bool {
        let alike = [0..2, 6..10, 12..24];
        let payload = datagram.len() - HEADERS;
        !self.is_closed
            && (1..MOST).contains(&self.count)
            && payload <= self.segment
            && self.bytes.len() + payload <= LONGEST
            && alike.into_iter().all(|part| self.bytes[part.clone()] == datagram[part])
    }

    /// All that wait leave. What the kernel refuses is lost, as a network may lose it.
    pub(super) fn flush(&mut self, device: &Device) {
        match self.count {
            0 => return,
            1 => device.send(&self.bytes),
            _ => {
                self.join();
                device.send_bundle(&self.bytes, self.segment as u16);
            }
        }
        self.bytes.clear();
        self.count = 0;
    }

    /// Makes the first one's headers those of the bundle, as [`weir_linux::tun::Tun::send_bundle`] asks for them.
    fn join(&mut self) {
        let bytes = &mut self.bytes;
        let whole = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&whole.to_be_bytes());
        bytes[10..12].fill(0);
        let sum = checksum(&bytes[..IP]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes[IP + 4..IP + 6].copy_from_slice(&(whole - IP as u16).to_be_bytes());
        let sum = pseudo_header(bytes);
        bytes[IP + 6..IP + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Whether a datagram is a whole one of UDP over IPv4, with a payload and a right checksum: that of a bundle is computed anew, which must not
/// make a wrong one right.
fn is_plain(datagram: &[u8]) -> bool {
    let Ok(read) = read(datagram) else { return false };
    let is_whole = read.inner.protocol == PROTOCOL_UDP && HEADERS + read.body.len() == datagram.len();
    is_whole && read.checksum != 0 && !read.body.is_empty() && udp_checksum(datagram) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_overlay::Inner;
    use weir_overlay::site::datagram::{Fate, fill_checksum, write};

    /// A datagram of 10.1.0.1:5000 to 10.2.0.1 and this port, with this payload.
    fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
        let inner = Inner {
            source: 0x0a01_0001,
            destination: 0x0a02_0001,
            source_port: 5000,
            destination_port: port,
            protocol: PROTOCOL_UDP,
            dscp: 0,
        };
        let mut datagram = Vec::new();
        assert!(write(&inner, Fate { hops: 1, ecn: 0, checksum: 0, sequence: 7 }, payload, &mut datagram));
        fill_checksum(&mut datagram);
        datagram
    }

    fn of(first: &[u8]) -> Bundle {
        Bundle { bytes: first.to_vec(), count: 1, segment: first.len() - HEADERS, is_closed: false }
    }

    #[test]
    fn datagrams_of_one_flow_follow_each_other_until_one_is_shorter() {
        let first = datagram(6000, b"four");
        assert!(of(&first).takes(&datagram(6000, b"more")));
        assert!(of(&first).takes(&datagram(6000, b"end")));
        assert!(!of(&first).takes(&datagram(6000, b"longer")));
        assert!(!of(&first).takes(&datagram(6001, b"more")), "it is of another flow");
        assert!(!Bundle { is_closed: true, ..of(&first) }.takes(&datagram(6000, b"more")));
        assert!(!Bundle { count: MOST, ..of(&first) }.takes(&datagram(6000, b"more")));
        let mut marked = datagram(6000, b"more");
        marked[1] |= 3;
        assert!(!of(&first).takes(&marked), "a mark is that of one datagram");
        let full = vec![0; 40_000];
        assert!(!of(&datagram(6000, &full)).takes(&datagram(6000, &full)), "no packet is so long");
    }

    #[test]
    fn only_whole_datagrams_with_right_checksums_are_bundled() {
        let good = datagram(6000, b"four");
        assert!(is_plain(&good));
        for at in HEADERS - 2..good.len() {
            let mut wrong = good.clone();
            wrong[at] ^= 1;
            assert!(!is_plain(&wrong), "byte {at}");
        }
        let mut without = good.clone();
        without[HEADERS - 2..HEADERS].fill(0);
        assert!(!is_plain(&without));
        let mut fragment = good.clone();
        fragment[6] = 0x20;
        assert!(!is_plain(&fragment));
        assert!(!is_plain(&datagram(6000, b"")));
    }

    #[test]
    fn the_headers_of_a_bundle_are_those_of_the_whole() {
        let mut bundle = of(&datagram(6000, b"four"));
        bundle.bytes.extend_from_slice(b"more");
        bundle.join();
        let bytes = &mut bundle.bytes;
        assert_eq!((bytes[2..4].to_vec(), bytes[24..26].to_vec()), (vec![0, 36], vec![0, 16]));
        assert_eq!(checksum(&bytes[..IP]), 0);
        // Who adds up the rest of the datagram finds the checksum of the whole (CHECKSUM_PARTIAL, linux/skbuff.h).
        let sum = checksum(&bytes[IP..]);
        bytes[HEADERS - 2..HEADERS].copy_from_slice(&sum.to_be_bytes());
        assert!(is_plain(bytes));
    }
}
