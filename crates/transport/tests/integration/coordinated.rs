//! CP-RUDP alone, and several flows of one application between two aggregation points over a path with random loss: their rates
//! and shares.

mod sites;
mod sliq;

use crate::wire::{Pipe, Wire};
use proptest::prelude::*;
use sites::{DELAY, Sites, flowshare, seconds};
use weir_base::Rate;
use weir_endpoint::{Endpoint, Message, Stream};

/// Flows of CP-RUDP with more parameters, between plain aggregation points.
fn rudp(flows: usize, parameters: &str, loss: f64) -> Sites {
    with(flows, parameters, "", loss)
}

/// The same with more lines in the application's table of both aggregation points.
fn with(flows: usize, parameters: &str, more: &str, loss: f64) -> Sites {
    let transport = format!(r#"{{ "kind": "rudp", "application": 1 {parameters} }}"#);
    Sites::new(&vec![transport; flows], more, loss)
}

#[test]
fn without_aggregation_points_a_flow_keeps_its_rate() {
    let transport = r#"{ "kind": "rudp", "rate": "2 Mbit/s" }"#;
    let mut wire = Wire::new(transport, Pipe::of(DELAY), Pipe::of(DELAY), 1);
    wire.run(seconds(10), |wire| {
        wire.ends[0].write(Stream(0), Message { bytes: 1 << 20, head: &[] }, wire.now);
        false
    });
    // 1,463 bytes of data in 1,500: 2 Mbit/s are 243,833 bytes of data a second.
    let rate = wire.read[1] as f64 / 10.0;
    assert!((rate / 243_833.0 - 1.0).abs() < 0.02, "{rate}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_byte_arrives_once_despite_loss_duplication_and_reordering(
        loss in 0.0..0.3, doubled in 0.0..0.3, late in 0.0..0.5, seed in any::<u64>(), bytes in 1u64..300_000,
    ) {
        let pipe = Pipe { loss, doubled, late, ..Pipe::of(DELAY) };
        let transport = r#"{ "kind": "rudp", "rate": "5 Mbit/s" }"#;
        let mut wire = Wire::new(transport, pipe, pipe, seed);
        let mut left = bytes;
        wire.run(seconds(600), |wire| {
            left -= wire.ends[0].write(Stream(0), Message { bytes: left, head: &[] }, wire.now);
            if left == 0 {
                wire.ends[0].close(None, wire.now);
            }
            wire.ends[1].finished() && wire.ends[0].all_acknowledged()
        });
        prop_assert_eq!((wire.read[1], left), (bytes, 0));
        prop_assert!(wire.ends[1].finished() && wire.ends[0].all_acknowledged());
    }
}

#[test]
fn each_flow_gets_one_flowshare_whatever_the_number_of_flows() {
    // At 1 % of loss and 50 ms a flowshare is the rate of the equation, for one flow or for twelve.
    let expected = flowshare() * 1427.0 / 1500.0;
    for flows in [1, 4, 12] {
        let mut sites = rudp(flows, "", 0.01);
        sites.rates(20, |_| 1 << 20);
        let rates = sites.rates(60, |_| 1 << 20);
        let mean = rates.iter().sum::<f64>() / flows as f64;
        // 2 % of the sent data is retransmitted, and a loss event may be more than one loss.
        assert!((0.85..1.2).contains(&(mean / expected)), "{flows}: {mean} {expected}");
        assert!(rates.iter().all(|rate| (rate / mean - 1.0).abs() < 0.02), "{flows}: {rates:?}");
    }
}

#[test]
fn twelve_flows_exceed_their_flowshares_without_the_filter() {
    // 1 % of loss and 50 ms: a flowshare has eleven packets in a round trip, but twelve flowshares have 135, so most losses fall
    // into the round trip of another loss and are not counted (section 4.4.1).
    let expected = flowshare() * 1427.0 / 1500.0;
    let mut naive = with(12, "", "filter = { enabled = false }", 0.01);
    naive.rates(20, |_| 1 << 20);
    let rates = naive.rates(30, |_| 1 << 20);
    let mean = rates.iter().sum::<f64>() / 12.0;
    assert!(mean > 1.5 * expected, "{mean} {expected}");
}

#[test]
fn the_flowshare_of_rap_does_not_depend_on_the_number_of_flows() {
    // sqrt(3 / (2 p)) packets a round trip.
    let expected = (1.5f64 / 0.005).sqrt() * 1427.0 / 0.05;
    for flows in [1, 8] {
        let mut sites = with(flows, "", "estimator = \"rap\"", 0.005);
        sites.rates(30, |_| 1 << 20);
        let rates = sites.rates(60, |_| 1 << 20);
        let mean = rates.iter().sum::<f64>() / flows as f64;
        assert!((0.75..1.25).contains(&(mean / expected)), "{flows}: {mean} {expected}");
    }
}

#[test]
fn frames_of_different_sizes_are_sent_in_the_same_time() {
    let sizes = [51_200u64, 12_800, 12_800, 25_600];
    let mut sites = rudp(4, r#", "scheme": "frames""#, 0.01);
    sites.rates(40, |flow| sizes[flow]);
    let rates = sites.rates(60, |flow| sizes[flow]);
    let times: Vec<f64> = rates.iter().zip(sizes).map(|(rate, size)| size as f64 / rate).collect();
    let mean = times.iter().sum::<f64>() / 4.0;
    assert!(times.iter().all(|time| (time / mean - 1.0).abs() < 0.05), "{times:?}");
}

#[test]
fn without_reports_a_flow_halves_its_rate_each_four_round_trips() {
    let mut sites = rudp(1, "", 0.01);
    sites.halves_without_reports();
}

#[test]
fn acknowledgements_without_reports_do_not_keep_the_rate() {
    rudp(1, "", 0.01).halves_when_the_points_are_bypassed();
}

#[test]
fn no_report_raises_a_flow_above_its_maximum_rate() {
    let mut sites = rudp(2, r#", "max_rate": "1 Mbit/s""#, 0.001);
    sites.stays_below(Rate::from_mbit_per_sec(1));
}
