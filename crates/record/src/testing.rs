//! Records for this crate's own tests.

use crate::types::{
    Component, DecisionRecord, DelaySample, FlowEvent, FlowEventKind, FlowSample, LinkSample, Message,
    MessageFate, MessageKind, PacketRecord, Recorder, RttSample, StateSample, TransitSample, TransportSample,
};
use crate::{PackedHistogram, Records};
use weir_base::{Bytes, CODEPOINTS, Ecn, Histogram, Rate, Span, Time};
use weir_fabric::{FlowCounters, LinkCounters, PacketEvent};

/// A histogram of these milliseconds.
pub(crate) fn histogram(millis: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    millis.iter().for_each(|&ms| histogram.record(Span::from_millis(ms)));
    histogram
}

/// Records of every kind, with every field in use: 50 periods of 100 ms, two links, three flows, two groups.
pub(crate) fn busy_records() -> Records {
    let mut records = Records::default();
    for period in 1..=50u64 {
        let at = Time::from_nanos(period * 100_000_000);
        for link in 0..2u32 {
            let n = period + u64::from(link);
            records.link(&LinkSample {
                at,
                link,
                backlog_packets: n as u32,
                backlog_bytes: Bytes::new(1500 * n),
                counters: LinkCounters {
                    arrived: [n, 2 * n, 3 * n, 4],
                    dropped: [n % 3, 0, 1, 0],
                    marked: [0, n % 5, n % 2, 4],
                    sent: [n, n, n, n],
                    sent_bytes: [1500 * n, 1500 * n, 40 * n, u64::MAX >> 20],
                    lost: n % 4,
                    forwarded: 4 * n,
                    duplicated: n % 6,
                    corrupted: n % 7,
                    busy: Span::from_micros(n * 900),
                    capacity: Bytes::new(1_250_000),
                    dropped_for: [n % 2, n % 3, 1],
                },
            });
            records.delay(&DelaySample {
                at,
                link,
                class: CODEPOINTS[(n % 4) as usize],
                delay: histogram(&[n, 3 * n, 20]),
            });
        }
        for flow in 0..3u32 {
            let n = period * u64::from(flow + 1);
            records.flow(&FlowSample {
                at,
                flow,
                read_bytes: 1448 * n,
                counters: FlowCounters {
                    sent_packets: n,
                    sent_bytes: 1500 * n,
                    retransmitted: n % 2,
                    refused: n % 3,
                    received_packets: n - n % 2,
                    received_bytes: 1500 * (n - n % 2),
                    received_ce: n % 3,
                    first_packet: (n % 5 > 0).then(|| at + Span::from_micros(1)),
                    last_arrival: (n % 5 > 1).then(|| at + Span::from_micros(n)),
                    last_data: (n % 5 > 2).then(|| at + Span::from_micros(n)),
                    rtt_count: n,
                    rtt_sum: n * 20_000_000,
                    rtt_min: Span::from_millis(20),
                    rtt_max: Span::from_millis(20 + n),
                },
            });
            records.transport(&TransportSample {
                at,
                flow,
                cwnd: n as f64 / 3.0,
                ssthresh: (n > 10).then_some(10.5),
                in_flight: n as f64,
                srtt: Span::from_millis(21),
                min_rtt: Span::from_millis(20),
                rto: Span::from_millis(221),
                pacing_rate: (flow == 1).then(|| Rate::from_mbit_per_sec(n)),
                delivery_rate: (flow != 1).then(|| Rate::from_mbit_per_sec(n)),
                retransmissions: n / 7,
                timeouts: (flow < 2).then_some(n / 20),
                spurious: (flow < 1).then_some(n / 40),
            });
        }
        records.rtt(&RttSample { at, group: (period % 2) as u32, rtt: histogram(&[20, 21, 20 + period]) });
        let [hops, times, waits] = [histogram(&[2, 3]), histogram(&[20, 30 + period]), histogram(&[])];
        let (flow, admitted, in_time, links) = ((period % 3) as u32, 3, 1, 5);
        records.transit(&TransitSample { at, flow, admitted, in_time, links, hops, times, waits });
        let of = if period % 2 == 0 { Component::Queue(0) } else { Component::Controller(2) };
        records.state(&StateSample { at, of, name: "alpha_percent", value: period as f64 / 7.0 });
        let (standing, rule) = if period % 2 == 0 { ("on", "restart") } else { ("triaged", "price") };
        let (flow, by, value) = ((period % 3) as u32, "flow", period as f64);
        records.decision(&DecisionRecord { at, flow, by, standing, rule, value, bound: 4.5 });
        let fate = MessageFate::ALL[(period % 3) as usize];
        records.message(&Message {
            at,
            flow: (period % 3) as u32,
            kind: MessageKind::ALL[(period % 2) as usize],
            number: period / 3,
            fate,
            took: (fate != MessageFate::Lost).then(|| Span::from_millis(period)),
        });
        records.packet(&PacketRecord {
            at,
            link: 0,
            flow: if period == 9 { u32::MAX } else { 1 },
            fate: PacketEvent::ALL[(period % 7) as usize],
            length: 1500,
            class: Ecn::Ect0,
            sojourn: Span::from_micros(period),
            sequence: (period % 3 > 0).then_some(u32::MAX - period as u32),
        });
    }
    for (flow, kind) in (0..).zip(FlowEventKind::ALL) {
        records.event(&FlowEvent { at: Time::from_nanos(u64::from(flow) * 7), flow, kind });
    }
    records
}

/// Hands records to a recorder as an engine would.
pub(crate) fn replay(records: &Records, to: &mut dyn Recorder) {
    records.links.iter().for_each(|r| to.link(r));
    let unpack = PackedHistogram::unpack;
    for r in &records.delays {
        to.delay(&DelaySample { at: r.at, link: r.link, class: r.class, delay: unpack(&r.delay) });
    }
    records.flows.iter().for_each(|r| to.flow(r));
    for r in &records.rtts {
        to.rtt(&RttSample { at: r.at, group: r.group, rtt: unpack(&r.rtt) });
    }
    for r in &records.transits {
        let TransitSample { at, flow, admitted, in_time, links, ref hops, ref times, ref waits } = *r;
        let [hops, times, waits] = [hops, times, waits].map(unpack);
        to.transit(&TransitSample { at, flow, admitted, in_time, links, hops, times, waits });
    }
    records.transport.iter().for_each(|r| to.transport(r));
    for r in &records.states {
        assert_eq!(&*r.name, "alpha_percent", "the only name that busy_records uses");
        to.state(&StateSample { at: r.at, of: r.of, name: "alpha_percent", value: r.value });
    }
    records.events.iter().for_each(|r| to.event(r));
    for r in &records.decisions {
        let [by, standing, rule] = [&*r.by, &*r.standing, &*r.rule];
        let (at, flow, value, bound) = (r.at, r.flow, r.value, r.bound);
        to.decision(&DecisionRecord { at, flow, by, standing, rule, value, bound });
    }
    records.messages.iter().for_each(|r| to.message(r));
    records.packets.iter().for_each(|r| to.packet(r));
}
