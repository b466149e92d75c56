//! The connections of one UDP socket: which of them a packet belongs to, who may ask for one, and when each is to be looked at next.
//! It holds no socket and reads no clock; whoever does hands it packets and times.

use super::Parameters;
use super::connection::guide_of;
use super::handshake::{Answer, Responder};
use super::link::{Link, LinkSetup};
use super::path::Candidate;
use super::seal::KEY;
use super::wire::{HEADER, Header, Kind, TAG, connection_of};
use crate::coordination::Identity;
use crate::guide::Guide;
use crate::{Endpoint, Setup};
use core::net::{IpAddr, SocketAddr};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weir_base::{Bytes, Ecn, Span, Time};
use weir_coord::header::{LONGEST, Prefix};
use weir_coord::scheme::Own;

/// So many key exchanges a second are no load; each takes a third of a millisecond or so. Who asks beyond that must show a cookie.
const EXCHANGES: u32 = 64;
const PERIOD: Span = Span::from_secs(1);
/// A connection that is over answers its peer for so long: what said so may be lost.
const LINGER: Span = Span::from_secs(3);
/// Connections of a socket.
const MOST_LINKS: usize = 10_000;

/// Spreads small numbers over 64 bits (2^64 over the golden ratio, odd).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Length of a packet with a challenge.
const CHALLENGE: usize = HEADER + 9 + TAG;
/// The lowest address.
const LOWEST: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);

/// What connections are that others ask for.
pub struct Accepts {
    /// Answers those who may ask. Without one connections are plain, and only processes of this machine may ask, by loopback.
    pub responder: Option<Responder>,
    /// Their streams.
    pub parameters: Parameters,
    /// Their controllers.
    pub controllers: Vec<weir_control::Config>,
    /// Whether what is written to them are messages.
    pub messages: bool,
    /// Largest IP packet.
    pub mtu: Bytes,
    /// What the controllers' random numbers follow from.
    pub seed: u64,
    /// Who a connection is, where the parameters have it take part in an application; each one has an epoch above those before.
    pub identity: Option<Identity>,
}

impl Accepts {
    /// Who the next connection is.
    fn next_identity(&mut self) -> Option<Identity> {
        let identity = self.identity.as_mut()?;
        identity.epoch = identity.epoch.wrapping_add(1);
        Some(*identity)
    }

    fn guide(&self) -> Option<Guide> {
        guide_of(self.parameters.coordination.as_ref(), self.identity.as_ref()?)
    }

    /// Whether a packet is of the application's flow that connections are, or of none where they are none.
    fn is_for(&self, packet: &[u8], now: Time) -> bool {
        match self.guide() {
            Some(mut guide) => guide.takes(packet, now).is_some_and(|header| header > 0),
            None => Prefix::read(packet).is_err(),
        }
    }

    /// What is sent to somebody to whom there is no connection, as a packet: behind a CP header where connections have one.
    fn packet_of(&mut self, reply: Vec<u8>, now: Time) -> Vec<u8> {
        self.next_identity();
        let Some(mut guide) = self.guide() else { return reply };
        let mut packet = vec![];
        guide.begin(&Own::default(), &mut packet, now);
        packet.extend(reply);
        packet
    }
}

/// What follows the CP header of a packet that has one: the first half of the first byte is its version there, and SLIQ's mark otherwise.
fn behind_cp_header(packet: &mut [u8]) -> &mut [u8] {
    let header = Prefix::read(packet).map_or(0, |prefix| prefix.version.length());
    &mut packet[header..]
}

/// What the host knows of a connection.
struct Entry {
    link: Link,
    peer: SocketAddr,
    connection: u32,
    /// The key of who has asked for it.
    key: Option<[u8; KEY]>,
    /// The time for which it is in the timers' queue, and whether it is in that of those to be looked at.
    armed: Time,
    queued: bool,
    /// Until when a connection that is over still answers its peer.
    lingers: Option<Time>,
    /// Where its peer may be now.
    candidate: Option<Candidate>,
    /// Whether its request was answered at another address as well, since somebody has sent it on: that what its peer seals comes from here
    /// does not show then that the answer has come here.
    doubted: bool,
}

/// The connections of a socket, by number. A number is used again when its connection is over.
pub struct Host {
    accepts: Option<Accepts>,
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_name: BTreeMap<(u32, SocketAddr), usize>,
    timers: BinaryHeap<Reverse<(Time, usize)>>,
    moved: VecDeque<usize>,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Key exchanges in the second that began then.
    exchanges: (Time, u32),
    /// Whether any of them takes part in an application.
    is_coordinated: bool,
    /// Connections that were made so far, and times at which a peer was to show that it is somewhere.
    made: u64,
    challenges: u64,
}

impl Host {
    /// A socket without connections, for which others may ask if it accepts them.
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

    /// Takes over a connection to a peer; its number. `None` where there is one of its name already, or there are too many.
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

    /// Where a connection leads.
    pub fn peer(&self, number: usize) -> Option<SocketAddr> {
        Some(self.entries.get(number)?.as_ref()?.peer)
    }

    /// The key of who has asked for a connection.
    pub fn key(&self, number: usize) -> Option<[u8; KEY]> {
        self.entries.get(number)?.as_ref()?.key
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A packet has arrived, with this codepoint. It is opened in place.
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

    /// A packet of nothing but reports has come from a connection's peer: its aggregation point has sent it back.
    fn reported(&mut self, from: SocketAddr, packet: &mut [u8], now: Time) {
        if !self.is_coordinated {
            return;
        }
        // An application's flow is of one connection, so there are few.
        let its = |entry: &&mut Entry| entry.peer == from && entry.link.is_coordinated();
        if let Some(entry) = self.entries.iter_mut().flatten().find(its) {
            entry.link.receive_packet(packet, Ecn::NotEct, now);
        }
    }

    /// A packet has arrived from where none of its connection's peers is known to be. Answers whether it is of one that has moved.
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

    /// Whether a packet from elsewhere is of this connection's peer. If so, that is asked to show that it is there, or has shown it.
    fn is_of(&mut self, number: usize, from: SocketAddr, packet: &[u8], ecn: Ecn, now: Time) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return false };
        let opens = entry.link.receive_elsewhere(&mut packet.to_vec(), ecn, now);
        if opens {
            self.ask_whether_there(number, from, packet.len(), now);
            self.look_at(number);
        }
        opens
    }

    /// A packet of so many bytes has come from where a connection's peer may be. It is asked to show that it is there, or has shown it.
    fn ask_whether_there(&mut self, number: usize, from: SocketAddr, bytes: usize, now: Time) {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return };
        // Who sees it can answer anyway, and nobody else sees it: that it is another one for each address and time is enough.
        self.challenges += 1;
        let challenge = now.as_nanos() ^ self.challenges.wrapping_mul(ODD);
        let candidate = entry.candidate.filter(|candidate| candidate.address == from);
        let mut candidate = candidate.unwrap_or_else(|| Candidate::new(from, challenge));
        candidate.heard(bytes);
        if entry.link.take_response() == Some(candidate.challenge) {
            self.by_name.remove(&(entry.connection, entry.peer));
            self.by_name.insert((entry.connection, from), number);
            // Of another port alone the path is the same.
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

    /// Somebody asks for a connection.
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

    /// A request for a connection of this number was answered at another address as well.
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

    /// What is to be sent to somebody to whom there is no connection.
    pub fn reply(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// Has a connection looked at: its application has something to do, or it may have something to send.
    pub fn look_at(&mut self, number: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(number)
            && !std::mem::replace(&mut entry.queued, true)
        {
            self.moved.push_back(number);
        }
    }

    /// The next connection that is to be looked at: its application first, then what it sends.
    pub fn moved(&mut self) -> Option<usize> {
        loop {
            let number = self.moved.pop_front()?;
            if let Some(entry) = &mut self.entries[number] {
                entry.queued = false;
                return Some(number);
            }
        }
    }

    /// Appends the next packet of a connection that leaves now, and answers its codepoint.
    pub fn transmit(&mut self, number: usize, into: &mut Vec<u8>, now: Time) -> Option<Ecn> {
        let entry = self.entries.get_mut(number)?.as_mut()?;
        if entry.doubted && !entry.link.is_answered() {
            return None;
        }
        entry.link.transmit_packet(into, now)
    }

    /// A connection was looked at and has nothing more to send. Answers whether it has come to be over; its application then leaves it.
    pub fn settle(&mut self, number: usize, now: Time) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(number) else { return false };
        let over = entry.link.is_over();
        let ends = over && entry.lingers.is_none();
        if ends {
            entry.lingers = Some(now + LINGER);
        }
        let due = entry.lingers.unwrap_or_else(|| entry.link.next_timer());
        // What is due to leave waits until it is known where to.
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

    /// A time has come.
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

/// What a connection to a peer is told that all transports are told.
pub fn setup(peer: IpAddr, messages: bool, mtu: Bytes, seed: u64, number: u64) -> Setup<'static> {
    let ip_header = if peer.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
    Setup { settings: None, datagrams: messages, ecn: Ecn::NotEct, mtu, ip_header, seed, flow: number }
}

/// Length of an IP header (RFC 791, RFC 8200).
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;

/// The connections that peers have given this number: their places in the host's entries.
fn numbered(
    by_name: &BTreeMap<(u32, SocketAddr), usize>,
    connection: u32,
) -> impl Iterator<Item = usize> + '_ {
    let from = by_name.range((connection, LOWEST)..);
    from.take_while(move |((other, _), _)| *other == connection).map(|(_, number)| *number)
}

/// An address as cookies are made of it.
fn octets(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

#[cfg(test)]
mod tests;
