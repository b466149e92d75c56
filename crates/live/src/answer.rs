//! Turns a datagram into its own answer in place, and keeps its checksums right.

use crate::headers::UDP;

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Turns a datagram into its own answer: swaps its addresses and ports, which leaves checksums over them unchanged, and makes
/// an echo request the reply (RFC 792, RFC 4443). Returns false, and changes nothing, when the packet is neither UDP nor an
/// echo request, or is a fragment.
pub fn answer(ip: &mut [u8]) -> bool {
    let v6 = ip[0] >> 4 == 6;
    let (header, protocol, addresses) =
        if v6 { (40, ip[6], 8..40) } else { (usize::from(ip[0] & 15) * 4, ip[9], 12..20) };
    let whole = v6 || word_at(ip, 6) & 0x3fff == 0;
    let reply = match (protocol, ip.get(header..header + 8)) {
        (UDP, Some(_)) => None,
        (ICMP, Some(&[8, 0, ..])) => Some(0),
        (ICMP_V6, Some(&[128, 0, ..])) => Some(129),
        _ => return false,
    };
    if !whole {
        return false;
    }
    let half = addresses.len() / 2;
    ip[addresses].rotate_left(half);
    match reply {
        None => ip[header..header + 4].rotate_left(2),
        Some(kind) => {
            let old = word_at(ip, header);
            ip[header] = kind;
            repair(ip, header + 2, old, word_at(ip, header));
        }
    }
    true
}

/// The word of 16 bits at a place.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Repairs the checksum at a place after a word that it covers has changed (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')).
pub(crate) fn repair(bytes: &mut [u8], at: usize, old: u16, new: u16) {
    let mut sum = u32::from(!word_at(bytes, at)) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    bytes[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::checksum;

    /// An IPv4 packet of this protocol from 10.0.0.1 to 10.0.0.3, its payload as it stands.
    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip = vec![0; 20];
        ip[0] = 0x45;
        ip[3] = (20 + payload.len()) as u8;
        ip[9] = protocol;
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 3]);
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend_from_slice(payload);
        ip
    }

    #[test]
    fn an_echo_request_becomes_the_reply_and_its_checksums_stay_correct() {
        let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 7, 1, 2, 3, 4];
        let sum = checksum(&echo);
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut ip = packet(ICMP, &echo);
        assert!(answer(&mut ip));
        assert_eq!((ip[20], &ip[12..20]), (0, &[10, 0, 0, 3, 10, 0, 0, 1][..]));
        assert_eq!((checksum(&ip[..20]), checksum(&ip[20..])), (0, 0));
        let before = ip.clone();
        assert!(!answer(&mut ip) && ip == before, "a reply is not answered");
    }

    #[test]
    fn fragments_and_truncated_packets_are_not_datagrams() {
        let mut fragment = packet(UDP, &[0; 12]);
        fragment[6] = 0x20;
        let mut short = packet(UDP, &[0; 7]);
        assert!(!answer(&mut fragment) && !answer(&mut short));
    }
}
