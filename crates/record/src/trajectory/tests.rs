//! Made-up trajectories whose differences can be worked out by hand.

use super::packets::{Packet, PacketParting, Packets, Segment, Sent, compare};
use super::*;
use crate::types::{FlowEvent, Recorder, StateSample};
use crate::{FlowInfo, GroupInfo};
use weir_base::Rate;

/// A run of one flow that starts after these milliseconds, sampled every 100 ms, with a window in each sample.
fn run(start_ms: u64, windows: &[f64], change: impl Fn(usize, &mut TransportSample)) -> Trajectory {
    let info = RunInfo {
        sample: Span::from_millis(100),
        groups: vec![GroupInfo::default()],
        flows: vec![FlowInfo::default()],
        ..RunInfo::default()
    };
    let mut records = Records::default();
    let start = Time::ZERO + Span::from_millis(start_ms);
    records.event(&FlowEvent { at: start, flow: 0, kind: FlowEventKind::Started });
    for (place, window) in windows.iter().enumerate() {
        let at = Time::from_nanos((start_ms / 100 + 1 + place as u64) * 100_000_000);
        let mut sample = TransportSample {
            at,
            cwnd: *window,
            srtt: Span::from_millis(20),
            pacing_rate: Some(Rate::from_mbit_per_sec(10)),
            ..TransportSample::default()
        };
        change(place, &mut sample);
        records.transport(&sample);
        let of = Component::Controller(0);
        records.state(&StateSample { at, of, name: "w_max_segments", value: *window });
        records.state(&StateSample { at, of, name: "never", value: 0.0 });
    }
    Trajectory::of(&info, &records, 0).unwrap()
}

fn line<'a>(held: &'a Held, name: &str) -> &'a HeldLine {
    held.lines.iter().find(|line| *line.name == *name).unwrap()
}

#[test]
fn two_equal_trajectories_have_no_difference_and_never_part() {
    let one = run(0, &[10.0, 20.0, 40.0], |_, _| {});
    let held = Held::new(&one, &one);
    assert_eq!(held.first(), None);
    // The first point is the flow's start, before the first sample.
    assert_eq!(line(&held, "cwnd_segments").difference(), [None, Some(0.0), Some(0.0), Some(0.0)]);
    // Neither run has a threshold or a delivery rate, and one state was always zero.
    let names: Vec<&str> = held.lines.iter().map(|line| &*line.name).collect();
    assert_eq!(
        names,
        ["cwnd_segments", "in_flight_segments", "srtt_ms", "pacing_rate_mbps", "w_max_segments"]
    );
}

#[test]
fn a_quantity_parts_at_the_first_of_three_samples_beyond_its_bound() {
    let reference = run(0, &[10.0, 20.0, 40.0, 40.0, 40.0, 40.0, 40.0], |_, _| {});
    // 2 segments at 10 and 4 at 40 are within the bound; 5 at 40 are not, but once is not thrice.
    let other = run(0, &[12.0, 22.0, 45.0, 44.0, 45.0, 35.0, 45.0], |_, _| {});
    let held = Held::new(&reference, &other);
    let (window, parting) = held.first().unwrap();
    assert_eq!(&*window.name, "cwnd_segments");
    // The sample at 500 ms is the fifth; the flow starts at 0.
    assert_eq!(parting.values, [Some(40.0), Some(45.0)]);
    assert!((parting.after_s - 0.5).abs() < 1e-9, "{parting:?}");
    assert_eq!(window.difference()[1..4], [Some(-2.0), Some(-2.0), Some(-5.0)]);
    // The state has no bound in its unit: 12 differs from 10 by more than a tenth, 22 from 20 does not.
    assert!((line(&held, "w_max_segments").parts.unwrap().after_s - 0.5).abs() < 1e-9);
}

#[test]
fn leaving_slow_start_in_one_run_only_is_a_difference() {
    let left = |from: usize| {
        move |place: usize, sample: &mut TransportSample| sample.ssthresh = (place >= from).then_some(20.0)
    };
    let reference = run(0, &[10.0; 8], left(5));
    let held = Held::new(&reference, &run(0, &[10.0; 8], left(2)));
    let parting = held.first().unwrap().1;
    assert_eq!(parting.values, [None, Some(20.0)]);
    assert!((parting.after_s - 0.3).abs() < 1e-9, "{parting:?}");
    // A run that ends early is no difference.
    let held = Held::new(&reference, &run(0, &[10.0; 4], left(5)));
    assert_eq!(held.first(), None);
}

#[test]
fn samples_are_read_at_equal_times_since_the_start() {
    // Both windows grow by 10 segments in 100 ms. The flow starts at 0 in one run and at 50 ms in the other, whose samples are therefore
    // from 50, 150 and 250 ms after the start; at 100 and 200 ms it is between them.
    let reference = run(0, &[20.0, 30.0], |_, _| {});
    let mut stepped = run(50, &[15.0, 25.0, 35.0], |_, _| {});
    let held = Held::new(&reference, &stepped);
    let window = line(&held, "cwnd_segments");
    assert_eq!(window.values[1], [None, Some(20.0), Some(30.0)]);
    assert_eq!(window.difference(), [None, Some(0.0), Some(0.0)]);
    // A plain number keeps the value of the sample before: a mode is not between two modes.
    stepped.states[0].0 = "mode".into();
    let mut modes = reference.clone();
    modes.states[0].0 = "mode".into();
    assert_eq!(line(&Held::new(&modes, &stepped), "mode").values[1], [None, Some(15.0), Some(25.0)]);
}

#[test]
fn nothing_is_read_across_a_gap() {
    let mut one = run(0, &[10.0; 9], |_, _| {});
    one.quantities[0].drain(2..6);
    let held = Held::new(&one, &one);
    let there: Vec<bool> = line(&held, "cwnd_segments").values[0].iter().map(Option::is_some).collect();
    assert_eq!(there, [false, true, true, false, false, false, false, true, true, true]);
}

#[test]
fn fewer_points_are_means() {
    let reference = run(0, &[10.0, 20.0, 30.0, 40.0, 50.0], |_, _| {});
    let held = Held::new(&reference, &run(0, &[10.0, 20.0, 30.0, 20.0, 30.0], |_, _| {}));
    let thin = held.thinned(3);
    assert_eq!((thin.period, thin.lines[0].values[0].len()), (Span::from_millis(200), 3));
    // Periods 0 and 1 (only the second has a sample), 2 and 3, 4 and 5.
    assert_eq!(
        thin.lines[0].values,
        [vec![Some(10.0), Some(25.0), Some(45.0)], vec![Some(10.0), Some(25.0), Some(25.0)]]
    );
    assert!((thin.first_s - 0.05).abs() < 1e-9);
    assert_eq!(thin.lines[0].parts, held.lines[0].parts);
}

#[test]
fn runs_with_other_sample_periods_are_read_at_the_longer_one() {
    let one = run(0, &[10.0, 20.0], |_, _| {});
    let other = Trajectory { period: Span::from_millis(200), ..one.clone() };
    let held = Held::new(&one, &other);
    assert_eq!((held.period, line(&held, "cwnd_segments").values[0].len()), (Span::from_millis(200), 2));
}

/// A data packet of 1000 bytes at this millisecond, after an initial sequence number.
fn segment(initial: u32, ms: u64, sequence: u32) -> Segment {
    let at = Time::from_nanos(ms * 1_000_000);
    Segment { at, sequence: initial.wrapping_add(1 + sequence), payload: 1000, ..Segment::default() }
}

fn syn(initial: u32) -> Segment {
    Segment { sequence: initial, syn: true, ..Segment::default() }
}

const NONE: [Time; 2] = [Time::ZERO; 2];

#[test]
fn data_packets_are_compared_by_relative_numbers_across_the_wrap() {
    let initial = u32::MAX - 1500;
    let same = |count| Some(Packets::Same { count, acknowledgements: false });
    let one = [syn(7), segment(7, 1, 0), segment(7, 2, 1000), segment(7, 3, 2000)];
    let other = [syn(initial), segment(initial, 5, 0), segment(initial, 6, 1000), segment(initial, 7, 2000)];
    assert_eq!(compare([&one, &other], NONE), same(3));
    assert_eq!(compare([&one, &other[..2]], NONE), same(1));
    assert_eq!(compare([&[], &[]], NONE), None);
}

#[test]
fn a_retransmission_in_one_run_only_is_the_first_difference() {
    let one = [syn(0), segment(0, 1, 0), segment(0, 2, 1000), segment(0, 3, 2000), segment(0, 4, 0)];
    let other = [syn(0), segment(0, 11, 0), segment(0, 12, 1000), segment(0, 13, 3000)];
    let starts = [Time::ZERO, Time::from_nanos(10_000_000)];
    let data = |from, again, skipped| Packet::Data { from, to: from + 1000, again, skipped };
    let parting = PacketParting {
        place: 3,
        sides: [
            Sent { after_s: 0.003, packet: data(2000, false, 0) },
            Sent { after_s: 0.003, packet: data(3000, false, 1000) },
        ],
    };
    assert_eq!(compare([&one, &other], starts), Some(Packets::Differ(parting)));
    let new = [syn(0), segment(0, 1, 0), segment(0, 2, 1000), segment(0, 3, 2000), segment(0, 5, 3000)];
    let Some(Packets::Differ(parting)) = compare([&one, &new], NONE) else { panic!("the fourth differs") };
    assert_eq!(parting.place, 4);
    assert_eq!(parting.sides.map(|side| side.packet), [data(0, true, 0), data(3000, false, 0)]);
}

#[test]
fn acknowledgements_are_compared_by_number_and_sack_blocks() {
    let ack = |initial: u32, ms: u64, number: u32, sack: &[(u32, u32)]| Segment {
        at: Time::from_nanos(ms * 1_000_000),
        acknowledgement: Some(initial + 1 + number),
        sack: sack.iter().map(|&(from, to)| (initial + 1 + from, initial + 1 + to)).collect(),
        ..Segment::default()
    };
    let answer = |initial: u32| Segment { syn: true, ..ack(initial, 0, 0, &[]) };
    let one = [answer(5), ack(5, 1, 2000, &[]), ack(5, 2, 2000, &[(3000, 4000)])];
    let same = [answer(900), ack(900, 3, 2000, &[]), ack(900, 4, 2000, &[(3000, 4000)])];
    assert_eq!(compare([&one, &same], NONE), Some(Packets::Same { count: 2, acknowledgements: true }));
    let other = [answer(900), ack(900, 3, 2000, &[]), ack(900, 4, 2000, &[(3000, 5000)])];
    let Some(Packets::Differ(parting)) = compare([&one, &other], NONE) else { panic!("the blocks differ") };
    assert_eq!(parting.place, 2);
    let block = |to| Packet::Acknowledgement { number: 2000, sack: vec![(3000, to)] };
    assert_eq!(parting.sides.map(|side| side.packet), [block(4000), block(5000)]);
}
