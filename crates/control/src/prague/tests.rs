//! Prague against values computed by hand from the module's integers.

use super::*;
use crate::testing::{Link, Path, ack, loss, mark, ms, start, state_of, timeout};

fn prague(cwnd: u32, config: Config) -> Prague {
    let mut prague = Prague::new(&config, &start());
    prague.set_whole(cwnd);
    prague.ssthresh = cwnd;
    prague
}
fn unscaled() -> Config {
    Config { rtt_scaling: RttScaling::None, ..Config::default() }
}
fn segments(prague: &Prague) -> f64 {
    prague.fraction as f64 / ONE as f64
}

#[test]
fn a_window_of_unmarked_segments_adds_one_segment_and_marked_ones_add_nothing() {
    let (mut plain, mut random) = (prague(100, unscaled()), Random::stream(1, "prague"));
    for _ in 0..100 {
        plain.on_ack(&ack(ms(0), 1), &mut random);
    }
    // A fraction of the 101st segment counts as a whole one: each later step divides by 101.
    assert!((segments(&plain) - 100.99).abs() < 0.001, "{}", segments(&plain));
    assert_eq!(plain.cwnd, 101);
    let mut marked = prague(100, unscaled());
    for _ in 0..50 {
        marked.on_ack(&Ack { ce_packets: 1, ..ack(ms(0), 2) }, &mut random);
    }
    // Half of the segments count for growth, which continues during a reduction.
    assert!((segments(&marked) - 100.5).abs() < 0.01, "{}", segments(&marked));
}

#[test]
fn marks_reduce_the_window_by_half_of_alpha_one_segment_per_acknowledgement() {
    let mut random = Random::stream(1, "prague");
    let mut prague = prague(100, unscaled());
    // An eighth of all segments is marked: alpha / 2 of 100 segments is 6.25.
    prague.alpha = (ONE << SHIFT_G) / 8;
    prague.on_enter_recovery(&mark(ms(0)));
    assert_eq!(segments(&prague), 93.75);
    for expected in [99, 98, 97, 96, 95, 94, 94] {
        // All segments are marked: no growth.
        prague.on_ack(&Ack { ce_packets: 1, phase: Phase::Cwr, ..ack(ms(1), 1) }, &mut random);
        assert_eq!(prague.cwnd, expected);
    }
    assert_eq!(prague.ssthresh, 94);
}

#[test]
fn alpha_is_smoothed_once_a_round_and_keeps_its_remainder() {
    let (mut prague, mut random) = (prague(100, unscaled()), Random::stream(1, "prague"));
    // Before the first mark alpha stays at one.
    prague.on_ack(&Ack { acknowledged: 1000, next_sequence: 2000, ..ack(ms(0), 10) }, &mut random);
    assert_eq!(prague.alpha, ONE << SHIFT_G);
    // 5 of 10 marked: 15/16 + 1/32.
    prague.on_ack(
        &Ack { ce_packets: 5, acknowledged: 2000, next_sequence: 3000, ..ack(ms(1), 10) },
        &mut random,
    );
    assert_eq!(prague.alpha, (ONE << SHIFT_G) / 16 * 15 + ONE / 2);
    // Alpha does not change twice in a round.
    let before = prague.alpha;
    prague.on_ack(&Ack { acknowledged: 2500, next_sequence: 3500, ..ack(ms(2), 10) }, &mut random);
    assert_eq!(prague.alpha, before);
}

#[test]
fn the_increase_of_a_short_round_trip_is_the_square_of_its_ratio_to_the_target() {
    let increase = |config: Config, rtt: Span| {
        let mut prague = prague(100, config);
        (prague.rounds, prague.srtt) = (500, Some(rtt));
        prague.update_increase();
        prague.increase as f64 / ONE as f64
    };
    // (5 / 25)^2 of a segment each round; five times as many rounds: the same rate as at 25 ms.
    assert!((increase(Config::default(), Span::from_millis(5)) - 0.04).abs() < 1e-6);
    assert_eq!(increase(Config::default(), Span::from_millis(25)), 1.0);
    assert_eq!(increase(Config::default(), Span::from_millis(50)), 1.0);
    assert_eq!(increase(unscaled(), Span::from_millis(5)), 1.0);
    // As with a target of 5 + 25 ms: (5 / 30)^2.
    let additive = Config { rtt_scaling: RttScaling::Additive, ..Config::default() };
    assert!((increase(additive, Span::from_millis(5)) - 1.0 / 36.0).abs() < 1e-6);
    // (16384 / 8 + (5000 - 1536)) * 5000 / 16384^2.
    let scalable = Config { rtt_scaling: RttScaling::Scalable, ..Config::default() };
    let expected = (2048.0 + 3464.0) * 5000.0 / (16384.0 * 16384.0);
    assert!((increase(scalable, Span::from_millis(5)) - expected).abs() < 1e-6);
}

#[test]
fn young_flows_are_not_scaled_and_old_ones_reduce_once_per_target_rtt() {
    let mut young = prague(100, Config::default());
    (young.srtt, young.alpha) = (Some(Span::from_millis(5)), ONE << SHIFT_G);
    young.update_increase();
    assert_eq!(young.increase, ONE);
    young.on_enter_recovery(&mark(ms(0)));
    young.on_enter_recovery(&mark(ms(5)));
    assert_eq!(segments(&young), 25.0);
    let mut old = prague(100, Config::default());
    (old.srtt, old.rounds) = (Some(Span::from_millis(5)), 500);
    for (millis, expected) in [(0, 50.0), (5, 50.0), (24, 50.0), (25, 25.0)] {
        old.on_enter_recovery(&mark(ms(millis)));
        assert_eq!(segments(&old), expected, "after {millis} ms");
    }
}

#[test]
fn a_loss_halves_the_window_and_an_undo_restores_it() {
    let mut random = Random::stream(1, "prague");
    let mut prague = prague(100, unscaled());
    prague.on_enter_recovery(&loss(ms(0)));
    assert_eq!(segments(&prague), 50.0);
    // The window does not grow until recovery ends.
    prague.on_ack(&Ack { phase: Phase::Recovery, ..ack(ms(1), 2) }, &mut random);
    assert_eq!((segments(&prague), prague.cwnd), (50.0, 99));
    prague.on_undo(ms(2));
    assert_eq!((segments(&prague), prague.cwnd), (100.0, 100));
}

#[test]
fn a_loss_during_a_reduction_for_marks_halves_the_reduced_window() {
    let mut random = Random::stream(1, "prague");
    let mut prague = prague(100, unscaled());
    prague.on_enter_recovery(&mark(ms(0)));
    // Alpha still has its initial value of one, so the window is halved.
    assert_eq!(segments(&prague), 50.0);
    prague.on_ack(&Ack { phase: Phase::Recovery, ..ack(ms(1), 1) }, &mut random);
    assert_eq!(segments(&prague), 25.0);
    prague.on_ack(&Ack { phase: Phase::Recovery, ..ack(ms(2), 1) }, &mut random);
    assert_eq!(segments(&prague), 25.0, "once");
}

#[test]
fn an_undo_restores_the_threshold_to_three_quarters_of_the_window() {
    let mut prague = prague(100, unscaled());
    prague.ssthresh = 20;
    prague.on_timeout(&timeout(ms(0)));
    assert_eq!((prague.cwnd, prague.ssthresh), (1, 50));
    prague.on_undo(ms(1));
    // Three quarters of the window, as Linux remembers it.
    assert_eq!((prague.cwnd, prague.ssthresh), (100, 75));
}

#[test]
fn a_timeout_begins_slow_start_up_to_half_of_the_window() {
    let mut prague = prague(100, unscaled());
    prague.on_timeout(&timeout(ms(0)));
    assert_eq!((prague.cwnd, prague.ssthresh), (1, 50));
    let mut random = Random::stream(1, "prague");
    for expected in [3, 7, 15] {
        prague.on_ack(&Ack { phase: Phase::Loss, ..ack(ms(1), expected / 2 + 1) }, &mut random);
        assert_eq!(prague.cwnd, expected);
    }
}

#[test]
fn the_pacing_rate_is_one_window_of_whole_packets_per_round_trip_and_twice_that_in_early_slow_start() {
    let mut prague = prague(100, unscaled());
    prague.srtt = Some(Span::from_millis(100));
    prague.pace();
    // 100 packets of 1052 bytes in 100 ms.
    assert_eq!(prague.pacing_rate, Some(Rate::from_bits_per_sec(8_416_000)));
    prague.ssthresh = 300;
    prague.pace();
    assert_eq!(prague.pacing_rate, Some(Rate::from_bits_per_sec(16_832_000)));
}

#[test]
fn prague_sends_ect_1_and_requires_accurate_feedback() {
    let prague = prague(10, Config::default());
    assert_eq!((prague.codepoint(), prague.feedback()), (Codepoint::Ect1, Feedback::Accurate));
    assert_eq!(prague.recovery(), Recovery::Own);
}

#[test]
fn a_single_prague_flow_behind_a_step_fills_the_link_with_a_queue_at_the_threshold() {
    // 100 Mbit/s and 10 ms hold 125 segments; the step is at 12, about 1 ms.
    let link =
        Link { rate: Rate::from_mbit_per_sec(100), rtt: Span::from_millis(10), buffer: 1000, mark: Some(12) };
    let mut path = Path::new("prague", link);
    path.trace(Span::from_secs(5), 1);
    let before = path.delivered;
    let windows = path.trace(Span::from_millis(5), 1_000);
    // 62,500 segments in 5 s.
    assert!(path.delivered - before > 60_000, "{}", path.delivered - before);
    assert!(windows.iter().all(|window| (110..=145).contains(window)), "{windows:?}");
    let alpha = state_of(path.controller.as_ref(), "alpha").unwrap();
    assert!(alpha < 0.3, "{alpha}");
    assert_eq!(path.drops, 0);
}
