//! The effect of host clocks on controllers that use timestamps.

use crate::simulate::{distribution, number, simulate};

/// One bulk flow for a minute; `TRAFFIC` is filled in.
const ALONE: &str = "
[run]
duration = '60 s'
warmup = '20 s'
[dumbbell]
rate = '8 Mbit/s'
rtt = '50 ms'
queue = { kind = 'tail-drop', limit = '70 packets' }
[traffic.flow]
TRAFFIC
";

/// Utilisation in percent and mean queuing delay in milliseconds.
fn alone(traffic: &str) -> (f64, f64) {
    let run = &simulate(&ALONE.replace("TRAFFIC", traffic))[0];
    let delay = distribution(run.metrics.get("queue_delay_ms")).mean;
    (number(run.metrics.get("utilisation_percent")), delay)
}

#[test]
fn a_constant_offset_of_clocks_does_not_affect_controllers_that_use_differences() {
    for controller in ["ledbat", "yield"] {
        let plain = alone(&format!("cc = '{controller}'"));
        let apart = alone(&format!("cc = '{controller}'\nreceiver_clock = {{ offset = '1000 s' }}"));
        assert_eq!(plain, apart, "{controller}");
    }
}

#[test]
fn a_peer_whose_clock_gains_two_milliseconds_a_second_looks_like_a_queue_to_ledbat() {
    // After 50 s the delay seems to have grown by the whole target of 100 ms, and the window goes down to two segments of the 33
    // that the path holds. A clock that gains the other way lowers the base delay all the time, and the whole queue is still
    // seen.
    let (fast, _) = alone("cc = 'ledbat'\nreceiver_clock = { skew_ppm = 3000 }");
    let (slow, delay) = alone("cc = 'ledbat'\nsender_clock = { skew_ppm = 3000 }");
    assert!(fast < 60.0, "{fast}");
    assert!(slow > 99.0 && delay > 60.0, "{slow} {delay}");
}

#[test]
fn two_flows_of_tcp_lp_behave_like_reno_if_clocks_are_far_apart_and_starve_if_they_agree() {
    // The range is reset to the clocks' difference and twice that, so it is 1000 s wide: no delay exceeds 15 % of that. If the
    // clocks agree, the peer's seems to tick more than 1000 times a second again and again, and the difference is lost.
    let (apart, delay) = alone("cc = 'lp'\nflows = 2\nreceiver_clock = { offset = '1000 s' }");
    assert!(apart > 97.0, "{apart}");
    // The study's two flows saw 121 ms over a path of 50 (table 4.3).
    assert!((60.0..80.0).contains(&delay), "{delay}");
    let same = "{ offset = '0 s' }";
    let (alike, _) = alone(&format!("cc = 'lp'\nflows = 2\nsender_clock = {same}\nreceiver_clock = {same}"));
    assert!(alike < 70.0, "{alike}");
}
