//! Frames and headers, written and read back.

use super::*;
use proptest::prelude::*;

#[test]
fn a_header_is_twelve_bytes() {
    let header = Header { kind: Kind::Within, connection: 0x0a_0b0c, number: 0x0102_0304, timestamp: 7 };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    assert_eq!(bytes, [0x53, 0x0a, 0x0b, 0x0c, 1, 2, 3, 4, 0, 0, 0, 7]);
    assert_eq!(bytes.len(), HEADER);
    assert_eq!(Header::read(&bytes), Some((header, &[][..])));
}

#[test]
fn frame_headers_have_the_lengths_of_their_constants() {
    let data = Data { flags: Flags::default(), stream: 1, sequence: 2, distance: 3, length: 4, due: None };
    let repair = Repair { stream: 1, start: 2, k: 3, number: 4, distance: 5, length: 6 };
    let part = Part { segment: data, offset: 1, length: 3 };
    for (frame, length) in [
        (Frame::Data(data), DATA_HEADER),
        (Frame::Data(Data { due: Some(7), ..data }), DATA_HEADER + DUE),
        (Frame::Repair(repair), REPAIR_HEADER),
        (Frame::Part(part), PART_HEADER),
        (Frame::Padding { length: 9 }, PADDING_HEADER),
    ] {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        assert_eq!(bytes.len(), length);
    }
}

#[test]
fn acknowledged_ranges_are_listed_from_the_highest_down() {
    // 100 to 98, then 95, then 90 to 81.
    let mut ack = Ack::new(100, 14, 0, 0);
    ack.set_first(2);
    assert!(ack.push(2, 0) && ack.push(4, 9));
    let ranges: Vec<(u32, u32)> = ack.ranges().map(|(high, low)| (100 - high, 100 - low)).collect();
    assert_eq!(ranges, [(100, 98), (95, 95), (90, 81)]);
}

#[test]
fn a_truncated_packet_number_expands_to_the_value_nearest_the_last() {
    assert_eq!(whole(5, 0), 5);
    assert_eq!(whole(5, 0xffff_fffe), 0x1_0000_0005);
    assert_eq!(whole(0xffff_fffe, 0x1_0000_0005), 0xffff_fffe);
    // There is no number below 0.
    assert_eq!(whole(0xffff_ffff, 0), 0xffff_ffff);
}

fn ack() -> impl Strategy<Value = Frame> {
    let ranges = prop::collection::vec(any::<(u16, u16)>(), 0..MOST_RANGES);
    (any::<(u32, u32, u32, u16)>(), any::<u16>(), ranges).prop_map(|(n, first, ranges)| {
        let mut ack = Ack::new(n.0, n.1, n.2, n.3);
        ack.set_first(first);
        ranges.into_iter().for_each(|(missing, before)| assert!(ack.push(missing, before)));
        Frame::Ack(ack)
    })
}

fn data() -> impl Strategy<Value = Data> {
    let data = (0u8..64, any::<u8>(), any::<[u32; 2]>(), any::<u16>(), any::<u16>());
    data.prop_map(|(flags, stream, [sequence, due], distance, length)| {
        let flags = Flags::from_bits(flags).unwrap();
        Data { flags, stream, sequence, distance, length, due: flags.coded.then_some(due) }
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let part = (data(), any::<u16>(), any::<u16>())
        .prop_map(|(segment, offset, length)| Frame::Part(Part { segment, offset, length }));
    let padding = any::<u16>().prop_map(|length| Frame::Padding { length });
    let data = data().prop_map(Frame::Data);
    let repair =
        any::<(u8, u32, u8, u8, u16, u16)>().prop_map(|(stream, start, k, number, distance, length)| {
            Frame::Repair(Repair { stream, start, k, number, distance, length })
        });
    let forward = any::<(u8, u32)>().prop_map(|(stream, base)| Frame::Forward { stream, base });
    let credit = any::<(u8, u32)>().prop_map(|(stream, segments)| Frame::Credit { stream, segments });
    let close = any::<u8>().prop_map(|reason| Frame::Close { reason });
    let challenge = any::<u64>().prop_map(Frame::Challenge);
    let response = any::<u64>().prop_map(Frame::Response);
    let payload = prop_oneof![data, repair, part, padding];
    let marks = any::<[u32; 3]>().prop_map(|[ect0, ect1, ce]| Frame::Marks(Marks { ect0, ect1, ce }));
    let round_trip = any::<u32>().prop_map(Frame::RoundTrip);
    prop_oneof![
        ack(),
        marks,
        round_trip,
        payload,
        forward,
        credit,
        Just(Frame::Ping),
        close,
        challenge,
        response
    ]
}

proptest! {
    #[test]
    fn every_frame_reads_back_as_it_was_written(frame in frame(), rest in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Frame::read(&bytes[..cut]), None);
        }
        bytes.extend(&rest);
        prop_assert_eq!(Frame::read(&bytes), Some((frame, rest.as_slice())));
    }

    #[test]
    fn every_header_and_frame_that_is_read_is_written_back_unchanged(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Some((header, rest)) = Header::read(&bytes) {
            let mut written = Vec::new();
            header.write(&mut written);
            prop_assert_eq!(&written, &bytes[..bytes.len() - rest.len()]);
        }
        if let Some((frame, rest)) = Frame::read(&bytes) {
            let mut written = Vec::new();
            frame.write(&mut written);
            prop_assert_eq!(&written, &bytes[..bytes.len() - rest.len()]);
        }
    }
}
