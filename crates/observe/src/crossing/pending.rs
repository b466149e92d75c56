//! Packets of one capture that wait for the other one to have them.

use crate::flow::Key;
use crate::packet::{Packet, TCP, UDP};
use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use weir_base::{Ecn, Time};

/// Bytes behind the IP header that a fingerprint looks at: the longest header of TCP without padding is not longer, by much.
const LOOKED_AT: usize = 48;

/// What stays the same of a packet as it crosses a router: all but its time to live, its ECN field, and checksums, which a card may fill
/// in behind the place of the capture.
pub(super) fn fingerprint(packet: &Packet, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (packet.addresses, packet.protocol, packet.identification, packet.length).hash(&mut hasher);
    let mut seen = [0; LOOKED_AT];
    let count = bytes.len().min(LOOKED_AT);
    seen[..count].copy_from_slice(&bytes[..count]);
    match packet.protocol {
        TCP => seen[16..18].fill(0),
        UDP => seen[6..8].fill(0),
        _ => {}
    }
    hasher.write(&seen);
    hasher.finish()
}

/// A packet in one capture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) fingerprint: u64,
    pub(super) at: Time,
    pub(super) ecn: Ecn,
    pub(super) ip_bytes: u32,
    pub(super) key: Key,
    /// Whether it goes from the key's second end to the first.
    pub(super) is_back: bool,
}

/// Those that wait, in the order of their times. Equal ones (acknowledgements may be) leave in their order too.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: HashMap<u64, VecDeque<u64>>,
    /// Each with whether it still waits; the first has the number `gone`.
    order: VecDeque<(Seen, bool)>,
    gone: u64,
}

impl Pending {
    /// Adds one; true if an equal one waits already.
    pub(super) fn add(&mut self, seen: Seen) -> bool {
        let equal = self.waiting.entry(seen.fingerprint).or_default();
        equal.push_back(self.gone + self.order.len() as u64);
        self.order.push_back((seen, true));
        equal.len() > 1
    }

    /// Takes the oldest with this fingerprint.
    pub(super) fn take(&mut self, fingerprint: u64) -> Option<Seen> {
        let equal = self.waiting.get_mut(&fingerprint)?;
        let number = equal.pop_front()?;
        if equal.is_empty() {
            self.waiting.remove(&fingerprint);
        }
        let (seen, waits) = self.order.get_mut((number - self.gone) as usize)?;
        *waits = false;
        Some(*seen)
    }

    /// Takes the first one from before this time; `None` if there is none. Those that were matched are forgotten on the way.
    pub(super) fn expire(&mut self, before: Option<Time>) -> Option<Seen> {
        loop {
            let (seen, waits) = *self.order.front()?;
            if waits && before.is_some_and(|before| seen.at >= before) {
                return None;
            }
            if waits {
                self.take(seen.fingerprint);
            }
            self.order.pop_front();
            self.gone += 1;
            if waits {
                return Some(seen);
            }
        }
    }
}
