//! The network whose capacity is asked for: nodes, directed links with a rate and a delay, and the sessions that send through it.

use weir_base::{Bytes, Rate, Span};

/// Most links of a network, each direction counted. Their labels and columns then fit into a gigabyte for one session.
pub const MOST_LINKS: usize = 100_000;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it passes on what it receives. A host does not: paths only begin and end there.
    pub forwards: bool,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it begins: index of a node.
    pub from: usize,
    /// Where it ends: index of a node.
    pub to: usize,
    /// Its rate; `None` for a link without limit.
    pub rate: Option<Rate>,
    /// The time that every packet takes from one end to the other.
    pub delay: Span,
}

/// Nodes and links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// For each node, the links that leave it.
    leaving: Vec<Vec<u32>>,
    /// For each node, the links that lead to it.
    entering: Vec<Vec<u32>>,
}

/// Why nodes and links are no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// There are too many links.
    #[error("{0} links are too many; the limit is {MOST_LINKS}, each direction counted")]
    Links(usize),
    /// A link ends at no node, or at the node where it begins.
    #[error("link {0} does not join two nodes")]
    Ends(usize),
}

impl Network {
    /// A network.
    ///
    /// # Errors
    /// A link does not join two of the nodes, or there are more than [`MOST_LINKS`].
    pub fn new(nodes: Vec<Node>, links: Vec<Link>) -> Result<Network, NetworkError> {
        if links.len() > MOST_LINKS {
            return Err(NetworkError::Links(links.len()));
        }
        let mut leaving = vec![Vec::new(); nodes.len()];
        let mut entering = vec![Vec::new(); nodes.len()];
        for (index, link) in (0..).zip(&links) {
            if link.from == link.to || link.from.max(link.to) >= nodes.len() {
                return Err(NetworkError::Ends(index as usize));
            }
            leaving[link.from].push(index);
            entering[link.to].push(index);
        }
        Ok(Network { nodes, links, leaving, entering })
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The same network, with the time to send `packets` packets of this length added to each link's delay. Links of rate zero
    /// carry nothing and keep their delay.
    pub fn with_serialisation(&self, packet: Bytes, packets: u64) -> Network {
        let added = |link: &Link| match link.rate {
            Some(rate) if rate != Rate::default() => rate.time_to_send_all(packet, packets),
            _ => Span::ZERO,
        };
        let links = self.links.iter().map(|link| Link { delay: link.delay + added(link), ..link.clone() });
        Network { links: links.collect(), ..self.clone() }
    }

    /// The links that leave a node.
    pub(crate) fn leaving(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.leaving[node].iter().map(|&link| link as usize)
    }

    /// The links that lead to a node.
    pub(crate) fn entering(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.entering[node].iter().map(|&link| link as usize)
    }

    /// A link's rate in bits per second; infinite for a link without limit.
    pub(crate) fn rate(&self, link: usize) -> f64 {
        self.links[link].rate.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64)
    }

    /// The link in the other direction, if it carries something: of parallel ones the one that has the same place among them.
    pub(crate) fn back(&self, link: u32) -> Option<u32> {
        let ends = |link: u32| (self.links[link as usize].from, self.links[link as usize].to);
        let (from, to) = ends(link);
        let place =
            self.leaving[from].iter().filter(|&&other| other < link && ends(other) == (from, to)).count();
        let mut backs = self.leaving[to].iter().filter(|&&other| ends(other) == (to, from));
        backs.nth(place).copied().filter(|&back| self.rate(back as usize) > 0.0)
    }

    /// The delay of a path in nanoseconds.
    pub(crate) fn delay(&self, path: &[u32]) -> u64 {
        path.iter().fold(0, |sum, &link| self.links[link as usize].delay.as_nanos().saturating_add(sum))
    }
}

/// A source and the receivers that all receive everything it sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// The node that sends.
    pub source: usize,
    /// The nodes that receive.
    pub receivers: Vec<usize>,
    /// How much its rate counts beside those of other sessions.
    pub weight: f64,
}

impl Session {
    /// A session of weight 1.
    pub fn new(name: impl Into<String>, source: usize, receivers: Vec<usize>) -> Session {
        Session { name: name.into(), source, receivers, weight: 1.0 }
    }
}
