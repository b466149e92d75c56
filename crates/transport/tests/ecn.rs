//! What a receiver tells of marks, and what the sender makes of it: which packets are marked is fixed, and so is every ECE.
//! The path has 10 Mbit/s and an RTT of 20 ms, so that a segment comes every 1.2 ms, and every second one is acknowledged.

mod pair;

use pair::{Pair, Script, config};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_control::{Codepoint, Feedback};
use weir_transport::tcp::{Config, Flags};

const MSS: u64 = 1448;

fn dctcp() -> Config {
    // Single segments and a buffer that does not grow: nothing else sends an acknowledgement before its time.
    let buffer = Bytes::new(131_072);
    Config {
        ecn: true,
        feedback: Feedback::Dctcp,
        gso_max_segs: 1,
        receive_buffer: (buffer, buffer),
        ..config("newreno")
    }
}

fn path(config: Config, mark: impl IntoIterator<Item = u64>) -> Pair {
    let forth = Script { mark: mark.into_iter().collect(), data_only: true, ..Script::default() };
    let rate = Some(Rate::from_mbit_per_sec(10));
    Pair::new(config, Span::from_millis(20), rate, forth, Script::default())
}

/// The pure acknowledgements as the segment that they expect next, counted from 0, and whether they carry ECE.
fn echoes(pair: &Pair) -> Vec<(u64, bool)> {
    let acks = pair.back.log.iter().filter(|(_, segment, _)| !segment.flags.has(Flags::SYN));
    let origin = pair.forth.log[0].1.seq.wrapping_add(1);
    acks.map(|(_, segment, _)| {
        (u64::from(segment.ack.wrapping_sub(origin)) / MSS, segment.flags.has(Flags::ECE))
    })
    .collect()
}

/// Which data segments ECE tells of, as DCTCP's sender counts them: all that an acknowledgement with ECE covers.
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
fn ece_of_dctcp_tells_of_the_marked_segments_and_of_no_other() {
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
    }
}

#[test]
fn a_change_of_marks_sends_the_acknowledgement_that_was_held_back_first() {
    let mut pair = path(dctcp(), [101, 102, 103]);
    pair.transfer(400 * MSS, Span::from_secs(20));
    let around: Vec<_> = echoes(&pair).into_iter().filter(|(next, _)| (100..=108).contains(next)).collect();
    // Segment 100 waits for a second one, but 101 is marked: both are told at once, each in its own words. 102 then waits
    // for 103, and 104 is told at once since it ends the marks.
    assert_eq!(around, [(100, false), (101, false), (102, true), (104, true), (105, false), (107, false)]);
}

#[test]
fn ece_of_dctcp_ends_without_cwr() {
    // A single segment, marked, and nothing after it that could carry CWR: the next one, later, is not marked.
    let mut pair = path(dctcp(), [0]);
    pair.write(MSS);
    pair.run_until(Time::ZERO + Span::from_secs(1));
    pair.write(MSS);
    pair.run_until(Time::ZERO + Span::from_secs(2));
    assert_eq!(echoes(&pair), [(1, true), (2, false)]);
}

#[test]
fn all_packets_of_dctcp_are_capable_where_it_is_agreed_on() {
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
fn data_carries_the_codepoint_that_was_asked_for() {
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
