//! Streams with a deadline: the share of messages that is delivered in time.

use super::pair::{Pair, Path, path};
use proptest::prelude::*;
use weir_base::{Rate, Span, Time};
use weir_endpoint::{Datagram, Endpoint, Message, Stream};

/// Sends a message of 1,100 bytes every 2 ms for `seconds` seconds over 10 Mbit/s, 10 ms each way and a queue of 50 kB. Returns the
/// percentage of messages read within the deadline (in milliseconds), of those written after the first five seconds.
fn on_time(cc: &str, lose: f64, deadline: u64, seconds: u64, seed: u64) -> f64 {
    let stream = format!(r#"{{ "delivery": "arq-fec", "deadline": "{deadline} ms", "target": 0.995 }}"#);
    let transport = format!(r#"{{ "kind": "sliq", "stream": {stream} }}"#);
    let path = Path { rate: Some((Rate::from_mbit_per_sec(10), 50_000)), ..path(lose, 10) };
    let mut pair = Pair::new(&transport, cc, true, path, seed);
    let due = |n: u32| Time::ZERO + Span::from_millis(2) * u64::from(n);
    let count = seconds as u32 * 500;
    for n in 0..count {
        pair.run(due(n), |_| false);
        pair.ends[0].write(Stream(0), Message { bytes: 1_100, head: &n.to_be_bytes() }, pair.now);
    }
    pair.run(pair.now + Span::from_secs(2), |_| false);
    let first = 5 * 500;
    let in_time = pair.read.iter().filter(|got| {
        let number = u32::from_be_bytes(got.head[..4].try_into().unwrap());
        number >= first && got.at.since(due(number)) <= Span::from_millis(deadline)
    });
    100.0 * in_time.count() as f64 / f64::from(count - first)
}

#[test]
fn a_deadline_of_50_ms_is_kept_at_a_loss_of_a_fifth() {
    let fixed = r#"{ "kind": "ctcp", "rate": "9 Mbit/s", "rtt": "60 ms", "pace": true, "fall_back": false }"#;
    for cc in ["copa", fixed] {
        for seed in 1..4 {
            let share = on_time(cc, 0.2, 50, 65, seed);
            assert!(share >= 99.5, "{cc}: {share} %");
        }
    }
}

/// A stream with endless data, with CUBIC before Copa, and a deadline shorter than the delay of a full buffer.
#[test]
fn a_deadline_suspends_a_controller_that_fills_the_buffer() {
    let transport =
        r#"{ "kind": "sliq", "second": "copa", "stream": { "delivery": "arq-fec", "deadline": "30 ms" } }"#;
    let path = Path { rate: Some((Rate::from_mbit_per_sec(10), 50_000)), ..path(0.0, 10) };
    let mut pair = Pair::new(transport, "cubic", true, path, 1);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    pair.run(Time::ZERO + Span::from_secs(20), |_| false);
    // A full buffer delays by 40 ms. Copa keeps two packets in it: 2.4 ms.
    let srtt = pair.ends[0].sample().unwrap().srtt.unwrap();
    assert!(srtt < Span::from_millis(28), "{srtt:?}");
    assert!(pair.bytes() > 21_000_000, "{}", pair.bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_late_message_is_reported_as_on_time(
        lose in 0.0..0.4f64,
        double in 0.0..0.2f64,
        delay in 1u64..60,
        deadline in 20u64..200,
        mbit in prop::sample::select(vec![None, Some(3), Some(10)]),
        order in prop::sample::select(vec!["written", "any"]),
        bytes in 20u64..4_000,
        sealed in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let stream = format!(r#"{{ "delivery": "arq-fec", "deadline": "{deadline} ms", "order": "{order}" }}"#);
        let seal = if sealed { "noise" } else { "none" };
        let transport = format!(r#"{{ "kind": "sliq", "seal": "{seal}", "stream": {stream} }}"#);
        let rate = mbit.map(|mbit| (Rate::from_mbit_per_sec(mbit), 50_000));
        let mut pair = Pair::new(&transport, "copa", true, Path { lose, double, rate, ..path(lose, delay) }, seed);
        pair.ends[0].open(pair.now);
        pair.run(Time::ZERO + Span::from_secs(10), |pair| pair.ends[0].is_open());
        prop_assume!(pair.ends[0].is_open());
        // Each message begins with the time at which it is written.
        let begins = pair.now;
        for n in 0..1_000u64 {
            pair.run(begins + Span::from_millis(5) * n, |_| false);
            let head = pair.now.as_nanos().to_be_bytes();
            pair.ends[0].write(Stream(0), Message { bytes, head: &head }, pair.now);
        }
        pair.run(pair.now + Span::from_secs(5), |_| false);
        // The first second, in which the sender measures the path, is not counted.
        let (mut read, mut told, mut in_time) = (0, 0, 0);
        for got in &pair.read {
            let handed = Time::from_nanos(u64::from_be_bytes(got.head[..8].try_into().unwrap()));
            let counts = u32::from(handed >= begins + Span::from_secs(1));
            read += counts;
            let Some(due) = got.due else { continue };
            told += counts;
            in_time += if got.at <= due { counts } else { 0 };
            // Packets carry times in microseconds.
            let late = got.at.since(handed + Span::from_millis(deadline));
            prop_assert!(got.at > due || late <= Span::from_micros(5), "late by {late}, and due at {due:?}");
        }
        prop_assert!(told * 10 >= read * 9, "{told} of {read} were told");
        let has_room = mbit.is_none_or(|mbit| bytes * 8 * 200 * 2 < mbit * 1_000_000);
        let path_allows = lose < 0.2 && deadline > 4 * delay + 50 && has_room;
        prop_assert!(!path_allows || in_time * 10 >= told * 9, "{in_time} of {told}");
    }
}

#[test]
fn a_time_to_the_deadline_out_of_range_ends_the_connection() {
    let transport = r#"{ "kind": "sliq", "stream": { "delivery": "arq-fec", "deadline": "50 ms" } }"#;
    for (more, ends) in [(0, false), (61_000_000, true)] {
        let mut pair = Pair::new(transport, "copa", true, path(0.0, 10), 1);
        pair.ends[0].open(pair.now);
        pair.ends[0].write(Stream(0), Message { bytes: 100, head: &[] }, pair.now);
        pair.run(Time::ZERO + Span::from_millis(35), |pair| {
            pair.pipe.values().any(|sent| is_data(&sent.datagram))
        });
        let sent = pair.pipe.values_mut().find(|sent| is_data(&sent.datagram)).unwrap();
        // The time to go is behind the header's 12 bytes and the frame's 11.
        let place = &mut sent.datagram.head[23..27];
        let due = u32::from_be_bytes((&*place).try_into().unwrap());
        place.copy_from_slice(&due.wrapping_add(more).to_be_bytes());
        pair.run(Time::ZERO + Span::from_millis(200), |_| false);
        assert_eq!(!pair.ends[1].is_open(), ends, "{more}");
    }
}

/// Whether a packet carries data.
fn is_data(datagram: &Datagram) -> bool {
    datagram.head.get(12) == Some(&2)
}
