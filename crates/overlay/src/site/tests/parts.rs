//! Datagrams in parts: long ones, those with repairs, and those that keep their order.

use super::{HERE, Pair, THERE, datagram, places, site};
use crate::site::Service;
use crate::site::datagram::{self, Fate, read};

fn service(json: serde_json::Value) -> Service {
    let service: Service = serde_json::from_value(json).unwrap();
    assert_eq!(service.fault(), None);
    service
}

/// Two sites, of which the first one has these services.
fn pair(services: Vec<Service>) -> Pair {
    let mut pair = Pair::new([site(0, places(), services), site(1, places(), vec![])]);
    pair.ticks(1500);
    pair
}

/// The last byte of each datagram that has been delivered at site 1.
fn come(pair: &Pair) -> Vec<u8> {
    pair.delivered[1].iter().filter_map(|datagram| datagram.last().copied()).collect()
}

/// Sends so many datagrams of 200 bytes, one each 2 ms. Their last bytes are their numbers.
fn send(pair: &mut Pair, count: u8) {
    for number in 0..count {
        pair.tick(&[datagram(HERE, THERE, &[number; 200])]);
        pair.ticks(1);
    }
    pair.ticks(300);
}

#[test]
fn a_datagram_for_which_a_packet_has_no_room_leaves_as_it_came() {
    let mut pair = pair(vec![]);
    let payload: Vec<u8> = (0..9000_u32).map(|n| (n % 251) as u8).collect();
    let long = datagram(HERE, THERE, &payload);
    // A fragment is carried whole, as IP within IP.
    let mut fragment = long.clone();
    fragment[6] = 0x20;
    let mut short = long[..1300].to_vec();
    short[2..4].copy_from_slice(&1300_u16.to_be_bytes());
    short[6] = 0x20;
    for sent in [&long, &fragment, &short] {
        pair.tick(std::slice::from_ref(sent));
        pair.ticks(30);
        let come = pair.delivered[1].pop().unwrap();
        assert_eq!(
            read(&come).unwrap(),
            read(sent)
                .map(|read| datagram::Read { body: &come[come.len() - read.body.len()..], ..read })
                .unwrap()
        );
        assert_eq!(come[20..], sent[20..]);
        assert_eq!(come[8], 63);
    }
    assert!(pair.delivered[1].is_empty());
    let flows: Vec<u8> = pair.sites[0].told().map(|flow| flow.inner.protocol).collect();
    assert_eq!(flows, [253, 254, 4]);
    assert_eq!((pair.sites[0].counts().too_long, pair.sites[1].counts().incomplete), (0, 0));
}

#[test]
fn a_service_cuts_what_is_longer_than_its_chunk_and_more_parts_than_31_are_refused() {
    let mut pair =
        pair(vec![service(serde_json::json!({ "name": "small", "ports": 6000, "chunk": "100 B" }))]);
    for length in [100, 101, 3000] {
        pair.tick(&[datagram(HERE, THERE, &vec![7; length])]);
        pair.ticks(30);
        assert_eq!(pair.delivered[1].pop().unwrap().len(), 28 + length);
    }
    // The checksum is cut with the payload, so that the longest datagram has 3,098 bytes.
    pair.tick(&[datagram(HERE, THERE, &[7; 3099])]);
    pair.ticks(30);
    assert!(pair.delivered[1].is_empty());
    assert_eq!(pair.sites[0].counts().too_long, 1);
    let admitted: Vec<u64> = pair.sites[0].told().map(|flow| flow.admitted).collect();
    assert_eq!(admitted, [1, 2 + 31]);
}

#[test]
fn repairs_restore_what_is_lost_on_the_way_without_an_answer() {
    let lossy = |services| {
        let mut pair = pair(services);
        pair.passes = Box::new(|number, packet| if number % 7 == 3 { vec![] } else { vec![packet] });
        send(&mut pair, 100);
        pair
    };
    let bare = lossy(vec![]);
    assert_eq!(come(&bare).len(), 86);
    let fec = service(serde_json::json!({ "name": "fec", "ports": 6000, "fec": { "base": 4, "total": 5 } }));
    let coded = lossy(vec![fec]);
    let mut all = come(&coded);
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<u8>>());
    // Of 125 packets 18 were lost, some of them repairs.
    let restored = coded.sites[1].counts().restored;
    assert!((10..=18).contains(&restored), "{restored}");
    assert_eq!(coded.sites[0].told().map(|flow| flow.admitted).sum::<u64>(), 125);
    // The checksum of each datagram is its own again.
    assert!(coded.delivered[1].iter().all(|datagram| read(datagram).unwrap().checksum == 1));
}

#[test]
fn a_group_that_is_not_full_gets_its_repairs_after_its_time() {
    let fec =
        service(serde_json::json!({ "name": "fec", "fec": { "base": 8, "total": 9, "hold": "50 ms" } }));
    let mut pair = pair(vec![fec]);
    pair.passes = Box::new(|number, packet| if number == 1 { vec![] } else { vec![packet] });
    for number in 0..3 {
        pair.tick(&[datagram(HERE, THERE, &[number; 200])]);
    }
    pair.ticks(40);
    assert_eq!(come(&pair), [0, 2]);
    pair.ticks(20);
    assert_eq!(come(&pair), [0, 2, 1]);
}

#[test]
fn datagrams_of_a_service_with_an_order_leave_in_it_and_wait_for_no_longer_than_it_says() {
    let ordered = || service(serde_json::json!({ "name": "ordered", "reorder": "100 ms" }));
    // Each third packet comes twice.
    let mut twice = pair(vec![ordered()]);
    twice.passes = Box::new(|number, packet| match number % 3 {
        1 => vec![packet.clone(), packet],
        _ => vec![packet],
    });
    send(&mut twice, 60);
    assert_eq!(come(&twice), (0..60).collect::<Vec<u8>>());
    let mut late = pair(vec![ordered()]);
    late.passes = Box::new(|number, packet| if number == 2 { vec![] } else { vec![packet] });
    for number in 0..5 {
        late.tick(&[datagram(HERE, THERE, &[number; 200])]);
    }
    late.ticks(50);
    assert_eq!(come(&late), [0, 1]);
    late.ticks(70);
    assert_eq!(come(&late), [0, 1, 3, 4]);
    // The fourth one comes after the fifth.
    let mut swap = pair(vec![ordered()]);
    let mut held = None;
    swap.passes = Box::new(move |number, packet| match number {
        3 => {
            held = Some(packet);
            vec![]
        }
        4 => [Some(packet), held.take()].into_iter().flatten().collect(),
        _ => vec![packet],
    });
    send(&mut swap, 6);
    assert_eq!(come(&swap), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn of_a_service_that_keeps_the_newest_all_parts_of_the_newest_datagram_wait() {
    let newest = service(serde_json::json!({ "name": "newest", "newest": true, "chunk": "100 B" }));
    let mut pair = Pair::new([site(0, places(), vec![newest]), site(1, places(), vec![])]);
    pair.is_up = false;
    pair.ticks(10);
    for number in 0..5 {
        pair.tick(&[datagram(HERE, THERE, &[number; 250])]);
    }
    assert_eq!(pair.sites[0].told().next().unwrap().waiting, 3);
    pair.is_up = true;
    pair.ticks(2000);
    assert_eq!(come(&pair), [4]);
}

#[test]
fn what_an_edge_sends_as_parts_and_is_none_leaves_nothing() {
    let mut pair = pair(vec![]);
    let payload = [9; 4000];
    pair.passes = Box::new(|number, mut packet| {
        // The trailers of the second part are broken.
        if number == 1 {
            let end = packet.len();
            packet[end - 20..].fill(0xff);
        }
        vec![packet]
    });
    pair.tick(&[datagram(HERE, THERE, &payload)]);
    pair.ticks(4000);
    assert!(pair.delivered[1].is_empty());
    assert_eq!(pair.sites[1].counts().incomplete, 1);
    let fate = Fate { hops: 0, ecn: 0, checksum: 0, sequence: 0 };
    let whole = crate::Inner { protocol: 4, source: HERE, destination: THERE, ..Default::default() };
    // A datagram that is longer than it says, or shorter, does not leave either.
    let mut wrong = datagram(HERE, THERE, b"short");
    wrong[3] += 1;
    assert!(!datagram::write(&whole, fate, &wrong, &mut vec![]));
}

/// Sends datagrams of 50 bytes, one each millisecond, by a service.
fn short(service_json: serde_json::Value, count: u8) -> Pair {
    let mut pair = pair(vec![service(service_json)]);
    for number in 0..count {
        pair.tick(&[datagram(HERE, THERE, &[number; 50])]);
    }
    pair.ticks(300);
    pair
}

#[test]
fn short_datagrams_of_a_service_are_joined_and_leave_as_they_came() {
    let apart = short(serde_json::json!({ "name": "apart" }), 60);
    let joined = short(serde_json::json!({ "name": "joined", "join": "10 ms" }), 60);
    for pair in [&apart, &joined] {
        assert_eq!(come(pair), (0..60).collect::<Vec<u8>>());
        assert!(
            pair.delivered[1]
                .iter()
                .all(|datagram| datagram.len() == 78 && read(datagram).unwrap().checksum == 1)
        );
    }
    let admitted = |pair: &Pair| pair.sites[0].told().map(|flow| flow.admitted).sum::<u64>();
    // Each waits for 10 ms at most: ten or eleven leave together.
    assert_eq!(admitted(&apart), 60);
    assert!((5..=7).contains(&admitted(&joined)), "{}", admitted(&joined));
}

#[test]
fn a_marked_datagram_is_joined_to_no_other_one_and_keeps_its_place_and_its_mark() {
    let mut pair = pair(vec![service(serde_json::json!({ "name": "joined", "join": "50 ms" }))]);
    for number in 0..6 {
        let mut sent = datagram(HERE, THERE, &[number; 50]);
        if number == 3 {
            // ECT(0), with the header's checksum made anew by the reader of it.
            sent[1] |= 2;
        }
        pair.tick(&[sent]);
    }
    pair.ticks(300);
    assert_eq!(come(&pair), (0..6).collect::<Vec<u8>>());
    let marks: Vec<u8> = pair.delivered[1].iter().map(|datagram| datagram[1] & 3).collect();
    assert_eq!(marks, [0, 0, 0, 2, 0, 0]);
    assert_eq!(pair.sites[0].told().map(|flow| flow.admitted).sum::<u64>(), 3);
}

#[test]
fn datagrams_of_a_service_with_smoothed_release_leave_with_the_spacing_that_they_had() {
    // One enters each 20 ms, and each second one is held up for 20 ms on its way, until the next one comes.
    let spacing = |smooth: bool| {
        let mut pair = pair(vec![service(serde_json::json!({ "name": "call", "smooth": smooth }))]);
        let mut held = None;
        pair.passes = Box::new(move |number, packet| {
            if number % 2 == 1 {
                held = Some(packet);
                return vec![];
            }
            [held.take(), Some(packet)].into_iter().flatten().collect()
        });
        let (mut left, mut ticks) = (vec![], 0);
        for number in 0..100 {
            pair.tick(&[datagram(HERE, THERE, &[number; 50])]);
            for _ in 0..20 {
                pair.ticks(1);
                ticks += 1;
                left.extend(pair.delivered[1].drain(..).map(|datagram| (ticks, datagram.last().copied())));
            }
        }
        assert!(left.iter().map(|(_, number)| number.unwrap()).eq(0..left.len() as u8) && left.len() > 95);
        left.windows(2).skip(40).map(|two| two[1].0 - two[0].0).collect::<Vec<i32>>()
    };
    let [bare, smooth] = [false, true].map(spacing);
    assert!(bare.contains(&0), "two leave at once: {bare:?}");
    assert!(smooth.iter().all(|gap| (8..=32).contains(gap)), "{smooth:?}");
}
