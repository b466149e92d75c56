//! What a run's page shows of an overlay: its topology with the load of each link and the depths of each node over time, the links that
//! each flow's packets take, and who stopped flows and why. All of it comes from records: links' bytes, states of nodes, and decisions.

mod admission;
mod layout;
mod table;

pub use admission::{Admission, Decided, Stand};
pub(crate) use table::tables;

use weir_engine::FinishedRun;
use weir_plan::address::port_of;
use weir_record::metrics::overlay;
use weir_record::metrics::queue::{LINK_CAPACITY, LINK_THROUGHPUT};
use weir_record::{Metric, Records, SeriesSet, Subject, Values, View, series};

/// The kind of station that a node of an overlay is.
const KIND: &str = "overlay-node";
/// Approximate number of values of an overlay in a run's script.
const VALUES: usize = 120_000;
/// Smallest number of points of a series.
const LEAST_POINTS: usize = 40;
/// Largest number of points of a series.
const POINTS: usize = 600;
/// Bits in a byte, in units of a million.
const MEGABITS: f64 = 8e-6;

/// The parts of what nodes send beyond payload: a state, its name on the page, and its share as a metric.
pub(crate) const PARTS: [(&str, &str, Metric); 4] = [
    ("header_bytes", "headers", overlay::OVERLAY_OVERHEAD),
    ("signal_bytes", "messages", overlay::OVERLAY_SIGNALLING),
    ("resent_bytes", "resent", overlay::OVERLAY_RESENT),
    ("acknowledgement_bytes", "acknowledgements", overlay::OVERLAY_ACKNOWLEDGEMENTS),
];
/// The state of what they carry.
pub(crate) const PAYLOAD: &str = "payload_bytes";

/// Whether a state of a node is one of many of its kind (a bin, a neighbour, a flow), which have no plots of their own.
pub(crate) fn is_part(state: &str) -> bool {
    ["bin_", "neighbour_", "port_"].iter().any(|start| state.starts_with(start))
}

/// An overlay over time, all on one grid.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlay {
    /// The time between two points.
    pub period_s: f64,
    /// Number of points.
    pub count: usize,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// The links between nodes, one for each direction.
    pub links: Vec<Link>,
    /// Flows that enter it and whose paths were recorded.
    pub flows: Vec<Flow>,
    /// What was decided about flows; `None` if no flow may be refused.
    pub admission: Option<Admission>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its place in a picture, each coordinate from 0 to 1.
    pub at: (f64, f64),
    /// Bytes of packets in its queues.
    pub real: Values,
    /// Bytes of virtual depth in its queues.
    pub zombies: Values,
    /// Its bins.
    pub bins: Vec<Bin>,
}

/// A bin of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bin {
    /// The name of the node or the group that its packets are for.
    pub to: String,
    /// Bytes of packets, of virtual depth, and as neighbours are told.
    pub bytes: [Values; 3],
}

/// A link from a node to another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// Indices of its nodes.
    pub ends: (usize, usize),
    /// Its capacity in Mbit/s.
    pub capacity: Values,
    /// What it carries in Mbit/s.
    pub load: Values,
}

/// A flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The node at which it enters.
    pub from: usize,
    /// The nodes at which it leaves.
    pub to: Vec<usize>,
    /// Links by their index, with what each carries of the flow in Mbit/s.
    pub links: Vec<(usize, Values)>,
}

/// The overlay of a run; `None` if it has none.
pub(crate) fn overlay(run: &FinishedRun, view: &View<'_>, records: &Records) -> Option<Overlay> {
    let of = Of::new(run)?;
    let set = series(view, records, of.points(view, records));
    let mut overlay =
        Overlay { period_s: set.period().as_secs_f64(), count: set.count(), ..Overlay::default() };
    overlay.nodes = of.nodes(&set);
    overlay.links = of.links(&set);
    overlay.flows = of.flows(&set, &overlay.links);
    overlay.admission = admission::admission(run, records);
    Some(overlay)
}

/// A counter's growth as rates in Mbit/s.
pub(crate) fn rates(set: &SeriesSet<'_>, growth: &Values) -> Values {
    let each = growth.iter().zip(set.covered_s());
    each.map(|(bytes, time)| bytes.filter(|_| time > 0.0).map(|bytes| MEGABITS * bytes / time)).collect()
}

/// The overlay of a run's plan: the places of its nodes, and their stations.
struct Of<'a> {
    run: &'a FinishedRun,
    /// For each node of the overlay, the index of its router and that of its station.
    nodes: Vec<(usize, u32)>,
}

impl<'a> Of<'a> {
    fn new(run: &'a FinishedRun) -> Option<Of<'a>> {
        let stations = (0..).zip(&run.file.run.stations);
        let own = stations.filter(|(_, station)| station.station.name() == KIND);
        let nodes: Vec<(usize, u32)> = own.map(|(number, station)| (station.at, number)).collect();
        (!nodes.is_empty()).then_some(Of { run, nodes })
    }

    /// The number of points with which the series stay small together.
    fn points(&self, view: &View<'_>, records: &Records) -> usize {
        let set = series(view, records, 1);
        let parts = set.states().filter(|(_, name, _)| is_part(name) && !name.starts_with("neighbour_"));
        let all = 2 * (self.nodes.len() + self.pairs().count()) + parts.count();
        (VALUES / all).clamp(LEAST_POINTS, POINTS)
    }

    fn place(&self, router: usize) -> Option<usize> {
        self.nodes.iter().position(|(at, _)| *at == router)
    }

    /// The links between nodes: the index of each in the run, and the nodes at its ends.
    fn pairs(&self) -> impl Iterator<Item = (usize, (usize, usize))> {
        let links = self.run.file.run.network.links.iter().enumerate();
        links.filter_map(|(index, link)| Some((index, (self.place(link.from)?, self.place(link.to)?))))
    }

    fn name(&self, node: usize) -> String {
        self.run.file.run.network.nodes[self.nodes[node].0].name.clone()
    }

    fn nodes(&self, set: &SeriesSet<'_>) -> Vec<Node> {
        let ends: Vec<(usize, usize)> = self.pairs().map(|(_, ends)| ends).collect();
        let places = layout::places(self.nodes.len(), &ends);
        let mut nodes: Vec<Node> = places
            .into_iter()
            .enumerate()
            .map(|(node, at)| Node { name: self.name(node), at, ..Node::default() })
            .collect();
        for (of, state, values) in set.states() {
            let Subject::StationState(station) = of else { continue };
            let Some(place) = self.nodes.iter().position(|(_, own)| *own == station) else { continue };
            let node = &mut nodes[place];
            match state {
                "real_bytes" => node.real = values,
                "zombie_bytes" => node.zombies = values,
                _ => {
                    let Some((to, part)) = self.bin(state) else { continue };
                    match node.bins.iter_mut().find(|bin| bin.to == to) {
                        Some(bin) => bin.bytes[part] = values,
                        None => {
                            let mut bin = Bin { to, ..Bin::default() };
                            bin.bytes[part] = values;
                            node.bins.push(bin);
                        }
                    }
                }
            }
        }
        nodes
    }

    /// Whose packets a bin's state is about, and which of its parts: of packets, of virtual depth, as advertised.
    fn bin(&self, state: &str) -> Option<(String, usize)> {
        let rest = state.strip_prefix("bin_")?.strip_suffix("_bytes")?;
        let (rest, part) = rest.rsplit_once('_')?;
        let part = ["real", "zombie", "advertised"].iter().position(|known| *known == part)?;
        let (kind, number) = rest.split_once('_')?;
        let number: usize = number.parse().ok()?;
        match kind {
            "node" => (number < self.nodes.len()).then(|| (self.name(number), part)),
            _ => {
                let of = |group: &&weir_plan::Group| {
                    let multicast = group.overlay.as_ref().and_then(|carriage| carriage.multicast);
                    multicast == u32::try_from(number).ok()
                };
                let groups: Vec<&str> =
                    self.run.file.run.groups.iter().filter(of).map(|group| &*group.name).collect();
                Some((format!("group of {}", groups.join(", ")), part))
            }
        }
    }

    fn links(&self, set: &SeriesSet<'_>) -> Vec<Link> {
        let values = |metric, link| set.get(metric, Subject::Link(link as u32)).unwrap_or_default();
        self.pairs()
            .map(|(index, ends)| Link {
                ends,
                capacity: values(&LINK_CAPACITY, index),
                load: values(&LINK_THROUGHPUT, index),
            })
            .collect()
    }

    /// The flows of which nodes have recorded where they leave.
    fn flows(&self, set: &SeriesSet<'_>, links: &[Link]) -> Vec<Flow> {
        let run = &self.run.file.run;
        let grown = set.grown(|name| name.starts_with("port_"));
        // The router behind which a host stands.
        let behind = |host: usize| {
            let link = run.network.links.iter().find(|link| link.from == host)?;
            self.place(link.to)
        };
        let mut flows = Vec::new();
        for (own, planned) in run.flows.iter().enumerate() {
            let group = &run.groups[planned.group];
            if planned.copy_of.is_some() || group.overlay.is_none() {
                continue;
            }
            let copies =
                (own..run.flows.len()).filter(|flow| *flow == own || run.flows[*flow].copy_of == Some(own));
            let to: Vec<usize> = copies.filter_map(|flow| behind(run.pair(flow).to)).collect();
            let Some(from) = behind(run.pair(own).from) else { continue };
            let start = format!("port_{}_neighbour_", port_of(own));
            let link = |(station, state, values): &(u32, &str, Values)| {
                let to: usize = state.strip_prefix(&start)?.strip_suffix("_bytes")?.parse().ok()?;
                let from = self.nodes.iter().position(|(_, own)| own == station)?;
                let link = links.iter().position(|link| link.ends == (from, to))?;
                Some((link, rates(set, values)))
            };
            let of: Vec<(usize, Values)> = grown.iter().filter_map(link).collect();
            if !of.is_empty() {
                let alone =
                    run.flows.iter().filter(|flow| flow.group == planned.group && flow.copy_of.is_none());
                let is_alone = alone.count() == 1;
                let name =
                    if is_alone { group.name.to_string() } else { self.run.info.flows[own].name.to_string() };
                flows.push(Flow { name, from, to, links: of });
            }
        }
        flows
    }
}
