//! A node of the backpressure overlay ([`weir_overlay`]) at a router: it admits the packets of hosts behind it, carries them to other
//! nodes inside packets of its own, and gives them back to the hosts that they are for. Packets of no flow of the overlay pass.
//!
//! A lab places the nodes by `[overlay]`. Links between nodes are `wire`s, whose rate, delay and loss are known at once, so that a link
//! that loses every packet takes none; or SLIQ connections ([`hop`]), which measure the path.

mod carried;
mod cat;
mod connected;
mod flows;
mod hop;
mod paths;
mod state;

use crate::{Parameters, StationContext};
use carried::{Carried, Out};
use cat::Carrier;
use flows::plans;
use hop::Hop;
use paths::Paths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_base::{Bytes, FlowId, ParameterError, Rate, Span, Time};
use weir_fabric::{Decided, Net, Present, Station, Wire};
use weir_overlay::edge::{self, Edge};
use weir_overlay::gradient::Gradients;
use weir_overlay::message::header::{LONGEST, is_packet};
use weir_overlay::queue::Limits;
use weir_overlay::{Admitted, GroupId, Node, NodeId, depth, multicast, zombie};

/// Headers around each datagram between nodes: IPv4 and UDP.
const HEADERS: Bytes = Bytes::new(28);
/// The rate that stands for a link without limit.
const UNLIMITED: Rate = Rate::from_mbit_per_sec(100_000);
/// Packets whose memory a node has for copies: as many as one call makes.
const SPARES: usize = 16;
/// The boot epoch of a node: it starts once in a run.
const EPOCH: u32 = 1;

/// Parameters of all nodes of an overlay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// K in bits squared per second: a flow of priority p is admitted at K p over the depth. By default derived from the links.
    pub k: Option<f64>,
    /// How virtual depth is made.
    pub zombies: zombie::Config,
    /// Which depth is advertised and compared.
    pub depth: depth::Config,
    /// What carries packets between neighbours.
    pub cat: cat::Config,
    /// Whether starved destinations gain virtual depth (ASAP). Not beside the depth `nplb`.
    pub asap: bool,
    /// How groups are forwarded.
    pub multicast: multicast::Config,
    /// The part of each link's capacity that messages of depth take: above 0, at most 1.
    pub depth_share: f64,
    /// A difference of depth up to this moves nothing.
    pub hysteresis: Bytes,
    /// Depth that each hop to the destination counts.
    pub hop_bias: Bytes,
    /// Whether times in queues count in the delays of routes.
    pub queue_delays: bool,
    /// Whether the nodes where flows enter plan which of them are on; by default those do where a flow may be refused.
    pub planner: Option<bool>,
    /// Whether nodes record each class, bin and neighbour, and the links that each flow's packets leave over, besides sums. A run's page
    /// then shows bins and paths.
    pub details: bool,
}

impl Default for Config {
    fn default() -> Config {
        let weir_overlay::Config { k, zombies, depth, asap, multicast, depth_share, gradients, .. } =
            weir_overlay::Config::default();
        let Gradients { hysteresis, hop_bias } = gradients;
        let (cat, queue_delays, planner, details) = (cat::Config::default(), false, None, false);
        Config {
            k,
            zombies,
            depth,
            cat,
            asap,
            multicast,
            depth_share,
            hysteresis,
            hop_bias,
            queue_delays,
            planner,
            details,
        }
    }
}

impl Config {
    /// The congestion controllers of its connections to other nodes.
    pub(crate) fn controllers(&self) -> &[weir_control::Config] {
        match &self.cat {
            cat::Config::Sliq(config) => &config.cc,
            cat::Config::Wire(_) => &[],
        }
    }

    fn node(&self) -> weir_overlay::Config {
        weir_overlay::Config {
            k: self.k,
            depth: self.depth.clone(),
            zombies: self.zombies.clone(),
            asap: self.asap,
            gradients: Gradients { hysteresis: self.hysteresis, hop_bias: self.hop_bias },
            multicast: self.multicast.clone(),
            limits: Limits::default(),
            depth_share: self.depth_share,
            queue_delays: self.queue_delays,
            // A simulated host hands over each packet by itself.
            burst: Span::ZERO,
        }
    }
}

impl Parameters for Config {
    fn fault(&self, _: bool) -> Option<ParameterError> {
        if let cat::Config::Sliq(config) = &self.cat
            && let Some(key) = config.fault()
        {
            let (message, help) = match key {
                "cc" => ("`cc` names no controller, or more than two", "write cc = [\"copa\"]"),
                _ => ("`sensitive` with arq-fec needs a deadline", "write deadline = \"50 ms\" beside it"),
            };
            return Some(ParameterError::new("cat", message, help));
        }
        self.node().fault()
    }
}

/// What is around a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// Its number.
    pub id: NodeId,
    /// The run's seed: both ends of a connection derive the same number from it.
    pub seed: u64,
    /// Its links to other nodes.
    pub neighbours: Vec<Neighbour>,
    /// The groups that hosts behind it have joined.
    pub groups: Vec<GroupId>,
    /// The flows that enter here, by flow number.
    pub entering: Vec<Entering>,
    /// The flows that leave here, by the port of their source.
    pub leaving: Vec<Leaving>,
}

/// A link to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The link there.
    pub link: usize,
    /// The link back.
    pub back: usize,
    /// Where the other node stands.
    pub at: usize,
    /// The other node's number.
    pub id: NodeId,
    /// What each packet takes on the link beyond its IP length.
    pub overhead: Bytes,
    /// The largest IP packet that both links carry.
    pub mtu: Bytes,
}

/// A flow that enters the overlay.
#[derive(Debug, Clone, PartialEq)]
pub struct Entering {
    /// Its number.
    pub flow: u32,
    /// The flows that count its packets, one for each receiver; its own is the first.
    pub counts: Vec<u32>,
    /// What the node is told of it.
    pub entry: edge::Entering,
}

/// A flow that leaves the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// The port of its packets' source.
    pub port: u16,
    /// The flow that counts them here.
    pub flow: u32,
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// The time within which they must arrive.
    pub deadline: Option<Span>,
    /// Whether they only answer a flow in the other direction: they do not count as its packets.
    pub is_answer: bool,
}

/// The state of a node.
pub(crate) struct OverlayNode<P> {
    node: Option<Node<Carried<P>, Carrier>>,
    neighbours: Vec<Neighbour>,
    /// What each link was like when it was last looked at, and after how many changes of links that was.
    seen: Vec<Option<Present>>,
    seen_after: Option<u64>,
    /// The connections to the neighbours; none where links are wires.
    hops: Vec<Hop>,
    edge: Edge,
    /// Of each flow of the edge: its number, and the flows that count its packets.
    entering: Vec<(u32, Vec<u32>)>,
    leaving: Vec<Leaving>,
    /// When the node has something to do, and when the station has.
    node_due: Time,
    due: Time,
    now: Time,
    expired: u64,
    /// Whether each class, bin and neighbour is recorded.
    details: bool,
    /// The links that flows leave over; empty without `details`.
    paths: Paths,
    /// The front of a packet's payload, kept for its space.
    head: Vec<u8>,
}

impl<P> fmt::Debug for OverlayNode<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlayNode").field("node", &self.node).field("edge", &self.edge).finish()
    }
}

impl<P: Wire> OverlayNode<P> {
    pub(crate) fn new(config: &Config, place: &StationContext) -> OverlayNode<P> {
        let seat = place.overlay.as_ref();
        // A configuration at fault is refused before this, by `Config::fault`.
        let mut node = seat.and_then(|seat| Node::new(seat.id, EPOCH, config.node()).ok());
        let mut station = OverlayNode {
            node: None,
            neighbours: seat.map_or_else(Vec::new, |seat| seat.neighbours.clone()),
            seen: Vec::new(),
            seen_after: None,
            hops: Vec::new(),
            edge: Edge::new(seat.is_some_and(|seat| config.planner.unwrap_or_else(|| plans(&seat.entering)))),
            entering: Vec::new(),
            leaving: seat.map_or_else(Vec::new, |seat| seat.leaving.clone()),
            node_due: Time::ZERO,
            due: Time::ZERO,
            now: Time::ZERO,
            expired: 0,
            details: config.details,
            paths: Paths::default(),
            head: Vec::new(),
        };
        if let (Some(node), Some(seat)) = (&mut node, seat) {
            for neighbour in &seat.neighbours {
                node.connect(Carrier::new(&config.cat, UNLIMITED, neighbour.overhead));
            }
            if let cat::Config::Sliq(config) = &config.cat {
                let hop = |neighbour| Hop::new(config, neighbour, seat.seed);
                station.hops = seat.neighbours.iter().map(hop).collect();
            }
            seat.groups.iter().for_each(|group| node.join(*group));
            for Entering { flow, counts, entry } in &seat.entering {
                station.edge.open(entry, seat.seed, node);
                station.entering.push((*flow, counts.clone()));
            }
        }
        station.seen = vec![None; station.neighbours.len()];
        station.node = node;
        station
    }

    /// Calls the node, which has been handed so many packets, and carries out what it says. Connections that have sent may take more.
    fn call(
        &mut self,
        taken: u64,
        net: &mut Net<'_, P>,
        act: impl FnOnce(&mut Node<Carried<P>, Carrier>, Time, &mut Out<'_, '_, P>),
    ) {
        self.call_once(taken, net, act);
        while self.flush(net) {
            self.call_once(0, net, |node, now, out| node.refill(now, out));
        }
        let Some(node) = &self.node else { return };
        self.node_due = node.next_time(self.now);
        self.due = self.node_due.min(self.edge.next_time()).min(self.hops_due());
    }

    fn call_once(
        &mut self,
        taken: u64,
        net: &mut Net<'_, P>,
        act: impl FnOnce(&mut Node<Carried<P>, Carrier>, Time, &mut Out<'_, '_, P>),
    ) {
        let now = net.now();
        self.now = now;
        let Some(node) = &mut self.node else { return };
        while node.spares().len() < SPARES
            && let Some(spare) = net.spare()
        {
            node.spares().push(Carried::new(spare, 0));
        }
        let before = node.held() as u64 + taken;
        let paths = self.details.then_some(&mut self.paths);
        let mut out = Out::new(net, &self.neighbours, &self.leaving, &mut self.hops, paths);
        act(node, now, &mut out);
        let Out { gone, expired, .. } = out;
        self.expired += expired;
        self.paths.name(|flow| node.inner(flow).map(|inner| inner.source_port));
        // What a node holds or has let go beyond what it had are copies for receivers that have parted.
        let after = node.held() as u64 + gone;
        debug_assert!(after >= before, "a packet has gone without a word");
        net.copied(after.saturating_sub(before));
    }

    /// A host's packet of a flow that enters here.
    fn enter(&mut self, at: usize, mut packet: P, net: &mut Net<'_, P>) {
        let Some((head, zeros)) = packet.payload() else { return net.forward(packet) };
        let bytes = head.len() as u32 + zeros;
        let Some(node) = &self.node else { return net.forward(packet) };
        let Some(entry) = self.edge.entry(at) else { return net.forward(packet) };
        net.take_in(&mut packet, self.entering[at].1.iter().copied());
        let (flow, admitted) = (entry.at, Admitted { ecn: packet.ecn() as u8, ..entry.admitted });
        self.edge.has_sent(at, bytes, node, net.now());
        let carried = Carried::new(packet, bytes);
        self.call(1, net, |node, now, out| node.admit(flow, admitted, carried, now, out));
    }

    /// A packet from another node.
    fn receive(&mut self, packet: P, from: Option<usize>, net: &mut Net<'_, P>) {
        let port = from.and_then(|from| self.neighbours.iter().position(|neighbour| neighbour.back == from));
        let (Some(port), Some((payload, zeros))) = (port, packet.payload()) else {
            return net.discard(packet);
        };
        if let Some(hop) = self.hops.get_mut(port) {
            hop.receive(payload, zeros, packet.ecn(), net.now());
            net.discard(packet);
            return self.hear(port, net);
        }
        let bytes = payload.len() as u32 + zeros;
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        if payload.first().is_some_and(|first| is_packet(*first)) {
            head.extend_from_slice(&payload[..payload.len().min(LONGEST)]);
            let carried = Carried::new(packet, bytes);
            self.call(1, net, |node, now, out| node.packet(port, &head, carried, now, out));
        } else {
            head.extend_from_slice(payload);
            net.discard(packet);
            self.call(0, net, |node, now, out| node.message(port, &head, now, out));
        }
        self.head = head;
    }

    /// Tells the carriers what has become of their links. Returns whether one has changed.
    fn look_at_links(&mut self, net: &Net<'_, P>) -> bool {
        if self.seen_after.replace(net.changes()) == Some(net.changes()) {
            return false;
        }
        let Some(node) = self.node.as_mut().filter(|_| self.hops.is_empty()) else { return false };
        let mut has_changed = false;
        for (port, neighbour) in self.neighbours.iter().enumerate() {
            let present = net.present(neighbour.link);
            if self.seen[port] == Some(present) {
                continue;
            }
            self.seen[port] = Some(present);
            has_changed = true;
            let Present { rate, delay, loss } = present;
            let rate = if loss >= 1.0 { Rate::from_bits_per_sec(0) } else { rate.unwrap_or(UNLIMITED) };
            if let Some(Carrier::Wire(wire)) = node.cat_mut(port) {
                wire.change(rate, delay, loss, net.now());
            }
        }
        has_changed
    }
}

impl<P: Wire> Station<P> for OverlayNode<P> {
    fn packet(&mut self, packet: P, from: Option<usize>, net: &mut Net<'_, P>) {
        let FlowId(flow) = packet.flow();
        if packet.destination() == net.node() {
            self.receive(packet, from, net);
        } else if let Some(at) = self.entry_at(flow) {
            self.enter(at, packet, net);
        } else {
            net.forward(packet);
        }
    }

    fn next_timer(&self) -> Time {
        if self.node.is_some() { self.due } else { Time::NEVER }
    }

    fn on_timer(&mut self, net: &mut Net<'_, P>) {
        let has_changed = self.look_at_links(net);
        self.wake_hops(net.now());
        self.look_at_flows(net);
        // Flows are looked at more often than the node has something to do.
        if !has_changed && self.hops.is_empty() && self.node_due > net.now() {
            self.due = self.node_due.min(self.edge.next_time());
            return;
        }
        self.call(0, net, |node, now, out| node.on_timer(now, out));
    }

    fn admits(&self, flow: FlowId) -> bool {
        self.entry_at(flow.0).and_then(|at| self.edge.entry(at)).is_some_and(edge::Entry::is_open)
    }

    fn held(&self) -> u64 {
        self.node.as_ref().map_or(0, |node| node.held() as u64)
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        self.report(report);
    }

    fn flow_state(&self, report: &mut dyn FnMut(FlowId, &str, f64)) {
        self.report_flows(report);
    }

    fn decided(&mut self, tell: &mut dyn FnMut(Decided)) {
        self.tell_decided(tell);
    }
}
