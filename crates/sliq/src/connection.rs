//! A connection: its state, and how it begins and ends. Arrivals, departures and the [`weir_endpoint::Endpoint`] that its driver sees have files
//! of their own.

mod arrive;
mod coordinated;
mod end;
mod leave;
mod path;

use super::acks::Acks;
use super::capacity::Capacity;
use super::credit::{self, Allowed, Granted};
use super::delay::Delay;
use super::departure::Left;
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
use coordinated::Coordinated;
use std::collections::BTreeMap;
use weir_base::{Ecn, Random, Span, Time};
use weir_coord::guide::Guide;
use weir_coord::participation::{Coordination, Identity};
use weir_endpoint::Setup;
use weir_endpoint::Stream;

/// Length of a UDP header in bytes (RFC 768).
const UDP_HEADER: u32 = 8;
/// SLIQ's protocol number in the CP header.
const PROTOCOL: u8 = 3;
/// Each packet is acknowledged at once from this rate of loss on.
const HIGH_PER: f64 = 0.05;
/// Reason for a close: the peer acknowledged a packet that was never sent, or sent a frame that is not valid.
const PROTOCOL_ERROR: u8 = 1;
/// Reason for a close: nothing was heard for too long, or the connection no longer exists.
const GONE: u8 = 2;
/// A first round trip longer than this counts as long (the GNAT software).
const LONG: Span = Span::from_millis(50);
/// Reason for a close: the application has ended the connection.
#[cfg(feature = "seal")]
const AS_WISHED: u8 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not opened, and no packet has arrived.
    Closed,
    /// A request to open was sent, or is to be sent.
    Opening,
    Open,
    /// The connection is over: by a close, by an error of the peer, or because the peer did not answer.
    Over,
}

/// One end of a connection.
pub(crate) struct Connection {
    /// Parameters of its streams, and whether each carries messages. Streams beyond these have the first one's parameters.
    streams: Vec<(StreamParameters, bool)>,
    keepalive: Option<Span>,
    idle: Span,
    /// The controllers, each with the codepoint of its packets.
    controllers: Vec<(weir_control::Config, Ecn)>,
    id: u32,
    /// The codepoint of all packets, if the application has chosen one.
    ecn: Ecn,
    marks: Marks,
    /// In bytes: a full segment, a segment that every path carries, and the headers (and tag) around a segment in an IP packet.
    payload: u32,
    base: u32,
    overhead: u32,
    /// The search for the largest packet; `None` if the size is known.
    mtu: Option<PathMtu>,
    /// The measurement of the path's rate at the start: when to make it, the measurement itself, and whether it is still to begin.
    fast_start: FastStart,
    train: Option<Train>,
    fresh: bool,
    /// Length of the tag of sealed packets. The simulator encrypts nothing; there a tag is zeros.
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
    /// The reported rate at which packets leave; `None` where the controllers decide.
    coordinated: Option<Coordinated>,
    flights: Vec<Flight>,
    /// Segments of all streams together: what the peer accepts from this end, and what the peer may send.
    allowed: Allowed,
    granted: Granted,
    /// Number of segments that the peer has sent on all streams.
    reached: u32,
    schedule: Schedule,
    outgoing: BTreeMap<u8, Outgoing>,
    incoming: BTreeMap<u8, Incoming>,
    /// Timers; `Time::NEVER` if not set.
    timeout: Time,
    loss: Time,
    pace: Time,
    probe: Time,
    accept: bool,
    /// The peer is still to be told that the handshake has succeeded.
    greets: bool,
    goodbye: Option<u8>,
    /// The number of the peer's challenge, which is to be sent back; and the number that the peer has sent back.
    challenged: Option<u64>,
    responded: Option<u64>,
    last_heard: Time,
    /// The latest time that a call has passed in.
    latest: Time,
    /// When the newest keepalive packet left.
    asked: Time,
    last_ack: Time,
    timeouts: u64,
    /// The first bytes of the packet that leaves.
    head: Vec<u8>,
    repair: Vec<u8>,
    /// What it carries.
    left: Left,
}

/// The codepoint of a controller's packets: the one that the lab sets for the group; otherwise the controller's own, if its ECN feedback
/// is not classic.
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

/// Payload of a full segment in a packet of this UDP payload, in bytes.
fn payload_of(packet: u32, tag: u32) -> u32 {
    // A repair packet has a longer header than a part, and shorter segments (`Outgoing::room_of`).
    packet.saturating_sub((HEADER + PART_HEADER) as u32 + tag).max(1)
}

/// Bytes of a sealed packet's tag.
fn tag(parameters: &Parameters) -> u32 {
    if parameters.seal == SealName::Noise { TAG as u32 } else { 0 }
}

/// The guide of a connection that takes part in an application; `None` for others.
pub(super) fn guide_of(coordination: Option<&Coordination>, identity: &Identity) -> Option<Guide> {
    Some(Guide::new(coordination?, PROTOCOL, identity))
}

/// Payload of a full segment if IP packets have at most `mtu` bytes, and the bytes of the headers around it.
pub(super) fn full_packet(parameters: &Parameters, mtu: u32, ip_header: u32) -> (u32, u32) {
    let guide = guide_of(parameters.coordination.as_ref(), &Identity::in_lab(0));
    let cp = guide.map_or(0, |guide| guide.header_length() as u32);
    let (headers, tag) = (ip_header + UDP_HEADER + cp, tag(parameters));
    let due = if parameters.stream.deadline.is_some() { DUE as u32 } else { 0 };
    let payload = payload_of(mtu.saturating_sub(headers), tag).saturating_sub(due).max(1);
    (payload, headers + (HEADER + DATA_HEADER) as u32 + tag + due)
}

impl Connection {
    /// One end of the connection with this number, below 2^24. `identity` is its identity if it takes part in an application.
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
        // A CP header precedes each packet, as a UDP header does.
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
            left: Left::default(),
        }
    }

    fn outgoing(&mut self, stream: Stream) -> Option<&mut Outgoing> {
        let id = u8::try_from(stream.0).ok().filter(|id| usize::from(*id) < MOST_STREAMS)?;
        let (parameters, messages) = self.streams.get(usize::from(id)).unwrap_or(&self.streams[0]);
        let new = || Outgoing::new(id, parameters, *messages, (self.payload, self.base));
        Some(self.outgoing.entry(id).or_insert_with(new))
    }

    /// Adds a stream and returns its number; `None` if there are too many.
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

    /// Sets the length of packets to what the path is known to carry.
    fn cut(&mut self) {
        let Some(mtu) = &self.mtu else { return };
        self.payload = payload_of(mtu.carried(), self.tag);
        let payload = self.payload;
        self.flights.iter_mut().for_each(|flight| flight.set_mss(payload));
        self.outgoing.values_mut().for_each(|stream| stream.cut(payload));
    }

    /// Begins to measure the path's rate, if the round trip is known and there is data to send.
    fn begin_train(&mut self, now: Time) {
        let Some(rtt) = self.rtt.smoothed().filter(|_| self.fresh && !self.is_at_rest()) else { return };
        self.fresh = false;
        let measures = match self.fast_start {
            // A coordinated connection has no windows to open.
            _ if self.is_coordinated() => false,
            FastStart::Never => false,
            FastStart::Long => rtt > LONG && self.flights.iter().any(Flight::keeps_queues_short),
            FastStart::Always => true,
        };
        let packet = train::PACKET.min(self.payload + (HEADER + PART_HEADER) as u32 + self.tag);
        self.train = measures.then(|| Train::new(packet, rtt, now));
    }

    /// Opens windows to the path's rate, once the measurement is over.
    fn end_train(&mut self, now: Time) {
        let Some(train) = self.train.take_if(|train| train.is_over(now)) else { return };
        let headers = self.overhead - (HEADER + DATA_HEADER) as u32 - self.tag;
        let Some((rate, rtt)) = train.measured(headers) else { return };
        self.capacity.begin(rate);
        let packets = u128::from(rate.bytes_in(rtt).get());
        let (payload, overhead) = (u128::from(self.payload), u128::from(self.overhead));
        let window = (packets * payload / (payload + overhead)) as u64;
        let all = self.fast_start == FastStart::Always;
        let opens = self.flights.iter_mut().filter(|flight| all || flight.keeps_queues_short());
        opens.for_each(|flight| flight.open_to(window));
    }

    /// Whether packets may leave that are no probes of an outage: only then is a timer of use whose packet waits for its turn.
    fn is_sending(&self) -> bool {
        self.state == State::Open && !self.outage.is_on()
    }

    /// When the search for the largest packet has something to do; never while all data is acknowledged.
    fn searches_at(&self) -> Time {
        let mtu = self.mtu.as_ref().filter(|_| self.is_sending());
        mtu.filter(|_| !self.is_at_rest()).map_or(Time::NEVER, PathMtu::next_timer)
    }

    /// The retransmission timeout: the time without an acknowledgement, after a packet has left.
    fn timeout_after(&self) -> Span {
        // The handshake's RTT says little: on a slow link a full packet takes longer than the whole handshake.
        let known = self.flights.iter().any(|flight| flight.delivered() > 0);
        // A stream with a deadline has no time for a long timeout.
        let fast = known
            && (self.flights.iter().any(Flight::wants_fast_timeout)
                || self.outgoing.values().any(Outgoing::is_planned));
        if fast { self.rtt.fast_timeout() } else { self.rtt.timeout() }
    }

    /// The ends have agreed by a separate handshake with this RTT. `greets`: the peer does not know yet that it has succeeded.
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

    /// The application ends the connection. Data that is not acknowledged may be lost.
    #[cfg(feature = "seal")]
    pub(crate) fn end(&mut self) {
        if self.state != State::Over {
            self.fail(Some(AS_WISHED));
        }
    }

    /// The number that the peer has sent back since the last call; `None` if there is none.
    #[cfg(feature = "seal")]
    pub(crate) fn take_response(&mut self) -> Option<u64> {
        self.responded.take()
    }

    /// The peer is on another path: estimates of the old path are dropped, and packets in flight count as lost.
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
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Ends the connection. With a `reason`, the peer is told.
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

    /// When the next keepalive packet is due.
    fn asks_at(&self) -> Time {
        match self.keepalive.filter(|_| self.is_sending()) {
            Some(keepalive) => self.last_heard.max(self.asked) + keepalive,
            None => Time::NEVER,
        }
    }

    /// When the idle connection ends, unless a packet arrives before.
    fn ends_at(&self) -> Time {
        let counts = self.state == State::Open && self.is_at_rest();
        if counts { self.last_heard + self.idle } else { Time::NEVER }
    }
}
