//! A host's packet as the overlay carries it, and what becomes of it: it is rewritten as a packet between nodes, with the overlay's
//! header before its payload, and back at the node where it leaves.

use super::hop::{Hop, Notes};
use super::paths::Paths;
use super::{HEADERS, Leaving, Neighbour};
use std::fmt;
use weir_base::{CODEPOINTS, Ecn, FlowId, Span, Time};
use weir_fabric::{NO_FLOW, Net, Rewrite, Wire};
use weir_overlay::forward::Reason;
use weir_overlay::{Body, Context, Discard, Output, Packet, Signal};

/// A packet that a node holds.
pub(super) struct Carried<P> {
    packet: P,
    /// Bytes of the host's payload.
    bytes: u32,
    /// Bytes of an overlay's header before them.
    header: usize,
}

impl<P> Carried<P> {
    /// A packet with a payload of so many bytes.
    pub(super) fn new(packet: P, bytes: u32) -> Carried<P> {
        Carried { packet, bytes, header: 0 }
    }
}

impl<P> fmt::Debug for Carried<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").field("bytes", &self.bytes).field("header", &self.header).finish()
    }
}

impl<P: Wire> Body for Carried<P> {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn behind(&mut self, header: usize) {
        self.header = header;
        self.bytes = self.bytes.saturating_sub(header as u32);
    }
    fn waited(&mut self, time: Span) {
        self.packet.waited(time);
    }
    fn duplicate(&self, spare: Option<Carried<P>>) -> Carried<P> {
        let packet = match spare {
            Some(spare) => self.packet.duplicate_into(spare.packet),
            None => self.packet.duplicate(),
        };
        Carried { packet, ..*self }
    }
}

/// Carries out what a node says.
pub(super) struct Out<'a, 'b, P> {
    net: &'a mut Net<'b, P>,
    neighbours: &'a [Neighbour],
    leaving: &'a [Leaving],
    /// The connections to neighbours, where links are not wires.
    hops: &'a mut [Hop],
    /// Where each flow's packets leave, if that is recorded.
    paths: Option<&'a mut Paths>,
    /// Packets that the node has let go.
    pub(super) gone: u64,
    /// Those of them that could no longer be in time.
    pub(super) expired: u64,
}

impl<'a, 'b, P: Wire> Out<'a, 'b, P> {
    pub(super) fn new(
        net: &'a mut Net<'b, P>,
        neighbours: &'a [Neighbour],
        leaving: &'a [Leaving],
        hops: &'a mut [Hop],
        paths: Option<&'a mut Paths>,
    ) -> Out<'a, 'b, P> {
        Out { net, neighbours, leaving, hops, paths, gone: 0, expired: 0 }
    }

    /// Hands a packet to a connection, which keeps its bytes; the packet itself is not needed any more.
    fn send_over(&mut self, port: usize, header: &[u8], packet: Packet<Carried<P>>) {
        let (now, is_sensitive) = (self.net.now(), packet.is_sensitive || packet.due.is_some());
        let Carried { packet, header: cut, .. } = packet.body;
        if let (Some(hop), Some((head, zeros))) = (self.hops.get_mut(port), packet.payload()) {
            let entered = packet.entered().unwrap_or(Time::NEVER);
            let notes = Notes { entered, waits: packet.waits() };
            let head = head.get(cut..).unwrap_or_default();
            hop.send(notes, header, (head, zeros), is_sensitive, now);
        }
        self.net.discard(packet);
    }

    /// A datagram from this node to a neighbour.
    fn between<'c>(&self, port: usize, cut: usize, put: &'c [u8]) -> Option<(usize, Rewrite<'c>)> {
        let neighbour = self.neighbours.get(port)?;
        let (from, to) = (self.net.node(), neighbour.at);
        Some((neighbour.link, Rewrite { flow: NO_FLOW, from, to, ecn: Ecn::NotEct, cut, put, zeros: 0 }))
    }
}

impl<P: Wire> Output<Carried<P>> for Out<'_, '_, P> {
    fn send(&mut self, port: usize, header: &[u8], packet: Packet<Carried<P>>, _: Reason) {
        self.gone += 1;
        if let Some(paths) = &mut self.paths {
            let bytes = HEADERS.get() + header.len() as u64 + u64::from(packet.body.bytes);
            paths.count(packet.flow, port, bytes);
        }
        if !self.hops.is_empty() {
            return self.send_over(port, header, packet);
        }
        let Carried { mut packet, header: cut, .. } = packet.body;
        match self.between(port, cut, header) {
            Some((link, rewrite)) if packet.rewrite(&rewrite) => self.net.send(packet, link),
            _ => self.net.discard(packet),
        }
    }

    fn signal(&mut self, port: usize, datagram: &[u8], what: Signal) {
        if let Some(hop) = self.hops.get_mut(port) {
            return hop.signal(datagram, what, self.net.now());
        }
        let Some((link, rewrite)) = self.between(port, 0, datagram) else { return };
        if let Some(packet) = self.net.build(&rewrite) {
            self.net.send(packet, link);
        }
    }

    fn deliver(&mut self, packet: Packet<Carried<P>>, context: &Context) {
        self.gone += 1;
        let Packet { hops, ecn, body: Carried { packet: mut inner, header: cut, .. }, .. } = packet;
        let at = self.leaving.binary_search_by_key(&context.inner.source_port, |leaving| leaving.port);
        let Ok(at) = at else { return self.net.discard(inner) };
        let Leaving { flow, from, to, deadline, is_answer, .. } = self.leaving[at];
        let ecn = CODEPOINTS[usize::from(ecn & 3)];
        if inner.rewrite(&Rewrite { flow: FlowId(flow), from, to, ecn, cut, put: &[], zeros: 0 }) {
            if is_answer {
                self.net.forward(inner);
            } else {
                self.net.give_back(inner, hops, deadline);
            }
        } else {
            self.net.discard(inner);
        }
    }

    fn discard(&mut self, body: Carried<P>, why: Discard) {
        self.gone += 1;
        self.expired += u64::from(why == Discard::Expired);
        self.net.discard(body.packet);
    }
}
