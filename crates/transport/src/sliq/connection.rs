//! A connection: its state, and how it begins and ends. What arrives, what leaves and the [`crate::Endpoint`] that its driver sees are apart.

mod arrive;
mod coordinated;
mod end;
mod leave;

use super::acks::Acks;
use super::capacity::Capacity;
use super::credit::{self, Allowed, Granted};
use super::delay::Delay;
use super::due::{PeerClock, Teller, micros};
use super::flight::Flight;
use super::loss::Log;
use super::marks::Marks;
use super::mtu::{self, PathMtu};
use super::opening::Opening;
use super::outage::Outage;
use super::per::Per;
use super::receive::Incoming;
use super::rtt::Rtt;
use super::schedule::Schedule;
use super::send::Outgoing;
use super::train::{self, Train};
use super::wire::{DATA_HEADER, DUE, HEADER, PART_HEADER, TAG};
use super::{FastStart, MOST_STREAMS, Parameters, SealName, StreamParameters};
use crate::Setup;
use crate::coordination::{Coordination, Identity};
use crate::endpoint::Stream;
use crate::guide::Guide;
use coordinated::Coordinated;
use std::collections::BTreeMap;
use weir_base::{Ecn, Random, Span, Time};

/// A UDP header (RFC 768).
const UDP_HEADER: u32 = 8;
/// The CP transport's number in the header.
const PROTOCOL: u8 = 3;
/// From this rate of loss on, each packet is acknowledged at once.
const HIGH_PER: f64 = 0.05;
/// The peer acknowledged what was never sent, or sent what cannot be.
const PROTOCOL_ERROR: u8 = 1;
/// Nothing was heard for too long, or the connection is no more.
const GONE: u8 = 2;
/// A first round trip beyond this is long (the GNAT software).
const LONG: Span = Span::from_millis(50);
/// The application has ended the connection.
#[cfg(feature = "seal")]
const AS_WISHED: u8 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not opened, and nothing has come.
    Closed,
    /// A request to open was sent, or is to be.
    Opening,
    Open,
    /// It is over: by an error of the peer, or because nobody answered.
    Over,
}

/// One end of a connection.
pub(crate) struct Connection {
    /// Its streams' parameters, and whether messages are written to them. Others are as the first.
    streams: Vec<(StreamParameters, bool)>,
    keepalive: Option<Span>,
    idle: Span,
    /// The controllers, each with the codepoint of its packets.
    controllers: Vec<(weir_control::Config, Ecn)>,
    id: u32,
    /// The codepoint of all packets, where the application has chosen one.
    ecn: Ecn,
    marks: Marks,
    /// Bytes of a full segment, of one that every path carries, and of what stands around it in an IP packet.
    payload: u32,
    base: u32,
    overhead: u32,
    /// The search for the largest packet, where it is not known.
    mtu: Option<PathMtu>,
    /// The measurement of the path's rate at the beginning: when there is one, and whether it is yet to begin.
    fast_start: FastStart,
    train: Option<Train>,
    fresh: bool,
    /// Bytes of the tag of sealed packets. The simulator encrypts nothing; there a tag is zeros.
    tag: u32,
    random: Random,
    state: State,
    opening: Opening,
    log: Log,
    acks: Acks,
    rtt: Rtt,
    per: Per,
    delay: Delay,
    peer_clock: PeerClock,
    teller: Teller,
    capacity: Capacity,
    outage: Outage,
    /// What says at which rate packets leave, where that is not the controllers.
    coordinated: Option<Coordinated>,
    flights: Vec<Flight>,
    /// Segments of all streams that the peer takes, and that it may send.
    allowed: Allowed,
    granted: Granted,
    /// Segments of all streams that the peer has sent.
    reached: u32,
    schedule: Schedule,
    outgoing: BTreeMap<u8, Outgoing>,
    incoming: BTreeMap<u8, Incoming>,
    /// What is due, by time.
    timeout: Time,
    loss: Time,
    pace: Time,
    probe: Time,
    accept: bool,
    /// The peer is to hear that the handshake has succeeded.
    greets: bool,
    goodbye: Option<u8>,
    /// A number that the peer has sent and that is to go back, and one that has come back.
    challenged: Option<u64>,
    responded: Option<u64>,
    last_heard: Time,
    /// The latest time that a call has told.
    latest: Time,
    /// When the newest packet left that asks whether the peer is there.
    asked: Time,
    last_ack: Time,
    timeouts: u64,
    /// What leaves: its beginning.
    head: Vec<u8>,
    repair: Vec<u8>,
}

/// The codepoint of a controller's packets: what the lab says of the group's, and otherwise none unless the controller needs one.
fn codepoint_of(cc: &weir_control::Config, setup: &Setup<'_>) -> Ecn {
    let (own, feedback) = cc.signals();
    match setup.settings {
        _ if setup.ecn != Ecn::NotEct => setup.ecn,
        Some(settings) if settings.cc == *cc => {
            if settings.ecn {
                settings.codepoint.as_ecn()
            } else {
                Ecn::NotEct
            }
        }
        _ if feedback == weir_control::Feedback::Classic => Ecn::NotEct,
        _ => own.as_ecn(),
    }
}

/// What a segment carries in a packet of so much UDP payload.
fn payload_of(packet: u32, tag: u32) -> u32 {
    // A repair packet has a longer header than a part, and shorter segments (`Outgoing::room_of`).
    packet.saturating_sub((HEADER + PART_HEADER) as u32 + tag).max(1)
}

/// Bytes of a sealed packet's tag.
fn tag(parameters: &Parameters) -> u32 {
    if parameters.seal == SealName::Noise { TAG as u32 } else { 0 }
}

/// What the rate of a connection follows that takes part in an application.
pub(super) fn guide_of(coordination: Option<&Coordination>, identity: &Identity) -> Option<Guide> {
    Some(Guide::new(coordination?, PROTOCOL, identity))
}

/// Bytes of a full segment where IP packets are of at most `mtu`, and of what stands around it.
pub(super) fn full_packet(parameters: &Parameters, mtu: u32, ip_header: u32) -> (u32, u32) {
    let guide = guide_of(parameters.coordination.as_ref(), &Identity::in_lab(0));
    let cp = guide.map_or(0, |guide| guide.header_length() as u32);
    let (headers, tag) = (ip_header + UDP_HEADER + cp, tag(parameters));
    let due = if parameters.stream.deadline.is_some() { DUE as u32 } else { 0 };
    let payload = payload_of(mtu.saturating_sub(headers), tag).saturating_sub(due).max(1);
    (payload, headers + (HEADER + DATA_HEADER) as u32 + tag + due)
}

impl Connection {
    /// One end of the connection with this number, below 2^24. `identity` is who it is where it takes part in an application.
    pub(crate) fn new(
        parameters: &Parameters,
        controllers: &[weir_control::Config],
        setup: &Setup<'_>,
        id: u32,
        identity: &Identity,
        random: Random,
    ) -> Connection {
        let tag = tag(parameters);
        let guide = guide_of(parameters.coordination.as_ref(), identity);
        // A CP header stands around packets as UDP's does.
        let cp = guide.as_ref().map_or(0, |guide| guide.header_length() as u32);
        let around = setup.ip_header + UDP_HEADER + cp;
        let most = (setup.mtu.get() as u32).saturating_sub(around);
        let mtu = if parameters.search_mtu { PathMtu::new(most) } else { None };
        let (base, known) = (payload_of(mtu::BASE, tag), payload_of(most, tag));
        let payload = if mtu.is_some() { base } else { known };
        Connection {
            streams: vec![(parameters.stream.clone(), setup.datagrams)],
            keepalive: parameters.keepalive,
            idle: parameters.idle,
            controllers: controllers.iter().map(|cc| (cc.clone(), codepoint_of(cc, setup))).collect(),
            id,
            ecn: setup.ecn,
            marks: Marks::default(),
            payload,
            base,
            overhead: around + (HEADER + DATA_HEADER) as u32 + tag,
            mtu,
            fast_start: parameters.fast_start,
            train: None,
            fresh: true,
            tag,
            random,
            state: State::Closed,
            opening: Opening::default(),
            log: Log::default(),
            acks: Acks::default(),
            rtt: Rtt::new(),
            per: Per::default(),
            delay: Delay::default(),
            peer_clock: PeerClock::default(),
            teller: Teller::default(),
            capacity: Capacity::default(),
            outage: Outage::No,
            coordinated: guide.map(Coordinated::new),
            flights: Vec::new(),
            allowed: Allowed::new(credit::CONNECTION),
            granted: Granted::new(credit::CONNECTION),
            reached: 0,
            schedule: Schedule::default(),
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            timeout: Time::NEVER,
            loss: Time::NEVER,
            pace: Time::NEVER,
            probe: Time::NEVER,
            accept: false,
            greets: false,
            goodbye: None,
            challenged: None,
            responded: None,
            last_heard: Time::ZERO,
            latest: Time::ZERO,
            asked: Time::ZERO,
            last_ack: Time::ZERO,
            timeouts: 0,
            head: Vec::new(),
            repair: Vec::new(),
        }
    }

    fn outgoing(&mut self, stream: Stream) -> Option<&mut Outgoing> {
        let id = u8::try_from(stream.0).ok().filter(|id| usize::from(*id) < MOST_STREAMS)?;
        let (parameters, messages) = self.streams.get(usize::from(id)).unwrap_or(&self.streams[0]);
        let new = || Outgoing::new(id, parameters, *messages, (self.payload, self.base));
        Some(self.outgoing.entry(id).or_insert_with(new))
    }

    /// One more stream; answers its number, `None` where there are too many.
    pub(crate) fn add_stream(&mut self, parameters: &StreamParameters, datagrams: bool) -> Option<u8> {
        let id = self.streams.len();
        let room = id < MOST_STREAMS;
        room.then(|| {
            self.streams.push((parameters.clone(), datagrams));
            id as u8
        })
    }

    fn establish(&mut self, rtt: Option<Span>, now: Time) {
        (self.state, self.last_heard) = (State::Open, now);
        self.opening.end();
        let reported = self.reported();
        let (payload, random) = (self.payload, &mut self.random);
        self.flights = match reported {
            Some(reported) => {
                let random = Random::stream(random.bits(), "controller");
                let mut flight = Flight::reported(reported, payload, self.overhead, random, now);
                flight.codepoint = self.ecn;
                vec![flight]
            }
            None => {
                let flight = |(cc, codepoint): &(weir_control::Config, Ecn)| {
                    let random = Random::stream(random.bits(), "controller");
                    let mut flight = Flight::new(cc, payload, rtt, random, now);
                    flight.codepoint = *codepoint;
                    flight
                };
                self.controllers.iter().map(flight).collect()
            }
        };
        (self.train, self.fresh) = (None, true);
    }

    /// Packets are as long as the path is known to carry.
    fn cut(&mut self) {
        let Some(mtu) = &self.mtu else { return };
        self.payload = payload_of(mtu.carried(), self.tag);
        let payload = self.payload;
        self.flights.iter_mut().for_each(|flight| flight.set_mss(payload));
        self.outgoing.values_mut().for_each(|stream| stream.cut(payload));
    }

    /// Begins to measure the path's rate, once its round trip is known and there is something to send.
    fn begin_train(&mut self, now: Time) {
        let Some(rtt) = self.rtt.smoothed().filter(|_| self.fresh && !self.is_at_rest()) else { return };
        self.fresh = false;
        let measures = match self.fast_start {
            // Windows do not open where there are none.
            _ if self.is_coordinated() => false,
            FastStart::Never => false,
            FastStart::Long => rtt > LONG && self.flights.iter().any(Flight::keeps_queues_short),
            FastStart::Always => true,
        };
        let packet = train::PACKET.min(self.payload + (HEADER + PART_HEADER) as u32 + self.tag);
        self.train = measures.then(|| Train::new(packet, rtt, now));
    }

    /// Where the path's rate is measured, or will not be, windows open to it.
    fn end_train(&mut self, now: Time) {
        let Some(train) = self.train.take_if(|train| train.is_over(now)) else { return };
        let headers = self.overhead - (HEADER + DATA_HEADER) as u32 - self.tag;
        let Some((rate, rtt)) = train.measured(headers) else { return };
        let packets = u128::from(rate.bytes_in(rtt).get());
        let (payload, overhead) = (u128::from(self.payload), u128::from(self.overhead));
        let window = (packets * payload / (payload + overhead)) as u64;
        let all = self.fast_start == FastStart::Always;
        let opens = self.flights.iter_mut().filter(|flight| all || flight.keeps_queues_short());
        opens.for_each(|flight| flight.open_to(window));
    }

    /// When the search for the largest packet has something to do: it needs a connection that is in use.
    fn searches_at(&self) -> Time {
        let mtu = self.mtu.as_ref().filter(|_| self.state == State::Open && !self.outage.is_on());
        mtu.filter(|_| !self.is_at_rest()).map_or(Time::NEVER, PathMtu::next_timer)
    }

    /// How long after a packet has left it is a timeout if nothing was acknowledged.
    fn timeout_after(&self) -> Span {
        // What the handshake took says little: on a slow link a full packet takes longer than its whole round trip.
        let known = self.flights.iter().any(|flight| flight.delivered() > 0);
        // While nothing is heard a deadline passes.
        let fast = known
            && (self.flights.iter().any(Flight::wants_fast_timeout)
                || self.outgoing.values().any(Outgoing::is_planned));
        if fast { self.rtt.fast_timeout() } else { self.rtt.timeout() }
    }

    /// The ends have agreed by a handshake of their own, which took this time. `greets` says that the peer does not know yet.
    #[cfg(feature = "seal")]
    pub(crate) fn agreed(&mut self, rtt: Option<Span>, greets: bool, now: Time) {
        if matches!(self.state, State::Closed | State::Opening) {
            self.greets = greets;
            if let Some(rtt) = rtt {
                self.rtt.take(rtt, now);
            }
            self.establish(rtt, now);
        }
    }

    /// The application ends the connection; what is not acknowledged may be lost.
    #[cfg(feature = "seal")]
    pub(crate) fn end(&mut self) {
        if self.state != State::Over {
            self.fail(Some(AS_WISHED));
        }
    }

    /// The number that has come back since this was asked.
    #[cfg(feature = "seal")]
    pub(crate) fn take_response(&mut self) -> Option<u64> {
        self.responded.take()
    }

    /// The peer is on another path: what was known of the one before means nothing, and what is under way counts as lost.
    #[cfg(feature = "seal")]
    pub(crate) fn begin_path(&mut self, now: Time) {
        if self.state == State::Open {
            self.lose_all();
            (self.rtt, self.delay, self.capacity) = (Rtt::new(), Delay::default(), Capacity::default());
            (self.peer_clock, self.teller) = (PeerClock::default(), Teller::default());
            (self.outage, self.timeout, self.loss, self.probe) =
                (Outage::No, Time::NEVER, Time::NEVER, Time::NEVER);
            self.per.restart();
            self.mtu.iter_mut().for_each(PathMtu::restart);
            self.cut();
            self.establish(None, now);
        }
    }

    /// When a packet of the peer was last taken.
    #[cfg(feature = "seal")]
    pub(crate) fn last_heard(&self) -> Time {
        self.last_heard
    }

    /// Whether it is over.
    #[cfg(feature = "seal")]
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The connection is over: by what the peer did, or because it did nothing.
    fn fail(&mut self, reason: Option<u8>) {
        (self.state, self.goodbye) = (State::Over, reason);
        self.opening.end();
        for due in [&mut self.timeout, &mut self.loss, &mut self.pace, &mut self.probe] {
            *due = Time::NEVER;
        }
    }

    /// Whether all that was written is acknowledged.
    fn is_at_rest(&self) -> bool {
        self.outgoing.values().all(Outgoing::is_settled)
    }

    /// When a packet is to ask whether the peer is there.
    fn asks_at(&self) -> Time {
        match self.keepalive.filter(|_| self.state == State::Open && !self.outage.is_on()) {
            Some(keepalive) => self.last_heard.max(self.asked) + keepalive,
            None => Time::NEVER,
        }
    }

    /// When the connection is over unless something is heard before.
    fn ends_at(&self) -> Time {
        let counts = self.state == State::Open && self.is_at_rest();
        if counts { self.last_heard + self.idle } else { Time::NEVER }
    }
}
