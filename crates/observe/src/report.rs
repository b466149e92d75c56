//! What an analysis found, as numbers with their units in their names. Flows are written one after the other, since there may be many.

use crate::analysis::Analysis;
use crate::flow::{Direction, Flow, Side};
use crate::packet::{Skipped, TCP, UDP};
use crate::rate::{Period, elapsed};
use crate::stamped::StampedReport;
use crate::times::Times;
use core::net::{IpAddr, SocketAddr};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use weir_base::{Bytes, CODEPOINTS, Rate, Span};

/// What was found in a capture.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a>(&'a Analysis);

/// The sums over a capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Totals {
    /// Packets of IP whose headers were read.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub ip_bytes: u64,
    /// Time of the first packet, in seconds since 1970.
    pub first_s: f64,
    /// Time from the first packet to the last one, in seconds.
    pub duration_s: f64,
    /// Flows that were told apart.
    pub flows: usize,
    /// Packets of flows beyond the largest number of flows.
    pub packets_of_further_flows: u64,
    /// Packets with an earlier time than the one before them.
    pub packets_out_of_order: u64,
    /// Packets that were left out, by the reason.
    pub skipped: BTreeMap<Skipped, u64>,
}

/// What was found of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowReport {
    /// The protocol: `tcp`, `udp`, or its number.
    pub protocol: String,
    /// The end that opened it, or whose packet was the first.
    pub from: String,
    /// The other end.
    pub to: String,
    /// Time of its first packet since that of the capture, in seconds.
    pub start_s: f64,
    /// Time from its first packet to its last one, in seconds.
    pub duration_s: f64,
    /// Where on its path the capture was taken: `first` at the end `from`, `second` at `to`. `null` without round trips to both ends.
    pub captured_at: Option<Side>,
    /// The shortest round trip of the path, in ms: that from the capture to `to` and that to `from`.
    pub path_rtt_ms: Option<f64>,
    /// What `from` sent.
    pub there: DirectionReport,
    /// What `to` sent.
    pub back: DirectionReport,
}

/// What was found of a direction of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Packets.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub ip_bytes: u64,
    /// Packets with data (all, unless they are of TCP).
    pub data_packets: u64,
    /// Data packets as the network carries them: those that a card still has to cut count as their segments.
    pub segments: u64,
    /// Bytes of data, those retransmissions included (TCP only).
    pub payload_bytes: u64,
    /// IP bytes over the flow's duration, in Mbit/s.
    pub rate_mbps: Option<f64>,
    /// IP bytes in the fullest period, in Mbit/s, of a flow that lasts for a period.
    pub peak_rate_mbps: Option<f64>,
    /// Packets by ECN codepoint.
    pub ecn: BTreeMap<&'static str, u64>,
    /// The numbers that only TCP has.
    #[serde(flatten)]
    pub tcp: Option<TcpReport>,
}

/// What was found of a direction of a TCP flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TcpReport {
    /// Data segments that were retransmitted.
    pub retransmissions: u64,
    /// Those of them whose original the capture has: it was lost behind the capture, or arrived.
    pub retransmissions_seen_twice: u64,
    /// Those of them whose original it has not: it was lost before the capture, or missed by it.
    pub retransmissions_seen_once: u64,
    /// Bytes of data that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmissions of what had arrived, as DSACK, timestamps or earlier acknowledgements show.
    pub spurious_retransmissions: u64,
    /// Segments that others had overtaken.
    pub reordered: u64,
    /// Copies that the network, or the capture, made.
    pub copies: u64,
    /// SYNs that were retransmitted.
    pub syn_retransmissions: u64,
    /// Probes of an idle connection.
    pub keepalives: u64,
    /// Acknowledgements of this direction that report marks (ECE).
    pub marks_echoed: u64,
    /// Bytes that were acknowledged and not captured.
    pub missed_bytes: u64,
    /// An estimate of their packets, by the size of a full segment.
    pub missed_packets: u64,
    /// Bytes that were lost before the capture and did not come again.
    pub unrepaired_bytes: u64,
    /// Packets whose sequence numbers are not of this connection.
    pub implausible: u64,
    /// Time from a segment at the capture to its acknowledgement there, over the segments that were acknowledged; `count` is of them.
    pub rtt_ms: Option<Times>,
}

impl Analysis {
    /// What was found so far.
    pub fn report(&self) -> Report<'_> {
        Report(self)
    }
}

impl<'a> Report<'a> {
    /// The sums.
    pub fn totals(&self) -> Totals {
        let analysis = self.0;
        let first = analysis.first.unwrap_or_default();
        let skipped = Skipped::ALL.map(|why| (why, analysis.skipped[why as usize]));
        Totals {
            packets: analysis.packets,
            ip_bytes: analysis.ip_bytes,
            first_s: first.as_secs_f64(),
            duration_s: elapsed(first, analysis.last).as_secs_f64(),
            flows: analysis.flows.len(),
            packets_of_further_flows: analysis.beyond_most_flows,
            packets_out_of_order: analysis.out_of_order,
            skipped: skipped.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// The flows in the order of their first packets.
    pub fn flows(&self) -> impl Iterator<Item = FlowReport> + use<'a> {
        let analysis = self.0;
        analysis.flows.iter().map(|flow| report_of(analysis, flow))
    }

    /// The flows with the most bytes, the largest first.
    pub fn largest(&self, count: usize) -> Vec<FlowReport> {
        let bytes = |flow: &Flow| flow.directions.iter().map(|direction| direction.ip_bytes).sum::<u64>();
        let mut flows: Vec<&Flow> = self.0.flows.iter().collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(bytes(flow)));
        flows.into_iter().take(count).map(|flow| report_of(self.0, flow)).collect()
    }

    /// What the packets report of the queue that they have left, if they do.
    pub fn stamped(&self) -> Option<StampedReport> {
        self.0.settings.is_stamped.then(|| self.0.stamped.report())
    }

    /// The length of the periods, and what passed in each.
    pub fn series(&self) -> (Span, &'a [Period]) {
        (self.0.periods.length, &self.0.periods.periods)
    }
}

/// The periods and their length.
#[derive(Serialize)]
struct Series<'a> {
    period_s: f64,
    periods: &'a [Period],
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let (period, periods) = self.series();
        let mut document = serializer.serialize_struct("Report", 4)?;
        document.serialize_field("totals", &self.totals())?;
        document.serialize_field("stamped", &self.stamped())?;
        document.serialize_field("flows", &Flows(*self))?;
        document.serialize_field("series", &Series { period_s: period.as_secs_f64(), periods })?;
        document.end()
    }
}

/// All flows, each made as it is written.
struct Flows<'a>(Report<'a>);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.flows())
    }
}

fn report_of(analysis: &Analysis, flow: &Flow) -> FlowReport {
    let (from, to) = (flow.opener, 1 - flow.opener);
    let duration = elapsed(flow.first, flow.last);
    let of = |end: usize| {
        let period = analysis.settings.period;
        let peak = (duration >= period).then(|| flow.peaks[end].rate(period));
        direction(&flow.directions[end], flow.key.protocol == TCP, duration, peak)
    };
    FlowReport {
        protocol: match flow.key.protocol {
            TCP => "tcp".into(),
            UDP => "udp".into(),
            other => other.to_string(),
        },
        from: end(flow, from),
        to: end(flow, to),
        start_s: elapsed(analysis.first.unwrap_or_default(), flow.first).as_secs_f64(),
        duration_s: duration.as_secs_f64(),
        captured_at: flow.side(),
        path_rtt_ms: flow.round_trip().map(Span::as_millis_f64),
        there: of(from),
        back: of(to),
    }
}

/// An end as text: its address, and its port if its protocol has any.
fn end(flow: &Flow, end: usize) -> String {
    let address: IpAddr = flow.key.addresses[end];
    match flow.key.protocol {
        TCP | UDP => SocketAddr::new(address, flow.key.ports[end]).to_string(),
        _ => address.to_string(),
    }
}

fn direction(direction: &Direction, is_tcp: bool, duration: Span, peak: Option<Rate>) -> DirectionReport {
    let rate = Rate::from_bytes_in(Bytes::new(direction.ip_bytes), duration).mbit_per_sec();
    let ecn = CODEPOINTS.map(|codepoint| (codepoint.name(), direction.ecn[codepoint as usize]));
    DirectionReport {
        packets: direction.packets,
        ip_bytes: direction.ip_bytes,
        data_packets: direction.data_packets,
        segments: direction.segments,
        payload_bytes: direction.payload,
        rate_mbps: (!duration.is_zero()).then_some(rate),
        peak_rate_mbps: peak.map(Rate::mbit_per_sec),
        ecn: ecn.into_iter().filter(|(_, count)| *count > 0).collect(),
        tcp: is_tcp.then(|| tcp(direction)),
    }
}

fn tcp(direction: &Direction) -> TcpReport {
    let (missed_bytes, missed_packets) = direction.missed();
    TcpReport {
        retransmissions: direction.retransmissions(),
        retransmissions_seen_twice: direction.late.repeated,
        retransmissions_seen_once: direction.late.filling,
        retransmitted_bytes: direction.late.bytes,
        spurious_retransmissions: direction.spurious(),
        reordered: direction.late.reordered,
        copies: direction.late.copies,
        syn_retransmissions: direction.syn_repeats,
        keepalives: direction.keepalives,
        marks_echoed: direction.echoed_marks,
        missed_bytes,
        missed_packets,
        unrepaired_bytes: direction.unrepaired(),
        implausible: direction.implausible,
        rtt_ms: Times::of(&direction.rtt().histogram()),
    }
}
