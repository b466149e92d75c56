//! One end of a connection over datagrams of real bytes: plain, or sealed with the keys of a handshake. An end either asks for the
//! connection or answers a request. Until a sealed packet of the asking peer opens, only the answers to its requests are sent to it.

use super::connection::Connection;
use super::handshake::{Answer, Initiator, Keys, REQUEST, Refused, Responder, Step, answer_to};
use super::hop::Path;
use super::opening::Opening;
use super::seal::{KEY, Seal};
use super::secrets::Secrets;
use super::shared::Shared;
use super::{Parameters, SealName, StreamParameters};
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};
use weir_coord::participation::Identity;
use weir_endpoint::{Body, Datagram, Setup};
use weir_endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};

/// Stands for no shared secret besides the keys.
pub(crate) const NO_SECRET: [u8; KEY] = [0; KEY];
/// A connection that a peer has asked for is dropped after this time without a sealed packet from it.
const UNPROVED: Span = Span::from_secs(10);

/// One end of a connection.
pub struct Link {
    connection: Connection,
    cover: Cover,
    /// The packet that was made last, and a buffer for one that is decrypted.
    packet: Datagram,
    scratch: Vec<u8>,
}

/// How the connection's packets are protected.
enum Cover {
    Plain,
    /// A handshake that this end began.
    Asking(Box<Asking>),
    /// This end waits for a request.
    Waiting(Box<Responder>),
    /// A request was answered; no sealed packet of the peer has opened yet.
    Answered(Box<Answered>),
    Sealed(Box<Seal>),
    /// There was no answer, there was no sealed packet after it, or the application has ended the handshake.
    Failed,
}

struct Asking {
    initiator: Initiator,
    opening: Opening,
}

struct Answered {
    seal: Box<Seal>,
    request: Vec<u8>,
    reply: Vec<u8>,
    /// A request has arrived that is not answered yet.
    owes: bool,
    until: Time,
}

impl Answered {
    fn new(request: &[u8], reply: Vec<u8>, seal: Box<Seal>, now: Time) -> Answered {
        Answered { seal, request: core(request).to_vec(), reply, owes: true, until: now + UNPROVED }
    }
}

/// A request without its header and its cookie, which differ when it is retransmitted.
fn core(request: &[u8]) -> &[u8] {
    request.get(super::handshake::CORE..).unwrap_or_default()
}

/// The parameters of a link.
#[derive(Debug, Clone, Copy)]
pub struct LinkSetup<'a> {
    /// Parameters of the connection. `seal` is ignored: it follows from the constructor.
    pub parameters: &'a Parameters,
    /// The congestion controllers: one, or two in the order of preference.
    pub controllers: &'a [weir_control::Config],
    /// The setup that all transports have.
    pub setup: Setup<'a>,
    /// The connection's number, below 2^24.
    pub connection: u32,
    /// The connection's identity if it takes part in an application; `None` for that of the lab's flow.
    pub identity: Option<Identity>,
}

/// The two ends of a flow's connection, each with its own keys; the first one asks.
///
/// # Errors
/// The system gives no randomness.
pub(super) fn pair(
    parameters: &Parameters,
    controllers: &[weir_control::Config],
    setup: &Setup<'_>,
) -> Result<[Box<dyn Endpoint>; 2], Refused> {
    let (keys, peer) = (Keys::generate()?, Keys::generate()?);
    let connection = super::number(setup);
    let of = LinkSetup { parameters, controllers, setup: *setup, connection, identity: None };
    let asks = Link::ask(&of, &keys, &peer.public, 1)?;
    // This responder is never loaded, so no cookies are made.
    let responder = Responder::new(peer, NO_SECRET, &[keys.public], &NO_SECRET);
    let waits = Link::wait(&of, responder);
    Ok([asks, waits].map(|link| super::boxed(parameters, link)))
}

impl Link {
    fn new(of: &LinkSetup<'_>, cover: Cover) -> Link {
        let seal = if matches!(cover, Cover::Plain) { SealName::None } else { SealName::Noise };
        let parameters = Parameters { seal, ..of.parameters.clone() };
        let random = Random::stream_of(of.setup.seed, "sliq link", of.setup.flow);
        let identity = of.identity.unwrap_or_else(|| Identity::in_lab(of.setup.flow));
        let connection =
            Connection::new(&parameters, of.controllers, &of.setup, of.connection, &identity, random);
        Link { connection, cover, packet: Datagram::default(), scratch: Vec::new() }
    }

    /// A connection without protection. It opens when `open` is called, or when its peer opens it.
    pub fn plain(of: &LinkSetup<'_>) -> Link {
        Link::new(of, Cover::Plain)
    }

    /// Asks the owner of the key `peer` for a connection, once it is opened or written to. `stamp` is higher than that of all earlier
    /// connections of these keys: a clock's nanoseconds, for example.
    ///
    /// # Errors
    /// A key is not valid.
    pub fn ask(of: &LinkSetup<'_>, keys: &Keys, peer: &[u8; KEY], stamp: u64) -> Result<Link, Refused> {
        let initiator = Initiator::new(keys, peer, &NO_SECRET, of.connection, stamp)?;
        let asking = Box::new(Asking { initiator, opening: Opening::default() });
        Ok(Link::new(of, Cover::Asking(asking)))
    }

    /// Waits for a request for the connection, which `responder` answers.
    pub fn wait(of: &LinkSetup<'_>, responder: Responder) -> Link {
        Link::new(of, Cover::Waiting(Box::new(responder)))
    }

    /// The end that answers a request with this reply, which is still to be sent.
    pub(crate) fn answered(
        of: &LinkSetup<'_>,
        request: &[u8],
        reply: Vec<u8>,
        seal: Box<Seal>,
        now: Time,
    ) -> Link {
        Link::new(of, Cover::Answered(Box::new(Answered::new(request, reply, seal, now))))
    }

    /// A packet has arrived, with this codepoint. It is decrypted in place.
    pub fn receive_packet(&mut self, packet: &mut [u8], ecn: Ecn, now: Time) {
        let Some(cp) = self.connection.take_cp_header(packet, now) else { return };
        let packet = &mut packet[cp..];
        match &mut self.cover {
            Cover::Plain => self.connection.take(packet, 0, ecn, now),
            Cover::Sealed(seal) => {
                if let Some((_, plain)) = seal.open(packet, now) {
                    self.connection.take(plain, 0, ecn, now);
                }
            }
            Cover::Asking(asking) => match asking.initiator.take(packet, now) {
                // The request is retransmitted with the cookie at once.
                Some(Step::Again) => asking.opening.hurry(now),
                Some(Step::Agreed(seal, number)) => {
                    let rtt = asking.opening.round_trip(number.into(), now);
                    self.connection.agreed(rtt, true, now);
                    self.cover = Cover::Sealed(seal);
                }
                None => {}
            },
            Cover::Waiting(responder) => {
                // An end that waits for a single peer is never loaded.
                if let Answer::Agreed { reply, seal, .. } = responder.take(packet, &[], false, now) {
                    self.cover = Cover::Answered(Box::new(Answered::new(packet, reply, seal, now)));
                }
            }
            Cover::Answered(answered) => {
                if packet.len() == REQUEST && core(packet) == answered.request {
                    answered.owes = true;
                    answer_to(&mut answered.reply, packet);
                } else if let Some((_, plain)) = answered.seal.open(packet, now) {
                    self.connection.agreed(None, false, now);
                    self.connection.take(plain, 0, ecn, now);
                    let Cover::Answered(answered) = std::mem::replace(&mut self.cover, Cover::Failed) else {
                        return;
                    };
                    self.cover = Cover::Sealed(answered.seal);
                }
            }
            Cover::Failed => {}
        }
    }

    /// The secrets of the connection, which has this number, for a log of keys; `None` unless it is sealed with its first keys.
    pub(crate) fn secrets(&self, connection: u32) -> Option<Secrets> {
        let Cover::Sealed(seal) = &self.cover else { return None };
        Some(Secrets::new(connection, seal.secrets()?))
    }

    /// Whether a request was answered and no sealed packet of the peer has opened yet.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.cover, Cover::Answered(_))
    }

    /// A packet has arrived from an address that is not known to be the peer's. Returns whether it is a new sealed packet of the peer.
    pub(crate) fn receive_elsewhere(&mut self, packet: &mut [u8], ecn: Ecn, now: Time) -> bool {
        let Cover::Sealed(seal) = &mut self.cover else { return false };
        let Some(cp) = self.connection.take_cp_header(packet, now) else { return false };
        let Some((_, plain)) = seal.open(&mut packet[cp..], now) else { return false };
        self.connection.take(plain, 0, ecn, now);
        true
    }

    /// A challenge: a packet with a number that the peer is to send back from the address to which this packet goes. `None` if the link is
    /// not sealed.
    pub(crate) fn challenge(&mut self, number: u64, now: Time) -> Option<Vec<u8>> {
        let Cover::Sealed(seal) = &mut self.cover else { return None };
        self.connection.challenge(number, &mut self.packet, now);
        seal.seal(&mut self.packet.head, now).then(|| {
            let mut packet = self.packet.head.clone();
            self.connection.put_cp_header(&mut packet, 0, now);
            packet
        })
    }

    /// Whether its packets begin with a CP header.
    pub(crate) fn is_coordinated(&self) -> bool {
        self.connection.is_coordinated()
    }

    /// The number that the peer has sent back since the last call; `None` if there is none.
    pub(crate) fn take_response(&mut self) -> Option<u64> {
        self.connection.take_response()
    }

    /// The peer is on another path: estimates of the old path are dropped.
    pub(crate) fn begin_path(&mut self, now: Time) {
        self.connection.begin_path(now);
    }

    /// Appends the next packet that leaves now and returns its codepoint; `None` if there is none.
    pub fn transmit_packet(&mut self, into: &mut Vec<u8>, now: Time) -> Option<Ecn> {
        self.transmit_packet_of(None, into, now)
    }

    /// As [`Link::transmit_packet`]. With `of`, only packets of this stream count, and control packets if the second value is true.
    fn transmit_packet_of(&mut self, of: Option<(u8, bool)>, into: &mut Vec<u8>, now: Time) -> Option<Ecn> {
        let at = into.len();
        if let Some(ecn) = self.covered_packet_of(of, into, now) {
            self.connection.put_cp_header(into, at, now);
            return Some(ecn);
        }
        (of.is_none() && self.connection.ask_point(into, now)).then_some(Ecn::NotEct)
    }

    /// As [`Link::transmit_packet_of`], without a CP header.
    fn covered_packet_of(&mut self, of: Option<(u8, bool)>, into: &mut Vec<u8>, now: Time) -> Option<Ecn> {
        match &mut self.cover {
            Cover::Plain => {
                let ecn = self.connection.next_packet_of(of, &mut self.packet, now)?;
                self.packet.append_to(into);
                Some(ecn)
            }
            Cover::Sealed(seal) => {
                let ecn = self.connection.next_packet_of(of, &mut self.packet, now)?;
                let Datagram { head, zeros } = &mut self.packet;
                head.resize(head.len() + *zeros as usize, 0);
                // A packet that cannot be sealed is not sent: it counts as lost.
                let sealed = seal.seal(head, now);
                into.extend_from_slice(if sealed { head } else { &[] });
                Some(ecn)
            }
            _ if of.is_some_and(|(_, control)| !control) => None,
            Cover::Asking(asking) => {
                if now < asking.opening.due() {
                    return None;
                }
                if asking.opening.is_over(now) {
                    self.cover = Cover::Failed;
                    return None;
                }
                let micros = (now.as_nanos() / 1000) as u32;
                into.extend(asking.initiator.request(asking.opening.send(now), micros));
                Some(Ecn::NotEct)
            }
            Cover::Answered(answered) => std::mem::take(&mut answered.owes).then(|| {
                into.extend_from_slice(&answered.reply);
                Ecn::NotEct
            }),
            Cover::Waiting(_) | Cover::Failed => None,
        }
    }

    /// Adds a stream and returns its number; `None` if there are too many.
    pub fn add_stream(&mut self, parameters: &StreamParameters, messages: bool) -> Option<u32> {
        self.connection.add_stream(parameters, messages).map(u32::from)
    }

    /// Ends the connection and tells the peer. Data that is not acknowledged may be lost.
    pub fn end(&mut self) {
        match self.cover {
            Cover::Plain | Cover::Sealed(_) => self.connection.end(),
            _ => self.cover = Cover::Failed,
        }
    }

    /// When the last packet of the peer was accepted; time zero before the first.
    pub fn last_heard(&self) -> Time {
        self.connection.last_heard()
    }

    /// Whether messages can be sent: it is open, and the peer is heard.
    pub fn is_up(&self) -> bool {
        matches!(self.cover, Cover::Plain | Cover::Sealed(_)) && self.connection.is_heard()
    }

    /// Bytes of all streams that wait for their first transmission.
    pub fn waiting(&self) -> Bytes {
        Bytes::new(self.connection.waiting())
    }

    /// Controllers that fill buffers send nothing for a minute, if there is another one: messages that are sensitive to delay are on
    /// their way.
    pub fn give_way(&mut self, now: Time) {
        self.connection.give_way(now);
    }

    /// The path. Its delay is that of the first of these streams of which it is known, else half of the round trip.
    pub fn path(&self, streams: &[u8], now: Time) -> Path {
        self.connection.path(streams, now)
    }

    /// Whether the connection is over: ended by either application, by an error of the peer, or because nothing was heard.
    pub fn is_over(&self) -> bool {
        matches!(self.cover, Cover::Failed) || self.connection.is_over()
    }
}

impl Shared for Link {
    fn inner(&mut self) -> &mut Connection {
        &mut self.connection
    }
    fn transmit_of(&mut self, stream: u8, control: bool, into: &mut Body, now: Time) -> Option<Ecn> {
        let datagram = into.datagram_mut();
        datagram.set(&[], 0);
        self.transmit_packet_of(Some((stream, control)), &mut datagram.head, now)
    }
}

impl Endpoint for Link {
    fn open(&mut self, now: Time) {
        match &mut self.cover {
            Cover::Plain => self.connection.open(now),
            Cover::Asking(asking) if !asking.opening.has_begun() => asking.opening.hurry(now),
            _ => {}
        }
    }
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let mut packet = std::mem::take(&mut self.scratch);
        packet.clear();
        datagram.append_to(&mut packet);
        self.receive_packet(&mut packet, ecn, now);
        self.scratch = packet;
    }
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        let datagram = into.datagram_mut();
        datagram.set(&[], 0);
        self.transmit_packet(&mut datagram.head, now)
    }
    fn next_timer(&self) -> Time {
        match &self.cover {
            Cover::Plain | Cover::Sealed(_) => self.connection.next_timer(),
            Cover::Asking(asking) => asking.opening.due(),
            Cover::Answered(answered) => answered.until,
            Cover::Waiting(_) | Cover::Failed => Time::NEVER,
        }
    }
    fn on_timer(&mut self, now: Time) {
        match &self.cover {
            Cover::Plain | Cover::Sealed(_) => self.connection.on_timer(now),
            Cover::Answered(answered) if now >= answered.until => self.cover = Cover::Failed,
            _ => {}
        }
    }
    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64 {
        self.open(now);
        // Data that is written before the handshake has succeeded waits for it.
        if matches!(self.cover, Cover::Failed) { 0 } else { self.connection.write(stream, message, now) }
    }
    fn keep_full(&mut self, stream: Stream, greedy: bool) -> bool {
        self.connection.keep_full(stream, greedy)
    }
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        self.connection.read(to);
    }
    fn close(&mut self, stream: Option<Stream>, now: Time) {
        self.connection.close(stream, now);
    }
    fn is_open(&self) -> bool {
        self.connection.is_open()
    }
    fn finished(&self) -> bool {
        self.connection.finished()
    }
    fn all_acknowledged(&self) -> bool {
        self.connection.all_acknowledged()
    }
    fn counts(&self) -> Counts {
        self.connection.counts()
    }
    fn retransmitted(&self) -> Option<u64> {
        self.connection.retransmitted()
    }
    fn sample(&self) -> Option<Sample> {
        self.connection.sample()
    }
    fn unsent(&self) -> Bytes {
        self.connection.unsent()
    }
    fn sending_rate(&self, now: Time) -> Option<Rate> {
        self.connection.sending_rate(now)
    }
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        self.connection.state(report);
    }
}
