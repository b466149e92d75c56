//! TCP-LP against values computed by hand from `tcp_lp.c` and from the article.

use super::*;
use crate::testing::{Link, Path, ack, ack_with_rtt, delivered, ms, start};
use crate::{Controller, RttSample};
use weir_base::{Rate, Span};

fn low_priority(reading: Reading, cwnd: u32) -> LowPriority {
    let mut cc = LowPriority::new(&Config { reading, ..Config::default() }, &start());
    cc.window.cwnd = cwnd;
    cc
}

/// Timestamps of the peer's clock, and of ours when the segment left.
fn stamps(peer_ticks: u32, echoed_ticks: u32) -> Timestamps {
    Timestamps { peer_ticks, echoed_ticks, tick: Span::from_millis(1) }
}

/// An acknowledgement that arrives when our clock shows `now`.
fn stamped(now: u32, timestamps: Timestamps) -> Ack {
    let rtt = Span::from_millis(now.wrapping_sub(timestamps.echoed_ticks).into());
    Ack { timestamps: Some(timestamps), ..ack_with_rtt(ms(now.into()), 1, rtt) }
}

/// Gives the delivery of an acknowledgement, then the acknowledgement.
fn arrive(cc: &mut LowPriority, ack: &Ack, random: &mut Random) {
    let &Ack { now, rtt, timestamps, phase, .. } = ack;
    cc.on_delivered(&Delivered { rtt, timestamps, phase, ..delivered(now, ack.delivered_segments) });
    cc.on_ack(ack, random);
}

#[test]
fn the_tick_rate_of_the_peer_is_estimated_from_steps_of_both_clocks() {
    let mut delay = Absolute::default();
    let mut rates = Vec::new();
    // The first sample sets the reference; then 10 ticks against 10, 5 against 4 (1250), 999 against 1000, 2 against 1 (2000).
    for (peer, own) in [(100, 50), (110, 60), (115, 64), (1_114, 1_064), (1_116, 1_065)] {
        delay.sample(&stamps(peer, own));
        rates.push(delay.describe_rate());
    }
    // 1000 + 250/64 is 1003; an error of -4 subtracts one; 1002 + 998/64 is 1017.
    assert_eq!(rates, [0, 1000, 1003, 1002, 1017]);
}

#[test]
fn a_peer_with_an_estimated_rate_above_1000_hz_yields_delays_that_wrap() {
    let mut delay = Absolute::default();
    delay.sample(&stamps(70_100, 50));
    delay.sample(&stamps(70_110, 60));
    // 70,110 less 60.
    assert_eq!(delay.describe(&mut |_, _| {}), (70_050.0, 70_050.0, 70_050.0));
    delay.sample(&stamps(70_115, 64));
    // Zero less 64 ms in 32 bits is 49.7 days. The sum of the average wraps and subtracts 70,114 from eight times 70,050; the largest
    // delay is put aside, so the range does not include it yet.
    assert_eq!(delay.describe(&mut |_, _| {}), (61_285.75, 70_050.0, 70_050.0));
    assert!(!delay.is_above(15));
    // Clocks with the same value have a small difference, but a negative one wraps to a long time too.
    let mut delay = Absolute::default();
    for (peer, own) in [(75, 50), (85, 60), (90, 64)] {
        delay.sample(&stamps(peer, own));
    }
    // 8 * 25 less 64 and 25 is 111; another such sample makes it negative.
    assert_eq!(delay.describe(&mut |_, _| {}).0, 111.0 / 8.0);
    delay.sample(&stamps(95, 69));
    delay.sample(&stamps(100, 74));
    assert!(delay.describe(&mut |_, _| {}).0 > 500_000_000.0);
}

#[test]
fn the_range_excludes_the_largest_delay_and_restarts_with_a_reduction() {
    let mut delay = Absolute::default();
    for (peer, own) in [(1_100, 1_000), (1_200, 1_100)] {
        delay.sample(&stamps(peer, own));
    }
    assert_eq!(delay.describe(&mut |_, _| {}), (100.0, 100.0, 100.0));
    // Delays of 120 and then 140: each is put aside, and the one before it counts. 1020 ticks in 1000 are too small an error.
    for (peer, own, most) in [(2_220, 2_100, 100.0), (3_240, 3_100, 120.0)] {
        delay.sample(&stamps(peer, own));
        assert_eq!(delay.describe(&mut |_, _| {}).2, most);
    }
    assert_eq!(delay.describe_rate(), 1000);
    delay.begin_range();
    // 100 + 20/8 + (140 - 102)/8 is an average of 107.
    assert_eq!(delay.describe(&mut |_, _| {}), (107.25, 107.0, 214.0));
}

#[test]
fn a_first_sign_halves_the_window_and_another_within_three_round_trips_leaves_one_segment() {
    let mut cc = low_priority(Reading::Kernel, 40);
    let Delay::Kernel(delay) = &mut cc.delay else { panic!("the kernel's") };
    // The range is 100 to 200 ms, its 15 % are at 115 ms, and the average is 150 ms.
    delay.set_for_test(1000, 150, (100, 200));
    let mut random = Random::stream(1, "lp");
    let at = |now: u32| Ack { rtt: None, ..stamped(now, stamps(now, now - 50)) };
    arrive(&mut cc, &at(5_000), &mut random);
    // The acknowledgement with the sign of congestion still counts for growth.
    assert_eq!((cc.window.cwnd, cc.inference, cc.last_drop), (21, 150, Some(5_000)));
    // The window does not grow within 150 ms. The range is now 150 to 300, the threshold 172.
    arrive(&mut cc, &at(5_100), &mut random);
    assert_eq!(cc.window.cwnd, 21);
    let Delay::Kernel(delay) = &mut cc.delay else { panic!("the kernel's") };
    delay.set_for_test(1000, 173, (150, 300));
    arrive(&mut cc, &at(5_149), &mut random);
    assert_eq!(cc.window.cwnd, 1);
    // Without a threshold from a loss, slow start resumes at the end of the phase, 150 ms after the last sign.
    arrive(&mut cc, &at(5_298), &mut random);
    assert_eq!(cc.window.cwnd, 1);
    arrive(&mut cc, &at(5_299), &mut random);
    assert_eq!(cc.window.cwnd, 2);
}

#[test]
fn a_sign_during_loss_recovery_leaves_the_window_to_prr() {
    let mut cc = low_priority(Reading::Kernel, 40);
    let Delay::Kernel(delay) = &mut cc.delay else { panic!("the kernel's") };
    delay.set_for_test(1000, 150, (100, 200));
    let ack =
        Ack { rtt: None, phase: Phase::Recovery, may_grow: false, ..stamped(5_000, stamps(5_000, 4_950)) };
    arrive(&mut cc, &ack, &mut Random::stream(1, "lp"));
    // There is no reduction, but the sign counts: its inference phase begins.
    assert_eq!((cc.window.cwnd, cc.last_drop), (40, Some(5_000)));
}

#[test]
fn an_acknowledgement_without_a_new_rtt_or_timestamps_gives_no_delay_sample() {
    let mut cc = low_priority(Reading::Kernel, 40);
    let mut random = Random::stream(1, "lp");
    arrive(&mut cc, &Ack { rtt: None, ..stamped(100, stamps(70_000, 50)) }, &mut random);
    arrive(&mut cc, &ack(ms(0), 1), &mut random);
    assert_eq!(cc.window.cwnd, 42);
    let Delay::Kernel(delay) = &cc.delay else { panic!("the kernel's") };
    assert_eq!(delay.describe_rate(), 0);
}

/// A connection by the article, after the first loss, with delays of 0 to 100 ms: the threshold is 15 ms.
fn ranged(cwnd: u32) -> LowPriority {
    let mut cc = low_priority(Reading::Paper, cwnd);
    cc.window.ssthresh = 1;
    let Delay::Paper(delay) = &mut cc.delay else { panic!("the article's") };
    delay.owd.sample(&stamps(70_000, 0));
    (delay.range, delay.average) = (Some((0, 100)), 0);
    cc
}

#[test]
fn a_sign_counts_once_per_round_trip_by_the_article() {
    let mut cc = ranged(40);
    let mut random = Random::stream(1, "lp");
    // A sample of 100 has a weight of 1/8: the average is 12.5 after the first and 23.4 after the second.
    let at = |now: u32, delay: u32| stamped(now, stamps(70_000 + now - 150 + delay, now - 150));
    arrive(&mut cc, &at(1_000, 100), &mut random);
    assert_eq!(cc.window.cwnd, 40);
    arrive(&mut cc, &at(1_010, 100), &mut random);
    assert_eq!((cc.window.cwnd, cc.window.ssthresh), (20, 1));
    // Segments that left before 1,010 do not count; the first one after it does, within 450 ms.
    arrive(&mut cc, &at(1_160, 100), &mut random);
    assert_eq!(cc.window.cwnd, 20);
    arrive(&mut cc, &at(1_161, 100), &mut random);
    assert_eq!(cc.window.cwnd, 1);
}

#[test]
fn slow_start_measures_the_range_by_the_article() {
    let mut cc = low_priority(Reading::Paper, 10);
    let mut random = Random::stream(1, "lp");
    for now in 1_000..1_010 {
        let delay = now - 1_000;
        arrive(&mut cc, &stamped(now, stamps(70_000 + 2 * delay, delay)), &mut random);
    }
    assert_eq!(cc.window.cwnd, 20);
    let Delay::Paper(delay) = &cc.delay else { panic!("the article's") };
    assert_eq!(delay.range, Some((0, 9)));
}

#[test]
fn delays_of_a_few_milliseconds_are_compared_in_fractions() {
    let mut delay = Relative { range: Some((0, 4)), average: 4, ..Relative::default() };
    // 15 % of 4 ms are 0.6; the average is 4/8, then 5/8.
    assert!(!delay.is_above(15));
    delay.average = 5;
    assert!(delay.is_above(15));
}

#[test]
fn a_single_tcp_lp_flow_keeps_most_of_the_link_by_the_article() {
    // The window is halved at 15 % of a queue of two BDP: it moves between 0.65 and 1.3 BDP, and below one the link is not full.
    let link = Link { rate: Rate::from_mbit_per_sec(8), rtt: Span::from_millis(50), buffer: 100, mark: None };
    let config = Config { reading: Reading::Paper, ..Config::default() };
    let mut path = Path::of(&crate::Config::LowPriority(config), link);
    path.trace(Span::from_secs(20), 1);
    let before = path.delivered;
    path.trace(Span::from_secs(40), 1);
    let share = (path.delivered - before) as f64 / 40_000.0;
    assert!((0.8..=0.97).contains(&share), "{share}");
}

#[test]
fn an_rtt_sample_without_timestamps_gives_no_delay_sample() {
    // An RTT sample without timestamps is no delay sample.
    let mut cc = low_priority(Reading::Kernel, 40);
    let rtt = Some(RttSample { rtt: Span::from_millis(50), delayed: false, queued_back: Span::ZERO });
    arrive(&mut cc, &Ack { rtt, ..ack(ms(0), 1) }, &mut Random::stream(1, "lp"));
    assert_eq!((cc.window.cwnd, cc.inference), (41, 0));
}
