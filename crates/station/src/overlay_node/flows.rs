//! The flows that enter at a node: which of them may send, and what is recorded of them.

use super::{Entering, HEADERS, OverlayNode};
use weir_base::{Bytes, FlowId};
use weir_fabric::{Decided, Net, Wire};
use weir_overlay::admission::{By, Event};
use weir_overlay::utility::bits;

/// Whether a node at which these flows enter has something to plan.
pub(super) fn plans(entering: &[Entering]) -> bool {
    entering.iter().any(|flow| flow.entry.terms.utility.may_be_refused())
}

impl<P: Wire> OverlayNode<P> {
    /// Where a flow that enters here stands among them.
    pub(super) fn entry_at(&self, flow: u32) -> Option<usize> {
        self.entering.binary_search_by_key(&flow, |(flow, _)| *flow).ok()
    }

    /// Plans, and admits the flows whose time has come.
    pub(super) fn look_at_flows(&mut self, net: &mut Net<'_, P>) {
        let (now, Some(node)) = (net.now(), &self.node) else { return };
        let overhead = self.neighbours.first().map_or(Bytes::ZERO, |neighbour| neighbour.overhead);
        let entering = &self.entering;
        self.edge.on_timer(node, HEADERS + overhead, now, |at| net.admit(FlowId(entering[at].0)));
    }

    /// How the flows that enter here stand, once a sample period. Flows that are never refused are left out without `details`.
    pub(super) fn report_flows(&self, report: &mut dyn FnMut(FlowId, &str, f64)) {
        for (at, entry) in self.edge.entries().filter(|(_, entry)| !entry.is_answer()) {
            let (flow, admission) = (FlowId(self.entering[at].0), entry.admission());
            if admission.terms().utility.may_be_refused() {
                report(flow, "admission_standing", admission.standing().number().into());
                report(flow, "admitted_bit_per_s", self.edge.rate(at).bits_per_sec() as f64);
            }
            if self.details {
                report(flow, "price_bits", bits(self.edge.price(at)));
                if let Some((step, inertia)) = admission.steps() {
                    report(flow, "admission_step", step.into());
                    report(flow, "admission_inertia", inertia);
                }
            }
        }
    }

    /// Tells what has been decided about the flows since the last call.
    pub(super) fn tell_decided(&mut self, tell: &mut dyn FnMut(Decided)) {
        let entering = &self.entering;
        self.edge.take_decided(|at, entry| {
            let flow = FlowId(entering[at].0);
            for Event { at, standing, by, reason } in entry.take_events() {
                let by = match by {
                    By::Flow => "flow",
                    By::Planner => "planner",
                };
                let (standing, rule) = (standing.name(), reason.rule.name());
                tell(Decided { at, flow, by, standing, rule, value: reason.value, bound: reason.bound });
            }
        });
    }
}
