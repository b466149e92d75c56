//! The bytes of a program's datagram as the overlay carries them, and the space of those that nothing holds.

use super::quota::Share;
use crate::packet::Body;

/// A body: bytes behind an overlay's header that stands before them, if it came from a neighbour.
#[derive(Debug, Default)]
pub struct Carried {
    bytes: Vec<u8>,
    start: usize,
    /// What it takes of the quota of the neighbour from which it came.
    share: Option<Share>,
}

impl Carried {
    /// A body with these bytes, in the space of another one.
    pub(super) fn of(bytes: &[u8], spare: Option<Carried>) -> Carried {
        let mut space = spare.map(|spare| spare.bytes).unwrap_or_default();
        space.clear();
        space.extend_from_slice(bytes);
        Carried { bytes: space, start: 0, share: None }
    }

    /// The same, as a part of a neighbour's quota.
    pub(super) fn within(self, share: Option<Share>) -> Carried {
        Carried { share, ..self }
    }

    /// Its space, which takes nothing of a quota.
    pub(super) fn released(self) -> Carried {
        Carried { share: None, ..self }
    }

    /// Its bytes.
    pub fn get(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Its bytes, to change in place.
    pub(super) fn get_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Its bytes, to lengthen. Nothing may stand before them.
    pub(super) fn whole(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..std::mem::take(&mut self.start).min(self.bytes.len()));
        &mut self.bytes
    }
}

impl Body for Carried {
    fn bytes(&self) -> u32 {
        self.get().len() as u32
    }
    fn behind(&mut self, header: usize) {
        self.start += header;
    }
    fn duplicate(&self, spare: Option<Carried>) -> Carried {
        Carried::of(self.get(), spare).within(self.share.as_ref().map(Share::again))
    }
}
