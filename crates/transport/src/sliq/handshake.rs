//! How two ends that know each other's key agree on the secrets of a [`Seal`]: the Noise protocol (revision 34, pattern IKpsk2) by
//! `snow`, in a request to open and the answer to it.
//!
//! A request is padded to 1,200 bytes, so no answer is longer than what it answers. Under load a responder answers with a cookie
//! before it exchanges any key: a code over the sender's address that it need not remember, and that the next request must carry. A
//! request carries a stamp that rises with each connection of its sender, so that one that is replayed is known. Secrets are wiped
//! when they are no longer needed.

use super::seal::{KEY, Seal};
use crate::sliq::wire::{HEADER, Header, Kind};
use ring::hmac;
use snow::{Builder, HandshakeState};
use std::collections::BTreeMap;
use weir_base::{Span, Time};
use zeroize::{Zeroize, Zeroizing};

/// The pattern, and what both ends mix in so that no other program's messages fit.
const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"weir sliq 1";
/// Length of a request.
pub const REQUEST: usize = 1200;
/// Length of a cookie; one of zeros is none.
const COOKIE: usize = 16;
/// A cookie counts for this long, and as long again.
const COOKIE_TIME: Span = Span::from_secs(120);
/// The first byte of a packet with a cookie: the mark of all packets, and 4.
const COOKIE_KIND: u8 = 0x54;
/// The longest message of the two, with the stamp.
const LONGEST: usize = 256;

/// Why there is no handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// An end's pair of keys.
pub struct Keys {
    private: Zeroizing<[u8; KEY]>,
    /// What others know it by.
    pub public: [u8; KEY],
}

impl Keys {
    /// From its two halves.
    pub fn new(private: Zeroizing<[u8; KEY]>, public: [u8; KEY]) -> Keys {
        Keys { private, public }
    }

    /// A new pair, from the system's randomness.
    ///
    /// # Errors
    /// There is none.
    pub fn generate() -> Result<Keys, Refused> {
        let params = PATTERN.parse().map_err(|_| Refused)?;
        let mut pair = Builder::new(params).generate_keypair().map_err(|_| Refused)?;
        let private = pair.private.as_slice().try_into().map(Zeroizing::new);
        pair.private.zeroize();
        let public = pair.public.as_slice().try_into().map_err(|_| Refused)?;
        Ok(Keys { private: private.map_err(|_| Refused)?, public })
    }

    /// The private half, to be kept in a file that its owner alone reads.
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

/// What the two ends have agreed on.
fn agreed(mut handshake: HandshakeState, now: Time) -> Option<Seal> {
    let is_initiator = handshake.is_initiator();
    let (there, back) = handshake.dangerously_get_raw_split();
    let (there, back) = (Zeroizing::new(there), Zeroizing::new(back));
    let (sending, receiving) = if is_initiator { (there, back) } else { (back, there) };
    Seal::new(sending, receiving, now)
}

/// A message with its length before it.
fn with_length(packet: &mut Vec<u8>, message: &[u8]) {
    packet.extend((message.len() as u16).to_be_bytes());
    packet.extend_from_slice(message);
}

fn by_length(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// The end that asks.
pub struct Initiator {
    handshake: Option<HandshakeState>,
    connection: u32,
    cookie: [u8; COOKIE],
    message: Vec<u8>,
}

/// What an answer means.
pub enum Told {
    /// The request is to be sent again: it now carries a cookie.
    Again,
    /// The ends have agreed.
    Agreed(Box<Seal>),
}

impl Initiator {
    /// Asks the owner of this key for a connection of this number. `shared` is a secret that both have beside their keys, or zeros.
    /// `stamp` is higher than that of all connections that these keys have asked for before: a clock's nanoseconds, say.
    ///
    /// # Errors
    /// A key is none.
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

    /// The request, to be sent until it is answered.
    pub fn request(&self, number: u32, timestamp: u32) -> Vec<u8> {
        let mut packet = Vec::with_capacity(REQUEST);
        Header { kind: Kind::Open, connection: self.connection, number, timestamp }.write(&mut packet);
        packet.extend(self.cookie);
        with_length(&mut packet, &self.message);
        packet.resize(REQUEST, 0);
        packet
    }

    /// A packet has come. `None` where it is no answer to this request: nothing has changed then.
    pub fn take(&mut self, packet: &[u8], now: Time) -> Option<Told> {
        let [_, connection @ ..] = self.connection.to_be_bytes();
        if packet.first() == Some(&COOKIE_KIND) {
            let (_, cookie) = packet.split_first_chunk::<HEADER>()?;
            if packet[1..4] != connection {
                return None;
            }
            self.cookie = cookie.try_into().ok()?;
            return Some(Told::Again);
        }
        let (header, rest) = Header::read(packet)?;
        if header.kind != Kind::Accept || header.connection != self.connection {
            return None;
        }
        let handshake = self.handshake.as_mut()?;
        handshake.read_message(by_length(rest)?, &mut [0; LONGEST]).ok()?;
        let seal = agreed(self.handshake.take()?, now)?;
        Some(Told::Agreed(Box::new(seal)))
    }
}

/// The newest request of one who may ask: its stamp, its message, and what was answered.
struct Newest {
    stamp: u64,
    message: Vec<u8>,
    reply: Vec<u8>,
}

/// The end that is asked.
pub struct Responder {
    keys: Keys,
    shared: Zeroizing<[u8; KEY]>,
    /// Who may ask, and what they asked last.
    allowed: BTreeMap<[u8; KEY], Option<Newest>>,
    cookies: hmac::Key,
}

/// What to answer to a request.
pub enum Answer {
    /// Nothing: it is none, or not of one who may ask.
    Nothing,
    /// This, and to know no more of it.
    Reply(Vec<u8>),
    /// The ends have agreed. The peer has shown that it has its key when its first sealed packet opens.
    Agreed {
        /// What to send.
        reply: Vec<u8>,
        /// What the connection's packets are sealed with.
        seal: Box<Seal>,
        /// Who asks.
        peer: [u8; KEY],
        /// The connection's number.
        connection: u32,
    },
}

impl Responder {
    /// Answers the owners of these keys. `secret` is random, and is for cookies alone.
    pub fn new(keys: Keys, shared: [u8; KEY], allowed: &[[u8; KEY]], secret: &[u8; KEY]) -> Responder {
        Responder {
            keys,
            shared: Zeroizing::new(shared),
            allowed: allowed.iter().map(|key| (*key, None)).collect(),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, secret),
        }
    }

    /// A packet has come from this address. `loaded` says that there are more requests than keys can be exchanged for.
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
        // The answer to a request that comes again was lost.
        let again = self.allowed.values().flatten().find(|newest| newest.message == message);
        if let Some(newest) = again {
            return Some(Answer::Reply(newest.reply.clone()));
        }
        let mut handshake = begin(&self.keys, None, &self.shared, header.connection).ok()?;
        let mut told = [0; LONGEST];
        let length = handshake.read_message(message, &mut told).ok()?;
        let stamp = u64::from_be_bytes(told[..length].try_into().ok()?);
        let peer: [u8; KEY] = handshake.get_remote_static()?.try_into().ok()?;
        let newest = self.allowed.get_mut(&peer)?;
        if newest.as_ref().is_some_and(|newest| newest.stamp >= stamp) {
            return None;
        }
        let mut own = [0; LONGEST];
        let length = handshake.write_message(&[], &mut own).ok()?;
        let mut reply = Vec::with_capacity(HEADER + 2 + length);
        Header { kind: Kind::Accept, ..header }.write(&mut reply);
        with_length(&mut reply, &own[..length]);
        *newest = Some(Newest { stamp, message: message.to_vec(), reply: reply.clone() });
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
        // A cookie is no secret of its receiver, and of no use elsewhere: how long the comparison takes tells nothing.
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
mod tests {
    use super::*;

    const SHARED: [u8; KEY] = [9; KEY];
    const NOW: Time = Time::ZERO;

    struct Both {
        client: Keys,
        server: [u8; KEY],
        responder: Responder,
    }

    /// A client that a server allows.
    fn both() -> Both {
        let (client, server) = (Keys::generate().unwrap(), Keys::generate().unwrap());
        let public = server.public;
        let responder = Responder::new(server, SHARED, &[client.public], &[5; KEY]);
        Both { client, server: public, responder }
    }

    impl Both {
        fn ask(&self, stamp: u64) -> Initiator {
            Initiator::new(&self.client, &self.server, &SHARED, 77, stamp).unwrap()
        }
    }

    fn agreed(answer: Answer) -> (Vec<u8>, Box<Seal>) {
        let Answer::Agreed { reply, seal, connection: 77, .. } = answer else { panic!("they do not agree") };
        (reply, seal)
    }

    fn is_nothing(answer: Answer) -> bool {
        matches!(answer, Answer::Nothing)
    }

    fn packet() -> Vec<u8> {
        let mut packet = vec![0x53, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0, 0];
        packet.extend(b"hello");
        packet
    }

    #[test]
    fn two_ends_that_know_each_other_agree() {
        let mut both = both();
        let mut initiator = both.ask(1);
        let request = initiator.request(0, 0);
        assert_eq!(request.len(), REQUEST);
        let (reply, mut there) = agreed(both.responder.take(&request, b"address", false, NOW));
        assert!(reply.len() < REQUEST);
        let Some(Told::Agreed(mut here)) = initiator.take(&reply, NOW) else { panic!("no agreement") };
        let mut said = packet();
        assert!(here.seal(&mut said, NOW));
        assert_eq!(there.open(&mut said, NOW), Some(1));
        assert_eq!(said, packet());
    }

    #[test]
    fn a_request_that_comes_again_is_answered_alike_and_an_older_one_not() {
        let mut both = both();
        let older = both.ask(4).request(0, 0);
        let initiator = both.ask(5);
        let (reply, _) = agreed(both.responder.take(&initiator.request(0, 0), b"a", false, NOW));
        let Answer::Reply(again) = both.responder.take(&initiator.request(1, 9), b"a", false, NOW) else {
            panic!("a second agreement")
        };
        assert_eq!(again, reply);
        assert!(is_nothing(both.responder.take(&older, b"a", false, NOW)), "it was replayed");
        assert!(is_nothing(both.responder.take(&both.ask(5).request(0, 0), b"a", false, NOW)));
        agreed(both.responder.take(&both.ask(6).request(0, 0), b"a", false, NOW));
    }

    #[test]
    fn who_is_not_allowed_or_knows_another_secret_gets_no_answer() {
        let mut both = both();
        let stranger = Keys::generate().unwrap();
        let ask = |keys, server, shared| Initiator::new(keys, server, shared, 77, 9).unwrap().request(0, 0);
        let request = ask(&stranger, &both.server, &SHARED);
        assert!(is_nothing(both.responder.take(&request, b"a", false, NOW)));
        let request = ask(&both.client, &stranger.public, &SHARED);
        assert!(is_nothing(both.responder.take(&request, b"a", false, NOW)));
        // The secret shows in the answer, which then does not open; the request alone may be anyone's.
        let mut other = Initiator::new(&both.client, &both.server, &[8; KEY], 77, 9).unwrap();
        let (reply, _) = agreed(both.responder.take(&other.request(0, 0), b"a", false, NOW));
        assert!(other.take(&reply, NOW).is_none());
    }

    #[test]
    fn forged_and_truncated_packets_change_nothing() {
        let mut both = both();
        let mut initiator = both.ask(1);
        let request = initiator.request(0, 0);
        let message = HEADER + COOKIE + 2;
        for at in (1..4).chain(message..message + 90) {
            let mut forged = request.clone();
            forged[at] ^= 1;
            assert!(is_nothing(both.responder.take(&forged, b"a", false, NOW)), "byte {at}");
        }
        for length in [0, 5, HEADER, 100, REQUEST - 1] {
            assert!(is_nothing(both.responder.take(&request[..length], b"a", false, NOW)));
        }
        let (reply, _) = agreed(both.responder.take(&request, b"a", false, NOW));
        for at in (0..4).chain(HEADER..reply.len()) {
            let mut forged = reply.clone();
            forged[at] ^= 1;
            assert!(initiator.take(&forged, NOW).is_none(), "byte {at}");
            assert!(initiator.take(&reply[..at], NOW).is_none());
        }
        assert!(initiator.take(&request, NOW).is_none(), "its own request came back");
        assert!(matches!(initiator.take(&reply, NOW), Some(Told::Agreed(_))));
    }

    #[test]
    fn under_load_a_cookie_comes_before_any_key() {
        let mut both = both();
        let mut initiator = both.ask(1);
        let Answer::Reply(cookie) = both.responder.take(&initiator.request(0, 0), b"here", true, NOW) else {
            panic!("no cookie")
        };
        assert_eq!(cookie.len(), HEADER + COOKIE);
        assert!(matches!(initiator.take(&cookie, NOW), Some(Told::Again)));
        let request = initiator.request(1, 0);
        // It is good for this address alone, and for two to four minutes.
        assert!(matches!(both.responder.take(&request, b"elsewhere", true, NOW), Answer::Reply(_)));
        let late = NOW + COOKIE_TIME * 2;
        assert!(matches!(both.responder.take(&request, b"here", true, late), Answer::Reply(_)));
        let (reply, _) = agreed(both.responder.take(&request, b"here", true, NOW + COOKIE_TIME));
        assert!(matches!(initiator.take(&reply, NOW), Some(Told::Agreed(_))));
    }
}
