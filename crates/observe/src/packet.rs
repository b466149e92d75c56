//! The headers of a captured packet: of the link (Ethernet with VLAN tags and MPLS labels, Linux "cooked", loopback, raw), of IPv4 (RFC 791) and
//! IPv6 (RFC 8200), of TCP (RFC 9293, RFC 7323, RFC 2018) and UDP (RFC 768). What cannot be read so far is told apart by its reason.

mod link;
mod tcp;

pub use tcp::Tcp;

use crate::Frame;
use crate::bytes::be16;
use core::net::IpAddr;
use serde::Serialize;
use weir_base::Ecn;

/// A packet of IP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// Where it is from, and where it goes.
    pub addresses: [IpAddr; 2],
    /// The protocol that IP carries (6 is TCP, 17 is UDP).
    pub protocol: u8,
    /// The ports of TCP and UDP; 0 for other protocols.
    pub ports: [u16; 2],
    /// The codepoint of its IP header.
    pub ecn: Ecn,
    /// The identification of IPv4.
    pub identification: Option<u16>,
    /// Whether it is of IPv4 and may not be fragmented, so that the identification means nothing to IP (RFC 6864).
    pub is_atomic: bool,
    /// Its length in bytes from the IP header on.
    pub length: u32,
    /// The header of TCP.
    pub tcp: Option<Tcp>,
}

/// Why a packet is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// The capture has a link type that weir cannot read.
    LinkType,
    /// It is not of IP: ARP and the like.
    NotIp,
    /// It is in a tunnel: IP in IP, GRE, ESP.
    Tunnel,
    /// It is a part of a fragmented packet.
    Fragment,
    /// Its snap length ends before its headers do.
    Short,
    /// Its headers contradict themselves.
    Malformed,
}

impl Skipped {
    /// All reasons.
    pub const ALL: [Skipped; 6] = [
        Skipped::LinkType,
        Skipped::NotIp,
        Skipped::Tunnel,
        Skipped::Fragment,
        Skipped::Short,
        Skipped::Malformed,
    ];

    /// What a table says of packets that were left out for this reason.
    pub fn words(self) -> &'static str {
        [
            "of an unknown link type",
            "not of IP",
            "in tunnels",
            "fragments",
            "cut within their headers",
            "malformed",
        ][self as usize]
    }
}

/// The number of TCP.
pub const TCP: u8 = 6;
/// The number of UDP.
pub const UDP: u8 = 17;
/// IPv4, IPv6, GRE and ESP within IP.
const TUNNELS: [u8; 4] = [4, 41, 47, 50];

impl Packet {
    /// Reads the headers of a frame.
    ///
    /// # Errors
    /// The packet is of another kind, or is not whole up to the end of its headers.
    pub fn of(frame: &Frame<'_>) -> Result<Packet, Skipped> {
        Packet::with_bytes(frame).map(|(packet, _)| packet)
    }

    /// What was captured of a frame from its IP header on, padding behind the packet included.
    ///
    /// # Errors
    /// The capture has an unknown link type, or the frame is not of IP.
    pub fn ip<'a>(frame: &Frame<'a>) -> Result<&'a [u8], Skipped> {
        link::payload(frame.link_type, frame.bytes)
    }

    /// Reads the headers as [`Packet::of`], and returns what was captured behind the IP header, too.
    ///
    /// # Errors
    /// As of [`Packet::of`].
    pub fn with_bytes<'a>(frame: &Frame<'a>) -> Result<(Packet, &'a [u8]), Skipped> {
        let ip = link::payload(frame.link_type, frame.bytes)?;
        let behind_link = (frame.bytes.len() - ip.len()) as u32;
        Packet::of_ip(ip, frame.length.saturating_sub(behind_link))
    }

    /// Of a packet that begins with its IP header; `length` is that of the whole packet on the wire.
    fn of_ip(ip: &[u8], length: u32) -> Result<(Packet, &[u8]), Skipped> {
        match ip.first().ok_or(Skipped::Short)? >> 4 {
            4 => Packet::of_ipv4(ip, length),
            6 => Packet::of_ipv6(ip, length),
            _ => Err(Skipped::NotIp),
        }
    }

    fn of_ipv4(ip: &[u8], length: u32) -> Result<(Packet, &[u8]), Skipped> {
        let head: &[u8; 20] = ip.first_chunk().ok_or(Skipped::Short)?;
        let header = usize::from(head[0] & 15) * 4;
        let told = u32::from(u16::from_be_bytes([head[2], head[3]]));
        // A packet that the sending card still has to segment may be longer than 16 bits tell, and says 0 then.
        let length = if told == 0 { length } else { told };
        if header < 20 || length < header as u32 {
            return Err(Skipped::Malformed);
        }
        // The flag of more fragments, and the offset of this one.
        if u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0 {
            return Err(Skipped::Fragment);
        }
        let [from, to] =
            [12, 16].map(|at| IpAddr::from([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let packet = Packet {
            addresses: [from, to],
            protocol: head[9],
            ports: [0; 2],
            ecn: Ecn::from_bits(head[1]),
            identification: Some(u16::from_be_bytes([head[4], head[5]])),
            is_atomic: head[6] & 0x40 != 0,
            length,
            tcp: None,
        };
        packet.with_transport(ip.get(header..).ok_or(Skipped::Short)?, length - header as u32)
    }

    fn of_ipv6(ip: &[u8], length: u32) -> Result<(Packet, &[u8]), Skipped> {
        let head: &[u8; 40] = ip.first_chunk().ok_or(Skipped::Short)?;
        let told = u32::from(u16::from_be_bytes([head[4], head[5]]));
        let length = if told == 0 { length } else { 40 + told };
        let address = |at: usize| {
            let bytes: [u8; 16] = std::array::from_fn(|index| head[at + index]);
            IpAddr::from(bytes)
        };
        let (mut protocol, mut header) = (head[6], 40);
        // Hop-by-hop options, routing, fragment, destination options: each gives the next one's number and its own length.
        while let 0 | 43 | 44 | 60 = protocol {
            if protocol == 44 {
                return Err(Skipped::Fragment);
            }
            let extension = ip.get(header..header + 2).ok_or(Skipped::Short)?;
            (protocol, header) = (extension[0], header + 8 + 8 * usize::from(extension[1]));
        }
        let packet = Packet {
            addresses: [address(8), address(24)],
            protocol,
            ports: [0; 2],
            ecn: Ecn::from_bits(head[1] >> 4),
            identification: None,
            is_atomic: false,
            length,
            tcp: None,
        };
        let payload = length.checked_sub(header as u32).ok_or(Skipped::Malformed)?;
        packet.with_transport(ip.get(header..).ok_or(Skipped::Short)?, payload)
    }

    /// The packet with the header behind that of IP, and the number of bytes there.
    fn with_transport(mut self, bytes: &[u8], length: u32) -> Result<(Packet, &[u8]), Skipped> {
        if TUNNELS.contains(&self.protocol) {
            return Err(Skipped::Tunnel);
        }
        if let TCP | UDP = self.protocol {
            let port = |at| be16(bytes, at).ok_or(Skipped::Short);
            self.ports = [port(0)?, port(2)?];
        }
        if self.protocol == TCP {
            self.tcp = Some(Tcp::of(bytes, length)?);
        }
        Ok((self, bytes))
    }
}

#[cfg(test)]
mod tests;
