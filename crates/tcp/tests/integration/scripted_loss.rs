//! Scripted loss: the dropped packets are fixed, and so are the numbers of retransmissions, timeouts and undos. For a clean path,
//! single and repeated losses, bursts, lost SYNs, reordering, a stall, lost tails and lost acknowledgements, the numbers are those
//! of Linux 6.18 on the same path (10 Mbit/s, 20 ms, 400 segments, `reno`); `make agreement` measures the kernel again.

use crate::pair::{Pair, Script, config};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_control::Phase;
use weir_endpoint::Flags;

const RTT: Span = Span::from_millis(20);
const MSS: u64 = 1448;

fn path(controller: &str, forth: Script) -> Pair {
    Pair::new(config(controller), RTT, Some(Rate::from_mbit_per_sec(10)), forth, Script::default())
}

fn dropping(numbers: impl IntoIterator<Item = u64>) -> Script {
    Script { drop: numbers.into_iter().collect(), data_only: true, ..Script::default() }
}

#[test]
fn a_clean_path_has_no_retransmissions() {
    for controller in ["newreno", "cubic"] {
        let mut pair = path(controller, Script::default());
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!(pair.read, 400 * MSS);
        assert_eq!((info.retransmitted, info.timeouts, info.undos), (0, 0, 0));
        assert!(pair.finished_at.is_some());
    }
}

#[test]
fn a_sender_whose_window_is_full_has_nothing_to_send() {
    let mut pair = path("newreno", Script::default());
    pair.write(400 * MSS);
    let mut full = 0;
    while pair.step(Time::ZERO + Span::from_secs(20)) {
        if pair.client.is_open() && pair.info().in_flight >= pair.info().cwnd {
            assert!(pair.client.is_quiet(), "at {:?}", pair.now);
            full += 1;
        }
    }
    assert_eq!(pair.read, 400 * MSS);
    assert!(full > 100, "it was full {full} times");
}

#[test]
fn a_single_loss_costs_one_retransmission_and_halves_the_window() {
    let mut pair = path("newreno", dropping([60]));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries, info.undos), (1, 0, 1, 0));
}

/// As captured from Linux 6.18: the acknowledgement of a filled gap leaves before the application reads what waited behind it, and one
/// more tells the window once it is read, if that doubles it.
#[test]
fn a_filled_gap_is_acknowledged_with_a_small_window_and_the_read_tells_the_whole() {
    let buffer = Bytes::new(32 << 10);
    let config = weir_tcp::Config { receive_buffer: (buffer, buffer), ..config("newreno") };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config, RTT, rate, dropping([20]), Script::default());
    pair.transfer(60 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 60 * MSS);
    let acks: Vec<(u32, u32)> =
        pair.back.log.iter().map(|(_, segment, _)| (segment.ack, segment.window)).collect();
    let filled = (1..acks.len()).find(|&at| acks[at].0 - acks[at - 1].0 > 4 * MSS as u32).unwrap();
    let waited = acks[filled].0 - acks[filled - 1].0;
    let (before, told, after) = (acks[filled - 1].1, acks[filled], acks[filled + 1]);
    // What waits takes its share of the buffer, of which some 20 kB are payload; windows are in units of 128 bytes.
    assert!(
        told.1 <= (20_600 - waited).next_multiple_of(128) && told.1 < before,
        "{told:?} after {waited} bytes"
    );
    assert_eq!(after.0, told.0, "no data came between");
    assert!(after.1 >= 2 * told.1 && after.1 % 128 == 0, "{after:?}");
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

#[test]
fn a_lost_syn_ack_costs_a_second() {
    let lost = Script { drop: vec![0], ..Script::default() };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config("newreno"), RTT, rate, Script::default(), lost);
    let info = pair.transfer(100 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.cwnd), (1, 1, 110));
}

#[test]
fn every_second_packet_lost_costs_one_retransmission_each_and_one_reduction() {
    let mut pair = path("newreno", dropping((60..100).step_by(2)));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (20, 0, 1));
    assert_eq!((info.cwnd, info.ssthresh), (42, Some(35)));
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    // The last segment with the sequence number of segment 60 is its retransmission.
    let mut probe = path("newreno", dropping([60]));
    probe.transfer(400 * MSS, Span::from_secs(20));
    let sent = probe.data_sent();
    let lost = sent[60].1;
    let again = sent.iter().rposition(|segment| segment.1 == lost).unwrap() as u64;
    let mut pair = path("newreno", dropping([60, again]));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!(pair.read, 400 * MSS);
    assert_eq!((info.retransmitted, info.timeouts, info.undos), (2, 0, 0));
}

#[test]
fn lost_acknowledgements_cause_no_retransmission() {
    let lost = Script { drop: (20..60).step_by(2).collect(), ..Script::default() };
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config("newreno"), RTT, rate, Script::default(), lost);
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (0, 0, 0));
}

#[test]
fn a_recovery_caused_by_reordering_is_undone_and_raises_the_reordering_degree() {
    for (late, reordering) in [(3_700, 4), (37_000, 31)] {
        let late = vec![(60, Span::from_micros(late))];
        let mut pair = path("newreno", Script { late, data_only: true, ..Script::default() });
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!((info.retransmitted, info.timeouts, info.undos), (1, 0, 1));
        assert_eq!(info.reordering, reordering);
        assert_eq!(pair.read, 400 * MSS);
    }
}

#[test]
fn later_reordering_of_the_same_degree_causes_no_retransmission() {
    let late = [60, 100, 140, 180, 220].map(|n| (n, Span::from_micros(3_700))).to_vec();
    let mut pair = path("newreno", Script { late, data_only: true, ..Script::default() });
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.recoveries, info.undos), (1, 1, 1));
}

#[test]
fn a_delay_spike_makes_one_spurious_timeout_that_is_undone() {
    let stall = Some((60, Span::from_millis(600)));
    let mut pair = path("newreno", Script { stall, data_only: true, ..Script::default() });
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.probes, info.undos), (1, 1, 1, 1));
    assert!(info.cwnd > 400, "{}", info.cwnd);
}

#[test]
fn a_tail_lost_with_its_probe_costs_one_timeout() {
    let mut pair = path("newreno", dropping(395..401));
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.probes), (6, 1, 1));
    assert_eq!(info.phase, Phase::Open);
}

#[test]
fn marks_of_one_round_trip_reduce_the_window_once_and_are_echoed_until_cwr() {
    let mut ecn = config("newreno");
    ecn.ecn = true;
    let marked = Script { mark: vec![60, 61, 62], data_only: true, ..Script::default() };
    let mut pair = Pair::new(ecn, RTT, Some(Rate::from_mbit_per_sec(10)), marked, Script::default());
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.retransmitted, info.timeouts, info.recoveries), (0, 0, 0));
    assert_eq!(info.ssthresh, Some(35));
    let told = pair.forth.log.iter().filter(|(_, segment, _)| segment.flags.has(Flags::CWR)).count();
    assert_eq!(told, 2, "the SYN and one segment");
    let echo = pair.back.log.iter().filter(|(_, segment, _)| segment.flags.has(Flags::ECE)).count();
    assert!((5..80).contains(&echo), "{echo}");
    assert!(!pair.back.log.last().unwrap().1.flags.has(Flags::ECE));
    assert!(pair.forth.log.iter().all(|(_, segment, ecn)| (segment.len > 0) == (*ecn == Ecn::Ect0)));
}

#[test]
fn an_idle_period_reduces_the_window_to_the_initial_window() {
    let mut pair = path("newreno", Script::default());
    pair.write(200 * MSS);
    pair.run_until(Time::ZERO + Span::from_secs(10));
    assert!(pair.info().cwnd > 100);
    pair.write(2 * MSS);
    pair.run_until(Time::ZERO + Span::from_secs(11));
    assert!((10..=12).contains(&pair.info().cwnd), "{}", pair.info().cwnd);
    assert_eq!(pair.info().retransmitted, 0);
}

#[test]
fn two_runs_of_one_script_are_the_same() {
    let run = || {
        let mut pair = path("cubic", dropping((10..300).step_by(7)));
        pair.transfer(400 * MSS, Span::from_secs(20));
        (pair.data_sent(), pair.finished_at)
    };
    assert_eq!(run(), run());
}
