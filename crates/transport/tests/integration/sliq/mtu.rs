//! Paths whose MTU is unknown at first, and paths whose MTU becomes smaller.

use super::pair::{FIXED, Pair, Path, path, secs};
use proptest::prelude::*;
use weir_base::{Rate, Span, Time};
use weir_endpoint::{Endpoint, Message, Stream};

const SEARCHES: &str = r#"{ "kind": "sliq", "search_mtu": true }"#;

/// A stream of numbers, which reveals a wrong order.
fn text(words: u32) -> Vec<u8> {
    (0..words).flat_map(u32::to_be_bytes).collect()
}

/// Writes the text, calls `on` every 50 ms with the number of bytes written, ends the stream and runs until all data has arrived.
fn carry(pair: &mut Pair, text: &[u8], mut on: impl FnMut(&mut Pair, usize)) {
    pair.ends[0].open(pair.now);
    let mut written = 0;
    while written < text.len() {
        let rest = &text[written..];
        written += pair.ends[0].write(Stream(0), Message { bytes: rest.len() as u64, head: rest }, pair.now)
            as usize;
        pair.run(pair.now + Span::from_millis(50), |_| false);
        on(pair, written);
    }
    pair.ends[0].close(None, pair.now);
    pair.run(pair.now + Span::from_secs(2_000), |pair| {
        pair.ends[1].finished() && pair.ends[0].all_acknowledged()
    });
}

fn read(pair: &Pair) -> Vec<u8> {
    pair.read.iter().flat_map(|got| got.head.iter().copied()).collect()
}

/// Lengths of the IP packets on the way to the second end.
fn lengths(pair: &Pair) -> Vec<u32> {
    pair.pipe.values().filter(|sent| sent.to == 1).map(|sent| sent.datagram.payload() + 28).collect()
}

#[test]
fn packets_grow_to_the_path_mtu_and_lost_probes_cause_no_reduction() {
    for (mtu, least) in [(1500, 1490), (1400, 1380), (1228, 1220)] {
        let mut pair = Pair::new(SEARCHES, FIXED, false, Path { mtu, ..path(0.0, 10) }, 1);
        pair.ends[0].open(pair.now);
        pair.ends[0].keep_full(Stream(0), true);
        pair.run(Time::ZERO + Span::from_millis(30), |_| false);
        assert!(lengths(&pair).iter().all(|length| *length <= 1228), "it began with long packets");
        pair.run(secs(2), |_| false);
        let longest = lengths(&pair).into_iter().max().unwrap();
        assert!((least..=mtu).contains(&longest), "{longest} over {mtu}");
        assert_eq!(pair.ends[0].counts().recoveries, 0);
        assert_eq!(pair.ends[0].sample().unwrap().retransmitted, 0);
    }
}

#[test]
fn a_stream_arrives_complete_when_the_path_mtu_shrinks() {
    let text = text(300_000);
    for stream in ["{}", r#"{ "delivery": "arq-fec", "deadline": "150 ms", "order": "written" }"#] {
        let transport = format!(r#"{{ "kind": "sliq", "search_mtu": true, "stream": {stream} }}"#);
        let rate = Some((Rate::from_mbit_per_sec(10), 50_000));
        let mut pair = Pair::new(&transport, "copa", false, Path { rate, ..path(0.01, 10) }, 2);
        let mut longest = 0;
        carry(&mut pair, &text, |pair, written| {
            longest = lengths(pair).into_iter().max().unwrap_or(0).max(longest);
            if written > text.len() / 2 {
                pair.path.mtu = 1300;
            }
        });
        assert!(longest > 1490, "{longest}");
        assert!(pair.ends[1].finished() && read(&pair) == text, "{} of {}", read(&pair).len(), text.len());
        assert!(pair.now < secs(5), "{:?}", pair.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_arrive_once_and_in_order_however_the_path_changes(
        lose in 0.0..0.3f64,
        double in 0.0..0.2f64,
        jitter in 0u64..30,
        mtus in prop::collection::vec(1228u32..1500, 1..6),
        cc in prop::sample::select(vec!["cubic", "bbr", "copa", "westwood"]),
        deadline in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let stream = if deadline { r#"{ "delivery": "arq-fec", "deadline": "150 ms", "order": "written" }"# } else { "{}" };
        let transport = format!(r#"{{ "kind": "sliq", "search_mtu": true, "stream": {stream} }}"#);
        let path = Path { lose, double, jitter: Span::from_millis(jitter), ..path(lose, 20) };
        let mut pair = Pair::new(&transport, cc, false, path, seed);
        let (text, mut next) = (text(50_000), mtus.iter().cycle());
        carry(&mut pair, &text, |pair, _| pair.path.mtu = *next.next().unwrap());
        prop_assert!(pair.ends[1].finished());
        let read = read(&pair);
        prop_assert!(read == text, "{} of {} bytes", read.len(), text.len());
    }
}
