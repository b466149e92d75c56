//! Headers written by hand.

use super::*;
use weir_base::Time;

/// An IPv4 packet of TCP with a SYN: MSS 1460, timestamps 1 and 2.
fn ipv4() -> Vec<u8> {
    let mut bytes = vec![0x45, 2, 0, 56, 0x12, 0x34, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend([0, 80, 1, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x90, 0x52, 0, 0, 0, 0, 0, 0]);
    bytes.extend([2, 4, 0x05, 0xb4, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes
}

fn read(link_type: u16, bytes: &[u8]) -> Result<Packet, Skipped> {
    Packet::of(&Frame { at: Time::ZERO, link_type, bytes, length: bytes.len() as u32 })
}

fn with(front: &[u8]) -> Vec<u8> {
    [front, &ipv4()].concat()
}

#[test]
fn the_headers_of_a_packet_are_read_behind_any_link() {
    let expected = Packet {
        addresses: [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
        protocol: TCP,
        ports: [80, 256],
        ecn: Ecn::Ect0,
        identification: Some(0x1234),
        is_atomic: true,
        length: 56,
        tcp: Some(Tcp {
            sequence: 7,
            acknowledgement: Some(9),
            syn: true,
            ece: true,
            mss: Some(1460),
            timestamps: Some((1, 2)),
            ..Tcp::default()
        }),
    };
    let ethernet = [0; 12];
    let cases: [(u16, Vec<u8>); 9] = [
        (101, ipv4()),
        (1, with(&[&ethernet[..], &[8, 0]].concat())),
        // A VLAN tag, two of them, and an MPLS stack of two labels.
        (1, with(&[&ethernet[..], &[0x81, 0, 0, 5, 8, 0]].concat())),
        (1, with(&[&ethernet[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat())),
        (1, with(&[&ethernet[..], &[0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x11, 64]].concat())),
        (0, with(&[2, 0, 0, 0])),
        (108, with(&[0, 0, 0, 2])),
        (113, with(&[&[0; 14][..], &[8, 0]].concat())),
        (276, with(&[&[8, 0][..], &[0; 18]].concat())),
    ];
    for (link_type, bytes) in cases {
        assert_eq!(read(link_type, &bytes), Ok(expected), "link type {link_type}");
    }
}

#[test]
fn an_ipv6_packet_is_read_behind_its_extension_headers() {
    // Hop-by-hop options of 8 bytes, then UDP with 4 bytes of data.
    let mut bytes = vec![0x60, 0x30, 0, 0, 0, 20, 0, 64];
    bytes.extend([[1; 16], [2; 16]].concat());
    bytes.extend([UDP, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend([0, 53, 0, 99, 0, 12, 0, 0, 1, 2, 3, 4]);
    let packet = read(101, &bytes).unwrap();
    assert_eq!((packet.protocol, packet.ports, packet.length), (UDP, [53, 99], 60));
    assert_eq!((packet.ecn, packet.identification), (Ecn::Ce, None));
    // A fragment header in its place.
    bytes[6] = 44;
    assert_eq!(read(101, &bytes), Err(Skipped::Fragment));
}

#[test]
fn what_is_left_out_has_a_reason() {
    let change = |at: usize, to: u8| {
        let mut bytes = ipv4();
        bytes[at] = to;
        read(101, &bytes)
    };
    assert_eq!(read(147, &ipv4()), Err(Skipped::LinkType));
    assert_eq!(read(1, &with(&[&[0; 12][..], &[8, 6]].concat())), Err(Skipped::NotIp));
    assert_eq!([4, 41, 47, 50].map(|tunnel| change(9, tunnel)), [Err(Skipped::Tunnel); 4]);
    // More fragments follow; this one is not the first.
    assert_eq!(change(6, 0x20), Err(Skipped::Fragment));
    assert_eq!(change(7, 1), Err(Skipped::Fragment));
    // A header of 16 bytes; a total length below that of the header; a TCP header of 16 bytes.
    assert_eq!(change(0, 0x44), Err(Skipped::Malformed));
    assert_eq!(change(3, 19), Err(Skipped::Malformed));
    assert_eq!(change(32, 0x40), Err(Skipped::Malformed));
}

#[test]
fn a_snap_length_within_the_options_leaves_options_out_and_a_shorter_one_the_packet() {
    let length = 56;
    let read =
        |snap: usize| Packet::of(&Frame { at: Time::ZERO, link_type: 101, bytes: &ipv4()[..snap], length });
    // 20 bytes of IP, and those of TCP up to its flags.
    assert_eq!((0..34).map(read).filter(|read| *read != Err(Skipped::Short)).count(), 0);
    assert_eq!(read(34).unwrap().tcp.unwrap().mss, None);
    assert_eq!(read(44).unwrap().tcp.unwrap().mss, Some(1460));
    assert_eq!(read(44).unwrap().tcp.unwrap().timestamps, None);
    assert_eq!(read(56).unwrap().tcp.unwrap().timestamps, Some((1, 2)));
}

#[test]
fn a_packet_that_its_card_still_has_to_cut_may_say_no_length() {
    let mut bytes = ipv4();
    bytes[2..4].copy_from_slice(&[0, 0]);
    let frame = Frame { at: Time::ZERO, link_type: 101, bytes: &bytes, length: 66_000 };
    let packet = Packet::of(&frame).unwrap();
    assert_eq!((packet.length, packet.tcp.unwrap().payload), (66_000, 65_944));
}
