//! The planner of a node: what it is told, and what is done when it decides.

use super::bins::Bin;
use super::{Edge, Entry};
use crate::admission::Admission;
use crate::cat::Cat;
use crate::node::Node;
use crate::packet::Body;
use crate::planner::{BinSeen, FlowSeen, NodeSeen};
use crate::utility::Seen;
use weir_base::{Bytes, Rate, Span, Time};

/// The planner waits so long for K.
const WITHOUT_K: Span = Span::from_millis(100);

impl Edge {
    /// When the planner has something to do.
    pub(super) fn planner_due(&self) -> Time {
        self.planner.as_ref().map_or(Time::NEVER, |planner| planner.next_time().max(self.plans_from))
    }

    /// Tells the planner how all is, and does what it decides. `opened` is told the places of the flows that may send from now on.
    pub(super) fn plan<B: Body, C: Cat>(
        &mut self,
        node: &Node<B, C>,
        around: Bytes,
        now: Time,
        opened: &mut impl FnMut(usize),
    ) {
        if self.planner_due() > now {
            return;
        }
        let Some(k) = node.k() else {
            // No link has told its capacity yet.
            self.plans_from = now + WITHOUT_K;
            return;
        };
        let Some(mut planner) = self.planner.take() else { return };
        let (capacities, bins) = (payload_capacities(node, around), self.bins_seen(node));
        let present = self.entries().filter(|(_, entry)| entry.admission.standing().is_present());
        let flows: Vec<FlowSeen<'_>> = present.map(|(at, entry)| self.seen(at, entry, k, now)).collect();
        let told = NodeSeen { k, capacities: &capacities, flows: &flows, bins: &bins };
        let decisions = planner.on_report(&told, now).to_vec();
        let transfers = planner.transfers(&told);
        drop(flows);
        self.planner = Some(planner);
        for (flow, priority) in transfers {
            let at = flow as usize;
            if self.change(at, now, |admission| admission.prioritise(priority)) {
                opened(at);
            }
        }
        for decision in decisions {
            let at = decision.flow as usize;
            let command =
                |admission: &mut Admission| admission.command(decision.command, decision.reason, now);
            if self.change(at, now, command) {
                opened(at);
            }
        }
        self.bins.told();
    }

    /// The bins in which flows enter here.
    fn bins_seen<B: Body, C: Cat>(&self, node: &Node<B, C>) -> Vec<BinSeen> {
        let mut bins: Vec<BinSeen> = Vec::new();
        let ways = |of: &Bin| {
            let receivers = node.receivers_of(of.to, of.interested);
            let toward = |to| (0..node.ports()).map(|port| node.delay_via(port, to)).collect();
            receivers.iter().map(toward).collect()
        };
        for seen in self.bins.used() {
            match bins.iter_mut().find(|bin| bin.key == seen.to) {
                Some(bin) => bin.peak = bin.peak.max(seen.peak),
                None => {
                    let depth = node.price_of(seen.to, seen.interested).unwrap_or_default();
                    let peak = seen.peak.max(depth);
                    bins.push(BinSeen { key: seen.to, depth, peak, ways: ways(seen) });
                }
            }
        }
        bins
    }

    /// What the planner is told of a flow.
    fn seen<'a>(&self, at: usize, entry: &'a Entry, k: f64, now: Time) -> FlowSeen<'a> {
        let see = Seen { k, depth: self.bins.get(entry.bin).price, loss: None };
        let needed = move |elastic: Rate| entry.admission.needed_priority(&see, elastic, now);
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        FlowSeen {
            needed: Box::new(needed),
            rate: self.rate(at),
            ..FlowSeen::of(number, entry.to(), entry.coupled, &entry.admission)
        }
    }
}

/// What each link can carry of payload: its capacity less the part that headers and messages have had so far. `around` are the headers of
/// a datagram between nodes, without the overlay's own.
fn payload_capacities<B: Body, C: Cat>(node: &Node<B, C>, around: Bytes) -> Vec<Rate> {
    let (sent, each) = (node.counters(), around.get());
    let beside = sent.header_bytes + each * sent.packets + sent.signal_bytes + each * sent.signals;
    let part = match sent.body_bytes {
        0 => 1.0,
        payload => payload as f64 / (payload + beside) as f64,
    };
    let capacity = |port: usize| {
        let up = node.neighbour(port).and_then(|_| node.cat(port));
        up.map_or_else(Rate::default, |cat| cat.capacity().scale(part))
    };
    (0..node.ports()).map(capacity).collect()
}
