//! The guide of a flow: it sets the flow's rate and send buffer by the reports of an aggregation point, or keeps a fixed rate.
//!
//! A flow that receives no report for four round trips, or for the time of two packets if that is longer, halves its rate, and halves it
//! again after each further such time. The rate never exceeds the flow's own maximum.

use crate::Statistic;
use crate::cell::{Cell, Family};
use crate::endpoint::{self, Endpoint};
use crate::header::{Flags, Prefix, Version};
use crate::participation::{Coordination, Identity};
use crate::scheme::{self, Own, Scheme, Shares};
use weir_base::{Bytes, Rate, Span, Time};

/// The rate is halved after this many round trips without a report, or after the time that this many bytes take at the present rate if
/// that is longer: a slow sender sends less than a packet in a round trip (RFC 5348, section 4.3).
const PATIENCE_RTTS: u64 = 4;
const PATIENCE_PACKETS: Bytes = Bytes::new(2 * 1500);
/// The RTT that is assumed before one is reported.
const UNKNOWN_RTT: Span = Span::from_millis(250);
/// The minimum rate: a packet of 1,500 bytes in 64 s (RFC 5348, `t_mbi`).
const LEAST_RATE: u64 = 1500 * 8 / 64;
/// The minimum send buffer in packets: one that is sent and one that waits.
const LEAST_BUFFER: u64 = 2;
/// An endpoint with nothing to send refreshes its state at the aggregation point this often: the aggregation point forgets it after a few
/// seconds.
const REFRESH: Span = Span::from_secs(1);
/// Unit of a bandwidth cell: bytes per second.
const KIB: u64 = 1024;

/// The rate of a flow.
#[derive(Debug)]
pub struct Guide {
    rate: Rate,
    max_rate: Rate,
    urgent: bool,
    reports: Option<Reports>,
}

/// The endpoint at the aggregation point, and what was reported to it.
#[derive(Debug)]
struct Reports {
    endpoint: Endpoint,
    scheme: scheme::Config,
    address: u8,
    buffer_by_flowshare: bool,
    /// Cells: rate of a flowshare, number of flows, the flow's own number for the scheme, and the sum of all flows' numbers.
    cells: [Cell; 4],
    flowshare: Option<Rate>,
    rtt: Option<Span>,
    /// When the rate is halved, unless a report arrives before.
    starves: Time,
    /// When a packet that only asks for reports is due, if no other packet leaves before.
    refresh: Time,
}

const RTT: Cell = Family::Rtt.cell(Statistic::Smoothed);

impl Guide {
    /// The guide of a flow that keeps one rate and has no CP header.
    pub fn fixed(rate: Rate) -> Guide {
        Guide { rate, max_rate: rate, urgent: false, reports: None }
    }

    /// The guide of a flow of an application. `protocol` is the transport's protocol number; aggregation points ignore it.
    pub fn new(coordination: &Coordination, protocol: u8, identity: &Identity) -> Guide {
        let Coordination { application, rate, max_rate, urgent, address, .. } = *coordination;
        let Identity { flow, key, epoch } = *identity;
        let cells = scheme::watched(flow, address);
        let scheme = coordination.scheme.clone();
        let [flowshare, flows, ..] = cells;
        let identity = endpoint::Identity { application, flow, protocol, key, epoch };
        // A scheme without numbers needs two cells of the four.
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

    /// Sizes the send buffer by the rate of a flowshare, as equation 6.2 is printed, instead of the flow's own rate.
    pub fn with_buffer_by_flowshare(mut self) -> Guide {
        self.reports.iter_mut().for_each(|reports| reports.buffer_by_flowshare = true);
        self
    }

    /// Whether the flow is urgent while it has data.
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// The rate of IP packets, headers included.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Length of the CP header in bytes; 0 for a flow at a fixed rate.
    pub fn header_length(&self) -> usize {
        self.reports.as_ref().map_or(0, |reports| reports.endpoint.header_length())
    }

    /// Appends the CP header of a packet that leaves. The header carries `own`, the flow's state.
    pub fn begin(&mut self, own: &Own, to: &mut Vec<u8>, now: Time) {
        self.append(own, Flags::default(), to, now);
    }

    /// Overwrites the first bytes of a packet that leaves with its CP header.
    pub fn write(&mut self, own: &Own, packet: &mut [u8], now: Time) {
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

    /// Appends a packet that asks the aggregation point for reports and goes no further, if no packet has left for [`REFRESH`]. Returns
    /// whether it did.
    pub fn refresh(&mut self, own: &Own, to: &mut Vec<u8>, now: Time) -> bool {
        let due = self.reports.as_ref().is_some_and(|reports| reports.refresh <= now);
        if due {
            self.append(own, Flags::REFLECT, to, now);
        }
        due
    }

    /// Reads the CP header of a packet that arrived and returns its length. `None` if the packet is not for this flow, or if its header
    /// differs in length from those of this flow.
    pub fn takes(&mut self, packet: &[u8], now: Time) -> Option<usize> {
        let length = self.header_length();
        if self.reports.is_some() && Prefix::read(packet).ok()?.version.length() != length {
            return None;
        }
        self.open(packet, now).map(|_| length)
    }

    /// Reads the CP header of a packet that arrived and returns what follows it. `None` if the packet is not for this flow.
    pub fn open<'a>(&mut self, packet: &'a [u8], now: Time) -> Option<&'a [u8]> {
        let Some(reports) = &mut self.reports else { return Some(packet) };
        let length = reports.endpoint.open(packet, |_, _| {}).ok()?;
        // Packets without a report prove that the peer is there, not that the aggregation point is.
        if reports.endpoint.was_reported()
            && let Some(rate) = reports.reported()
        {
            self.rate = rate.min(self.max_rate).max(Rate::from_bits_per_sec(LEAST_RATE));
            reports.starves = now + reports.patience(self.rate);
        }
        packet.get(length..)
    }

    /// Size of the send buffer: bytes that may be written but not acknowledged, for packets of this length in bytes. `rtt` is the
    /// transport's own measurement, which is used until an RTT is reported.
    pub fn send_buffer(&self, packet: u32, rtt: Option<Span>) -> Bytes {
        let reports = self.reports.as_ref();
        let by = reports.filter(|c| c.buffer_by_flowshare).and_then(|c| c.flowshare).unwrap_or(self.rate);
        let rtt = reports.and_then(|c| c.rtt).or(rtt).unwrap_or(UNKNOWN_RTT);
        scheme::send_buffer(by, rtt).max(Bytes::new(LEAST_BUFFER * u64::from(packet)))
    }

    /// When [`Guide::on_timer`] or, on an open connection, [`Guide::refresh`] is due. The time without a report counts from the first packet
    /// on, a handshake's included: a handshake may take longer than the time after which the rate is halved.
    pub fn next_timer(&self, open: bool) -> Time {
        let Some(Reports { starves, refresh, .. }) = self.reports else { return Time::NEVER };
        if open { starves.min(refresh) } else { starves }
    }

    /// Halves the rate if no report has come for too long.
    pub fn on_timer(&mut self, now: Time) {
        let Some(reports) = &mut self.reports else { return };
        if reports.starves <= now {
            let halved = (self.rate.bits_per_sec() / 2).max(LEAST_RATE);
            self.rate = Rate::from_bits_per_sec(halved);
            reports.starves = now + reports.patience(self.rate);
        }
    }

    /// Internal state for the records.
    pub fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let Some(reports) = &self.reports else { return };
        report("flowshare_mbps", reports.flowshare.map_or(0.0, |rate| rate.mbit_per_sec()));
        report("reported_rate_mbps", self.rate.mbit_per_sec());
        report("reported_rtt_ms", reports.rtt.map_or(0.0, |rtt| rtt.as_millis_f64()));
    }
}

impl Reports {
    fn patience(&self, rate: Rate) -> Span {
        (self.rtt.unwrap_or(UNKNOWN_RTT) * PATIENCE_RTTS).max(rate.time_to_send(PATIENCE_PACKETS))
    }

    /// The rate by the scheme and the reports so far; `None` before a flowshare is reported.
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
