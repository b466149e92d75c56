//! The planner of a node: what it is told, what it decides, and what of that is recorded.

use super::entry::Entry;
use super::{Entering, HEADERS, OverlayNode};
use weir_base::{Bytes, FlowId, Rate, Time};
use weir_fabric::{Decided, Net, Wire};
use weir_overlay::admission::{By, Event};
use weir_overlay::planner::{BinSeen, FlowSeen, NodeSeen};
use weir_overlay::utility::{Seen, bits};
use weir_overlay::{Cat, FlowAt, Key};

/// Whether a node at which these flows enter has something to plan.
pub(super) fn plans(entering: &[Entering]) -> bool {
    entering.iter().any(|flow| flow.terms.utility.may_be_refused())
}

impl<P: Wire> OverlayNode<P> {
    /// When a flow or the planner has something to do.
    pub(super) fn flows_due(&self) -> Time {
        self.agenda.soonest().min(self.planner.as_ref().map_or(Time::NEVER, |planner| planner.next_time()))
    }

    /// Tells the planner how all is, and does what it says.
    pub(super) fn plan(&mut self, net: &mut Net<'_, P>) {
        let now = net.now();
        if self.planner.as_ref().is_none_or(|planner| planner.next_time() > now) {
            return;
        }
        let (Some(k), Some(mut planner)) =
            (self.node.as_ref().and_then(|node| node.k()), self.planner.take())
        else {
            return;
        };
        let (capacities, bins) = (self.payload_capacities(), self.bins_seen());
        let present = |entry: &&Entry| entry.admission.standing().is_present();
        let present = self.entries.iter().filter(present);
        let flows: Vec<FlowSeen<'_>> = present.map(|entry| seen(entry, k, now)).collect();
        let told = NodeSeen { k, capacities: &capacities, flows: &flows, bins: &bins };
        let decisions = planner.on_report(&told, now).to_vec();
        let transfers = planner.transfers(&told);
        drop(flows);
        self.planner = Some(planner);
        for (flow, priority) in transfers {
            if let Some(at) = self.entry_at(flow) {
                self.entries[at].admission.prioritise(priority);
            }
        }
        for decision in decisions {
            let Some(at) = self.entry_at(decision.flow) else { continue };
            let entry = &mut self.entries[at];
            let was_open = entry.is_open;
            entry.admission.command(decision.command, decision.reason, now);
            entry.settle(now);
            self.agenda.set(at, entry.next);
            if entry.is_open && !was_open {
                net.admit(FlowId(decision.flow));
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.peak = entry.price);
    }

    /// Where a flow that enters here stands among them.
    pub(super) fn entry_at(&self, flow: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&flow, |entry| entry.flow).ok()
    }

    /// What each link can carry of payload: its capacity less the part that headers and messages have had so far.
    fn payload_capacities(&self) -> Vec<Rate> {
        let Some(node) = &self.node else { return Vec::new() };
        let sent = node.counters();
        let overhead = self.neighbours.first().map_or(Bytes::ZERO, |neighbour| neighbour.overhead);
        let each = (HEADERS + overhead).get();
        let beside = sent.header_bytes + each * sent.packets + sent.signal_bytes + each * sent.signals;
        let part = match sent.body_bytes {
            0 => 1.0,
            payload => payload as f64 / (payload + beside) as f64,
        };
        let capacity = |port: usize| {
            let up = node.neighbour(port).and_then(|_| node.cat(port));
            up.map_or_else(Rate::default, |cat| cat.capacity().scale(part))
        };
        (0..self.neighbours.len()).map(capacity).collect()
    }

    /// The bins in which flows enter here.
    fn bins_seen(&self) -> Vec<BinSeen> {
        let Some(node) = &self.node else { return Vec::new() };
        let mut bins: Vec<BinSeen> = Vec::new();
        let ways = |flow: FlowAt| {
            let receivers = node.receivers(flow);
            let toward = |to| (0..self.neighbours.len()).map(|port| node.delay_via(port, to)).collect();
            receivers.iter().map(toward).collect()
        };
        for entry in &self.entries {
            let key: Key = entry.to;
            match bins.iter_mut().find(|bin| bin.key == key) {
                Some(bin) => bin.peak = bin.peak.max(entry.peak),
                None => {
                    let depth = node.price(entry.at).unwrap_or_default();
                    bins.push(BinSeen { key, depth, peak: entry.peak.max(depth), ways: ways(entry.at) });
                }
            }
        }
        bins
    }

    /// How the flows that enter here stand, once a sample period. Flows that are never refused are left out without `details`.
    pub(super) fn report_flows(&self, report: &mut dyn FnMut(FlowId, &str, f64)) {
        for entry in &self.entries {
            let (flow, admission) = (FlowId(entry.flow), &entry.admission);
            if admission.terms().utility.may_be_refused() {
                report(flow, "admission_standing", admission.standing().number().into());
                report(flow, "admitted_bit_per_s", entry.rate() as f64);
            }
            if self.details {
                report(flow, "price_bits", bits(entry.price));
                if let Some((step, inertia)) = admission.steps() {
                    report(flow, "admission_step", step.into());
                    report(flow, "admission_inertia", inertia);
                }
            }
        }
    }

    /// Tells what has been decided about the flows since the last call.
    pub(super) fn tell_decided(&mut self, tell: &mut dyn FnMut(Decided)) {
        for entry in &mut self.entries {
            let flow = FlowId(entry.flow);
            for Event { at, standing, by, reason } in entry.admission.take_events() {
                let by = match by {
                    By::Flow => "flow",
                    By::Planner => "planner",
                };
                let (standing, rule) = (standing.name(), reason.rule.name());
                tell(Decided { at, flow, by, standing, rule, value: reason.value, bound: reason.bound });
            }
        }
    }
}

/// What the planner is told of a flow.
fn seen(entry: &Entry, k: f64, now: Time) -> FlowSeen<'_> {
    let at = Seen { k, depth: entry.price, loss: None };
    let needed = move |elastic: Rate| entry.admission.needed_priority(&at, elastic, now);
    FlowSeen {
        needed: Box::new(needed),
        ..FlowSeen::of(entry.flow, entry.to, entry.coupled, &entry.admission)
    }
}
