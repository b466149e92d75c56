//! Streams under a deadline: what share of the messages is delivered in time.

use super::pair::{Pair, Path, path};
use weir_base::{Rate, Span, Time};
use weir_transport::{Endpoint, Message, Stream};

/// A message of 1,100 bytes each 2 ms for so many seconds over 10 Mbit/s, 10 ms each way and a queue of 50 kB. Answers the share in
/// percent that is read within the deadline, in milliseconds, of those written after the first five seconds.
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

/// A stream that always has data, with CUBIC before Copa, under a deadline that has no time for a full buffer.
#[test]
fn a_controller_that_fills_the_buffer_is_suspended_for_a_deadline() {
    let transport =
        r#"{ "kind": "sliq", "second": "copa", "stream": { "delivery": "arq-fec", "deadline": "30 ms" } }"#;
    let path = Path { rate: Some((Rate::from_mbit_per_sec(10), 50_000)), ..path(0.0, 10) };
    let mut pair = Pair::new(transport, "cubic", true, path, 1);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    pair.run(Time::ZERO + Span::from_secs(20), |_| false);
    // A full buffer takes 40 ms. Copa keeps two packets there: 2.4 ms.
    let srtt = pair.ends[0].sample().unwrap().srtt.unwrap();
    assert!(srtt < Span::from_millis(28), "{srtt:?}");
    assert!(pair.bytes() > 21_000_000, "{}", pair.bytes());
}
