//! Protection of version 2 of the header against forgery and replay: a 64-bit tag on each leg, and a window that passes each
//! sequence number once.
//!
//! The tag is SipHash-2-4 (Aumasson and Bernstein 2012) over the 28 bytes of the header before the tag, and the leg. Endpoints
//! and their AP share the application's key, the two APs share the peers' key. A header sealed for one leg is refused on
//! another. The payload is not covered: the application protects its own data.

use crate::header::{self, Version};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

/// Offset of the tag in a version 2 header, in bytes.
const TAG_AT: usize = 28;

/// The leg for which a header is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// From an endpoint to its AP.
    Out,
    /// From AP to AP.
    Path,
    /// From an AP to its endpoint.
    In,
}

/// A key of 128 bits, in text 32 hexadecimal digits. It is never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

impl Key {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    fn tag(&self, leg: Leg, header: &[u8]) -> [u8; 8] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&header[..TAG_AT]);
        hasher.write_u8(leg as u8);
        hasher.finish().to_be_bytes()
    }

    /// Writes the tag of a version 2 header.
    pub fn seal(&self, leg: Leg, header: &mut [u8]) {
        let tag = self.tag(leg, header);
        header[TAG_AT..Version::Two.length()].copy_from_slice(&tag);
    }

    /// Whether the tag of a version 2 header is right.
    pub fn verify(&self, leg: Leg, header: &[u8]) -> bool {
        // Every byte is compared, so the time of the comparison does not reveal the number of correct bytes.
        let tag = self.tag(leg, header);
        tag.iter().zip(&header[TAG_AT..]).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// Seals a header of version 2; the tag is zero if `key` is `None`. Headers of version 1 have no tag.
pub(crate) fn seal(key: Option<&Key>, leg: Leg, version: Version, header: &mut [u8]) {
    if version == Version::Two {
        match key {
            Some(key) => key.seal(leg, header),
            None => header[TAG_AT..version.length()].fill(0),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

impl FromStr for Key {
    type Err = String;
    fn from_str(text: &str) -> Result<Key, String> {
        let text = text.trim();
        let wrong = || "a key is 32 hexadecimal digits (128 bits)".to_string();
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u128::from_str_radix(text, 16).map(|key| Key(key.to_be_bytes())).map_err(|_| wrong())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Key {
    /// A key is never written out: prints and records only show that there is a key.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(a key)")
    }
}

/// A window over 64-bit sequence numbers that passes each number once (as in RFC 6479, for one sender).
#[derive(Debug, Clone, Copy)]
pub struct ReplayWindow<const BLOCKS: usize> {
    /// The number after the highest that passed; zero before the first.
    next: u64,
    /// One bit for each of the last `64 * BLOCKS` numbers, by number modulo the window.
    seen: [u64; BLOCKS],
}

impl<const BLOCKS: usize> Default for ReplayWindow<BLOCKS> {
    fn default() -> Self {
        ReplayWindow { next: 0, seen: [0; BLOCKS] }
    }
}

impl<const BLOCKS: usize> ReplayWindow<BLOCKS> {
    /// Blocks of 64 numbers that the window keeps behind the newest block, part of which lies in the future.
    const BEHIND: u64 = BLOCKS as u64 - 1;

    /// Whether a number is new; if so, it is marked as seen. Numbers too old for the window are not new.
    pub fn admit(&mut self, sequence: u64) -> bool {
        let (block, highest) = (sequence / 64, self.next.saturating_sub(1) / 64);
        if sequence >= self.next {
            // Blocks that the window moves over are cleared; all of them after a jump.
            let moved = block.saturating_sub(highest).min(BLOCKS as u64);
            for i in 0..moved {
                self.seen[((block - i) % BLOCKS as u64) as usize] = 0;
            }
            self.next = sequence.saturating_add(1);
        } else if block + Self::BEHIND < highest {
            return false;
        }
        let (place, bit) = ((block % BLOCKS as u64) as usize, 1 << (sequence % 64));
        let new = self.seen[place] & bit == 0;
        self.seen[place] |= bit;
        new
    }
}

/// Whether the window admits the sequence number of a version 2 header; `false` if it was seen before or is too old.
pub(crate) fn is_new<const BLOCKS: usize>(window: &mut ReplayWindow<BLOCKS>, header: &[u8]) -> bool {
    window.admit(header::sequence(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const KEY: Key = Key::new([7; 16]);

    #[test]
    fn a_tag_is_valid_only_for_its_leg_its_key_and_unchanged_bytes() {
        let mut header = [0x20; 36];
        KEY.seal(Leg::Out, &mut header);
        assert!(KEY.verify(Leg::Out, &header));
        assert!(!KEY.verify(Leg::Path, &header));
        assert!(!Key::new([8; 16]).verify(Leg::Out, &header));
        for byte in 0..36 {
            let mut forged = header;
            forged[byte] ^= 1;
            assert!(!KEY.verify(Leg::Out, &forged), "byte {byte}");
        }
    }

    #[test]
    fn a_key_is_32_digits_and_is_not_printed() {
        let key: Key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        assert_eq!(key, Key::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]));
        assert_eq!(format!("{key:?}"), "Key(...)");
        assert!("00".parse::<Key>().is_err());
        assert!("+00102030405060708090a0b0c0d0e0f".parse::<Key>().is_err());
    }

    #[test]
    fn a_sequence_number_is_admitted_once_and_an_old_one_never() {
        let mut window = ReplayWindow::<2>::default();
        assert!(window.admit(0) && !window.admit(0));
        assert!(window.admit(100) && window.admit(70) && !window.admit(70) && !window.admit(100));
        // 200 is in block 3, so block 2 (128 to 191) is the oldest that is kept.
        assert!(window.admit(200) && window.admit(128) && !window.admit(127));
        assert!(window.admit(u64::MAX) && !window.admit(u64::MAX));
    }

    proptest! {
        #[test]
        fn no_sequence_number_is_admitted_twice_and_every_recent_one_is_admitted_once(
            steps in prop::collection::vec(-80i64..120, 1..400),
        ) {
            let (mut window, mut passed, mut at, mut highest) =
                (ReplayWindow::<4>::default(), HashSet::new(), 1000i64, 0i64);
            for step in steps {
                at = (at + step).max(0);
                let recent = at > highest - 3 * 64;
                let new = window.admit(at as u64);
                prop_assert!(!(new && passed.contains(&at)));
                prop_assert!(new || !recent || passed.contains(&at));
                passed.insert(at);
                highest = highest.max(at);
            }
        }
    }
}
