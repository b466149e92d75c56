//! The approximation with one depth for each group and one for each destination (digest G 2.1): less signalling, coarser choices.

use super::candidate::{Candidate, Kind, Pass};
use super::{Action, Decision, Forwarder, Reason, View};
use crate::gradient::Side;
use crate::multicast::{self, Offer};
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, Key};
use crate::queue::{BinAt, Class, Destination, Slot};

impl Forwarder {
    /// The same by one depth of the group: the sums over the destinations that the neighbour can reach (digest G 2.1).
    pub(super) fn consider_total<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        index: usize,
        at: BinAt,
        pass: Pass,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        let (port, bin) = (&view.ports[index], view.queues.bin(at));
        let (Key::Group(group), false) = (bin.key, pass.is_sensitive()) else { return };
        let finite = view.routes.finite(port.number, bin.destinations.nodes());
        let bias = self.config.gradients.hop_bias.get() as i64;
        let mut weight = -(view.advertised[port.number].group_total(group) as i64);
        let (mut packets, mut zombies) = (Nodes::EMPTY, Nodes::EMPTY);
        for (node, destination) in bin.destinations.iter().filter(|(node, _)| finite.has(*node)) {
            let hops = |hops: Option<u8>| i64::from(hops.unwrap_or(0));
            let gain = hops(view.routes.hops(node)) - hops(view.routes.hops_via(port.number, node));
            weight += depth(destination, false) as i64
                + if depth(destination, false) > 0 { bias * gain } else { 0 };
            if destination.bytes(Class::Normal) > 0 {
                packets = packets.with(node);
            } else if pass.zombies(destination) > 0 {
                zombies = zombies.with(node);
            }
        }
        let kind = if packets.is_empty() { Kind::Zombies } else { Kind::Packets };
        let nodes = if packets.is_empty() { zombies } else { finite };
        if weight > self.config.gradients.hysteresis.get() as i64 && !nodes.is_empty() {
            self.candidates.push(Candidate { weight, nodes, ..Candidate::new(kind, index, at, pass) });
        }
    }

    pub(super) fn choose_by_sums<B: Body, S: Default>(
        &self,
        view: &View<'_, B, S>,
        candidate: Candidate,
        first: Slot,
    ) -> Option<Decision> {
        let port = &view.ports[candidate.port];
        let difference = |node: NodeId| {
            let own = Side { depth: self.sums.get(node).copied().unwrap_or(0), hops: view.routes.hops(node) };
            let hops = view.routes.hops_via(port.number, node);
            let there = Side { depth: view.advertised[port.number].sum(node), hops };
            self.config.gradients.difference(own, there).unwrap_or(0)
        };
        let mut best: Option<(Slot, Offer)> = None;
        for (at, packet) in self.searched(view, first) {
            if let Some(offer) = multicast::offer_by_sums(packet.receivers, candidate.nodes, difference)
                && best.is_none_or(|(_, best)| offer.beats(&best, true))
            {
                best = Some((at, offer));
            }
        }
        let (place, offer) = best?;
        let action = Action::Packet { class: Class::Normal, place };
        let decision = self.decision(view, candidate, offer.nodes, action);
        if offer.is_downhill {
            Some(decision)
        } else {
            Some(Decision { reason: Reason::Uphill(offer.score), ..decision })
        }
    }

    /// Depths by destination over all groups.
    pub(super) fn add_up<B: Body, S: Default>(
        &mut self,
        view: &View<'_, B, S>,
        depth: &impl Fn(&Destination<S>, bool) -> u64,
    ) {
        self.sums.clear();
        for at in view.queues.active() {
            let bin = view.queues.bin(*at);
            if matches!(bin.key, Key::Group(_)) {
                for (node, destination) in bin.destinations.iter() {
                    *self.sums.get_or(node, || 0) += depth(destination, false);
                }
            }
        }
    }
}
