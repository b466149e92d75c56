//! The record types: what an engine writes while it runs. Counters are those of one sample period, not sums since the
//! start, so that any stretch of time can be cut out afterwards.
//!
//! All samples of one period carry the same `at`, its end. What is read back from disk has the same types, with histograms
//! [packed](crate::PackedHistogram) and names owned.
//!
//! Arrays of four are indexed by ECN codepoint ([`weir_base::CODEPOINTS`]), as it was when the packet arrived at the queue.

use weir_base::{Bytes, Ecn, Histogram, Rate, Span, Time};

/// What a link and its queue did in one sample period. Sojourn runs from arrival at the queue to the start of transmission.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkSample {
    /// End of the period.
    pub at: Time,
    /// Index of the link in the plan.
    pub link: u32,
    /// Packets that reached the queue, by codepoint on arrival.
    pub arrived: [u64; 4],
    /// Packets that the queue dropped, by codepoint.
    pub dropped: [u64; 4],
    /// Packets whose transmission began and that the queue had marked CE, by codepoint.
    pub marked: [u64; 4],
    /// Packets whose transmission began, by codepoint on arrival.
    pub sent: [u64; 4],
    /// Bytes sent, overhead included, by codepoint; of a packet that is being sent when the period ends, those sent by then.
    pub sent_bytes: [u64; 4],
    /// Dropped because the queue was full.
    pub dropped_full: u64,
    /// Dropped by the AQM as a congestion signal, or by its policy.
    pub dropped_signal: u64,
    /// Dropped by the AQM although it could have marked them, because it was overloaded.
    pub dropped_overload: u64,
    /// Lost by the link itself, on arrival (scripted) or on the way (random).
    pub lost: u64,
    /// Packets that the link itself did not lose: it put them on their way.
    pub forwarded: u64,
    /// Packets that the link sent twice.
    pub duplicated: u64,
    /// Packets that the link damaged; the host that they reach throws them away.
    pub corrupted: u64,
    /// Nanoseconds of the period in which the link was sending.
    pub busy: Span,
    /// What the link could have sent in the period: what it did send, and at its rate what it could have while it was idle.
    pub capacity: Bytes,
    /// Packets in the queue at the end of the period.
    pub backlog_packets: u32,
    /// Their bytes.
    pub backlog_bytes: Bytes,
}

impl LinkSample {
    /// Makes this the sample of one long period that ends with `later`: counters add up, the backlog is the later one.
    pub fn merge(&mut self, later: &LinkSample) {
        add_four(&mut self.arrived, &later.arrived);
        add_four(&mut self.dropped, &later.dropped);
        add_four(&mut self.marked, &later.marked);
        add_four(&mut self.sent, &later.sent);
        add_four(&mut self.sent_bytes, &later.sent_bytes);
        add(&mut self.dropped_full, later.dropped_full);
        add(&mut self.dropped_signal, later.dropped_signal);
        add(&mut self.dropped_overload, later.dropped_overload);
        add(&mut self.lost, later.lost);
        add(&mut self.forwarded, later.forwarded);
        add(&mut self.duplicated, later.duplicated);
        add(&mut self.corrupted, later.corrupted);
        self.busy += later.busy;
        self.capacity = Bytes::new(self.capacity.get().saturating_add(later.capacity.get()));
        (self.at, self.link) = (later.at, later.link);
        (self.backlog_packets, self.backlog_bytes) = (later.backlog_packets, later.backlog_bytes);
    }

    /// Packets whose fate at the queue was known in the period, by codepoint: they left it or were dropped. Shares of
    /// packets are of these, since those that arrived may be dropped or leave in another period.
    pub fn settled(&self) -> [u64; 4] {
        std::array::from_fn(|class| self.dropped[class].saturating_add(self.sent[class]))
    }
}

fn add(sum: &mut u64, part: u64) {
    *sum = sum.saturating_add(part);
}

fn add_four(sum: &mut [u64; 4], part: &[u64; 4]) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| add(sum, *part));
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

/// What one flow did in one period, seen by the taps at both host edges and by the receiving application.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowSample {
    /// End of the period.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// Data packets that left the sending host.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Of those, segments that had been sent before.
    pub retransmitted: u64,
    /// Times that the sending host's card refused data, which stayed unsent.
    pub refused: u64,
    /// Data packets that reached the receiving host.
    pub received_packets: u64,
    /// Their IP bytes.
    pub received_bytes: u64,
    /// Of those, marked CE.
    pub received_ce: u64,
    /// When the first packet of any kind, a handshake's included, reached the receiving host or left it in the period.
    pub first_packet: Option<Time>,
    /// When the last packet of any kind did.
    pub last_arrival: Option<Time>,
    /// When the last data packet reached the receiving host.
    pub last_data: Option<Time>,
    /// Bytes that the receiving application read.
    pub read_bytes: u64,
    /// RTT samples: segments that were sent once and acknowledged.
    pub rtt_count: u64,
    /// Their sum, in nanoseconds.
    pub rtt_sum: u64,
    /// Smallest of them; zero if there was none.
    pub rtt_min: Span,
    /// Largest of them.
    pub rtt_max: Span,
}

impl FlowSample {
    /// Makes this the sample of one long period that ends with `later`.
    pub fn merge(&mut self, later: &FlowSample) {
        add(&mut self.sent_packets, later.sent_packets);
        add(&mut self.sent_bytes, later.sent_bytes);
        add(&mut self.retransmitted, later.retransmitted);
        add(&mut self.refused, later.refused);
        add(&mut self.received_packets, later.received_packets);
        add(&mut self.received_bytes, later.received_bytes);
        add(&mut self.received_ce, later.received_ce);
        self.first_packet = self.first_packet.or(later.first_packet);
        self.last_arrival = later.last_arrival.or(self.last_arrival);
        self.last_data = later.last_data.or(self.last_data);
        add(&mut self.read_bytes, later.read_bytes);
        if later.rtt_count > 0 {
            self.rtt_min = if self.rtt_count == 0 { later.rtt_min } else { self.rtt_min.min(later.rtt_min) };
            self.rtt_max = self.rtt_max.max(later.rtt_max);
        }
        add(&mut self.rtt_count, later.rtt_count);
        add(&mut self.rtt_sum, later.rtt_sum);
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
    pub fate: PacketFate,
    /// IP length in bytes.
    pub length: u32,
    /// Codepoint on arrival at the queue.
    pub class: Ecn,
    /// Time since its arrival at the queue.
    pub sojourn: Span,
    /// TCP sequence number of its first payload byte (32 bits, as on the wire), where it is TCP.
    pub sequence: Option<u32>,
}

/// What happened to a packet at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketFate {
    /// It reached the queue.
    Arrived,
    /// The queue dropped it.
    Dropped,
    /// The queue marked it.
    Marked,
    /// Its transmission began.
    Sent,
    /// The link lost it.
    Lost,
    /// The link made it of another one, by sending that twice.
    Duplicated,
    /// The link damaged it.
    Corrupted,
}

impl PacketFate {
    /// All of them.
    pub const ALL: [PacketFate; 7] = [
        PacketFate::Arrived,
        PacketFate::Dropped,
        PacketFate::Marked,
        PacketFate::Sent,
        PacketFate::Lost,
        PacketFate::Duplicated,
        PacketFate::Corrupted,
    ];

    /// Its name in tables and reports.
    pub fn name(self) -> &'static str {
        ["arrived", "dropped", "marked", "sent", "lost", "duplicated", "corrupted"][self as usize]
    }
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
