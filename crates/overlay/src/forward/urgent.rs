//! Sensitive packets: which of a bin goes first toward a neighbour, and where a critical one goes (digest A 6.4, steps 2 and 4).

use super::{Action, Decision, Port, Reason, SEARCH_BYTES, View};
use crate::linkstate::routes::is_in_time;
use crate::nodes::{NodeId, Nodes};
use crate::packet::Body;
use crate::queue::{Bin, Class, Slot};
use weir_base::Time;

/// The packet of a bin's sensitive classes with the least time left among those that arrive in time over a neighbour that they have not
/// visited. Control packets come first.
pub(super) fn most_urgent<B: Body, S: Default>(
    view: &View<'_, B, S>,
    port: &Port,
    bin: &Bin<S>,
    wanted: Nodes,
) -> Option<(Class, Slot, Nodes)> {
    if let Some(place) = bin.first(Class::Control) {
        let nodes = view.queues.entry(place)?.packet.receivers.and(wanted);
        return (!nodes.is_empty()).then_some((Class::Control, place, nodes));
    }
    let mut best: Option<(Time, Slot, Nodes)> = None;
    let mut place = bin.first(Class::LowLatency);
    let mut left = port.room + SEARCH_BYTES;
    while let Some(at) = place {
        let packet = &view.queues.entry(at)?.packet;
        let due = packet.due.unwrap_or(Time::NEVER);
        if !packet.visited.has(port.node) {
            let fits =
                |node: &NodeId| is_in_time(view.routes.delay_via(port.number, *node), packet.due, view.now);
            let nodes: Nodes = packet.receivers.and(wanted).iter().filter(fits).collect();
            if !nodes.is_empty() && best.is_none_or(|(first, ..)| due < first) {
                best = Some((due, at, nodes));
            }
        }
        left = left.saturating_sub(packet.body.bytes().into());
        if left == 0 {
            break;
        }
        place = view.queues.after(at);
    }
    best.map(|(_, place, nodes)| (Class::LowLatency, place, nodes))
}

/// The critical packet that is due first, to the fastest neighbour that it has not visited, if that one has room.
pub(super) fn critical<B: Body, S: Default>(view: &View<'_, B, S>) -> Option<Decision> {
    let mut best: Option<(Time, Decision)> = None;
    for at in view.queues.active() {
        let mut place = view.queues.bin(*at).first(Class::Critical);
        let mut left = SEARCH_BYTES;
        while let Some(here) = place.filter(|_| left > 0) {
            let packet = &view.queues.entry(here)?.packet;
            let due = packet.due.unwrap_or(Time::NEVER);
            if best.as_ref().is_none_or(|(first, _)| due < *first)
                && let Some((port, nodes)) = escape(view, packet.receivers, packet.visited, packet.due)
            {
                let action = Action::Packet { class: Class::Critical, place: here };
                let decision = Decision { port, bin: *at, nodes, action, reason: Reason::Critical };
                best = Some((due, decision));
            }
            left = left.saturating_sub(packet.body.bytes().into());
            place = view.queues.after(here);
        }
    }
    best.map(|(_, decision)| decision)
}

/// The neighbour over which a critical packet goes on, and the receivers for which it is the fastest.
fn escape<B, S>(
    view: &View<'_, B, S>,
    receivers: Nodes,
    visited: Nodes,
    due: Option<Time>,
) -> Option<(usize, Nodes)> {
    let fastest = |node: NodeId| {
        let open = view.ports.iter().filter(|port| !visited.has(port.node));
        let mean = open.filter_map(|port| Some((view.routes.mean_via(port.number, node)?, port)));
        let in_time = mean.filter(|(mean, _)| is_in_time(Some(*mean), due, view.now));
        in_time.min_by_key(|(mean, port)| (*mean, port.number)).map(|(_, port)| port)
    };
    let port = receivers.iter().filter_map(fastest).find(|port| port.room > 0)?;
    let same = |node: &NodeId| fastest(*node).is_some_and(|other| other.number == port.number);
    Some((port.number, receivers.iter().filter(same).collect()))
}
