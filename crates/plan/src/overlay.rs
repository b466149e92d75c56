//! `[overlay]`: nodes of the backpressure overlay at routers, and how they carry traffic groups. Doc comments here are the user's
//! documentation.

use crate::admit;
use crate::carriage::{Choice, Class, Use};
use crate::diagnostic::suggest;
use crate::each::Places;
use crate::per_direction::Direction;
use crate::reader::{Beside, Reader};
use crate::run::{Carriage, Ip, Station};
use crate::traffic::Traffic;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use weir_base::ParameterError;
use weir_fabric::Network;
use weir_overlay::nodes::NODES;
use weir_station::Config;
use weir_workload::Role;

/// The nodes of an overlay. Their parameters stand beside this.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Nodes {
    /// Names of the routers at which its nodes stand, at most 128. Links between two of them are the overlay's.
    #[schemars(example = json!(["a", "b", "c"]))]
    pub(crate) nodes: Vec<String>,
    /// Those of them at which no traffic group begins or ends.
    #[serde(default)]
    pub(crate) interior: Vec<String>,
    /// Whether there is an overlay; by default there is. Without it all packets take the path of least delay: the baseline, as in
    /// `[vary]` with `"overlay.on" = [true, false]`.
    #[serde(default = "yes")]
    pub(crate) on: bool,
}

fn yes() -> bool {
    true
}

impl Beside for Nodes {
    const OWN: &'static [&'static str] = &["nodes", "interior", "on"];
}

/// [`Nodes`] and the parameters, for the schema. It is read in two parts.
pub(crate) struct Section;

impl JsonSchema for Section {
    fn schema_name() -> Cow<'static, str> {
        "Overlay".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parameters = weir_station::Overlay::json_schema(generator).to_value();
        let mut schema = Nodes::json_schema(generator).to_value();
        schema["description"] = "Nodes of the backpressure overlay, with their parameters.".into();
        if let (Some(own), Some(more)) =
            (schema["properties"].as_object_mut(), parameters["properties"].as_object())
        {
            own.extend(more.clone());
        }
        schema["additionalProperties"] = false.into();
        schema.try_into().unwrap_or_default()
    }
}

/// The overlay of a lab.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Places of its nodes: indices of routers. Empty without an overlay.
    nodes: Vec<usize>,
    interior: Vec<usize>,
    /// Whether the lab has one that is switched off.
    is_off: bool,
    /// The names of its multicast groups so far.
    groups: Vec<String>,
    /// The sets of coupled flows so far: the name, how many flows, and the first group.
    sets: Vec<(String, u64, String)>,
}

/// Reads `[overlay]` and adds its nodes to the stations. The network has only the lab's own nodes so far.
pub(crate) fn place(reader: &mut Reader<'_>, network: &Network, stations: &mut Vec<Station>) -> Overlay {
    let mut overlay = Overlay::default();
    if !reader.has(&["overlay"]) {
        return overlay;
    }
    let Some((own, parameters)) = reader.both::<Nodes, weir_station::Overlay>(&["overlay"]) else {
        return overlay;
    };
    if !own.on {
        return Overlay { is_off: true, ..overlay };
    }
    let config = Config::OverlayNode(parameters);
    if let Some(ParameterError { key, message, help }) = config.fault(false) {
        let path = ["overlay", key];
        let path = if reader.has(&path) { &path[..] } else { &path[..1] };
        reader.wrong(path, message, help);
    }
    if own.nodes.is_empty() || own.nodes.len() > NODES {
        let message = format!("an overlay cannot have {} nodes", own.nodes.len());
        reader.wrong(&["overlay", "nodes"], message, format!("write from 1 to {NODES}"));
        return overlay;
    }
    overlay.nodes = routers(reader, network, "nodes", &own.nodes);
    overlay.interior = routers(reader, network, "interior", &own.interior);
    if let Some(at) = overlay.interior.iter().find(|at| !overlay.nodes.contains(at)) {
        let message = format!("`{}` is interior, but no node of the overlay", network.nodes[*at].name);
        reader.wrong(&["overlay", "interior"], message, "name it in nodes as well, or remove it here");
    }
    for &at in &overlay.nodes {
        let name = &network.nodes[at].name;
        if let Some(other) = stations.iter().find(|station| station.at == at) {
            let message = format!("the router `{name}` already has the station `{}`", other.name);
            reader.wrong(&["overlay", "nodes"], message, "place the station at another router");
        }
        check_links(reader, network, &overlay.nodes, at);
        let name = format!("overlay-{name}");
        stations.push(Station { name, at, links: Vec::new(), station: config.clone() });
    }
    check_hosts(reader, network, &overlay.nodes);
    overlay
}

/// The routers of these names.
fn routers(reader: &mut Reader<'_>, network: &Network, key: &'static str, names: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    for name in names {
        let at = network.nodes.iter().position(|node| node.name == *name);
        let path = ["overlay", key];
        match at {
            None => {
                let help = suggest(name, network.nodes.iter().map(|node| node.name.as_str()));
                reader.wrong(&path, format!("there is no router `{name}`"), help);
            }
            Some(at) if network.nodes[at].edge => {
                let message = format!("`{name}` is a host, which forwards nothing");
                reader.wrong(&path, message, "list it among the graph's routers");
            }
            Some(at) if found.contains(&at) => {
                reader.wrong(&path, format!("`{name}` is named twice"), "name each node once");
            }
            Some(at) => found.push(at),
        }
    }
    found
}

/// Checks that links lead from a node to another one and back.
fn check_links(reader: &mut Reader<'_>, network: &Network, nodes: &[usize], at: usize) {
    let leads = |from: usize, to: usize| network.links.iter().any(|link| (link.from, link.to) == (from, to));
    let is_neighbour = |other: &usize| *other != at && leads(at, *other) && leads(*other, at);
    if nodes.len() > 1 && !nodes.iter().any(is_neighbour) {
        let message =
            format!("no link leads from the node `{}` to another node and back", network.nodes[at].name);
        reader.wrong(&["overlay", "nodes"], message, "add a link between the two, or remove the node");
    }
}

/// Checks that no host of the graph is linked to two nodes: its packets would enter at either.
fn check_hosts(reader: &mut Reader<'_>, network: &Network, nodes: &[usize]) {
    for (host, node) in network.nodes.iter().enumerate().filter(|(_, node)| node.edge) {
        let mut beside = network.links.iter().filter(|link| link.from == host && nodes.contains(&link.to));
        let first = beside.next();
        if let (Some(first), Some(second)) = (first, beside.find(|link| Some(link.to) != first.map(|l| l.to)))
        {
            let names = [first, second].map(|link| network.nodes[link.to].name.as_str());
            let message =
                format!("the host `{}` is linked to the nodes `{}` and `{}`", node.name, names[0], names[1]);
            reader.wrong(&["overlay", "nodes"], message, "link it to one node, or make it a node itself");
        }
    }
}

impl Overlay {
    /// How the overlay carries a group's flows; `None` if it does not. `ends` are the routers where they begin and end.
    pub(crate) fn carries(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        is_multicast: bool,
        ends: &[usize],
        network: &Network,
    ) -> Option<Carriage> {
        let at = |key: &'static str| ["traffic", name, key];
        let how = match &traffic.overlay {
            Some(Choice::As(how)) => Some(how.clone()),
            Some(Choice::Whether(whether)) => whether.then(Use::default),
            None => (!self.nodes.is_empty()).then(Use::default),
        };
        let Some(how) = how.filter(|_| !self.is_off) else {
            if !self.is_off && matches!(traffic.transport, Some(weir_transport::Config::Relay(_))) {
                let help = "write transport = \"tcp\", or let the overlay carry the group";
                reader.wrong(&at("transport"), "only the overlay carries relayed streams", help);
            }
            if is_multicast {
                let help = "remove overlay = false, or name one place in `to`";
                reader.wrong(&at("multicast"), "only the overlay carries packets to many receivers", help);
            }
            return None;
        };
        if self.nodes.is_empty() {
            let key = if traffic.overlay.is_some() { "overlay" } else { "multicast" };
            let help = "write [overlay], and under it nodes = [\"a\", \"b\"]";
            reader.wrong(&at(key), "the lab has no overlay", help);
            return None;
        }
        self.check(reader, name, traffic, is_multicast, ends, network);
        let admit = admit::utility(reader, name, &how);
        // A group may have members that no packet reaches in time: how many it reaches by which deadline is a question of its own.
        if !is_multicast {
            admit::check_deadline(reader, name, how.deadline, ends, &self.nodes, network);
        }
        let coupled = how.coupled.as_deref().map(|set| self.couple(set, name, traffic.flows()));
        let multicast = is_multicast.then(|| self.group(how.group.as_deref().unwrap_or(name)));
        if how.group.is_some() && !is_multicast {
            let help = "write multicast = [..] instead of `to`, or remove it";
            reader.wrong(&["traffic", name, "overlay", "group"], "the group has one receiver", help);
        }
        let is_sensitive = how.class.map_or(how.deadline.is_some(), |class| class == Class::Sensitive);
        let is_control = how.class == Some(Class::Control);
        if is_control && how.deadline.is_some() {
            let help = "remove the deadline, or write class = \"sensitive\"";
            let message = "packets of class `control` have no deadline";
            reader.wrong(&["traffic", name, "overlay", "class"], message, help);
        }
        let (deadline, size) = (how.deadline, how.size);
        Some(Carriage { admit, deadline, size, coupled, is_sensitive, is_control, multicast })
    }

    /// The number of a multicast group.
    fn group(&mut self, name: &str) -> u32 {
        let known = self.groups.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        }) as u32
    }

    /// The number of a set of coupled flows.
    fn couple(&mut self, set: &str, name: &str, flows: u64) -> u32 {
        let known = self.sets.iter().position(|(known, ..)| known == set);
        let at = known.unwrap_or_else(|| {
            self.sets.push((set.to_owned(), 0, name.to_owned()));
            self.sets.len() - 1
        });
        self.sets[at].1 += flows;
        at as u32
    }

    /// Checks what can be judged when all groups are known.
    pub(crate) fn finish(&self, reader: &mut Reader<'_>) {
        for (set, _, group) in self.sets.iter().filter(|(_, flows, _)| *flows < 2) {
            let message = format!("no other flow is coupled as `{set}`");
            let help = "name the same set in another group, or remove it";
            reader.wrong(&["traffic", group, "overlay", "coupled"], message, help);
        }
    }

    /// Checks what the overlay cannot carry.
    fn check(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        is_multicast: bool,
        ends: &[usize],
        network: &Network,
    ) {
        let at = |key: &'static str| ["traffic", name, key];
        let is_relayed = matches!(traffic.transport, Some(weir_transport::Config::Relay(_)));
        let is_carried = match traffic.workload.role() {
            Role::Datagrams(_) => true,
            role => is_relayed && role == Role::OneWay,
        };
        if !is_carried {
            let message = format!(
                "the overlay carries datagrams, and relayed streams in one direction; `{}` has neither",
                traffic.workload.name()
            );
            let help = match is_relayed {
                true => "write a workload that sends in one direction, for example \"bulk\"",
                false => {
                    "write transport = \"relay\", or workload = { kind = \"udp\", rate = \"5 Mbit/s\" }, or overlay = false"
                }
            };
            reader.wrong(&["traffic", name], message, help);
        }
        if is_relayed && is_multicast {
            let help = "name one place in `to`";
            reader.wrong(&at("multicast"), "a relayed stream has one receiver", help);
        }
        if traffic.ip == Some(Ip::V6) {
            reader.wrong(&at("ip"), "the overlay carries IPv4 only", "write ip = 4, or overlay = false");
        }
        let given = [
            ("rtt", traffic.rtt.is_some(), "the overlay's hosts stand at their nodes"),
            ("via", traffic.via.is_some(), "the overlay finds the paths itself"),
            ("back", traffic.back.is_some(), "the overlay finds the paths itself"),
            ("host", traffic.host.is_some(), "the overlay admits each group at a host of its own"),
        ];
        for (key, _, message) in given.into_iter().filter(|(_, is_given, _)| *is_given) {
            reader.wrong(&at(key), message, "remove it, or write overlay = false");
        }
        for end in ends {
            let place = &network.nodes[*end].name;
            if self.interior.contains(end) {
                let help = "remove it from overlay.interior, or write overlay = false";
                reader.wrong(&["traffic", name], format!("the node `{place}` is interior"), help);
            } else if !self.nodes.contains(end) {
                let message = format!("no node of the overlay stands at `{place}`");
                let help = "add it to overlay.nodes, or write overlay = false";
                reader.wrong(&["traffic", name], message, help);
            }
        }
    }
}

/// Makes the receivers of `multicast` the places of `to`, each with a flow of its own. Returns their number; 1 without `multicast`.
pub(crate) fn spread(reader: &mut Reader<'_>, name: &str, traffic: &mut Traffic) -> u64 {
    let Some(Places(receivers)) = traffic.multicast.take() else { return 1 };
    let at = |key: &'static str| ["traffic", name, key];
    for (key, is_given) in [("to", traffic.to.is_some()), ("hop", traffic.hop.is_some())] {
        if is_given {
            let message = format!("`multicast` already says where the data leaves, and `{key}` too");
            reader.wrong(&at(key), message, "remove one of the two");
        }
    }
    if traffic.direction == Direction::Up {
        reader.wrong(&at("direction"), "data to many receivers has one direction", "remove it");
    }
    let count = receivers.len() as u64;
    traffic.flows = Some(traffic.flows().saturating_mul(count));
    traffic.to = Some(Places(receivers));
    count
}
