//! Nice against values computed by hand from the listing.

use super::*;
use crate::testing::{Link, MSS, Path, ack, ack_with_rtt, loss, ms, start};
use crate::{Controller, NO_THRESHOLD, Phase};
use weir_base::{Rate, Span};

/// A connection after slow start with a base RTT of 49,999 microseconds; the base is one more.
fn nice(reading: Reading, cwnd: u32) -> Nice {
    let mut nice = Nice::new(&Config { reading, ..Config::default() }, &start());
    (nice.window.cwnd, nice.window.ssthresh) = (cwnd, 1);
    nice.rounds.base = 50_000;
    nice
}

fn random() -> Random {
    Random::stream(1, "nice")
}

/// A round of RTTs in microseconds, the last of which ends it.
fn round(nice: &mut Nice, rtts: &[u64]) {
    let end = nice.rounds.end_for_test();
    for (number, rtt) in (1..).zip(rtts) {
        let acknowledged = if number == rtts.len() { end + 1 } else { end };
        let plain = ack_with_rtt(ms(0), 1, Span::from_micros(rtt - 1));
        nice.on_ack(&Ack { acknowledged, next_sequence: end + 100, ..plain }, &mut random());
    }
}

/// Gives `count` RTTs of 70 ms that do not end the round.
fn wait(nice: &mut Nice, count: u32) {
    let acknowledged = nice.rounds.end_for_test();
    for _ in 0..count {
        let plain = ack_with_rtt(ms(0), 1, Span::from_micros(69_999));
        nice.on_ack(&Ack { acknowledged, ..plain }, &mut random());
    }
}

#[test]
fn the_window_holds_one_to_three_segments_in_the_queue() {
    // With a window of 50 and a base of 50 ms, each millisecond more means a segment in the queue.
    for (rtt, expected) in [(50_500, 51), (51_000, 50), (53_000, 50), (54_000, 49)] {
        let mut nice = nice(Reading::Listing, 50);
        round(&mut nice, &[rtt; 3]);
        assert_eq!(nice.window.cwnd, expected, "{rtt} us");
    }
}

#[test]
fn an_rtt_above_a_fifth_of_the_way_to_twice_the_smallest_is_a_sign() {
    // 80 % of 50 ms and 20 % of 100 ms are 60 ms.
    let mut nice = nice(Reading::Listing, 50);
    for (rtt, expected) in [(60_000, 0), (60_001, 1)] {
        nice.sample(&ack_with_rtt(ms(0), 1, Span::from_micros(rtt - 1)));
        assert_eq!(nice.signs, expected, "{rtt} us");
    }
}

#[test]
fn signs_for_more_than_half_of_the_window_halve_it() {
    // Five signs are half of ten, six are more. 55 ms are no sign; one segment of ten waits at 55 ms.
    for (signs, expected) in [(5, 10), (6, 5)] {
        let mut nice = nice(Reading::Listing, 10);
        let mut rtts = vec![55_000; 3];
        rtts.extend(vec![70_000; signs]);
        round(&mut nice, &rtts);
        assert_eq!(nice.window.cwnd, expected, "{signs} signs");
    }
}

#[test]
fn a_halving_keeps_the_slow_start_threshold_by_the_listing_and_lowers_it_by_the_article() {
    for (reading, ssthresh) in [(Reading::Listing, 40), (Reading::Paper, 20)] {
        let mut nice = nice(reading, 40);
        nice.window.ssthresh = 40;
        round(&mut nice, &[90_000; 30]);
        assert_eq!((nice.window.cwnd, nice.window.ssthresh), (20, ssthresh), "{reading:?}");
    }
}

#[test]
fn a_counter_of_eight_bits_wraps_at_256_signs() {
    for (counter_bits, expected) in [(CounterBits::Eight, 299), (CounterBits::ThirtyTwo, 150)] {
        let mut nice = nice(Reading::Listing, 300);
        nice.config.counter_bits = counter_bits;
        round(&mut nice, &[90_000; 300]);
        assert_eq!(nice.window.cwnd, expected, "{counter_bits:?}");
    }
}

#[test]
fn the_largest_rtt_is_reset_each_round_by_the_listing_and_kept_by_the_article() {
    // After one RTT of 300 ms, a fifth of the range is at 100 ms: 70 ms are no longer a sign.
    for (reading, expected) in [(Reading::Listing, 10), (Reading::Paper, 0)] {
        let mut nice = nice(reading, 50);
        round(&mut nice, &[51_000, 51_000, 300_000]);
        wait(&mut nice, 10);
        assert_eq!(nice.signs, expected, "{reading:?}");
    }
}

#[test]
fn a_window_of_two_segments_waits_8_32_and_96_round_trips_by_the_listing() {
    let mut nice = nice(Reading::Listing, 2);
    let mut waits = Vec::new();
    for _ in 0..4 {
        round(&mut nice, &[90_000; 3]);
        waits.push(nice.fwnd);
    }
    assert_eq!((waits, nice.window.cwnd), (vec![8, 32, 96, 96], 2));
    // Two segments of 1000 bytes each 96 round trips.
    assert_eq!((nice.window().get(), nice.send_quantum()), (20, Some(Bytes::new(2 * MSS.get()))));
}

#[test]
fn a_queue_without_signs_lengthens_the_wait_and_an_empty_one_shortens_it_by_the_listing() {
    let mut nice = nice(Reading::Listing, 2);
    nice.config.threshold = 100;
    nice.fwnd = 8;
    // At 150 ms, 2 * 100 / 50 = 4 segments wait.
    round(&mut nice, &[150_000; 3]);
    assert_eq!(nice.fwnd, 10);
    round(&mut nice, &[50_000; 3]);
    assert_eq!(nice.fwnd, 8);
}

#[test]
fn each_acknowledged_pair_shortens_the_wait_by_two_round_trips() {
    let mut nice = nice(Reading::Listing, 2);
    nice.fwnd = 8;
    let mut waits = Vec::new();
    for number in 1..=4 {
        let end = 100 * number;
        let pair = ack_with_rtt(ms(0), 2, Span::from_millis(50));
        nice.on_ack(&Ack { acknowledged: end, next_sequence: end, ..pair }, &mut random());
        waits.push((nice.fwnd, nice.window.cwnd));
    }
    // The third pair ends the waiting with one more segment. The fourth is two thirds of a window.
    assert_eq!(waits, [(6, 2), (4, 2), (2, 3), (2, 3)]);
}

#[test]
fn the_window_is_halved_down_to_a_48th_of_a_segment_and_recovers_to_one_by_the_article() {
    let mut nice = nice(Reading::Paper, 4);
    let mut windows = Vec::new();
    for _ in 0..8 {
        round(&mut nice, &[90_000; 3]);
        windows.push(nice.window().get());
    }
    // In bytes, with segments of 1000: halves, and 2 / 96 of a segment at the end.
    assert_eq!(windows, [2000, 1000, 500, 250, 125, 62, 31, 20]);
    round(&mut nice, &[50_000; 1]);
    assert_eq!(nice.window().get(), 1000);
}

#[test]
fn a_loss_halves_the_window_as_in_reno_and_a_new_round_follows_recovery() {
    let mut nice = nice(Reading::Listing, 40);
    nice.on_enter_recovery(&loss(ms(0)));
    assert_eq!((nice.window.cwnd, nice.window.ssthresh), (20, 20));
    let late = ack_with_rtt(ms(0), 1, Span::from_millis(300));
    nice.on_ack(&Ack { phase: Phase::Recovery, may_grow: false, ..late }, &mut random());
    nice.on_exit_recovery(ms(1));
    nice.on_ack(&Ack { next_sequence: 1000, ..ack(ms(1), 1) }, &mut random());
    assert_eq!(nice.rounds.count, 0);
}

#[test]
fn an_unused_window_with_too_few_samples_does_not_grow() {
    let mut nice = nice(Reading::Listing, 10);
    let idle = Ack { cwnd_limited: false, next_sequence: 10, acknowledged: 10, ..ack(ms(0), 10) };
    nice.on_ack(&idle, &mut random());
    assert_eq!(nice.window.cwnd, 10);
}

#[test]
fn slow_start_ends_with_more_than_one_segment_in_the_queue() {
    let mut nice = nice(Reading::Listing, 50);
    nice.window.ssthresh = NO_THRESHOLD;
    // Two samples grow the window from 50 to 52; at 55 ms 5 segments wait; 52 * 50 / 55 = 47, plus one.
    round(&mut nice, &[55_000; 3]);
    assert_eq!((nice.window.cwnd, nice.window.ssthresh), (48, 48));
}

#[test]
fn a_restart_after_idleness_resets_the_smallest_rtt_by_the_listing_only() {
    for (reading, base) in [(Reading::Listing, u64::MAX), (Reading::Paper, 50_000)] {
        let mut nice = nice(reading, 10);
        nice.on_restart(&Restart::Transmit { now: ms(0), idle: Span::from_secs(1), app_limited: false });
        assert_eq!(nice.rounds.base, base, "{reading:?}");
    }
}

/// 8 Mbit/s and 50 ms hold 50 segments of 1000 bytes, and one is being sent; the buffer holds twice that.
fn alone(reading: Reading) -> Path {
    let link = Link { rate: Rate::from_mbit_per_sec(8), rtt: Span::from_millis(50), buffer: 100, mark: None };
    let config = Config { reading, ..Config::default() };
    let mut path = Path::of(&crate::Config::Nice(config), link);
    path.trace(Span::from_secs(10), 1);
    path
}

#[test]
fn a_single_nice_flow_fills_the_link_with_a_short_queue_by_the_article() {
    for window in alone(Reading::Paper).trace(Span::from_millis(500), 10) {
        assert!((51..=55).contains(&window), "{window}");
    }
}

#[test]
fn slow_start_reverts_each_halving_and_the_window_oscillates_by_the_listing() {
    let windows = alone(Reading::Listing).trace(Span::from_millis(10), 1_000);
    let (least, most) = (*windows.iter().min().unwrap(), *windows.iter().max().unwrap());
    assert!(least < 45 && most > 60, "{least} to {most}");
}
