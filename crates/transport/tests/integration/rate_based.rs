//! TFRC and RAP flows over pipes that lose packets: their rates follow their equations, and the ends of their streams arrive.

use crate::wire::{Pipe, Wire};
use proptest::prelude::*;
use weir_base::{Rate, Span, Time};
use weir_control::tfrc::throughput;
use weir_endpoint::{Endpoint, Message, Stream};

const DELAY: Span = Span::from_millis(50);
const PLAIN: Pipe = Pipe::of(DELAY);

/// The transport with packets of 1,500 bytes: 1,456 of data.
fn named(name: &str) -> String {
    format!("\"{name}\"")
}

fn busy(name: &str, forth: Pipe) -> Wire {
    let mut wire = Wire::new(&named(name), forth, PLAIN, 7);
    assert!(wire.ends[0].keep_full(Stream(0), false));
    wire
}

/// The rate of IP bytes for a rate of data bytes.
fn with_headers(rate: f64) -> f64 {
    rate * 1500.0 / 1456.0
}

#[test]
fn tfrc_sends_at_the_rate_of_its_equation_under_random_loss() {
    for loss in [0.005, 0.01, 0.03] {
        let mut wire = busy("tfrc", Pipe { loss, ..PLAIN });
        wire.rate_over(30);
        let rate = with_headers(wire.rate_over(300));
        // Several losses in a round trip are one loss event, and the mean of a convex function is above the function of the mean:
        // 25 % leave room for both.
        let expected = throughput(1500.0, DELAY * 2, loss, 1.0, 4.0);
        assert!((rate / expected - 1.0).abs() < 0.25, "{loss}: {rate} {expected}");
    }
}

#[test]
fn rap_sends_at_the_rate_of_a_window_that_halves_and_grows_by_a_packet() {
    for loss in [0.001f64, 0.005] {
        let mut wire = busy("rap", Pipe { loss, ..PLAIN });
        wire.rate_over(60);
        let rate = with_headers(wire.rate_over(300));
        // A rate that rises from w / 2 to w packets a round trip, by one each round trip, sends 3 w^2 / 8 packets for each loss and
        // 3 w / 4 a round trip on average: sqrt(3 / (2 p)). RAP detects a loss a round trip and three packets later, and rises
        // meanwhile.
        let expected = (1.5 / loss).sqrt() * 1500.0 / 0.1;
        assert!((rate / expected - 1.0).abs() < 0.25, "{loss}: {rate} {expected}");
    }
}

#[test]
fn tfrc_and_rap_fill_a_bottleneck_of_2_mbit() {
    for name in ["tfrc", "rap"] {
        let rate = Some(Rate::from_mbit_per_sec(2));
        let mut wire = busy(name, Pipe { rate, queue: Span::from_millis(100), ..PLAIN });
        wire.rate_over(60);
        let used = with_headers(wire.rate_over(120)) * 8.0 / 2e6;
        assert!((0.85..=1.0).contains(&used), "{name}: {used}");
    }
}

#[test]
fn tfrc_and_rap_slow_down_in_an_outage_and_recover() {
    for name in ["tfrc", "rap"] {
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let forth = Pipe { loss: 0.005, outage: Some((at(60), at(75))), ..PLAIN };
        let mut wire = busy(name, forth);
        wire.rate_over(40);
        let before = wire.rate_over(20);
        wire.rate_over(10);
        let sent = wire.sent(0);
        wire.rate_over(5);
        let blind = (wire.sent(0) - sent) as f64 / 5.0;
        // The rate halves at each timeout, at first after 400 ms: after ten seconds hardly any packets leave.
        assert!(blind * 1456.0 < before / 20.0, "{name}: {blind} packets a second, {before} B/s before");
        wire.rate_over(60);
        let after = wire.rate_over(60);
        assert!(after > before / 2.0, "{name}: {after} {before}");
    }
}

#[test]
fn the_end_of_a_stream_arrives_over_a_pipe_that_loses_a_third() {
    for name in ["tfrc", "rap"] {
        let lossy = Pipe { loss: 0.33, ..PLAIN };
        let mut wire = Wire::new(&named(name), lossy, lossy, 3);
        let written = wire.ends[0].write(Stream(0), Message { bytes: 20_000, head: &[] }, Time::ZERO);
        assert_eq!(written, 20_000);
        wire.ends[0].close(None, Time::ZERO);
        wire.run(Time::from_nanos(600_000_000_000), |wire| {
            wire.ends[1].finished() && wire.ends[0].all_acknowledged()
        });
        assert!(wire.ends[1].finished() && wire.ends[0].all_acknowledged(), "{name}");
        assert!(wire.read[1] <= 20_000 && wire.read[1] > 0);
    }
}

#[test]
fn a_packet_that_arrives_twice_is_read_once() {
    for name in ["tfrc", "rap"] {
        let twice = Pipe { doubled: 0.5, ..PLAIN };
        let mut wire = Wire::new(&named(name), twice, PLAIN, 3);
        wire.ends[0].write(Stream(0), Message { bytes: 20_000, head: &[] }, Time::ZERO);
        wire.ends[0].close(None, Time::ZERO);
        wire.run(Time::from_nanos(600_000_000_000), |wire| wire.ends[1].finished());
        assert_eq!(wire.read[1], 20_000, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_network_and_no_bytes_make_tfrc_or_rap_panic(
        loss in 0.0..0.5, doubled in 0.0..0.3, late in 0.0..0.5, seed in any::<u64>(), tfrc in any::<bool>(),
        garbage in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
    ) {
        let pipe = Pipe { loss, doubled, late, ..PLAIN };
        let mut wire = Wire::new(&named(if tfrc { "tfrc" } else { "rap" }), pipe, pipe, seed);
        wire.ends[0].keep_full(Stream(0), true);
        for bytes in garbage {
            wire.rate_over(1);
            let mut body = weir_endpoint::Body::Datagram(Default::default());
            body.datagram_mut().set(&bytes, bytes.len() as u32);
            for end in 0..2 {
                wire.ends[end].receive(&body, weir_base::Ecn::NotEct, wire.now);
            }
        }
        wire.rate_over(5);
        prop_assert!(wire.ends[0].sample().is_none_or(|sample| sample.pacing_rate.is_some()));
    }
}
