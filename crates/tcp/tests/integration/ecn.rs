//! The receiver's reports of marks and the sender's reaction: the marked packets are fixed, and so is every ECE. The path has
//! 10 Mbit/s and an RTT of 20 ms, so that a segment arrives every 1.2 ms, and every second one is acknowledged.

use crate::pair::{Pair, Script, config};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_control::{Codepoint, Feedback};
use weir_endpoint::Flags;
use weir_tcp::Config;

const MSS: u64 = 1448;

fn dctcp() -> Config {
    // Single segments and a buffer that does not grow: nothing else causes an early acknowledgement.
    let buffer = Bytes::new(131_072);
    Config { ecn: true, feedback: Feedback::Dctcp, receive_buffer: (buffer, buffer), ..config("newreno") }
}

fn accurate() -> Config {
    Config { feedback: Feedback::Accurate, codepoint: Codepoint::Ect1, ..dctcp() }
}

fn path(config: Config, mark: impl IntoIterator<Item = u64>) -> Pair {
    path_back(config, mark, Script::default())
}

/// The same path, with a script for the acknowledgements.
fn path_back(config: Config, mark: impl IntoIterator<Item = u64>, back: Script) -> Pair {
    let forth = Script { mark: mark.into_iter().collect(), data_only: true, ..Script::default() };
    let rate = Some(Rate::from_mbit_per_sec(10));
    Pair::new(config, Span::from_millis(20), rate, forth, back)
}

/// For each pure acknowledgement, the segment expected next, counted from 0, and whether it carries ECE.
fn echoes(pair: &Pair) -> Vec<(u64, bool)> {
    let acks = pair.back.log.iter().filter(|(_, segment, _)| !segment.flags.has(Flags::SYN));
    let origin = pair.forth.log[0].1.seq.wrapping_add(1);
    acks.map(|(_, segment, _)| {
        (u64::from(segment.ack.wrapping_sub(origin)) / MSS, segment.flags.has(Flags::ECE))
    })
    .collect()
}

/// The data segments reported as marked by ECE, as DCTCP's sender counts them: all that an acknowledgement with ECE covers.
fn told_of(pair: &Pair) -> Vec<u64> {
    let mut told = Vec::new();
    let mut before = 0;
    for (next, ece) in echoes(pair) {
        if ece {
            told.extend(before..next);
        }
        before = before.max(next);
    }
    told
}

#[test]
fn ece_of_dctcp_reports_exactly_the_marked_segments() {
    for marked in [
        vec![60],
        vec![61],
        vec![60, 61, 62],
        vec![61, 63, 65],
        vec![0, 1, 2],
        (20..300).step_by(3).collect(),
    ] {
        let mut pair = path(dctcp(), marked.clone());
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!(pair.read, 400 * MSS);
        assert_eq!(info.retransmitted, 0);
        assert_eq!(told_of(&pair), marked);
        assert_eq!(info.delivered_ce, marked.len() as u64);
    }
}

#[test]
fn a_change_of_marking_sends_the_delayed_acknowledgement_first() {
    let mut pair = path(dctcp(), [102, 103, 104]);
    pair.transfer(400 * MSS, Span::from_secs(20));
    let around: Vec<_> = echoes(&pair).into_iter().filter(|(next, _)| (101..=109).contains(next)).collect();
    // Segment 101 waits for a second one, but 102 is marked: both are acknowledged at once, separately. 103 then waits for 104,
    // and 105 is acknowledged at once since it ends the marks.
    assert_eq!(around, [(101, false), (102, false), (103, true), (105, true), (106, false), (108, false)]);
}

#[test]
fn ece_of_dctcp_ends_without_cwr() {
    // A single marked segment, and none after it that could carry CWR; a later segment is not marked.
    let mut pair = path(dctcp(), [0]);
    pair.write(MSS);
    pair.run_until(Time::ZERO + Span::from_secs(1));
    pair.write(MSS);
    pair.run_until(Time::ZERO + Span::from_secs(2));
    assert_eq!(echoes(&pair), [(1, true), (2, false)]);
}

#[test]
fn all_packets_of_dctcp_are_ecn_capable_where_ecn_is_negotiated() {
    let mut pair = path(dctcp(), [40]);
    pair.transfer(100 * MSS, Span::from_secs(20));
    for (_, segment, ecn) in pair.forth.log.iter().chain(&pair.back.log) {
        assert_eq!(*ecn, Ecn::Ect0, "{segment:?}");
    }
    let mut pair = path(Config { ecn: false, ..dctcp() }, [40]);
    pair.transfer(100 * MSS, Span::from_secs(20));
    assert!(pair.forth.log.iter().chain(&pair.back.log).all(|(_, _, ecn)| *ecn == Ecn::NotEct));
}

#[test]
fn data_carries_the_configured_codepoint() {
    for (codepoint, expected) in
        [(Codepoint::Ect1, Ecn::Ect1), (Codepoint::Ect0, Ecn::Ect0), (Codepoint::Off, Ecn::NotEct)]
    {
        let mut pair = path(Config { ecn: true, codepoint, ..config("newreno") }, []);
        pair.transfer(20 * MSS, Span::from_secs(20));
        for (_, segment, ecn) in &pair.forth.log {
            assert_eq!(*ecn, if segment.len > 0 { expected } else { Ecn::NotEct });
        }
    }
}

/// AE, CWR and ECE as one number.
fn ace(flags: Flags) -> u16 {
    (flags.bits() >> 6) & 7
}

#[test]
fn accurate_ecn_is_negotiated_as_in_rfc_9768() {
    let mut pair = path(accurate(), [2]);
    pair.transfer(4 * MSS, Span::from_secs(20));
    let forth: Vec<_> = pair.forth.log.iter().map(|(_, segment, ecn)| (ace(segment.flags), *ecn)).collect();
    // The SYN requests it; the acknowledgement reports that the SYN-ACK came without a codepoint; then the counter is 5.
    assert_eq!(forth[..3], [(0b111, Ecn::NotEct), (0b010, Ecn::Ect1), (5, Ecn::Ect1)]);
    assert!(forth[2..].iter().all(|one| *one == (5, Ecn::Ect1)));
    let back: Vec<_> = pair.back.log.iter().map(|(_, segment, _)| ace(segment.flags)).collect();
    // The SYN-ACK reports that the SYN came without a codepoint; the third segment was marked.
    assert_eq!(back, [0b010, 5, 5, 6, 6]);
    let option = |n: usize| pair.back.log[n].1.counters.to_option();
    assert_eq!(option(0), [0u8; 0]);
    // ECT(1) first: its initial 1 plus 1448 bytes; no marked bytes; the initial 1 of ECT(0).
    assert_eq!(option(1), [174, 11, 0, 5, 169, 0, 0, 0, 0, 0, 1]);
    // 2896 bytes plus the initial 1; 1448 bytes marked.
    assert_eq!(option(3), [174, 11, 0, 11, 81, 0, 5, 168, 0, 0, 1]);
    let carried =
        pair.forth.log.iter().filter(|(_, segment, _)| !segment.counters.to_option().is_empty()).count();
    assert_eq!(carried, 0, "the sender receives no data that it could count");
}

#[test]
fn accurate_ecn_falls_back_to_the_feedback_that_the_peer_supports() {
    let rate = Some(Rate::from_mbit_per_sec(10));
    let between = |client: &Config, server: &Config| {
        let mut pair = Pair::between(client.clone(), server.clone(), Span::from_millis(20), rate);
        pair.transfer(20 * MSS, Span::from_secs(20));
        let data = pair.forth.log.iter().find(|(_, segment, _)| segment.len > 0).unwrap();
        (ace(pair.forth.log[0].1.flags), ace(pair.back.log[0].1.flags), data.2)
    };
    let classic = Config { feedback: Feedback::Classic, codepoint: Codepoint::Ect0, ..accurate() };
    let without = Config { ecn: false, ..classic.clone() };
    assert_eq!(between(&accurate(), &accurate()), (0b111, 0b010, Ecn::Ect1));
    // The classic server treats AE as a reserved bit. Its echo is not enough for ECT(1).
    assert_eq!(between(&accurate(), &classic), (0b111, 0b001, Ecn::Ect0));
    assert_eq!(between(&classic, &accurate()), (0b011, 0b001, Ecn::Ect0));
    assert_eq!(between(&accurate(), &without), (0b111, 0b000, Ecn::NotEct));
    assert_eq!(between(&without, &accurate()), (0b000, 0b000, Ecn::NotEct));
}

#[test]
fn accurate_ecn_counts_every_mark_once() {
    for marked in
        [vec![], vec![60], (60..80).collect(), (0..400).collect(), (20..300).step_by(3).collect::<Vec<u64>>()]
    {
        let mut pair = path(accurate(), marked.clone());
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!((info.delivered_ce, info.retransmitted), (marked.len() as u64, 0));
    }
}

#[test]
fn accurate_ecn_counts_marks_whose_acknowledgements_were_lost() {
    // Nine of ten acknowledgements are lost, for about 20 segments: the three bits wrap twice between two of them.
    let back = Script { drop: (40..60).filter(|n| n % 10 != 0).collect(), ..Script::default() };
    let marked: Vec<u64> = (55..90).filter(|n| n % 10 != 0).collect();
    let mut pair = path_back(accurate(), marked.clone(), back);
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.delivered_ce, info.timeouts), (marked.len() as u64, 0));
    let most = pair.gaps().into_iter().max();
    assert!(most >= Some(17), "{most:?} segments between two acknowledgements that arrive");
}

#[test]
fn accurate_ecn_counts_no_mark_twice_when_acknowledgements_overtake_each_other() {
    let late = (40..200).step_by(4).map(|n| (n, Span::from_micros(5_300))).collect();
    let marked: Vec<u64> = (40..360).filter(|n| n % 3 != 0).collect();
    let mut pair = path_back(accurate(), marked.clone(), Script { late, ..Script::default() });
    let info = pair.transfer(400 * MSS, Span::from_secs(20));
    assert_eq!((info.delivered_ce, info.retransmitted), (marked.len() as u64, 0));
}

#[test]
fn a_mark_reduces_the_window_once_a_round_trip_whatever_the_feedback() {
    for feedback in [Feedback::Classic, Feedback::Dctcp, Feedback::Accurate] {
        let mut pair = path(Config { feedback, ..accurate() }, [60, 62, 64]);
        let info = pair.transfer(400 * MSS, Span::from_secs(20));
        assert_eq!(info.ssthresh, Some(35), "{feedback:?}");
        let told =
            pair.forth.log.iter().skip(1).filter(|(_, segment, _)| segment.flags.has(Flags::CWR)).count();
        // In Accurate ECN the bit is part of the counter: 5 without it, 6 and 7 with it.
        assert!(feedback == Feedback::Accurate || told == 1, "{told}");
    }
}
