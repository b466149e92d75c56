//! CP-RUDP alone, and between two aggregation points with one bottleneck: several flows of one application, what they get and how
//! they share it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod wire;

use core::net::{IpAddr, Ipv4Addr};
use proptest::prelude::*;
use std::collections::VecDeque;
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};
use weir_control::tfrc::throughput;
use weir_coord::{FiveTuple, Packet, Point, Side, Verdict};
use weir_transport::{Body, Config, Datagram, End, Endpoint, Message, Setup, Stream};
use wire::{Pipe, Wire};

const DELAY: Span = Span::from_millis(25);

fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

#[test]
fn without_aggregation_points_a_flow_keeps_its_rate() {
    let transport = r#"{ "kind": "rudp", "rate": "2 Mbit/s" }"#;
    let mut wire = Wire::new(transport, Pipe::of(DELAY), Pipe::of(DELAY), 1);
    wire.run(seconds(10), |wire| {
        wire.ends[0].write(Stream(0), Message { bytes: 1 << 20, head: &[] }, wire.now);
        false
    });
    // 1,463 bytes of data in 1,500: 2 Mbit/s are 243,833 bytes of data a second.
    let rate = wire.read[1] as f64 / 10.0;
    assert!((rate / 243_833.0 - 1.0).abs() < 0.02, "{rate}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_byte_arrives_once_whatever_the_network_does(
        loss in 0.0..0.3, doubled in 0.0..0.3, late in 0.0..0.5, seed in any::<u64>(), bytes in 1u64..300_000,
    ) {
        let pipe = Pipe { loss, doubled, late, ..Pipe::of(DELAY) };
        let transport = r#"{ "kind": "rudp", "rate": "5 Mbit/s" }"#;
        let mut wire = Wire::new(transport, pipe, pipe, seed);
        let mut left = bytes;
        wire.run(seconds(600), |wire| {
            left -= wire.ends[0].write(Stream(0), Message { bytes: left, head: &[] }, wire.now);
            if left == 0 {
                wire.ends[0].close(None, wire.now);
            }
            wire.ends[1].finished() && wire.ends[0].all_acknowledged()
        });
        prop_assert_eq!((wire.read[1], left), (bytes, 0));
        prop_assert!(wire.ends[1].finished() && wire.ends[0].all_acknowledged());
    }
}

/// Flows of application 1 between two aggregation points over a path with random loss.
struct Sites {
    now: Time,
    flows: Vec<[End; 2]>,
    read: Vec<u64>,
    points: [Point; 2],
    /// Packets under way to each side, by arrival: from which flow, and what.
    ways: [VecDeque<(Time, usize, Body)>; 2],
    loss: f64,
    random: Random,
    /// Nothing comes back to the senders from then on.
    silent: Time,
}

fn point(own: u8, more: &str) -> Point {
    let other = 3 - own;
    let text = format!(
        "[[application]]\nid = 1\nname = \"one\"\nlocal = [\"10.{own}.0.0/16\"]\nlocal_ports = 9000\n\
         remote = [\"10.{other}.0.0/16\"]\nremote_ports = 9000\n{more}"
    );
    Point::new(&weir_coord::Config::from_toml(&text).unwrap(), 1, 1).unwrap()
}

fn tuple(from: usize, flow: usize) -> FiveTuple {
    let address = |site: usize| IpAddr::V4(Ipv4Addr::new(10, site as u8 + 1, 0, flow as u8));
    FiveTuple {
        source: address(from),
        source_port: 9000,
        destination: address(1 - from),
        destination_port: 9000,
    }
}

impl Sites {
    /// So many flows with more parameters, and the plain aggregation points.
    fn new(flows: usize, parameters: &str, loss: f64) -> Sites {
        Sites::with(flows, parameters, "", loss)
    }

    /// As [`Sites::new`], with more lines in the application's table of both aggregation points.
    fn with(flows: usize, parameters: &str, more: &str, loss: f64) -> Sites {
        let config: Config =
            serde_json::from_str(&format!(r#"{{ "kind": "rudp", "application": 1 {parameters} }}"#)).unwrap();
        let ends = |flow: usize| {
            let setup = Setup {
                settings: None,
                datagrams: false,
                ecn: Ecn::NotEct,
                mtu: Bytes::new(1500),
                ip_header: 20,
                seed: 1,
                flow: flow as u64,
            };
            let mut ends = config.ends(&setup);
            ends[0].open(Time::ZERO);
            ends
        };
        Sites {
            now: Time::ZERO,
            flows: (0..flows).map(ends).collect(),
            read: vec![0; flows],
            points: [point(1, more), point(2, more)],
            ways: Default::default(),
            loss,
            random: Random::stream(1, "sites"),
            silent: Time::NEVER,
        }
    }

    /// A packet passes the aggregation point of a site; what becomes of it.
    fn pass(&mut self, site: usize, side: Side, from: usize, flow: usize, body: &mut Body) -> Verdict {
        let length = body.length() + 20;
        let payload = &mut body.datagram_mut().head;
        let packet = Packet { side, tuple: tuple(from, flow), length, payload, checksum: None };
        self.points[site].handle(packet, self.now)
    }

    fn flush(&mut self, flow: usize, end: usize) {
        let mut body = Body::Datagram(Datagram::default());
        while self.flows[flow][end].transmit(&mut body, self.now).is_some() {
            let mut sent = body.clone();
            match self.pass(end, Side::Local, end, flow, &mut sent) {
                Verdict::Forward => {
                    let lost = self.random.chance(self.loss) || (end == 1 && self.now >= self.silent);
                    if !lost {
                        self.ways[1 - end].push_back((self.now + DELAY, flow, sent));
                    }
                }
                Verdict::Return => {
                    if self.now < self.silent {
                        self.flows[flow][end].receive(&sent, Ecn::NotEct, self.now);
                    }
                }
                verdict => panic!("{verdict:?}"),
            }
        }
        let read = &mut self.read[flow];
        self.flows[flow][end].read(&mut |_, part| *read += if end == 1 { part.bytes } else { 0 });
    }

    /// Runs until `until`; every sender always has frames of so many bytes to write.
    fn run(&mut self, until: Time, frame: impl Fn(usize) -> u64) {
        while self.now < until {
            for flow in 0..self.flows.len() {
                let message = Message { bytes: frame(flow), head: &[] };
                while self.flows[flow][0].is_open()
                    && self.flows[flow][0].write(Stream(0), message, self.now) > 0
                {}
                self.flush(flow, 0);
                self.flush(flow, 1);
            }
            let arrivals = self.ways.iter().filter_map(|way| way.front().map(|packet| packet.0));
            let timers = self.flows.iter().flatten().map(|end| end.next_timer());
            let next = arrivals.chain(timers).min().unwrap_or(Time::NEVER);
            self.now = next.min(until).max(self.now);
            for end in 0..2 {
                while self.ways[end].front().is_some_and(|(at, ..)| *at <= self.now) {
                    let (_, flow, mut body) = self.ways[end].pop_front().unwrap();
                    assert_eq!(self.pass(end, Side::Path, 1 - end, flow, &mut body), Verdict::Forward);
                    self.flows[flow][end].receive(&body, Ecn::NotEct, self.now);
                }
                for flow in 0..self.flows.len() {
                    if self.flows[flow][end].next_timer() <= self.now {
                        self.flows[flow][end].on_timer(self.now);
                    }
                }
            }
        }
    }

    /// Bytes a second that each flow's receiver reads, over so many seconds.
    fn rates(&mut self, over: u64, frame: impl Fn(usize) -> u64) -> Vec<f64> {
        let before = self.read.clone();
        self.run(self.now + Span::from_secs(over), frame);
        self.read.iter().zip(before).map(|(read, before)| (read - before) as f64 / over as f64).collect()
    }
}

#[test]
fn flows_get_a_flowshare_each_however_many_they_are() {
    // At 1 % of loss and 50 ms a flowshare is what the equation says, for one flow or for twelve.
    let expected = throughput(1500.0, Span::from_millis(50), 0.01, 1.0, 4.0) * 1427.0 / 1500.0;
    for flows in [1, 4, 12] {
        let mut sites = Sites::new(flows, "", 0.01);
        sites.rates(20, |_| 1 << 20);
        let rates = sites.rates(60, |_| 1 << 20);
        let mean = rates.iter().sum::<f64>() / flows as f64;
        // 2 % of what is sent is retransmitted, and a loss event may be more than one loss.
        assert!((0.85..1.2).contains(&(mean / expected)), "{flows}: {mean} {expected}");
        assert!(rates.iter().all(|rate| (rate / mean - 1.0).abs() < 0.02), "{flows}: {rates:?}");
    }
}

#[test]
fn without_the_filter_twelve_flows_are_told_of_more_than_they_may_have() {
    // 1 % of loss and 50 ms: eleven packets of a flowshare in a round trip, but 135 of twelve, so most losses fall into the round
    // trip of another one and count for nothing (section 4.4.1).
    let expected = throughput(1500.0, Span::from_millis(50), 0.01, 1.0, 4.0) * 1427.0 / 1500.0;
    let mut naive = Sites::with(12, "", "filter = { enabled = false }", 0.01);
    naive.rates(20, |_| 1 << 20);
    let rates = naive.rates(30, |_| 1 << 20);
    let mean = rates.iter().sum::<f64>() / 12.0;
    assert!(mean > 1.5 * expected, "{mean} {expected}");
}

#[test]
fn raps_flowshare_does_not_depend_on_the_number_of_flows_either() {
    // sqrt(3 / (2 p)) packets a round trip.
    let expected = (1.5f64 / 0.005).sqrt() * 1427.0 / 0.05;
    for flows in [1, 8] {
        let mut sites = Sites::with(flows, "", "estimator = \"rap\"", 0.005);
        sites.rates(30, |_| 1 << 20);
        let rates = sites.rates(60, |_| 1 << 20);
        let mean = rates.iter().sum::<f64>() / flows as f64;
        assert!((0.75..1.25).contains(&(mean / expected)), "{flows}: {mean} {expected}");
    }
}

#[test]
fn frames_of_different_sizes_are_sent_in_the_same_time() {
    let sizes = [51_200u64, 12_800, 12_800, 25_600];
    let mut sites = Sites::new(4, r#", "scheme": "frames""#, 0.01);
    sites.rates(40, |flow| sizes[flow]);
    let rates = sites.rates(60, |flow| sizes[flow]);
    let times: Vec<f64> = rates.iter().zip(sizes).map(|(rate, size)| size as f64 / rate).collect();
    let mean = times.iter().sum::<f64>() / 4.0;
    assert!(times.iter().all(|time| (time / mean - 1.0).abs() < 0.05), "{times:?}");
}

#[test]
fn without_reports_a_flow_halves_its_rate_each_four_round_trips() {
    let mut sites = Sites::new(1, "", 0.01);
    sites.run(seconds(40), |_| 1 << 20);
    let rate = |sites: &Sites| sites.flows[0][0].sample().unwrap().pacing_rate.unwrap().bits_per_sec() as f64;
    let before = rate(&sites);
    sites.silent = sites.now;
    // Round trips of 50 ms: a packet is under way for 25 ms, then the rate halves at 200, 400 and 600 ms.
    sites.run(seconds(40) + Span::from_millis(750), |_| 1 << 20);
    let halvings = (before / rate(&sites)).log2();
    assert!((2.9..3.6).contains(&halvings), "{halvings}");
}

#[test]
fn no_report_takes_a_flow_above_its_own_maximum() {
    let mut sites = Sites::new(2, r#", "max_rate": "1 Mbit/s""#, 0.001);
    let rates = sites.rates(30, |_| 1 << 20);
    assert!(rates.iter().all(|rate| *rate < 125_000.0 && *rate > 80_000.0), "{rates:?}");
    let most = Rate::from_mbit_per_sec(1);
    assert!(sites.flows.iter().all(|flow| flow[0].sample().unwrap().pacing_rate.unwrap() <= most));
}
