use super::*;
use crate::testing::{Link, Path, ack_with_rtt, loss, ms, start, state_of};
use crate::{Controller, NO_THRESHOLD};
use weir_base::Rate;

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// A connection after slow start with this window, base RTT and queuing delay in milliseconds, without slowdowns.
fn ledbat(cwnd: u32, base: u64, delay: u64) -> (LedbatPlusPlus, Random) {
    let mut ledbat = LedbatPlusPlus::new(&Config { slowdowns: false, ..Config::default() }, &start());
    (ledbat.window.cwnd, ledbat.window.ssthresh) = (cwnd, cwnd);
    ledbat.delay.update(base as i64 * 1_000, ms(0));
    for _ in 0..4 {
        ledbat.delay.update((base + delay) as i64 * 1_000, ms(0));
    }
    (ledbat, Random::stream(1, "ledbat"))
}
fn acknowledge(ledbat: &mut LedbatPlusPlus, random: &mut Random, now: u64, segments: u32, rtt: u64) {
    ledbat.on_ack(&ack_with_rtt(ms(now), segments, millis(rtt)), random);
}

#[test]
fn growth_is_slower_on_shorter_paths() {
    // ceil(120 / 7.5) = 16, the largest factor; ceil(120 / 50) = 3; from 120 ms on growth is Reno's.
    for (base, slower) in [(1, 16), (8, 15), (50, 3), (60, 2), (119, 2), (120, 1), (350, 1)] {
        assert_eq!(ledbat(10, base, 0).0.slower(), slower, "{base} ms");
    }
}

#[test]
fn the_window_grows_by_one_segment_per_gain_windows_up_to_the_target() {
    for (base, delay, windows) in [(50, 0, 3), (50, 60, 3), (200, 30, 1)] {
        let (mut ledbat, mut random) = ledbat(10, base, delay);
        for _ in 0..windows * 10 - 1 {
            acknowledge(&mut ledbat, &mut random, 0, 1, base + delay);
        }
        assert_eq!(ledbat.window.cwnd, 10, "{base} ms, {delay} ms");
        acknowledge(&mut ledbat, &mut random, 0, 1, base + delay);
        assert_eq!(ledbat.window.cwnd, 11, "{base} ms, {delay} ms");
    }
}

#[test]
fn a_delay_above_the_target_cuts_the_window_once_per_window_by_the_excess_and_at_most_by_half() {
    // At 75 ms the excess is a quarter of the target: 100 / 4, less a third of a segment of growth, is a cut by 24.
    for (delay, left) in [(60, 100), (75, 76), (90, 51), (150, 50), (1_000, 50)] {
        let (mut ledbat, mut random) = ledbat(100, 50, delay);
        for _ in 0..99 {
            acknowledge(&mut ledbat, &mut random, 0, 1, 50 + delay);
        }
        assert_eq!(ledbat.window.cwnd, 100, "{delay} ms");
        acknowledge(&mut ledbat, &mut random, 0, 1, 50 + delay);
        assert_eq!(ledbat.window.cwnd, left, "{delay} ms");
    }
    let (mut ledbat, mut random) = ledbat(3, 50, 1_000);
    acknowledge(&mut ledbat, &mut random, 0, 30, 1_050);
    assert_eq!(ledbat.window.cwnd, 2);
}

#[test]
fn slow_start_begins_with_two_segments_and_grows_by_the_gain() {
    let mut ledbat = LedbatPlusPlus::new(&Config::default(), &start());
    let mut random = Random::stream(1, "ledbat");
    assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (2, NO_THRESHOLD));
    for expected in [2, 2, 3, 3, 3, 4] {
        acknowledge(&mut ledbat, &mut random, 0, 1, 50);
        assert_eq!(ledbat.window.cwnd, expected);
    }
}

#[test]
fn the_first_slow_start_ends_at_three_quarters_of_the_target_and_later_ones_at_the_target() {
    for (slowdown, delay, ends) in [
        (Slowdown::NotYet, 45, false),
        (Slowdown::NotYet, 46, true),
        (Slowdown::Ramp { began: ms(0) }, 60, false),
        (Slowdown::Ramp { began: ms(0) }, 61, true),
    ] {
        let (mut ledbat, mut random) = ledbat(20, 50, delay);
        (ledbat.slowdown, ledbat.window.ssthresh) = (slowdown, 1_000);
        acknowledge(&mut ledbat, &mut random, 10, 3, 50 + delay);
        let expected = if ends { (20, 20) } else { (21, 1_000) };
        assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), expected, "{slowdown:?}, {delay} ms");
    }
}

#[test]
fn a_slowdown_holds_two_segments_for_two_round_trips_and_recurs_after_nine_times_its_duration() {
    let (mut ledbat, mut random) = ledbat(20, 120, 0);
    ledbat.config.slowdowns = true;
    // Slow start has ended: the first slowdown comes two round trips later.
    acknowledge(&mut ledbat, &mut random, 1_000, 1, 120);
    assert_eq!(ledbat.slowdown, Slowdown::Due(ms(1_240)));
    acknowledge(&mut ledbat, &mut random, 1_240, 1, 120);
    assert_eq!((ledbat.window.cwnd, state_of(&ledbat, "slowdowns")), (2, Some(1.0)));
    acknowledge(&mut ledbat, &mut random, 1_479, 10, 120);
    assert_eq!(ledbat.window.cwnd, 2);
    // Slow start takes the window back to its old size.
    acknowledge(&mut ledbat, &mut random, 1_480, 10, 120);
    assert_eq!((ledbat.window.cwnd, ledbat.window.ssthresh), (12, 20));
    acknowledge(&mut ledbat, &mut random, 1_600, 12, 120);
    assert_eq!(ledbat.window.cwnd, 20);
    acknowledge(&mut ledbat, &mut random, 1_640, 1, 120);
    // The slowdown took 400 ms; the pause is 3.6 s.
    assert_eq!(ledbat.slowdown, Slowdown::Due(ms(5_240)));
}

#[test]
fn a_loss_during_a_slowdown_halves_the_window_to_which_it_returns() {
    let (mut ledbat, mut random) = ledbat(40, 120, 0);
    ledbat.slowdown = Slowdown::Due(ms(10));
    acknowledge(&mut ledbat, &mut random, 10, 1, 120);
    ledbat.on_enter_recovery(&loss(ms(20)));
    assert_eq!(ledbat.window.cwnd, 2);
    ledbat.on_exit_recovery(ms(30));
    acknowledge(&mut ledbat, &mut random, 250, 1, 120);
    assert_eq!(ledbat.window.ssthresh, 20);
}

#[test]
fn a_single_ledbat_plus_plus_flow_holds_the_target_and_drains_the_queue_in_slowdowns() {
    // 10 Mbit/s and 50 ms hold 62 segments, a queue of 60 ms holds 75, and one is being sent. The excess is seen a round trip late.
    let link = Link { rate: Rate::from_mbit_per_sec(10), rtt: millis(50), buffer: 400, mark: None };
    let mut path = Path::new("ledbat++", link);
    path.trace(Span::from_secs(60), 1);
    let windows = path.trace(millis(50), 1_200);
    let (least, most) = (windows.iter().min().unwrap(), windows.iter().max().unwrap());
    assert_eq!(*least, 2);
    assert!((130..=145).contains(most), "{most}");
    assert_eq!(path.drops, 0);
    // Slowdowns take a tenth of the time and lose less than half of the link in it.
    let held = windows.iter().filter(|window| **window < 62).count();
    assert!((40..=120).contains(&held), "{held}");
}
