//! What stands before the IP header, by the link type of the capture (the registry of draft-ietf-opsawg-pcaplinktype).

use super::Skipped;
use crate::bytes::{be16, be32};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// VLAN tags (IEEE 802.1Q, 802.1ad), and an older number of the latter.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// MPLS labels (RFC 3032).
const MPLS: u16 = 0x8847;

/// The bytes from the IP header on.
pub(super) fn payload(link_type: u16, bytes: &[u8]) -> Result<&[u8], Skipped> {
    let behind = |count: usize| bytes.get(count..).ok_or(Skipped::Short);
    let ether = |at: usize| be16(bytes, at).ok_or(Skipped::Short);
    match link_type {
        // Ethernet.
        1 => typed(ether(12)?, behind(14)?),
        // Raw IP; 12 and 14 are its numbers on some BSDs, 228 and 229 are of one version each.
        12 | 14 | 101 | 228 | 229 => Ok(bytes),
        // Loopback of BSD: the address family, in the order of either machine (0) or of the network (108).
        0 | 108 => {
            let family = be32(bytes, 0).ok_or(Skipped::Short)?;
            match family.min(family.swap_bytes()) {
                // AF_INET, and AF_INET6 of NetBSD, Linux, FreeBSD and Darwin.
                2 | 10 | 24 | 28 | 30 => behind(4),
                _ => Err(Skipped::NotIp),
            }
        }
        // Linux "cooked" captures of all devices, version 1 and 2.
        113 => typed(ether(14)?, behind(16)?),
        276 => typed(ether(0)?, behind(20)?),
        _ => Err(Skipped::LinkType),
    }
}

/// The IP packet behind an EtherType, tags and labels.
fn typed(mut kind: u16, mut bytes: &[u8]) -> Result<&[u8], Skipped> {
    while TAGS.contains(&kind) {
        kind = be16(bytes, 2).ok_or(Skipped::Short)?;
        bytes = &bytes[4..];
    }
    if kind == MPLS {
        loop {
            let label = be32(bytes, 0).ok_or(Skipped::Short)?;
            bytes = &bytes[4..];
            // The bit of the bottom of the stack; what is behind it says itself which IP it is.
            if label & 0x100 != 0 {
                return Ok(bytes);
            }
        }
    }
    if kind == IPV4 || kind == IPV6 { Ok(bytes) } else { Err(Skipped::NotIp) }
}
