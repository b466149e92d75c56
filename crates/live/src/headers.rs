//! The fields that weir reads of IP and TCP headers (RFC 791, 8200, 9293, 2018), and their numbers.

use crate::address::{node_of, node_of_v6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Most SACK blocks that fit into a TCP header.
pub(crate) const SACK_BLOCKS: usize = 4;
/// The type of Ethernet frames with IPv4 (IEEE 802 numbers of IANA).
pub const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// The type of Ethernet frames with IPv6.
pub const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const UDP_HEADER: usize = 8;

/// The fields that weir reads of an IP header.
pub(crate) struct IpFacts<'a> {
    pub(crate) source: usize,
    pub(crate) destination: usize,
    /// Whether the packet leaves its own network: its destination is neither a group nor valid on one link alone.
    pub(crate) travels: bool,
    /// Whether its destination is a group of IPv4 (RFC 1112).
    pub(crate) is_to_group: bool,
    /// Protocol of the payload; `None` for all fragments but the first, whose payload begins in mid-packet.
    pub(crate) protocol: Option<u8>,
    pub(crate) payload: &'a [u8],
}

impl IpFacts<'_> {
    pub(crate) fn read_v4(ip: &[u8]) -> Option<IpFacts<'_>> {
        if ip.len() < 20 || ip[0] >> 4 != 4 {
            return None;
        }
        let (header, total) = (usize::from(ip[0] & 15) * 4, usize::from(u16::from_be_bytes([ip[2], ip[3]])));
        if header < 20 || total < header || total != ip.len() {
            return None;
        }
        let first = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
        let (source, destination) = (node_of(u32_at(ip, 12)?), node_of(u32_at(ip, 16)?));
        // Groups and broadcasts are above 224.0.0.0 (RFC 1112), addresses of one link below 169.254.0.0/16 (RFC 3927).
        let travels = ip[16] < 224 && ip[16..18] != [169, 254];
        Some(IpFacts {
            source,
            destination,
            travels,
            is_to_group: (224..240).contains(&ip[16]),
            protocol: first.then_some(ip[9]),
            payload: &ip[header..],
        })
    }

    /// Extension headers count as a protocol of their own: hosts here send none.
    pub(crate) fn read_v6(ip: &[u8]) -> Option<IpFacts<'_>> {
        let (header, payload) = ip.split_at_checked(40)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if header[0] >> 4 != 6 || length != payload.len() {
            return None;
        }
        let source = node_of_v6(u128::from_be_bytes(*header[8..].first_chunk()?));
        let destination = node_of_v6(u128::from_be_bytes(*header[24..].first_chunk()?));
        // Groups are in ff00::/8, addresses of one link in fe80::/10 (RFC 4291, section 2.4).
        let travels = header[24] != 0xff && !(header[24] == 0xfe && header[25] & 0xc0 == 0x80);
        let (is_to_group, protocol) = (false, Some(header[6]));
        Some(IpFacts { source, destination, travels, is_to_group, protocol, payload })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpFacts {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) payload: u32,
    pub(crate) syn: bool,
    pub(crate) ack: bool,
    pub(crate) sack: [(u32, u32); SACK_BLOCKS],
    pub(crate) sack_blocks: usize,
}

impl TcpFacts {
    pub(crate) fn read(tcp: &[u8]) -> Option<TcpFacts> {
        let header = usize::from(tcp.get(12)? >> 4) * 4;
        if header < 20 || header > tcp.len() {
            return None;
        }
        let flags = tcp[13];
        let mut facts = TcpFacts {
            sequence: u32_at(tcp, 4)?,
            acknowledgement: u32_at(tcp, 8)?,
            payload: (tcp.len() - header) as u32,
            syn: flags & 0x02 != 0,
            ack: flags & 0x10 != 0,
            sack: [(0, 0); SACK_BLOCKS],
            sack_blocks: 0,
        };
        facts.read_sack(&tcp[20..header]);
        Some(facts)
    }

    /// Walks the options to the SACK blocks (kind 5, RFC 2018 section 3).
    fn read_sack(&mut self, mut options: &[u8]) {
        while let [kind, rest @ ..] = options {
            options = match (kind, rest) {
                (0, _) => return,
                (1, rest) => rest,
                (kind, [length, ..]) if (2..=options.len()).contains(&usize::from(*length)) => {
                    let (option, behind) = options.split_at((*length).into());
                    if *kind == 5 {
                        for (block, into) in option[2..].chunks_exact(8).zip(&mut self.sack) {
                            if let (Some(start), Some(end)) = (u32_at(block, 0), u32_at(block, 4)) {
                                *into = (start, end);
                                self.sack_blocks += 1;
                            }
                        }
                        return;
                    }
                    behind
                }
                _ => return,
            };
        }
    }
}

/// The source and the destination of an IP packet; `None` if its header is not whole.
pub(crate) fn addresses(ip: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match ip.first()? >> 4 {
        4 => Some((Ipv4Addr::from_bits(u32_at(ip, 12)?).into(), Ipv4Addr::from_bits(u32_at(ip, 16)?).into())),
        6 => {
            let at = |at: usize| {
                let bytes = ip.get(at..at + 16)?.first_chunk::<16>()?;
                Some(IpAddr::from(Ipv6Addr::from(*bytes)))
            };
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
