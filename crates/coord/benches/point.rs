//! Cost of a packet in an aggregation point: `cargo bench -p weir-coord`.
//!
//! - `normal`: one application of 24 flows that watch four cells of NET and FLOW.
//! - `worst`: 32 applications of 128 flows; each packet writes four cells and each flow's reports are four aggregates, going
//!   through all 250 general-purpose addresses (section 5.3).
//! - `sealed`: as `normal`, with version 2 of the header and keys on both legs.
//!
//! Packets come from an endpoint and from the path in turn. With `--packets N CASE` it runs one case without the benchmark
//! around it: under `valgrind --tool=callgrind`, two runs with different N give the instructions of a packet.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be built fails")]

use core::net::{IpAddr, Ipv4Addr};
use criterion::{Criterion, Throughput};
use weir_base::{Span, Time};
use weir_coord::cell::{Cell, Family, R1};
use weir_coord::header::{self, Echo, Flags, LONGEST, Operation, Pointer, Prefix, Probe, Version};
use weir_coord::seal::{Key, Leg};
use weir_coord::{Config, FiveTuple, Function, Packet, Point, Side, Statistic, Ticks, Verdict};

/// One case: the numbers of applications and flows, and the operations of a packet.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    applications: u8,
    flows: u8,
    aggregates: bool,
    key: Option<Key>,
}

const CASES: [Case; 3] = [
    Case { name: "normal", applications: 1, flows: 24, aggregates: false, key: None },
    Case { name: "worst", applications: 32, flows: 128, aggregates: true, key: None },
    Case { name: "sealed", applications: 1, flows: 24, aggregates: false, key: Some(Key::new([7; 16])) },
];

fn tuple(application: u8, flow: u8) -> FiveTuple {
    let address = |site| IpAddr::V4(Ipv4Addr::new(10, site, application, flow));
    FiveTuple { source: address(1), source_port: 9000, destination: address(2), destination_port: 9000 }
}

/// Packets for an aggregation point, generated at little cost compared with their handling.
struct Bench {
    case: Case,
    point: Point,
    now: Time,
    sent: u64,
    /// For each application, the number of the next packet from the path.
    sequences: [u64; header::APPLICATIONS],
}

impl Bench {
    fn new(case: Case) -> Bench {
        let application = |id: u8| {
            format!(
                "[[application]]\nid = {id}\nname = \"{id}\"\nlocal = [\"10.1.{id}.0/24\"]\nlocal_ports = 9000\n\
                 remote = [\"10.2.{id}.0/24\"]\nremote_ports = 9000\n"
            )
        };
        let text: String = (0..case.applications).map(application).collect();
        let mut config = Config::from_toml(&text).unwrap();
        config.peer_key = case.key;
        config.application.iter_mut().for_each(|application| application.key = case.key);
        let point = Point::new(&config, 1, 1).unwrap();
        Bench { case, point, now: Time::from_nanos(1_000_000_000), sent: 0, sequences: [1 << 32; 32] }
    }

    fn operations(&self, flow: u8) -> [Operation; 4] {
        if self.case.aggregates {
            // Four values and four pointers in turn; the pointers select aggregates of the addresses that are written next, so
            // each report is of an address that has just been written.
            let round = self.sent / 2 / u64::from(self.case.applications) / u64::from(self.case.flows);
            let address = |j: u64| ((round.div_ceil(2) * 4 + j) % 250) as u8;
            std::array::from_fn(|j| {
                if round.is_multiple_of(2) {
                    return Operation { address: address(j as u64), value: (self.sent & 0xffff) as u32 };
                }
                let offset = Function::ALL[(self.sent as usize + j) % Function::ALL.len()] as u8;
                let pointer = Pointer { address: address(j as u64), offset, id: j as u8 + 1 };
                Operation { address: R1 + j as u8, value: pointer.value() }
            })
        } else {
            let families = [Family::Bandwidth, Family::Rtt, Family::Loss, Family::Flows];
            std::array::from_fn(|j| {
                let Cell { address, offset } = families[j].cell(Statistic::Smoothed);
                let pointer = Pointer { address, offset, id: j as u8 + 1 };
                match (self.sent / 64 + u64::from(flow)) % 4 {
                    // One packet in four writes cells, the others refresh pointers.
                    0 => Operation { address: j as u8, value: (self.sent & 0xffff) as u32 },
                    _ => Operation { address: R1 + j as u8, value: pointer.value() },
                }
            })
        }
    }

    /// Hands in `packets` packets; returns how many were forwarded.
    fn drive(&mut self, packets: u64) -> u64 {
        let Case { applications, flows, key, .. } = self.case;
        let version = if key.is_some() { Version::Two } else { Version::One };
        let mut forwarded = 0;
        for _ in 0..packets {
            let turn = self.sent / 2;
            let application = (turn % u64::from(applications)) as u8;
            let flow = (turn / u64::from(applications) % u64::from(flows)) as u8;
            let outbound = self.sent.is_multiple_of(2);
            let mut bytes = [0; LONGEST];
            let flags = if outbound { Flags::default() } else { Flags::DATAPATH };
            Prefix { version, application, flow, protocol: 7, flags }.write(&mut bytes);
            let (side, tuple) = if outbound {
                header::set_words(version, &mut bytes, self.operations(flow).map(Operation::word));
                if version == Version::Two {
                    header::set_sequence(&mut bytes, self.sent);
                }
                (Side::Local, tuple(application, flow))
            } else {
                let sequence = &mut self.sequences[usize::from(application)];
                // One packet in a hundred is lost.
                *sequence += if sequence.is_multiple_of(100) { 2 } else { 1 };
                let timestamp = Ticks::at(self.now);
                let echo =
                    Echo { timestamp: Ticks::at(self.now - Span::from_millis(50)), delay: Ticks::new(7) };
                let probe =
                    Probe { timestamp, echo: Some(echo), bandwidth: 500, loss: 1 << 24, sequence: *sequence };
                probe.write(version, &mut bytes);
                (Side::Path, tuple(application, flow).reversed())
            };
            if let Some(key) = key {
                key.seal(if outbound { Leg::Out } else { Leg::Path }, &mut bytes);
            }
            let mut checksum = 0x1234;
            let packet =
                Packet { side, tuple, length: 1000, payload: &mut bytes, checksum: Some(&mut checksum) };
            forwarded += u64::from(self.point.handle(packet, self.now) == Verdict::Forward);
            self.sent += 1;
            // Four million packets a second.
            self.now += Span::from_nanos(250);
        }
        forwarded
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--packets") {
        let packets = arguments[at + 1].parse().unwrap();
        let case = CASES.into_iter().find(|case| arguments[at + 2] == case.name).unwrap();
        println!("{}: {} of {packets} forwarded", case.name, Bench::new(case).drive(packets));
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("point");
    const PACKETS: u64 = 100_000;
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    for case in CASES {
        let mut bench = Bench::new(case);
        // After this, every flow is active and every pointer set.
        assert_eq!(bench.drive(200_000), 200_000);
        group.bench_function(case.name, |bencher| bencher.iter(|| bench.drive(PACKETS)));
    }
    group.finish();
    criterion.final_summary();
}
