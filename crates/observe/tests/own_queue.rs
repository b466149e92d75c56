//! Events of weir's own CoDel queue: drops and marks at dequeue, which the kernel's shapers do not make. What the state machine says of the
//! events is what the queue itself did.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_base::{Bytes, Ecn, FlowId, Packet, Random, Rate, Span, Time};
use weir_observe::{Bracket, KernelCounts, QueueReport, Sighting, WatchSettings, Watched, What};
use weir_queue::{Config, DropReason, Fate, Link};

#[derive(Debug, Clone)]
struct Sent {
    number: u64,
    ecn: Ecn,
    class: Ecn,
    arrived: Time,
}

const LENGTH: u32 = 1500;
const SIGNAL: u16 = 1;
const FULL: u16 = 2;

impl Packet for Sent {
    fn wire_length(&self) -> u32 {
        LENGTH
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
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

fn sighting(packet: &Sent, at: Time, what: What) -> Sighting {
    Sighting {
        at,
        what,
        // The kernel's buffers are few, and used again.
        packet: packet.number % 4096,
        flow: 0,
        sequence: packet.number as u32,
        bytes: LENGTH,
        segments: 1,
        segment_bytes: 0,
        ecn: packet.ecn,
    }
}

/// What the queue itself did, and the events of it.
#[derive(Default)]
struct Truth {
    events: Vec<Sighting>,
    signals: u64,
    full: u64,
    marks: u64,
}

impl Fate<Sent> for Truth {
    fn dropped(&mut self, packet: Sent, reason: DropReason, now: Time) {
        let is_full = reason == DropReason::Full;
        *(if is_full { &mut self.full } else { &mut self.signals }) += 1;
        let reason = if is_full { FULL } else { SIGNAL };
        self.events.push(sighting(&packet, now, What::Dropped { reason }));
    }
    fn marked(&mut self, _: &Sent, _: Time) {
        self.marks += 1;
    }
}

/// Ten seconds at 12 Mbit/s, a packet each ms, to which 1.25 packets come each ms; every second is ECN-capable. Returns the report, the truth
/// and the sum of the sojourns in ns.
fn observed() -> (QueueReport, Truth, u128) {
    let config: Config = "codel".parse().unwrap();
    let mbit = 12;
    let link = Link { rate: Rate::from_mbit_per_sec(mbit), base_rtt: None, mtu: Bytes::new(LENGTH.into()) };
    let mut queue = config.build::<Sent>(&link, Random::stream(1, "queue"));
    let mut truth = Truth::default();
    let (mut sojourns, mut sent) = (0u128, 0u64);
    // Steps of 200 us: an arrival each 4 of them, a departure each 5. At the end the queue is served until it is empty.
    let mut step = 0u64;
    while step < 50_000 || queue.backlog().packets > 0 {
        let now = Time::from_nanos(step * 200_000);
        if step < 50_000 && step.is_multiple_of(4) {
            let number = step / 4;
            let ecn = if number.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct };
            let mut packet = Sent { number, ecn, class: ecn, arrived: now };
            packet.arrive(now);
            let (before, refused) = (queue.backlog().packets, truth.full);
            let event = sighting(&packet, now, What::Enqueued);
            queue.enqueue(packet, now, &mut truth);
            // As in the kernel: a refused packet has no event of its arrival.
            if truth.full == refused {
                assert_eq!(queue.backlog().packets, before + 1);
                truth.events.push(event);
            }
        }
        if step.is_multiple_of(5)
            && let Some(packet) = queue.dequeue(now, &mut truth)
        {
            sojourns += u128::from(now.since(packet.arrived).as_nanos());
            sent += 1;
            truth.events.push(sighting(&packet, now, What::Dequeued));
        }
        step += 1;
    }
    let mut watched = Watched::new(WatchSettings { start: Time::ZERO, period: Span::from_millis(100) });
    truth.events.iter().for_each(|event| watched.see(event));
    let exactly = |count| Bracket { least: count, most: count };
    let kernel = KernelCounts {
        packets: exactly(sent),
        drops: exactly(truth.signals + truth.full),
        ..KernelCounts::default()
    };
    let report = watched.report(Time::from_nanos(step * 200_000), &kernel, 0, &|number| number.to_string());
    assert_eq!(report.packets, sent);
    (report, truth, sojourns)
}

#[test]
fn drops_and_marks_at_dequeue_are_those_that_codel_made() {
    let (report, truth, sojourns) = observed();
    // A quarter more arrives than leaves, for ten seconds: CoDel both marks and drops.
    assert!(truth.signals > 10 && truth.marks > 10, "{} drops, {} marks", truth.signals, truth.marks);
    assert_eq!(report.drops, truth.signals + truth.full);
    assert_eq!(report.drops_by_reason["1"].after_waiting, truth.signals);
    assert_eq!(report.drops_by_reason.get("2").map_or(0, |drops| drops.at_arrival), truth.full);
    // A packet that CoDel drops is not capable of ECN, and one that it marks is.
    assert_eq!(report.by_codepoint["ect0"].marked, truth.marks);
    assert_eq!(report.by_codepoint["not-ect"].marked, 0);
    let mean = sojourns as f64 / report.packets as f64 / 1e6;
    let measured = report.sojourn_ms.as_ref().unwrap().mean;
    assert!((measured - mean).abs() < 1e-6, "{measured} ms instead of {mean} ms");
    assert_eq!(report.checks.invalid, Vec::<String>::new());
}
