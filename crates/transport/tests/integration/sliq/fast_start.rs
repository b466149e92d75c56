//! Fast start: pairs of packets measure the path's rate at the beginning, and windows open to it.

use super::pair::{Pair, Path, path};
use weir_base::{Rate, Span, Time};
use weir_endpoint::{Endpoint, Stream};

/// The time at which the receiver's rate over a round trip (at least 50 ms) first reaches 95 % of the rate of a path with one BDP of
/// buffer (at least 50 kB).
fn reaches(cc: &str, fast_start: &str, mbit: u64, rtt: u64) -> Time {
    let transport = format!(r#"{{ "kind": "sliq", "fast_start": "{fast_start}" }}"#);
    let rate = Rate::from_mbit_per_sec(mbit);
    let buffer = rate.bytes_in(Span::from_millis(rtt)).get().max(50_000);
    let path = Path { rate: Some((rate, buffer)), ..path(0.0, rtt / 2) };
    let mut pair = Pair::new(&transport, cc, false, path, 1);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    let over = Span::from_millis(rtt.max(50));
    // A packet of 1,500 bytes carries 1,445 bytes of data.
    let wanted = (rate.bytes_in(over).get() as f64 * 0.95 * 1_445.0 / 1_500.0) as u64;
    let mut before = 0;
    for n in 1..400 {
        let now = Time::ZERO + over * n;
        pair.run(now, |_| false);
        if pair.bytes() - before >= wanted {
            return now;
        }
        before = pair.bytes();
    }
    Time::NEVER
}

#[test]
fn fast_start_fills_a_long_path_sooner_than_slow_start() {
    for (cc, start) in [("copa", "long"), ("cubic", "always")] {
        for mbit in [10, 100] {
            let [slow, fast] = ["never", start].map(|start| reaches(cc, start, mbit, 300));
            assert!(fast < slow, "{cc}, {mbit} Mbit/s: {fast:?}, and {slow:?} by slow start");
        }
    }
    // On other paths, and with other controllers, there is no fast start unless it is requested.
    assert_eq!(reaches("copa", "long", 10, 20), reaches("copa", "never", 10, 20));
    assert_eq!(reaches("cubic", "long", 10, 300), reaches("cubic", "never", 10, 300));
}
