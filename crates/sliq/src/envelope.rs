//! Encryption and authentication of messages between two hosts that know each other's key, over hosts that do not: without a handshake, by
//! their static keys (X25519 by `snow`, HKDF and AES-256-GCM by `ring`; RFC 7748, RFC 5869, NIST SP 800-38D).
//!
//! Behind the encrypted message and its tag stand the sender's epoch, which rises with each of its starts, and the lowest 32 bits of the
//! message's number. A message opens once: its number must be new, and its epoch not older than the newest. Each 2^24 messages have a key
//! of their own, derived from the hosts' secret, the sender, the epoch and the number.

use super::handshake::Keys;
use super::seal::{KEY, Replay, derive, nonce};
use super::wire::{TAG, whole};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, UnboundKey};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

/// Bytes that a sealed message is longer than a plain one.
pub const LENGTH: usize = TAG + TRAILER;
/// Epoch and number behind the tag.
const TRAILER: usize = 8;
/// Bits of a number within the messages that have one key.
const PER_KEY: u32 = 24;

/// The key of some messages of one sender.
struct Dated {
    epoch: u32,
    number: u64,
    key: LessSafeKey,
}

/// The messages of one sender to one receiver.
struct Direction {
    secret: Zeroizing<[u8; KEY]>,
    dated: Option<Dated>,
}

impl Direction {
    fn to_group(group: &Keys, sender: &[u8; KEY]) -> Option<Direction> {
        let secret = derive(group.private().first_chunk()?, &[&b"weir group envelope"[..], sender].concat())?;
        Some(Direction { secret, dated: None })
    }

    /// The key of a message; `None` if the cryptography refuses it.
    fn key(&mut self, epoch: u32, number: u64) -> Option<&LessSafeKey> {
        let generation = number >> PER_KEY;
        let is_same = |dated: &Dated| dated.epoch == epoch && dated.number >> PER_KEY == generation;
        if !self.dated.as_ref().is_some_and(is_same) {
            let purpose =
                [b"weir envelope key", &epoch.to_be_bytes()[..], &generation.to_be_bytes()].concat();
            let key = derive(&self.secret, &purpose)?;
            let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key[..]).ok()?);
            self.dated = Some(Dated { epoch, number, key });
        }
        self.dated.as_ref().map(|dated| &dated.key)
    }
}

/// Seals messages to one host, and opens those that come from it.
pub struct Envelope {
    epoch: u32,
    next: u64,
    /// `None` in the envelope of another sender to a group.
    sending: Option<Direction>,
    /// `None` in the envelope of the own messages to a group.
    receiving: Option<Direction>,
    /// The newest epoch of the peer, and the numbers that have arrived in it.
    peer_epoch: u32,
    replay: Replay,
}

impl Envelope {
    /// Between the owner of these keys, who has started in this epoch, and the owner of the public key `peer`. `None` if the cryptography
    /// refuses the keys.
    pub fn between(keys: &Keys, peer: &[u8; KEY], epoch: u32) -> Option<Envelope> {
        let mut exchange = DefaultResolver.resolve_dh(&DHChoice::Curve25519)?;
        exchange.set(keys.private());
        let mut shared = Zeroizing::new([0; KEY]);
        exchange.dh(peer, &mut shared[..]).ok()?;
        // An all-zero secret is that of a key of low order (RFC 7748, 6.1).
        if shared.iter().all(|byte| *byte == 0) {
            return None;
        }
        let of = |sender: &[u8; KEY]| {
            let secret = derive(&shared, &[&b"weir envelope"[..], sender].concat())?;
            Some(Direction { secret, dated: None })
        };
        Some(Envelope::new(epoch, Some(of(&keys.public)?), Some(of(peer)?)))
    }

    /// For messages of `own`, a public key, to all who have the key of a group. `None` if the cryptography refuses it.
    pub fn to_group(group: &Keys, own: &[u8; KEY], epoch: u32) -> Option<Envelope> {
        Some(Envelope::new(epoch, Some(Direction::to_group(group, own)?), None))
    }

    /// For messages of `sender`, a public key, to all who have the key of a group. Each of these could have sealed them.
    pub fn from_group(group: &Keys, sender: &[u8; KEY]) -> Option<Envelope> {
        Some(Envelope::new(0, None, Some(Direction::to_group(group, sender)?)))
    }

    fn new(epoch: u32, sending: Option<Direction>, receiving: Option<Direction>) -> Envelope {
        Envelope { epoch, next: 0, sending, receiving, peer_epoch: 0, replay: Replay::default() }
    }

    /// Encrypts a message in place; `bound` is authenticated with it. Returns whether it may be sent.
    pub fn seal(&mut self, bound: &[u8], message: &mut Vec<u8>) -> bool {
        let (epoch, number) = (self.epoch, self.next);
        let sending = self.sending.as_mut();
        let Some(key) = sending.and_then(|sending| sending.key(epoch, number)) else { return false };
        let tag = key.seal_in_place_separate_tag(nonce(number), Aad::from(bound), message);
        let Ok(tag) = tag else { return false };
        message.extend_from_slice(tag.as_ref());
        message.extend(epoch.to_be_bytes());
        message.extend((number as u32).to_be_bytes());
        self.next += 1;
        true
    }

    /// Decrypts a message in place. `None` if it is not the peer's with this `bound`, or was opened before; nothing has changed then.
    pub fn open<'a>(&mut self, bound: &[u8], message: &'a mut [u8]) -> Option<&'a [u8]> {
        let (sealed, trailer) = message.split_last_chunk_mut::<TRAILER>()?;
        let [a, b, c, d, low @ ..] = *trailer;
        let (epoch, low) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(low));
        if epoch < self.peer_epoch {
            return None;
        }
        let is_later = epoch > self.peer_epoch;
        let expected = self.replay.next().filter(|_| !is_later).unwrap_or(0);
        let number = whole(low, expected);
        if !is_later && !self.replay.is_new(number) {
            return None;
        }
        let key = self.receiving.as_mut()?.key(epoch, number)?;
        let plain = key.open_in_place(nonce(number), Aad::from(bound), sealed).ok()?;
        if is_later {
            (self.peer_epoch, self.replay) = (epoch, Replay::default());
        }
        self.replay.take(number);
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(epochs: [u32; 2]) -> [Envelope; 2] {
        let (a, b) = (Keys::generate().unwrap(), Keys::generate().unwrap());
        [(&a, &b, epochs[0]), (&b, &a, epochs[1])]
            .map(|(own, peer, epoch)| Envelope::between(own, &peer.public, epoch).unwrap())
    }

    fn sealed(from: &mut Envelope, bound: &[u8]) -> Vec<u8> {
        let mut message = b"what is said".to_vec();
        assert!(from.seal(bound, &mut message));
        message
    }

    #[test]
    fn a_message_opens_once_at_its_receiver_alone() {
        let [mut a, mut b] = pair([7, 9]);
        let message = sealed(&mut a, b"flow");
        assert_eq!(message.len(), 12 + LENGTH);
        assert!(!message.windows(4).any(|part| part == b"said"));
        assert_eq!(a.open(b"flow", &mut message.clone()), None, "it came back to its sender");
        assert_eq!(b.open(b"flow", &mut message.clone()), Some(&b"what is said"[..]));
        assert_eq!(b.open(b"flow", &mut message.clone()), None, "it was replayed");
    }

    #[test]
    fn a_forged_or_shortened_message_and_one_of_another_flow_do_not_open() {
        let [mut a, mut b] = pair([7, 9]);
        let message = sealed(&mut a, b"flow");
        for at in 0..message.len() {
            let mut forged = message.clone();
            forged[at] ^= 1;
            assert_eq!(b.open(b"flow", &mut forged), None, "byte {at}");
            assert_eq!(b.open(b"flow", &mut message[..at].to_vec()), None, "{at} bytes of it");
        }
        assert_eq!(b.open(b"wolf", &mut message.clone()), None);
        assert!(b.open(b"flow", &mut message.clone()).is_some());
    }

    #[test]
    fn messages_of_an_earlier_start_do_not_open_after_those_of_a_later_one() {
        let (a, b) = (Keys::generate().unwrap(), Keys::generate().unwrap());
        let mut receiver = Envelope::between(&b, &a.public, 1).unwrap();
        let [mut old, mut new] = [5, 6].map(|epoch| Envelope::between(&a, &b.public, epoch).unwrap());
        let (first, second) = (sealed(&mut old, b""), sealed(&mut old, b""));
        assert!(receiver.open(b"", &mut first.clone()).is_some());
        assert!(receiver.open(b"", &mut sealed(&mut new, b"")).is_some());
        assert_eq!(receiver.open(b"", &mut second.clone()), None);
    }

    #[test]
    fn keys_change_with_the_number_and_late_messages_still_open() {
        let [mut a, mut b] = pair([7, 9]);
        a.next = (1 << PER_KEY) - 1;
        let messages: Vec<Vec<u8>> = (0..3).map(|_| sealed(&mut a, b"")).collect();
        for at in [1, 0, 2] {
            assert!(b.open(b"", &mut messages[at].clone()).is_some(), "message {at}");
        }
    }

    #[test]
    fn a_message_to_a_group_opens_once_at_each_member_under_its_senders_name() {
        let (group, a, b) = (Keys::generate().unwrap(), Keys::generate().unwrap(), Keys::generate().unwrap());
        let mut own = Envelope::to_group(&group, &a.public, 7).unwrap();
        let message = sealed(&mut own, b"flow");
        for _ in 0..2 {
            let mut member = Envelope::from_group(&group, &a.public).unwrap();
            assert_eq!(member.open(b"flow", &mut message.clone()), Some(&b"what is said"[..]));
            assert_eq!(member.open(b"flow", &mut message.clone()), None, "it was replayed");
            assert!(!member.seal(b"flow", &mut vec![]), "a member seals in another one's name");
        }
        let mut as_other = Envelope::from_group(&group, &b.public).unwrap();
        assert_eq!(as_other.open(b"flow", &mut message.clone()), None);
        let stranger = Keys::generate().unwrap();
        let mut without = Envelope::from_group(&stranger, &a.public).unwrap();
        assert_eq!(without.open(b"flow", &mut message.clone()), None);
    }

    #[test]
    fn a_key_of_low_order_is_refused() {
        assert!(Envelope::between(&Keys::generate().unwrap(), &[0; KEY], 1).is_none());
    }
}
