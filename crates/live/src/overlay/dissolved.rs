//! The run as the fabric sees it where daemons are the overlay's nodes. The router of a node becomes the end of the links to the hosts
//! behind it, and each link to another node gets ends of its own, so that links of the overlay are point to point. All ends of a node are
//! devices of one host. Links keep their numbers, since records are by them, and new ends come after all other nodes, so that hosts keep
//! their addresses. What goes beside the overlay is forwarded by the kernels of these hosts, over the links that the plan gives it.

use weir_base::Dscp;
use weir_engine::link_pairs;
use weir_fabric::Paths;
use weir_plan::{Group, Node, Run, Settings};
use weir_station::Config;

/// The DSCP of packets that go first (RFC 2474, CS6): the daemon takes them for a network's control.
const CONTROL: u8 = 48;

/// A run whose overlay nodes are hosts of the fabric.
#[derive(Debug, Clone)]
pub(crate) struct Dissolved {
    /// The run, without the stations of the overlay.
    pub(crate) run: Run,
    /// The nodes, by their numbers in the overlay; empty without an overlay.
    pub(crate) sites: Vec<Site>,
}

/// A node of the overlay, with the hosts behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// Its name.
    pub(crate) name: String,
    /// Its station's number in the run as it was planned.
    pub(crate) station: usize,
    /// The end of the links to its hosts: the index of its router.
    pub(crate) at: usize,
    /// The hosts behind it whose packets the overlay carries: indices of nodes.
    pub(crate) hosts: Vec<usize>,
    /// The hosts behind it whose packets go beside the overlay.
    pub(crate) beside: Vec<usize>,
    /// The host of each packet that goes beside the overlay and passes here, and the place of the link's end in `ends` by which it leaves.
    pub(crate) passing: Vec<(usize, usize)>,
    /// The ends of its links to other nodes of the overlay.
    pub(crate) ends: Vec<End>,
}

/// An end of a link between two nodes of the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// Index of its node in the network.
    pub(crate) node: usize,
    /// Index of the other end's node.
    pub(crate) other: usize,
    /// The number of the other end's site.
    pub(crate) site: usize,
}

impl Site {
    /// All hosts behind it.
    pub(crate) fn behind(&self) -> impl Iterator<Item = usize> {
        self.hosts.iter().chain(&self.beside).copied()
    }

    /// The hosts to which packets beside the overlay leave by the end at this place in `ends`.
    pub(crate) fn leaving_by(&self, place: usize) -> impl Iterator<Item = usize> {
        self.passing.iter().filter(move |(_, end)| *end == place).map(|(host, _)| *host)
    }

    /// Whether a node of the network is one of its ends.
    pub(crate) fn has(&self, node: usize) -> bool {
        self.at == node || self.ends.iter().any(|end| end.node == node)
    }
}

impl Dissolved {
    /// For each node of the network, where all packets go that enter there; `None` where their addresses say it.
    pub(crate) fn ways(&self) -> Vec<Option<usize>> {
        let mut ways = vec![None; self.run.network.nodes.len()];
        for site in &self.sites {
            site.behind().for_each(|host| ways[host] = Some(site.at));
            // Links between nodes are point to point, also for packets that are addressed to a host.
            site.ends.iter().for_each(|end| ways[end.node] = Some(end.other));
        }
        ways
    }

    /// The end at which a host's packets reach it: that of its site.
    pub(crate) fn gate(&self, host: usize) -> Option<usize> {
        self.sites.iter().find(|site| site.hosts.contains(&host)).map(|site| site.at)
    }
}

/// The stations that are nodes of the overlay, with their numbers.
pub(super) fn nodes(run: &Run) -> impl Iterator<Item = (usize, &weir_plan::Station, &weir_station::Overlay)> {
    run.stations.iter().enumerate().filter_map(|(number, station)| match &station.station {
        Config::OverlayNode(overlay) => Some((number, station, overlay)),
        _ => None,
    })
}

/// Whether the overlay's proxies carry a group's streams.
pub(super) fn is_relayed(group: &Group) -> bool {
    matches!(group.transport, Some(weir_transport::Config::Relay(_)))
}

/// The run as the fabric sees it. The overlay's nodes are the last of its stations, so that others keep their numbers.
pub(crate) fn dissolved(run: &Run) -> Dissolved {
    let site = |(station, of): (usize, &weir_plan::Station)| {
        let links = run.network.links.iter().filter(|link| link.to == of.at);
        let behind = links.filter(|link| run.network.nodes[link.from].host).map(|link| link.from);
        let (beside, hosts) = behind.partition(|host| is_beside(run, *host));
        let name = run.network.nodes[of.at].name.clone();
        Site { name, station, at: of.at, hosts, beside, ends: Vec::new(), passing: Vec::new() }
    };
    let mut sites: Vec<Site> = nodes(run).map(|(number, station, _)| site((number, station))).collect();
    let passing = passing(run);
    let mut run = run.clone();
    run.stations.retain(|station| !matches!(station.station, Config::OverlayNode(_)));
    for site in &sites {
        run.network.nodes[site.at].host = true;
    }
    for a in 0..sites.len() {
        for b in a + 1..sites.len() {
            let pairs: Vec<(usize, usize)> = link_pairs(&run, sites[a].at, sites[b].at).collect();
            for (there, back) in pairs {
                let [from, to] = [(a, b), (b, a)].map(|(own, other)| {
                    let name = format!("{}-{}", sites[own].name, sites[other].name);
                    let mtu = run.network.links[there].mtu.min(run.network.links[back].mtu);
                    run.network.nodes.push(Node { host: true, mtu, ..Node::router(name) });
                    run.network.nodes.len() - 1
                });
                (run.network.links[there].from, run.network.links[there].to) = (from, to);
                (run.network.links[back].from, run.network.links[back].to) = (to, from);
                sites[a].ends.push(End { node: from, other: to, site: b });
                sites[b].ends.push(End { node: to, other: from, site: a });
            }
        }
    }
    for Passing { router, host, next } in passing {
        let number_of = |at: usize| sites.iter().position(|site| site.at == at);
        let (Some(here), Some(there)) = (number_of(router), number_of(next)) else { continue };
        if let Some(end) = sites[here].ends.iter().position(|end| end.site == there)
            && !sites[here].passing.contains(&(host, end))
        {
            sites[here].passing.push((host, end));
        }
    }
    if !sites.is_empty() {
        // All ways are a single link now.
        run.network.routes.clear();
        run.groups.iter_mut().for_each(at_hosts);
    }
    Dissolved { run, sites }
}

/// A packet that goes beside the overlay, at a router.
pub(super) struct Passing {
    pub(super) router: usize,
    /// The host that it goes to, and the node after the router.
    pub(super) host: usize,
    pub(super) next: usize,
}

/// The routers on the ways of all groups beside the overlay, in both directions.
pub(super) fn passing(run: &Run) -> Vec<Passing> {
    let beside = run.groups.iter().filter(|group| group.overlay.is_none());
    let mut pairs = beside.flat_map(|group| &group.pairs).peekable();
    if pairs.peek().is_none() || nodes(run).next().is_none() {
        return Vec::new();
    }
    let paths = Paths::new(&run.network);
    let links = |from: usize, host: usize| {
        let links = paths.links(from, host).into_iter().map(|link| &run.network.links[link]);
        let inner = links.filter(|link| link.from != from).map(|link| (link.from, link.to));
        inner.map(|(router, next)| Passing { router, host, next }).collect::<Vec<_>>()
    };
    pairs.flat_map(|pair| [links(pair.from, pair.to), links(pair.to, pair.from)]).flatten().collect()
}

/// Whether a host belongs to a group beside the overlay.
fn is_beside(run: &Run, host: usize) -> bool {
    run.groups.iter().any(|group| group.overlay.is_none() && group.is_at(host))
}

/// A group as its hosts see it, which know nothing of the overlay: they speak the kernel's TCP to the proxies.
fn at_hosts(group: &mut Group) {
    if is_relayed(group) {
        group.transport = Some(weir_transport::Config::Tcp(Default::default()));
        group.settings.get_or_insert_with(Settings::usual);
    }
    if group.overlay.as_ref().is_some_and(|carriage| carriage.is_control)
        && let Ok(dscp) = Dscp::new(CONTROL)
    {
        group.dscp = dscp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::Lab;

    /// A triangle of two nodes with hosts and one without.
    fn triangle() -> Run {
        triangle_with("")
    }

    /// The same with further groups.
    fn triangle_with(more: &str) -> Run {
        let text = "format = 1\n[graph]\nrouters = [\"a\", \"b\", \"c\"]\n[graph.links]\n\
                    ab = { from = \"a\", to = \"b\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    ac = { from = \"a\", to = \"c\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    bc = { from = \"b\", to = \"c\", rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    [overlay]\nnodes = [\"a\", \"b\", \"c\"]\n\
                    [traffic.one]\nfrom = \"a\"\nto = \"b\"\nworkload = { kind = \"udp\", rate = \"1 Mbit/s\", packet = \"1052 B\" }\n\
                    [traffic.two]\nfrom = \"b\"\nto = \"a\"\ntransport = \"relay\"\n";
        let lab = Lab::from_str(&format!("{text}{more}"), "test.toml", ".".as_ref(), &[]);
        lab.unwrap_or_else(|error| panic!("{}", error.render(false, 100))).runs().remove(0)
    }

    #[test]
    fn links_between_nodes_are_point_to_point_and_keep_their_numbers() {
        let run = triangle();
        let Dissolved { run: after, sites } = dissolved(&run);
        let names = |run: &Run| run.network.links.iter().map(|link| link.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&after), names(&run));
        assert!(after.stations.is_empty() && after.network.routes.is_empty());
        assert_eq!(sites.iter().map(|site| site.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        for (number, site) in sites.iter().enumerate() {
            assert_eq!((site.station, site.ends.len()), (number, 2));
            for end in &site.ends {
                let there = |from, to| {
                    after.network.links.iter().filter(|link| (link.from, link.to) == (from, to)).count()
                };
                assert_eq!((there(end.node, end.other), there(end.other, end.node)), (1, 1));
                let ends_of_the_other = &sites[end.site].ends;
                assert!(ends_of_the_other.contains(&End { node: end.other, other: end.node, site: number }));
                assert!(end.node >= run.network.nodes.len() && after.network.nodes[end.node].host);
            }
        }
    }

    #[test]
    fn hosts_keep_their_places_and_their_packets_go_to_their_node() {
        let run = triangle();
        let after = dissolved(&run);
        assert_eq!(after.run.network.nodes[..run.network.nodes.len()].len(), run.network.nodes.len());
        let ways = after.ways();
        for (flow, _) in run.flows.iter().enumerate() {
            let (pair, planned) = (after.run.pair(flow), run.pair(flow));
            assert_eq!(pair, planned);
            for host in [pair.from, pair.to] {
                let gate = after.gate(host);
                assert!(gate.is_some_and(|gate| after.run.network.nodes[gate].host));
                assert_eq!(ways[host], gate);
            }
        }
        assert!(after.sites[2].hosts.is_empty());
        let end = after.sites[0].ends[0];
        assert_eq!(ways[end.node], Some(end.other));
        // Hosts speak the kernel's TCP.
        assert!(after.run.groups[1].tcp().is_some() && run.groups[1].tcp().is_none());
    }

    #[test]
    fn what_goes_beside_the_overlay_passes_the_nodes_on_its_way_and_is_no_part_of_their_sites() {
        let run = triangle_with("[traffic.three]\nfrom = \"a\"\nto = \"b\"\noverlay = false\n");
        let after = dissolved(&run);
        let pair = &run.groups[2].pairs[0];
        let [a, b, c] = &after.sites[..] else { panic!("there are three nodes") };
        assert_eq!((&a.beside[..], &b.beside[..]), (&[pair.from][..], &[pair.to][..]));
        assert!(!a.hosts.contains(&pair.from) && !b.hosts.contains(&pair.to));
        // Each leaves for the other node, by the link between them; the third node is not on the way.
        let leaves = |site: &Site| {
            site.passing.iter().map(|(host, end)| (*host, site.ends[*end].site)).collect::<Vec<_>>()
        };
        assert_eq!((leaves(a), leaves(b), leaves(c)), (vec![(pair.to, 1)], vec![(pair.from, 0)], vec![]));
        assert_eq!(after.ways()[pair.from], Some(a.at));
    }

    #[test]
    fn a_run_without_an_overlay_stays_what_it_is() {
        let text = "format = 1\n[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[traffic.a]\n";
        let run = Lab::from_str(text, "test.toml", ".".as_ref(), &[]).unwrap().runs().remove(0);
        let after = dissolved(&run);
        assert!(after.sites.is_empty() && after.run == run && after.gate(0).is_none());
    }
}
