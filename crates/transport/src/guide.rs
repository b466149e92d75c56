//! What a flow's rate and send buffer follow: the reports of its aggregation point, or a fixed rate.
//!
//! A flow to which no report has come for four round trips, or the time of two packets, halves its rate, and again after as long.
//! Whatever is reported, the rate stays below a maximum of the flow's own.

use crate::coordination::{Coordination, Identity};
use weir_base::{Bytes, Rate, Span, Time};
use weir_coord::Statistic;
use weir_coord::cell::{Cell, Family};
use weir_coord::endpoint::{self, Endpoint};
use weir_coord::header::{Flags, Prefix, Version};
use weir_coord::scheme::{self, Own, Scheme, Shares};

/// Round trips without a report after which the rate is halved, and full packets, which a slow sender sends less often than that (RFC
/// 5348, section 4.3).
const PATIENCE_RTTS: u64 = 4;
const PATIENCE_PACKETS: Bytes = Bytes::new(2 * 1500);
/// A round trip before one was reported.
const UNKNOWN_RTT: Span = Span::from_millis(250);
/// The least rate: a packet of 1,500 bytes in 64 s (RFC 5348, `t_mbi`).
const LEAST_RATE: u64 = 1500 * 8 / 64;
/// The least send buffer in packets: one that is sent and one that waits.
const LEAST_BUFFER: u64 = 2;
/// A silent endpoint says what it has to say this often; what an aggregation point keeps lasts a few seconds.
const REFRESH: Span = Span::from_secs(1);
/// Bytes in a second for each unit of a bandwidth cell.
const KIB: u64 = 1024;

/// The rate of a flow.
#[derive(Debug)]
pub(crate) struct Guide {
    rate: Rate,
    max_rate: Rate,
    urgent: bool,
    reports: Option<Reports>,
}

/// What comes from an aggregation point.
#[derive(Debug)]
struct Reports {
    endpoint: Endpoint,
    scheme: scheme::Config,
    address: u8,
    buffer_by_flowshare: bool,
    /// Cells: rate of a flowshare, number of flows, own number and sum.
    cells: [Cell; 4],
    flowshare: Option<Rate>,
    rtt: Option<Span>,
    /// When the rate is halved.
    starves: Time,
    /// When a packet of its own is due, if none leaves before.
    refresh: Time,
}

const RTT: Cell = Family::Rtt.cell(Statistic::Smoothed);

impl Guide {
    /// The guide of a flow that keeps one rate and has no CP header.
    pub(crate) fn fixed(rate: Rate) -> Guide {
        Guide { rate, max_rate: rate, urgent: false, reports: None }
    }

    /// The guide of this flow of an application. `protocol` is its transport's number, which aggregation points do not look at.
    pub(crate) fn new(coordination: &Coordination, protocol: u8, identity: &Identity) -> Guide {
        let Coordination { application, rate, max_rate, urgent, address, .. } = *coordination;
        let Identity { flow, key, epoch } = *identity;
        let cells = scheme::watched(flow, address);
        let scheme = coordination.scheme.clone();
        let [flowshare, flows, ..] = cells;
        let identity = endpoint::Identity { application, flow, protocol, key, epoch };
        // A scheme without numbers needs no more than a packet reports.
        let endpoint = match scheme.number(&Own::default()) {
            None => Endpoint::new(identity, Version::One, &[flowshare, flows, RTT]),
            Some(_) => Endpoint::new(identity, Version::One, &[&cells[..], &[RTT]].concat()),
        };
        let reports = Reports {
            endpoint,
            scheme,
            address,
            buffer_by_flowshare: false,
            cells,
            flowshare: None,
            rtt: None,
            starves: Time::NEVER,
            refresh: Time::NEVER,
        };
        Guide { rate: rate.min(max_rate), max_rate, urgent, reports: Some(reports) }
    }

    /// The same with a send buffer that is sized by the rate of a flowshare, as equation 6.2 is printed, and not by the flow's own rate.
    pub(crate) fn with_buffer_by_flowshare(mut self) -> Guide {
        self.reports.iter_mut().for_each(|reports| reports.buffer_by_flowshare = true);
        self
    }

    /// Whether the flow is urgent while it has data.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// The rate in bits of IP packets a second.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Bytes that stand before the transport's header in a packet.
    pub(crate) fn header_length(&self) -> usize {
        self.reports.as_ref().map_or(0, |reports| reports.endpoint.header_length())
    }

    /// Begins a packet that leaves: appends the CP header, which tells what the flow says of itself.
    pub(crate) fn begin(&mut self, own: &Own, to: &mut Vec<u8>, now: Time) {
        self.append(own, Flags::default(), to, now);
    }

    /// Writes the CP header of a packet that leaves over its first bytes.
    pub(crate) fn write(&mut self, own: &Own, packet: &mut [u8], now: Time) {
        self.put(own, Flags::default(), packet, now);
    }

    fn append(&mut self, own: &Own, flags: Flags, to: &mut Vec<u8>, now: Time) {
        let begin = to.len();
        to.resize(begin + self.header_length(), 0);
        self.put(own, flags, &mut to[begin..], now);
    }

    fn put(&mut self, own: &Own, flags: Flags, packet: &mut [u8], now: Time) {
        let Some(reports) = &mut self.reports else { return };
        if let Some(number) = reports.scheme.number(own) {
            reports.endpoint.write(reports.address, number);
        }
        reports.endpoint.seal(flags, packet);
        reports.refresh = now + REFRESH;
        if reports.starves == Time::NEVER {
            reports.starves = now + reports.patience(self.rate);
        }
    }

    /// A packet that asks the aggregation point for reports and goes no further, if one is due: nothing else has left for long.
    pub(crate) fn refresh(&mut self, own: &Own, to: &mut Vec<u8>, now: Time) -> bool {
        let due = self.reports.as_ref().is_some_and(|reports| reports.refresh <= now);
        if due {
            self.append(own, Flags::REFLECT, to, now);
        }
        due
    }

    /// Takes the CP header of a packet that arrived and returns its length; `None` if the packet is not for this flow, or if its header is longer or
    /// shorter than those that leave.
    pub(crate) fn takes(&mut self, packet: &[u8], now: Time) -> Option<usize> {
        let length = self.header_length();
        if self.reports.is_some() && Prefix::read(packet).ok()?.version.length() != length {
            return None;
        }
        self.open(packet, now).map(|_| length)
    }

    /// Takes the CP header off a packet that arrived; `None` if the packet is not for this flow.
    pub(crate) fn open<'a>(&mut self, packet: &'a [u8], now: Time) -> Option<&'a [u8]> {
        let Some(reports) = &mut self.reports else { return Some(packet) };
        let length = reports.endpoint.open(packet, |_, _| {}).ok()?;
        if let Some(rate) = reports.reported() {
            self.rate = rate.min(self.max_rate).max(Rate::from_bits_per_sec(LEAST_RATE));
            reports.starves = now + reports.patience(self.rate);
        }
        packet.get(length..)
    }

    /// How many bytes may be written and not acknowledged, for packets of this length.
    pub(crate) fn send_buffer(&self, packet: u32, rtt: Option<Span>) -> Bytes {
        let reports = self.reports.as_ref();
        let by = reports.filter(|c| c.buffer_by_flowshare).and_then(|c| c.flowshare).unwrap_or(self.rate);
        let rtt = reports.and_then(|c| c.rtt).or(rtt).unwrap_or(UNKNOWN_RTT);
        scheme::send_buffer(by, rtt).max(Bytes::new(LEAST_BUFFER * u64::from(packet)))
    }

    /// When [`Guide::on_timer`] is due.
    pub(crate) fn next_timer(&self) -> Time {
        self.reports.as_ref().map_or(Time::NEVER, |c| c.starves.min(c.refresh))
    }

    /// Halves the rate if no report has come for too long.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let Some(reports) = &mut self.reports else { return };
        if reports.starves <= now {
            let halved = (self.rate.bits_per_sec() / 2).max(LEAST_RATE);
            self.rate = Rate::from_bits_per_sec(halved);
            reports.starves = now + reports.patience(self.rate);
        }
    }

    /// Internal state for the records.
    pub(crate) fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let Some(reports) = &self.reports else { return };
        report("flowshare_mbps", reports.flowshare.map_or(0.0, |rate| rate.mbit_per_sec()));
        report("reported_rtt_ms", reports.rtt.map_or(0.0, |rtt| rtt.as_millis_f64()));
    }
}

impl Reports {
    fn patience(&self, rate: Rate) -> Span {
        (self.rtt.unwrap_or(UNKNOWN_RTT) * PATIENCE_RTTS).max(rate.time_to_send(PATIENCE_PACKETS))
    }

    /// The rate that the reports so far give; `None` before there is an estimate.
    fn reported(&mut self) -> Option<Rate> {
        let value = |cell| self.endpoint.value(cell).filter(|value| *value > 0);
        let [flowshare, flows, own, sum] = self.cells;
        self.rtt = value(RTT).map(|micros| Span::from_micros(micros.into())).or(self.rtt);
        let flowshare = Rate::from_bits_per_sec(u64::from(value(flowshare)?) * KIB * 8);
        self.flowshare = Some(flowshare);
        let zero = |cell| value(cell).unwrap_or(0);
        let flows = zero(flows).max(1);
        Some(self.scheme.rate(&Shares { flowshare, flows, own: zero(own), sum: zero(sum) }))
    }
}
