//! Tests of the receiving half of a stream.

use super::*;
use crate::aec::code;
use crate::wire::Repair;

const MESSAGE: Flags =
    Flags { ordered: false, first: true, last: true, fin: false, prompt: false, coded: false };

fn data(sequence: u32, distance: u16, flags: Flags, length: u16) -> Data {
    Data { flags, stream: 0, sequence, distance, length, due: flags.coded.then_some(9) }
}

fn read(incoming: &mut Incoming) -> Vec<(u64, Vec<u8>)> {
    let mut read = Vec::new();
    incoming.read(|bytes, head, _| read.push((bytes, head.to_vec())));
    read
}

#[test]
fn an_ordered_stream_waits_for_missing_segments_until_they_are_given_up() {
    let mut incoming = Incoming::default();
    let flags = Flags { ordered: true, ..MESSAGE };
    incoming.segment(&data(1, 1, flags, 20), b"b");
    assert!(read(&mut incoming).is_empty());
    incoming.segment(&data(0, 0, flags, 10), b"a");
    incoming.segment(&data(0, 0, flags, 10), b"a");
    assert_eq!(read(&mut incoming), [(10, b"a".to_vec()), (20, b"b".to_vec())]);
    // Segment 2 is given up.
    incoming.segment(&data(3, 1, flags, 30), b"d");
    assert!(read(&mut incoming).is_empty());
    incoming.forward(3);
    assert_eq!(read(&mut incoming), [(30, b"d".to_vec())]);
}

#[test]
fn ordered_messages_are_reassembled_and_a_segment_given_up_discards_its_message() {
    let mut incoming = Incoming::default();
    let part = |first, last| Flags { ordered: true, first, last, ..MESSAGE };
    incoming.segment(&data(1, 1, part(false, true), 3), b"end");
    incoming.segment(&data(2, 2, part(true, true), 5), b"whole");
    incoming.segment(&data(0, 0, part(true, false), 5), b"begin");
    assert_eq!(read(&mut incoming), [(8, b"beginend".to_vec()), (5, b"whole".to_vec())]);
    // Segments 3 and 4 are a message, and 4 is given up; 5 and 6 are another, and 5 is given up.
    incoming.segment(&data(3, 0, part(true, false), 1), b"a");
    incoming.segment(&data(6, 0, part(false, true), 1), b"b");
    incoming.segment(&data(7, 0, part(true, true), 1), b"c");
    assert_eq!(read(&mut incoming), [(1, b"c".to_vec())]);
    assert_eq!(incoming.take_consumed(), 8, "what takes no room");
}

#[test]
fn unordered_messages_are_reassembled_and_delivered_as_they_complete() {
    let mut incoming = Incoming::default();
    incoming.segment(&data(3, 3, MESSAGE, 5), b"later");
    incoming.segment(&data(2, 2, Flags { first: false, ..MESSAGE }, 3), b"end");
    incoming.segment(&data(0, 0, Flags { last: false, ..MESSAGE }, 5), b"begin");
    assert_eq!(read(&mut incoming), [(5, b"later".to_vec())]);
    incoming.segment(&data(1, 1, Flags { first: false, last: false, ..MESSAGE }, 3), b"mid");
    assert_eq!(read(&mut incoming), [(11, b"beginmidend".to_vec())]);
}

#[test]
fn a_repair_packet_restores_a_lost_segment() {
    let flags = Flags { coded: true, ..MESSAGE };
    let symbol = |bytes: u16, head: &[u8]| {
        let mut symbol = bytes.to_be_bytes().to_vec();
        symbol.push(flags.bits());
        symbol.extend(9u32.to_be_bytes());
        symbol.extend_from_slice(head);
        symbol
    };
    let (a, b) = (symbol(100, b"first"), symbol(60, b"the second"));
    let mut sum = Vec::new();
    code::encode(&[&a, &b], 7, &mut sum);
    let mut incoming = Incoming::default();
    incoming.segment(&data(1, 1, flags, 60), b"the second");
    let repair = Repair { stream: 0, start: 0, k: 2, number: 7, distance: 0, length: 107 };
    assert!(incoming.repair(&repair, &sum));
    let read = read(&mut incoming);
    assert_eq!(read[0], (60, b"the second".to_vec()));
    assert_eq!(read[1].0, 100);
    assert!(read[1].1.starts_with(b"first") && read[1].1[5..].iter().all(|byte| *byte == 0));
    assert!(!incoming.repair(&Repair { k: 0, ..repair }, &[]));
    assert!(!incoming.repair(&Repair { k: 17, ..repair }, &[]));
}

#[test]
fn a_segment_beyond_the_window_is_refused() {
    let mut incoming = Incoming::default();
    assert!(!incoming.segment(&data(WINDOW as u32 + 5, u16::MAX, MESSAGE, 1), &[]));
}
