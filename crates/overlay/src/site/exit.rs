//! The way out of the overlay: what a node decides is carried out, and what has reached its receiver here leaves for a host.

use super::carried::Carried;
use super::datagram::{self, Fate, Read};
use super::members::{Members, Side};
use super::parts::{self, Incoming};
use super::signed::Announcements;
use super::{Counts, Cover, Outside, Places, stream};
use crate::context::{Context, Inner};
use crate::forward::Reason;
use crate::node::{Discard, Output, Signal};
use crate::nodes::NodeId;
use crate::packet::{Key, Packet};
use crate::proxy::udp::Code;
use weir_base::Time;

/// Bodies whose space is kept.
const SPARES: usize = 256;

/// The way out of the overlay.
#[derive(Debug)]
pub(super) struct Exit<S> {
    pub(super) id: NodeId,
    pub(super) places: Places,
    pub(super) members: Members,
    pub(super) cover: S,
    pub(super) announcements: Announcements,
    pub(super) counts: Counts,
    /// Bodies that nothing holds, and the datagram that leaves.
    pub(super) spares: Vec<Carried>,
    pub(super) datagram: Vec<u8>,
    /// Datagrams of which parts have come, the code of their repairs, and one that is cut.
    pub(super) incoming: Incoming,
    pub(super) code: &'static dyn Code,
    pub(super) whole: Vec<u8>,
}

/// Carries out what the node decides.
pub(super) struct Out<'a, O, S> {
    pub(super) outside: &'a mut O,
    pub(super) exit: &'a mut Exit<S>,
    pub(super) now: Time,
}

impl<S: Cover> Exit<S> {
    pub(super) fn keep(&mut self, body: Carried) {
        if self.spares.len() < SPARES {
            self.spares.push(body.released());
        }
    }

    /// A body with these bytes, sealed for the node or the group `to`. `None` if it could not be sealed.
    pub(super) fn seal(&mut self, to: Key, inner: &Inner, bytes: &[u8]) -> Option<Carried> {
        let mut body = Carried::of(bytes, self.spares.pop());
        if self.cover.seal(to, inner, body.whole()) {
            return Some(body);
        }
        self.counts.unsealed += 1;
        self.keep(body);
        None
    }

    /// Hands over what a packet carries, if it may leave here: its source must be behind the node at which its flow has entered, and its
    /// destination behind this one.
    fn leave(&mut self, packet: &mut Packet<Carried>, inner: &Inner, now: Time, outside: &mut impl Outside) {
        let from = packet.flow.source;
        let is_for_here = self.places.node_of(inner.destination) == Some(self.id)
            || self.places.is_group(inner.destination);
        if self.places.node_of(inner.source) != Some(from) || !is_for_here {
            self.counts.foreign += 1;
            return;
        }
        let Some(body) = self.cover.open(from, inner, packet.body.get_mut()) else {
            self.counts.unsealed += 1;
            return;
        };
        if stream::is_segment(inner) {
            self.counts.delivered += 1;
            return outside.segment(inner, body);
        }
        let Packet { flow, hops, ecn, checksum, sequence, due, .. } = *packet;
        let fate = Fate { hops, ecn, checksum, sequence };
        match parts::whole(inner) {
            Some(whole) => self.part((flow, whole), (body, fate, due), now, outside),
            None => self.write(inner, fate, body, outside),
        }
    }

    /// Writes a datagram that leaves here, and hands it over.
    pub(super) fn write(&mut self, inner: &Inner, fate: Fate, body: &[u8], outside: &mut impl Outside) {
        if datagram::write(inner, fate, body, &mut self.datagram) {
            self.counts.delivered += 1;
            self.hand_over(inner.destination, None, outside);
        } else {
            self.counts.malformed += 1;
        }
    }

    /// Hands over the datagram that was written: to the device, or to all sides of the site with members of its group but that from which it has come.
    fn hand_over(&self, destination: u32, from: Option<Side>, outside: &mut impl Outside) {
        if !self.places.is_group(destination) {
            return outside.deliver(&self.datagram);
        }
        for side in self.members.sides_of(destination).filter(|side| Some(*side) != from) {
            match side {
                Side::Device => outside.deliver(&self.datagram),
                Side::Network(at) => outside.deliver_to_network(at, &self.datagram),
            }
        }
    }

    /// Hands a datagram to a group to the members of this site that its sender does not reach itself: those on other sides of the node.
    pub(super) fn copy_within(&mut self, read: &datagram::Read<'_>, from: Side, outside: &mut impl Outside) {
        let Read { inner, ecn, checksum, body } = *read;
        let is_own = self.places.node_of(inner.source) == Some(self.id);
        if is_own
            && self.places.is_group(inner.destination)
            && datagram::write(&inner, Fate { hops: 1, ecn, checksum, sequence: 0 }, body, &mut self.datagram)
        {
            self.hand_over(inner.destination, Some(from), outside);
        }
    }
}

impl<O: Outside, S: Cover> Output<Carried> for Out<'_, O, S> {
    fn send(&mut self, port: usize, header: &[u8], packet: Packet<Carried>, _: Reason) {
        let is_sensitive = packet.is_sensitive || packet.due.is_some();
        self.outside.packet(port, header, packet.body.get(), is_sensitive);
        self.exit.keep(packet.body);
    }
    fn signal(&mut self, port: usize, datagram: &[u8], what: Signal) {
        let Exit { id, cover, announcements, .. } = &mut *self.exit;
        let datagram = if cover.signs() { announcements.sign(*id, datagram, cover) } else { datagram };
        self.outside.signal(port, datagram, what);
    }
    fn deliver(&mut self, mut packet: Packet<Carried>, context: &Context) {
        self.exit.leave(&mut packet, &context.inner, self.now, self.outside);
        self.exit.keep(packet.body);
    }
    fn discard(&mut self, body: Carried, why: Discard) {
        self.exit.counts.discarded(why);
        self.exit.keep(body);
    }
}
