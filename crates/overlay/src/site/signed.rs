//! Signatures of announcements: what a node floods of its links and groups is signed by that node, so that no node on the way can announce
//! another's. A signature stands behind its announcement in each datagram, as a message of its own kind.

use super::Cover;
use crate::message::{Message, Stamp};
use crate::nodes::NodeId;
use std::collections::BTreeMap;

/// Length of a signature in bytes (Ed25519, RFC 8032).
pub(super) const LENGTH: usize = 64;
/// First byte of a signature among messages.
const SIGNATURE: u8 = 0x16;

/// A signature.
pub type Signature = [u8; LENGTH];

/// The newest announcement of a node.
#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    bytes: Vec<u8>,
    signature: Signature,
}

/// What an announcement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Links,
    Groups,
}

/// Signed announcements of all nodes, which this node passes on.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    kept: BTreeMap<(NodeId, About), Kept>,
    /// The datagram that is written, kept for its space.
    datagram: Vec<u8>,
}

/// Takes messages that are no announcements from the front of a datagram, and appends them to `out`. Returns the announcement that follows: its
/// origin, what it is about, its stamp, and its bytes. `None` at the end.
fn next<'a>(rest: &mut &'a [u8], out: &mut Vec<u8>) -> Option<(NodeId, About, Stamp, &'a [u8])> {
    while let Ok((message, after)) = Message::decode(rest) {
        let bytes = &rest[..rest.len() - after.len()];
        *rest = after;
        match message {
            Message::Links(links) => return Some((links.origin, About::Links, links.stamp, bytes)),
            Message::Groups(groups) => return Some((groups.origin, About::Groups, groups.stamp, bytes)),
            _ => out.extend_from_slice(bytes),
        }
    }
    None
}

impl Announcements {
    /// A datagram of messages of this node, with the signatures that belong to it. An announcement for which there is none is left out.
    pub(super) fn sign(&mut self, own: NodeId, datagram: &[u8], cover: &mut impl Cover) -> &[u8] {
        let (mut rest, mut out) = (datagram, std::mem::take(&mut self.datagram));
        out.clear();
        while let Some((origin, about, stamp, bytes)) = next(&mut rest, &mut out) {
            let is_kept = |kept: &Kept| kept.bytes == bytes;
            if origin == own && !self.kept.get(&(own, about)).is_some_and(is_kept) {
                let signature = cover.sign(bytes);
                self.kept.insert((own, about), Kept { stamp, bytes: bytes.to_vec(), signature });
            }
            if let Some(kept) = self.kept.get(&(origin, about)).filter(|kept| is_kept(kept)) {
                out.extend_from_slice(bytes);
                out.push(SIGNATURE);
                out.extend_from_slice(&kept.signature);
            }
        }
        self.datagram = out;
        &self.datagram
    }

    /// A datagram of messages of a neighbour, without signatures. Announcements that their origin has not signed are left out; the second
    /// value says how many.
    pub(super) fn verify(&mut self, datagram: &[u8], cover: &mut impl Cover) -> (&[u8], u64) {
        let (mut rest, mut out, mut refused) = (datagram, std::mem::take(&mut self.datagram), 0);
        out.clear();
        while let Some((origin, about, stamp, bytes)) = next(&mut rest, &mut out) {
            let Some((signature, after)) = read(rest) else {
                refused += 1;
                continue;
            };
            rest = after;
            let known = self.kept.get(&(origin, about));
            let is_known = known.is_some_and(|kept| kept.bytes == bytes && kept.signature == signature);
            if !is_known && !cover.verify(origin, bytes, &signature) {
                refused += 1;
                continue;
            }
            if known.is_none_or(|kept| stamp.is_newer_than(kept.stamp)) {
                self.kept.insert((origin, about), Kept { stamp, bytes: bytes.to_vec(), signature });
            }
            out.extend_from_slice(bytes);
        }
        self.datagram = out;
        (&self.datagram, refused)
    }
}

/// The signature at the front of these bytes, and what follows it.
fn read(bytes: &[u8]) -> Option<(Signature, &[u8])> {
    let (signature, rest) = bytes.strip_prefix(&[SIGNATURE])?.split_first_chunk()?;
    Some((*signature, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inner;
    use crate::message::{Groups, Hello};
    use crate::packet::GroupId;

    /// A signature that anybody can compute: the sum of the bytes, and the origin's number.
    struct Sum(NodeId);

    fn sum(origin: NodeId, bytes: &[u8]) -> Signature {
        let mut signature = [origin.number(); LENGTH];
        signature[0] = bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte));
        signature
    }

    impl Cover for Sum {
        fn seal(&mut self, _: crate::packet::Key, _: &Inner, _: &mut Vec<u8>) -> bool {
            true
        }
        fn open<'a>(&mut self, _: NodeId, _: &Inner, body: &'a mut [u8]) -> Option<&'a [u8]> {
            Some(body)
        }
        fn signs(&self) -> bool {
            true
        }
        fn sign(&mut self, announcement: &[u8]) -> Signature {
            sum(self.0, announcement)
        }
        fn verify(&mut self, origin: NodeId, announcement: &[u8], signature: &Signature) -> bool {
            *signature == sum(origin, announcement)
        }
    }

    fn id(number: u8) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn groups(origin: u8, sequence: u32) -> Vec<u8> {
        let stamp = Stamp { epoch: 1, sequence };
        let mut bytes = Vec::new();
        Message::Groups(Groups { origin: id(origin), stamp, joined: vec![GroupId(7)] }).encode(&mut bytes);
        bytes
    }

    fn hello() -> Vec<u8> {
        let mut bytes = Vec::new();
        Message::Hello(Hello { node: id(0), epoch: 1, heard: None }).encode(&mut bytes);
        bytes
    }

    #[test]
    fn an_announcement_passes_two_nodes_with_the_signature_of_its_origin() {
        let [mut first, mut second, mut third] =
            [0, 1, 2].map(|number| (Announcements::default(), Sum(id(number))));
        let plain = [hello(), groups(0, 1), hello()].concat();
        let sent = first.0.sign(id(0), &plain, &mut first.1).to_vec();
        assert_eq!(sent.len(), plain.len() + 1 + LENGTH);
        assert_eq!(second.0.verify(&sent, &mut second.1), (&plain[..], 0));
        let passed = second.0.sign(id(1), &groups(0, 1), &mut second.1).to_vec();
        assert_eq!(third.0.verify(&passed, &mut third.1), (&groups(0, 1)[..], 0));
    }

    #[test]
    fn a_node_can_announce_itself_alone() {
        let [mut forger, mut other] = [1, 2].map(|number| (Announcements::default(), Sum(id(number))));
        // Without a signature of node 0, its announcement does not leave, and is not taken.
        assert_eq!(forger.0.sign(id(1), &groups(0, 1), &mut forger.1), b"");
        assert_eq!(other.0.verify(&groups(0, 1), &mut other.1), (&b""[..], 1));
        let own = sum(id(1), &groups(0, 1));
        let forged = [&groups(0, 1)[..], &[SIGNATURE], &own, &hello()].concat();
        assert_eq!(other.0.verify(&forged, &mut other.1), (&hello()[..], 1));
    }

    #[test]
    fn an_older_announcement_does_not_take_the_place_of_a_newer_one() {
        let [mut origin, mut node] = [0, 1].map(|number| (Announcements::default(), Sum(id(number))));
        let [old, new] =
            [1, 2].map(|sequence| origin.0.sign(id(0), &groups(0, sequence), &mut origin.1).to_vec());
        for datagram in [&new, &old] {
            assert_eq!(node.0.verify(datagram, &mut node.1).1, 0);
        }
        assert_eq!(node.0.sign(id(1), &groups(0, 2), &mut node.1), new);
        assert_eq!(node.0.sign(id(1), &groups(0, 1), &mut node.1), b"");
    }
}
