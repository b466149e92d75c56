//! Scripted loss without SACK (NewReno, RFC 6582): the effects of each loss on the path of `scripted_loss` (10 Mbit/s, 20 ms, 400
//! segments, `newreno`).

use crate::pair::{Pair, Script, config};
use weir_base::{Bytes, Random, Rate, Span};
use weir_endpoint::Segment;
use weir_tcp::{Config, Info};

const RTT: Span = Span::from_millis(20);
const MSS: u64 = 1448;

fn transfer(forth: Script, back: Script) -> (Info, f64) {
    let config = Config { sack: false, ..config("newreno") };
    let mut pair = Pair::new(config, RTT, Some(Rate::from_mbit_per_sec(10)), forth, back);
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert!(pair.back.log.iter().all(|(_, segment, _)| segment.sack().is_empty()));
    (info, pair.finished_at.expect("the transfer ends").as_secs_f64())
}

fn dropping(numbers: impl IntoIterator<Item = u64>) -> Script {
    Script { drop: numbers.into_iter().collect(), data_only: true, ..Script::default() }
}

#[test]
fn a_clean_path_has_no_retransmissions() {
    let (info, _) = transfer(Script::default(), Script::default());
    assert_eq!((info.retransmitted, info.timeouts, info.undos), (0, 0, 0));
}

#[test]
fn a_single_loss_costs_one_retransmission_and_halves_the_window() {
    let (info, _) = transfer(dropping([60]), Script::default());
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries, info.undos), (1, 0, 1, 0));
}

#[test]
fn half_of_the_window_leaves_while_a_lost_segment_is_retransmitted() {
    // Each duplicate delivers a segment (Linux `tcp_add_reno_sack`), so that proportional rate reduction lets one leave for every two.
    // The receiver's window does not limit the sender.
    let buffer = Bytes::new(1 << 20);
    let config = Config { sack: false, receive_buffer: (buffer, buffer), ..config("newreno") };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config, RTT, rate, dropping([40]), Script::default());
    pair.transfer(400 * MSS, Span::from_secs(20));
    let repairs = |segment: &Segment| u64::from(segment.ack) > 1 + 40 * MSS;
    let repair = pair.back.log.iter().find(|(_, segment, _)| repairs(segment)).expect("it is repaired");
    let repaired = repair.0 + RTT / 2;
    let sent = pair.data_sent();
    let again = 1 + sent.windows(2).position(|two| two[1].1 < two[0].1).expect("it is retransmitted");
    let in_flight = again - 40;
    let meanwhile = sent[again + 1..].iter().filter(|sent| sent.0 < repaired).count();
    // Two duplicates come before the reduction, and the retransmission is one of the segments that leave.
    assert_eq!(meanwhile, (in_flight - 1 - 2).div_ceil(2) - 1, "{in_flight} were in flight");
}

#[test]
fn a_window_that_still_grows_stays_while_a_segment_is_missing() {
    let config = Config { sack: false, ..config("newreno") };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config, RTT, rate, dropping([3]), Script::default());
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (1, 0, 1));
    let windows_at = |segments: u64| {
        let answers = pair.back.log.iter().map(|(_, segment, _)| segment);
        let at = answers.filter(|segment| u64::from(segment.ack) == 1 + segments * MSS);
        at.map(|segment| segment.window).collect::<Vec<_>>()
    };
    // Six segments of the first window follow the lost one. Limited transmit adds two.
    let duplicates = windows_at(3);
    assert!(
        duplicates.len() > 8 && duplicates.iter().all(|window| *window == duplicates[0]),
        "{duplicates:?}"
    );
    assert!(windows_at(2)[0] < duplicates[0], "the window grew before");
    let last = pair.back.log.last().expect("the transfer is acknowledged").1.window;
    assert!(last > duplicates[0], "the window grows afterwards");
}

#[test]
fn a_burst_of_ten_is_repaired_one_a_round_trip_without_a_timeout() {
    let (info, took) = transfer(dropping(60..70), Script::default());
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (10, 0, 1));
    let (_, single) = transfer(dropping([60]), Script::default());
    assert!(took - single > 8.0 * RTT.as_secs_f64(), "{took} {single}");
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    let (info, _) = transfer(dropping([399]), Script::default());
    assert_eq!((info.retransmitted, info.timeouts, info.probes), (1, 1, 0));
}

#[test]
fn a_minimum_rto_of_one_second_is_respected() {
    let config = Config { sack: false, rto_min: Span::from_secs(1), ..config("newreno") };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config, RTT, rate, dropping([399]), Script::default());
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts), (1, 1));
    let (last, again) = {
        let sent = pair.data_sent();
        (sent[sent.len() - 2].0, sent[sent.len() - 1].0)
    };
    assert!(again.since(last) > Span::from_secs(1), "{last} {again}");
}

#[test]
fn lost_acknowledgements_cause_no_retransmission() {
    let lost = Script { drop: (20..60).step_by(2).collect(), ..Script::default() };
    let (info, _) = transfer(Script::default(), lost);
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (0, 0, 0));
}

#[test]
fn random_loss_has_the_same_counts_as_ever() {
    // As computed when the test was written. PRR's window follows from the segments that an acknowledgement counts as delivered.
    let counts = |controller: &str, limited_transmit| {
        let config = Config { sack: false, limited_transmit, ..config(controller) };
        let mut random = Random::stream(1, "loss");
        let lost = dropping((10..2_500).filter(|_| random.chance(0.02)));
        let mut pair = Pair::new(config, RTT, Some(Rate::from_mbit_per_sec(10)), lost, Script::default());
        let info = pair.transfer(2_000 * MSS, Span::from_secs(60));
        assert_eq!(pair.read, 2_000 * MSS);
        [info.retransmitted, info.timeouts, info.recoveries, info.delivered, info.cwnd.into()]
    };
    let all =
        [("newreno", true), ("newreno", false), ("cubic", true)].map(|(name, limited)| counts(name, limited));
    assert_eq!(all, [[40, 1, 28, 2014, 10], [37, 1, 29, 2004, 10], [35, 0, 30, 2001, 7]]);
}

/// Number of segments sent before the lost 61st segment is retransmitted.
fn sent_before_the_retransmission(limited_transmit: bool) -> usize {
    let config = Config { sack: false, limited_transmit, ..config("newreno") };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config, RTT, rate, dropping([60]), Script::default());
    pair.transfer(400 * MSS, Span::from_secs(20));
    let sent = pair.data_sent();
    let again = sent.windows(2).position(|two| two[1].1 < two[0].1);
    again.expect("the lost segment is retransmitted") + 1
}

#[test]
fn limited_transmit_sends_a_segment_for_each_of_the_first_two_duplicates() {
    assert_eq!(sent_before_the_retransmission(true), sent_before_the_retransmission(false) + 2);
}

#[test]
fn with_a_fixed_delay_every_second_segment_is_acknowledged() {
    let acknowledgements = |delayed_ack, window_updates| {
        let config = Config { sack: false, delayed_ack, window_updates, ..config("newreno") };
        let rate = Some(Rate::from_mbit_per_sec(10));
        let mut pair = Pair::new(config, RTT, rate, Script::default(), Script::default());
        pair.transfer(400 * MSS, Span::from_secs(20));
        // All except the answer to the SYN.
        pair.back.log.len() - 1
    };
    let delay = Some(Span::from_millis(100));
    assert_eq!(acknowledgements(delay, false), 200);
    assert_eq!(acknowledgements(delay, true), 267, "two for three segments, and one for the last");
    assert!(acknowledgements(None, false) >= 208, "sixteen at once, and one for two of the others");
}
