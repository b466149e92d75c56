//! Scripted loss: which packets are dropped is fixed, and so are the counts of retransmissions and timeouts.

mod pair;

use pair::{Pair, Script, config};
use weir_base::{Rate, Span};

const RTT: Span = Span::from_millis(20);
const MSS: u64 = 1448;

fn path(controller: &str, forth: Script) -> Pair {
    Pair::new(config(controller), RTT, Some(Rate::from_mbit_per_sec(10)), forth, Script::default())
}

fn dropping(numbers: impl IntoIterator<Item = u64>) -> Script {
    Script { drop: numbers.into_iter().collect(), data_only: true, ..Script::default() }
}

#[test]
fn a_clean_path_repeats_nothing() {
    for controller in ["newreno", "cubic"] {
        let mut pair = path(controller, Script::default());
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!(pair.read, 400 * MSS);
        assert_eq!((info.retransmitted, info.timeouts, info.undos), (0, 0, 0));
        assert!(pair.finished_at.is_some());
    }
}

#[test]
fn a_single_loss_costs_one_retransmission_and_halves_the_window() {
    let mut pair = path("newreno", dropping([60]));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries, info.undos), (1, 0, 1, 0));
}

#[test]
fn a_burst_of_ten_costs_ten_retransmissions_and_no_timeout() {
    let mut pair = path("newreno", dropping(60..70));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (10, 0, 1));
}

#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let mut pair = path("newreno", dropping([399]));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert_eq!((info.retransmitted, info.timeouts, info.probes), (1, 0, 1));
}

#[test]
fn a_lost_syn_costs_a_second() {
    let syn = Script { drop: vec![0], ..Script::default() };
    let mut pair = path("newreno", syn);
    let info = pair.transfer(10 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts), (1, 1));
    let finished = pair.finished_at.unwrap().as_secs_f64();
    assert!((1.0..1.15).contains(&finished), "{finished}");
}
