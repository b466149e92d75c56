//! Frames of UDP datagrams that the network itself sends, and the Internet checksum.

use crate::address::{address_of, fabric_mac_of, mac_of, port_of};
use crate::headers::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6, UDP, UDP_HEADER};
use std::net::{IpAddr, Ipv4Addr};
use weir_base::Ecn;
use weir_plan::Ip;

/// Time to live, hop limit: the common initial value of hosts.
const HOPS: u8 = 64;

/// Builds the frame of a UDP datagram whose IP packet has `length` bytes, for datagrams that the fabric injects itself. The
/// UDP checksum is left out over IPv4, as it permits (RFC 768), and is there over IPv6, which does not (RFC 8200, section 8.1).
pub(crate) fn udp_frame(from: usize, to: usize, ip: Ip, flow: usize, length: usize, ecn: Ecn) -> Vec<u8> {
    let headers = ip.header() as usize + UDP_HEADER;
    let mut frame = vec![0; ETHERNET + length.max(headers)];
    frame[..6].copy_from_slice(&mac_of(to));
    frame[6..12].copy_from_slice(&fabric_mac_of(from));
    let (ethernet, packet) = frame.split_at_mut(ETHERNET);
    let (header, udp) = packet.split_at_mut(ip.header() as usize);
    udp[..2].copy_from_slice(&port_of(flow).to_be_bytes());
    udp[2..4].copy_from_slice(&port_of(flow).to_be_bytes());
    let length = udp.len() as u16;
    udp[4..6].copy_from_slice(&length.to_be_bytes());
    match (address_of(from, ip), address_of(to, ip)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet[12..].copy_from_slice(&ETHERTYPE_IPV4);
            header[0] = 0x45;
            header[1] = ecn as u8;
            header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            header[6] = 0x40; // don't fragment
            header[8] = HOPS;
            header[9] = UDP;
            header[12..16].copy_from_slice(&source.octets());
            header[16..20].copy_from_slice(&destination.octets());
            let sum = checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (source, destination) => {
            ethernet[12..].copy_from_slice(&ETHERTYPE_IPV6);
            header[0] = 0x60;
            header[1] = (ecn as u8) << 4;
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header[6] = UDP;
            header[7] = HOPS;
            for (address, at) in [(source, 8), (destination, 24)] {
                if let IpAddr::V6(address) = address {
                    header[at..at + 16].copy_from_slice(&address.octets());
                }
            }
        }
    }
    sum_up(&mut frame, ip);
    frame
}

/// Addresses a frame of [`udp_frame`] over IPv4 to a group.
pub(crate) fn address_to_group(frame: &mut [u8], group: Ipv4Addr) {
    let [_, b, c, d] = group.octets();
    // The low 23 bits of the group (RFC 1112, section 6.4).
    frame[..6].copy_from_slice(&[1, 0, 0x5e, b & 0x7f, c, d]);
    let header = &mut frame[ETHERNET..][..20];
    header[16..20].copy_from_slice(&group.octets());
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Writes the UDP checksum over IPv6 of a datagram whose payload is complete; over IPv4 there is none.
pub(crate) fn sum_up(frame: &mut [u8], ip: Ip) {
    if ip == Ip::V6 {
        let (header, udp) = frame[ETHERNET..].split_at_mut(ip.header() as usize);
        udp[6..8].fill(0);
        let sum = checksum_v6(header, udp);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The checksum of a payload over IPv6, with the pseudo-header (RFC 8200, section 8.1): addresses, length and next header. A
/// sum of zero becomes 0xffff, since zero means "no checksum".
pub(crate) fn checksum_v6(header: &[u8], payload: &[u8]) -> u16 {
    let mut bytes = header[8..40].to_vec();
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend([0, 0, 0, header[6]]);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    match checksum(&bytes) {
        0 => 0xffff,
        sum => sum,
    }
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
