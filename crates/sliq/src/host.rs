//! The connections of one UDP socket: it finds a packet's connection, admits new ones, and tells which connection to serve next. It holds
//! no socket and reads no clock; its caller passes packets and times.

use super::Parameters;
use super::connection::guide_of;
use super::handshake::{Answer, Responder};
use super::link::{Link, LinkSetup};
use super::path::Candidate;
use super::seal::KEY;
use super::secrets::Secrets;
use super::wire::{HEADER, Header, Kind, TAG, connection_of};
use core::net::{IpAddr, SocketAddr};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weir_base::{Bytes, Ecn, Span, Time};
use weir_coord::guide::Guide;
use weir_coord::header::{LONGEST, Prefix};
use weir_coord::participation::Identity;
use weir_coord::scheme::Own;
use weir_endpoint::{Endpoint, Setup};

/// Key exchanges per second without load; each takes about a third of a millisecond. Further requests must carry a cookie.
const EXCHANGES: u32 = 64;
const PERIOD: Span = Span::from_secs(1);
/// A connection that is over still answers its peer for this long, since its close may be lost.
const LINGER: Span = Span::from_secs(3);
/// Maximum number of connections of a socket.
const MOST_LINKS: usize = 10_000;

/// Spreads small numbers over 64 bits (2^64 over the golden ratio, odd).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Length of a packet with a challenge, in bytes.
const CHALLENGE: usize = HEADER + 9 + TAG;
/// The lowest address.
const LOWEST: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);

/// The connections that a socket accepts.
pub struct Accepts {
    /// Answers requests of known keys. If `None`, connections are plain, and only processes on this machine may ask, over loopback.
    pub responder: Option<Responder>,
    /// Parameters of accepted connections.
    pub parameters: Parameters,
    /// Their controllers.
    pub controllers: Vec<weir_control::Config>,
    /// Whether their streams carry messages.
    pub messages: bool,
    /// Length of the largest IP packet.
    pub mtu: Bytes,
    /// Seed of the controllers' random numbers.
    pub seed: u64,
    /// The identity of connections if they take part in an application; each connection has a higher epoch than those before.
    pub identity: Option<Identity>,
}

impl Accepts {
    /// The identity of the next connection, with the next epoch.
    fn next_identity(&mut self) -> Option<Identity> {
        let identity = self.identity.as_mut()?;
        identity.epoch = identity.epoch.wrapping_add(1);
        Some(*identity)
    }

    fn guide(&self) -> Option<Guide> {
        guide_of(self.parameters.coordination.as_ref(), self.identity.as_ref()?)
    }

    /// Whether a packet belongs to the application's flow that accepted connections are, or has no CP header if they are not coordinated.
    fn is_for(&self, packet: &[u8], now: Time) -> bool {
        match self.guide() {
            Some(mut guide) => guide.takes(packet, now).is_some_and(|header| header > 0),
            None => Prefix::read(packet).is_err(),
        }
    }

    /// A packet with this reply to an address without a connection: behind a CP header if connections have one.
    fn packet_of(&mut self, reply: Vec<u8>, now: Time) -> Vec<u8> {
        self.next_identity();
        let Some(mut guide) = self.guide() else { return reply };
        let mut packet = vec![];
        guide.begin(&Own::default(), &mut packet, now);
        packet.extend(reply);
        packet
    }
}

/// The bytes behind the CP header, if the packet has one: the first four bits of a CP header are its version, those of a SLIQ packet the
/// mark.
fn behind_cp_header(packet: &mut [u8]) -> &mut [u8] {
    let header = Prefix::read(packet).map_or(0, |prefix| prefix.version.length());
    &mut packet[header..]
}

/// The host's state of a connection.
struct Entry {
    link: Link,
    peer: SocketAddr,
    connection: u32,
    /// The key of the peer that has asked for it; `None` if this end asked, or without keys.
    key: Option<[u8; KEY]>,
    /// The time for which it stands in the queue of timers, and whether it stands in the queue of connections to serve.
    armed: Time,
    queued: bool,
    /// Until when a connection that is over still answers its peer; `None` while it is not over.
    lingers: Option<Time>,
    /// The address at which its peer may be now.
    candidate: Option<Candidate>,
    /// Whether a copy of its request, forwarded by somebody, was answered at another address as well: a sealed packet from this address
    /// then does not prove that the answer has reached it.
    doubted: bool,
}

/// The connections of a socket, by number. A number is reused when its connection is over.
pub struct Host {
    accepts: Option<Accepts>,
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_name: BTreeMap<(u32, SocketAddr), usize>,
    timers: BinaryHeap<Reverse<(Time, usize)>>,
    moved: VecDeque<usize>,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The start of the present second, and the number of key exchanges in it.
    exchanges: (Time, u32),
    /// Whether any connection takes part in an application.
    is_coordinated: bool,
    /// Connections made so far, and packets from addresses that were not confirmed.
    made: u64,
    challenges: u64,
}

impl Host {
    /// A socket without connections. Others may ask for one if `accepts` is given.
    pub fn new(accepts: Option<Accepts>) -> Host {
        Host {
            accepts,
            entries: Vec::new(),
            free: Vec::new(),
            by_name: BTreeMap::new(),
            timers: BinaryHeap::new(),
            moved: VecDeque::new(),
            replies: VecDeque::new(),
            exchanges: (Time::ZERO, 0),
            is_coordinated: false,
            made: 0,
            challenges: 0,
        }
    }

    /// Lets the owners of these keys, and no others, ask for connections from now on.
    pub fn allow(&mut self, keys: &[[u8; KEY]]) {
        if let Some(responder) = self.accepts.as_mut().and_then(|accepts| accepts.responder.as_mut()) {
            responder.allow(keys);
        }
    }

    /// Takes over a connection to a peer and returns its number. `None` if this peer has one with the same connection number, or there are
    /// too many.
    pub fn add(
        &mut self,
        link: Link,
        connection: u32,
        peer: SocketAddr,
        key: Option<[u8; KEY]>,
    ) -> Option<usize> {
        let name = (connection, peer);
        if self.by_name.len() >= MOST_LINKS || self.by_name.contains_key(&name) {
            return None;
        }
        self.is_coordinated |= link.is_coordinated();
        let entry = Entry {
            link,
            peer,
            connection,
            key,
            armed: Time::NEVER,
            queued: false,
            lingers: None,
            candidate: None,
            doubted: false,
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[number] = Some(entry);
        self.by_name.insert(name, number);
        self.made += 1;
        self.look_at(number);
        Some(number)
    }

    /// A connection.
    pub fn link(&mut self, number: usize) -> Option<&mut Link> {
        Some(&mut self.entries.get_mut(number)?.as_mut()?.link)
    }

    /// The address of a connection's peer.
    pub fn peer(&self, number: usize) -> Option<SocketAddr> {
        Some(self.entries.get(number)?.as_ref()?.peer)
    }

    /// The key of the peer that has asked for a connection.
    pub fn key(&self, number: usize) -> Option<[u8; KEY]> {
        self.entries.get(number)?.as_ref()?.key
    }

    /// The number of 24 bits by which both ends know a connection.
    pub fn connection(&self, number: usize) -> Option<u32> {
        Some(self.entries.get(number)?.as_ref()?.connection)
    }

    /// The secrets of a connection, for a log of keys; `None` unless it is sealed with its first keys, which are changed after 120 s at the
    /// soonest or after 2^22 packets.
    pub fn secrets(&self, number: usize) -> Option<Secrets> {
        let entry = self.entries.get(number)?.as_ref()?;
        entry.link.secrets(entry.connection)
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A packet has arrived, with this codepoint. It is decrypted in place.
    pub fn receive(&mut self, from: SocketAddr, packet: &mut [u8], ecn: Ecn, now: Time) {
        let Some(connection) = connection_of(behind_cp_header(packet)) else {
            return self.reported(from, packet, now);
        };
        match self.by_name.get(&(connection, from)).copied() {
            Some(number) => {
                let Some(Some(entry)) = self.entries.get_mut(number) else { return };
                entry.link.receive_packet(packet, ecn, now);
                if entry.doubted && !entry.link.is_answered() {
                    self.ask_whether_there(number, from, packet.len(), now);
                }
                self.look_at(number);
            }
            None if self.came_elsewhere(from, connection, packet, ecn, now) => {}
            None => self.asked(from, connection, packet, ecn, now),
        }
    }

    /// A packet with nothing but reports has arrived: a connection's aggregation point has sent it back.
    fn reported(&mut self, from: SocketAddr, packet: &mut [u8], now: Time) {
        if !self.is_coordinated {
            return;
        }
        // A flow of an application is one connection, so there are few.
        let its = |entry: &&mut Entry| entry.peer == from && entry.link.is_coordinated();
        if let Some(entry) = self.entries.iter_mut().flatten().find(its) {
            entry.link.receive_packet(packet, Ecn::NotEct, now);
        }
    }

    /// A packet has arrived from an address that is not known for its connection number. Returns whether it comes from a peer that has
    /// moved.
    fn came_elsewhere(
        &mut self,
        from: SocketAddr,
        connection: u32,
        packet: &[u8],
        ecn: Ecn,
        now: Time,
    ) -> bool {
        let numbers: Vec<usize> = numbered(&self.by_name, connection).collect();
        numbers.into_iter().any(|number| self.is_of(number, from, packet, ecn, now))
    }

    /// Whether a packet from a new address is from this connection's peer. If so, the peer is challenged there, or has answered the
    /// challenge.
    fn is_of(&mut self, number: usize, from: SocketAddr, packet: &[u8], ecn: Ecn, now: Time) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return false };
        let opens = entry.link.receive_elsewhere(&mut packet.to_vec(), ecn, now);
        if opens {
            self.ask_whether_there(number, from, packet.len(), now);
            self.look_at(number);
        }
        opens
    }

    /// A packet of `bytes` bytes has arrived from a new address of a connection's peer. The peer is challenged there, or has answered the
    /// challenge.
    fn ask_whether_there(&mut self, number: usize, from: SocketAddr, bytes: usize, now: Time) {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return };
        // Only a receiver at that address sees the number, so it need not be unpredictable: a different one for each address and time is
        // enough.
        self.challenges += 1;
        let challenge = now.as_nanos() ^ self.challenges.wrapping_mul(ODD);
        let candidate = entry.candidate.filter(|candidate| candidate.address == from);
        let mut candidate = candidate.unwrap_or_else(|| Candidate::new(from, challenge));
        candidate.heard(bytes);
        if entry.link.take_response() == Some(candidate.challenge) {
            self.by_name.remove(&(entry.connection, entry.peer));
            self.by_name.insert((entry.connection, from), number);
            // If only the port differs, the path is the same.
            if entry.peer.ip() != from.ip() {
                entry.link.begin_path(now);
            }
            (entry.peer, entry.candidate, entry.doubted) = (from, None, false);
        } else {
            let header = if entry.link.is_coordinated() { LONGEST } else { 0 };
            if candidate.asks(header + CHALLENGE, now)
                && let Some(packet) = entry.link.challenge(candidate.challenge, now)
            {
                self.replies.push_back((from, packet));
            }
            entry.candidate = Some(candidate);
        }
    }

    /// A packet has arrived that may ask for a connection.
    fn asked(&mut self, from: SocketAddr, connection: u32, packet: &mut [u8], ecn: Ecn, now: Time) {
        let whole = packet;
        if Header::read(behind_cp_header(whole)).is_none_or(|(header, _)| header.kind != Kind::Open) {
            return;
        }
        let loaded = self.is_loaded(now);
        let Some(accepts) = self.accepts.as_mut().filter(|accepts| accepts.is_for(whole, now)) else {
            return;
        };
        let packet = behind_cp_header(whole);
        let identity = accepts.next_identity();
        let of = LinkSetup {
            parameters: &accepts.parameters,
            controllers: &accepts.controllers,
            setup: setup(from.ip(), accepts.messages, accepts.mtu, accepts.seed, self.made),
            connection,
            identity,
        };
        let (mut link, key) = match &mut accepts.responder {
            None if from.ip().is_loopback() => (Link::plain(&of), None),
            None => return,
            Some(responder) => match responder.take(packet, &octets(from), loaded, now) {
                Answer::Nothing => return,
                Answer::Reply(reply) => {
                    let packet = accepts.packet_of(reply, now);
                    self.replies.push_back((from, packet));
                    return self.doubt(connection);
                }
                Answer::Agreed { reply, seal, peer, .. } => {
                    self.exchanges.1 += 1;
                    (Link::answered(&of, packet, reply, seal, now), Some(peer))
                }
            },
        };
        if key.is_none() {
            link.receive_packet(whole, ecn, now);
        }
        self.add(link, connection, from, key);
    }

    /// Notes that a request for a connection with this number was answered at another address as well.
    fn doubt(&mut self, connection: u32) {
        for number in numbered(&self.by_name, connection) {
            if let Some(Some(entry)) = self.entries.get_mut(number) {
                entry.doubted |= entry.link.is_answered();
            }
        }
    }

    fn is_loaded(&mut self, now: Time) -> bool {
        if now.since(self.exchanges.0) >= PERIOD {
            self.exchanges = (now, 0);
        }
        self.exchanges.1 >= EXCHANGES
    }

    /// The next packet to an address without a connection, with that address; `None` if there is none.
    pub fn reply(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// Queues a connection to be served: its application has something to do, or it may have something to send.
    pub fn look_at(&mut self, number: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(number)
            && !std::mem::replace(&mut entry.queued, true)
        {
            self.moved.push_back(number);
        }
    }

    /// The next connection to serve: its application first, then its packets.
    pub fn moved(&mut self) -> Option<usize> {
        loop {
            let number = self.moved.pop_front()?;
            if let Some(entry) = &mut self.entries[number] {
                entry.queued = false;
                return Some(number);
            }
        }
    }

    /// Appends the next packet of a connection that leaves now and returns its codepoint; `None` if there is none.
    pub fn transmit(&mut self, number: usize, into: &mut Vec<u8>, now: Time) -> Option<Ecn> {
        let entry = self.entries.get_mut(number)?.as_mut()?;
        if entry.doubted && !entry.link.is_answered() {
            return None;
        }
        entry.link.transmit_packet(into, now)
    }

    /// A connection was served and has nothing more to send. Returns whether it has just ended; its application then leaves it.
    pub fn settle(&mut self, number: usize, now: Time) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return false };
        let over = entry.link.is_over();
        let ends = over && entry.lingers.is_none();
        if ends {
            entry.lingers = Some(now + LINGER);
        }
        let due = entry.lingers.unwrap_or_else(|| entry.link.next_timer());
        // Packets that are due wait until the peer's address is confirmed.
        let due = if entry.doubted { due.max(now + PERIOD) } else { due };
        if due < entry.armed {
            entry.armed = due;
            self.timers.push(Reverse((due, number)));
        }
        ends
    }

    fn remove(&mut self, number: usize) {
        if let Some(entry) = self.entries[number].take() {
            self.by_name.remove(&(entry.connection, entry.peer));
            self.free.push(number);
        }
    }

    /// When [`Host::on_timer`] is due.
    pub fn next_timer(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Serves the timers that are due.
    pub fn on_timer(&mut self, now: Time) {
        while let Some(&Reverse((at, number))) = self.timers.peek().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            let Some(entry) = self.entries[number].as_mut().filter(|entry| entry.armed == at) else {
                continue;
            };
            entry.armed = Time::NEVER;
            if entry.lingers.is_some_and(|until| until <= now) {
                self.remove(number);
                continue;
            }
            if entry.link.next_timer() <= now {
                entry.link.on_timer(now);
            }
            self.look_at(number);
        }
    }
}

/// The setup of a connection to a peer. `number` is used as the flow's number.
pub fn setup(peer: IpAddr, messages: bool, mtu: Bytes, seed: u64, number: u64) -> Setup<'static> {
    let ip_header = if peer.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
    Setup {
        settings: None,
        datagrams: messages,
        admitted: false,
        ecn: Ecn::NotEct,
        mtu,
        ip_header,
        seed,
        flow: number,
    }
}

/// Length of an IP header in bytes (RFC 791, RFC 8200).
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;

/// The connections with this number, one per peer address: their indices in the host's entries.
fn numbered(
    by_name: &BTreeMap<(u32, SocketAddr), usize>,
    connection: u32,
) -> impl Iterator<Item = usize> + '_ {
    let from = by_name.range((connection, LOWEST)..);
    from.take_while(move |((other, _), _)| *other == connection).map(|(_, number)| *number)
}

/// The bytes of an address over which cookies are made.
fn octets(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

#[cfg(test)]
mod tests;
