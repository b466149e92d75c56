//! What hosts say of groups: reports and leaves of IGMP (RFC 1112, RFC 2236, RFC 3376), and what routers ask them. Sources are not told apart:
//! a host that wants some of them is a member.

use super::datagram::{addresses, checksum};
use weir_base::Span;

/// The protocol number of IGMP (IANA).
const PROTOCOL: u8 = 2;
/// Types of messages (RFC 3376, section 4; RFC 2236, section 2.1; RFC 1112, appendix I).
const QUERY: u8 = 0x11;
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
/// Where general queries go: all hosts of a network (RFC 2236, section 9).
const ALL_HOSTS: u32 = 0xe000_0001;
/// Length of a header with the option that routers on the way look at a datagram (RFC 2113), and that option.
const HEADER: usize = 24;
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// Internetwork control (RFC 2474, section 4.2.2.2), as hosts mark their reports.
const PRECEDENCE: u8 = 0xc0;
/// The unit of response times (RFC 2236, section 2.2).
const TENTH: Span = Span::from_millis(100);

/// A router's question who has joined a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Query {
    /// The router's address.
    pub(super) source: u32,
    /// The group, or 0 for all groups.
    pub(super) group: u32,
    /// The time within which hosts answer, up to 25.5 s.
    pub(super) within: Span,
}

impl Query {
    /// The datagram, of version 2.
    pub(super) fn written(&self) -> Vec<u8> {
        let tenths = (self.within.as_nanos() / TENTH.as_nanos()).min(0xff) as u8;
        let mut message = [&[QUERY, tenths, 0, 0][..], &self.group.to_be_bytes()].concat();
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let to = if self.group == 0 { ALL_HOSTS } else { self.group };
        // It lives for one link.
        let mut datagram =
            vec![0x46, PRECEDENCE, 0, (HEADER + message.len()) as u8, 0, 0, 0, 0, 1, PROTOCOL, 0, 0];
        datagram.extend([self.source.to_be_bytes(), to.to_be_bytes(), ROUTER_ALERT].concat());
        let sum = checksum(&datagram);
        datagram[10..12].copy_from_slice(&sum.to_be_bytes());
        datagram.append(&mut message);
        datagram
    }
}

/// The message of a datagram of IGMP, if it is whole.
fn message_of(datagram: &[u8]) -> Option<&[u8]> {
    let header = usize::from(datagram[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([datagram[2], datagram[3]]));
    datagram.get(header..length).filter(|message| message.len() >= 8 && checksum(message) == 0)
}

/// Whether a datagram is of IGMP.
fn is_igmp(datagram: &[u8]) -> bool {
    addresses(datagram).is_some() && datagram.get(9) == Some(&PROTOCOL)
}

/// The query that a datagram is, if it is one. A response time of 128 tenths or more, which version 3 encodes otherwise, is taken for the
/// longest.
pub(super) fn query_of(datagram: &[u8]) -> Option<Query> {
    let (source, _) = addresses(datagram).filter(|_| is_igmp(datagram))?;
    let message = message_of(datagram).filter(|message| message[0] == QUERY)?;
    let group = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
    let tenths = if message[1] < 128 { message[1] } else { 0xff };
    Some(Query { source, group, within: TENTH * u64::from(tenths) })
}

/// Calls `each` with the groups that a datagram speaks of, and whether the host is a member of them. Returns false if the datagram is not of
/// IGMP. What is malformed says nothing from there on.
pub fn read(datagram: &[u8], mut each: impl FnMut(u32, bool)) -> bool {
    if !is_igmp(datagram) {
        return false;
    }
    let Some(message) = message_of(datagram) else { return true };
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
pub(super) mod tests {
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

    /// What a host says of a group in version 1 or 2.
    fn said_by_host(kind: u8, group: u32) -> Vec<u8> {
        datagram([&[kind, 0, 0, 0][..], &group.to_be_bytes()].concat())
    }

    /// A host of version 2 joins a group.
    pub(crate) fn joins(group: u32) -> Vec<u8> {
        said_by_host(REPORT_V2, group)
    }

    /// It leaves the group.
    pub(crate) fn leaves(group: u32) -> Vec<u8> {
        said_by_host(LEAVE, group)
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
            assert_eq!(said(&said_by_host(kind, GROUP)), [(GROUP, is_member)]);
        }
        let records = [record(2, 0), record(4, 1), record(1, 0), record(3, 2), record(5, 1), record(6, 1)];
        let message = [&[REPORT_V3, 0, 0, 0, 0, 0, 0, 6][..], &records.concat()].concat();
        let wants = [true, true, false, true, true].map(|is_member| (GROUP, is_member));
        assert_eq!(said(&datagram(message)), wants);
    }

    #[test]
    fn a_damaged_message_says_nothing_and_other_protocols_are_none() {
        let mut damaged = said_by_host(REPORT_V2, GROUP);
        damaged[31] ^= 1;
        assert_eq!(said(&damaged), []);
        damaged[9] = 17;
        assert!(!read(&damaged, |_, _| panic!("it is UDP")));
        assert!(!read(&[0x60; 40], |_, _| panic!("it is IPv6")));
    }

    #[test]
    fn a_query_is_read_as_it_was_written_and_joins_nothing() {
        for (group, to) in [(0, ALL_HOSTS), (GROUP, GROUP)] {
            let query = Query { source: 0x0a01_0001, group, within: Span::from_secs(10) };
            let written = query.written();
            assert_eq!((query_of(&written), said(&written)), (Some(query), vec![]));
            assert_eq!(addresses(&written), Some((query.source, to)));
            // A TTL of 1, with the option Router Alert, and both checksums right.
            assert_eq!((written[8], &written[20..24]), (1, &ROUTER_ALERT[..]));
            assert_eq!((checksum(&written[..HEADER]), checksum(&written[HEADER..])), (0, 0));
        }
        assert_eq!(query_of(&said_by_host(REPORT_V2, GROUP)), None);
        let longer = datagram(vec![QUERY, 200, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0]);
        assert_eq!(query_of(&longer).map(|query| query.within), Some(Span::from_millis(25_500)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_to_its_end(mut message in proptest::collection::vec(any::<u8>(), 8..120), kind in 0..4usize) {
            message[0] = [REPORT_V1, REPORT_V2, LEAVE, REPORT_V3][kind];
            (message[2], message[3]) = (0, 0);
            let mut count = 0;
            let datagram = datagram(message);
            read(&datagram, |_, _| count += 1);
            prop_assert!(query_of(&datagram).is_none());
            prop_assert!(count <= 14);
        }
    }
}
