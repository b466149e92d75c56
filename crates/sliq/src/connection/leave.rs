//! Packets that leave a connection: control packets first, then retransmissions, then new data.

use super::{Connection, HIGH_PER, Left, State, micros};
use crate::due;
use crate::flight::{Flight, Leave};
use crate::loss::{Content, Fate, Record};
use crate::send::{Item, Outgoing};
use crate::wire::{CONNECTION, Frame, Header, Kind, MARKS_FRAME, PADDING_HEADER, PART_HEADER};
use weir_base::{Ecn, Span, Time};
use weir_endpoint::Datagram;

/// An acknowledgement that is due waits for a data packet at most this long: the time of a full packet at 1.2 Mbit/s.
const RIDE: Span = Span::from_millis(10);
/// Where the window is full, it waits for this part of the round trip.
const PATIENCE: u64 = 8;

impl Connection {
    fn begin(&mut self, kind: Kind, now: Time) {
        self.head.clear();
        let header =
            Header { kind, connection: self.id, number: self.log.next() as u32, timestamp: micros(now) };
        header.write(&mut self.head);
    }

    /// The record of a packet that leaves with this content. The caller fills in what the controller needs.
    fn leave(&mut self, content: Content, now: Time) -> Record {
        let fate = if content == Content::Nothing { Fate::Arrived } else { Fate::Out };
        Record {
            at: now,
            content,
            fate,
            owner: 0,
            bytes: 0,
            end: 0,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited: true,
        }
    }

    fn put(&mut self, content: Content, zeros: u32, into: &mut Datagram, now: Time) {
        let record = self.leave(content, now);
        self.log.push(record);
        if content != Content::Nothing && self.timeout == Time::NEVER {
            self.timeout = now + self.timeout_after();
        }
        self.hand(zeros, into);
    }

    /// Hands over the packet in `head`, followed by this many zeros. The two buffers change places, so nothing is copied.
    fn hand(&mut self, zeros: u32, into: &mut Datagram) {
        std::mem::swap(&mut into.head, &mut self.head);
        into.zeros = zeros;
    }

    /// Writes the frames of an acknowledgement behind the header of the packet that leaves.
    fn acknowledge(&mut self, now: Time) {
        let before = self.head.len();
        if let Some(marks) = self.marks.tell() {
            Frame::Marks(marks).write(&mut self.head);
        }
        if let Some(ack) = self.acks.tell(now) {
            Frame::Ack(ack).write(&mut self.head);
        }
        self.left.acknowledgement = (self.head.len() - before) as u32;
    }

    /// Whether an acknowledgement is due that waits for a data packet.
    pub(super) fn wants_ride(&self, now: Time) -> bool {
        self.may_ride() && self.acks.may_ride(now)
    }

    /// Whether data packets may take acknowledgements along: nothing else of the connection goes first.
    fn may_ride(&self) -> bool {
        let is_plain = self.state == State::Open && !self.outage.is_on();
        let is_first = self.accept || self.greets || self.goodbye.is_some() || self.challenged.is_some();
        is_plain && !is_first
    }

    /// No data packet has taken the acknowledgement that is due. It waits for the one that the pacer lets go next, or for an acknowledgement
    /// that opens the window: for a part of the round trip, since the peer's window waits too.
    pub(super) fn missed(&mut self, now: Time) {
        let patience = RIDE.min(self.rtt.smoothed().unwrap_or(Span::ZERO) / PATIENCE);
        let waits =
            self.log.out() > 0 && self.outgoing.values().any(|stream| stream.has_again() || stream.has_new());
        if self.pace > now && self.pace <= now + RIDE {
            self.acks.put_off(self.pace);
        } else if waits && !patience.is_zero() {
            self.acks.put_off(now + patience);
        } else {
            self.acks.go_alone();
        }
    }

    /// Writes the connection's next control packet. Returns `false` if none is due.
    pub(super) fn control(&mut self, into: &mut Datagram, now: Time) -> bool {
        self.left = Left::default();
        if let Some(reason) = self.goodbye.take() {
            self.begin(Kind::Within, now);
            Frame::Close { reason }.write(&mut self.head);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if self.state == State::Opening {
            if now < self.opening.due() {
                return false;
            }
            if self.opening.is_over(now) {
                self.fail(None);
                return false;
            }
            self.opening.send(now);
            self.begin(Kind::Open, now);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if self.state != State::Open {
            return false;
        }
        if let Some(number) = self.challenged.take() {
            self.begin(Kind::Within, now);
            Frame::Response(number).write(&mut self.head);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if std::mem::take(&mut self.greets) {
            self.begin(Kind::Within, now);
            Frame::Ping.write(&mut self.head);
            self.put(Content::Control, 0, into, now);
            return true;
        }
        if self.accept || now >= self.acks.due() {
            let kind = if std::mem::take(&mut self.accept) { Kind::Accept } else { Kind::Within };
            self.begin(kind, now);
            self.acknowledge(now);
            self.left.acknowledgement = self.head.len() as u32;
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if self.outage.is_on() {
            if now < self.probe {
                return false;
            }
            self.probe = now + self.outage.gap(self.rtt.smoothed().unwrap_or(Span::ZERO), now);
            self.begin(Kind::Within, now);
            Frame::Ping.write(&mut self.head);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        let forward = self.outgoing.iter_mut().find_map(|(id, stream)| {
            if stream.has_again() || stream.has_new() {
                None
            } else {
                stream.take_forward().map(|base| (*id, base))
            }
        });
        if let Some((stream, base)) = forward {
            self.begin(Kind::Within, now);
            Frame::Forward { stream, base }.write(&mut self.head);
            self.put(Content::Control, 0, into, now);
            return true;
        }
        if let Some(micros) = self.round_trip(now) {
            self.begin(Kind::Within, now);
            Frame::RoundTrip(micros).write(&mut self.head);
            self.put(Content::Control, 0, into, now);
            return true;
        }
        if self.credits(now) {
            self.put(Content::Control, 0, into, now);
            return true;
        }
        if self.fresh {
            self.begin_train(now);
        }
        if self.measure(into, now) {
            return true;
        }
        if now >= self.searches_at() && self.probe_mtu(into, now) {
            return true;
        }
        if now >= self.asks_at() {
            self.asked = now;
            self.begin(Kind::Within, now);
            Frame::Ping.write(&mut self.head);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        false
    }

    /// Writes a packet longer than those known to pass, if a probe of the path's MTU is due.
    fn probe_mtu(&mut self, into: &mut Datagram, now: Time) -> bool {
        let (number, timeout) = (self.log.next(), self.rtt.timeout());
        let Some(mtu) = &mut self.mtu else { return false };
        let Some(size) = mtu.on_time(now) else { return false };
        mtu.sent(number, size, timeout, now);
        self.filler(size, into, now);
        true
    }

    /// Writes the next packet of the pairs that measure the path's rate, if one is due.
    fn measure(&mut self, into: &mut Datagram, now: Time) -> bool {
        let number = self.log.next();
        let Some(train) = self.train.as_mut().filter(|train| train.sends(now)) else { return false };
        let packet = train.packet();
        train.sent(number, micros(now), now);
        self.filler(packet, into, now);
        true
    }

    /// Writes a packet of padding with `size` bytes of UDP payload, which is acknowledged at once. No stream or controller is told of its
    /// fate.
    fn filler(&mut self, size: u32, into: &mut Datagram, now: Time) {
        self.begin(Kind::Within, now);
        Frame::Ping.write(&mut self.head);
        let length = size - self.tag - (self.head.len() + PADDING_HEADER) as u32;
        Frame::Padding { length: length as u16 }.write(&mut self.head);
        self.put(Content::Nothing, length, into, now);
    }

    /// Writes a challenge: a packet with a number that the peer is to send back from the address to which this packet goes.
    #[cfg(feature = "seal")]
    pub(crate) fn challenge(&mut self, number: u64, into: &mut Datagram, now: Time) {
        self.begin(Kind::Within, now);
        Frame::Challenge(number).write(&mut self.head);
        self.put(Content::Nothing, 0, into, now);
    }

    /// The smallest round trip in microseconds, if the peer is to be told: the receiver of a stream with a deadline needs it to find what
    /// is late.
    fn round_trip(&mut self, now: Time) -> Option<u32> {
        let planned = self.outgoing.values().any(|stream| stream.is_planned() && !stream.is_settled());
        self.teller.tell(self.delay.smallest_rtt().filter(|_| planned)?, now)
    }

    /// Writes a packet that tells the peer how many segments it may send. Returns `false` if there is nothing to tell.
    fn credits(&mut self, now: Time) -> bool {
        let streams = self.incoming.iter_mut();
        let streams =
            streams.filter_map(|(id, stream)| stream.granted().tell().map(|segments| (*id, segments)));
        let all = self.granted.tell().map(|segments| (CONNECTION, segments));
        let credits: Vec<(u8, u32)> = streams.chain(all).collect();
        if credits.is_empty() {
            return false;
        }
        self.begin(Kind::Within, now);
        for (stream, segments) in credits {
            Frame::Credit { stream, segments }.write(&mut self.head);
        }
        true
    }

    /// The index of the controller that takes the next packet; `None` if none may send now.
    fn owner(&mut self, now: Time) -> Option<usize> {
        for (owner, flight) in self.flights.iter_mut().enumerate() {
            match flight.leave(now) {
                Leave::Now => return Some(owner),
                Leave::At(at) => self.pace = self.pace.min(at),
                Leave::Window => {}
            }
        }
        None
    }

    /// Writes the next data packet, if a controller takes it: retransmissions before new data. With `of`, only a packet of this stream.
    /// Returns its codepoint.
    pub(super) fn data(&mut self, into: &mut Datagram, of: Option<u8>, now: Time) -> Option<Ecn> {
        self.latest = now;
        if self.state != State::Open || self.outage.is_on() {
            self.pace = Time::NEVER;
            return None;
        }
        self.outgoing.values_mut().for_each(|stream| stream.drop_late(now));
        let again = self.schedule.next(&self.outgoing, Outgoing::has_again);
        let room = self.allowed.has_room();
        let new = || self.schedule.next(&self.outgoing, |stream| room && stream.has_new());
        let Some(id) = again.or_else(new) else {
            self.pace = Time::NEVER;
            self.flights.iter_mut().for_each(Flight::is_idle);
            return None;
        };
        if of.is_some_and(|of| of != id) {
            return None;
        }
        self.pace = Time::NEVER;
        let owner = self.owner(now)?;
        let item = self.outgoing.get_mut(&id).and_then(|stream| stream.next(now))?;
        self.begin(Kind::Within, now);
        self.left = Left { stream: Some(id), again: item.is_again(), acknowledgement: 0 };
        if self.may_ride() && self.acks.rides(now) {
            let frames = item.frame() + self.acks.most_bytes() + MARKS_FRAME as u32;
            if frames <= self.payload + PART_HEADER as u32 {
                self.acknowledge(now);
            } else {
                self.acks.go_alone();
            }
        }
        let stream = self.outgoing.get_mut(&id)?;
        self.schedule.served(id, stream);
        let (content, length, head, again) = match item {
            Item::Data { mut data, again, round } => {
                data.flags.prompt = stream.is_planned() || self.per.rate() >= HIGH_PER;
                data.due = data.due.map(|due| due::on_wire(due, now));
                Frame::Data(data).write(&mut self.head);
                let content = Content::Segment { stream: id, sequence: data.sequence, round };
                (content, data.length, stream.head(data.sequence), again)
            }
            Item::Part(mut part, index) => {
                part.segment.due = part.segment.due.map(|due| due::on_wire(due, now));
                Frame::Part(part).write(&mut self.head);
                let sequence = part.segment.sequence;
                let head = stream.head(sequence).get(part.offset.into()..).unwrap_or_default();
                let head = &head[..head.len().min(part.length.into())];
                (Content::Part { stream: id, sequence, part: index }, part.length, head, true)
            }
            Item::Repair(repair, round) => {
                Frame::Repair(repair).write(&mut self.head);
                stream.repair(&repair, &mut self.repair);
                let content = Content::Repair { stream: id, start: repair.start, round };
                (content, repair.length, &self.repair[..], false)
            }
        };
        self.head.extend_from_slice(head);
        let zeros = u32::from(length) - head.len() as u32;
        let mut record = self.leave(content, now);
        (record.owner, record.bytes) = (owner as u8, u32::from(length).min(self.payload));
        if !again && matches!(content, Content::Segment { .. }) {
            self.allowed.take();
        }
        self.flights[owner].on_sent(&mut record, again, now);
        self.log.push(record);
        if self.timeout == Time::NEVER {
            self.timeout = now + self.timeout_after();
        }
        self.hand(zeros, into);
        Some(self.flights[owner].codepoint)
    }
}
