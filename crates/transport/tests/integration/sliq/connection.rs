//! The connection as a whole: flow control, its end without a peer, and the order of its streams.

use super::pair::{FIXED, Pair, path, secs};
use weir_base::{Span, Time};
use weir_endpoint::{Body, Datagram, Endpoint, Message, Stream};

#[test]
fn a_receiver_that_does_not_read_gets_one_window_and_no_more() {
    let mut pair = Pair::new(r#"{ "kind": "sliq" }"#, FIXED, false, path(0.05, 5), 1);
    pair.reads = false;
    pair.ends[0].open(pair.now);
    let text = vec![7; 256 * 1024];
    let write = |pair: &mut Pair, until: u64| {
        while pair.now < secs(until) {
            pair.ends[0].write(Stream(0), Message { bytes: text.len() as u64, head: &text }, pair.now);
            pair.run(pair.now + Span::from_millis(20), |_| false);
        }
    };
    write(&mut pair, 20);
    // 32,768 segments of 1,500 bytes minus 28 of IP and UDP, 12 of the header, and 15 before a payload; segments that end a write
    // are shorter.
    let full = pair.ends[0].sample().unwrap().acknowledged.get();
    assert!((46_000_000..=32_768 * 1_445).contains(&full), "{full}");
    write(&mut pair, 22);
    assert_eq!(pair.ends[0].sample().unwrap().acknowledged.get(), full, "it went on");
    pair.reads = true;
    write(&mut pair, 24);
    assert!(pair.bytes() > full + 1_000_000, "{}", pair.bytes());
}

/// A connection that carries one kilobyte and is then idle.
fn quiet(transport: &str) -> Pair {
    let mut pair = Pair::new(transport, "cubic", false, path(0.0, 5), 1);
    pair.ends[0].open(pair.now);
    pair.ends[0].write(Stream(0), Message { bytes: 1_000, head: &[] }, pair.now);
    pair
}

#[test]
fn a_silent_connection_ends_after_its_idle_time_unless_keepalives_arrive() {
    let mut pair = quiet(r#"{ "kind": "sliq", "idle": "10 s" }"#);
    pair.run(secs(9), |_| false);
    assert!(pair.ends.iter().all(|end| end.is_open()));
    pair.run(secs(11), |_| false);
    assert!(pair.ends.iter().all(|end| !end.is_open()));

    let mut pair = quiet(r#"{ "kind": "sliq", "idle": "10 s", "keepalive": "4 s" }"#);
    pair.run(secs(100), |_| false);
    assert!(pair.ends.iter().all(|end| end.is_open()));
    pair.path.lose = 1.0;
    pair.run(secs(111), |_| false);
    assert!(pair.ends.iter().all(|end| !end.is_open()));
}

#[test]
fn data_for_a_closed_connection_closes_it_at_the_sender_too() {
    let mut pair = quiet(r#"{ "kind": "sliq", "idle": "10 s" }"#);
    pair.run(secs(1), |_| false);
    // Over a path that loses all packets, the ends close, and their last packets do not arrive.
    pair.path.lose = 1.0;
    pair.run(secs(11), |_| false);
    let mut other = quiet(r#"{ "kind": "sliq", "idle": "10 s" }"#);
    other.run(secs(1), |_| false);
    pair.ends.swap(0, 1);
    std::mem::swap(&mut pair.ends[0], &mut other.ends[0]);
    pair.path.lose = 0.0;
    assert!(pair.ends[0].is_open() && !pair.ends[1].is_open());
    pair.ends[0].write(Stream(0), Message { bytes: 1_000, head: &[] }, pair.now);
    pair.run(secs(12), |_| false);
    assert!(!pair.ends[0].is_open());
}

/// Two streams of one connection with data at the same time.
#[test]
fn streams_of_one_connection_are_sent_by_priority() {
    let stream = |priority: u8| {
        let text = format!(
            r#"{{ "kind": "sliq", "connection": "a", "stream": {{ "priority": {priority}, "queue": "1 MB" }} }}"#
        );
        serde_json::from_str::<weir_transport::Config>(&text).unwrap()
    };
    let (low, high) = (stream(5), stream(1));
    let mut pair = Pair::new(&serde_json::to_string(&low).unwrap(), FIXED, false, path(0.0, 5), 1);
    let mut urgent = pair.join(&high);
    pair.ends[0].open(pair.now);
    pair.ends[0].write(Stream(0), Message { bytes: 100_000, head: &[] }, pair.now);
    pair.run(Time::ZERO + Span::from_millis(20), |_| false);
    pair.ends[0].write(Stream(0), Message { bytes: 100_000, head: &[] }, pair.now);
    urgent[0].write(Stream(0), Message { bytes: 3_000, head: &[] }, pair.now);
    let mut body = Body::Datagram(Datagram::default());
    // At most one packet of each stream every 10 ms: the three urgent packets, and then the others again.
    let mut order = Vec::new();
    for _ in 0..5 {
        pair.now += Span::from_millis(10);
        for (name, end) in [("low", &mut pair.ends[0]), ("high", &mut urgent[0])] {
            order.extend(end.transmit(&mut body, pair.now).map(|_| name));
        }
    }
    assert_eq!(order[..4], ["high", "high", "high", "low"]);
    assert!(urgent[0].join(&serde_json::from_str(r#""tcp""#).unwrap(), &pair.setup()).is_none());
}
