//! How stations carry datagrams: a station takes a host's packet in, sends it inside a packet of its own, and the station at the
//! receiver's node gives it back. Both are the same packet, rewritten in place, so it is counted once and nothing is allocated.

use super::Net;
use crate::transit::Transits;
use crate::wire::{Rewrite, Wire};
use weir_base::{FlowId, Rate, Span};

/// A link as it is at present.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Present {
    /// Its rate; with a trace, the trace's mean rate. `None` if it has no limit.
    pub rate: Option<Rate>,
    /// Its propagation delay.
    pub delay: Span,
    /// The share of packets that it loses in the long run.
    pub loss: f64,
}

impl<P: Wire> Net<'_, P> {
    /// How many changes of links there have been: while it is the same, all links are as they were ([`Net::present`]).
    pub fn changes(&self) -> u64 {
        self.fabric.changed
    }

    /// A link as it is at present.
    pub fn present(&self, link: usize) -> Present {
        let link = &self.fabric.links[link];
        Present { rate: link.rate(), delay: link.delay(), loss: link.loss() }
    }

    /// A new datagram with the payload [`Rewrite::put`] and zeros behind it. `None` if stations cannot write packets of this kind.
    pub fn build(&mut self, what: &Rewrite<'_>) -> Option<P> {
        let old = self.fabric.around.discarded.pop();
        let mut packet = P::blank(old)?;
        packet.rewrite(what).then(|| {
            self.counters().made += 1;
            packet
        })
    }

    /// The memory of a packet that is not needed any more, for [`Wire::duplicate_into`]; `None` if there is none.
    pub fn spare(&mut self) -> Option<P> {
        self.fabric.around.discarded.pop()
    }

    /// The station has made so many exact copies of packets that it holds.
    pub fn copied(&mut self, copies: u64) {
        self.counters().made += copies;
    }

    /// A host's packet is taken in. It counts for these flows, one for each receiver; the first one is the packet's own.
    pub fn take_in(&mut self, packet: &mut P, flows: impl IntoIterator<Item = u32>) {
        packet.enter(self.now);
        let bytes = packet.wire_length();
        let own = packet.flow();
        for flow in flows {
            self.transits(flow).admitted += 1;
            if FlowId(flow) != own {
                self.fabric.taps.sent_too(flow, bytes);
            }
        }
    }

    /// A packet is given back to the host that it is addressed to, after so many links. It is late beyond the deadline.
    pub fn give_back(&mut self, packet: P, links: u8, deadline: Option<Span>) {
        if let Some(entered) = packet.entered() {
            let time = self.now.since(entered);
            let in_time = deadline.is_none_or(|deadline| time <= deadline);
            self.transits(packet.flow().0).leaves(time, packet.waits(), links, in_time);
        }
        self.forward(packet);
    }

    /// The station admits a packet of this flow again ([`super::Station::admits`]): its host is told. Only from
    /// [`super::Station::on_timer`].
    pub fn admit(&mut self, flow: FlowId) {
        self.fabric.around.left_cards.push_back((flow, 0, self.now));
    }

    fn transits(&mut self, flow: u32) -> &mut Transits {
        let transits = &mut self.fabric.transits;
        if transits.len() <= flow as usize {
            transits.resize_with(flow as usize + 1, Transits::default);
        }
        &mut transits[flow as usize]
    }
}
