//! SLIQ over a path that loses, delays, duplicates and damages packets: reliable data arrives once and in order, and no packet causes
//! a panic.

use proptest::prelude::*;
use weir_base::{Ecn, Span, Time};
use weir_endpoint::{Body, Datagram, Endpoint, Message, Stream};

mod connection;
mod deadline;
mod ecn;
mod fast_start;
mod mtu;
mod pair;

use pair::{FIXED, Pair, Path, path, secs};

const SLIQ: &str = r#"{ "kind": "sliq" }"#;

/// Writes `count` messages of `bytes` bytes, each beginning with its number, a millisecond apart, and runs ten seconds more.
fn messages(pair: &mut Pair, count: u32, bytes: u64) {
    for n in 0..count {
        pair.run(Time::ZERO + Span::from_millis(u64::from(n)), |_| false);
        pair.ends[0].write(Stream(0), Message { bytes, head: &n.to_be_bytes() }, pair.now);
    }
    pair.run(pair.now + Span::from_secs(10), |_| false);
}

fn numbers(pair: &Pair) -> Vec<u32> {
    pair.read.iter().map(|got| u32::from_be_bytes(got.head[..4].try_into().unwrap())).collect()
}

#[test]
fn a_stream_opens_carries_its_bytes_and_ends() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 1);
    pair.ends[0].open(pair.now);
    assert_eq!(pair.ends[0].write(Stream(0), Message { bytes: 100_000, head: &[] }, pair.now), 100_000);
    pair.ends[0].close(None, pair.now);
    pair.run(secs(10), |pair| pair.ends[1].finished() && pair.ends[0].all_acknowledged());
    assert_eq!(pair.bytes(), 100_000);
    assert!(pair.now < secs(1), "{:?}", pair.now);
    assert_eq!(pair.ends[0].sample().unwrap().retransmitted, 0);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 1);
    pair.ends.iter_mut().for_each(|end| end.open(Time::ZERO));
    pair.run(secs(1), |_| false);
    assert!(pair.ends.iter().all(|end| end.is_open()));
}

#[test]
fn a_connection_without_a_peer_is_given_up() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(1.0, 10), 1);
    pair.ends[0].open(pair.now);
    pair.run(secs(60), |_| false);
    assert!(!pair.ends[0].is_open());
    // Thirty-two requests, a third of a second apart, then nothing.
    assert_eq!(pair.ends[0].next_timer(), Time::NEVER);
}

#[test]
fn repair_packets_deliver_messages_where_a_retransmission_would_be_late() {
    // 30 ms one way: a retransmission cannot arrive within 60 ms. A fifth of the packets is lost.
    let transport = r#"{ "kind": "sliq", "stream": { "delivery": "arq-fec", "deadline": "60 ms", "target": 0.99, "queue": "16 MiB" } }"#;
    let mut pair = Pair::new(transport, FIXED, true, path(0.2, 30), 3);
    messages(&mut pair, 8_000, 1000);
    // Every message is delivered exactly once.
    let mut numbers = numbers(&pair);
    numbers.sort_unstable();
    assert!(numbers == (0..8_000).collect::<Vec<_>>(), "{} were read", numbers.len());
    let mut repairs = 0.0;
    pair.ends[0].state(&mut |_, name, value| repairs += if name == "repair_packets" { value } else { 0.0 });
    assert!(repairs > 1_000.0, "{repairs}");
}

#[test]
fn a_best_effort_stream_loses_the_share_that_the_path_loses() {
    let transport = r#"{ "kind": "sliq", "stream": { "delivery": "best-effort" } }"#;
    let mut pair = Pair::new(transport, "bbr", true, path(0.1, 5), 4);
    messages(&mut pair, 2_000, 1000);
    let arrived = pair.read.len();
    assert!((1_750..1_850).contains(&arrived), "{arrived}");
    assert!(pair.ends[0].all_acknowledged());
}

#[test]
fn data_flows_again_within_200_ms_after_an_outage() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 5);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    pair.run(secs(1), |_| false);
    pair.path.lose = 1.0;
    pair.run(secs(11), |_| false);
    let before = pair.bytes();
    pair.path.lose = 0.0;
    // At most two round trips between probes, one round trip for the answer, and one more for data.
    pair.run(secs(11) + Span::from_millis(200), |_| false);
    assert!(pair.bytes() > before + 50_000, "{}", pair.bytes() - before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_of_a_reliable_stream_arrive_once_and_in_order(
        lose in 0.0..0.4f64,
        double in 0.0..0.3f64,
        damage in 0.0..0.1f64,
        delay in 1u64..100,
        jitter in 0u64..50,
        words in 1u32..4_000,
        cc in prop::sample::select(vec!["cubic", "bbr", "newreno", "vegas"]),
        second in any::<bool>(),
        deadline in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let stream = if deadline {
            r#"{ "delivery": "arq-fec", "deadline": "150 ms", "order": "written" }"#
        } else {
            "{}"
        };
        let second = if second { r#", "second": "ledbat""# } else { "" };
        let transport = format!(r#"{{ "kind": "sliq", "stream": {stream}{second} }}"#);
        let path = Path { lose, double, damage, jitter: Span::from_millis(jitter), ..path(lose, delay) };
        let mut pair = Pair::new(&transport, cc, false, path, seed);
        pair.ends[0].open(pair.now);
        // A stream of numbers, which reveals a wrong order.
        let text: Vec<u8> = (0..words).flat_map(u32::to_be_bytes).collect();
        let mut written = 0;
        while written < text.len() {
            let rest = &text[written..];
            written += pair.ends[0].write(Stream(0), Message { bytes: rest.len() as u64, head: rest }, pair.now) as usize;
            pair.run(pair.now + Span::from_millis(100), |_| false);
        }
        pair.ends[0].close(None, pair.now);
        pair.run(secs(2_000), |pair| pair.ends[1].finished() && pair.ends[0].all_acknowledged());
        prop_assert!(pair.ends[1].finished());
        let read: Vec<u8> = pair.read.iter().flat_map(|got| got.head.iter().copied()).collect();
        prop_assert!(read == text, "{} of {} bytes", read.len(), text.len());
    }

    #[test]
    fn no_received_bytes_cause_a_panic(
        packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), 0u32..1500, 0u64..100), 1..60),
        valid in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let transport = r#"{ "kind": "sliq", "stream": { "delivery": "arq-fec", "deadline": "100 ms" } }"#;
        let mut pair = Pair::new(transport, "cubic", false, path(0.0, 10), seed);
        pair.ends[0].open(pair.now);
        pair.ends[0].keep_full(Stream(0), true);
        pair.run(Time::ZERO + Span::from_millis(100), |_| false);
        // A valid header of a sent packet, so that the bytes behind it are read.
        let mut body = Body::Datagram(Datagram::default());
        let header: Vec<u8> = pair.pipe.values().find(|sent| sent.to == 1).map(|sent| sent.datagram.head[..12].to_vec()).unwrap();
        for (n, (bytes, zeros, wait)) in packets.into_iter().enumerate() {
            let head = if valid {
                let mut head = header.clone();
                head[4..8].copy_from_slice(&(1000 + n as u32).to_be_bytes());
                head.extend(&bytes);
                head
            } else {
                bytes
            };
            let length = head.len() as u32 + zeros;
            body.datagram_mut().set(&head, length);
            pair.now += Span::from_millis(wait);
            let now = pair.now;
            for end in &mut pair.ends {
                end.receive(&body, Ecn::NotEct, now);
                end.on_timer(now);
            }
            pair.settle();
        }
    }
}
