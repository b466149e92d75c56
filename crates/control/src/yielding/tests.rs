//! Yield against values computed by hand from the thesis' formulas and the module's integers.

use super::*;
use crate::Controller;
use crate::testing::{Link, MSS, Path, ack, loss, ms, stamped, start};
use weir_base::{Bytes, Rate, Span};

fn yielding(reading: Reading) -> Yield {
    Yield::new(&Config { reading, ..Config::default() }, &start())
}
fn random() -> Random {
    Random::stream(1, "yield")
}
/// A connection after slow start with a range of 4 to 105 ms: the target is 15 % of 101 ms, 15 ms.
fn ranged(reading: Reading, cwnd: u32) -> Yield {
    let mut cc = yielding(reading);
    (cc.window.cwnd, cc.window.ssthresh) = (cwnd, 1);
    (cc.delay_smin, cc.delay_smax) = (32, 840);
    cc.owd.sample(&stamped(ack(ms(0), 1), 0).timestamps.unwrap());
    cc
}

#[test]
fn a_cut_is_the_window_divided_by_a_power_of_two() {
    for (cwnd, factor, expected) in
        [(64, 5, 62), (64, 3, 56), (64, 1, 32), (64, 0, 2), (20, 5, 20), (64, 31, 64)]
    {
        let mut cc = yielding(Reading::Listing);
        (cc.window.cwnd, cc.reduction_factor) = (cwnd, factor);
        cc.cut();
        cc.floor();
        assert_eq!(cc.window.cwnd, expected, "{cwnd} by {factor}");
    }
}

#[test]
fn averages_are_stored_as_multiples() {
    assert_eq!(average(40, 0, 2), 160);
    assert_eq!(average(44, 160, 2), 164);
    assert_eq!(average_trend(4, 0, 128), 512);
    assert_eq!(average_trend(4, 128, 128), 131);
    // Division rounds towards zero: -100 / 128 is zero.
    assert_eq!(average_trend(0, -100, 128), -100);
}

#[test]
fn the_target_is_a_share_of_the_range_of_delays() {
    for (most, expected) in [(840, 15), (5640, 105)] {
        let mut cc = ranged(Reading::Listing, 64);
        cc.delay_smax = most;
        cc.delay = 24;
        assert_eq!(cc.delay_and_target(), (20, expected));
    }
}

#[test]
fn a_steep_rise_counts_as_cross_traffic_and_makes_the_next_cut_larger() {
    // 44 ms are 4 ms above an average of 40, more than twice the average rise of 1 ms. The factor falls from three to two, which only
    // cross-traffic allows.
    let mut cc = yielding(Reading::Listing);
    (cc.prev_delay, cc.delay_trend, cc.reduction_factor) = (160, 128, 3);
    cc.observe(44);
    assert!(cc.cross_traffic);
    assert_eq!((cc.reduction_factor, cc.prev_delay, cc.delay_trend), (2, 164, 128 + 4 - 1));
    // 2 ms above the average are not more than twice 1 ms: the factor stays three.
    let mut cc = yielding(Reading::Listing);
    (cc.prev_delay, cc.delay_trend, cc.reduction_factor) = (160, 128, 3);
    cc.observe(42);
    assert!(!cc.cross_traffic);
    assert_eq!(cc.reduction_factor, 3);
    // With an average rise below 1 ms, a rise of 2 ms is cross-traffic.
    let mut cc = yielding(Reading::Listing);
    (cc.prev_delay, cc.delay_trend, cc.reduction_factor) = (160, 100, 3);
    cc.observe(42);
    assert!(cc.cross_traffic);
}

#[test]
fn rising_delay_makes_the_next_cut_larger_and_falling_delay_smaller() {
    let mut cc = yielding(Reading::Listing);
    cc.reduction_factor = 5;
    let mut seen = Vec::new();
    // The average lags behind: 40, 40.25, 40.75 (truncated to 40) and so on; the trends are one or more, without an average trend.
    for delay in [40, 41, 42, 30, 20, 10] {
        cc.observe(delay);
        cc.delay_trend = 0;
        seen.push(cc.reduction_factor);
    }
    assert_eq!(seen, [5, 4, 3, 4, 5, 5]);
}

#[test]
fn the_window_grows_as_in_reno_below_the_target_and_each_acknowledgement_cuts_it_above() {
    let mut cc = ranged(Reading::Listing, 64);
    // 10 ms are 6 above the smallest delay, below the target of 15: one segment for each window.
    for _ in 0..64 {
        cc.on_ack(&stamped(ack(ms(0), 1), 10), &mut random());
    }
    assert_eq!(cc.window.cwnd, 65);
    // At 100 ms the first acknowledgement finds a rise of 90 with an average of 1 ms: cross-traffic, and the factor falls from three
    // to two: 65 - 16. The cut makes the factor three, the next rise makes it two again: 49 - 12.
    (cc.reduction_factor, cc.delay_trend) = (3, 128);
    cc.on_ack(&stamped(ack(ms(0), 1), 100), &mut random());
    assert_eq!((cc.window.cwnd, cc.reduction_factor), (49, 3));
    cc.on_ack(&stamped(ack(ms(0), 1), 100), &mut random());
    assert_eq!(cc.window.cwnd, 37);
}

#[test]
fn a_flat_delay_above_the_target_holds_the_window_by_the_listing_and_cuts_it_by_the_text() {
    let flat = |reading| {
        let mut cc = ranged(reading, 64);
        (cc.prev_delay, cc.delay_trend) = (400, 1);
        for round in 1..=20 {
            let ack = Ack { acknowledged: round * 10, next_sequence: round * 10 + 5, ..ack(ms(0), 1) };
            cc.on_ack(&stamped(ack, 100), &mut random());
        }
        cc
    };
    // 64 - 8 - 3 - 1 with factors of 3, 4 and 5; 52 / 64 is zero. Each cut raises the factor by one.
    let listed = flat(Reading::Listing);
    assert_eq!((listed.window.cwnd, listed.reduction_factor), (52, 3 + 20));
    // With the factor held at 5, 1/32 of the window is one segment: 64 - 8 - 3, less 18 times one.
    let paper = flat(Reading::Paper);
    assert_eq!((paper.window.cwnd, paper.reduction_factor), (35, 5));
}

#[test]
fn the_listing_updates_the_largest_delay_only_while_the_window_may_not_grow() {
    let mut cc = ranged(Reading::Listing, 64);
    cc.on_ack(&stamped(ack(ms(0), 1), 200), &mut random());
    assert_eq!(cc.delay_smax, 840, "the first sample after a decision is the smallest");
    for delay in [150, 200] {
        cc.on_ack(&stamped(Ack { may_grow: false, ..ack(ms(0), 1) }, delay), &mut random());
    }
    assert_eq!(cc.delay_smax, 1600);
    let mut cc = ranged(Reading::Paper, 64);
    cc.on_ack(&stamped(ack(ms(0), 1), 200), &mut random());
    assert_eq!(cc.delay_smax, 1600);
}

#[test]
fn one_decision_is_made_per_round_trip_by_the_text() {
    let mut cc = ranged(Reading::Paper, 64);
    for (acknowledged, expected) in [(10, 65), (20, 65), (100, 65), (101, 66)] {
        let ack = Ack { acknowledged, next_sequence: acknowledged + 90, ..ack(ms(0), 1) };
        cc.on_ack(&stamped(ack, 10), &mut random());
        assert_eq!(cc.window.cwnd, expected, "at {acknowledged}");
    }
}

#[test]
fn a_delay_not_above_the_first_one_keeps_the_previous_value() {
    let mut cc = ranged(Reading::Listing, 64);
    cc.on_ack(&stamped(ack(ms(0), 1), 10), &mut random());
    cc.on_ack(&stamped(ack(ms(0), 1), 0), &mut random());
    assert_eq!(cc.delay, 10);
}

#[test]
fn a_window_cut_below_the_threshold_recovers_by_slow_start() {
    let mut cc = ranged(Reading::Listing, 100);
    cc.on_enter_recovery(&loss(ms(0)));
    cc.on_exit_recovery(ms(1));
    assert_eq!((cc.window.cwnd, cc.window.ssthresh), (50, 50));
    // From 40 the window grows by a segment each acknowledgement, whatever the delay.
    cc.window.cwnd = 40;
    for _ in 0..10 {
        cc.on_ack(&stamped(ack(ms(1), 1), 500), &mut random());
    }
    assert_eq!(cc.window.cwnd, 50);
}

#[test]
fn a_single_yield_flow_fills_the_link_by_either_reading() {
    // 8 Mbit/s and 50 ms hold 50 segments; the buffer holds twice that, as in the thesis.
    for reading in [Reading::Listing, Reading::Paper] {
        let link =
            Link { rate: Rate::from_mbit_per_sec(8), rtt: Span::from_millis(50), buffer: 100, mark: None };
        let config = Config { reading, ..Config::default() };
        let mut path = Path::of(&crate::Config::Yield(config), link);
        path.trace(Span::from_secs(20), 1);
        let before = path.delivered;
        path.trace(Span::from_secs(40), 1);
        // 1000 segments each second.
        let share = (path.delivered - before) as f64 / 40_000.0;
        assert!(share > 0.97, "{reading:?}: {share}");
        assert!(path.controller.window() >= Bytes::new(2 * MSS.get()));
    }
}

#[test]
fn a_delayed_acknowledgement_cuts_a_window_of_32_by_the_growth_of_a_round_trip() {
    // With a range of 4 to 31 ms the target is 4. A window of 32 that does not fill the link leaves as a burst. When it has grown to
    // 33, the pairs are acknowledged at once and the odd segment when the next burst comes, 13 ms later: the window is cut by 1/32,
    // one segment, and the next round trip adds one.
    let mut cc = ranged(Reading::Listing, 32);
    cc.delay_smax = 248;
    (cc.prev_delay, cc.delay_trend, cc.reduction_factor) = (40, 1, 5);
    for _ in 0..20 {
        for _ in 0..16 {
            cc.on_ack(&stamped(ack(ms(0), 2), 4), &mut random());
        }
        assert_eq!(cc.window.cwnd, 33);
        cc.reduction_factor = 6;
        cc.on_ack(&stamped(Ack { delivered_segments: 2, ..ack(ms(0), 1) }, 17), &mut random());
        assert_eq!(cc.window.cwnd, 32);
    }
}
