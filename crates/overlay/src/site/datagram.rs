//! IPv4 datagrams of a site's programs (RFC 791), as they come and as they leave: the fields that a flow's packets share, and the body that
//! the overlay carries.
//!
//! A whole UDP datagram without options is carried as its payload alone; its headers are in the flow's context. Everything else (TCP, ICMP,
//! fragments, options) is carried whole, as IP within IP (protocol 4, RFC 2003).

use crate::context::Inner;

/// Length of an IPv4 header without options in bytes.
pub const IP: usize = 20;
/// Length of a UDP header in bytes (RFC 768).
pub const UDP: usize = 8;
/// The protocol number of UDP (IANA).
pub const PROTOCOL_UDP: u8 = 17;
/// The protocol number of TCP (IANA). Among a flow's fields it says that the packets are segments between proxies.
pub const PROTOCOL_TCP: u8 = 6;
/// The protocol number of IPv4 within IP (IANA).
pub(super) const PROTOCOL_IP: u8 = 4;
/// The time to live of a datagram that leaves the overlay, less the links that it has passed (RFC 1700: the recommended default).
const LIVES: u8 = 64;

/// Why a datagram is not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It is of another version of IP.
    OtherVersion,
    /// It is no datagram, or shorter than it says.
    Malformed,
    /// Its time to live is over.
    Expired,
}

/// A datagram as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    /// The fields that packets of its flow share. Its protocol is 4 if the datagram is carried whole.
    pub inner: Inner,
    /// ECN field.
    pub ecn: u8,
    /// Checksum of the UDP header; 0 if the datagram is carried whole.
    pub checksum: u16,
    /// What the overlay carries.
    pub body: &'a [u8],
}

fn number(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]))
}

fn address(bytes: &[u8], at: usize) -> u32 {
    u32::from(number(bytes, at)) << 16 | u32::from(number(bytes, at + 2))
}

/// The source and the destination of an IPv4 datagram; `None` if it is none.
pub fn addresses(datagram: &[u8]) -> Option<(u32, u32)> {
    (datagram.len() >= IP && datagram[0] >> 4 == 4).then(|| (address(datagram, 12), address(datagram, 16)))
}

/// Reads a datagram.
///
/// # Errors
/// It is not carried, for this reason.
pub fn read(datagram: &[u8]) -> Result<Read<'_>, Unreadable> {
    if datagram.first().is_some_and(|first| first >> 4 != 4) {
        return Err(Unreadable::OtherVersion);
    }
    let (source, destination) = addresses(datagram).ok_or(Unreadable::Malformed)?;
    let header = usize::from(datagram[0] & 15) * 4;
    let length = usize::from(number(datagram, 2));
    if header < IP || length < header || length > datagram.len() {
        return Err(Unreadable::Malformed);
    }
    if datagram[8] == 0 {
        return Err(Unreadable::Expired);
    }
    let whole = &datagram[..length];
    let (dscp, ecn, protocol) = (whole[1] >> 2, whole[1] & 3, whole[9]);
    // The bit "more fragments" and the fragment's place.
    let is_fragment = number(whole, 6) & 0x3fff != 0;
    let rest = &whole[header..];
    let has_ports = !is_fragment && matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP) && rest.len() >= 4;
    let (source_port, destination_port) = if has_ports { (number(rest, 0), number(rest, 2)) } else { (0, 0) };
    let is_plain = protocol == PROTOCOL_UDP
        && has_ports
        && header == IP
        && rest.len() >= UDP
        && usize::from(number(rest, 4)) == rest.len();
    let inner = Inner {
        source,
        destination,
        source_port,
        destination_port,
        protocol: if is_plain { PROTOCOL_UDP } else { PROTOCOL_IP },
        dscp,
    };
    Ok(match is_plain {
        true => Read { inner, ecn, checksum: number(rest, 6), body: &rest[UDP..] },
        false => Read { inner, ecn, checksum: 0, body: whole },
    })
}

/// What a packet of the overlay says of the datagram besides the flow's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// The links that it has passed.
    pub hops: u8,
    /// ECN field.
    pub ecn: u8,
    /// Checksum of the UDP header.
    pub checksum: u16,
    /// Its number within the flow.
    pub sequence: u32,
}

/// Writes the datagram that leaves here into `to`. Returns whether it leaves: its addresses must be those of its flow, and its time to live
/// must exceed the links that it has passed.
pub fn write(inner: &Inner, fate: Fate, body: &[u8], to: &mut Vec<u8>) -> bool {
    to.clear();
    let lives = if inner.protocol == PROTOCOL_IP {
        let is_of_flow =
            |read: Read<'_>| (read.inner.source, read.inner.destination) == (inner.source, inner.destination);
        if !read(body).is_ok_and(is_of_flow) {
            return false;
        }
        to.extend_from_slice(body);
        // A congested node may have marked it (RFC 6040, 4.2: the outer mark is copied).
        to[1] = to[1] & !3 | fate.ecn & 3;
        to[8]
    } else {
        let length = IP + UDP + body.len();
        let Ok(total) = u16::try_from(length) else { return false };
        let mut header = [0; IP + UDP];
        header[0] = 0x45;
        header[1] = inner.dscp << 2 | fate.ecn & 3;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[4..6].copy_from_slice(&(fate.sequence as u16).to_be_bytes());
        header[9] = inner.protocol;
        header[12..16].copy_from_slice(&inner.source.to_be_bytes());
        header[16..20].copy_from_slice(&inner.destination.to_be_bytes());
        header[20..22].copy_from_slice(&inner.source_port.to_be_bytes());
        header[22..24].copy_from_slice(&inner.destination_port.to_be_bytes());
        header[24..26].copy_from_slice(&(total - IP as u16).to_be_bytes());
        header[26..28].copy_from_slice(&fate.checksum.to_be_bytes());
        to.extend_from_slice(&header);
        to.extend_from_slice(body);
        LIVES
    };
    if lives <= fate.hops {
        return false;
    }
    to[8] = lives - fate.hops;
    to[10..12].fill(0);
    let header = usize::from(to[0] & 15) * 4;
    let Some(sum) = to.get(..header).map(checksum) else { return false };
    to[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Writes the checksum of a whole UDP datagram whose host has left it to its card (RFC 768). Others are left as they are.
pub fn fill_checksum(datagram: &mut [u8]) {
    let Ok(Read { inner: Inner { protocol: PROTOCOL_UDP, .. }, body, .. }) = read(datagram) else { return };
    let whole = IP + UDP + body.len();
    datagram[IP + 6..IP + 8].fill(0);
    // Zero would say that there is none.
    let sum = match udp_checksum(&datagram[..whole]) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[IP + 6..IP + 8].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum of a UDP datagram without options whose own field is zero; 0 if the field has the checksum (RFC 768).
pub fn udp_checksum(datagram: &[u8]) -> u16 {
    !folded(sum_of_pseudo_header(datagram) + sum(datagram.get(IP..).unwrap_or_default()))
}

/// The sum of the pseudo-header of a UDP datagram without options: what stands in the field while the checksum is left to others.
pub fn pseudo_header(datagram: &[u8]) -> u16 {
    folded(sum_of_pseudo_header(datagram))
}

fn sum_of_pseudo_header(datagram: &[u8]) -> u64 {
    let addresses = sum(datagram.get(12..IP).unwrap_or_default());
    addresses + u64::from(PROTOCOL_UDP) + datagram.len().saturating_sub(IP) as u64
}

/// The checksum of bytes whose own field is zero (RFC 1071); 0 if the field has the checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    !folded(sum(bytes))
}

/// The sum of numbers of 16 bits, in parts of 32 bits: it is the same once it is folded (RFC 1071, section 2).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).map(|word| u64::from(u32::from_be_bytes(*word))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of 10.1.0.1:5000 to 10.2.0.1:6000 with this payload, as RFC 791 and RFC 768 lay it out.
    fn udp(payload: &[u8]) -> Vec<u8> {
        let inner = Inner {
            source: 0x0a01_0001,
            destination: 0x0a02_0001,
            source_port: 5000,
            destination_port: 6000,
            protocol: PROTOCOL_UDP,
            dscp: 46,
        };
        let mut datagram = Vec::new();
        let fate = Fate { hops: 0, ecn: 1, checksum: 0xbeef, sequence: 7 };
        assert!(write(&inner, fate, payload, &mut datagram));
        datagram
    }

    #[test]
    fn a_udp_datagram_is_carried_as_its_payload_and_leaves_as_it_came() {
        let datagram = udp(b"hello");
        let read = read(&datagram).unwrap();
        assert_eq!((read.body, read.checksum, read.ecn, read.inner.dscp), (&b"hello"[..], 0xbeef, 1, 46));
        let mut out = Vec::new();
        let fate = Fate { hops: 0, ecn: read.ecn, checksum: read.checksum, sequence: 7 };
        assert!(write(&read.inner, fate, read.body, &mut out));
        assert_eq!(out, datagram);
        // A header with its checksum sums to zero.
        assert_eq!(checksum(&out[..IP]), 0);
    }

    #[test]
    fn a_checksum_is_that_of_the_example_in_rfc_1071() {
        // Section 3: the sum of 0001, f203, f4f5 and f6f7 is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
        // A last byte by itself is followed by zeros.
        assert_eq!(checksum(&bytes[..7]), checksum(&[&bytes[..7], &[0]].concat()));
    }

    #[test]
    fn a_checksum_that_a_host_has_left_out_is_written() {
        for payload in [&b"odd"[..], b"even", b""] {
            let mut datagram = udp(payload);
            fill_checksum(&mut datagram);
            let length = (UDP + payload.len()) as u8;
            let pseudo = [&datagram[12..20], &[0, PROTOCOL_UDP, 0, length], &datagram[IP..]].concat();
            assert_eq!((checksum(&pseudo), udp_checksum(&datagram)), (0, 0), "{payload:?}");
            let without = [&datagram[12..20], &[0, PROTOCOL_UDP, 0, length]].concat();
            assert_eq!(pseudo_header(&datagram), !checksum(&without));
        }
        let mut tcp = udp(b"another protocol");
        tcp[9] = PROTOCOL_TCP;
        let before = tcp.clone();
        fill_checksum(&mut tcp);
        assert_eq!(tcp, before);
        fill_checksum(&mut []);
    }

    #[test]
    fn a_link_takes_one_from_the_time_to_live_and_a_mark_stays() {
        let read_in = udp(b"x");
        let read = read(&read_in).unwrap();
        let mut out = Vec::new();
        assert!(write(&read.inner, Fate { hops: 3, ecn: 3, checksum: 0, sequence: 0 }, read.body, &mut out));
        assert_eq!((out[8], out[1] & 3), (61, 3));
        assert!(!write(&read.inner, Fate { hops: 64, ecn: 0, checksum: 0, sequence: 0 }, b"", &mut out));
    }

    #[test]
    fn what_is_not_a_plain_udp_datagram_is_carried_whole() {
        let mut fragment = udp(b"first part");
        fragment[6] = 0x20;
        let read = read(&fragment).unwrap();
        assert_eq!((read.inner.protocol, read.inner.source_port), (PROTOCOL_IP, 0));
        assert_eq!(read.body, fragment);
        let mut out = Vec::new();
        let fate = Fate { hops: 0, ecn: 1, checksum: 0, sequence: 0 };
        assert!(write(&read.inner, fate, read.body, &mut out));
        assert_eq!(out[20..], fragment[20..]);
        let mut tcp = udp(&[0; 12]);
        tcp[9] = PROTOCOL_TCP;
        assert_eq!(super::read(&tcp).unwrap().inner.source_port, 5000);
    }

    #[test]
    fn a_datagram_with_addresses_of_another_flow_does_not_leave() {
        let mut fragment = udp(b"first part");
        fragment[6] = 0x20;
        let inner = read(&fragment).unwrap().inner;
        let other = Inner { source: inner.source + 1, ..inner };
        let fate = Fate { hops: 0, ecn: 0, checksum: 0, sequence: 0 };
        assert!(!write(&other, fate, &fragment, &mut Vec::new()));
    }

    #[test]
    fn every_prefix_of_a_datagram_is_refused() {
        let datagram = udp(b"hello");
        for length in 0..datagram.len() {
            assert_eq!(read(&datagram[..length]), Err(Unreadable::Malformed), "{length}");
        }
        let mut other = datagram.clone();
        other[0] = 0x60;
        assert_eq!(read(&other), Err(Unreadable::OtherVersion));
        let mut old = datagram;
        old[8] = 0;
        assert_eq!(read(&old), Err(Unreadable::Expired));
    }
}
