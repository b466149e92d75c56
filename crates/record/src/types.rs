//! The record types: what an engine writes while it runs. Counters are those of one sample period, not sums since the
//! start, so that any stretch of time can be cut out afterwards.
//!
//! All samples of one period carry the same `at`, its end. What is read back from disk has the same types, with histograms
//! [packed](crate::PackedHistogram) and names owned.
//!
//! Arrays of four are indexed by ECN codepoint ([`weir_base::CODEPOINTS`]), as it was when the packet arrived at the queue.

use std::ops::Deref;
use weir_base::{Bytes, Ecn, Histogram, Rate, Span, Time};
use weir_fabric::{FlowCounters, LinkCounters, PacketEvent};

/// What a link and its queue did in one sample period. Sojourn runs from arrival at the queue to the start of transmission.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkSample {
    /// End of the period.
    pub at: Time,
    /// Index of the link in the plan.
    pub link: u32,
    /// What was counted in it.
    pub counters: LinkCounters,
    /// Packets in the queue at the end of the period.
    pub backlog_packets: u32,
    /// Their bytes.
    pub backlog_bytes: Bytes,
}

impl LinkSample {
    /// Makes this the sample of one long period that ends with `later`: counters add up, the backlog is the later one.
    pub fn merge(&mut self, later: &LinkSample) {
        self.counters.merge(&later.counters);
        let counters = self.counters;
        *self = LinkSample { counters, ..later.clone() };
    }

    /// Packets whose fate at the queue was known in the period, by codepoint: they left it or were dropped. Shares of
    /// packets are of these, since those that arrived may be dropped or leave in another period.
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

/// Sojourn times of the packets of one codepoint whose transmission began in one period.
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

/// What one flow did in one period, seen by the taps at both host edges and by the receiving application. A period without a sample
/// of a flow is one in which nothing happened to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowSample {
    /// End of the period.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// What the taps counted in it.
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

/// The sending transport's own state at one instant: exact in the simulator, `tcp_info` live.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransportSample {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments; none before the first loss.
    pub ssthresh: Option<f64>,
    /// Segments in flight.
    pub in_flight: f64,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Smallest RTT that the transport knows of.
    pub min_rtt: Span,
    /// Retransmission timeout.
    pub rto: Span,
    /// Pacing rate, where there is one.
    pub pacing_rate: Option<Rate>,
    /// Delivery rate that the transport measured.
    pub delivery_rate: Option<Rate>,
    /// Segments retransmitted since the start.
    pub retransmissions: u64,
    /// Retransmission timeouts since the start, where known.
    pub timeouts: Option<u64>,
}

/// A value of the internal state of a queue, a controller or a station.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSample<N> {
    /// When.
    pub at: Time,
    /// Whose.
    pub of: Component,
    /// Its name, with the unit.
    pub name: N,
    /// Its value.
    pub value: f64,
}

/// Whose state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The queue of the link of this index.
    Queue(u32),
    /// The controller of the flow of this number.
    Controller(u32),
    /// The station of this index.
    Station(u32),
}

/// Something that happened to a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowEvent {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// What.
    pub kind: FlowEventKind,
}

/// What happened to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowEventKind {
    /// The application asked for the connection, or began to send datagrams.
    Started,
    /// The connection was established.
    Opened,
    /// The receiving application has read all that was sent, and the sender had closed.
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

/// A piece of an application's work that has an end: a request and its answer, a media frame, or an echo request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// When its fate was known: when the last byte was read, or when it was given up.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// What it was.
    pub kind: MessageKind,
    /// Its number in the flow, from 0.
    pub number: u64,
    /// What has come of it.
    pub fate: MessageFate,
    /// How long it took, from the request's first byte or the frame's due time; none when it never ended.
    pub took: Option<Span>,
}

/// What a message was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageKind {
    /// A request and its answer.
    Request,
    /// A media frame.
    Frame,
    /// An echo request and its answer.
    Echo,
    /// A flow's frame of an ensemble, from the return of its write to its having been read.
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

/// What has come of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageFate {
    /// It ended, in time where it had a deadline.
    Done,
    /// It ended after its deadline.
    Late,
    /// It never did.
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
    /// What happened to it.
    pub fate: PacketEvent,
    /// IP length in bytes.
    pub length: u32,
    /// Codepoint on arrival at the queue.
    pub class: Ecn,
    /// Time since its arrival at the queue.
    pub sojourn: Span,
    /// TCP sequence number of its first payload byte (32 bits, as on the wire), where it is TCP.
    pub sequence: Option<u32>,
}

/// Takes an engine's records, in the order of their times. Errors are kept and told at the end.
pub trait Recorder {
    /// A link's counters of one period.
    fn link(&mut self, sample: &LinkSample);
    /// Sojourn times of one class in one period; called only when there were any.
    fn delay(&mut self, sample: &DelaySample);
    /// A flow's counters of one period.
    fn flow(&mut self, sample: &FlowSample);
    /// A group's RTTs in one period; called only when there were any.
    fn rtt(&mut self, sample: &RttSample);
    /// A transport's state.
    fn transport(&mut self, sample: &TransportSample);
    /// The internal state of a queue, a controller or a station.
    fn state(&mut self, sample: &StateSample<&str>);
    /// Something that happened to a flow.
    fn event(&mut self, event: &FlowEvent);
    /// A request was answered, or a frame's fate is known.
    fn message(&mut self, message: &Message);
    /// A packet at a link; called only when the run asks for packets.
    fn packet(&mut self, packet: &PacketRecord);
}
