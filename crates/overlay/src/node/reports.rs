//! Reports of receivers: made here for flows that leave here, passed on, and kept for flows that enter here (digest A 2.3, A 7.6).

use super::{FlowAt, Node};
use crate::cat::Cat;
use crate::message::Report;
use crate::message::{Message, header::MOST_HOPS};
use crate::nodes::NodeId;
use crate::packet::{Body, Flow};
use crate::proxy::udp::loss::{Loss, worst};
use crate::proxy::udp::received::{PERIOD, Received};
use weir_base::{Span, Time};

/// Flows that are counted at most; further ones are not.
const MOST: usize = 4096;
/// A flow that has sent nothing for so long begins anew: no deadline of inelastic traffic is as long.
const PAUSE: Span = Span::from_secs(1);

/// What a node counts of flows that leave there.
#[derive(Debug, Default)]
pub(super) struct Counted {
    flows: Vec<(Flow, Received)>,
    due: Option<Time>,
}

impl Counted {
    pub(super) fn due(&self) -> Time {
        self.due.unwrap_or(Time::NEVER)
    }

    pub(super) fn on_packet(&mut self, flow: Flow, sequence: u32, bytes: u32, due: Time, now: Time) {
        let at = match self.flows.binary_search_by_key(&flow, |(flow, _)| *flow) {
            Ok(at) => at,
            Err(_) if self.flows.len() >= MOST => return,
            Err(at) => {
                self.flows.insert(at, (flow, Received::new(sequence, due, now)));
                at
            }
        };
        self.flows[at].1.on_packet(sequence, bytes.into(), due, now);
        self.due.get_or_insert(now + PERIOD);
    }
}

/// What a source hears of a flow.
#[derive(Debug)]
pub(super) struct Heard {
    receivers: Vec<(NodeId, Loss)>,
    deadline: Option<Span>,
    /// When it began to send without a pause, and when it sent last.
    sends_since: Time,
    sent: Time,
}

impl Heard {
    pub(super) fn new() -> Heard {
        Heard { receivers: Vec::new(), deadline: None, sends_since: Time::ZERO, sent: Time::ZERO }
    }

    /// A packet has been admitted.
    pub(super) fn has_sent(&mut self, deadline: Option<Span>, now: Time) {
        if now.since(self.sent) >= PAUSE {
            self.sends_since = now;
        }
        (self.sent, self.deadline) = (now, deadline);
    }

    /// The flow has another name from now on.
    pub(super) fn renamed(&mut self, now: Time) {
        self.receivers.clear();
        self.sends_since = now;
    }
}

impl<B: Body, C: Cat> Node<B, C> {
    /// The part of a flow's packets that do not reach the receiver with the most loss in time; `None` without a deadline.
    pub fn loss(&self, flow: FlowAt) -> Option<f64> {
        let heard = &self.flows.get(flow.0)?.heard;
        let losses = heard.receivers.iter().map(|(_, loss)| loss);
        Some(worst(losses, (heard.sends_since, heard.sent), heard.deadline?))
    }

    /// Makes the reports that are due.
    pub(super) fn report(&mut self, now: Time) {
        if self.counted.due.is_none_or(|due| due > now) {
            return;
        }
        let from = self.id;
        let mut flows = std::mem::take(&mut self.counted.flows);
        for (flow, received) in &mut flows {
            let Some((highest, in_time, bytes)) = received.on_period(now) else { continue };
            self.pass_report(Report { flow: *flow, from, hops: 0, highest, in_time, bytes }, now);
        }
        flows.retain(|(_, received)| !received.is_silent(now));
        self.counted.due = (!flows.is_empty()).then(|| now + PERIOD);
        self.counted.flows = flows;
    }

    /// A report has come over a link.
    pub(super) fn on_report(&mut self, report: Report, now: Time) {
        if report.flow.source != self.id {
            if report.hops < MOST_HOPS {
                self.pass_report(Report { hops: report.hops + 1, ..report }, now);
            }
            return;
        }
        let at = self.named.get(&report.flow.bits());
        let Some(flow) = at.and_then(|at| self.flows.get_mut(at.0)) else { return };
        let receivers = &mut flow.heard.receivers;
        let at = receivers.iter().position(|(node, _)| *node == report.from).unwrap_or_else(|| {
            receivers.push((report.from, Loss::new(now)));
            receivers.len() - 1
        });
        receivers[at].1.on_report(report.highest, report.in_time, now);
    }

    /// Hands a report to the neighbour on the way of least delay.
    fn pass_report(&mut self, report: Report, now: Time) {
        let to = report.flow.source;
        let delay = |port: usize| self.routes.delay_via(port, to).map(|delay| (delay, port));
        let up = (0..self.ports.len()).filter(|port| self.ports[*port].adjacency.up().is_some());
        if let Some((_, port)) = up.filter_map(delay).min() {
            self.reply(port, Message::Report(report), now);
        }
    }
}
