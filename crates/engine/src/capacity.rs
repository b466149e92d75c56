//! What a run's network could carry at most by a deadline, against which a measurement of the overlay can be held. What joins the network as
//! sessions is told apart from the network in [`sessions_of`], so that other kinds of sessions than traffic groups can join there.

use weir_base::{Rate, Span};
use weir_optimum::{Link, Mode, Network, NetworkError, Node, Problem, Session};
use weir_plan::{Group, Network as Fabric, Run};

/// For each group, the most that any forwarding, coded or not, can deliver to each receiver by its deadline, with the network to itself
/// as it is at the start. `None` if the overlay does not carry the group, if it has no deadline or several senders, or if nothing limits it.
pub(crate) fn by_deadline(run: &Run) -> Vec<Option<Rate>> {
    let deadline = |group: &Group| group.overlay.as_ref()?.deadline;
    if run.groups.iter().all(|group| deadline(group).is_none()) {
        return vec![None; run.groups.len()];
    }
    let network = network_of(&run.network).ok();
    let of_group = |group: &Group| {
        let (deadline, session) = (deadline(group)?, sessions_of_group(group));
        if session.len() != 1 {
            return None;
        }
        let upper = upper(network.as_ref()?, &session, deadline)?;
        Some(Rate::from_bits_per_sec(upper.round() as u64))
    };
    run.groups.iter().map(of_group).collect()
}

fn upper(network: &Network, session: &[Session], deadline: Span) -> Option<f64> {
    let problem = Problem::new(network, session, Mode::Coded).ok()?;
    Some(problem.capacity(deadline, &mut |_| true).bounds.upper)
}

/// A run's network. A host of a graph forwards nothing, but groups have hosts of their own that stand there: so it becomes two nodes, one
/// that passes packets to these hosts and one that takes packets from them. The rates and delays are those at the start.
///
/// # Errors
/// It is too large.
pub fn network_of(network: &Fabric) -> Result<Network, NetworkError> {
    let mut nodes: Vec<Node> =
        network.nodes.iter().map(|node| Node { name: node.name.clone(), forwards: !node.host }).collect();
    let mut outward = vec![None; nodes.len()];
    for (index, node) in network.nodes.iter().enumerate().filter(|(_, node)| node.edge) {
        outward[index] = Some(nodes.len());
        nodes.push(Node { name: node.name.clone(), forwards: true });
    }
    let is_host = |node: usize| network.nodes[node].host;
    let link = |link: &weir_plan::Link| {
        // Its own links leave from the second node, and what a group's host sends arrives there.
        let from = if is_host(link.to) { link.from } else { outward[link.from].unwrap_or(link.from) };
        let to = if is_host(link.from) { outward[link.to].unwrap_or(link.to) } else { link.to };
        Link { from, to, rate: link.rate, delay: link.delay }
    };
    let links = network.links.iter().map(link).collect();
    Network::new(nodes, links)
}

/// The sessions of a run: a group's receivers all receive what one of its hosts sends. A group with several sending hosts is several
/// sessions.
pub fn sessions_of(run: &Run) -> Vec<Session> {
    run.groups.iter().flat_map(sessions_of_group).collect()
}

fn sessions_of_group(group: &Group) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for pair in &group.pairs {
        match sessions.iter_mut().find(|session| session.source == pair.from) {
            Some(session) if session.receivers.contains(&pair.to) => {}
            Some(session) => session.receivers.push(pair.to),
            None => {
                let name = match sessions.len() {
                    0 => group.name.clone(),
                    more => format!("{}-{}", group.name, more + 1),
                };
                sessions.push(Session::new(name, pair.from, vec![pair.to]));
            }
        }
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use weir_plan::Lab;

    /// Two ways from a to d: 3 Mbit/s in 10 ms, 4 Mbit/s in 40 ms. The way to b has 10 Mbit/s.
    fn capacities(traffic: &str) -> Vec<Option<f64>> {
        let text = format!(
            "format = 1\n[run]\nduration = '4 s'\n[graph]\nrouters = ['a', 'b', 'c', 'd']\n[graph.links]\n\
             ab = {{ from = 'a', to = 'b', rate = '10 Mbit/s', delay = '5 ms' }}\n\
             bd = {{ from = 'b', to = 'd', rate = '3 Mbit/s', delay = '5 ms' }}\n\
             ac = {{ from = 'a', to = 'c', rate = '4 Mbit/s', delay = '20 ms' }}\n\
             cd = {{ from = 'c', to = 'd', rate = '9 Mbit/s', delay = '20 ms' }}\n\
             [overlay]\nnodes = ['a', 'b', 'c', 'd']\n{traffic}"
        );
        let lab = Lab::from_str(&text, "lab.toml", Path::new("."), &[]).unwrap();
        let run = &lab.runs()[0];
        by_deadline(run).into_iter().map(|rate| rate.map(|rate| rate.mbit_per_sec())).collect()
    }

    #[test]
    fn a_group_with_a_deadline_has_what_all_its_receivers_can_receive_by_it() {
        let group = |name: &str, ends: &str, overlay: &str| {
            format!(
                "[traffic.{name}]\nfrom = 'a'\n{ends}\nworkload = {{ kind = 'udp', rate = '1 Mbit/s' }}\noverlay = {overlay}\n"
            )
        };
        let traffic = [
            group("early", "to = 'd'", "{ deadline = '39 ms' }"),
            group("late", "to = 'd'", "{ deadline = '40 ms' }"),
            group("both", "multicast = ['b', 'd']", "{ deadline = '40 ms' }"),
            group("never", "multicast = ['b', 'd']", "{ deadline = '9 ms' }"),
            group("without", "to = 'd'", "{ }"),
            group("beside", "to = 'd'", "false"),
        ];
        let near = capacities(&traffic.concat());
        let near: Vec<Option<f64>> =
            near.iter().map(|rate| rate.map(|rate| (rate * 1e4).round() / 1e4)).collect();
        assert_eq!(near, [Some(3.0), Some(7.0), Some(7.0), Some(0.0), None, None]);
    }
}
