//! A UDP datagram in an IP packet (RFC 791, 8200, 768): where its addresses, its payload and its checksum are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_fabric::DatagramView;

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Where the UDP header begins in an IP packet. `None` for other protocols, for all fragments but the first, which alone has
/// the header, and for IPv6 packets with extension headers.
fn header(ip: &[u8]) -> Option<usize> {
    match *ip {
        [first, ..] if first >> 4 == 4 => {
            let length = usize::from(first & 15) * 4;
            let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x1fff;
            (length >= 20 && *ip.get(9)? == UDP && fragment == 0).then_some(length)
        }
        [first, ..] if first >> 4 == 6 => (*ip.get(6)? == UDP).then_some(40),
        _ => None,
    }
}

/// The UDP datagram in an IP packet; `None` if there is none. For a first fragment, the head is the part of the payload in that
/// fragment.
pub fn datagram(ip: &mut [u8]) -> Option<DatagramView<'_>> {
    let at = header(ip)?;
    let addresses: [IpAddr; 2] = if ip[0] >> 4 == 4 {
        let address = |at: usize| Some(Ipv4Addr::from(*ip.get(at..)?.first_chunk::<4>()?).into());
        [address(12)?, address(16)?]
    } else {
        let address = |at: usize| Some(Ipv6Addr::from(*ip.get(at..)?.first_chunk::<16>()?).into());
        [address(8)?, address(24)?]
    };
    let (udp, payload) = ip.get_mut(at..)?.split_first_chunk_mut::<UDP_HEADER>()?;
    let [a, b, c, d, e, f, checksum @ ..] = udp;
    let length = usize::from(u16::from_be_bytes([*e, *f])).checked_sub(UDP_HEADER)?;
    let end = length.min(payload.len());
    Some(DatagramView {
        source: SocketAddr::new(addresses[0], u16::from_be_bytes([*a, *b])),
        destination: SocketAddr::new(addresses[1], u16::from_be_bytes([*c, *d])),
        head: &mut payload[..end],
        checksum: Some(checksum),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::udp_frame;
    use crate::headers::ETHERNET;
    use weir_base::Ecn;
    use weir_plan::Ip;

    #[test]
    fn a_datagram_shows_addresses_payload_and_checksum() {
        for (ip, source, checked) in
            [(Ip::V4, "10.0.0.1:23001", false), (Ip::V6, "[fd77:6569:7200::1]:23001", true)]
        {
            let mut frame = udp_frame(0, 2, ip, 1, 100, Ecn::NotEct);
            let view = datagram(&mut frame[ETHERNET..]).unwrap();
            assert_eq!((view.source, view.destination.port()), (source.parse().unwrap(), 23_001));
            assert_eq!(view.head.len(), 100 - ip.header() as usize - 8);
            assert_eq!(view.checksum.is_some_and(|sum| *sum != [0, 0]), checked);
        }
    }

    #[test]
    fn later_fragments_other_protocols_and_truncated_packets_are_not_datagrams() {
        let frame = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
        let changed = |at: usize, value: u8| {
            let mut ip = frame[ETHERNET..].to_vec();
            ip[at] = value;
            datagram(&mut ip).is_none()
        };
        assert!(changed(7, 5) && changed(9, 6) && changed(0, 0x44) && !changed(6, 0x20));
        for length in 0..28 {
            assert!(datagram(&mut frame[ETHERNET..][..length].to_vec()).is_none(), "{length}");
        }
        // A UDP length below that of its header, and one beyond the packet.
        assert!(changed(25, 7));
        let mut longer = frame[ETHERNET..].to_vec();
        longer[24] = 9;
        assert_eq!(datagram(&mut longer).unwrap().head.len(), 72);
    }
}
