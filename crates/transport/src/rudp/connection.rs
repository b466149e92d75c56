//! A connection: handshake, pacing, and both halves behind the [`Endpoint`] trait.

use super::content::Content;
use super::pacer::Pacer;
use super::receiver::Receiver;
use super::sender::{Holes, Sender};
use super::wire::{DATA_HEADER, Header};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_coord::guide::Guide;
use weir_coord::header::LONGEST as CP_HEADER;
use weir_coord::scheme::Own;
use weir_endpoint::{Body, Datagram};
use weir_endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};

/// A UDP header (RFC 768).
const UDP_HEADER: u32 = 8;
/// Timeout after which a SYN is retransmitted.
const SYN_TIMEOUT: Span = Span::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not opened, and no SYN has arrived.
    Closed,
    /// A SYN has been or will be sent.
    Opening,
    Open,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    guide: Guide,
    sender: Sender,
    receiver: Receiver,
    state: State,
    ecn: Ecn,
    /// Length of a full IP packet and of its IP header.
    packet: u32,
    ip_header: u32,
    /// When the SYN is sent or retransmitted.
    syn: Time,
    /// Pending answer to the peer's SYN or SYN-ACK.
    answer: Option<Header>,
    pacer: Pacer,
    /// Size of the frame that the application writes, and its bytes that are not written yet.
    frame: u64,
    unwritten: u64,
    /// The bytes of the stream; `None` if the connection carries only their number.
    content: Option<Content>,
    /// The head of the packet that leaves.
    head: Vec<u8>,
}

impl Connection {
    /// An end that sends IP packets of at most this length.
    pub(crate) fn new(guide: Guide, pacer: Pacer, packet: u32, ip_header: u32, ecn: Ecn) -> Connection {
        // Room for the longer CP header, since the peer may use either version.
        let headers = ip_header + UDP_HEADER + DATA_HEADER as u32;
        let cp = if guide.header_length() > 0 { CP_HEADER as u32 } else { 0 };
        Connection {
            guide,
            sender: Sender::new(packet.saturating_sub(headers + cp).max(1)),
            receiver: Receiver::default(),
            state: State::Closed,
            ecn,
            packet,
            ip_header,
            syn: Time::NEVER,
            answer: None,
            pacer,
            frame: 0,
            unwritten: 0,
            content: None,
            head: Vec::new(),
        }
    }

    /// The same connection for a stream of real bytes, in writes and reads.
    pub(crate) fn carrying(self) -> Connection {
        Connection { content: Some(Content::default()), ..self }
    }

    /// The same connection with each message beginning in a packet of its own.
    pub(crate) fn with_messages_apart(self) -> Connection {
        Connection { sender: self.sender.with_messages_apart(), ..self }
    }

    /// The same, with this use of the numbers of holes in acknowledgements.
    pub(crate) fn with_holes(self, holes: Holes) -> Connection {
        Connection { sender: self.sender.with_holes(holes), ..self }
    }

    fn own(&self) -> Own {
        Own {
            frame: Bytes::new(self.frame),
            left: Bytes::new(self.unwritten.saturating_add(self.sender.held())),
            urgent: self.guide.is_urgent() && self.unwritten.saturating_add(self.sender.held()) > 0,
        }
    }

    /// Writes a packet with this header and `data` bytes from position `at` of the stream.
    fn put(&mut self, header: Header, at: u64, data: u32, datagram: &mut Datagram, now: Time) {
        let own = self.own();
        self.head.clear();
        self.guide.begin(&own, &mut self.head, now);
        header.write(&mut self.head);
        let length = self.head.len() as u32 + data;
        if let Some(content) = &self.content {
            content.copy(at, data, &mut self.head);
        }
        datagram.set(&self.head, length);
    }

    fn open_now(&mut self) {
        (self.state, self.syn) = (State::Open, Time::NEVER);
    }

    fn threshold(&self) -> u64 {
        self.guide.send_buffer(self.packet, self.sender.rtt()).get()
    }

    /// Full packets in a round trip at the present rate; zero before the first round trip time.
    fn window(&self) -> u64 {
        let bytes = self.sender.rtt().map_or(Bytes::ZERO, |rtt| self.guide.rate().bytes_in(rtt));
        bytes.get().div_ceil(self.packet.into())
    }

    /// Number of packets that may leave together: all but one of a window, since TCP waits for an acknowledgement between them; one
    /// while a lost segment is missing, since TCP's receiver then acknowledges each segment (RFC 5681, section 4.2).
    fn together(&self) -> u64 {
        if self.sender.is_recovering() { 1 } else { self.window().saturating_sub(1) }
    }

    /// The next paced packet, if one is due.
    fn paced(&mut self, datagram: &mut Datagram, now: Time) -> bool {
        if self.state != State::Open || now < self.pacer.due(self.guide.rate()) {
            return false;
        }
        let Some(sent) = self.sender.transmit(now) else { return false };
        let header = if sent.fin {
            Header::Fin { number: sent.number, sequence: sent.sequence }
        } else {
            Header::Data { number: sent.number, sequence: sent.sequence }
        };
        self.put(header, sent.at, sent.length, datagram, now);
        let length = self.ip_header + UDP_HEADER + datagram.payload();
        self.pacer.leaves(length, self.together(), self.guide.rate(), now);
        true
    }
}

impl Endpoint for Connection {
    fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            (self.state, self.syn) = (State::Opening, now);
        }
    }

    fn receive(&mut self, body: &Body, _: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let Some(rest) = self.guide.open(&datagram.head, now) else { return };
        let Some(header) = Header::read(rest) else { return };
        let data = datagram.payload().saturating_sub((datagram.head.len() - rest.len() + DATA_HEADER) as u32);
        match header {
            Header::Syn { number, .. } => {
                self.answer = Some(Header::SynAck { echo: number, ack: 0 });
                self.open_now();
            }
            Header::SynAck { echo, .. } => {
                // The third step of the handshake: it acknowledges nothing.
                self.answer =
                    Some(Header::Ack { echo: echo.wrapping_sub(1), ack: 0, hole: super::wire::NO_HOLE });
                self.open_now();
            }
            Header::Data { number, sequence } if self.state == State::Open => {
                let content = match &self.content {
                    // Only complete packets are accepted.
                    Some(_) => rest.get(DATA_HEADER..).unwrap_or_default(),
                    None => &[],
                };
                self.receiver.arrived(number, sequence, data, content, false);
            }
            Header::Fin { number, sequence } if self.state == State::Open => {
                self.receiver.arrived(number, sequence, 0, &[], true);
            }
            Header::Ack { echo, ack, hole } if self.state == State::Open => {
                self.sender.acknowledged(echo, ack, now);
                self.sender.hole(hole, echo);
                if let Some(content) = &mut self.content {
                    content.forget(self.sender.settled_to());
                }
            }
            Header::Data { .. } | Header::Fin { .. } | Header::Ack { .. } => {}
        }
    }

    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        let datagram = into.datagram_mut();
        let control = if self.syn <= now {
            self.syn = now + SYN_TIMEOUT;
            Some(Header::Syn { number: 0, sequence: 0 })
        } else {
            self.answer.take().or_else(|| self.receiver.ack())
        };
        if let Some(header) = control {
            self.put(header, 0, 0, datagram, now);
            return Some(self.ecn);
        }
        if self.paced(datagram, now) {
            return Some(self.ecn);
        }
        let own = self.own();
        self.head.clear();
        if self.state == State::Open && self.guide.refresh(&own, &mut self.head, now) {
            datagram.set(&self.head, self.head.len() as u32);
            return Some(self.ecn);
        }
        None
    }

    fn next_timer(&self) -> Time {
        let waits = self.state == State::Open && self.sender.has_more();
        let paced = if waits { self.pacer.due(self.guide.rate()) } else { Time::NEVER };
        let guide = self.guide.next_timer(self.state == State::Open);
        self.syn.min(paced).min(guide).min(self.sender.next_timer())
    }

    fn on_timer(&mut self, now: Time) {
        self.guide.on_timer(now);
        self.sender.on_timer(now);
    }

    fn is_quiet(&self) -> bool {
        self.state == State::Open
            && !self.receiver.owes()
            && self.answer.is_none()
            && !self.sender.has_more()
            && self.guide.header_length() == 0
    }

    fn write(&mut self, _: Stream, message: Message<'_>, _: Time) -> u64 {
        let taken = self.sender.write(message.bytes, self.threshold());
        if let Some(content) = &mut self.content {
            content.push(&message.head[..message.head.len().min(taken as usize)]);
        }
        // The application writes the rest of a frame later; only a different length is a new frame.
        if message.bytes != self.unwritten {
            self.frame = message.bytes;
        }
        self.unwritten = message.bytes - taken;
        taken
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        self.receiver.take(&mut |bytes, head| to(Stream(0), Read { bytes, head, due: None }));
    }

    fn close(&mut self, _: Option<Stream>, _: Time) {
        self.sender.close();
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    fn finished(&self) -> bool {
        self.receiver.finished()
    }

    fn all_acknowledged(&self) -> bool {
        self.sender.all_acknowledged()
    }

    fn counts(&self) -> Counts {
        Counts { timeouts: self.sender.timeouts, ..Counts::default() }
    }

    fn retransmitted(&self) -> Option<u64> {
        Some(self.sender.retransmitted)
    }

    fn sample(&self) -> Option<Sample> {
        if self.state != State::Open {
            return None;
        }
        Some(Sample {
            cwnd: self.window() as u32,
            ssthresh: None,
            srtt: self.sender.rtt(),
            min_rtt: None,
            rto: self.sender.patience(),
            in_flight: self.sender.in_flight(),
            retransmitted: self.sender.retransmitted,
            timeouts: self.sender.timeouts,
            spurious: None,
            pacing_rate: Some(self.guide.rate()),
            delivery_rate: None,
            acknowledged: Bytes::new(self.sender.acknowledged),
        })
    }

    fn unsent(&self) -> Bytes {
        Bytes::new(self.sender.waiting())
    }

    fn sending_rate(&self, _: Time) -> Option<Rate> {
        Some(self.guide.rate())
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        self.guide.state(&mut |name, value| report(Part::Controller(0), name, value));
    }
}
