//! CUBIC against values computed by hand from RFC 9438's formulas and the kernel's integers.

use super::*;
use crate::Controller;
use crate::testing::{Link, Path, ack_with_rtt, loss, ms, start, state_of, timeout};
use weir_base::Rate;

/// A connection in congestion avoidance that has just lost a segment at a window of `cwnd`.
fn after_loss(config: &Config, cwnd: u32) -> Cubic {
    let mut cubic = Cubic::new(config, &start());
    cubic.window.cwnd = cwnd;
    cubic.on_enter_recovery(&loss(ms(0)));
    cubic.on_exit_recovery(ms(0));
    cubic
}

/// Acknowledges one window over one round trip, in ten parts; returns the time after it.
fn round(cubic: &mut Cubic, now: Time, rtt: Span) -> Time {
    let mut random = Random::stream(1, "cubic");
    let (whole, parts) = (cubic.window.cwnd, 10);
    for part in 0..parts {
        let segments = whole / parts + u32::from(part < whole % parts);
        cubic.on_ack(
            &ack_with_rtt(now + rtt * u64::from(part) / u64::from(parts), segments, rtt),
            &mut random,
        );
    }
    now + rtt
}

/// The window after each second of acknowledgements.
fn seconds(cubic: &mut Cubic, rtt: Span, count: u64) -> Vec<u32> {
    let mut now = ms(0);
    (1..=count)
        .map(|second| {
            while now < ms(second * 1000) {
                now = round(cubic, now, rtt);
            }
            cubic.window.cwnd
        })
        .collect()
}

fn unfriendly() -> Config {
    Config { tcp_friendliness: false, ..Config::default() }
}

#[test]
fn cube_roots_are_exact_for_small_cubes() {
    for root in 0..=10u32 {
        let root_of_cube = cubic_root(u64::from(root).pow(3));
        assert_eq!(root_of_cube, root);
    }
}

#[test]
fn cube_roots_have_an_average_error_below_a_fifth_of_a_percent() {
    let mut random = Random::stream(3, "roots");
    let (mut sum, mut worst, samples) = (0.0, 0.0f64, 100_000);
    for _ in 0..samples {
        // Values from 2^30 on, so that rounding to whole numbers is at most a tenth of a percent.
        let a = (random.bits() >> random.below(33)) | 1 << 30;
        let exact = (a as f64).cbrt();
        let error = (f64::from(cubic_root(a)) - exact).abs() / exact;
        sum += error;
        worst = worst.max(error);
    }
    assert!(sum / f64::from(samples) < 0.002, "{}", sum / f64::from(samples));
    assert!(worst < 0.02, "{worst}");
}

#[test]
fn a_loss_reduces_the_window_to_seven_tenths() {
    // 1000 * 717 / 1024 = 700.2.
    let cubic = after_loss(&Config::default(), 1000);
    assert_eq!((cubic.window.cwnd, cubic.window.ssthresh), (700, 700));
    assert_eq!(after_loss(&Config::default(), 2).window.cwnd, 2);
}

#[test]
fn k_is_the_cube_root_of_the_drop_over_c() {
    let mut cubic = after_loss(&Config::default(), 1000);
    round(&mut cubic, ms(0), Span::from_millis(100));
    let k = state_of(&cubic, "k_s").unwrap();
    // RFC 9438: cbrt((1000 - 700) / 0.4) = 9.086 s; 41/1024 is 0.4004.
    assert!((k - 9.086).abs() < 0.02, "{k}");
    assert_eq!(state_of(&cubic, "origin_segments"), Some(1000.0));
}

#[test]
fn growth_is_concave_up_to_the_last_maximum_and_convex_after_it() {
    let mut cubic = after_loss(&unfriendly(), 1000);
    let windows = seconds(&mut cubic, Span::from_millis(100), 18);
    for (second, window) in (1..).zip(&windows) {
        // W(t + RTT) of RFC 9438, section 4.2.
        let distance = f64::from(second) + 0.1 - 9.086;
        let expected = 1000.0 + 0.4 * distance.powi(3);
        assert!(
            (f64::from(*window) - expected).abs() < 12.0,
            "{window} after {second} s, expected {expected}"
        );
    }
    let steps: Vec<u32> = windows.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(steps[..7].is_sorted_by(|a, b| a >= b), "{steps:?}");
    assert!(steps[10..].is_sorted(), "{steps:?}");
}

#[test]
fn a_small_window_grows_as_that_of_reno_with_the_same_average() {
    // From 14 on, 0.53 segments each round (RFC 9438, section 4.3: 3 (1 - 0.7) / (1 + 0.7)) for 100 rounds in a second give 67;
    // the window is one or two segments behind.
    let rtt = Span::from_millis(10);
    let friendly = seconds(&mut after_loss(&Config::default(), 20), rtt, 1)[0];
    assert!((65..=67).contains(&friendly), "{friendly}");
    // The curve alone would be flat at 20 after 2.5 s.
    let alone = seconds(&mut after_loss(&unfriendly(), 20), rtt, 1)[0];
    assert!((18..=20).contains(&alone), "{alone}");
}

#[test]
fn fast_convergence_lowers_the_maximum_after_a_loss_below_the_last_one() {
    let maximum_after = |config: &Config| {
        let mut cubic = after_loss(config, 1000);
        cubic.window.cwnd = 900;
        cubic.on_enter_recovery(&loss(ms(1)));
        state_of(&cubic, "w_max_segments")
    };
    // 900 * (1024 + 717) / 2048 = 765.08.
    assert_eq!(maximum_after(&Config::default()), Some(765.0));
    assert_eq!(maximum_after(&Config { fast_convergence: false, ..Config::default() }), Some(900.0));
}

#[test]
fn undo_restores_the_window_and_the_threshold() {
    let mut cubic = Cubic::new(&Config::default(), &start());
    cubic.window.cwnd = 100;
    cubic.window.ssthresh = 50;
    cubic.on_enter_recovery(&loss(ms(0)));
    assert_eq!(cubic.window.cwnd, 70);
    cubic.on_undo(ms(1));
    assert_eq!((cubic.window.cwnd, cubic.window.ssthresh), (100, 75));
}

#[test]
fn a_timeout_resets_the_curve_and_an_unknown_path_is_probed_by_a_twentieth_per_round() {
    let mut cubic = after_loss(&unfriendly(), 1000);
    cubic.on_timeout(&timeout(ms(0)));
    assert_eq!((cubic.window.cwnd, cubic.window.ssthresh), (1, 490));
    assert_eq!(state_of(&cubic, "w_max_segments"), Some(0.0));
    assert_eq!(state_of(&cubic, "delay_min_ms"), Some(0.0));
    cubic.window.cwnd = 490;
    round(&mut cubic, ms(0), Span::from_millis(100));
    assert_eq!(state_of(&cubic, "cnt"), Some(20.0));
    assert_eq!(cubic.window.cwnd, 490 + 24);
}

#[test]
fn time_without_sending_does_not_count_on_the_curve() {
    let mut cubic = after_loss(&Config::default(), 1000);
    round(&mut cubic, ms(2000), Span::from_millis(100));
    assert_eq!(state_of(&cubic, "epoch_start_s"), Some(2.0));
    cubic.on_restart(&Restart::Transmit { now: ms(8000), idle: Span::from_millis(3000), app_limited: false });
    assert_eq!(state_of(&cubic, "epoch_start_s"), Some(5.0));
    cubic.on_restart(&Restart::Transmit { now: ms(9000), idle: Span::from_millis(8000), app_limited: false });
    assert_eq!(state_of(&cubic, "epoch_start_s"), Some(9.0));
}

/// 50 Mbit/s and 50 ms hold 312.5 segments; the buffer holds as many.
fn link() -> Link {
    Link { rate: Rate::from_mbit_per_sec(50), rtt: Span::from_millis(50), buffer: 312, mark: None }
}

#[test]
fn hystart_leaves_slow_start_before_the_buffer_overflows() {
    let mut path = Path::new("cubic", link());
    path.run_until_congestion(Span::from_millis(500));
    assert_eq!(path.drops, 0);
    assert_eq!(state_of(path.controller.as_ref(), "hystart_found"), Some(1.0));
    // A round of 160 acknowledgements, 0.16 ms apart, takes 25.4 ms, just less than half of 50.16 ms plus 1 ms. The next round ends
    // slow start with its 161st acknowledgement; 160 have grown the window from 320 to 480 by then.
    let threshold = path.controller.slow_start_threshold().unwrap().get() / crate::testing::MSS.get();
    assert_eq!(threshold, 480);
}

#[test]
fn hystart_does_nothing_below_its_low_window() {
    let config = Config { hystart_low_window: 10_000, ..Config::default() };
    let mut path = Path::of(&crate::Config::Cubic(config), link());
    path.run_until_congestion(Span::from_secs(2));
    assert_eq!(state_of(path.controller.as_ref(), "hystart_found"), Some(0.0));
    assert!(path.drops > 0);
}

#[test]
fn the_window_on_an_ideal_path_follows_the_recorded_values() {
    // HyStart ends slow start at 480; growth is 5 % each round up to the first loss at 657. The cubic curves follow, the second with
    // a plateau of 533, 0.85 of the 627 segments that path and buffer hold.
    let windows = Path::new("cubic", link()).trace(Span::from_secs(1), 20);
    let expected =
        [460, 524, 573, 609, 446, 483, 508, 522, 530, 533, 533, 533, 536, 544, 558, 582, 617, 480, 533, 573];
    assert_eq!(windows, expected);
}
