use super::*;
use crate::testing::{Link, Path, ack, delivered, loss, ms, start, state_of, timeout};
use crate::{Controller, RttSample};
use weir_base::{Rate, Span};

fn lp(reading: Reading, threshold: Threshold) -> WestwoodLp {
    WestwoodLp::new(&Config { reading, threshold, hz: 1000, ..Config::default() }, &start())
}

fn sample(lp: &mut WestwoodLp, now: u64, acknowledged: u64, rtt: u64, predicted: bool) {
    let rtt = Some(RttSample { rtt: Span::from_millis(rtt), delayed: false, queued_back: Span::ZERO });
    lp.on_delivered(&Delivered { rtt, acknowledged, predicted, ..delivered(ms(now), 1) });
}

/// A connection on a path that carries 500 bytes per tick, 20 segments in its smallest RTT of 40 ms; the RTT is now 80 ms.
fn filled(reading: Reading, threshold: Threshold, cwnd: u32) -> WestwoodLp {
    let mut lp = lp(reading, threshold);
    sample(&mut lp, 0, 0, 40, true);
    sample(&mut lp, 50, 25_500, 40, true);
    sample(&mut lp, 51, 25_500, 40, true);
    assert_eq!(lp.path.segments(), 20);
    for rtt in [40, 80] {
        sample(&mut lp, 51, 26_500, rtt, false);
    }
    (lp.window.cwnd, lp.window.ssthresh) = (cwnd, 5);
    lp
}

fn acknowledge(lp: &mut WestwoodLp) {
    lp.on_ack(&ack(ms(51), 1), &mut Random::stream(1, "lp"));
}

#[test]
fn the_threshold_is_half_of_its_maximum_where_the_delay_has_doubled() {
    // 3 * (1 - 40 / 80) = 1.5, and in integers 3 * 50 / 100 = 1. 20 segments of 1000 bytes are 19 of 1012.
    for (reading, cwnd, expected) in [
        (Reading::Paper, 21, 21),
        (Reading::Paper, 22, 20),
        (Reading::Listing, 20, 20),
        (Reading::Listing, 21, 20),
    ] {
        let mut lp = filled(reading, Threshold::Of2006, cwnd);
        acknowledge(&mut lp);
        assert_eq!(lp.window.cwnd, expected, "{reading:?} from {cwnd}");
        let came_down = f64::from(u8::from(cwnd != expected));
        assert_eq!(state_of(&lp, "early_reductions"), Some(came_down), "{reading:?} from {cwnd}");
    }
}

#[test]
fn the_listing_raises_a_window_below_the_estimated_bdp_to_it() {
    let mut listing = filled(Reading::Listing, Threshold::Of2006, 10);
    acknowledge(&mut listing);
    assert_eq!(listing.window.cwnd, 20);
    let mut paper = filled(Reading::Paper, Threshold::Of2006, 10);
    acknowledge(&mut paper);
    assert_eq!(paper.window.cwnd, 10);
}

#[test]
fn the_threshold_falls_as_the_delay_nears_that_of_losses() {
    let mut lp = filled(Reading::Paper, Threshold::Of2006, 21);
    // The delay at losses is 100 ms: 3 * (1 - 80 / 100) * (1 - 40 / 80) = 0.3.
    lp.delay_loss = 4 * 100;
    assert!((lp.threshold((40, 80)) - 0.3).abs() < 1e-9);
    acknowledge(&mut lp);
    assert_eq!(lp.window.cwnd, 20);
    // In integers 3 * 20 / 100 is zero.
    let mut listing = filled(Reading::Listing, Threshold::Of2006, 21);
    listing.delay_loss = 4 * 100;
    assert_eq!(listing.threshold_as_listed((40, 80)), 0);
}

#[test]
fn above_the_delay_of_losses_the_listing_never_reduces_and_the_paper_always_does() {
    let mut listing = filled(Reading::Listing, Threshold::Of2006, 90);
    // 100 - 4 * 80 * 100 / 240 = -33, which is above four thousand million in unsigned numbers.
    listing.delay_loss = 4 * 60;
    acknowledge(&mut listing);
    assert_eq!((listing.window.cwnd, listing.early_reductions), (90, 0));
    let mut paper = filled(Reading::Paper, Threshold::Of2006, 21);
    paper.delay_loss = 4 * 60;
    acknowledge(&mut paper);
    assert_eq!((paper.window.cwnd, paper.early_reductions), (20, 1));
}

#[test]
fn the_average_delay_of_losses_begins_at_a_quarter_of_the_first_by_the_listing() {
    // The average begins at 1, not at 0: 1 + 80 is stored, which means 20 ms.
    let mut listing = filled(Reading::Listing, Threshold::Of2006, 20);
    listing.on_timeout(&timeout(ms(60)));
    assert_eq!(listing.delay_loss, 81);
    assert_eq!((listing.window.cwnd, listing.window.ssthresh), (1, 20));
    // By the paper losses without a timeout count too, and the first delay is the average.
    let mut paper = filled(Reading::Paper, Threshold::Of2006, 20);
    paper.on_enter_recovery(&loss(ms(60)));
    assert_eq!(paper.delay_loss, 320);
    paper.on_exit_recovery(ms(100));
    assert_eq!((paper.window.cwnd, paper.window.ssthresh), (20, 20));
}

#[test]
fn the_formula_of_2004_uses_the_mean_rtt_and_an_empty_queue_causes_no_reduction() {
    let mut lp = filled(Reading::Paper, Threshold::Of2004, 22);
    // Five samples with a smallest RTT of 40 ms and a mean of 48: 3 * (1 - 40 / 48) is a half; delta adds 0.0002.
    assert_eq!(lp.delays.pair(Threshold::Of2004, false), Some((40, 48)));
    let expected = 3.0 * (1.0 - 40.0 / 48.0 + 3e-6 / 0.04);
    assert!((lp.threshold((40, 48)) - expected).abs() < 1e-9);
    acknowledge(&mut lp);
    assert_eq!(lp.window.cwnd, 20);
    sample(&mut lp, 52, 27_500, 40, false);
    lp.window.cwnd = 50;
    acknowledge(&mut lp);
    assert_eq!(lp.window.cwnd, 50);
}

#[test]
fn the_listing_samples_delays_only_from_acknowledgements_that_are_not_predicted() {
    for (reading, expected) in [(Reading::Listing, (0, 0)), (Reading::Paper, (40, 90))] {
        let mut lp = lp(reading, Threshold::Of2006);
        for rtt in [40, 90] {
            sample(&mut lp, 0, 0, rtt, true);
        }
        assert_eq!((lp.delays.min, lp.delays.max), expected, "{reading:?}");
    }
}

#[test]
fn only_the_listing_reduces_in_slow_start_and_not_without_averages() {
    for (reading, min_avg, expected) in
        [(Reading::Listing, 0, 0), (Reading::Listing, 160, 1), (Reading::Paper, 160, 0)]
    {
        let mut lp = filled(reading, Threshold::Of2006, 40);
        lp.window.ssthresh = 1_000;
        (lp.delays.min_avg, lp.delays.max_avg) = (min_avg, 2 * min_avg);
        acknowledge(&mut lp);
        assert_eq!(lp.early_reductions, expected, "{reading:?} {min_avg}");
    }
}

#[test]
fn averages_give_a_new_sample_a_quarter_of_the_weight() {
    // 4 * 40; then 160 + 80 - 40 = 200, which means 50.
    assert_eq!(average(40, 0), 160);
    assert_eq!(average(80, 160), 200);
}

/// The windows each 50 ms from 20 s on of a flow alone on a path that holds 50 segments, with a buffer of 50.
fn alone(threshold: Threshold, hz: u32) -> Vec<u64> {
    let link = Link { rate: Rate::from_mbit_per_sec(10), rtt: Span::from_millis(40), buffer: 50, mark: None };
    let config = Config { reading: Reading::Paper, threshold, hz, ..Config::default() };
    let mut path = Path::of(&crate::Config::WestwoodLp(config), link);
    path.trace(Span::from_secs(20), 1);
    let drops = path.drops;
    let windows = path.trace(Span::from_millis(50), 200);
    assert_eq!(path.drops, drops);
    windows
}

#[test]
fn a_single_westwood_lp_flow_fills_the_link_with_a_queue_of_a_few_segments() {
    assert!(alone(Threshold::Of2004, 1000).iter().all(|window| (47..=58).contains(window)));
    // A clock of 4 ms rounds the RTT of 40.8 ms up to 44: the estimated BDP is four segments larger.
    assert!(alone(Threshold::Of2006, 250).iter().all(|window| (47..=62).contains(window)));
}

#[test]
fn the_formula_of_2006_keeps_the_window_below_the_bdp_with_a_fine_clock() {
    // The measured rate is the window's own and lags behind its growth; without a queue the threshold is almost zero.
    assert!(alone(Threshold::Of2006, 1000).iter().all(|window| *window < 30));
}
