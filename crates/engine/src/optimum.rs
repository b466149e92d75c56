//! What the flows of an overlay would have at most at a time of a run, by the sum of their utilities: the network and the classes of
//! flows that [`weir_optimum`] is asked about.
//!
//! A link between two nodes carries its rate at that time, less what it loses, what depth messages take, and over SLIQ what
//! acknowledgements take. A packet takes its payload and all headers there, with the names of the nodes that it has visited on the shortest
//! way. A relayed stream is answered over the links in the other direction, one packet for two; the ranges that such an answer may name are
//! left out. Rates are of payload, as goodput is. Other traffic on the same links is left out.

use crate::overlay::{self, HEADERS, UNLIMITED, router_of};
use std::collections::VecDeque;
use weir_base::{Bytes, Rate, Span};
use weir_fabric::Change;
use weir_optimum::{
    Allocation, Class, ClassError, Forwarding, Link, Log, Network, NetworkError, Node, Utility,
    utility_optimum,
};
use weir_overlay::message::header::Header;
use weir_overlay::utility::{Config as Admit, log};
use weir_overlay::{Context, Flow, GroupId, Inner, Key, NodeId, Nodes, multicast};
use weir_plan::{Carriage, Group, Run};
use weir_station::Overlay;
use weir_transport::relay;

/// The part of a link's rate that SLIQ's acknowledgements of the other direction take: a frame of 20 bytes or more rides on a packet of
/// 1,100 where data goes both ways, and each second packet is acknowledged (docs/overlay.md).
const ACKNOWLEDGEMENTS: f64 = 0.01;
/// Payload of a packet of a workload that has no fixed length: the study's (profile of labs/overlay).
const PAYLOAD: u64 = 1024;

/// The largest distance from the optimum, as a share of all priorities, of an answer that counts as exact.
pub const EXACT: f64 = 1e-5;

/// A question about a run.
#[derive(Debug, Clone)]
pub struct Question {
    /// The time.
    pub at: Span,
    /// The nodes of the run's network, and those of its links that the overlay uses.
    pub network: Network,
    /// For each link, which link of the run it is.
    pub links: Vec<usize>,
    /// The flows that are there at that time, equal ones together.
    pub classes: Vec<Class>,
    /// The traffic group of each class.
    pub groups: Vec<usize>,
    /// How packets for several receivers are forwarded.
    pub forwarding: Forwarding,
}

/// Why a run has no optimum.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QuestionError {
    /// It has no overlay.
    #[error("the lab has no overlay")]
    NoOverlay,
    /// The network is too large.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The flows are too many.
    #[error(transparent)]
    Classes(#[from] ClassError),
}

impl Question {
    /// The question about a time of a run.
    ///
    /// # Errors
    /// There is no overlay, or it is too large.
    pub fn new(run: &Run, at: Span) -> Result<Question, QuestionError> {
        let (overlay, nodes) = overlay_of(run).ok_or(QuestionError::NoOverlay)?;
        let (network, links) = network_at(run, overlay, &nodes, at)?;
        let mut question = Question {
            at,
            network,
            links,
            classes: Vec::new(),
            groups: Vec::new(),
            forwarding: match overlay.multicast.forwarding {
                multicast::Forwarding::Coded => Forwarding::Coded,
                _ => Forwarding::Trees,
            },
        };
        for (number, group) in run.groups.iter().enumerate() {
            if let Some(carriage) = &group.overlay {
                question.add(run, overlay, &nodes, (number, group), carriage);
            }
        }
        Ok(question)
    }

    /// Whether another question has the same answer.
    pub(crate) fn is_same(&self, other: &Question) -> bool {
        self.network == other.network && self.classes == other.classes && self.forwarding == other.forwarding
    }

    /// The optimum.
    ///
    /// # Errors
    /// It is too large.
    pub fn answer(&self) -> Result<Allocation, QuestionError> {
        Ok(utility_optimum(&self.network, &self.classes, self.forwarding)?)
    }

    /// Adds a group's flows that are there.
    fn add(
        &mut self,
        run: &Run,
        overlay: &Overlay,
        nodes: &[Option<NodeId>],
        (number, group): (usize, &Group),
        carriage: &Carriage,
    ) {
        let is_there = |flow: &weir_plan::Flow| {
            flow.group == number && flow.start <= self.at && flow.stop.is_none_or(|stop| self.at < stop)
        };
        let first = self.classes.len();
        for (flow, told) in run.flows.iter().enumerate().filter(|(_, flow)| is_there(flow)) {
            let (from, to) = (run.pair(flow).from, run.pair(flow).to);
            let own = &mut self.classes[first..];
            match told.copy_of {
                // The receivers of one flow follow it, and each flow of the group has the same.
                Some(_) => {
                    let group = own.iter_mut().find(|class| class.source == from);
                    if let Some(class) = group.filter(|class| !class.receivers.contains(&to)) {
                        class.receivers.push(to);
                    }
                }
                None => {
                    let is_equal = |class: &&mut Class| class.source == from && class.receivers.contains(&to);
                    match own.iter_mut().find(is_equal) {
                        Some(class) => class.count += 1,
                        None => {
                            let name = match own.len() {
                                0 => group.name.clone(),
                                more => format!("{}-{}", group.name, more + 1),
                            };
                            let utility = utility(group, carriage);
                            let (receivers, loads) = (vec![to], Vec::new());
                            let deadline = carriage.deadline;
                            let answers = 0.0;
                            let class = Class {
                                name,
                                source: from,
                                receivers,
                                count: 1,
                                deadline,
                                utility,
                                loads,
                                answers,
                            };
                            self.classes.push(class);
                            self.groups.push(number);
                        }
                    }
                }
            }
        }
        let packets = Packets::of(group);
        for class in first..self.classes.len() {
            let loads = self.loads(run, overlay, nodes, (group, &packets), &self.classes[class]);
            // Answers have the headers of packets, and as many bytes of their own in place of the payload.
            let headers = loads.iter().copied().fold(1.0, f64::max) - 1.0;
            self.classes[class].answers = packets.answers.map_or(0.0, |(bytes, every)| {
                let around = headers * packets.payload - packets.header;
                (around + bytes) / (every * packets.payload)
            });
            self.classes[class].loads = loads;
        }
    }

    /// For each link, the bits that a bit of payload takes.
    fn loads(
        &self,
        run: &Run,
        overlay: &Overlay,
        nodes: &[Option<NodeId>],
        (group, packets): (&Group, &Packets),
        class: &Class,
    ) -> Vec<f64> {
        let node_of = |host: usize| nodes[router_of(run, host)?];
        let receivers: Nodes = class.receivers.iter().filter_map(|&host| node_of(host)).collect();
        let to = match group.overlay.as_ref().and_then(|carriage| carriage.multicast) {
            Some(_) => Key::Group(GroupId(0)),
            None => receivers.first().map_or(Key::Group(GroupId(0)), Key::Node),
        };
        let context = Context { to, receivers, is_sensitive: false, inner: Inner::default() };
        let visited = visited(&self.network, nodes, class.source);
        let mut bytes = Vec::new();
        let load = |(&link, own): (&usize, &Link)| {
            let (Some(source), Some(visited)) = (nodes[own.from], visited[own.from]) else { return 1.0 };
            if nodes[own.to].is_none() {
                return 1.0;
            }
            let header = Header {
                flow: Flow { source, generation: 0, number: 0 },
                sequence: 0,
                ecn: 0,
                hops: 0,
                checksum: 0,
                time_to_go: class.deadline,
                visited,
                receivers,
            };
            bytes.clear();
            header.encode(&context, false, &mut bytes);
            let around = overlay.cat.headers(class.deadline.is_some()) + run.network.links[link].overhead;
            let whole = packets.payload + packets.header + bytes.len() as f64 + around.get() as f64;
            whole / packets.payload
        };
        self.links.iter().zip(self.network.links()).map(load).collect()
    }
}

/// The parameters of a run's overlay, and the overlay's number of each node of the network.
fn overlay_of(run: &Run) -> Option<(&Overlay, Vec<Option<NodeId>>)> {
    let mut nodes = vec![None; run.network.nodes.len()];
    let mut found = None;
    for (at, overlay, id) in overlay::nodes(run) {
        found = found.or(Some(overlay));
        nodes[at] = Some(id);
    }
    Some((found?, nodes))
}

/// The links of the overlay at a time: those between its nodes, and those to and from the hosts behind them.
fn network_at(
    run: &Run,
    overlay: &Overlay,
    numbers: &[Option<NodeId>],
    at: Span,
) -> Result<(Network, Vec<usize>), NetworkError> {
    let node = |(node, number): (&weir_plan::Node, &Option<NodeId>)| Node {
        name: node.name.clone(),
        forwards: number.is_some(),
    };
    let nodes = run.network.nodes.iter().zip(numbers).map(node).collect();
    let signalling = overlay.depth_share + if overlay.cat.acknowledges() { ACKNOWLEDGEMENTS } else { 0.0 };
    let (mut links, mut indices) = (Vec::new(), Vec::new());
    for (index, link) in run.network.links.iter().enumerate() {
        let (from, to) = (numbers[link.from], numbers[link.to]);
        let is_host = |node: usize| run.network.nodes[node].host;
        if from.is_some() && to.is_some() {
            let (rate, delay) = link_at(link, at);
            let rate = rate.map(|rate| rate.scale(1.0 - signalling));
            links.push(Link { from: link.from, to: link.to, rate, delay });
        } else if from.is_some() && is_host(link.to) || to.is_some() && is_host(link.from) {
            let (rate, delay) = link_at(link, at);
            links.push(Link { from: link.from, to: link.to, rate, delay });
        } else {
            continue;
        }
        indices.push(index);
    }
    Ok((Network::new(nodes, links)?, indices))
}

/// What of a link's rate arrives at a time of the run, and its delay then.
fn link_at(link: &weir_plan::Link, at: Span) -> (Option<Rate>, Span) {
    let (mut rate, mut delay, mut loss) = (link.rate, link.delay, link.loss);
    for Change { rate: new_rate, delay: new_delay, loss: new_loss, .. } in
        link.schedule.iter().filter(|change| change.at <= at)
    {
        rate = new_rate.or(rate);
        delay = new_delay.unwrap_or(delay);
        loss = new_loss.unwrap_or(loss);
    }
    let is_out = link.outages.iter().any(|out| out.at <= at && at < out.at + out.length);
    let loss = if is_out { 1.0 } else { loss.mean() };
    if loss >= 1.0 {
        return (Some(Rate::default()), delay);
    }
    (rate.map(|rate| rate.scale(1.0 - loss)), delay)
}

/// For each node, the nodes of the overlay on the way of the fewest links from a host to there, both included.
fn visited(network: &Network, nodes: &[Option<NodeId>], source: usize) -> Vec<Option<Nodes>> {
    let mut visited = vec![None; nodes.len()];
    visited[source] = Some(Nodes::EMPTY);
    let mut queue = VecDeque::from([(source, Nodes::EMPTY)]);
    while let Some((node, before)) = queue.pop_front() {
        for link in network.links().iter().filter(|link| link.from == node) {
            if let (None, Some(id)) = (visited[link.to], nodes[link.to]) {
                visited[link.to] = Some(before.with(id));
                queue.push_back((link.to, before.with(id)));
            }
        }
    }
    visited
}

/// What a group's packets have, in bytes.
struct Packets {
    payload: f64,
    /// Headers within the overlay's packet, before the payload.
    header: f64,
    /// An answer's length without the overlay's headers, and packets for which there is one.
    answers: Option<(f64, f64)>,
}

impl Packets {
    fn of(group: &Group) -> Packets {
        if let Some(weir_transport::Config::Relay(_)) = group.transport {
            let relay::Packets { data, header, answer, every } = relay::packets();
            let answers = Some((answer as f64, every as f64));
            return Packets { payload: data as f64, header: header as f64, answers };
        }
        let bytes = |(length, _): (Bytes, _)| length.saturating_sub(HEADERS).get().max(1);
        let payload = group.workload.datagram().map_or(PAYLOAD, bytes);
        Packets { payload: payload as f64, header: 0.0, answers: None }
    }
}

/// The utility of a group's flows, whose rates are of payload.
fn utility(group: &Group, carriage: &Carriage) -> Utility {
    let offered = overlay::offered(group);
    let log = |own: log::Config| {
        let cap = offered.map_or(own.cap, |offered| offered.min(own.cap));
        Log { priority: own.priority, shape: own.shape, cap }
    };
    match &carriage.admit {
        Admit::Log(own) => Utility::Log(log(*own)),
        Admit::Strap(own) => match own.rate.or(offered) {
            Some(rate) => Utility::Strap { priority: own.priority, rate },
            None => {
                let (priority, cap) = (own.priority, UNLIMITED);
                Utility::Log(log(log::Config { priority, cap, ..log::Config::default() }))
            }
        },
        Admit::Trap(own) => Utility::Strap { priority: own.priority, rate: own.rate },
        Admit::Flog(own) => {
            let log = log(own.log());
            match own.floor.min(log.cap) {
                floor if floor == Rate::default() => Utility::Log(log),
                floor => Utility::Flog { log, floor },
            }
        }
        // Its LOG priority follows from what is left of it, which no single time knows: 1 is the least.
        Admit::File(own) => Utility::Log(log(own.log(1.0))),
    }
}
