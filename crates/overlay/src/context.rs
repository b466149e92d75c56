//! Flow contexts: what all packets of a flow have in common, told once to each neighbour instead of in each packet.
//!
//! The digest has none (A 2.4: the study carries the inner headers in each packet). A context never changes: a flow with other receivers
//! is another flow. A packet carries its context until the neighbour has acknowledged it, and again after the neighbour has said that it
//! does not know it. Contexts that no packet has used for a minute are forgotten, so their number is bounded.

use crate::nodes::{NODES, Nodes};
use crate::packet::{Flow, Key};
use crate::queue::Class;
use weir_base::{Span, Time};

/// A context that was not used for so long is forgotten.
pub const IDLE: Span = Span::from_secs(60);
/// The code point of packets of a network's control, in binary 110000 (RFC 2474, 4.2.2: class selector 6).
pub const CONTROL: u8 = 48;
/// The code point by which programs mark datagrams as urgent: expedited forwarding (RFC 3246).
pub const EF: u8 = 46;
/// The most contexts of a node.
pub const MOST: usize = 16_384;

/// The fields of the inner IPv4 and UDP headers that do not change within a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Inner {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Protocol.
    pub protocol: u8,
    /// Differentiated services code point.
    pub dscp: u8,
}

/// What a flow's packets have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The bin.
    pub to: Key,
    /// The node of the bin, or the receivers that the sender chose in the group.
    pub receivers: Nodes,
    /// Whether the flow is sensitive to latency.
    pub is_sensitive: bool,
    /// The inner headers.
    pub inner: Inner,
}

#[derive(Debug)]
struct Held {
    /// The bits of the flow's name.
    flow: u32,
    context: Context,
    used: Time,
    /// A bit for each neighbour that has acknowledged it.
    acknowledged: u128,
}

/// The contexts that a node knows.
#[derive(Debug)]
pub struct Contexts {
    /// By the node at which their flows enter, in the order of the flows' names: each packet looks for one, among few.
    held: Vec<Vec<Held>>,
    count: usize,
}

impl Default for Contexts {
    fn default() -> Contexts {
        Contexts { held: std::iter::repeat_with(Vec::new).take(NODES).collect(), count: 0 }
    }
}

impl Context {
    /// The class of a packet (digest A 1.2). One with a deadline is never control, which has none.
    pub fn class(&self, has_deadline: bool) -> Class {
        match self.inner.dscp {
            _ if has_deadline => Class::LowLatency,
            CONTROL => Class::Control,
            _ if self.is_sensitive => Class::LowLatency,
            _ => Class::Normal,
        }
    }
}

impl Contexts {
    /// Where a flow's context is, or would be, among those of its source.
    fn place(&self, flow: Flow) -> Result<usize, usize> {
        self.held[flow.source.index()].binary_search_by_key(&flow.bits(), |held| held.flow)
    }

    fn get(&self, flow: Flow) -> Option<&Held> {
        let at = self.place(flow).ok()?;
        self.held[flow.source.index()].get(at)
    }

    fn get_mut(&mut self, flow: Flow) -> Option<&mut Held> {
        let at = self.place(flow).ok()?;
        self.held[flow.source.index()].get_mut(at)
    }

    /// Takes a context. Returns false if there is no room, or the flow has another one.
    pub fn define(&mut self, flow: Flow, context: Context, now: Time) -> bool {
        let place = self.place(flow);
        let of_source = &mut self.held[flow.source.index()];
        match place {
            Ok(at) => {
                let held = &mut of_source[at];
                held.used = now;
                held.context == context
            }
            Err(_) if self.count >= MOST => false,
            Err(at) => {
                of_source.insert(at, Held { flow: flow.bits(), context, used: now, acknowledged: 0 });
                self.count += 1;
                true
            }
        }
    }
    /// The context of a flow that is used now.
    pub fn used(&mut self, flow: Flow, now: Time) -> Option<Context> {
        let held = self.get_mut(flow)?;
        held.used = now;
        Some(held.context)
    }
    /// The same for a packet to this neighbour, and whether it must carry the context.
    #[inline]
    pub fn used_toward(&mut self, port: usize, flow: Flow, now: Time) -> Option<(Context, bool)> {
        let held = self.get_mut(flow)?;
        held.used = now;
        Some((held.context, held.acknowledged >> port & 1 == 0))
    }
    /// The inner headers of a flow.
    pub fn inner(&self, flow: Flow) -> Option<Inner> {
        Some(self.get(flow)?.context.inner)
    }
    /// The neighbour knows the context.
    pub fn acknowledged(&mut self, flow: Flow, port: usize) {
        if let Some(held) = self.get_mut(flow) {
            held.acknowledged |= 1 << port;
        }
    }
    /// The neighbour does not know the context.
    pub fn unknown(&mut self, flow: Flow, port: usize) {
        if let Some(held) = self.get_mut(flow) {
            held.acknowledged &= !(1 << port);
        }
    }
    /// The neighbour has restarted, or another one is there.
    pub fn forget_neighbour(&mut self, port: usize) {
        self.held.iter_mut().flatten().for_each(|held| held.acknowledged &= !(1 << port));
    }
    /// Forgets the contexts that were not used for long.
    pub fn expire(&mut self, now: Time) {
        self.held.iter_mut().for_each(|held| held.retain(|held| now.since(held.used) < IDLE));
        self.count = self.held.iter().map(Vec::len).sum();
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::NodeId;

    fn flow(number: u16) -> Flow {
        Flow { source: NodeId::new(1).unwrap(), generation: 0, number }
    }
    fn must_attach(contexts: &mut Contexts, port: usize) -> bool {
        contexts.used_toward(port, flow(1), Time::ZERO).is_some_and(|(_, attaches)| attaches)
    }
    fn context(to: u8) -> Context {
        let node = NodeId::new(to).unwrap();
        Context {
            to: Key::Node(node),
            receivers: Nodes::of(node),
            is_sensitive: false,
            inner: Inner::default(),
        }
    }

    #[test]
    fn a_context_is_attached_until_that_neighbour_acknowledges_it() {
        let mut contexts = Contexts::default();
        assert!(contexts.define(flow(1), context(2), Time::ZERO));
        contexts.acknowledged(flow(1), 3);
        assert!(!must_attach(&mut contexts, 3) && must_attach(&mut contexts, 4));
        contexts.unknown(flow(1), 3);
        assert!(must_attach(&mut contexts, 3));
    }

    #[test]
    fn a_context_never_changes_and_is_forgotten_after_a_minute() {
        let mut contexts = Contexts::default();
        contexts.define(flow(1), context(2), Time::ZERO);
        assert!(!contexts.define(flow(1), context(3), Time::ZERO));
        contexts.expire(Time::ZERO + IDLE);
        assert!(contexts.is_empty());
    }

    #[test]
    fn the_number_of_contexts_is_bounded() {
        let mut contexts = Contexts::default();
        let taken = (0..u16::MAX).filter(|n| contexts.define(flow(*n), context(2), Time::ZERO)).count();
        assert_eq!((taken, contexts.len()), (MOST, MOST));
    }
}
