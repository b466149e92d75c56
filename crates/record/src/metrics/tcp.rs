//! Metrics of the senders: RTTs, windows, retransmissions, timeouts.

use super::value::{Distribution, Value, percent, ratio};
use super::view::{FlowView, Total, merged};
use super::{Column, Domain, Flows, Level, Metric, Reduction, Zeros};
use std::borrow::Cow;
use weir_base::{Histogram, Span};

const FLOWS: &[Level] = &[Level::Run, Level::Group, Level::Flow];
const FLOW: &[Level] = &[Level::Flow];
const TAP: &str = "host-edge tap reading TCP headers; Karn and Partridge 1987 (originals only)";
const RETRANSMITTED: &str = "RFC 4898 (tcpEStatsPerfSegsRetrans), counted by the host-edge tap reading TCP headers; of CP-RUDP and SLIQ, the transport's own count";

impl Flows<'_> {
    /// Retransmissions, and the packets that they are among, of the flows whose retransmissions are known. `None` if those of no
    /// flow are.
    fn retransmitted(&self) -> Option<(u64, u64)> {
        let each = self.each().filter_map(|flow| Some((flow.retransmitted()?, flow.sum.sent_packets)));
        each.reduce(|sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// The growth of a count of the transports in the window, of the flows whose count is known.
    fn growth(&self, count: fn(&FlowView) -> Total) -> Value {
        Value::from(self.each().filter_map(|flow| count(flow).grown()).reduce(u64::saturating_add))
    }

    /// The groups of these flows, ascending.
    pub(super) fn groups(&self) -> Vec<u32> {
        let mut groups: Vec<u32> =
            self.members.iter().map(|&flow| self.view.info.flows[flow].group).collect();
        groups.dedup();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// RTTs of these flows' groups.
    pub(crate) fn rtts(&self) -> Cow<'_, Histogram> {
        merged(self.groups().into_iter().filter_map(|group| self.view.rtts.get(group as usize)))
    }

    /// The smallest or largest RTT of the flows that have one, in milliseconds.
    fn extreme_rtt(&self, of: impl Fn(&crate::FlowSample) -> Span, better: fn(Span, Span) -> Span) -> Value {
        let seen = self.each().filter(|flow| flow.sum.rtt_count > 0).map(|flow| of(&flow.sum));
        Value::from(seen.reduce(better).map(Span::as_millis_f64))
    }
}

/// The least propagation delay of a group's path, both ways, in milliseconds.
fn base_rtt(f: &Flows<'_>) -> Option<f64> {
    let group = f.view.info.flows[*f.members.first()?].group;
    Some(f.view.info.groups.get(group as usize)?.route.rtt().as_millis_f64())
}

family! {
    RTT {
        name: "rtt_ms",
        title: "Round-trip time",
        unit: "ms",
        of: &[Level::Run, Level::Group],
        definition: "Time from a data segment's departure from the sending host to the arrival of its acknowledgement there, of segments that were not retransmitted; percentiles are within 0.8 %.",
        source: TAP,
        columns: &[Column::new(2, "rtt", "RTT")],
        reduction: Reduction::Rtts,
    }

    RTT_DEVIATION {
        name: "rtt_deviation_ms",
        title: "Deviation of round-trip times",
        unit: "ms",
        of: &[Level::Run, Level::Group],
        definition: "Standard deviation of the round-trip times (see rtt_ms), within 0.8 %.",
        source: TAP,
        reduction: Reduction::Flows(|f| Value::from(f.rtts().deviation().map(Span::as_millis_f64))),
    }

    RTT_BASE {
        name: "rtt_base_ms",
        title: "Base round-trip time",
        unit: "ms",
        of: &[Level::Group],
        definition: "Propagation delay of the group's path there and back; if a schedule changes delays, the shortest at any time.",
        source: "the lab's network",
        reduction: Reduction::Flows(|f| Value::from(base_rtt(f))),
    }

    RTT_ABOVE_BASE {
        name: "rtt_above_base_ms",
        title: "Round-trip time above the base",
        unit: "ms",
        of: &[Level::Group],
        definition: "Round-trip time minus the group's base RTT: queues, serialisation and hosts. If a schedule changes delays, the base is the shortest at any time.",
        source: "Steen 2017 (DualPI2 thesis), section 6.2: actual sender RTT, base subtracted",
        reduction: Reduction::Flows(|f| {
            let rtts = base_rtt(f).zip(Distribution::of_millis(&f.rtts()));
            Value::from(rtts.map(|(base, rtts)| rtts.map(|rtt| rtt - base)))
        }),
    }

    RTT_MEAN {
        name: "rtt_mean_ms",
        title: "Mean round-trip time",
        unit: "ms",
        of: FLOW,
        definition: "Exact mean of the flow's round-trip times, of segments that were not retransmitted.",
        source: TAP,
        reduction: Reduction::Counts(|c| Value::from(ratio(c.sum.rtt_sum as f64 / 1e6, c.sum.rtt_count as f64))),
    }

    RTT_MIN {
        name: "rtt_min_ms",
        title: "Smallest round-trip time",
        unit: "ms",
        of: FLOW,
        definition: "Smallest of the flow's round-trip times, of segments that were not retransmitted.",
        source: TAP,
        reduction: Reduction::Flows(|f| f.extreme_rtt(|s| s.rtt_min, Span::min)),
    }

    RTT_MAX {
        name: "rtt_max_ms",
        title: "Largest round-trip time",
        unit: "ms",
        of: FLOW,
        definition: "Largest of the flow's round-trip times, of segments that were not retransmitted.",
        source: TAP,
        reduction: Reduction::Flows(|f| f.extreme_rtt(|s| s.rtt_max, Span::max)),
    }

    CWND {
        name: "cwnd_segments",
        title: "Congestion window",
        unit: "segments",
        of: &[Level::Group, Level::Flow],
        definition: "Mean over time of the sender's congestion window: each sample counts for the time since the sample before. Of a group, the mean over its flows.",
        source: "the transport's own state (live: tcp_info)",
        reduction: Reduction::Windows,
    }

    RETRANSMISSIONS {
        name: "retransmissions",
        title: "Retransmissions",
        unit: "segments",
        of: FLOWS,
        definition: "Retransmitted data segments or packets that left the sending host. 0 for transports that never retransmit data (UDP, CP-UDP, TFRC, RAP). Of a command, those of its TCP connections; undefined without any.",
        source: RETRANSMITTED,
        reduction: Reduction::Flows(|f| Value::from(f.retransmitted().map(|(retransmitted, _)| retransmitted))),
        curve: Some(Reduction::Counts(|c| Value::Count(c.sum.retransmitted))),
    }

    RETRANSMISSION_PERCENT {
        name: "retransmission_percent",
        title: "Retransmitted share",
        unit: "%",
        of: FLOWS,
        definition: "Retransmitted data packets over all data packets that left the sending host, of flows whose retransmissions are known. With transports other than TCP, over all packets that left. A packet that is handed over and has not left its host counts when it leaves.",
        source: RETRANSMITTED,
        domain: Domain::Percent,
        columns: &[Column::new(3, "retrans", "retransmitted").zeros(Zeros::LeftOut)],
        reduction: Reduction::Flows(|f| {
            Value::from(f.retransmitted().and_then(|(retransmitted, sent)| percent(retransmitted, sent)))
        }),
    }

    REFUSALS {
        name: "refusals",
        title: "Refused by the card",
        unit: "times",
        of: FLOWS,
        definition: "Number of times that the sending host's card had no room for data. The data stay unsent in the host and are not lost.",
        source: "Linux net/ipv4/tcp_output.c (NET_XMIT_DROP), counted where the host hands packets to its card",
        reduction: Reduction::Counts(|c| Value::Count(c.sum.refused)),
    }

    TIMEOUTS {
        name: "timeouts",
        title: "Timeouts",
        unit: "",
        of: FLOWS,
        definition: "Number of times that the retransmission timer expired in the window, of flows whose transport reports it; undefined if none does.",
        source: "RFC 6298, section 5; the transport's own count (live: tcp_info)",
        reduction: Reduction::Flows(|f| f.growth(|flow| flow.timeouts)),
    }

    SPURIOUS_RETRANSMISSIONS {
        name: "spurious_retransmissions",
        title: "Spurious retransmissions",
        unit: "",
        of: FLOWS,
        definition: "Number of segments retransmitted though they had arrived, as the receiver reported by DSACK in the window, of flows whose transport is told of them; undefined if none is.",
        source: "RFC 2883; the transport's own count (live: tcpi_dsack_dups)",
        reduction: Reduction::Flows(|f| f.growth(|flow| flow.spurious)),
    }

    CE_RECEIVED {
        name: "ce_received_percent",
        title: "Marked on arrival",
        unit: "%",
        of: FLOWS,
        definition: "Data packets that reached the receiving host with CE, over all data packets that reached it.",
        source: "RFC 3168, section 5; counted by the host-edge tap",
        domain: Domain::Percent,
        reduction: Reduction::Counts(|c| Value::from(percent(c.sum.received_ce, c.sum.received_packets))),
    }
}
