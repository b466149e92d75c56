//! Circuit TCP against values computed by hand.

use super::*;
use crate::testing::{Link, MSS, Path, ack, loss, ms, start, timeout};
use crate::{Config as Any, Phase};

/// 100 Mbit/s and 40 ms: 500,000 bytes, of which 130 % are 650,000; packets of 1,066 bytes fill them with 610.
fn circuit() -> Config {
    Config { rate: Rate::from_mbit_per_sec(100), rtt: Span::from_millis(40), ..Config::default() }
}
const WINDOW: u64 = 610;

fn segments(ctcp: &Ctcp) -> u64 {
    ctcp.window().get() / MSS.get()
}

/// Gives an acknowledgement each second, with `per_mille` of every thousand segments lost.
fn lose(ctcp: &mut Ctcp, seconds: std::ops::RangeInclusive<u64>, per_mille: u64) {
    let mut random = Random::stream(1, "ctcp");
    for second in seconds {
        let (delivered, lost) = (1 + second * (1000 - per_mille), second * per_mille);
        ctcp.on_ack(&Ack { delivered, lost, ..ack(ms(1000 * second), 1) }, &mut random);
    }
}

#[test]
fn the_window_is_that_of_the_circuit_from_the_first_segment_on() {
    let ctcp = Ctcp::new(&circuit(), &start());
    assert_eq!(segments(&ctcp), WINDOW);
    // The thesis's wide-area path: 4 Gbit/s and 26 ms hold 13.0 MB.
    let (rate, rtt) = (Rate::from_mbit_per_sec(4000), Span::from_millis(26));
    assert_eq!(circuit_window(rate, rtt, 100), Bytes::new(13_000_000));
    assert_eq!(circuit_window(rate, rtt, 130), Bytes::new(16_900_000));
    assert_eq!(
        circuit_window(rate, Span::from_secs(10), 100),
        Bytes::new(1 << 30),
        "TCP can advertise no more"
    );
}

#[test]
fn no_acknowledgement_loss_or_timeout_changes_the_window_of_a_circuit() {
    let mut ctcp = Ctcp::new(&circuit(), &start());
    let mut random = Random::stream(1, "ctcp");
    ctcp.on_ack(&ack(ms(40), 10), &mut random);
    ctcp.on_enter_recovery(&loss(ms(50)));
    ctcp.on_ack(&Ack { phase: Phase::Recovery, ..ack(ms(60), 1) }, &mut random);
    ctcp.on_exit_recovery(ms(90));
    ctcp.on_timeout(&timeout(ms(300)));
    ctcp.on_restart(&Restart::Unused { now: ms(400), used: 1, initial_window: 10 });
    assert_eq!((segments(&ctcp), ctcp.recovery()), (WINDOW, Recovery::Own));
}

#[test]
fn the_pacing_rate_is_the_rate_of_the_circuit_without_headers() {
    let ctcp = Ctcp::new(&Config { pace: true, ..circuit() }, &start());
    // 12,500,000 * 1000 / 1066 = 11,726,078 bytes a second.
    assert_eq!(ctcp.pacing_rate(), Some(Rate::from_bits_per_sec(93_808_624)));
    assert_eq!(Ctcp::new(&circuit(), &start()).pacing_rate(), None);
}

#[test]
fn ten_lossy_seconds_in_a_row_cause_a_fall_back_to_htcp_with_half_the_window() {
    let mut ctcp = Ctcp::new(&circuit(), &start());
    // The first acknowledgement only begins the first second.
    lose(&mut ctcp, 0..=9, 20);
    assert_eq!((ctcp.losses.lossy, segments(&ctcp), ctcp.recovery()), (9, WINDOW, Recovery::Own));
    lose(&mut ctcp, 10..=10, 20);
    assert_eq!((segments(&ctcp), ctcp.recovery()), (WINDOW / 2, Recovery::Proportional));
    let mut state = vec![];
    ctcp.state(&mut |name, value| state.push((name, value)));
    assert!(state.contains(&("fell_back", 1.0)) && state.contains(&("on_circuit", 0.0)), "{state:?}");
    // The window is H-TCP's from here on: a loss halves it again.
    ctcp.on_enter_recovery(&loss(ms(11_000)));
    assert_eq!(segments(&ctcp), WINDOW / 4);
}

#[test]
fn one_percent_of_loss_and_bursts_of_nine_seconds_cause_no_fall_back() {
    let mut ctcp = Ctcp::new(&circuit(), &start());
    lose(&mut ctcp, 0..=100, 10);
    assert_eq!(ctcp.losses.lossy, 0, "1 % is not more than 1 %");
    let mut ctcp = Ctcp::new(&circuit(), &start());
    lose(&mut ctcp, 0..=9, 900);
    // A second without loss: the total of losses does not decrease.
    let calm = Ack { delivered: 2000, lost: 8100, ..ack(ms(10_000), 1) };
    ctcp.on_ack(&calm, &mut Random::stream(1, "ctcp"));
    assert_eq!((ctcp.losses.lossy, segments(&ctcp)), (0, WINDOW));
}

#[test]
fn circuit_tcp_never_falls_back_if_that_is_switched_off() {
    let mut ctcp = Ctcp::new(&Config { fall_back: false, ..circuit() }, &start());
    lose(&mut ctcp, 0..=30, 500);
    assert_eq!((segments(&ctcp), ctcp.recovery()), (WINDOW, Recovery::Own));
}

#[test]
fn circuit_tcp_without_a_circuit_is_htcp() {
    let link =
        Link { rate: Rate::from_mbit_per_sec(50), rtt: Span::from_millis(40), buffer: 100, mark: None };
    let windows = |name| Path::new(name, link).trace(Span::from_millis(100), 100);
    assert_eq!(windows("ctcp"), windows("htcp"));
    let half_told: Any = serde_json::from_str(r#"{ "kind": "ctcp", "rate": "1 Gbit/s" }"#).unwrap();
    assert_eq!(half_told.build(&start()).window(), Bytes::new(10 * MSS.get()));
}

#[test]
fn circuit_tcp_fills_its_circuit_from_the_first_round_trip_on_without_loss() {
    // 100 Mbit/s and 40 ms hold 500 segments here, where headers do not count: 130 % are 650, of which 150 wait.
    let rate = Rate::from_mbit_per_sec(100);
    let link = Link { rate, rtt: Span::from_millis(40), buffer: 150, mark: None };
    let config = Config { header_bytes: 0, pace: true, ..circuit() };
    let mut path = Path::of(&Any::Ctcp(config), link);
    path.trace(Span::from_millis(41), 1);
    let before = path.delivered;
    path.trace(Span::from_secs(1), 1);
    assert_eq!((path.delivered - before, path.drops), (12_500, 0));
}
