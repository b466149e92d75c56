//! The send buffer as an application sees it, as in Linux 6.18 (`tcp_check_space`): a writer that finds too little room waits until a third of
//! the buffer is free, and the buffer grows only while one waits.

use crate::pair::{Pair, Script, config};
use weir_base::{Bytes, Span, Time};
use weir_tcp::Config;

const RTT: Span = Span::from_millis(20);
const MSS: u64 = 1448;

fn pair(config: Config) -> Pair {
    Pair::new(config, RTT, None, Script::default(), Script::default())
}

fn run_for(pair: &mut Pair, span: Span) {
    pair.run_until(pair.now + span);
}

/// Segments that the application could write after each of the first `count` acknowledgements of data.
fn writable(pair: &mut Pair, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut held = pair.client.unacknowledged();
    while seen.len() < count && pair.step(Time::ZERO + Span::from_secs(1)) {
        if pair.client.is_open() && pair.client.unacknowledged() < held {
            seen.push(pair.client.writable() / MSS);
        }
        held = pair.client.unacknowledged();
    }
    seen
}

#[test]
fn a_buffer_does_not_grow_while_all_that_is_written_finds_room() {
    let mut pair = pair(config("newreno"));
    run_for(&mut pair, RTT * 2);
    for _ in 0..4 {
        assert_eq!(pair.client.writable(), 21 * MSS, "two windows of ten segments");
        pair.write(20 * MSS);
        run_for(&mut pair, RTT * 5);
    }
    assert!(pair.info().cwnd > 20, "the window has grown");
}

#[test]
fn a_writer_that_waits_makes_the_buffer_grow_with_the_window() {
    let mut pair = pair(config("newreno"));
    run_for(&mut pair, RTT * 2);
    pair.write(100 * MSS);
    // 21 segments are written. Each of the first acknowledgements is of one segment and raises the window of 10 by one, with which the
    // buffer grows: after k of them it has 2 (10 + k) 2304 bytes, of which 21 - k segments of 2280 hold a part. With k = 4 they
    // are 17, at most two thirds of 64,512 bytes for the first time, and there is room for 29 in all.
    assert_eq!(writable(&mut pair, 4), [0, 0, 0, 12]);
    run_for(&mut pair, Span::from_secs(1));
    assert_eq!(pair.read, 100 * MSS);
    assert!(pair.client.writable() > 80 * MSS);
}

#[test]
fn a_writer_that_waits_is_woken_when_a_third_of_a_fixed_buffer_is_free() {
    let fixed = Bytes::new(20 * 2280);
    let mut pair = pair(Config { send_buffer: (fixed, fixed), ..config("newreno") });
    run_for(&mut pair, RTT * 2);
    pair.write(100 * MSS);
    // 20 segments are held; two thirds are 13.3. Seven must be acknowledged.
    assert_eq!(writable(&mut pair, 7), [0, 0, 0, 0, 0, 0, 7]);
}

#[test]
fn a_buffer_begins_with_two_windows_of_a_controller_that_begins_with_a_larger_one() {
    let circuit = r#"{ "kind": "ctcp", "rate": "100 Mbit/s", "rtt": "20 ms" }"#;
    let mut pair = pair(Config::new(serde_json::from_str(circuit).unwrap()));
    run_for(&mut pair, RTT * 2);
    let window = u64::from(pair.info().cwnd);
    assert!(window > 100, "{window}");
    // A segment requests 2304 bytes and is charged with 2280.
    assert_eq!(pair.client.writable(), (2 * window * 2304).div_ceil(2280) * MSS);
}

#[test]
fn an_application_without_end_writes_when_the_host_takes_segments_again() {
    let mut pair = pair(config("newreno"));
    pair.client.write_forever(true);
    run_for(&mut pair, RTT * 4);
    let full = pair.client.unacknowledged();
    // Steps that deliver data to the server leave the buffer as it is; an acknowledgement frees a part of it.
    while pair.client.unacknowledged() >= full {
        assert!(pair.step(Time::ZERO + Span::from_secs(1)), "an acknowledgement arrives");
    }
    let held = pair.client.unacknowledged();
    pair.client.throttled(pair.now);
    assert_eq!(pair.client.unacknowledged(), held, "nothing is written while the host's card is full");
    assert!(pair.client.poll_transmit(pair.now).is_some());
    assert!(pair.client.unacknowledged() > held);
}
