//! Trees as columns: what copying and forwarding carries, without coding.
//!
//! The cheapest tree in time is found by dynamic programming over sets of receivers (Dreyfus and Wagner, "The Steiner problem in
//! graphs", Networks 1971). It differs in that a state is also a delay: for each node and set there are labels of rising delay to the
//! last receiver and falling price.

use crate::corridor::Corridor;
use crate::network::{Network, Session};
use crate::packing::Oracle;
use crate::pool::Column;
use crate::stop::Stop;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

/// Most labels of a search, which then need half a gigabyte. A search that needs more proves nothing and finds nothing.
const MOST_LABELS: usize = 10_000_000;
/// A search looks whether it is stopped each time it has taken so many labels.
const LOOK: u32 = 1024;
/// Trees that cost more than this times their worth are not looked for; the least price is then this.
const DEAREST: f64 = 1.5;

/// A tree below a node that reaches a set of receivers.
#[derive(Debug, Clone, Copy)]
struct Label {
    price: f64,
    /// Nanoseconds from the node to the receiver that is reached last.
    delay: u64,
    made: Made,
}

/// How a label came about, by the indices of others.
#[derive(Debug, Clone, Copy)]
enum Made {
    /// The node is the receiver.
    Here,
    /// Over a link to its end.
    Over(u32, u32),
    /// Of two at the same node.
    Of(u32, u32),
}

/// The labels of all nodes for one set of receivers.
type Front = Vec<Vec<u32>>;

/// The exact search.
pub(crate) struct Trees<'a> {
    network: &'a Network,
    sessions: &'a [Session],
    /// Nanoseconds.
    limit: u64,
    /// For each session and node, the least delay from the source.
    there: Vec<Vec<u64>>,
    stop: Stop,
}

/// A search for one session.
struct Search<'a> {
    network: &'a Network,
    source: usize,
    limit: u64,
    there: &'a [u64],
    prices: &'a [f64],
    most: f64,
    labels: Vec<Label>,
    stop: &'a Stop,
}

impl<'a> Trees<'a> {
    /// Trees in time.
    pub(crate) fn new(network: &'a Network, sessions: &'a [Session], limit: u64) -> Trees<'a> {
        let links: Vec<u32> =
            (0..network.links().len() as u32).filter(|&link| network.rate(link as usize) > 0.0).collect();
        let there = sessions.iter().map(|session| {
            let reached = arrivals(network, session.source, &links);
            (0..network.nodes().len()).map(|node| reached.get(&node).copied().unwrap_or(u64::MAX)).collect()
        });
        Trees { network, sessions, limit, there: there.collect(), stop: Stop::default() }
    }

    /// The same, with searches that this flag stops. They then prove nothing and find nothing.
    pub(crate) fn stopped_by(self, stop: &Stop) -> Trees<'a> {
        Trees { stop: stop.clone(), ..self }
    }

    /// The fastest tree of each session that can reach all its receivers.
    pub(crate) fn fastest(&mut self) -> Vec<Column> {
        self.cheapest(&vec![0.0; self.network.links().len()]).1
    }

    /// For a session and prices, the price and the delay of trees: of rising price and falling delay.
    pub(crate) fn fronts(
        &self,
        session: usize,
        prices: &[f64],
        most: f64,
    ) -> Option<Vec<(f64, u64, Vec<u32>)>> {
        let Session { source, receivers, .. } = &self.sessions[session];
        let mut search = Search {
            network: self.network,
            source: *source,
            limit: self.limit,
            there: &self.there[session],
            prices,
            most,
            labels: Vec::new(),
            stop: &self.stop,
        };
        let whole = search.run(receivers)?;
        let trees = whole.into_iter().map(|index| {
            let mut links = Vec::new();
            search.collect(index, &mut links);
            let label = search.labels[index as usize];
            (label.price, label.delay, pruned(self.network, *source, receivers, &links))
        });
        Some(trees.collect())
    }
}

impl Oracle for Trees<'_> {
    fn value(&self, owner: u32) -> f64 {
        self.sessions[owner as usize].weight
    }

    fn cheapest(&mut self, prices: &[f64]) -> (f64, Vec<Column>) {
        let (mut least, mut columns) = (DEAREST, Vec::new());
        for (owner, session) in (0..).zip(self.sessions) {
            let Some(trees) = self.fronts(owner as usize, prices, DEAREST * session.weight) else {
                return (0.0, Vec::new());
            };
            for (price, _, links) in trees {
                least = least.min(price / session.weight);
                if price < session.weight {
                    columns.push(Column { owner, links });
                }
            }
        }
        (least, columns)
    }
}

impl Search<'_> {
    /// The labels of the source for all receivers; `None` if there were too many labels, or it was stopped.
    fn run(&mut self, receivers: &[usize]) -> Option<Vec<u32>> {
        let whole = (1usize << receivers.len()) - 1;
        let mut fronts: Vec<Front> = vec![Front::new(); whole + 1];
        for set in 1..=whole {
            let mut heap = BinaryHeap::new();
            for node in 0..self.network.nodes().len() {
                if self.stop.is_set() {
                    return None;
                }
                self.merge(&fronts, set, node, &mut heap);
            }
            if set.is_power_of_two() {
                let label = Label { price: 0.0, delay: 0, made: Made::Here };
                self.offer(&mut heap, receivers[set.trailing_zeros() as usize], label);
            }
            fronts[set] = self.spread(heap)?;
        }
        fronts.pop().map(|mut front| std::mem::take(&mut front[self.source]))
    }

    /// Offers all trees of two parts that meet at a node.
    fn merge(&mut self, fronts: &[Front], set: usize, node: usize, heap: &mut Heap) {
        let first = set & set.wrapping_neg();
        // Each pair of parts once: the part with the first receiver, and the rest.
        let mut part = (set - 1) & set;
        let mut found: Vec<Label> = Vec::new();
        while part > 0 {
            if part & first != 0 {
                for &a in &fronts[part][node] {
                    for &b in &fronts[set ^ part][node] {
                        let (one, two) = (self.labels[a as usize], self.labels[b as usize]);
                        let delay = one.delay.max(two.delay);
                        found.push(Label { price: one.price + two.price, delay, made: Made::Of(a, b) });
                    }
                }
            }
            part = (part - 1) & set;
        }
        found.sort_by(|a, b| a.price.total_cmp(&b.price).then(a.delay.cmp(&b.delay)));
        let mut fastest = u64::MAX;
        for label in found {
            if label.delay < fastest {
                fastest = label.delay;
                self.offer(heap, node, label);
            }
        }
    }

    /// Spreads labels from each node to those that lead to it, the cheapest first; keeps those that are faster than all cheaper ones.
    fn spread(&mut self, mut heap: Heap) -> Option<Front> {
        let mut front = vec![Vec::new(); self.network.nodes().len()];
        let mut fastest = vec![u64::MAX; front.len()];
        let mut taken = 0u32;
        while let Some(Reverse((_, delay, node, index))) = heap.pop() {
            taken = taken.wrapping_add(1);
            if taken.is_multiple_of(LOOK) && self.stop.is_set() {
                return None;
            }
            if delay >= fastest[node] {
                continue;
            }
            fastest[node] = delay;
            front[node].push(index);
            if node == self.source {
                continue;
            }
            let label = self.labels[index as usize];
            for link in self.network.entering(node) {
                let ends = &self.network.links()[link];
                let passes = ends.from == self.source || self.network.nodes()[ends.from].forwards;
                if !passes || self.network.rate(link) <= 0.0 {
                    continue;
                }
                let delay = label.delay.saturating_add(ends.delay.as_nanos());
                if delay < fastest[ends.from] {
                    let price = label.price + self.prices[link];
                    self.offer(
                        &mut heap,
                        ends.from,
                        Label { price, delay, made: Made::Over(link as u32, index) },
                    );
                }
            }
            if self.labels.len() > MOST_LABELS {
                return None;
            }
        }
        Some(front)
    }

    /// Keeps a label that can still become a tree in time that is not too dear.
    fn offer(&mut self, heap: &mut Heap, node: usize, label: Label) {
        if label.price <= self.most && label.delay.saturating_add(self.there[node]) <= self.limit {
            heap.push(Reverse((Price(label.price), label.delay, node, self.labels.len() as u32)));
            self.labels.push(label);
        }
    }

    fn collect(&self, index: u32, links: &mut Vec<u32>) {
        match self.labels[index as usize].made {
            Made::Here => {}
            Made::Over(link, below) => {
                links.push(link);
                self.collect(below, links);
            }
            Made::Of(one, two) => {
                self.collect(one, links);
                self.collect(two, links);
            }
        }
    }
}

type Heap = BinaryHeap<Reverse<(Price, u64, usize, u32)>>;

/// A price, by which heaps sort.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Price(f64);

impl Eq for Price {}
impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Price) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Price {
    fn cmp(&self, other: &Price) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Trees that are found one receiver after the other, without proof that they are the cheapest.
pub(crate) struct Guess<'a> {
    network: &'a Network,
    sessions: &'a [Session],
    corridors: Vec<Vec<Corridor>>,
}

impl<'a> Guess<'a> {
    /// Trees over these corridors, one for each receiver of each session.
    pub(crate) fn new(
        network: &'a Network,
        sessions: &'a [Session],
        corridors: Vec<Vec<Corridor>>,
    ) -> Guess<'a> {
        Guess { network, sessions, corridors }
    }

    /// For each session, the tree of the fastest paths.
    pub(crate) fn fastest(&self) -> Vec<Column> {
        let tree = |(owner, (session, corridors)): (u32, (&Session, &Vec<Corridor>))| {
            let paths: Option<Vec<Vec<u32>>> =
                corridors.iter().map(|corridor| corridor.fastest(|_| true)).collect();
            let links = pruned(self.network, session.source, &session.receivers, &paths?.concat());
            Some(Column { owner, links })
        };
        (0..).zip(self.sessions.iter().zip(&self.corridors)).filter_map(tree).collect()
    }

    /// A tree that takes for one receiver after the other the cheapest path in time; what a path before has taken is free.
    fn tree(&self, session: usize, order: &[usize], prices: &[f64]) -> Option<Vec<u32>> {
        let mut prices = prices.to_vec();
        let mut links = Vec::new();
        for &receiver in order {
            let found = self.corridors[session][receiver].cheapest(&prices, 0.0, 1);
            for &link in found.paths.first()? {
                prices[link as usize] = 0.0;
                links.push(link);
            }
        }
        let Session { source, receivers, .. } = &self.sessions[session];
        Some(pruned(self.network, *source, receivers, &links))
    }
}

impl Oracle for Guess<'_> {
    fn value(&self, owner: u32) -> f64 {
        self.sessions[owner as usize].weight
    }

    fn cheapest(&mut self, prices: &[f64]) -> (f64, Vec<Column>) {
        let mut columns = Vec::new();
        for (owner, session) in (0..).zip(self.sessions) {
            let count = session.receivers.len();
            // Each receiver is the first once.
            for first in 0..count {
                let order: Vec<usize> = (0..count).map(|place| (first + place) % count).collect();
                let Some(links) = self.tree(owner as usize, &order, prices) else { break };
                let price: f64 = links.iter().map(|&link| prices[link as usize]).sum();
                if price < session.weight {
                    columns.push(Column { owner, links });
                }
            }
        }
        (0.0, columns)
    }
}

/// When each node is reached first over these links, in nanoseconds; hosts forward nothing.
pub(crate) fn arrivals(network: &Network, source: usize, links: &[u32]) -> BTreeMap<usize, u64> {
    paths_over(network, source, links).into_iter().map(|(node, (time, _))| (node, time)).collect()
}

/// For each node that these links reach, when first and over which link last.
fn paths_over(network: &Network, source: usize, links: &[u32]) -> BTreeMap<usize, (u64, Option<u32>)> {
    let mut leaving: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for &link in links {
        leaving.entry(network.links()[link as usize].from).or_default().push(link);
    }
    let mut reached = BTreeMap::from([(source, (0u64, None))]);
    let mut heap = BinaryHeap::from([Reverse((0u64, source))]);
    while let Some(Reverse((time, node))) = heap.pop() {
        let passes = node == source || network.nodes()[node].forwards;
        if !passes || reached.get(&node).is_none_or(|&(first, _)| time > first) {
            continue;
        }
        for &link in leaving.get(&node).into_iter().flatten() {
            let ends = &network.links()[link as usize];
            let next = time.saturating_add(ends.delay.as_nanos());
            if reached.get(&ends.to).is_none_or(|&(first, _)| next < first) {
                reached.insert(ends.to, (next, Some(link)));
                heap.push(Reverse((next, ends.to)));
            }
        }
    }
    reached
}

/// The links of these that are on the fastest paths to the receivers, ascending: a tree that costs no more and is no slower.
fn pruned(network: &Network, source: usize, receivers: &[usize], links: &[u32]) -> Vec<u32> {
    let reached = paths_over(network, source, links);
    let mut tree = HashSet::new();
    for &receiver in receivers {
        let mut node = receiver;
        while let Some(&(_, Some(link))) = reached.get(&node) {
            if !tree.insert(link) {
                break;
            }
            node = network.links()[link as usize].from;
        }
    }
    let mut tree: Vec<u32> = tree.into_iter().collect();
    tree.sort_unstable();
    tree
}
