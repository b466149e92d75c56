//! A connection: handshake, acknowledgements, controllers and streams behind the [`Endpoint`] trait.

mod end;

use super::acks::Acks;
use super::aec::Channel;
use super::capacity::Capacity;
use super::delay::Delay;
use super::flight::{Flight, Known, Leave, News};
use super::loss::{Content, Fate, Log, Record};
use super::outage::Outage;
use super::per::Per;
use super::receive::Incoming;
use super::rtt::Rtt;
use super::send::{Item, Outgoing, SYMBOL_HEADER};
use super::wire::{DATA_HEADER, Frame, HEADER, Header, Kind, REPAIR_HEADER, whole};
use super::{Order, StreamParameters};
use crate::endpoint::Stream;
use crate::{Datagram, Setup};
use std::collections::BTreeMap;
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};

/// A UDP header (RFC 768).
const UDP_HEADER: u32 = 8;
/// A request to open is sent again after this long, and so often (the GNAT software).
const OPEN_AGAIN: Span = Span::from_millis(333);
const OPENS: u32 = 32;
/// From this rate of loss on, each packet is acknowledged at once.
const HIGH_PER: f64 = 0.05;
/// Streams that a peer may send.
const MOST_STREAMS: usize = 32;
/// The peer acknowledged what was never sent, or sent what cannot be.
const PROTOCOL_ERROR: u8 = 1;
/// Later packets that must arrive before one counts as lost, which a round of a group has to wait for.
const LATER: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not opened, and nothing has come.
    Closed,
    /// A request to open was sent, or is to be, for the time that is told.
    Opening(u32),
    Open,
    /// It is over: by an error of the peer, or because nobody answered.
    Over,
}

/// One end of a connection.
pub(crate) struct Connection {
    stream: StreamParameters,
    datagrams: bool,
    controllers: Vec<weir_control::Config>,
    id: u32,
    ecn: Ecn,
    /// Bytes of a full segment, and of what stands around it in an IP packet.
    payload: u32,
    overhead: u32,
    random: Random,
    state: State,
    log: Log,
    acks: Acks,
    rtt: Rtt,
    per: Per,
    delay: Delay,
    capacity: Capacity,
    outage: Outage,
    flights: Vec<Flight>,
    outgoing: BTreeMap<u8, Outgoing>,
    incoming: BTreeMap<u8, Incoming>,
    /// What is due, by time.
    handshake: Time,
    timeout: Time,
    loss: Time,
    pace: Time,
    probe: Time,
    /// The number and the time of the newest request to open.
    opened: Option<(u64, Time)>,
    accept: bool,
    goodbye: Option<u8>,
    last_heard: Time,
    last_ack: Time,
    timeouts: u64,
    /// What leaves: its beginning.
    head: Vec<u8>,
    repair: Vec<u8>,
}

/// A clock's microseconds, as packets carry them.
fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

impl Connection {
    pub(crate) fn new(
        stream: &StreamParameters,
        controllers: &[weir_control::Config],
        setup: &Setup<'_>,
        random: Random,
    ) -> Connection {
        let headers = setup.ip_header + UDP_HEADER + HEADER as u32;
        let frame = DATA_HEADER.max(REPAIR_HEADER + SYMBOL_HEADER) as u32;
        let payload = (setup.mtu.get() as u32).saturating_sub(headers + frame).max(1);
        Connection {
            stream: stream.clone(),
            datagrams: setup.datagrams,
            controllers: controllers.to_vec(),
            // Two ends agree on the id since both are made for the same flow.
            id: (Random::stream_of(setup.seed, "sliq connection", setup.flow).bits() & 0xff_ffff) as u32,
            ecn: setup.ecn,
            payload,
            overhead: headers + DATA_HEADER as u32,
            random,
            state: State::Closed,
            log: Log::default(),
            acks: Acks::default(),
            rtt: Rtt::new(),
            per: Per::default(),
            delay: Delay::default(),
            capacity: Capacity::default(),
            outage: Outage::No,
            flights: Vec::new(),
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            handshake: Time::NEVER,
            timeout: Time::NEVER,
            loss: Time::NEVER,
            pace: Time::NEVER,
            probe: Time::NEVER,
            opened: None,
            accept: false,
            goodbye: None,
            last_heard: Time::ZERO,
            last_ack: Time::ZERO,
            timeouts: 0,
            head: Vec::new(),
            repair: Vec::new(),
        }
    }

    fn outgoing(&mut self, stream: Stream) -> Option<&mut Outgoing> {
        let id = u8::try_from(stream.0).ok()?;
        let (parameters, datagrams, payload) = (&self.stream, self.datagrams, self.payload);
        Some(self.outgoing.entry(id).or_insert_with(|| {
            let ordered = parameters.order.map_or(!datagrams, |order| order == Order::Written);
            let limit = parameters.queue.get();
            Outgoing::new(id, parameters.delivery(), ordered, datagrams, payload, limit)
        }))
    }

    fn establish(&mut self, rtt: Option<Span>, now: Time) {
        (self.state, self.handshake) = (State::Open, Time::NEVER);
        let (payload, random) = (self.payload, &mut self.random);
        let flight = |cc: &weir_control::Config| {
            let random = Random::stream(random.bits(), "controller");
            Flight::new(cc, payload, rtt, random, now)
        };
        self.flights = self.controllers.iter().map(flight).collect();
    }

    /// The connection is over: by what the peer did, or because it did nothing.
    fn fail(&mut self, reason: Option<u8>) {
        (self.state, self.goodbye) = (State::Over, reason);
        for due in [&mut self.handshake, &mut self.timeout, &mut self.loss, &mut self.pace, &mut self.probe] {
            *due = Time::NEVER;
        }
    }

    // What arrives.

    fn take_packet(&mut self, header: Header, mut rest: &[u8], now: Time) {
        let number = whole(header.number, self.acks.largest().map_or(0, |largest| largest + 1));
        let difference = micros(now).wrapping_sub(header.timestamp);
        if !self.acks.take(number, difference, now) {
            return;
        }
        self.last_heard = now;
        if self.outage.is_on() {
            (self.outage, self.probe) = (Outage::No, Time::NEVER);
            self.per.restart();
        }
        while let Some((frame, after)) = Frame::read(rest) {
            let known = match frame {
                Frame::Ack(ack) => {
                    let largest = whole(ack.largest, self.log.next());
                    self.take_ack(&ack, largest, difference, now)
                }
                Frame::Data(data) => {
                    self.acks.ask(data.flags.prompt, now);
                    if !self.incoming(data.stream).is_some_and(|stream| stream.segment(&data, after)) {
                        self.fail(Some(PROTOCOL_ERROR));
                    }
                    return;
                }
                Frame::Repair(repair) => {
                    self.acks.ask(true, now);
                    if !self.incoming(repair.stream).is_some_and(|stream| stream.repair(&repair, after)) {
                        self.fail(Some(PROTOCOL_ERROR));
                    }
                    return;
                }
                Frame::Forward { stream, base } => {
                    self.acks.ask(true, now);
                    self.incoming(stream).map(|stream| stream.forward(base)).is_some()
                }
                Frame::Ping => {
                    self.acks.ask(true, now);
                    true
                }
                Frame::Close { .. } => {
                    self.fail(None);
                    return;
                }
            };
            if !known {
                return self.fail(Some(PROTOCOL_ERROR));
            }
            rest = after;
        }
    }

    fn incoming(&mut self, stream: u8) -> Option<&mut Incoming> {
        let room = self.incoming.len() < MOST_STREAMS || self.incoming.contains_key(&stream);
        room.then(|| self.incoming.entry(stream).or_default())
    }

    /// An acknowledgement. Answers `false` where it tells of what was never sent.
    fn take_ack(&mut self, ack: &super::wire::Ack, largest: u64, difference: u32, now: Time) -> bool {
        let held = Span::from_micros(ack.delay.into());
        if let Some((_, at)) = self.opened.filter(|(number, _)| *number == largest) {
            self.rtt.take(now.since(at).saturating_sub(held), now);
        }
        let mut news = [News::default(); 2];
        let (mut newest, mut bytes, overhead) = (None, 0, self.overhead);
        let outgoing = &mut self.outgoing;
        let sent = self.log.acknowledged(ack, largest, |number, record| {
            let late = record.fate == Fate::Lost;
            newest = Some((number, record.at));
            match record.content {
                Content::Segment { stream, sequence } => {
                    outgoing.get_mut(&stream).into_iter().for_each(|stream| stream.arrived(sequence, late));
                }
                Content::Repair { stream, start } => {
                    outgoing
                        .get_mut(&stream)
                        .into_iter()
                        .for_each(|stream| stream.repair_fate(start, true, late));
                }
                Content::Control | Content::Nothing => return,
            }
            bytes += u64::from(record.bytes + overhead);
            if !late {
                news[usize::from(record.owner) & 1].arrived(number, record);
            }
        });
        if !sent {
            return false;
        }
        self.last_ack = now;
        if let Some((_, at)) = newest.filter(|(number, _)| *number == largest) {
            self.rtt.take(now.since(at).saturating_sub(held), now);
        }
        self.delay.take(ack.difference, difference, now);
        self.per.take(largest, ack.received, now);
        if newest.is_some() {
            let limited = self.flights.iter().any(Flight::is_limited);
            self.capacity.delivered(bytes, limited, self.rtt.smoothed().unwrap_or(Span::ZERO), now);
            self.timeout = if self.log.out() > 0 { now + self.rtt.timeout() } else { Time::NEVER };
        }
        self.detect(&mut news, held, now);
        self.plan();
        true
    }

    /// Finds what is lost, and tells the controllers what has become of their packets.
    fn detect(&mut self, news: &mut [News; 2], held: Span, now: Time) {
        let (outgoing, mut control) = (&mut self.outgoing, false);
        self.loss = self.log.detect(self.rtt.patience(), now, |_, record| {
            control |= lose(outgoing, record);
            if record.content != Content::Control {
                news[usize::from(record.owner) & 1].was_lost(record);
            }
        });
        if control {
            self.outgoing.values_mut().for_each(Outgoing::forward_again);
        }
        let known = self.known(held, now);
        for (flight, news) in self.flights.iter_mut().zip(news) {
            flight.on_news(news, &known);
        }
    }

    fn known(&self, held: Span, now: Time) -> Known {
        Known { now, held, srtt: self.rtt.smoothed(), min_rtt: self.rtt.smallest(), next: self.log.next() }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rates = self.flights.iter().filter_map(Flight::pacing_rate);
        rates.map(Rate::bits_per_sec).reduce(u64::saturating_add).map(Rate::from_bits_per_sec)
    }

    /// Tells streams with a deadline what the channel is like.
    fn plan(&mut self) {
        if !self.outgoing.values().any(Outgoing::is_planned) {
            return;
        }
        let (Some(rate), Some(rtt)) = (self.pacing_rate(), self.rtt.largest()) else { return };
        let packet_time = rate.time_to_send(Bytes::new(u64::from(self.payload)));
        let channel = Channel {
            per: self.per.rate(),
            rtt: rtt + packet_time * LATER,
            owd: self.delay.longest().unwrap_or(rtt / 2),
            packet_time,
        };
        self.outgoing.values_mut().for_each(|stream| stream.set_channel(channel));
    }

    // Timers.

    /// The retransmission timeout has passed: everything under way counts as lost; or the peer is gone.
    fn on_timeout(&mut self, now: Time) {
        let silent = now.since(self.last_heard);
        let gone = silent > Outage::patience(self.rtt.first_timeout(), self.per.rate());
        let (outgoing, mut news, mut control) = (&mut self.outgoing, [News::default(); 2], false);
        self.log.lose_all(|_, record| {
            control |= lose(outgoing, record);
            if record.content != Content::Control {
                news[usize::from(record.owner) & 1].was_lost(record);
            }
        });
        if control {
            self.outgoing.values_mut().for_each(Outgoing::forward_again);
        }
        self.capacity.pause();
        if gone {
            (self.outage, self.probe, self.timeout) = (Outage::Since(now), now, Time::NEVER);
            self.flights.iter_mut().zip(&news).for_each(|(flight, news)| flight.on_outage(news));
            return;
        }
        self.rtt.back_off();
        self.timeouts += 1;
        let known = self.known(Span::ZERO, now);
        self.flights.iter_mut().zip(&news).for_each(|(flight, news)| flight.on_timeout(news, &known));
        self.timeout = Time::NEVER;
    }

    // What leaves.

    fn begin(&mut self, kind: Kind, now: Time) {
        self.head.clear();
        let header =
            Header { kind, connection: self.id, number: self.log.next() as u32, timestamp: micros(now) };
        header.write(&mut self.head);
    }

    /// A packet leaves that carries this; answers its record's place for what else is to be known of it.
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
            self.timeout = now + self.rtt.timeout();
        }
        into.set(&self.head, self.head.len() as u32 + zeros);
    }

    /// What belongs to the connection itself, if something is due.
    fn control(&mut self, into: &mut Datagram, now: Time) -> bool {
        if let Some(reason) = self.goodbye.take() {
            self.begin(Kind::Within, now);
            Frame::Close { reason }.write(&mut self.head);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if let State::Opening(times) = self.state {
            if now < self.handshake {
                return false;
            }
            if times >= OPENS {
                self.fail(None);
                return false;
            }
            self.opened = Some((self.log.next(), now));
            (self.state, self.handshake) = (State::Opening(times + 1), now + OPEN_AGAIN);
            self.begin(Kind::Open, now);
            self.put(Content::Nothing, 0, into, now);
            return true;
        }
        if self.state != State::Open {
            return false;
        }
        if self.accept || now >= self.acks.due() {
            let kind = if std::mem::take(&mut self.accept) { Kind::Accept } else { Kind::Within };
            self.begin(kind, now);
            if let Some(ack) = self.acks.tell(now) {
                Frame::Ack(ack).write(&mut self.head);
            }
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
            if stream.has_more() { None } else { stream.take_forward().map(|base| (*id, base)) }
        });
        if let Some((stream, base)) = forward {
            self.begin(Kind::Within, now);
            Frame::Forward { stream, base }.write(&mut self.head);
            self.put(Content::Control, 0, into, now);
            return true;
        }
        false
    }

    /// The controller that takes the next packet.
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

    /// The next packet of a stream, if a controller takes it: what is sent again before what is new.
    fn data(&mut self, into: &mut Datagram, now: Time) -> bool {
        self.pace = Time::NEVER;
        if self.state != State::Open || self.outage.is_on() {
            return false;
        }
        let again = |(id, stream): (&u8, &Outgoing)| stream.has_again().then_some(*id);
        let new = |(id, stream): (&u8, &Outgoing)| stream.has_more().then_some(*id);
        let Some(id) = self.outgoing.iter().find_map(again).or_else(|| self.outgoing.iter().find_map(new))
        else {
            self.flights.iter_mut().for_each(Flight::is_idle);
            return false;
        };
        let Some(owner) = self.owner(now) else { return false };
        let Some(item) = self.outgoing.get_mut(&id).and_then(|stream| stream.next(now)) else { return false };
        self.begin(Kind::Within, now);
        let Some(stream) = self.outgoing.get_mut(&id) else { return false };
        let (content, length, head, again) = match item {
            Item::Data { mut data, again } => {
                data.flags.prompt = stream.is_planned() || self.per.rate() >= HIGH_PER;
                Frame::Data(data).write(&mut self.head);
                let content = Content::Segment { stream: id, sequence: data.sequence };
                (content, data.length, stream.head(data.sequence), again)
            }
            Item::Repair(repair) => {
                Frame::Repair(repair).write(&mut self.head);
                stream.repair(&repair, &mut self.repair);
                (Content::Repair { stream: id, start: repair.start }, repair.length, &self.repair[..], false)
            }
        };
        self.head.extend_from_slice(head);
        let zeros = u32::from(length) - head.len() as u32;
        let mut record = self.leave(content, now);
        (record.owner, record.bytes) = (owner as u8, u32::from(length).min(self.payload));
        self.flights[owner].on_sent(&mut record, again, now);
        self.log.push(record);
        if self.timeout == Time::NEVER {
            self.timeout = now + self.rtt.timeout();
        }
        into.set(&self.head, self.head.len() as u32 + zeros);
        true
    }
}

/// Tells the stream that a packet belonged to of its loss. Answers whether it was one of the connection's own.
fn lose(outgoing: &mut BTreeMap<u8, Outgoing>, record: &Record) -> bool {
    match record.content {
        Content::Segment { stream, sequence } => {
            outgoing.get_mut(&stream).into_iter().for_each(|stream| stream.lost(sequence));
        }
        Content::Repair { stream, start } => {
            outgoing.get_mut(&stream).into_iter().for_each(|stream| stream.repair_fate(start, false, false));
        }
        Content::Control => return true,
        Content::Nothing => {}
    }
    false
}
