//! Faults of a path: duplicates, reordering, losses, an outage of one direction, and datagrams without a checksum. The right
//! end stands in for the other aggregation point, so that each packet that arrives is known.

use super::row::*;
use std::net::UdpSocket;
use weir_coord::Ticks;
use weir_coord::header::{Echo, Flags, Prefix, Probe, Version};

/// The payload of the other point's packet with this sequence number.
fn from_the_path(sequence: u64) -> Vec<u8> {
    let mut payload = vec![0xcd; Version::One.length() + 100];
    let prefix =
        Prefix { version: Version::One, application: 1, flow: 0, protocol: 2, flags: Flags::DATAPATH };
    prefix.write(&mut payload);
    let echo = Some(Echo { timestamp: Ticks::new(9), delay: Ticks::new(1) });
    Probe { timestamp: Ticks::new(7), echo, bandwidth: 0, loss: 0, sequence }
        .write(Version::One, &mut payload);
    payload
}

/// Sends the other point's packets with these sequence numbers, all of which reach the endpoint.
fn arrive(right: &UdpSocket, left: &UdpSocket, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        right.send_to(&from_the_path(number), (LEFT, PORT)).unwrap();
        assert_eq!(receive(left, &mut [0; 2048]).unwrap(), 120);
    }
}

#[test]
fn duplicates_and_reordering_are_not_counted_as_losses_and_an_outage_is_counted_exactly() {
    let Some(row) = Row::new(1) else { return };
    let _point = row.start(1, "");
    let (left, right) = (row.left(|| socket(LEFT, PORT)), row.right(|| socket(RIGHT, PORT)));
    let mut own = endpoint(1, 0, Version::One);
    let mut out = |packets: u32| {
        for _ in 0..packets {
            left.send_to(&sealed(&mut own, Flags::default()), (RIGHT, PORT)).unwrap();
            receive(&right, &mut [0; 2048]).unwrap();
        }
    };
    let path = || {
        let values = row.shown(1)["applications"][0]["values"].take();
        ["packets_arrived", "packets_lost", "peer_restarts"].map(|name| value(&values, name) as u64)
    };
    out(1);
    arrive(&right, &left, 100..110);
    assert_eq!(path(), [10, 0, 0]);
    // One packet arrives twice, and one is overtaken by two later ones.
    arrive(&right, &left, [110, 110, 105, 112, 113, 111, 114]);
    assert_eq!(path(), [15, 0, 0]);
    // Three packets are missing; the third later packet makes that certain.
    arrive(&right, &left, [118, 119]);
    assert_eq!(path(), [17, 0, 0]);
    arrive(&right, &left, [120]);
    assert_eq!(path(), [18, 3, 0]);
    // During 500 packets of ours nothing comes back, then comes packet 621.
    out(500);
    arrive(&right, &left, 621..625);
    assert_eq!(path(), [22, 503, 0]);
}

#[test]
fn a_datagram_without_a_checksum_stays_without_one() {
    let Some(row) = Row::new(1) else { return };
    let _point = row.start(1, "");
    let (out, at_right) = (row.left(raw), row.right(raw));
    let _bound = row.right(|| socket(RIGHT, PORT));
    let payload = sealed(&mut endpoint(1, 5, Version::One), Flags::default());
    let mut udp = datagram(LEFT, RIGHT, PORT, &payload);
    udp[6..8].copy_from_slice(&[0, 0]);
    send_raw(&out, RIGHT, &udp);
    let arrived = receive_raw(&at_right);
    assert_eq!(arrived[6..8], [0, 0]);
    assert!(Prefix::read(&arrived[8..]).unwrap().flags.has(Flags::DATAPATH));
    assert_eq!(arrived[8 + Version::One.length()..], payload[Version::One.length()..]);
}
