//! What hosts say of groups: reports and leaves of IGMP (RFC 1112, RFC 2236, RFC 3376). Sources are not told apart: a host that wants some of
//! them is a member.

use super::datagram::{addresses, checksum};

/// The protocol number of IGMP (IANA).
const PROTOCOL: u8 = 2;
/// Types of messages (RFC 3376, section 4; RFC 2236, section 2.1; RFC 1112, appendix I).
const REPORT_V1: u8 = 0x12;
const REPORT_V2: u8 = 0x16;
const LEAVE: u8 = 0x17;
const REPORT_V3: u8 = 0x22;
/// Types of records (RFC 3376, section 4.2.12).
const MODE_IS_INCLUDE: u8 = 1;
const MODE_IS_EXCLUDE: u8 = 2;
const CHANGE_TO_INCLUDE: u8 = 3;
const CHANGE_TO_EXCLUDE: u8 = 4;
const ALLOW_NEW: u8 = 5;

/// Calls `each` with the groups that a datagram speaks of, and whether the host is a member of them. Returns false if the datagram is not of
/// IGMP. What is malformed says nothing from there on.
pub fn read(datagram: &[u8], mut each: impl FnMut(u32, bool)) -> bool {
    if addresses(datagram).is_none() || datagram.get(9) != Some(&PROTOCOL) {
        return false;
    }
    let header = usize::from(datagram[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([datagram[2], datagram[3]]));
    let Some(message) = datagram.get(header..length) else { return true };
    if message.len() < 8 || checksum(message) != 0 {
        return true;
    }
    let number =
        |at: usize| u32::from_be_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    match message[0] {
        REPORT_V1 | REPORT_V2 => each(number(4), true),
        LEAVE => each(number(4), false),
        REPORT_V3 => {
            let mut at = 8;
            for _ in 0..u16::from_be_bytes([message[6], message[7]]) {
                if message.len() < at + 8 {
                    break;
                }
                let sources = usize::from(u16::from_be_bytes([message[at + 2], message[at + 3]]));
                match message[at] {
                    MODE_IS_EXCLUDE | CHANGE_TO_EXCLUDE => each(number(at + 4), true),
                    MODE_IS_INCLUDE | CHANGE_TO_INCLUDE => each(number(at + 4), sources > 0),
                    ALLOW_NEW if sources > 0 => each(number(at + 4), true),
                    _ => {}
                }
                at += 8 + 4 * (sources + usize::from(message[at + 1]));
            }
        }
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUP: u32 = 0xef01_0203;

    /// A datagram with this message, whose checksum is written.
    fn datagram(mut message: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        // With the option Router Alert (RFC 2113), as hosts send it.
        let mut datagram = vec![0x46, 0xc0, 0, 24 + message.len() as u8, 0, 0, 0x40, 0, 1, 2, 0, 0];
        datagram.extend([10, 1, 0, 1, 224, 0, 0, 22, 0x94, 4, 0, 0]);
        datagram.extend(message);
        datagram
    }

    fn record(kind: u8, sources: u8) -> Vec<u8> {
        let mut record = vec![kind, 0, 0, sources];
        record.extend(GROUP.to_be_bytes());
        record.extend(vec![1; 4 * usize::from(sources)]);
        record
    }

    fn said(datagram: &[u8]) -> Vec<(u32, bool)> {
        let mut said = vec![];
        assert!(read(datagram, |group, is_member| said.push((group, is_member))));
        said
    }

    #[test]
    fn reports_of_all_versions_join_and_leave() {
        for (kind, is_member) in [(REPORT_V1, true), (REPORT_V2, true), (LEAVE, false)] {
            let message = [&[kind, 0, 0, 0][..], &GROUP.to_be_bytes()].concat();
            assert_eq!(said(&datagram(message)), [(GROUP, is_member)]);
        }
        let records = [record(2, 0), record(4, 1), record(1, 0), record(3, 2), record(5, 1), record(6, 1)];
        let message = [&[REPORT_V3, 0, 0, 0, 0, 0, 0, 6][..], &records.concat()].concat();
        let wants = [true, true, false, true, true].map(|is_member| (GROUP, is_member));
        assert_eq!(said(&datagram(message)), wants);
    }

    #[test]
    fn a_damaged_message_says_nothing_and_other_protocols_are_none() {
        let mut damaged = datagram([&[REPORT_V2, 0, 0, 0][..], &GROUP.to_be_bytes()].concat());
        damaged[31] ^= 1;
        assert_eq!(said(&damaged), []);
        damaged[9] = 17;
        assert!(!read(&damaged, |_, _| panic!("it is UDP")));
        assert!(!read(&[0x60; 40], |_, _| panic!("it is IPv6")));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_to_its_end(mut message in proptest::collection::vec(any::<u8>(), 8..120), kind in 0..4usize) {
            message[0] = [REPORT_V1, REPORT_V2, LEAVE, REPORT_V3][kind];
            (message[2], message[3]) = (0, 0);
            let mut count = 0;
            read(&datagram(message), |_, _| count += 1);
            prop_assert!(count <= 14);
        }
    }
}
