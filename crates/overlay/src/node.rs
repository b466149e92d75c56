//! A node: packets and messages with their times in, decisions out, and the time of the next one. It joins the other modules.
//!
//! Source: digest A 1 (loop of the forwarder), A 6.1 (timing). The driver gives it links ([`Node::connect`]), hands it what comes from
//! each, calls [`Node::on_timer`] at [`Node::next_time`], and carries out what it says to an [`Output`]. `B` is a packet's body.

mod capacity;
mod clean;
mod counts;
mod depths;
mod gate;
mod port;
mod receive;
mod reports;
mod serve;
mod signal;
mod state;

pub use counts::{BinBytes, Counters, Sent};
pub use receive::Admitted;

use gate::Gate;
use port::Port;

use crate::advertised::Advertised;
use crate::cat::Cat;
use crate::context::{Context, Contexts, Inner};
use crate::forward::{self, Forwarder, Reason};
use crate::gradient::Gradients;
use crate::linkstate::{Adjacency, Database, Neighbour, Routes};
use crate::multicast::{self, Forwarding, tree::Tree};
use crate::nodes::{NodeId, Nodes};
use crate::packet::{Body, Flow, GroupId, Key, Packet};
use crate::queue::{Class, Destination, Limits, Queues};
use crate::zombie::Seen;
use crate::{depth, starvation, zombie};
use std::collections::BTreeMap;
use weir_base::{Bytes, ParameterError, Span, Time};

/// The most links of a node.
pub const PORTS: usize = 128;

/// Parameters of a node. All nodes of a network should have the same.
#[derive(Debug, Clone)]
pub struct Config {
    /// K in bits squared per second; `None` derives it from the capacities that are flooded.
    pub k: Option<f64>,
    /// The queue-depth manager.
    pub depth: depth::Config,
    /// How virtual depth is made.
    pub zombies: zombie::Config,
    /// Whether ASAP prevents starvation.
    pub asap: bool,
    /// Of gradients.
    pub gradients: Gradients,
    /// Of groups.
    pub multicast: multicast::Config,
    /// Of queues.
    pub limits: Limits,
    /// The part of a link's capacity that depth messages take; the study has 0.01.
    pub depth_share: f64,
    /// Whether queue delays count in route delays.
    pub queue_delays: bool,
    /// The time whose packets a host may hand over at once. The price is the least depth in that time, so that a burst is not taken for a
    /// queue; zero where each packet goes by itself.
    pub burst: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            k: None,
            depth: depth::Config::Exact(Default::default()),
            zombies: zombie::Config::ZlrImproved(Default::default()),
            asap: true,
            gradients: Gradients::default(),
            multicast: multicast::Config::default(),
            limits: Limits::default(),
            depth_share: 0.01,
            queue_delays: false,
            burst: Span::ZERO,
        }
    }
}

impl Config {
    /// The first fault.
    pub fn fault(&self) -> Option<ParameterError> {
        let fault = |key, message: &str, help: &str| Some(ParameterError::new(key, message, help));
        if self.k.is_some_and(|k| !(k.is_finite() && k > 0.0)) {
            return fault("k", "K must be positive", "write for example 1e12, or leave it out to derive it");
        }
        if self.asap && self.depth.excludes_asap() {
            return fault(
                "asap",
                "`nplb` and ASAP exclude each other",
                "write `asap = false`, or another depth",
            );
        }
        if let Some(key) = self.depth.fault() {
            return fault(key, "the value is outside its range", "see the parameter's description");
        }
        if let Some(key) = self.zombies.fault() {
            return fault(key, "the value is outside its range", "see the parameter's description");
        }
        if NodeId::new(self.multicast.rendezvous).is_none() {
            return fault("rendezvous", "there is no such node", "write a number from 0 to 127");
        }
        if !(self.depth_share > 0.0 && self.depth_share <= 1.0) {
            return fault("depth_share", "the share must be above 0 and at most 1", "write for example 0.01");
        }
        None
    }
}

/// Why a packet goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// It can no longer be in time.
    Expired,
    /// A queue is full.
    Overflow,
    /// It has passed too many links.
    Hops,
    /// It has a deadline and was here before.
    Visited,
    /// It has no receiver.
    NoReceiver,
    /// Its flow's context is not known, or there are too many.
    NoContext,
    /// It is no packet of the overlay.
    Malformed,
}

/// What a datagram of messages is worth while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signal {
    /// Depths and signs of life: the next one replaces it.
    #[default]
    Depths,
    /// It says something that will not be said again soon.
    Control,
}

/// Carries out what a node decides.
pub trait Output<B> {
    /// A packet goes over a link, behind this header.
    fn send(&mut self, port: usize, header: &[u8], packet: Packet<B>, why: Reason);
    /// A datagram of messages goes over a link.
    fn signal(&mut self, port: usize, datagram: &[u8], what: Signal);
    /// A packet has reached its receiver here; `context` has its inner headers.
    fn deliver(&mut self, packet: Packet<B>, context: &Context);
    /// A packet goes no further.
    fn discard(&mut self, body: B, why: Discard);
}

/// Zombies that count virtual depth, of other and of sensitive traffic.
const VIRTUAL: [Class; 2] = [Class::Virtual, Class::VirtualSensitive];
/// Zombies against starvation, of other and of sensitive traffic.
const STARVED: [Class; 2] = [Class::Starved, Class::StarvedSensitive];

/// What a node keeps for a destination of a bin. Pairs are of other and of sensitive traffic.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    zombies: [zombie::State; 2],
    starvation: starvation::State,
    depth: [depth::State; 2],
    /// Mean time in the queue, in seconds.
    queue_delay: f64,
}

/// A flow that enters the network at this node.
#[derive(Debug)]
struct LocalFlow {
    to: Key,
    interested: Option<Nodes>,
    is_sensitive: bool,
    inner: Inner,
    flow: Option<Flow>,
    receivers: Nodes,
    sequence: u32,
    heard: reports::Heard,
}

/// A flow that enters here, as its application names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowAt(pub usize);

/// A node.
#[derive(Debug)]
pub struct Node<B, C> {
    id: NodeId,
    epoch: u32,
    config: Config,
    ports: Vec<Port<C>>,
    gates: Vec<Gate>,
    /// What the neighbour at each link has advertised.
    advertised: Vec<Advertised>,
    /// The neighbours as the forwarder sees them, kept for its space.
    view: Vec<forward::Port>,
    queues: Queues<B, Watch>,
    forwarder: Forwarder,
    tree: Option<Tree<B>>,
    database: Database,
    routes: Routes,
    neighbours: Vec<Neighbour>,
    contexts: Contexts,
    flows: Vec<LocalFlow>,
    /// Those of them that are closed.
    closed: Vec<FlowAt>,
    counted: reports::Counted,
    /// The flows that enter here by the bits of their present names.
    named: BTreeMap<u32, FlowAt>,
    next_flow: u16,
    joined: Vec<GroupId>,
    timers: signal::Timers,
    /// Before this time [`Node::on_timer`] has nothing to do but to send what can be sent; a time that is past says nothing.
    chores_at: Time,
    tick_at: Time,
    slot_at: Time,
    k: Option<f64>,
    is_drained: bool,
    scratch: signal::Scratch,
    counters: Counters,
}

impl<B: Body, C: Cat> Node<B, C> {
    /// A node with this number. Its boot epoch must be beyond that of its last start, as a clock in seconds is.
    ///
    /// # Errors
    /// The first fault of the configuration.
    pub fn new(id: NodeId, epoch: u32, config: Config) -> Result<Node<B, C>, ParameterError> {
        if let Some(fault) = config.fault() {
            return Err(fault);
        }
        let forwarder = Forwarder::new(forward::Config {
            gradients: config.gradients,
            multicast: config.multicast.clone(),
            zombies_first: config.zombies.is_improved(),
        });
        let is_tree = config.multicast.forwarding == Forwarding::Tree;
        let root = NodeId::new(config.multicast.rendezvous).filter(|_| is_tree);
        Ok(Node {
            id,
            epoch,
            ports: Vec::new(),
            gates: Vec::new(),
            advertised: Vec::new(),
            view: Vec::new(),
            queues: Queues::new(config.limits),
            forwarder,
            tree: root.map(|root| Tree::new(root, config.multicast.tree_limit)),
            database: Database::default(),
            routes: Routes::default(),
            neighbours: Vec::new(),
            contexts: Contexts::default(),
            flows: Vec::new(),
            closed: Vec::new(),
            counted: reports::Counted::default(),
            named: BTreeMap::new(),
            next_flow: 0,
            joined: Vec::new(),
            timers: signal::Timers::default(),
            chores_at: Time::ZERO,
            tick_at: Time::ZERO,
            slot_at: Time::ZERO,
            k: None,
            is_drained: false,
            scratch: signal::Scratch::default(),
            counters: Counters::default(),
            config,
        })
    }

    /// Its number.
    pub fn id(&self) -> NodeId {
        self.id
    }
    /// Packets that it holds.
    pub fn held(&self) -> usize {
        self.queues.packets() as usize + self.tree.as_ref().map_or(0, Tree::packets)
    }

    /// Bodies that nothing holds, whose space copies use.
    pub fn spares(&mut self) -> &mut Vec<B> {
        self.queues.spares()
    }

    /// Gives it a link; the result is the link's number. `None` if it has [`PORTS`] already.
    pub fn connect(&mut self, cat: C) -> Option<usize> {
        if self.ports.len() >= PORTS {
            return None;
        }
        let announced = (cat.delay(), cat.capacity());
        self.advertised.push(Advertised::default());
        self.gates.push(Gate::new());
        self.chores_at = Time::ZERO;
        self.ports.push(Port {
            cat,
            sent: Sent::default(),
            adjacency: Adjacency::default(),
            expected: None,
            announced,
            depths: depths::DepthsOut::default(),
            told: capacity::Sent::default(),
            flood_links: Nodes::EMPTY,
            flood_groups: Nodes::EMPTY,
            replies: Vec::new(),
        });
        Some(self.ports.len() - 1)
    }

    /// How many links it has.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }
    /// The neighbour at a link, if it is up.
    pub fn neighbour(&self, port: usize) -> Option<NodeId> {
        self.ports.get(port)?.adjacency.up()
    }
    /// What the neighbour at a link has told of its depths.
    pub fn advertised_by(&self, port: usize) -> Option<&Advertised> {
        self.advertised.get(port)
    }
    /// The node at the other end of a link is this one: one that says another name is no neighbour.
    pub fn expect(&mut self, port: usize, neighbour: NodeId) {
        if let Some(port) = self.ports.get_mut(port) {
            port.expected = Some(neighbour);
        }
    }
    /// The nodes that it can reach, itself included.
    pub fn reachable(&self) -> Nodes {
        self.routes.reachable()
    }
    /// The bound of the delay to a node.
    pub fn route_delay(&self, to: NodeId) -> Option<Span> {
        self.routes.best_delay(to)
    }
    /// The bound of the delay to a node over one link.
    pub fn delay_via(&self, port: usize, to: NodeId) -> Option<Span> {
        self.routes.delay_via(port, to)
    }
    /// The members of a group that it knows.
    pub fn members(&self, group: GroupId) -> Nodes {
        self.database.members(group)
    }

    /// Its applications want the group's packets.
    pub fn join(&mut self, group: GroupId) {
        if let Err(at) = self.joined.binary_search(&group)
            && self.joined.len() < crate::message::MOST_JOINED
        {
            self.joined.insert(at, group);
            self.timers.groups_changed();
            self.chores_at = Time::ZERO;
        }
    }
    /// The groups that hosts here have joined, in order.
    pub fn joined(&self) -> &[GroupId] {
        &self.joined
    }
    /// They want them no more.
    pub fn leave(&mut self, group: GroupId) {
        if let Ok(at) = self.joined.binary_search(&group) {
            self.joined.remove(at);
            self.timers.groups_changed();
            self.chores_at = Time::ZERO;
        }
    }

    /// A flow will enter here. To a group, the sender may name the nodes that are interested; packets go to those of them that are
    /// members.
    pub fn open_flow(
        &mut self,
        to: Key,
        interested: Option<Nodes>,
        is_sensitive: bool,
        inner: Inner,
    ) -> FlowAt {
        let flow = LocalFlow {
            to,
            interested,
            is_sensitive,
            inner,
            flow: None,
            receivers: Nodes::EMPTY,
            sequence: 0,
            heard: reports::Heard::new(),
        };
        match self.closed.pop() {
            Some(at) => {
                self.flows[at.0] = flow;
                at
            }
            None => {
                self.flows.push(flow);
                FlowAt(self.flows.len() - 1)
            }
        }
    }

    /// No packet of the flow will be admitted any more. Another flow may have its name afterwards.
    pub fn close_flow(&mut self, at: FlowAt) {
        if let Some(flow) = self.flows.get_mut(at.0) {
            if let Some(name) = flow.flow.take() {
                self.named.remove(&name.bits());
            }
            flow.interested = Some(Nodes::EMPTY);
            self.closed.push(at);
        }
    }

    /// K in bits squared per second; `None` before any capacity is known.
    pub fn k(&self) -> Option<f64> {
        self.config.k.or_else(|| {
            let leader = self.routes.reachable().with(self.id).first()?;
            let flooded = self.database.links(leader).and_then(|links| links.k);
            flooded.map(|exponent| libm::exp2(exponent.into())).or(self.k)
        })
    }

    /// From now on K has this value, in bits squared per second.
    pub fn set_k(&mut self, k: f64) {
        self.config.k = Some(k);
    }

    /// From now on it forwards nothing of other nodes, or does again. Its own flows, and those to it, go on; what it holds leaves.
    pub fn set_drained(&mut self, is_drained: bool) {
        self.is_drained = is_drained;
        self.timers.announce_soon();
        self.chores_at = Time::ZERO;
    }

    /// Whether it forwards nothing of other nodes.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// The time whose packets a host may hand over at once.
    pub(crate) fn burst(&self) -> Span {
        self.config.burst
    }

    /// The depth that admits packets of flows with these receivers, of a group those that are meant. `None` while none of them can be reached,
    /// when nothing should be admitted.
    pub fn price_of(&self, to: Key, interested: Option<Nodes>) -> Option<Bytes> {
        let receivers = self.receivers_of(to, interested);
        if receivers.is_empty() {
            return None;
        }
        let Some(at) = self.queues.find(to) else { return Some(Bytes::ZERO) };
        let destinations = &self.queues.bin(at).destinations;
        let depths =
            receivers.iter().filter_map(|node| destinations.get(node)).map(|one| self.advertised(one, false));
        Some(Bytes::new(self.config.multicast.admission.price(depths)))
    }

    /// The receivers of such flows that can be reached now.
    pub fn receivers_of(&self, to: Key, interested: Option<Nodes>) -> Nodes {
        let all = match to {
            Key::Node(node) => Nodes::of(node).without(self.id),
            Key::Group(group) => multicast::receivers(self.database.members(group), self.id, interested),
        };
        all.and(self.routes.reachable())
    }

    /// Bytes of a destination as neighbours and admission see them.
    fn advertised(&self, destination: &Destination<Watch>, sensitive: bool) -> u64 {
        let exact = exact(&self.config, destination, sensitive);
        destination.state.depth[usize::from(sensitive)].advertised(&self.config.depth, exact)
    }
}

/// What virtual depth sees of a destination: of sensitive traffic, or of the other alone (digest A 6.6).
fn seen<S>(destination: &Destination<S>, is_sensitive: bool) -> Seen {
    if is_sensitive {
        return Seen { real: destination.real(true), zombies: destination.zombies(true) };
    }
    let zombies = destination.zombies(false) - destination.zombies(true);
    Seen { real: destination.bytes(Class::Normal), zombies }
}

/// The depth of a destination before its manager: packets by their weight, and zombies.
#[inline]
fn exact(config: &Config, destination: &Destination<Watch>, sensitive: bool) -> u64 {
    let weight = config.zombies.real_weight();
    if weight == 1.0 && !sensitive {
        return destination.total();
    }
    (destination.real(sensitive) as f64 * weight) as u64 + destination.zombies(sensitive)
}

/// The depth that gradients use.
fn forwarded(config: &Config, destination: &Destination<Watch>, sensitive: bool) -> u64 {
    let exact = exact(config, destination, sensitive);
    destination.state.depth[usize::from(sensitive)].forwarded(&config.depth, exact)
}

#[cfg(test)]
mod tests;
