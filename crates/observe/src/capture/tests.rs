//! Captures written by hand, byte by byte.

use super::*;

/// A pcap header in little-endian order, with this magic number and link type.
fn pcap(magic: u32, link_type: u32) -> Vec<u8> {
    let mut bytes = magic.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    bytes.extend(link_type.to_le_bytes());
    bytes
}

fn record(words: [u32; 4], data: &[u8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).chain(data.iter().copied()).collect()
}

/// A block of pcapng in big-endian order.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_be_bytes();
    [&kind.to_be_bytes()[..], &length, body, &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])
}

/// An Enhanced Packet Block of two bytes, captured of nine.
fn enhanced(interface: u32, stamp: u64) -> Vec<u8> {
    let words = [interface, (stamp >> 32) as u32, stamp as u32, 2, 9];
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    body.extend([7, 8, 0, 0]);
    block(6, &body)
}

/// Time in nanoseconds, link type, bytes and length of all packets, and how the capture ended.
type All = (Vec<(u64, u16, Vec<u8>, u32)>, Ended);

fn all(bytes: &[u8]) -> All {
    let mut capture = Capture::open(bytes).unwrap();
    let mut frames = vec![];
    while let Some(frame) = capture.next_frame().unwrap() {
        frames.push((frame.at.as_nanos(), frame.link_type, frame.bytes.to_vec(), frame.length));
    }
    (frames, capture.ended().clone())
}

#[test]
fn a_pcap_file_has_stamps_in_microseconds_or_nanoseconds() {
    let packet = record([3, 5, 2, 9], &[7, 8]);
    let expected = |nanos| (vec![(nanos, 1, vec![7, 8], 9)], Ended::Complete);
    assert_eq!(all(&[pcap(0xa1b2_c3d4, 1), packet.clone()].concat()), expected(3_000_005_000));
    assert_eq!(all(&[pcap(0xa1b2_3c4d, 1), packet].concat()), expected(3_000_000_005));
}

#[test]
fn a_pcap_file_may_come_from_a_machine_with_the_other_order_of_bytes() {
    let header = [0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101];
    let packet = [0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 9, 7, 8];
    let expected = (vec![(3_000_005_000, 101, vec![7, 8], 9)], Ended::Complete);
    assert_eq!(all(&[&header[..], &packet].concat()), expected);
}

#[test]
fn a_cut_file_has_the_packets_before_the_cut() {
    let file = [pcap(0xa1b2_3c4d, 1), record([0, 1, 2, 2], &[7, 8]), record([0, 2, 2, 2], &[7, 8])].concat();
    for end in 24..=file.len() {
        let (frames, ended) = all(&file[..end]);
        assert_eq!(frames.len(), (end - 24) / 18, "{end}");
        let expected = match (end - 24) % 18 {
            0 => Ended::Complete,
            _ => Ended::Cut { at_byte: (24 + (end - 24) / 18 * 18) as u64 },
        };
        assert_eq!(ended, expected, "{end}");
    }
}

#[test]
fn a_damaged_file_has_the_packets_before_the_damage() {
    let file = [pcap(0xa1b2_3c4d, 1), record([0, 1, 2, 2], &[7, 8]), record([0, 2, 262_145, 2], &[0; 99])];
    let (frames, ended) = all(&file.concat());
    assert_eq!(frames.len(), 1);
    assert!(matches!(ended, Ended::Damaged { at_byte: 42, .. }), "{ended:?}");
    let mut file = [section(), block(1, &[0, 1, 0, 0, 0, 0, 0, 0]), enhanced(0, 1), enhanced(0, 2)].concat();
    // The length at the end of the last block.
    *file.last_mut().unwrap() ^= 4;
    let (frames, ended) = all(&file);
    assert_eq!(frames.len(), 1);
    assert!(matches!(ended, Ended::Damaged { at_byte: 84, .. }), "{ended:?}");
}

#[test]
fn each_interface_of_a_pcapng_file_has_its_own_link_type_and_unit_of_time() {
    let options = |resolution| [0, 101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, resolution, 0, 0, 0, 0, 0, 0, 0];
    // An offset of one second.
    let offset = [0, 1, 0, 0, 0, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1];
    let file = [
        section(),
        block(1, &[0, 1, 0, 0, 0, 0, 0, 0]),
        block(1, &options(9)),
        block(1, &options(0x80 | 2)),
        block(1, &offset),
        // Blocks of other kinds are left out.
        block(0x0bad, &[1, 2, 3, 4]),
        enhanced(0, 3),
        enhanced(1, 3 << 32),
        enhanced(2, 3),
        enhanced(3, 3),
    ];
    let at = |nanos, link_type| (nanos, link_type, vec![7, 8], 9);
    let expected = [at(3_000, 1), at(3 << 32, 101), at(750_000_000, 101), at(1_000_003_000, 1)];
    assert_eq!(all(&file.concat()), (expected.to_vec(), Ended::Complete));
}

#[test]
fn packets_that_cannot_be_placed_are_counted_and_so_are_those_that_the_machine_lost() {
    // Statistics of interface 0: 5 packets lost by the interface, then 7 since the start.
    let statistics = |lost| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 0, 0, 0, 0, 0, 0, lost];
    let file = [
        section(),
        block(1, &[0, 1, 0, 0, 0, 0, 0, 0]),
        block(3, &[0, 0, 0, 2, 7, 8, 0, 0]),
        enhanced(1, 3),
        block(5, &statistics(5)),
        block(5, &statistics(7)),
        enhanced(0, 3),
    ]
    .concat();
    let mut capture = Capture::open(&file[..]).unwrap();
    assert_eq!(capture.next_frame().unwrap().unwrap().at.as_nanos(), 3_000);
    assert_eq!(capture.next_frame().unwrap(), None);
    let expected =
        Unread { packets_without_time: 1, packets_without_interface: 1, packets_dropped_by_capture: 7 };
    assert_eq!(capture.unread(), &expected);
}

#[test]
fn what_is_no_capture_is_refused() {
    let refused = |bytes: &[u8]| Capture::open(bytes).err().unwrap().to_string();
    assert_eq!(refused(b""), "it is empty");
    assert_eq!(refused(b"\xd4\xc3\xb2\xa1\x02"), "it ends within its first header");
    assert!(refused(b"PK\x03\x04").starts_with("it begins with [50, 4b, 03, 04]"));
}
