//! The connection to a neighbour: SLIQ over this node's socket, with one stream for each kind of traffic ([`hop`]).

use super::config::{Neighbour, Plan};
use super::drawn;
use crate::failure::Failure;
use std::net::SocketAddr;
use weir_base::{Bytes, Span, Time};
use weir_endpoint::{Endpoint, Message, Stream};
use weir_overlay::cat::Delay;
use weir_overlay::{NodeId, Reported, Signal};
use weir_sliq::Parameters;
use weir_sliq::handshake::Responder;
use weir_sliq::hop::{CONTROL, Config, DATA, DEPTHS, SENSITIVE};
use weir_sliq::host::{Accepts, Host, setup};
use weir_sliq::link::{Link, LinkSetup};

/// A neighbour that is silent for so long is asked for a new connection: it may have started anew.
const SILENCE: Span = Span::from_secs(3);
/// Time between two requests for a connection.
const AGAIN: Span = Span::from_millis(500);

/// A neighbour, and the connection to it.
pub(super) struct Carrier {
    pub(super) name: String,
    pub(super) id: NodeId,
    key: [u8; 32],
    asks: Option<SocketAddr>,
    /// Its number at the host; `None` without a connection.
    pub(super) number: Option<usize>,
    /// Since when there is this connection, and when the next one may be asked for.
    since: Time,
    again: Time,
    message: Vec<u8>,
}

impl Carrier {
    pub(super) fn new(of: &Neighbour) -> Carrier {
        let Neighbour { name, id, key, asks, .. } = of.clone();
        let (since, again) = (Time::ZERO, Time::ZERO);
        Carrier { name, id, key: key.0, asks, number: None, since, again, message: Vec::new() }
    }

    /// Whether this key is the neighbour's.
    pub(super) fn has_key(&self, key: &[u8; 32]) -> bool {
        self.key == *key
    }

    /// Takes over a connection that the neighbour has asked for. An older one is ended; the result is its number.
    pub(super) fn adopt(
        &mut self,
        number: usize,
        policy: &Config,
        host: &mut Host,
        now: Time,
    ) -> Option<usize> {
        let old = self.number.replace(number);
        old.into_iter().for_each(|old| end(old, host));
        self.since = now;
        if let Some(link) = host.link(number) {
            add_streams(link, policy);
        }
        old
    }

    /// Hands over a datagram of messages. One that finds no connection, or the stream full, is lost.
    pub(super) fn signal(&mut self, datagram: &[u8], what: Signal, host: &mut Host, now: Time) {
        let stream = if what == Signal::Depths { DEPTHS } else { CONTROL };
        self.write(stream, datagram.len(), |message| message.extend_from_slice(datagram), host, now);
    }

    /// Hands over a packet.
    pub(super) fn packet(
        &mut self,
        header: &[u8],
        body: &[u8],
        is_sensitive: bool,
        host: &mut Host,
        now: Time,
    ) {
        if is_sensitive && let Some(link) = self.number.and_then(|number| host.link(number)) {
            link.give_way(now);
        }
        let stream = if is_sensitive { SENSITIVE } else { DATA };
        let put = |message: &mut Vec<u8>| {
            message.extend_from_slice(header);
            message.extend_from_slice(body);
        };
        self.write(stream, header.len() + body.len(), put, host, now);
    }

    fn write(
        &mut self,
        stream: u8,
        bytes: usize,
        put: impl FnOnce(&mut Vec<u8>),
        host: &mut Host,
        now: Time,
    ) {
        let Some(number) = self.number else { return };
        let Some(link) = host.link(number).filter(|link| link.is_up()) else { return };
        self.message.clear();
        put(&mut self.message);
        link.write(Stream(stream.into()), Message { bytes: bytes as u64, head: &self.message }, now);
        host.look_at(number);
    }

    /// What the node is told of the path.
    pub(super) fn reported(&self, host: &mut Host, now: Time) -> Reported {
        let Some(link) = self.number.and_then(|number| host.link(number)) else { return Reported::default() };
        let path = link.path(&[SENSITIVE, DATA, CONTROL], now);
        Reported {
            is_up: link.is_up(),
            waiting: link.waiting(),
            capacity: path.capacity.unwrap_or_default(),
            delay: Delay { mean: path.delay, variance: path.variance },
            loss: path.lost_for_good(),
        }
    }

    /// The connection is over.
    pub(super) fn is_over(&mut self) {
        self.number = None;
    }

    /// Ends the connection, and tells the neighbour.
    pub(super) fn end(&mut self, host: &mut Host) {
        if let Some(number) = self.number {
            end(number, host);
        }
    }

    /// Asks for a connection if there is none and this node is the one that asks; gives up one whose neighbour is silent.
    pub(super) fn look(&mut self, asker: &mut Asker<'_>, host: &mut Host, now: Time) -> Result<(), Failure> {
        let Some(at) = self.asks else { return Ok(()) };
        if let Some(link) = self.number.and_then(|number| host.link(number)) {
            if now.since(link.last_heard().max(self.since)) > SILENCE {
                self.end(host);
                self.number = None;
            }
            return Ok(());
        }
        if now < self.again {
            return Ok(());
        }
        (self.again, self.since) = (now + AGAIN, now);
        self.number = asker.ask(at, &self.key, host, now)?;
        Ok(())
    }
}

/// Ends a connection.
fn end(number: usize, host: &mut Host) {
    if let Some(link) = host.link(number) {
        link.end();
    }
    host.look_at(number);
}

/// The streams that a connection has besides its first.
fn add_streams(link: &mut Link, policy: &Config) {
    for stream in policy.streams() {
        link.add_stream(&stream, true);
    }
}

/// Asks neighbours for connections.
pub(super) struct Asker<'a> {
    plan: &'a Plan,
    parameters: Parameters,
    /// The stamp of the next request: a clock's nanoseconds, which rise.
    stamp: u64,
}

impl<'a> Asker<'a> {
    pub(super) fn new(plan: &'a Plan, stamp: u64) -> Asker<'a> {
        Asker { plan, parameters: parameters(&plan.policy.link), stamp }
    }

    /// Asks for a connection, and returns its number at the host; `None` if the number drawn for it is in use.
    fn ask(
        &mut self,
        at: SocketAddr,
        key: &[u8; 32],
        host: &mut Host,
        now: Time,
    ) -> Result<Option<usize>, Failure> {
        let [a, b, c, seed @ ..]: [u8; 11] = drawn()?;
        let connection = u32::from_be_bytes([0, a, b, c]);
        let (plan, seed) = (self.plan, u64::from_be_bytes(seed));
        let of = LinkSetup {
            parameters: &self.parameters,
            controllers: &plan.policy.link.cc,
            setup: setup(at.ip(), true, plan.mtu, seed, 0),
            connection,
            identity: None,
        };
        self.stamp += 1;
        let link = Link::ask(&of, &plan.keys.pair, key, self.stamp);
        let mut link =
            link.map_err(|_| Failure::failed(format!("the key of the neighbour at {at} is not valid")))?;
        add_streams(&mut link, &plan.policy.link);
        link.open(now);
        Ok(host.add(link, connection, at, None))
    }
}

/// Parameters of connections between nodes of real hosts.
fn parameters(policy: &Config) -> Parameters {
    Parameters { search_mtu: true, idle: SILENCE, ..policy.parameters() }
}

/// The connections of a node's socket, which accepts those of its neighbours.
///
/// # Errors
/// The system gives no random bytes.
pub(super) fn host(plan: &Plan, keys: weir_sliq::handshake::Keys) -> Result<Host, Failure> {
    let allowed: Vec<[u8; 32]> = plan.neighbours.iter().map(|neighbour| neighbour.key.0).collect();
    let (secret, seed) = (drawn()?, u64::from_be_bytes(drawn()?));
    Ok(Host::new(Some(Accepts {
        responder: Some(Responder::new(keys, [0; 32], &allowed, &secret)),
        parameters: parameters(&plan.policy.link),
        controllers: plan.policy.link.cc.clone(),
        messages: true,
        mtu: Bytes::new(plan.mtu.get()),
        seed,
        identity: None,
    })))
}
