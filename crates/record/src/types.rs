//! The record types, which an engine writes while it runs. Counters are those of one sample period, not sums since the
//! start, so that any part of a run can be cut out afterwards.
//!
//! All samples of one period carry the same `at`, its end. Records that are read from disk have the same types, with
//! histograms [packed](crate::PackedHistogram) and names owned.
//!
//! Arrays of four are indexed by ECN codepoint ([`weir_base::CODEPOINTS`]), as it was when the packet arrived at the queue.

use std::ops::Deref;
use weir_base::{Bytes, Ecn, Histogram, Rate, Span, Time};
use weir_fabric::{FlowCounters, LinkCounters, PacketEvent};

/// Counters of a link and its queue in one sample period.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkSample {
    /// End of the period.
    pub at: Time,
    /// Index of the link in the plan.
    pub link: u32,
    /// The counters of the period.
    pub counters: LinkCounters,
    /// Packets in the queue at the end of the period.
    pub backlog_packets: u32,
    /// Bytes in the queue at the end of the period.
    pub backlog_bytes: Bytes,
}

impl LinkSample {
    /// Makes this the sample of one long period that ends with `later`: counters add up, the backlog is the later one.
    pub fn merge(&mut self, later: &LinkSample) {
        self.counters.merge(&later.counters);
        let counters = self.counters;
        *self = LinkSample { counters, ..later.clone() };
    }

    /// Packets that left the queue or were dropped in the period, by codepoint. Shares of packets refer to these, because packets
    /// that arrive in one period may leave or be dropped in another.
    pub fn settled(&self) -> [u64; 4] {
        std::array::from_fn(|class| self.dropped[class].saturating_add(self.sent[class]))
    }
}

impl Deref for LinkSample {
    type Target = LinkCounters;
    fn deref(&self) -> &LinkCounters {
        &self.counters
    }
}

/// Sojourn times of the packets of one codepoint whose transmission began in one period, from their arrival at the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct DelaySample<H = Histogram> {
    /// End of the period.
    pub at: Time,
    /// Index of the link.
    pub link: u32,
    /// Codepoint on arrival at the queue.
    pub class: Ecn,
    /// The times.
    pub delay: H,
}

/// Counters of one flow in one period, from the taps at both host edges and from the receiving application. A flow without a
/// sample in a period was idle in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowSample {
    /// End of the period.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// The taps' counters of the period.
    pub counters: FlowCounters,
    /// Bytes that the receiving application read.
    pub read_bytes: u64,
}

impl Deref for FlowSample {
    type Target = FlowCounters;
    fn deref(&self) -> &FlowCounters {
        &self.counters
    }
}

impl FlowSample {
    /// Makes this the sample of one long period that ends with `later`.
    pub fn merge(&mut self, later: &FlowSample) {
        self.counters.merge(&later.counters);
        self.read_bytes = self.read_bytes.saturating_add(later.read_bytes);
        (self.at, self.flow) = (later.at, later.flow);
    }
}

/// RTTs of all flows of a group in one period.
#[derive(Debug, Clone, PartialEq)]
pub struct RttSample<H = Histogram> {
    /// End of the period.
    pub at: Time,
    /// Index of the group.
    pub group: u32,
    /// The times.
    pub rtt: H,
}

/// What an overlay did in one period with the packets of a flow for its receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitSample<H = Histogram> {
    /// End of the period.
    pub at: Time,
    /// Number of the flow.
    pub flow: u32,
    /// Packets that were admitted.
    pub admitted: u64,
    /// Packets that were given back at the receiver's node within their deadline; all of them if they have none.
    pub in_time: u64,
    /// Links between nodes that the packets passed, added up.
    pub links: u64,
    /// The links that each packet passed; a link counts as a millisecond.
    pub hops: H,
    /// The times from the sending host to the receiver's node.
    pub times: H,
    /// What of these times the packets waited in the queues of nodes.
    pub waits: H,
}

/// The sending transport's own state at one instant: exact in the simulator, `tcp_info` live.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransportSample {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<f64>,
    /// Segments in flight.
    pub in_flight: f64,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Smallest RTT that the transport has measured.
    pub min_rtt: Span,
    /// Retransmission timeout.
    pub rto: Span,
    /// Pacing rate; `None` if the transport does not pace.
    pub pacing_rate: Option<Rate>,
    /// Delivery rate that the transport measured, if it did.
    pub delivery_rate: Option<Rate>,
    /// Segments retransmitted since the start.
    pub retransmissions: u64,
    /// Retransmission timeouts since the start; `None` if unknown.
    pub timeouts: Option<u64>,
    /// Segments retransmitted since the start that had arrived, as the receiver reports by DSACK; `None` if unknown.
    pub spurious: Option<u64>,
}

/// A value of the internal state of a queue, a controller or a station.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSample<N> {
    /// When.
    pub at: Time,
    /// The component whose state it is.
    pub of: Component,
    /// Its name, with the unit.
    pub name: N,
    /// Its value.
    pub value: f64,
}

/// A component with internal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The queue of the link of this index.
    Queue(u32),
    /// The controller of the flow of this number.
    Controller(u32),
    /// The station of this index.
    Station(u32),
}

/// An event of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowEvent {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// Its kind.
    pub kind: FlowEventKind,
}

/// The kind of a flow's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowEventKind {
    /// The application asked for the connection, or began to send datagrams.
    Started,
    /// The connection was established.
    Opened,
    /// The sender has closed, and the receiving application has read everything that was sent.
    Completed,
    /// The retransmission timer fired (simulator only).
    Timeout,
    /// Loss recovery began (simulator only).
    Recovery,
    /// A reduction was undone (simulator only).
    Undo,
    /// The connection failed.
    Failed,
}

impl FlowEventKind {
    /// All of them.
    pub const ALL: [FlowEventKind; 7] = [
        FlowEventKind::Started,
        FlowEventKind::Opened,
        FlowEventKind::Completed,
        FlowEventKind::Timeout,
        FlowEventKind::Recovery,
        FlowEventKind::Undo,
        FlowEventKind::Failed,
    ];

    /// Its name in tables and reports.
    pub fn name(self) -> &'static str {
        ["started", "opened", "completed", "timeout", "recovery", "undo", "failed"][self as usize]
    }
}

/// A station has decided something about a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord<N> {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// What decided: the flow's own admission, or a planner.
    pub by: N,
    /// How the flow stands from then on.
    pub standing: N,
    /// The rule, which says what the numbers are.
    pub rule: N,
    /// What was compared.
    pub value: f64,
    /// With what.
    pub bound: f64,
}

/// A unit of an application's traffic: a request and its answer, a media frame, an echo request, or a part of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// When its fate became known: when its last byte was read, or when it was given up.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// Its kind.
    pub kind: MessageKind,
    /// Its number in the flow, from 0.
    pub number: u64,
    /// Its fate.
    pub fate: MessageFate,
    /// How long it took, for example from a request's first byte or a frame's due time; `None` if it never ended.
    pub took: Option<Span>,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageKind {
    /// A request and its answer.
    Request,
    /// A media frame.
    Frame,
    /// An echo request and its answer.
    Echo,
    /// A flow's frame of an ensemble, from the return of its write to the reading of its last byte.
    Part,
    /// The time from the end of a flow's frame at the receiver to the beginning of its next one.
    Stall,
    /// An ensemble, from the end of its first frame at the receivers to that of the last.
    Ensemble,
}

impl MessageKind {
    /// All of them.
    pub const ALL: [MessageKind; 6] = [
        MessageKind::Request,
        MessageKind::Frame,
        MessageKind::Echo,
        MessageKind::Part,
        MessageKind::Stall,
        MessageKind::Ensemble,
    ];

    /// Its name in tables and reports.
    pub fn name(self) -> &'static str {
        ["request", "frame", "echo", "part", "stall", "ensemble"][self as usize]
    }
}

/// The fate of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageFate {
    /// It ended, within its deadline if it had one.
    Done,
    /// It ended after its deadline.
    Late,
    /// It never ended.
    Lost,
}

impl MessageFate {
    /// All of them.
    pub const ALL: [MessageFate; 3] = [MessageFate::Done, MessageFate::Late, MessageFate::Lost];

    /// Its name in tables and reports.
    pub fn name(self) -> &'static str {
        ["done", "late", "lost"][self as usize]
    }
}

/// One packet at one link, recorded on request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketRecord {
    /// When.
    pub at: Time,
    /// Index of the link.
    pub link: u32,
    /// The flow, or `u32::MAX` for a packet that belongs to none.
    pub flow: u32,
    /// The event at the link.
    pub fate: PacketEvent,
    /// IP length in bytes.
    pub length: u32,
    /// Codepoint on arrival at the queue.
    pub class: Ecn,
    /// Time since its arrival at the queue.
    pub sojourn: Span,
    /// TCP sequence number of its first payload byte (32 bits, as on the wire); `None` if it is not TCP.
    pub sequence: Option<u32>,
}

/// Takes an engine's records in the order of their times. Errors are kept and returned at the end.
pub trait Recorder {
    /// A link's counters of one period.
    fn link(&mut self, sample: &LinkSample);
    /// Sojourn times of one class in one period; called only if there were any.
    fn delay(&mut self, sample: &DelaySample);
    /// A flow's counters of one period.
    fn flow(&mut self, sample: &FlowSample);
    /// A group's RTTs in one period; called only if there were any.
    fn rtt(&mut self, sample: &RttSample);
    /// What an overlay did with a flow's packets in one period; called only if it did anything.
    fn transit(&mut self, sample: &TransitSample) {
        let _ = sample;
    }
    /// A transport's state.
    fn transport(&mut self, sample: &TransportSample);
    /// The internal state of a queue, a controller or a station.
    fn state(&mut self, sample: &StateSample<&str>);
    /// An event of a flow.
    fn event(&mut self, event: &FlowEvent);
    /// What a station has decided about a flow.
    fn decision(&mut self, decision: &DecisionRecord<&str>) {
        let _ = decision;
    }
    /// A message whose fate has become known.
    fn message(&mut self, message: &Message);
    /// A packet at a link; called only if the run records packets.
    fn packet(&mut self, packet: &PacketRecord);
}
