//! BBR against values computed by hand from the kernel's integers, and on an ideal path.

use super::*;
use crate::testing::{Link, MSS, Path, ack, ack_with_rtt, loss, ms, start, state_of, timeout};

/// One segment each millisecond: 8 Mbit/s.
const SLOW: u64 = (1 << RATE_SHIFT) / 1_000;

fn bbr() -> Bbr {
    Bbr::new(&Config {}, &start())
}
/// A connection with a complete model: 100 ms and a segment each millisecond, a BDP of 100 segments.
fn settled() -> Bbr {
    let mut bbr = bbr();
    bbr.rate.update(Span::from_nanos(RATE_ROUNDS), Time::ZERO, SLOW + 1);
    bbr.min_rtt = Some(100_000);
    bbr.full.reached = true;
    bbr.drawn = Some(0);
    bbr.begin_cycling();
    bbr.update_gains();
    bbr
}
/// An acknowledgement with a rate sample of `delivered` segments in `millis` milliseconds, of data sent when `prior` segments had
/// been delivered.
fn sampled(now: u64, delivered: u32, millis: u64, prior: u64) -> Ack {
    let interval = Span::from_millis(millis);
    let rate = RateSample { delivered, interval, prior_delivered: prior, losses: 0, app_limited: false };
    Ack { rate: Some(rate), delivered: prior + u64::from(delivered), ..ack(ms(now), 1) }
}

#[test]
fn gains_are_the_integers_of_the_kernel() {
    // 256 * 2885 / 1000 = 738.56; 256000 / 2885 = 88.7.
    assert_eq!((HIGH_GAIN, DRAIN_GAIN, WINDOW_GAIN), (739, 88, 512));
    assert_eq!(CYCLE, [320, 192, 256, 256, 256, 256, 256, 256]);
}

#[test]
fn the_pacing_rate_is_one_percent_below_the_bandwidth() {
    // One segment of 1000 bytes each millisecond is a million bytes each second; 2^24 / 1000 is rounded down.
    assert_eq!(pacing_rate(SLOW, 1000, ONE), 989_987);
    assert_eq!(pacing_rate(SLOW, 1000, 2 * ONE), 1_979_974);
}

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip_times_the_high_gain() {
    // 10 segments each 1 ms, the nominal RTT: 10 MB/s * 739 / 256 * 0.99.
    let rate = bbr().pacing_rate;
    assert!((28_570_000..28_580_000).contains(&rate), "{rate}");
    // With an RTT of 40 ms from the handshake, a fortieth of that.
    let known = Bbr::new(&Config {}, &Start { rtt: Some(Span::from_millis(40)), ..start() });
    assert!((714_000..715_000).contains(&known.pacing_rate), "{}", known.pacing_rate);
    assert_eq!(known.min_rtt, Some(40_000));
}

#[test]
fn the_first_rtt_sample_corrects_the_first_rate_but_a_lower_rate_later_does_not() {
    let (mut bbr, mut random) = (bbr(), Random::stream(1, "bbr"));
    bbr.on_ack(&ack_with_rtt(ms(40), 1, Span::from_millis(40)), &mut random);
    let corrected = bbr.pacing_rate;
    assert!((714_000..715_000).contains(&corrected), "{corrected}");
    bbr.on_ack(&sampled(80, 1, 40, 1), &mut random);
    assert_eq!(bbr.pacing_rate, corrected);
}

#[test]
fn the_target_window_is_the_bdp_rounded_up_plus_room_for_trains() {
    let mut bbr = settled();
    // 100.0 segments, and a fraction more from SLOW + 1.
    assert_eq!(bbr.bdp(SLOW + 1, ONE), 101);
    assert_eq!(bbr.bdp(SLOW + 1, 2 * ONE), 201);
    // Plus three trains of two segments, rounded up to an even number; two more in the probing phase.
    bbr.train = 2;
    bbr.cycle_phase = 1;
    assert_eq!((bbr.with_trains(100), bbr.with_trains(101)), (106, 108));
    bbr.cycle_phase = 0;
    assert_eq!(bbr.with_trains(100), 108);
    bbr.min_rtt = None;
    assert_eq!(bbr.bdp(SLOW, ONE), 10);
}

#[test]
fn trains_hold_a_1024th_of_a_second_and_single_segments_below_1200_kbit_per_second() {
    let mut bbr = bbr();
    for (rate, least, train) in
        [(149_999, 1, 1), (150_000, 2, 2), (10_240_000, 2, 10), (1_000_000_000, 2, 65), (u64::MAX, 2, 65)]
    {
        bbr.pace(rate);
        assert_eq!((bbr.least_train(), bbr.train), (least, train), "{rate} bytes/s");
        assert_eq!(bbr.send_quantum(), Some(Bytes::new(u64::from(least) * MSS.get())));
    }
}

#[test]
fn the_path_is_full_after_three_rounds_without_growth_by_a_quarter() {
    let mut bbr = bbr();
    let mut round = |rate: u64| {
        bbr.rounds += 1;
        bbr.round_start = true;
        bbr.rate.update(Span::from_nanos(RATE_ROUNDS), Time::from_nanos(bbr.rounds), rate);
        bbr.check_full(false);
        (bbr.full.rounds, bbr.full.reached)
    };
    assert_eq!(round(1000), (0, false));
    assert_eq!(round(1250), (0, false));
    // A quarter of 1250 more would be 1562.
    assert_eq!(round(1561), (1, false));
    assert_eq!(round(1562), (0, false));
    assert_eq!([round(1600), round(1700), round(1800)], [(1, false), (2, false), (3, true)]);
}

#[test]
fn a_rate_sample_counts_for_ten_rounds_and_a_lower_application_limited_one_not_at_all() {
    let (mut bbr, mut random) = (bbr(), Random::stream(1, "bbr"));
    bbr.on_ack(&sampled(100, 100, 100, 1), &mut random);
    assert_eq!(bbr.largest_rate(), SLOW);
    // Each of these ends a round: its data was sent after the last one had ended.
    for round in 1..=10 {
        bbr.on_ack(&sampled(100 + round * 100, 50, 100, 1 + round * 1000), &mut random);
        assert_eq!(bbr.largest_rate(), SLOW, "round {round}");
    }
    bbr.on_ack(&sampled(1200, 50, 100, 20_000), &mut random);
    assert_eq!(bbr.largest_rate(), (50 << RATE_SHIFT) / 100_000);
    let limited = |mut ack: Ack| {
        ack.rate = ack.rate.map(|rate| RateSample { app_limited: true, ..rate });
        ack
    };
    bbr.on_ack(&limited(sampled(1300, 40, 100, 20_010)), &mut random);
    assert_eq!(bbr.largest_rate(), (50 << RATE_SHIFT) / 100_000);
    // A faster sample counts although the application limited it.
    bbr.on_ack(&limited(sampled(1400, 60, 100, 20_020)), &mut random);
    assert_eq!(bbr.largest_rate(), (60 << RATE_SHIFT) / 100_000);
}

#[test]
fn a_cycle_begins_anywhere_but_in_its_draining_phase() {
    for (drawn, phase) in [(0, 0), (1, 7), (5, 3), (6, 2)] {
        let mut bbr = bbr();
        bbr.drawn = Some(drawn);
        bbr.begin_cycling();
        assert_eq!(bbr.cycle_phase, phase);
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let (mut bbr, mut random) = (settled(), Random::stream(1, "bbr"));
    bbr.cwnd = 200;
    bbr.next_round = 1_000_000;
    bbr.on_enter_recovery(&loss(ms(0)));
    let in_flight = Bytes::new(50 * MSS.get());
    let recovery = Ack { phase: Phase::Recovery, in_flight, lost_segments: 3, ..ack(ms(1), 2) };
    bbr.on_ack(&recovery, &mut random);
    assert_eq!((bbr.cwnd, bbr.prior_cwnd), (52, 200));
    // The window is the flight plus the delivered segments, or the old window if that is larger.
    bbr.on_ack(
        &Ack { in_flight: Bytes::new(60 * MSS.get()), lost_segments: 0, ..recovery.clone() },
        &mut random,
    );
    assert_eq!(bbr.cwnd, 62);
    // In the next round the window grows by the delivered segments and shrinks by the lost ones.
    bbr.packet_conservation = false;
    bbr.on_ack(&Ack { lost_segments: 4, ..recovery.clone() }, &mut random);
    assert_eq!(bbr.cwnd, 62 - 4 + 2);
    bbr.on_ack(&ack(ms(5), 1), &mut random);
    assert!(bbr.cwnd >= 200, "{}", bbr.cwnd);
}

#[test]
fn a_timeout_reduces_the_window_to_the_flight_plus_one_segment() {
    let mut bbr = settled();
    bbr.cwnd = 200;
    bbr.on_timeout(&Timeout { in_flight: Bytes::new(3 * MSS.get()), ..timeout(ms(0)) });
    assert_eq!((bbr.cwnd, bbr.prior_cwnd, bbr.full.rate), (4, 200, 0));
}

#[test]
fn probe_rtt_begins_after_ten_seconds_and_holds_four_segments_for_200_ms_and_a_round() {
    let (mut bbr, mut random) = (settled(), Random::stream(1, "bbr"));
    bbr.cwnd = 200;
    bbr.next_round = 1_000_000;
    let late = |now: u64, in_flight: u64| {
        let sample = sampled(now, 100, 100, 1);
        Ack { in_flight: Bytes::new(in_flight * MSS.get()), ..sample }
    };
    let equal = ack_with_rtt(ms(5_000), 1, Span::from_millis(100));
    bbr.on_ack(&Ack { in_flight: Bytes::new(100 * MSS.get()), ..equal }, &mut random);
    assert_eq!(bbr.min_rtt_at, 0, "an RTT that equals the smallest does not renew it");
    bbr.on_ack(&late(10_000, 100), &mut random);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    bbr.on_ack(&late(10_004, 100), &mut random);
    assert_eq!((bbr.mode, bbr.cwnd, bbr.holds_back()), (Mode::ProbeRtt, 4, true));
    assert_eq!(bbr.probe_rtt_end, None);
    // The 200 ms count from the time at which at most four segments are in flight.
    bbr.on_ack(&late(10_100, 4), &mut random);
    assert_eq!(bbr.probe_rtt_end, Some(10_100 / 4 + 50));
    bbr.on_ack(&late(10_304, 4), &mut random);
    assert_eq!(bbr.mode, Mode::ProbeRtt, "no round has passed");
    let round = Ack { delivered: 1_000, ..late(10_308, 4) };
    let round = Ack { rate: round.rate.map(|r| RateSample { prior_delivered: 900, ..r }), ..round };
    bbr.on_ack(&round, &mut random);
    assert_eq!((bbr.mode, bbr.min_rtt_at), (Mode::ProbeBw, 10_308 / 4));
    assert!(bbr.cwnd >= 200);
}

#[test]
fn sending_resumes_at_the_estimated_rate_after_idleness() {
    let mut bbr = settled();
    bbr.pacing_gain = CYCLE[0];
    bbr.on_restart(&Restart::Transmit { now: ms(5_000), idle: Span::from_secs(1), app_limited: true });
    // Sending resumes at the model's rate, whatever the phase.
    assert_eq!(bbr.pacing_rate, pacing_rate(SLOW + 1, MSS.get(), ONE));
    assert!(bbr.idle_restart);
}

/// 20 Mbit/s and 40 ms: 100 segments, 0.4 ms each.
fn link(buffer: u32) -> Link {
    Link { rate: Rate::from_mbit_per_sec(20), rtt: Span::from_millis(40), buffer, mark: None }
}

#[test]
fn bbr_finds_the_rate_and_the_rtt_of_a_clean_path_and_keeps_two_bdp_in_flight() {
    let mut path = Path::new("bbr", link(1000));
    path.trace(Span::from_secs(2), 1);
    let state = |path: &Path, name| state_of(path.controller.as_ref(), name).unwrap();
    let rate = state(&path, "bandwidth_mbps");
    assert!((19.9..20.2).contains(&rate), "{rate} Mbit/s");
    // One segment is always being sent.
    assert!((40.0..40.9).contains(&state(&path, "rtt_min_ms")));
    let before = path.delivered;
    let windows = path.trace(Span::from_millis(10), 700);
    // Two BDP of 40.4 ms are 202 segments; three trains of two and the probing phase add eight, aggregation adds a few.
    assert!(windows.iter().all(|&window| (200..=216).contains(&window)), "{windows:?}");
    assert!(path.delivered - before >= 17_300, "{}", path.delivered - before);
    assert_eq!(path.drops, 0);
}

#[test]
fn probe_rtt_recurs_every_ten_seconds() {
    let mut path = Path::new("bbr", link(1000));
    let windows = path.trace(Span::from_millis(10), 2_600);
    let dips: Vec<usize> = (1..windows.len()).filter(|&i| windows[i] == 4 && windows[i - 1] != 4).collect();
    assert!(!dips.is_empty() && dips.len() <= 2, "{dips:?}");
    for dip in dips {
        let length = windows[dip..].iter().take_while(|&&window| window == 4).count();
        assert!((20..=30).contains(&length), "{length} times 10 ms");
    }
}

#[test]
fn losses_of_a_shallow_buffer_do_not_slow_bbr_down() {
    let mut path = Path::new("bbr", link(10));
    path.trace(Span::from_secs(5), 1);
    let before = path.delivered;
    path.trace(Span::from_secs(4), 1);
    assert!(path.delivered - before > 9_000, "{}", path.delivered - before);
    assert!(path.drops > 0);
}
