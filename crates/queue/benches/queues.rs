//! What a packet costs in each queue: `cargo bench -p weir-queue`. Quote ratios against PIE measured in the same sitting.
//! With `--packets N QUEUE` it runs one queue without the benchmark around it: under `valgrind --tool=callgrind`, the difference
//! between two numbers of packets is what a packet costs in instructions.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be built fails")]

use criterion::{Criterion, Throughput};
use weir_base::{Bytes, Ecn, FlowId, Packet, Random, Rate, Span, Time};
use weir_queue::{Config, Discipline, DropReason, Fate, Link};

/// As small as a simulated packet's handle.
#[derive(Debug)]
struct Handle {
    flow: u32,
    ecn: Ecn,
    class: Ecn,
    arrived: Time,
}

impl Packet for Handle {
    fn wire_length(&self) -> u32 {
        1500
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn arrive(&mut self, now: Time) {
        (self.arrived, self.class) = (now, self.ecn);
    }
    fn arrived(&self) -> Time {
        self.arrived
    }
    fn class(&self) -> Ecn {
        self.class
    }
}

struct Count(u64);

impl Fate<Handle> for Count {
    fn dropped(&mut self, _: Handle, _: DropReason, _: Time) {
        self.0 += 1;
    }
    fn marked(&mut self, _: &Handle, _: Time) {}
}

fn build(queue: &str) -> Discipline<Handle> {
    let link = Link {
        rate: Rate::from_mbit_per_sec(1000),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };
    queue.parse::<Config>().unwrap().build(&link, Random::stream(1, "queue"))
}

/// Packets of a thousand flows in random order at 1 Gbit/s, a few more than leave, so that the AQM has something to do; returns
/// how many left.
fn drive(queue: &mut Discipline<Handle>, packets: u64) -> u64 {
    let (mut now, mut fate, mut sent) = (Time::ZERO, Count(0), 0);
    let mut state = 1u32;
    for n in 0..packets {
        now += Span::from_micros(12);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
        let mut packet = Handle { flow: (state >> 16) % 1000, ecn, class: ecn, arrived: now };
        packet.arrive(now);
        queue.enqueue(packet, now, &mut fate);
        // Two milliseconds of queue to begin with, then one out for one in.
        if n > 166 {
            sent += u64::from(queue.dequeue(now, &mut fate).is_some());
        }
    }
    sent
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--packets") {
        let mut queue = build(&arguments[at + 2]);
        println!("{}", drive(&mut queue, arguments[at + 1].parse().unwrap()));
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("queues");
    group.throughput(Throughput::Elements(100_000));
    for member in Config::members() {
        let mut queue = build(member.name);
        group.bench_function(member.name, |bencher| bencher.iter(|| drive(&mut queue, 100_000)));
    }
    group.finish();
    criterion.final_summary();
}
