use super::*;
use crate::{DeliveryName, Drop, FastStart, SealName};
use std::collections::VecDeque;
use weir_base::{Rate, Span};

const DEPTHS: u8 = 0;
const DATA: u8 = 1;
/// IPv4 and UDP headers around a packet in bytes.
const AROUND: u64 = 28;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn end(controllers: &[&str], opens: bool) -> Simulated {
    let depths = StreamParameters {
        delivery: DeliveryName::BestEffort,
        priority: 2,
        queue: Bytes::new(1),
        drop: Drop::Oldest,
        ..StreamParameters::default()
    };
    let parameters = Parameters {
        stream: depths,
        seal: SealName::Noise,
        fast_start: FastStart::Always,
        ..Parameters::default()
    };
    let controllers: Vec<weir_control::Config> = controllers.iter().map(|cc| cc.parse().unwrap()).collect();
    Simulated::new(&Ends {
        parameters: &parameters,
        streams: &[StreamParameters { delivery: DeliveryName::SemiReliable, ..StreamParameters::default() }],
        controllers: &controllers,
        mtu: Bytes::new(1500),
        seed: 1,
        number: 7,
        opens,
    })
}

/// Two ends, and in each direction a link of 10 Mbit/s and 10 ms with a buffer of 50 kB that loses each n-th packet.
struct Pair {
    ends: [Simulated; 2],
    ways: [VecDeque<(Time, Vec<u8>, u32)>; 2],
    free_at: [Time; 2],
    loses: u64,
    /// Packets by direction, and those with nothing but an acknowledgement.
    packets: [u64; 2],
    alone: [u64; 2],
    again: u64,
    /// IP bytes of the newest packet with a message of [`DATA`].
    newest: u64,
    read: [Vec<(u8, u64, Vec<u8>)>; 2],
    now: Time,
}

impl Pair {
    fn new(controllers: &[&str], loses: u64) -> Pair {
        let mut ends = [end(controllers, true), end(controllers, false)];
        ends.iter_mut().for_each(|end| end.open(Time::ZERO));
        Pair {
            ends,
            ways: Default::default(),
            free_at: [Time::ZERO; 2],
            loses,
            packets: [0; 2],
            alone: [0; 2],
            again: 0,
            newest: 0,
            read: Default::default(),
            now: Time::ZERO,
        }
    }

    fn flush(&mut self, side: usize) {
        let (rate, mut packet) = (Rate::from_mbit_per_sec(10), Datagram::default());
        while let Some(left) = self.ends[side].transmit(&mut packet, self.now) {
            let bytes = u64::from(packet.payload()) + AROUND;
            self.packets[side] += 1;
            self.alone[side] += u64::from(left.stream.is_none() && left.acknowledgement > 0);
            self.again += u64::from(left.again);
            self.newest = if left.stream == Some(DATA) { bytes } else { self.newest };
            let lost = self.loses > 0 && self.packets[side].is_multiple_of(self.loses);
            let queued = rate.bytes_in(self.free_at[side].since(self.now));
            if lost || queued > Bytes::new(50_000) {
                continue;
            }
            self.free_at[side] = self.free_at[side].max(self.now) + rate.time_to_send(Bytes::new(bytes));
            let arrival = self.free_at[side] + Span::from_millis(10);
            self.ways[side].push_back((arrival, packet.head.clone(), packet.zeros));
        }
    }

    /// Runs until a time; `feed` writes at each millisecond.
    fn run(&mut self, until: u64, mut feed: impl FnMut(&mut [Simulated; 2], Time)) {
        let (mut tick, mut at_once) = (self.now, 0);
        while self.now < at(until) {
            let arrivals = self.ways.iter().filter_map(|way| way.front()).map(|(time, ..)| *time);
            let timers = self.ends.iter().map(Simulated::next_timer);
            let next = arrivals.chain(timers).chain([tick]).min().unwrap().max(self.now);
            at_once = if next == self.now { at_once + 1 } else { 0 };
            assert!(at_once < 10_000, "time stands still at {next}");
            self.now = next;
            if self.now >= tick {
                feed(&mut self.ends, self.now);
                tick += Span::from_millis(1);
            }
            for side in 0..2 {
                while self.ways[1 - side].front().is_some_and(|(time, ..)| *time <= self.now) {
                    let (_, head, zeros) = self.ways[1 - side].pop_front().unwrap();
                    self.ends[side].receive(&head, zeros, Ecn::NotEct, self.now);
                    let read = &mut self.read[side];
                    self.ends[side].read(|stream, bytes, head| read.push((stream, bytes, head.to_vec())));
                }
                if self.ends[side].next_timer() <= self.now {
                    self.ends[side].on_timer(self.now);
                }
                self.flush(side);
            }
        }
    }

    /// Keeps 3,000 bytes of messages waiting in the streams of these ends.
    fn keep_full(&mut self, sides: &[usize], until: u64) {
        self.run(until, |ends, now| {
            for side in sides {
                while ends[*side].is_up() && ends[*side].waiting() < Bytes::new(3000) {
                    assert!(ends[*side].write(DATA, b"head", 1040, now));
                }
            }
        });
    }
}

#[test]
fn messages_arrive_whole_with_their_first_bytes_and_sealed_lengths() {
    let mut pair = Pair::new(&["cubic"], 0);
    pair.run(1000, |_, _| {});
    assert!(pair.ends[0].is_up() && pair.ends[1].is_up());
    let now = pair.now;
    assert!(pair.ends[0].write(DATA, b"a message", 1040, now));
    pair.flush(0);
    // IP 20, UDP 8, header 12, data frame 11 and tag 16.
    assert_eq!(pair.newest, 1040 + 67);
    pair.run(1100, |_, _| {});
    assert_eq!(pair.read[1], [(DATA, 1040, b"a message".to_vec())]);
}

#[test]
fn the_newest_depths_take_the_place_of_those_that_wait() {
    let mut pair = Pair::new(&["cubic"], 0);
    pair.run(1000, |_, _| {});
    let now = pair.now;
    for number in 0..5u8 {
        assert!(pair.ends[0].write(DEPTHS, &[number], 100, now));
    }
    pair.run(1100, |_, _| {});
    assert_eq!(pair.read[1], [(DEPTHS, 100, vec![4])]);
}

#[test]
fn acknowledgements_ride_on_data_where_both_ends_send() {
    let mut pair = Pair::new(&["copa"], 0);
    pair.run(1000, |_, _| {});
    let before = (pair.packets, pair.alone);
    pair.keep_full(&[0, 1], 6000);
    for side in 0..2 {
        let (packets, alone) = (pair.packets[side] - before.0[side], pair.alone[side] - before.1[side]);
        // 10 Mbit/s are 5,500 packets in five seconds. Copa takes what waits behind data in the other direction for a queue.
        let data = packets - alone;
        assert!(data > 4500 && alone * 20 < packets, "{alone} of {packets}");
    }
}

#[test]
fn both_controllers_fill_the_path_and_the_node_is_told_its_rate_delay_and_loss() {
    for controllers in [&["copa"][..], &["cubic"], &["cubic", "copa"]] {
        let mut pair = Pair::new(controllers, 0);
        pair.keep_full(&[0], 3000);
        let before = pair.read[1].len();
        pair.keep_full(&[0], 13_000);
        let rate = (pair.read[1].len() - before) as f64 * 8.0 * 1107.0 / 10.0 / 1e6;
        assert!(rate > 9.5, "{controllers:?}: {rate} Mbit/s");
        let path = pair.ends[0].path(&[DATA], pair.now);
        let capacity = path.capacity.unwrap().mbit_per_sec();
        assert!((9.0..10.3).contains(&capacity), "{controllers:?}: {capacity} Mbit/s");
        assert!(path.delay > Span::from_millis(10) && path.delay < Span::from_millis(70), "{}", path.delay);
        assert!(path.loss < 0.02);
    }
}

#[test]
fn the_rate_is_known_before_the_path_is_full_and_loss_is_told() {
    let mut pair = Pair::new(&["copa"], 20);
    pair.run(2000, |ends, now| {
        if ends[0].is_up() && ends[0].waiting() == Bytes::ZERO {
            ends[0].write(DATA, b"few", 100, now);
        }
    });
    let path = pair.ends[0].path(&[DATA], pair.now);
    let capacity = path.capacity.unwrap().mbit_per_sec();
    assert!((7.0..13.0).contains(&capacity), "{capacity} Mbit/s");
    assert!((path.loss - 0.05).abs() < 0.02, "{}", path.loss);
    assert!(pair.again > 0);
}

#[test]
fn a_controller_that_fills_buffers_gives_way_to_one_that_does_not() {
    let mut pair = Pair::new(&["cubic", "copa"], 0);
    pair.keep_full(&[0], 5000);
    let full = pair.ends[0].path(&[DATA], pair.now).delay;
    let now = pair.now;
    pair.ends[0].give_way(now);
    pair.keep_full(&[0], 12_000);
    let queued = pair.free_at[0].since(pair.now);
    assert!(full > Span::from_millis(25), "{full}");
    assert!(queued < Span::from_millis(12), "{queued}");
}
