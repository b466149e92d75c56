//! How two ends that know each other's key agree on the secrets of a [`Seal`]: a request to open and its answer, by the Noise protocol
//! (revision 34, pattern IKpsk2) with `snow`.
//!
//! A request is padded to 1,200 bytes, so no answer is longer than its request. Under load a responder answers with a cookie before it
//! exchanges any key: a code over the sender's address, which the responder need not store and which the next request must carry. A
//! request carries a stamp that rises with each connection of its sender, so that replayed requests are detected. Secrets are wiped when
//! they are no longer needed.

use super::seal::{KEY, Seal};
use crate::wire::{HEADER, Header, Kind};
use ring::hmac;
use snow::{Builder, HandshakeState};
use std::collections::BTreeMap;
use weir_base::{Span, Time};
use zeroize::{Zeroize, Zeroizing};

/// The pattern, and the prologue that both ends mix in so that messages of other programs do not match.
const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"weir sliq 1";
/// Length of a request in bytes.
pub const REQUEST: usize = 1200;
/// Length of a cookie in bytes; zeros stand for no cookie.
const COOKIE: usize = 16;
/// Offset of the part of a request that stays the same when it is retransmitted.
pub(super) const CORE: usize = HEADER + COOKIE;
/// A cookie is valid in the period of this length in which it was made, and in the next.
const COOKIE_TIME: Span = Span::from_secs(120);
/// The first byte of a packet with a cookie: the mark of all packets, and kind 4.
const COOKIE_KIND: u8 = 0x54;
/// Buffer for the longest handshake message, with the stamp.
const LONGEST: usize = 256;

/// A handshake cannot begin, or a key pair cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// An end's pair of keys.
pub struct Keys {
    private: Zeroizing<[u8; KEY]>,
    /// The public key, by which others know this end.
    pub public: [u8; KEY],
}

impl Keys {
    /// A pair from its two halves.
    pub fn new(private: Zeroizing<[u8; KEY]>, public: [u8; KEY]) -> Keys {
        Keys { private, public }
    }

    /// A new pair, from the system's randomness.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn generate() -> Result<Keys, Refused> {
        let params = PATTERN.parse().map_err(|_| Refused)?;
        let mut pair = Builder::new(params).generate_keypair().map_err(|_| Refused)?;
        let private = pair.private.as_slice().try_into().map(Zeroizing::new);
        pair.private.zeroize();
        let public = pair.public.as_slice().try_into().map_err(|_| Refused)?;
        Ok(Keys { private: private.map_err(|_| Refused)?, public })
    }

    /// The private key, to be kept in a file that only its owner can read.
    pub fn private(&self) -> &[u8; KEY] {
        &self.private
    }
}

/// One side of a handshake for a connection.
fn begin(
    keys: &Keys,
    peer: Option<&[u8; KEY]>,
    shared: &[u8; KEY],
    connection: u32,
) -> Result<HandshakeState, snow::Error> {
    let prologue = [PROLOGUE, &connection.to_be_bytes()].concat();
    let builder = Builder::new(PATTERN.parse()?).prologue(&prologue)?;
    let builder = builder.local_private_key(&keys.private[..])?.psk(2, shared)?;
    match peer {
        Some(peer) => builder.remote_public_key(peer)?.build_initiator(),
        None => builder.build_responder(),
    }
}

/// The seal from the secrets of a finished handshake; `None` if the cryptography refuses them.
fn agreed(mut handshake: HandshakeState, now: Time) -> Option<Seal> {
    let is_initiator = handshake.is_initiator();
    let (there, back) = handshake.dangerously_get_raw_split();
    let (there, back) = (Zeroizing::new(there), Zeroizing::new(back));
    let (sending, receiving) = if is_initiator { (there, back) } else { (back, there) };
    Seal::new(sending, receiving, now)
}

/// Appends a message behind its length.
fn with_length(packet: &mut Vec<u8>, message: &[u8]) {
    packet.extend((message.len() as u16).to_be_bytes());
    packet.extend_from_slice(message);
}

fn by_length(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// Gives an answer, which was made for an earlier transmission of this request, the number and the time of this one.
pub(super) fn answer_to(reply: &mut [u8], request: &[u8]) {
    if let (Some((header, _)), Some(told)) = (Header::read(request), reply.first_chunk_mut::<HEADER>()) {
        let mut own = Vec::with_capacity(HEADER);
        Header { kind: Kind::Accept, ..header }.write(&mut own);
        told.copy_from_slice(&own);
    }
}

/// The end that asks.
pub struct Initiator {
    handshake: Option<HandshakeState>,
    connection: u32,
    cookie: [u8; COOKIE],
    message: Vec<u8>,
}

/// The meaning of an answer.
pub enum Step {
    /// The request is to be retransmitted; it now carries a cookie.
    Again,
    /// The ends have agreed, by the answer to the request with this number.
    Agreed(Box<Seal>, u32),
}

impl Initiator {
    /// Asks the owner of the key `peer` for a connection with this number. `shared` is a secret that both ends have besides their keys, or
    /// zeros. `stamp` is higher than that of all earlier connections of these keys: a clock's nanoseconds, for example.
    ///
    /// # Errors
    /// A key is not valid.
    pub fn new(
        keys: &Keys,
        peer: &[u8; KEY],
        shared: &[u8; KEY],
        connection: u32,
        stamp: u64,
    ) -> Result<Initiator, Refused> {
        let mut handshake = begin(keys, Some(peer), shared, connection).map_err(|_| Refused)?;
        let mut message = [0; LONGEST];
        let length = handshake.write_message(&stamp.to_be_bytes(), &mut message).map_err(|_| Refused)?;
        let (cookie, message) = ([0; COOKIE], message[..length].to_vec());
        Ok(Initiator { handshake: Some(handshake), connection, cookie, message })
    }

    /// The request, to be retransmitted until it is answered.
    pub fn request(&self, number: u32, timestamp: u32) -> Vec<u8> {
        let mut packet = Vec::with_capacity(REQUEST);
        Header { kind: Kind::Open, connection: self.connection, number, timestamp }.write(&mut packet);
        packet.extend(self.cookie);
        with_length(&mut packet, &self.message);
        packet.resize(REQUEST, 0);
        packet
    }

    /// Takes a packet that has arrived. `None` if it is no answer to this request; nothing has changed then.
    pub fn take(&mut self, packet: &[u8], now: Time) -> Option<Step> {
        let [_, connection @ ..] = self.connection.to_be_bytes();
        if packet.first() == Some(&COOKIE_KIND) {
            let (_, cookie) = packet.split_first_chunk::<HEADER>()?;
            if packet[1..4] != connection {
                return None;
            }
            self.cookie = cookie.try_into().ok()?;
            return Some(Step::Again);
        }
        let (header, rest) = Header::read(packet)?;
        if header.kind != Kind::Accept || header.connection != self.connection {
            return None;
        }
        let handshake = self.handshake.as_mut()?;
        handshake.read_message(by_length(rest)?, &mut [0; LONGEST]).ok()?;
        let seal = agreed(self.handshake.take()?, now)?;
        Some(Step::Agreed(Box::new(seal), header.number))
    }
}

/// Maximum number of requests of one key that are remembered.
const REMEMBERED: usize = 4096;

/// The requests of one peer. Many may be in flight at a time and overtake one another.
#[derive(Default)]
struct Asked {
    /// The newest requests by stamp: the message and its answer.
    answered: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// Requests with stamps up to this are forgotten, and count as replayed.
    forgotten: Option<u64>,
}

impl Asked {
    /// Whether a request with this stamp was answered or may have been.
    fn knows(&self, stamp: u64) -> bool {
        self.forgotten.is_some_and(|forgotten| stamp <= forgotten) || self.answered.contains_key(&stamp)
    }

    fn remember(&mut self, stamp: u64, message: &[u8], reply: &[u8]) {
        self.answered.insert(stamp, (message.to_vec(), reply.to_vec()));
        while self.answered.len() > REMEMBERED {
            self.forgotten = self.answered.pop_first().map(|(stamp, _)| stamp);
        }
    }
}

/// The end that is asked.
pub struct Responder {
    keys: Keys,
    shared: Zeroizing<[u8; KEY]>,
    /// The keys of peers that may ask, and their requests.
    allowed: BTreeMap<[u8; KEY], Asked>,
    cookies: hmac::Key,
}

/// The answer to a request.
pub enum Answer {
    /// No answer: the packet is not a valid request, or its sender may not ask.
    Nothing,
    /// This packet; no connection begins.
    Reply(Vec<u8>),
    /// The ends have agreed. The peer has shown that it has its key when its first sealed packet opens.
    Agreed {
        /// The answer to send.
        reply: Vec<u8>,
        /// The seal of the connection's packets.
        seal: Box<Seal>,
        /// The key of the peer that asks.
        peer: [u8; KEY],
        /// The connection's number.
        connection: u32,
    },
}

impl Responder {
    /// A responder that answers the owners of these keys. `secret` is random and is used for cookies alone.
    pub fn new(keys: Keys, shared: [u8; KEY], allowed: &[[u8; KEY]], secret: &[u8; KEY]) -> Responder {
        Responder {
            keys,
            shared: Zeroizing::new(shared),
            allowed: allowed.iter().map(|key| (*key, Asked::default())).collect(),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, secret),
        }
    }

    /// Answers the owners of these keys from now on, and no others.
    pub fn allow(&mut self, allowed: &[[u8; KEY]]) {
        self.allowed.retain(|key, _| allowed.contains(key));
        for key in allowed {
            self.allowed.entry(*key).or_default();
        }
    }

    /// Takes a packet that has arrived from this address. `loaded`: there are more requests than key exchanges are possible for.
    pub fn take(&mut self, packet: &[u8], from: &[u8], loaded: bool, now: Time) -> Answer {
        self.answer(packet, from, loaded, now).unwrap_or(Answer::Nothing)
    }

    fn answer(&mut self, packet: &[u8], from: &[u8], loaded: bool, now: Time) -> Option<Answer> {
        let (header, rest) = Header::read(packet)?;
        if header.kind != Kind::Open || packet.len() != REQUEST {
            return None;
        }
        let (cookie, rest) = rest.split_first_chunk::<COOKIE>()?;
        let message = by_length(rest)?;
        if loaded && !self.is_known(cookie, from, header.connection, now) {
            let mut reply = packet[..HEADER].to_vec();
            reply[0] = COOKIE_KIND;
            reply.extend(self.cookie(from, header.connection, period(now)));
            return Some(Answer::Reply(reply));
        }
        let mut handshake = begin(&self.keys, None, &self.shared, header.connection).ok()?;
        let mut told = [0; LONGEST];
        let length = handshake.read_message(message, &mut told).ok()?;
        let stamp = u64::from_be_bytes(told[..length].try_into().ok()?);
        let peer: [u8; KEY] = handshake.get_remote_static()?.try_into().ok()?;
        let asked = self.allowed.get_mut(&peer)?;
        if let Some((before, reply)) = asked.answered.get(&stamp) {
            // The answer was lost.
            let mut reply = reply.clone();
            answer_to(&mut reply, packet);
            return (before == message).then_some(Answer::Reply(reply));
        }
        if asked.knows(stamp) {
            return None;
        }
        let mut own = [0; LONGEST];
        let length = handshake.write_message(&[], &mut own).ok()?;
        let mut reply = Vec::with_capacity(HEADER + 2 + length);
        Header { kind: Kind::Accept, ..header }.write(&mut reply);
        with_length(&mut reply, &own[..length]);
        asked.remember(stamp, message, &reply);
        let seal = Box::new(agreed(handshake, now)?);
        Some(Answer::Agreed { reply, seal, peer, connection: header.connection })
    }

    fn cookie(&self, from: &[u8], connection: u32, period: u64) -> [u8; COOKIE] {
        let mut context = hmac::Context::with_key(&self.cookies);
        context.update(&period.to_be_bytes());
        context.update(&connection.to_be_bytes());
        context.update(from);
        let mut cookie = [0; COOKIE];
        cookie.copy_from_slice(&context.sign().as_ref()[..COOKIE]);
        cookie
    }

    fn is_known(&self, cookie: &[u8; COOKIE], from: &[u8], connection: u32, now: Time) -> bool {
        let period = period(now);
        // The receiver of a cookie knows it, and nobody else can use it, so the time of the comparison reveals nothing.
        [Some(period), period.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|period| self.cookie(from, connection, period) == *cookie)
    }
}

fn period(now: Time) -> u64 {
    now.as_nanos() / COOKIE_TIME.as_nanos()
}

#[cfg(test)]
mod tests;
