//! Frames of real packets, read, marked, damaged and answered.

use super::*;
use crate::address::{mac_of, port_of};
use crate::frame::{checksum_v6, udp_frame};
use crate::overlay::Ways;
use weir_plan::Ip;

fn pool() -> Pool {
    Pool::new(directory(), 1500)
}

fn directory() -> Directory {
    let commands = vec![None; 3];
    Directory {
        addressed: vec![true, false, true],
        flows: 3,
        commands,
        beyond: None,
        ways: vec![],
        groups: Ways::default(),
    }
}

/// A TCP segment of flow 1 from node 0 to node 2, with these options and `payload` bytes of payload.
fn segment(options: &[u8], payload: usize) -> Vec<u8> {
    let mut frame = udp_frame(0, 2, Ip::V4, 1, 40 + options.len() + payload, Ecn::Ect0);
    frame[ETHERNET + 9] = TCP;
    let tcp = &mut frame[ETHERNET + 20..];
    tcp[4..8].copy_from_slice(&7000u32.to_be_bytes());
    tcp[8..12].copy_from_slice(&9000u32.to_be_bytes());
    tcp[12] = (((20 + options.len()) / 4) as u8) << 4;
    tcp[13] = 0x10;
    tcp[20..20 + options.len()].copy_from_slice(options);
    frame
}

/// The sum over pseudo-header and datagram comes out to all ones when nothing was damaged.
fn is_sound_v6(packet: &LivePacket) -> bool {
    let (header, udp) = packet.ethernet()[ETHERNET..].split_at(40);
    checksum_v6(header, udp) == 0xffff
}

#[test]
fn a_datagram_over_ipv6_is_read_as_it_was_built_and_marked_without_a_trace() {
    for (length, ecn) in [(48, Ecn::Ect0), (49, Ecn::Ect1), (1500, Ecn::Ect1)] {
        let mut packet = pool().packet(0, &udp_frame(0, 2, Ip::V6, 1, length, ecn)).unwrap();
        assert_eq!((packet.wire_length() as usize, packet.flow()), (length, FlowId(1)));
        assert_eq!((packet.destination(), packet.ecn()), (2, ecn));
        assert!(is_sound_v6(&packet));
        packet.mark_ce();
        assert_eq!(packet.ecn(), Ecn::Ce);
        // The version before the traffic class and the flow label behind it stay what they were.
        assert_eq!(packet.ethernet()[ETHERNET..ETHERNET + 4], [0x60, 0x30, 0, 0]);
        assert!(is_sound_v6(&packet));
    }
}

#[test]
fn a_segment_over_ipv6_shows_its_tcp_header() {
    let mut frame = udp_frame(0, 2, Ip::V6, 1, 40 + 20 + 7, Ecn::NotEct);
    frame[ETHERNET + 6] = TCP;
    let tcp = &mut frame[ETHERNET + 40..];
    tcp[4..8].copy_from_slice(&7000u32.to_be_bytes());
    tcp[12] = 5 << 4;
    tcp[13] = 0x02;
    let packet = pool().packet(0, &frame).unwrap();
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.sequence, tcp.payload, tcp.syn, tcp.ack), (7000, 7, true, false));
}

#[test]
fn a_datagram_is_read_as_it_was_built() {
    let packet = pool().packet(0, &udp_frame(0, 2, Ip::V4, 1, 1500, Ecn::Ect1)).unwrap();
    assert_eq!((packet.wire_length(), packet.flow(), packet.destination()), (1500, FlowId(1), 2));
    assert_eq!(packet.ecn(), Ecn::Ect1);
    assert!(packet.tcp().is_none());
    assert_eq!(checksum(&packet.ethernet()[ETHERNET..ETHERNET + 20]), 0);
}

#[test]
fn marking_keeps_the_header_checksum_right() {
    for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        for length in 28..400 {
            let mut packet = pool().packet(0, &udp_frame(0, 2, Ip::V4, 1, length, ecn)).unwrap();
            packet.mark_ce();
            assert_eq!(packet.ecn(), Ecn::Ce);
            assert_eq!(checksum(&packet.ethernet()[ETHERNET..ETHERNET + 20]), 0);
        }
    }
}

#[test]
fn a_reflected_datagram_is_what_its_receiver_would_have_sent() {
    for (ip, length) in [(Ip::V4, 1500), (Ip::V4, 28), (Ip::V6, 1500), (Ip::V6, 48)] {
        let mut packet = pool().packet(0, &udp_frame(0, 2, ip, 1, length, Ecn::Ect1)).unwrap();
        assert!(packet.turn_round());
        let answer = udp_frame(2, 0, ip, 1, length, Ecn::Ect1);
        assert_eq!(packet.ethernet()[ETHERNET..], answer[ETHERNET..]);
        assert_eq!((packet.destination(), packet.flow(), packet.ecn()), (0, FlowId(1), Ecn::Ect1));
        assert_eq!(packet.ethernet()[6..12], mac_of(2));
    }
}

#[test]
fn segments_and_packets_that_come_from_no_host_are_not_reflected() {
    let mut packet = pool().packet(0, &segment(&[], 5)).unwrap();
    let before = packet.ethernet().to_vec();
    assert!(!packet.turn_round() && packet.ethernet() == before);
    // Node 1 is a router.
    let mut packet = pool().packet(0, &udp_frame(1, 2, Ip::V4, 1, 100, Ecn::NotEct)).unwrap();
    assert!(!packet.turn_round() && packet.destination() == 2);
}

#[test]
fn sack_blocks_are_found_behind_other_options() {
    let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
    for edge in [100u32, 200, 300, 400] {
        options.extend(edge.to_be_bytes());
    }
    let packet = pool().packet(0, &segment(&options, 5)).unwrap();
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.payload), (7000, 9000, 5));
    assert!(tcp.ack && !tcp.syn);
    assert_eq!(tcp.sack, [(100, 200), (300, 400)]);
}

#[test]
fn a_duplicate_is_equal_and_returns_to_the_same_pool() {
    let pool = pool();
    let mut packet = pool.packet(0, &udp_frame(0, 2, Ip::V4, 1, 300, Ecn::Ect0)).unwrap();
    packet.arrive(Time::from_nanos(5));
    let twin = packet.duplicate();
    assert_eq!(twin.ethernet(), packet.ethernet());
    assert_eq!((twin.flow(), twin.arrived(), twin.class()), (packet.flow(), packet.arrived(), Ecn::Ect0));
    drop((packet, twin));
    assert_eq!(pool.free.borrow().len(), 2);
}

#[test]
fn damage_changes_one_bit_that_a_checksum_covers() {
    let changed = |frame: &[u8]| {
        let mut packet = pool().packet(0, frame).unwrap();
        packet.corrupt();
        assert!(packet.is_corrupt());
        let pairs = packet.ethernet().iter().zip(frame).enumerate();
        let places: Vec<_> =
            pairs.filter(|(_, (a, b))| a != b).map(|(at, (a, b))| (at - ETHERNET, a ^ b)).collect();
        assert_eq!(places.len(), 1);
        places[0]
    };
    assert_eq!(changed(&segment(&[], 100)), (139, 1), "the last byte of the payload");
    assert_eq!(changed(&segment(&[1, 1, 1, 1], 0)), (20 + 17, 1), "TCP's own checksum");
    let mut datagram = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
    assert_eq!(changed(&datagram), (11, 1), "a datagram without a checksum: the IP header's");
    datagram[ETHERNET + 27] = 9;
    assert_eq!(changed(&datagram), (99, 1));
}

#[test]
fn packets_of_a_command_belong_to_its_flow_whatever_the_ports() {
    let commands = vec![Some(FlowId(2)), None, None];
    let pool = Pool::new(Directory { commands, ..directory() }, 1500);
    let mut ping = udp_frame(0, 2, Ip::V4, 9, 84, Ecn::NotEct);
    ping[ETHERNET + 9] = 1;
    assert_eq!(pool.packet(0, &ping).unwrap().flow(), FlowId(2));
    assert_eq!(
        pool.packet(0, &udp_frame(2, 0, Ip::V4, 9, 84, Ecn::NotEct)).unwrap().flow(),
        FlowId(2),
        "and answers"
    );
    assert_eq!(
        pool.packet(0, &udp_frame(0, 2, Ip::V4, 1, 84, Ecn::NotEct)).unwrap().flow(),
        FlowId(1),
        "a flow's own"
    );
}

#[test]
fn packets_that_are_not_for_a_host_of_the_network_are_not_taken() {
    let pool = pool();
    assert!(pool.packet(0, &udp_frame(0, 1, Ip::V4, 1, 100, Ecn::NotEct)).is_none(), "node 1 is a router");
    assert!(pool.packet(0, &udp_frame(0, 9, Ip::V4, 1, 100, Ecn::NotEct)).is_none(), "there is no node 9");
    let mut arp = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
    arp[13] = 0x06;
    assert!(pool.packet(0, &arp).is_none());
    assert!(pool.packet(0, &[]).is_none());
}

#[test]
fn truncated_and_damaged_packets_cause_no_panic() {
    let pool = pool();
    let whole = segment(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], 20);
    for length in 0..whole.len() {
        let mut cut = whole[..length].to_vec();
        drop(pool.packet(0, &cut));
        if length >= ETHERNET + 20 {
            cut[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&((length - ETHERNET) as u16).to_be_bytes());
            drop(pool.packet(0, &cut));
        }
    }
    let whole_v6 = udp_frame(0, 2, Ip::V6, 1, 80, Ecn::Ect0);
    for length in 0..whole_v6.len() {
        drop(pool.packet(0, &whole_v6[..length]));
    }
    for (at, value) in (0..whole_v6.len()).flat_map(|at| [0, 1, 6, 0xff].map(|value| (at, value))) {
        let mut garbled = whole_v6.clone();
        garbled[at] = value;
        drop(pool.packet(0, &garbled));
    }
    for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x5f, 0xff].map(|value| (at, value))) {
        let mut garbled = whole.clone();
        garbled[at] = value;
        drop(pool.packet(0, &garbled));
    }
}

#[test]
fn a_dropped_packet_returns_its_buffer() {
    let pool = pool();
    let frame = udp_frame(0, 2, Ip::V4, 1, 100, Ecn::NotEct);
    let packets: Vec<_> = (0..10).map(|_| pool.packet(0, &frame).unwrap()).collect();
    drop(packets);
    assert_eq!(pool.free.borrow().len(), 10);
    let again = pool.packet(0, &frame).unwrap();
    assert_eq!(
        (pool.free.borrow().len(), again.flow()),
        (9, FlowId(usize::from(port_of(1) - port_of(0)) as u32))
    );
}

#[test]
fn packets_for_other_networks_go_to_the_way_out_and_those_for_groups_nowhere() {
    let beyond = Some(Outside::new(2, 0, vec![]));
    let open = Pool::new(Directory { beyond, ..directory() }, 1500);
    let to = |pool: &Pool, from: usize, address: &str| {
        let ip = if address.contains(':') { Ip::V6 } else { Ip::V4 };
        let mut frame = udp_frame(from, 0, ip, 1, 100, Ecn::NotEct);
        match address.parse().unwrap() {
            std::net::IpAddr::V4(address) => frame[ETHERNET + 16..][..4].copy_from_slice(&address.octets()),
            std::net::IpAddr::V6(address) => frame[ETHERNET + 24..][..16].copy_from_slice(&address.octets()),
        }
        pool.packet(0, &frame).map(|packet| packet.destination())
    };
    for address in ["192.0.2.1", "10.0.0.2", "2001:db8::1"] {
        assert_eq!(to(&open, 2, address), Some(0), "{address}");
        assert_eq!(to(&pool(), 2, address), None, "without a way out");
        assert_eq!(to(&open, 0, address), None, "from the way out itself");
    }
    for address in ["224.0.0.22", "255.255.255.255", "169.254.1.1", "ff02::16", "fe80::1"] {
        assert_eq!(to(&open, 2, address), None, "{address}");
    }
    assert_eq!(to(&open, 0, "10.0.0.3"), Some(2));
}

#[test]
fn packets_to_a_prefix_and_from_it_pass_between_the_stand_ins_of_the_longest_one() {
    use crate::outside::Branch;
    use std::net::IpAddr;
    let branch = |prefix: &str, near, far| Branch { prefix: prefix.parse().unwrap(), near, far };
    // The program's host is node 2 and the far end node 0.
    let branches = vec![
        branch("192.0.2.0/24", 3, 4),
        branch("192.0.2.128/25", 5, 6),
        branch("2001:db8::/32", 7, 8),
        branch("10.0.0.0/8", 9, 10),
    ];
    let outside = Outside::new(2, 0, branches);
    assert_eq!([2, 0, 5, 6, 1].map(|node| outside.host_of(node)), [2, 0, 2, 0, 1]);
    let addressed = vec![true, false, true];
    let pool = Pool::new(Directory { beyond: Some(outside), addressed, ..directory() }, 1500);
    // Where a packet that a host sends enters and is for, if this is the address at the other side.
    let of = |host: usize, address: &str| {
        let address: IpAddr = address.parse().unwrap();
        let ip = if address.is_ipv4() { Ip::V4 } else { Ip::V6 };
        let mut frame = udp_frame(host, 2 - host, ip, 1, 100, Ecn::NotEct);
        let source = host == 0;
        match address {
            IpAddr::V4(v4) => {
                frame[ETHERNET + if source { 12 } else { 16 }..][..4].copy_from_slice(&v4.octets())
            }
            IpAddr::V6(v6) => {
                frame[ETHERNET + if source { 8 } else { 24 }..][..16].copy_from_slice(&v6.octets())
            }
        }
        pool.packet(host, &frame).map(|packet| (packet.enters(), packet.destination()))
    };
    for (address, near, far) in
        [("192.0.2.7", 3, 4), ("192.0.2.200", 5, 6), ("2001:db8::7", 7, 8), ("10.9.0.1", 9, 10)]
    {
        assert_eq!(of(2, address), Some((near, far)), "to {address}");
        assert_eq!(of(0, address), Some((far, near)), "from {address}");
    }
    assert_eq!((of(2, "198.51.100.7"), of(0, "198.51.100.7")), (Some((2, 0)), Some((0, 2))), "no prefix");
    assert_eq!((of(2, "10.0.0.1"), of(0, "10.0.0.1")), (Some((2, 0)), Some((0, 2))), "the far end's own");
    assert_eq!(of(2, "10.0.0.4"), Some((9, 10)), "a stand-in has no address of its own");
}

#[test]
fn packets_of_a_host_behind_the_overlay_go_to_its_node_whatever_their_address() {
    let pool = Pool::new(Directory { ways: vec![Some(2)], ..directory() }, 1500);
    let frame = udp_frame(0, 9, Ip::V4, 1, 100, Ecn::NotEct);
    assert_eq!(pool.packet(0, &frame).map(|packet| packet.destination()), Some(2));
    assert!(pool.packet(1, &frame).is_none(), "no way is given where it enters, and there is no node 9");
    let mut to_group = frame;
    to_group[ETHERNET + 16..][..4].copy_from_slice(&[239, 1, 0, 1]);
    assert!(pool.packet(0, &to_group).is_none());
}
