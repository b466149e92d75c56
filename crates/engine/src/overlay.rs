//! What is around each node of an overlay, from a run: its links to other nodes, the groups that hosts behind it have joined, and the
//! flows that enter and leave there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_base::{Bytes, Rate, Span, Time};
use weir_overlay::admission::Terms;
use weir_overlay::context::CONTROL;
use weir_overlay::edge;
use weir_overlay::{GroupId, Inner, Key, NodeId, Nodes};
use weir_plan::address::{address_of, group_address, port_of};
use weir_plan::{Carriage, Group, Run};
use weir_station::{Config, Entering, Leaving, Neighbour, Overlay, Seat};

/// Headers of IPv4 and UDP.
pub(crate) const HEADERS: Bytes = Bytes::new(28);
/// Protocol number of UDP.
const UDP: u8 = 17;
/// What a flow without a rate of its own offers: more than any link carries.
pub(crate) const UNLIMITED: Rate = Rate::from_mbit_per_sec(100_000);

/// The seats of a run's overlay nodes, by the router at which each stands.
pub(crate) fn seats(run: &Run) -> BTreeMap<usize, Seat> {
    let mut seats = BTreeMap::new();
    for (at, _, id) in nodes(run) {
        let (groups, entering, leaving) = Default::default();
        let (seed, neighbours) = (run.seed, Vec::new());
        seats.insert(at, Seat { id, seed, neighbours, groups, entering, leaving });
    }
    let ids: BTreeMap<usize, NodeId> = seats.iter().map(|(at, seat)| (*at, seat.id)).collect();
    for (at, seat) in &mut seats {
        seat.neighbours = neighbours(run, &ids, *at);
    }
    let place = |host: usize| {
        let router = router_of(run, host)?;
        Some((router, *ids.get(&router)?))
    };
    for flow in 0..run.flows.len() {
        add_flow(run, flow, &mut seats, &place);
    }
    for seat in seats.values_mut() {
        seat.groups.sort();
        seat.groups.dedup();
        seat.leaving.sort_by_key(|leaving| leaving.port);
    }
    seats
}

/// The nodes of a run's overlay: the router at which each stands, its parameters, and its name.
pub(crate) fn nodes(run: &Run) -> impl Iterator<Item = (usize, &Overlay, NodeId)> {
    let nodes = run.stations.iter().filter_map(|station| match &station.station {
        Config::OverlayNode(overlay) => Some((station.at, overlay)),
        _ => None,
    });
    (0u8..).map_while(NodeId::new).zip(nodes).map(|(id, (at, overlay))| (at, overlay, id))
}

/// The router at which a host stands.
pub(crate) fn router_of(run: &Run, host: usize) -> Option<usize> {
    Some(run.network.links.iter().find(|link| link.from == host)?.to)
}

/// The links between two nodes of the network, there and back. The first link back belongs to the first one there, and so on.
pub fn link_pairs(run: &Run, a: usize, b: usize) -> impl Iterator<Item = (usize, usize)> {
    let links = &run.network.links;
    let between = move |from: usize, to: usize| {
        (0..links.len()).filter(move |link| (links[*link].from, links[*link].to) == (from, to))
    };
    between(a, b).zip(between(b, a))
}

/// The links from a node to other nodes.
fn neighbours(run: &Run, ids: &BTreeMap<usize, NodeId>, at: usize) -> Vec<Neighbour> {
    let links = &run.network.links;
    let others = ids.keys().filter(|other| **other != at);
    let ways = others.flat_map(|other| link_pairs(run, at, *other));
    let neighbour = |(link, back): (usize, usize)| {
        let id = *ids.get(&links[link].to)?;
        let overhead = Bytes::new(links[link].overhead.get());
        let mtu = links[link].mtu.min(links[back].mtu);
        Some(Neighbour { link, back, at: links[link].to, id, overhead, mtu })
    };
    ways.filter_map(neighbour).collect()
}

/// Adds a flow to the seats of the nodes where it enters and leaves.
fn add_flow(
    run: &Run,
    flow: usize,
    seats: &mut BTreeMap<usize, Seat>,
    place: &dyn Fn(usize) -> Option<(usize, NodeId)>,
) {
    let group = &run.groups[run.flows[flow].group];
    let Some(carriage) = &group.overlay else { return };
    let Carriage { deadline, is_sensitive, is_control, multicast, .. } = carriage;
    let pair = run.pair(flow);
    let own = run.flows[flow].copy_of.unwrap_or(flow);
    let (Some((enters, _)), Some((leaves, receiver))) = (place(pair.from), place(pair.to)) else { return };
    let multicast = multicast.map(|number| GroupId(group_address(number).to_bits()));
    let port = port_of(own);
    if let Some(seat) = seats.get_mut(&leaves) {
        let (from, to, deadline) = (pair.from, pair.to, *deadline);
        seat.leaving.push(Leaving { port, flow: flow as u32, from, to, deadline, is_answer: false });
        seat.groups.extend(multicast);
    }
    let is_relayed = matches!(group.transport, Some(weir_transport::Config::Relay(_)));
    if is_relayed && let Some((_, sender)) = place(pair.from) {
        answer(flow, (pair.from, pair.to), (enters, leaves, sender), group.ip, seats);
    }
    let Some(seat) = seats.get_mut(&enters) else { return };
    if let Some(first) = seat.entering.iter_mut().find(|entering| entering.flow as usize == own) {
        first.counts.push(flow as u32);
        first.entry.interested = first.entry.interested.map(|nodes| nodes.with(receiver));
        return;
    }
    let entry = edge::Entering {
        number: flow as u64,
        to: multicast.map_or(Key::Node(receiver), Key::Group),
        interested: multicast.map(|_| Nodes::of(receiver)),
        terms: terms(run, flow, carriage),
        coupled: carriage.coupled,
        is_sensitive: *is_sensitive,
        is_answer: false,
        inner: Inner {
            source: address(pair.from, group.ip),
            destination: multicast.map_or_else(|| address(pair.to, group.ip), |group| group.0),
            source_port: port,
            destination_port: port,
            protocol: UDP,
            dscp: if *is_control { CONTROL } else { 0 },
        },
    };
    seat.entering.push(Entering { flow: flow as u32, counts: vec![flow as u32], entry });
}

/// Adds what the proxy of a relayed flow's receiver says to that of its sender: it goes first, and waits for no admission.
fn answer(
    flow: usize,
    (from, to): (usize, usize),
    (enters, leaves, sender): (usize, usize, NodeId),
    ip: weir_plan::Ip,
    seats: &mut BTreeMap<usize, Seat>,
) {
    let port = port_of(flow);
    let flow = flow as u32;
    if let Some(seat) = seats.get_mut(&enters) {
        seat.leaving.push(Leaving { port, flow, from: to, to: from, deadline: None, is_answer: true });
    }
    let Some(seat) = seats.get_mut(&leaves) else { return };
    let entry = edge::Entering {
        number: flow.into(),
        to: Key::Node(sender),
        interested: None,
        terms: Terms::elastic(Default::default()),
        coupled: None,
        is_sensitive: false,
        is_answer: true,
        inner: Inner {
            source: address(to, ip),
            destination: address(from, ip),
            source_port: port,
            destination_port: port,
            protocol: UDP,
            dscp: CONTROL,
        },
    };
    seat.entering.push(Entering { flow, counts: Vec::new(), entry });
}

/// What a flow is and asks for.
fn terms(run: &Run, flow: usize, carriage: &Carriage) -> Terms {
    let (planned, end) = (&run.flows[flow], Time::ZERO + run.duration);
    Terms {
        utility: carriage.admit.clone(),
        offered: offered(&run.groups[planned.group]).unwrap_or(UNLIMITED),
        deadline: carriage.deadline,
        size: carriage.size,
        begins: Time::ZERO + planned.start,
        ends: planned.stop.map_or(end, |stop| end.min(Time::ZERO + stop)),
    }
}

/// The rate of payload that a flow of a group offers; `None` if it always has data. The rate of a workload of datagrams counts whole IP
/// packets, that of a stream counts payload.
pub fn offered(group: &Group) -> Option<Rate> {
    let bytes = group.workload.wanted(Span::from_secs(1))?.get() as f64;
    let payload = group
        .workload
        .datagram()
        .map_or(1.0, |(packet, _)| packet.saturating_sub(HEADERS).get() as f64 / packet.get().max(1) as f64);
    Some(Rate::from_bits_per_sec((8.0 * bytes * payload) as u64))
}

fn address(node: usize, ip: weir_plan::Ip) -> u32 {
    match address_of(node, ip) {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(_) => 0,
    }
}
