//! The first bytes of a packet, as far as its flow and its place there need them: IPv4 (RFC 791) without options, IPv6 (RFC 8200) without
//! extensions, the ports and the sequence number (RFC 9293).

use crate::bytes::be32;
use crate::packet::{TCP, UDP};
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_base::{CODEPOINTS, Ecn};

/// Bytes that an event has of a packet, from the IP header on: those of IPv6 and the first 8 of TCP.
pub const HEADER: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    ecn: Ecn,
    /// The flow, as a digest; `None` for what is not of IP.
    pub(super) flow: Option<u64>,
    /// The sequence number of TCP.
    pub(super) sequence: Option<u32>,
}

impl Header {
    pub(super) fn of(bytes: &[u8; HEADER]) -> Header {
        let (traffic, protocol, addresses, behind) = match bytes[0] >> 4 {
            4 => (bytes[1], bytes[9], &bytes[12..20], usize::from(bytes[0] & 15) * 4),
            6 => ((bytes[0] << 4) | (bytes[1] >> 4), bytes[6], &bytes[8..40], 40),
            _ => return Header { ecn: Ecn::NotEct, flow: None, sequence: None },
        };
        let has_ports = protocol == TCP || protocol == UDP;
        let ports = if has_ports { be32(bytes, behind) } else { None };
        let mut hasher = DefaultHasher::new();
        (protocol, addresses, ports).hash(&mut hasher);
        let sequence = if protocol == TCP { be32(bytes, behind + 4) } else { None };
        Header { ecn: CODEPOINTS[usize::from(traffic & 3)], flow: Some(hasher.finish()), sequence }
    }

    pub(super) fn ecn(&self) -> Ecn {
        self.ecn
    }
}
