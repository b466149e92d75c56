use super::*;
use crate::testing::{Link, Path, ack, delivered, loss, ms, start, state_of};
use crate::{Congestion, Controller, RttSample};
use weir_base::{Rate, Span};

/// A connection after slow start with this window.
fn cdg(config: Config, cwnd: u32) -> (Cdg, Random) {
    let mut cdg = Cdg::new(&config, &start());
    (cdg.window.cwnd, cdg.window.ssthresh, cdg.shadow) = (cwnd, cwnd, cwnd);
    (cdg, Random::stream(1, "cdg"))
}

/// A round of one acknowledgement with an RTT in microseconds.
fn round(cdg: &mut Cdg, random: &mut Random, rtt: u64) {
    let (acknowledged, next_sequence) = (cdg.round_end + 1, cdg.round_end + 1_000);
    let rtt = Some(RttSample { rtt: Span::from_micros(rtt), delayed: false, queued_back: Span::ZERO });
    cdg.on_delivered(&Delivered { rtt, acknowledged, next_sequence, ..delivered(ms(0), 2) });
    cdg.on_ack(&Ack { acknowledged, next_sequence, ..ack(ms(0), 1) }, random);
}

/// Begins the reduction that the controller requested, and ends it.
fn come_down(cdg: &mut Cdg) {
    assert!(cdg.wants_reduction());
    cdg.on_enter_recovery(&Congestion { signal: Signal::Own, ..loss(ms(0)) });
    cdg.on_exit_recovery(ms(0));
}

#[test]
fn a_steep_rise_cuts_the_window_by_three_tenths_and_the_shadow_window_keeps_its_value() {
    let (mut cdg, mut random) = cdg(Config::default(), 100);
    round(&mut cdg, &mut random, 50_000);
    assert!(!cdg.wants_reduction());
    // 50 ms more in a round, extrapolated to eight: the probability of no back-off is below 10^-7.
    round(&mut cdg, &mut random, 100_000);
    come_down(&mut cdg);
    // 100 * 724 / 1024.
    assert_eq!((cdg.window.cwnd, cdg.window.ssthresh, cdg.shadow), (70, 70, 100));
}

#[test]
fn a_steady_or_falling_delay_causes_no_back_off() {
    let (mut cdg, mut random) = cdg(Config::default(), 100);
    for n in 0..1_000 {
        round(&mut cdg, &mut random, 100_000 - n * 50);
        assert!(!cdg.wants_reduction());
    }
}

#[test]
fn the_probability_of_a_back_off_after_a_rise_follows_the_exponential() {
    // 2000 us a round are 16,000 over eight: 1 - exp(-16,000 * 42 / 10^6) = 0.489.
    let mut answered = 0;
    let mut random = Random::stream(2, "cdg");
    for _ in 0..10_000 {
        let (mut cdg, _) = cdg(Config::default(), 100);
        for rtt in [50_000, 52_000] {
            round(&mut cdg, &mut random, rtt);
        }
        answered += u32::from(cdg.wants_reduction());
    }
    assert!((4_740..=5_040).contains(&answered), "{answered} of 10,000");
}

#[test]
fn five_back_offs_without_effect_are_the_last_until_the_delay_falls() {
    let (mut cdg, mut random) = cdg(Config::default(), 1_000);
    // Each rise is almost certain to cause a back-off.
    let mut rtt = 50_000;
    let mut rise = |cdg: &mut Cdg, random: &mut Random| {
        for _ in 0..2 {
            rtt += 100_000;
            round(cdg, random, rtt);
        }
        rtt
    };
    for _ in 0..5 {
        rise(&mut cdg, &mut random);
        come_down(&mut cdg);
    }
    let highest = rise(&mut cdg, &mut random);
    assert!(!cdg.wants_reduction());
    // The sums do not include the rounds of reductions. They fall by 32 us once all rises have left the window.
    for _ in 0..9 {
        round(&mut cdg, &mut random, highest);
    }
    round(&mut cdg, &mut random, highest - 32);
    assert_eq!(cdg.ineffectual, 0);
}

#[test]
fn a_loss_halves_the_window_but_not_below_half_of_the_shadow_window() {
    let (mut first, _) = cdg(Config::default(), 100);
    first.on_enter_recovery(&loss(ms(0)));
    assert_eq!((first.window.cwnd, first.shadow), (50, 50));
    // Back-offs have reduced 160 to 100: half of 160 is 80.
    let (mut second, _) = cdg(Config::default(), 100);
    second.shadow = 160;
    second.on_enter_recovery(&loss(ms(0)));
    assert_eq!((second.window.cwnd, second.shadow), (80, 80));
    // The result is at most the window.
    let (mut third, _) = cdg(Config::default(), 100);
    third.shadow = 300;
    third.on_enter_recovery(&loss(ms(0)));
    assert_eq!(third.window.cwnd, 100);
    let (mut fourth, _) = cdg(Config { use_shadow: false, ..Config::default() }, 100);
    fourth.shadow = 300;
    fourth.on_enter_recovery(&loss(ms(0)));
    assert_eq!(fourth.window.cwnd, 50);
}

#[test]
fn the_shadow_window_grows_with_a_used_window_only() {
    let (mut cdg, mut random) = cdg(Config::default(), 10);
    cdg.shadow = 14;
    cdg.on_ack(&ack(ms(0), 10), &mut random);
    assert_eq!((cdg.window.cwnd, cdg.shadow), (11, 15));
    cdg.on_ack(&Ack { cwnd_limited: false, ..ack(ms(0), 11) }, &mut random);
    assert_eq!((cdg.window.cwnd, cdg.shadow), (11, 11));
}

#[test]
fn with_tolerance_a_loss_without_a_full_queue_causes_no_reduction() {
    let (mut cdg, mut random) = cdg(Config { use_tolerance: true, ..Config::default() }, 100);
    for rtt in [90_000, 50_000] {
        round(&mut cdg, &mut random, rtt);
    }
    assert_eq!(cdg.queue, Queue::NotFull);
    cdg.on_enter_recovery(&loss(ms(0)));
    assert_eq!(cdg.window.cwnd, 100);
    // After recovery the state of the queue is unknown.
    cdg.on_exit_recovery(ms(1));
    cdg.on_enter_recovery(&loss(ms(2)));
    assert_eq!(cdg.window.cwnd, 50);
}

#[test]
fn a_rising_smallest_rtt_with_a_steady_largest_one_indicates_a_full_queue() {
    let (mut cdg, _) = cdg(Config { use_tolerance: true, ..Config::default() }, 100);
    for (min, max, expected) in [
        (64, 0, Queue::Full),
        (31, 31, Queue::Full),
        (64, 64, Queue::NotFull),
        (31, 31, Queue::NotFull),
        (64, 31, Queue::Full),
        (0, -32, Queue::NotFull),
    ] {
        cdg.take(&Trend { gradient: 0, min, max });
        assert_eq!(cdg.queue, expected, "{min}, {max}");
    }
}

#[test]
fn idleness_resets_the_gradients_and_the_shadow_window() {
    let (mut cdg, mut random) = cdg(Config::default(), 100);
    for rtt in [50_000, 50_040] {
        round(&mut cdg, &mut random, rtt);
    }
    cdg.shadow = 150;
    let (now, rto) = (ms(0), Span::from_millis(300));
    cdg.on_restart(&Restart::Idle { now, idle: Span::from_secs(1), rto, initial_window: 10 });
    assert_eq!(state_of(&cdg, "gradient_us"), Some(0.0));
    assert_eq!(cdg.shadow, 100);
    // The first round after the idle time has no round to be compared with.
    round(&mut cdg, &mut random, 500_000);
    assert!(!cdg.wants_reduction());
}

#[test]
fn a_single_cdg_flow_keeps_the_queue_short_and_loses_nothing() {
    // 10 Mbit/s and 40 ms hold 50 segments, the buffer 100 more: Reno fills it.
    let link =
        Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 100, mark: None };
    let mut path = Path::new("cdg", link);
    path.trace(Span::from_secs(5), 1);
    let drops = path.drops;
    let windows = path.trace(Span::from_millis(40), 1000);
    let mean = windows.iter().sum::<u64>() as f64 / windows.len() as f64;
    assert!((40.0..70.0).contains(&mean), "{mean}");
    assert_eq!(path.drops, drops);
}

#[test]
fn back_offs_are_drawn_from_the_seed() {
    let link =
        Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 100, mark: None };
    let trace = || Path::new("cdg", link).trace(Span::from_millis(100), 100);
    assert_eq!(trace(), trace());
}
