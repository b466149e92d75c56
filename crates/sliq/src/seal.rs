//! Encryption and authentication of packets: everything behind the header is encrypted in place, and the header is authenticated with it
//! (AES-256-GCM by `ring`; NIST SP 800-38D). The nonce is the packet's whole number of 64 bits, of which the header carries the lowest 32;
//! it is authenticated too. A packet is accepted once: its number must be new, and not below a window behind the highest.
//!
//! Both ends change keys together. One end begins after 2^22 packets or 120 s and turns a bit of the header's first byte; the other end
//! follows with the first such packet that opens. No end begins again before it has seen that. New keys are derived from the old ones by
//! HKDF (RFC 5869), so that they do not reveal what was sealed with older ones.

use crate::wire::{HEADER, TAG, whole};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{self, HKDF_SHA256, KeyType, Prk};
use weir_base::{Span, Time};
use zeroize::Zeroizing;

/// Length of a key in bytes.
pub const KEY: usize = 32;
/// Keys are changed after this many packets of one end, or after this time.
const PACKETS: u64 = 1 << 22;
const TIME: Span = Span::from_secs(120);
/// The bit of the first byte that tells by which of two keys a packet is sealed.
pub(super) const PHASE: u8 = 0x08;
/// How far a packet's number may be behind the highest.
const WINDOW: u64 = 8192;
/// Words of the window's bitmap: one more than the window fills, since the highest number may be the first of its word.
const WORDS: usize = (WINDOW / 64) as usize + 1;

/// The keys of one direction between two changes.
pub(super) struct Epoch {
    secret: Zeroizing<[u8; KEY]>,
    key: LessSafeKey,
}

/// The length of a key, as HKDF asks for it.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY
    }
}

/// A key derived from a secret, for one purpose.
pub(super) fn derive(secret: &[u8; KEY], purpose: &[u8]) -> Option<Zeroizing<[u8; KEY]>> {
    let mut derived = Zeroizing::new([0; KEY]);
    let (secret, info) = (Prk::new_less_safe(HKDF_SHA256, secret), [purpose]);
    let expanded: hkdf::Okm<'_, Length> = secret.expand(&info, Length).ok()?;
    expanded.fill(&mut derived[..]).ok()?;
    Some(derived)
}

impl Epoch {
    pub(super) fn new(secret: Zeroizing<[u8; KEY]>) -> Option<Epoch> {
        let key = derive(&secret, b"weir sliq key")?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key[..]).ok()?);
        Some(Epoch { secret, key })
    }

    pub(super) fn next(&self) -> Option<Epoch> {
        Epoch::new(derive(&self.secret, b"weir sliq next")?)
    }

    /// Decrypts in place what stands behind the header of packet `number`, its tag included. Returns false if it was not sealed with these keys.
    pub(super) fn open(&self, header: &[u8; HEADER], number: u64, rest: &mut [u8]) -> bool {
        self.key.open_in_place(nonce(number), bound(header, number), rest).is_ok()
    }
}

/// The packet numbers that have arrived.
pub(super) struct Replay {
    highest: Option<u64>,
    seen: [u64; WORDS],
}

impl Default for Replay {
    fn default() -> Replay {
        Replay { highest: None, seen: [0; WORDS] }
    }
}

impl Replay {
    /// The number after the highest; `None` before the first.
    pub(super) fn next(&self) -> Option<u64> {
        self.highest.map(|highest| highest + 1)
    }

    fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }

    /// Whether a packet of this number may be opened.
    pub(super) fn is_new(&self, number: u64) -> bool {
        let Some(highest) = self.highest else { return true };
        let (word, bit) = Replay::place(number);
        // The oldest word is emptied as a whole, so the window is up to 63 numbers shorter.
        number > highest || (number / 64 + WORDS as u64 > highest / 64 && self.seen[word] & bit == 0)
    }

    /// A packet of this number was opened.
    pub(super) fn take(&mut self, number: u64) {
        let from = self.highest.map_or(0, |highest| highest / 64 + 1);
        for word in (from..=number / 64).rev().take(WORDS) {
            self.seen[word as usize % WORDS] = 0;
        }
        self.highest = Some(self.highest.map_or(number, |highest| highest.max(number)));
        let (word, bit) = Replay::place(number);
        self.seen[word] |= bit;
    }
}

/// Seals the packets of one end and opens those of the other.
pub struct Seal {
    sending: Epoch,
    /// For sending: how often the keys were changed, since when and from which number on these are used, and the next number.
    sent_epoch: u64,
    begun: Time,
    first: u64,
    next: u64,
    /// Whether the peer has used these keys too.
    confirmed: bool,
    /// For receiving: the previous keys, the present keys and the next ones.
    before: Option<Epoch>,
    receiving: Epoch,
    after: Epoch,
    received_epoch: u64,
    /// The number of the first packet that was opened with the present keys.
    received_first: u64,
    replay: Replay,
}

impl Seal {
    /// A seal with the secrets of the two directions, on which the ends have agreed. `None` if the cryptography refuses them.
    pub fn new(sending: Zeroizing<[u8; KEY]>, receiving: Zeroizing<[u8; KEY]>, now: Time) -> Option<Seal> {
        let receiving = Epoch::new(receiving)?;
        Some(Seal {
            sending: Epoch::new(sending)?,
            sent_epoch: 0,
            begun: now,
            first: 0,
            next: 0,
            confirmed: true,
            before: None,
            after: receiving.next()?,
            receiving,
            received_epoch: 0,
            received_first: 0,
            replay: Replay::default(),
        })
    }

    /// The secrets for sending and for receiving with which the connection began; `None` once keys were changed.
    pub(super) fn secrets(&self) -> Option<[Zeroizing<[u8; KEY]>; 2]> {
        let is_first = self.sent_epoch == 0 && self.received_epoch == 0;
        is_first.then(|| [self.sending.secret.clone(), self.receiving.secret.clone()])
    }

    /// Encrypts a packet in place. Its number must be higher than those of all packets before. Returns whether the packet may be sent.
    pub fn seal(&mut self, packet: &mut Vec<u8>, now: Time) -> bool {
        let Some((header, _)) = packet.split_first_chunk::<HEADER>() else { return false };
        let number = whole(low(header), self.next);
        if number < self.next {
            return false;
        }
        if self.confirmed && (number - self.first >= PACKETS || now.since(self.begun) >= TIME) {
            let Some(next) = self.sending.next() else { return false };
            self.renew(next, number, now);
            self.confirmed = false;
        }
        packet[0] |= if self.sent_epoch % 2 == 1 { PHASE } else { 0 };
        let Some((header, rest)) = packet.split_first_chunk_mut::<HEADER>() else { return false };
        let tag = self.sending.key.seal_in_place_separate_tag(nonce(number), bound(header, number), rest);
        let Ok(tag) = tag else { return false };
        packet.extend_from_slice(tag.as_ref());
        self.next = number + 1;
        true
    }

    fn renew(&mut self, next: Epoch, number: u64, now: Time) {
        (self.sending, self.begun, self.first) = (next, now, number);
        self.sent_epoch += 1;
    }

    /// Decrypts a packet in place. Returns its number and the packet without its tag. `None` if it is not the peer's, or was opened
    /// before; nothing has changed then.
    pub fn open<'a>(&mut self, packet: &'a mut [u8], now: Time) -> Option<(u64, &'a mut [u8])> {
        if packet.len() < HEADER + TAG {
            return None;
        }
        let plain = packet.len() - TAG;
        let (header, rest) = packet.split_first_chunk_mut::<HEADER>()?;
        let number = whole(low(header), self.replay.next().unwrap_or(0));
        if !self.replay.is_new(number) {
            return None;
        }
        let is_now = (header[0] & PHASE != 0) == (self.received_epoch % 2 == 1);
        let is_next = !is_now && number >= self.received_first;
        let epoch = match (is_now, is_next) {
            (true, _) => &self.receiving,
            (_, true) => &self.after,
            _ => self.before.as_ref()?,
        };
        if !epoch.open(header, number, rest) {
            return None;
        }
        header[0] &= !PHASE;
        self.replay.take(number);
        if is_next {
            let after = self.after.next()?;
            self.before =
                Some(std::mem::replace(&mut self.receiving, std::mem::replace(&mut self.after, after)));
            self.received_epoch += 1;
            self.received_first = number;
            if self.sent_epoch < self.received_epoch {
                let next = self.sending.next()?;
                self.renew(next, self.next, now);
            }
        }
        self.confirmed |= self.sent_epoch == self.received_epoch && (is_now || is_next);
        Some((number, &mut packet[..plain]))
    }
}

/// The lowest 32 bits of a packet's number.
pub(super) fn low(header: &[u8; HEADER]) -> u32 {
    u32::from_be_bytes([header[4], header[5], header[6], header[7]])
}

pub(super) fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The data that is authenticated but not encrypted.
fn bound(header: &[u8; HEADER], number: u64) -> Aad<[u8; HEADER + 8]> {
    let mut bound = [0; HEADER + 8];
    bound[..HEADER].copy_from_slice(header);
    bound[HEADER..].copy_from_slice(&number.to_be_bytes());
    Aad::from(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ends that have agreed on keys.
    fn pair() -> [Seal; 2] {
        let secret = |byte| Zeroizing::new([byte; KEY]);
        [(1, 2), (2, 1)].map(|(a, b)| Seal::new(secret(a), secret(b), Time::ZERO).unwrap())
    }

    fn packet(number: u32) -> Vec<u8> {
        let mut packet = vec![0x53, 0, 0, 7];
        packet.extend(number.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(b"what is said");
        packet
    }

    fn sealed(seal: &mut Seal, number: u32) -> Vec<u8> {
        let mut packet = packet(number);
        assert!(seal.seal(&mut packet, Time::ZERO));
        packet
    }

    fn open(seal: &mut Seal, packet: &[u8]) -> Option<u64> {
        seal.open(&mut packet.to_vec(), Time::ZERO).map(|(number, _)| number)
    }

    #[test]
    fn a_sealed_packet_opens_once_and_unchanged() {
        let [mut a, mut b] = pair();
        let mut one = sealed(&mut a, 0);
        assert_eq!(one.len(), packet(0).len() + TAG);
        assert!(!one.windows(4).any(|part| part == b"said"));
        let copy = one.clone();
        assert_eq!(b.open(&mut one, Time::ZERO), Some((0, &mut packet(0)[..])));
        assert_eq!(open(&mut b, &copy), None, "it was replayed");
    }

    #[test]
    fn forged_truncated_and_reflected_packets_do_not_open_and_change_nothing() {
        let [mut a, mut b] = pair();
        let good = sealed(&mut a, 5);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut forged = good.clone();
                forged[at] ^= 1 << bit;
                assert_eq!(open(&mut b, &forged), None, "bit {bit} of byte {at}");
            }
            assert_eq!(open(&mut b, &good[..at]), None, "{at} bytes of it");
        }
        assert_eq!(open(&mut a, &good), None, "it came back to its sender");
        assert_eq!(open(&mut b, &good), Some(5));
    }

    #[test]
    fn packets_may_arrive_late_within_the_window() {
        let [mut a, mut b] = pair();
        let packets: Vec<Vec<u8>> = (0..20_000).map(|number| sealed(&mut a, number)).collect();
        assert_eq!(open(&mut b, &packets[10_000]), Some(10_000));
        // 10,000 stands in word 156; the window goes back to the first number of word 28, 8,208 before it.
        assert_eq!(open(&mut b, &packets[28 * 64]), Some(28 * 64));
        assert_eq!(open(&mut b, &packets[28 * 64 - 1]), None);
        assert_eq!(open(&mut b, &packets[9_999]), Some(9_999));
        assert_eq!(open(&mut b, &packets[9_999]), None);
        assert_eq!(open(&mut b, &packets[19_999]), Some(19_999));
        assert_eq!(open(&mut b, &packets[10_001]), None);
    }

    #[test]
    fn a_number_is_never_sealed_twice() {
        let [mut a, _] = pair();
        sealed(&mut a, 3);
        assert!(!a.seal(&mut packet(3), Time::ZERO));
        assert!(!a.seal(&mut packet(2), Time::ZERO));
        assert!(!a.seal(&mut vec![0x53; HEADER - 1], Time::ZERO));
    }

    #[test]
    fn keys_are_renewed_by_time_and_both_ends_follow() {
        let [mut a, mut b] = pair();
        let at = |secs| Time::ZERO + Span::from_secs(secs);
        let old = sealed(&mut a, 0);
        let mut new = packet(1);
        assert!(a.seal(&mut new, at(120)));
        assert_eq!((old[0], new[0]), (0x53, 0x5b));
        // The peer follows with the first packet that opens; packets in flight still open.
        let number = |seal: &mut Seal, packet: &[u8], now| {
            seal.open(&mut packet.to_vec(), now).map(|(number, _)| number)
        };
        assert_eq!(number(&mut b, &new, at(120)), Some(1));
        assert_eq!(number(&mut b, &old, at(120)), Some(0));
        // Keys do not change again until the peer's packets show that it has followed.
        let mut later = packet(2);
        assert!(a.seal(&mut later, at(500)));
        assert_eq!(later[0], 0x5b);
        let mut answer = packet(0);
        assert!(b.seal(&mut answer, at(121)));
        assert_eq!(answer[0], 0x5b);
        assert_eq!(number(&mut a, &answer, at(121)), Some(0));
        let mut newest = packet(3);
        assert!(a.seal(&mut newest, at(501)));
        assert_eq!(newest[0], 0x53);
        assert_eq!(number(&mut b, &newest, at(501)), Some(3));
        assert_eq!(number(&mut b, &later, at(501)), Some(2));
        assert_eq!(open(&mut b, &old), None);
    }

    #[test]
    fn keys_are_renewed_after_four_million_packets() {
        let [mut a, mut b] = pair();
        sealed(&mut a, 0);
        assert_eq!(sealed(&mut a, (1 << 22) - 1)[0], 0x53);
        let new = sealed(&mut a, 1 << 22);
        assert_eq!(new[0], 0x5b);
        assert_eq!(open(&mut b, &new), Some(1 << 22));
    }
}
