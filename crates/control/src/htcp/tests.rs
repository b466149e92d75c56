//! H-TCP against values computed by hand from the draft's formulas and the kernel's integers.

use super::*;
use crate::testing::{Link, Path, ack, delivered, loss, ms, start, timeout};
use crate::{Controller, RttSample};
use weir_base::Rate;

fn htcp() -> Htcp {
    Htcp::new(&Config::default(), &start())
}
fn unscaled() -> Htcp {
    Htcp::new(&Config { use_rtt_scaling: false, ..Config::default() }, &start())
}

/// A delivery with an RTT sample in milliseconds.
fn sample(htcp: &mut Htcp, now: u64, segments: u32, rtt: u64) {
    let rtt = Some(RttSample { rtt: Span::from_millis(rtt), delayed: false, queued_back: Span::ZERO });
    htcp.on_delivered(&Delivered { rtt, ..delivered(ms(now), segments) });
}

#[test]
fn growth_is_that_of_reno_for_a_second_and_then_quadratic_in_time() {
    // With a beta of a half, alpha is the factor itself: 1 + 10 * 1 + (1/2)^2 -> 1 + (2500 + 62) / 250 = 11 after 2 s;
    // 1 + (10 * 1000 + 500 * 500 / 250) / 250 = 45 after 5 s.
    for (millis, expected) in [(0, 1), (1000, 1), (2000, 11), (5000, 45)] {
        let mut htcp = unscaled();
        htcp.update_alpha(ticks(ms(millis)));
        assert_eq!(htcp.alpha, expected * ONE, "after {millis} ms");
    }
}

#[test]
fn alpha_per_round_is_smaller_for_a_short_round_trip_and_larger_for_a_long_one() {
    // 40 ms are 10 ticks: scale = 2000 / 100 = 20 eighths, and 45 * 8 / 20 = 18. 200 ms are 50 ticks: 4 eighths, and 45 * 8 / 4 =
    // 90. 4 ms are limited to 80 eighths: 4; 1 s is limited to 4 eighths.
    for (rtt, expected) in [(40, 18), (200, 90), (4, 4), (1000, 90)] {
        let mut htcp = htcp();
        htcp.min_rtt = ticks_of(Span::from_millis(rtt));
        htcp.update_alpha(ticks(ms(5000)));
        assert_eq!(htcp.alpha, expected * ONE, "{rtt} ms");
    }
}

#[test]
fn beta_is_the_ratio_of_the_round_trips_between_a_half_and_four_fifths() {
    // In ticks: 10 / 16 = 80 / 128; 10 / 30 is below a half, 10 / 11 above 0.8.
    for (max, expected) in [(64, 80), (120, 64), (44, 102)] {
        let mut htcp = htcp();
        htcp.mode_switch = true;
        (htcp.min_rtt, htcp.max_rtt) = (10, ticks_of(Span::from_millis(max)));
        htcp.update_beta();
        assert_eq!(htcp.beta, expected, "{max} ms");
    }
}

#[test]
fn the_first_congestion_halves_the_window_and_the_second_uses_the_ratio() {
    let mut htcp = htcp();
    htcp.window.cwnd = 128;
    (htcp.min_rtt, htcp.max_rtt) = (10, 16);
    htcp.on_enter_recovery(&loss(ms(0)));
    assert_eq!(htcp.window.cwnd, 64);
    // 10 + 6 * 0.95, rounded down: the largest RTT becomes 15 ticks; 10 * 128 / 15 = 85.
    assert_eq!(htcp.max_rtt, 15);
    htcp.on_enter_recovery(&loss(ms(4)));
    assert_eq!(htcp.window.cwnd, 64 * 85 / 128);
}

#[test]
fn beta_is_a_half_after_a_change_of_the_throughput_by_more_than_a_fifth() {
    for (now, expected) in [(1000, 85), (1200, 85), (1201, 64), (800, 85), (799, 64)] {
        let mut htcp = htcp();
        htcp.mode_switch = true;
        (htcp.min_rtt, htcp.max_rtt) = (10, 15);
        (htcp.throughput.largest, htcp.throughput.largest_before) = (now, 1000);
        htcp.update_beta();
        assert_eq!(htcp.beta, expected, "{now} segments/s after 1000");
    }
}

#[test]
fn throughput_is_measured_once_per_window_and_round_trip() {
    let mut htcp = htcp();
    htcp.window.cwnd = 20;
    sample(&mut htcp, 40, 10, 40);
    assert_eq!(htcp.throughput.largest, 0, "half a window is not enough");
    // 19 segments are enough, since the window grows by one: 20 in 80 ms are 250 per second.
    sample(&mut htcp, 80, 10, 40);
    assert_eq!(htcp.throughput.largest, 250);
    // Within three round trips a new value replaces the old one; later values are smoothed: 20 in 160 ms are 125.
    sample(&mut htcp, 160, 10, 40);
    sample(&mut htcp, 160, 0, 40);
    sample(&mut htcp, 240, 10, 40);
    let smoothed = (3 * 250 + 125) / 4;
    assert_eq!((htcp.throughput.smoothed, htcp.throughput.largest), (smoothed, 250));
}

#[test]
fn an_outlier_does_not_raise_the_largest_round_trip() {
    let mut htcp = htcp();
    for rtt in [40, 100, 60, 80] {
        sample(&mut htcp, 0, 1, rtt);
    }
    assert_eq!((htcp.min_rtt, htcp.max_rtt), (10, 20));
}

#[test]
fn the_window_grows_by_alpha_each_window() {
    let mut htcp = unscaled();
    htcp.window.ssthresh = 10;
    let mut random = Random::stream(1, "htcp");
    // With an alpha of one, eleven acknowledgements add a segment: ten are counted, and the eleventh adds it.
    for expected in [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11] {
        htcp.on_ack(&ack(ms(0), 1), &mut random);
        assert_eq!(htcp.window.cwnd, expected);
    }
}

#[test]
fn growth_time_counts_from_the_end_of_congestion_and_an_undo_reverts_that() {
    let mut random = Random::stream(1, "htcp");
    let mut kept = htcp();
    kept.on_enter_recovery(&loss(ms(1000)));
    kept.on_ack(&Ack { phase: Phase::Recovery, ..ack(ms(1100), 1) }, &mut random);
    assert_eq!(kept.last_congestion, 250);
    kept.on_ack(&ack(ms(1200), 1), &mut random);
    assert_eq!(kept.last_congestion, 300);
    let mut undone = htcp();
    undone.on_enter_recovery(&loss(ms(1000)));
    undone.on_undo(ms(1100));
    undone.on_ack(&Ack { may_grow: false, ..ack(ms(1200), 1) }, &mut random);
    assert_eq!((undone.last_congestion, undone.window.cwnd), (0, 10));
}

#[test]
fn a_timeout_leaves_one_segment_and_beta_as_threshold() {
    let mut htcp = htcp();
    htcp.window.cwnd = 100;
    htcp.on_timeout(&timeout(ms(0)));
    assert_eq!((htcp.window.cwnd, htcp.window.ssthresh), (1, 50));
}

#[test]
fn a_single_htcp_flow_keeps_the_link_full_behind_a_small_buffer() {
    // 50 Mbit/s and 100 ms hold 625 segments. A full buffer of 156 makes the round trip 125 ms: 0.8 of 781 remain, which is just the
    // BDP, and the link is never idle.
    let link =
        Link { rate: Rate::from_mbit_per_sec(50), rtt: Span::from_millis(100), buffer: 156, mark: None };
    let mut path = Path::new("htcp", link);
    path.trace(Span::from_secs(20), 1);
    let before = path.delivered;
    let windows = path.trace(Span::from_millis(100), 200);
    let (least, most) = (windows.iter().min().copied().unwrap(), windows.iter().max().copied().unwrap());
    assert!(least * 100 / most >= 70, "{least} to {most}");
    assert!(path.delivered - before > 122_500, "{}", path.delivered - before);
}
