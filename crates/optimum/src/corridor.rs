//! The links over which a receiver can be reached in time, and shortest paths with a bound among them: least price within the
//! deadline, or least delay within a price.
//!
//! Labels with dominance (Desrochers and Soumis, "A generalized permanent labelling algorithm for the shortest path problem with
//! time windows", INFOR 1988), taken in the order of A*. It differs in that a node keeps one number instead of a list of labels:
//! labels reach a node in the order of what is minimised, so only one that takes less of what is bounded is of use.

use crate::network::Network;
use crate::stop::Stop;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Most labels of a search, which then need half a gigabyte. A search that needs more returns a bound.
const MOST_LABELS: usize = 8_000_000;
/// A search looks whether it is stopped each time it has taken so many labels, which takes less than a millisecond.
const LOOK: u32 = 1024;

/// No label: the parent of the first one.
const NONE: u32 = u32::MAX;

/// A link of a corridor.
#[derive(Debug, Clone, Copy)]
struct Hop {
    link: u32,
    from: u32,
    to: u32,
    /// Delay in nanoseconds.
    delay: f64,
}

/// The links that lie on a path from a source to a target whose delay is within the deadline.
#[derive(Debug, Clone)]
pub(crate) struct Corridor {
    source: usize,
    target: usize,
    /// Nanoseconds.
    deadline: f64,
    hops: Vec<Hop>,
    /// For each node, where its hops begin in `hops`, which are sorted by the node that they leave.
    leaving: Vec<u32>,
    /// The hops, sorted by the node that they lead to, and where each node's begin.
    entering: Vec<u32>,
    entered: Vec<u32>,
    /// For each node, the least delay from there to the target.
    left: Vec<f64>,
    stop: Stop,
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Found {
    /// No path is cheaper than this; infinite if there is no path.
    pub(crate) least: f64,
    /// The links of paths, the best first.
    pub(crate) paths: Vec<Vec<u32>>,
}

/// A number by which heaps sort.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Length(f64);

impl Eq for Length {}
impl PartialOrd for Length {
    fn partial_cmp(&self, other: &Length) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Length {
    fn cmp(&self, other: &Length) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The length of each hop in some sense, and the least length that is left from each node.
struct Lengths<'a> {
    of: &'a [f64],
    left: &'a [f64],
}

/// The first part of a path.
#[derive(Clone, Copy)]
struct Label {
    parent: u32,
    hop: u32,
    node: u32,
    /// What is minimised, so far.
    key: f64,
    /// What is bounded, so far.
    bounded: f64,
}

impl Corridor {
    /// The corridor from a source to a target. Links of rate zero carry nothing, and hosts forward nothing.
    pub(crate) fn new(network: &Network, source: usize, target: usize, deadline: u64) -> Corridor {
        let passes = |link: usize| {
            let ends = &network.links()[link];
            let begins = ends.from == source || network.nodes()[ends.from].forwards;
            let leads = ends.to == target || network.nodes()[ends.to].forwards;
            begins && leads && ends.from != target && ends.to != source && network.rate(link) > 0.0
        };
        let deadline = deadline as f64;
        let delay = |link: usize| network.links()[link].delay.as_nanos() as f64;
        let count = network.nodes().len();
        let there = distances(count, source, |node| {
            network
                .leaving(node)
                .filter(|&link| passes(link))
                .map(|link| (network.links()[link].to, delay(link)))
        });
        let left = distances(count, target, |node| {
            network
                .entering(node)
                .filter(|&link| passes(link))
                .map(|link| (network.links()[link].from, delay(link)))
        });
        let mut hops: Vec<Hop> = Vec::new();
        let mut leaving = Vec::with_capacity(count + 1);
        for (node, reached) in there.iter().enumerate() {
            leaving.push(hops.len() as u32);
            for link in network.leaving(node).filter(|&link| passes(link)) {
                let to = network.links()[link].to;
                if reached + delay(link) + left[to] <= deadline {
                    hops.push(Hop {
                        link: link as u32,
                        from: node as u32,
                        to: to as u32,
                        delay: delay(link),
                    });
                }
            }
        }
        leaving.push(hops.len() as u32);
        let (entering, entered) = sorted_by_end(&hops, count);
        let stop = Stop::default();
        Corridor { source, target, deadline, hops, leaving, entering, entered, left, stop }
    }

    /// The same, with searches that this flag stops. They then return a bound, as searches that need too many labels do.
    pub(crate) fn stopped_by(self, stop: &Stop) -> Corridor {
        Corridor { stop: stop.clone(), ..self }
    }

    /// Whether its searches are stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Whether no path is in time.
    pub(crate) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// Its links.
    pub(crate) fn links(&self) -> impl Iterator<Item = u32> + '_ {
        self.hops.iter().map(|hop| hop.link)
    }

    /// The cheapest path in time and, while they are cheaper than `below`, ever faster ones: at most `wanted` in all.
    pub(crate) fn cheapest(&self, prices: &[f64], below: f64, wanted: usize) -> Found {
        let of: Vec<f64> = self.hops.iter().map(|hop| prices[hop.link as usize]).collect();
        let left = self.left_by(&of);
        let delays: Vec<f64> = self.hops.iter().map(|hop| hop.delay).collect();
        let key = Lengths { of: &of, left: &left };
        let bounded = Lengths { of: &delays, left: &self.left };
        self.search(&key, &bounded, self.deadline, below, wanted)
    }

    /// The least delay, in nanoseconds, of a path that is cheaper than `below`.
    pub(crate) fn fastest_below(&self, prices: &[f64], below: f64) -> Option<u64> {
        let of: Vec<f64> = self.hops.iter().map(|hop| prices[hop.link as usize]).collect();
        let left = self.left_by(&of);
        let delays: Vec<f64> = self.hops.iter().map(|hop| hop.delay).collect();
        let key = Lengths { of: &delays, left: &self.left };
        let bounded = Lengths { of: &of, left: &left };
        let found = self.search(&key, &bounded, below, f64::INFINITY, 1);
        (found.least <= self.deadline).then_some(found.least as u64)
    }

    /// The fastest path over usable links, if it is in time.
    pub(crate) fn fastest(&self, usable: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
        let of: Vec<f64> =
            self.hops.iter().map(|hop| if usable(hop.link) { hop.delay } else { f64::INFINITY }).collect();
        let left = self.left_by(&of);
        let (mut node, mut path) = (self.source, Vec::new());
        if left[node] > self.deadline {
            return None;
        }
        while node != self.target {
            let best = self.of_node(node).min_by(|&a, &b| {
                let length = |hop: usize| of[hop] + left[self.hops[hop].to as usize];
                length(a)
                    .total_cmp(&length(b))
                    .then(self.hops[a].delay.total_cmp(&self.hops[b].delay).reverse())
            })?;
            // Links without delay could lead in a circle, which has more hops than there are.
            if path.len() > self.hops.len() {
                return None;
            }
            path.push(self.hops[best].link);
            node = self.hops[best].to as usize;
        }
        Some(path)
    }

    fn of_node(&self, node: usize) -> std::ops::Range<usize> {
        self.leaving[node] as usize..self.leaving[node + 1] as usize
    }

    /// For each node, the least length from there to the target (Dijkstra).
    fn left_by(&self, of: &[f64]) -> Vec<f64> {
        distances(self.left.len(), self.target, |node| {
            let range = self.entered[node] as usize..self.entered[node + 1] as usize;
            self.entering[range].iter().map(|&hop| (self.hops[hop as usize].from as usize, of[hop as usize]))
        })
    }

    fn search(
        &self,
        key: &Lengths<'_>,
        bounded: &Lengths<'_>,
        most: f64,
        below: f64,
        wanted: usize,
    ) -> Found {
        let mut found = Found { least: f64::INFINITY, paths: Vec::new() };
        let start = key.left[self.source];
        if self.is_empty() || !start.is_finite() || bounded.left[self.source] > most {
            return found;
        }
        let mut passed = vec![f64::INFINITY; self.left.len()];
        let mut labels =
            vec![Label { parent: NONE, hop: NONE, node: self.source as u32, key: 0.0, bounded: 0.0 }];
        let mut heap = BinaryHeap::from([Reverse((Length(start), Length(bounded.left[self.source]), 0u32))]);
        let mut taken = 0u32;
        while let Some(Reverse((estimate, _, index))) = heap.pop() {
            if !found.paths.is_empty() && (found.paths.len() >= wanted || estimate.0 >= below) {
                break;
            }
            taken = taken.wrapping_add(1);
            if labels.len() > MOST_LABELS || taken % LOOK == 1 && self.stop.is_set() {
                // This label and what is left in the heap are at least as long.
                if found.paths.is_empty() {
                    found.least = estimate.0;
                }
                break;
            }
            let label = labels[index as usize];
            let node = label.node as usize;
            if label.bounded >= passed[node] {
                continue;
            }
            passed[node] = label.bounded;
            if node == self.target {
                if found.paths.is_empty() {
                    found.least = label.key;
                }
                found.paths.push(self.path(&labels, index));
                continue;
            }
            for hop in self.of_node(node) {
                let to = self.hops[hop].to as usize;
                let next = Label {
                    parent: index,
                    hop: hop as u32,
                    node: to as u32,
                    key: label.key + key.of[hop],
                    bounded: label.bounded + bounded.of[hop],
                };
                let in_all = next.bounded + bounded.left[to];
                if in_all <= most && next.bounded < passed[to] {
                    heap.push(Reverse((
                        Length(next.key + key.left[to]),
                        Length(in_all),
                        labels.len() as u32,
                    )));
                    labels.push(next);
                }
            }
        }
        found
    }

    fn path(&self, labels: &[Label], mut index: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while labels[index as usize].parent != NONE {
            let label = labels[index as usize];
            path.push(self.hops[label.hop as usize].link);
            index = label.parent;
        }
        path.reverse();
        path
    }
}

/// The least length from a node to every other one, over the neighbours that `next` gives with their lengths (Dijkstra).
fn distances<I: Iterator<Item = (usize, f64)>>(
    count: usize,
    start: usize,
    next: impl Fn(usize) -> I,
) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; count];
    least[start] = 0.0;
    let mut heap = BinaryHeap::from([Reverse((Length(0.0), start))]);
    while let Some(Reverse((Length(length), node))) = heap.pop() {
        if length > least[node] {
            continue;
        }
        for (to, more) in next(node) {
            if length + more < least[to] {
                least[to] = length + more;
                heap.push(Reverse((Length(length + more), to)));
            }
        }
    }
    least
}

/// The hops in the order of the nodes that they lead to, and where each node's begin.
fn sorted_by_end(hops: &[Hop], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0u32; count + 1];
    for hop in hops {
        begins[hop.to as usize + 1] += 1;
    }
    for node in 0..count {
        begins[node + 1] += begins[node];
    }
    let mut sorted: Vec<u32> = (0..hops.len() as u32).collect();
    sorted.sort_by_key(|&hop| hops[hop as usize].to);
    (sorted, begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::read_csv;

    const DIAMOND: &str = "from,to,rate,delay\na,b,1 Mbit/s,1 ms\nb,d,1 Mbit/s,1 ms\na,c,1 Mbit/s,5 ms\n\
        c,d,1 Mbit/s,5 ms\nb,c,1 Mbit/s,1 ms\nd,a,1 Mbit/s,1 ms\n";

    fn corridor(milliseconds: u64) -> Corridor {
        Corridor::new(&read_csv(DIAMOND).unwrap(), 0, 2, milliseconds * 1_000_000)
    }

    #[test]
    fn only_links_on_a_path_in_time_are_in_a_corridor() {
        let links = |ms: u64| corridor(ms).links().collect::<Vec<_>>();
        assert_eq!(links(1), [] as [u32; 0]);
        assert_eq!(links(2), [0, 1]);
        let mut seven = links(7);
        seven.sort_unstable();
        assert_eq!(seven, [0, 1, 3, 4]);
        // The link that leads back to the source is on no path.
        assert_eq!(links(100).len(), 5);
    }

    #[test]
    fn the_cheapest_path_is_the_cheapest_in_time() {
        let prices = [3.0, 3.0, 1.0, 1.0, 0.0, 0.0];
        let found = |ms: u64| corridor(ms).cheapest(&prices, 0.0, 1);
        assert_eq!((found(2).least, found(2).paths), (6.0, vec![vec![0, 1]]));
        assert_eq!((found(7).least, found(7).paths), (4.0, vec![vec![0, 4, 3]]));
        assert_eq!((found(10).least, found(10).paths), (2.0, vec![vec![2, 3]]));
        assert!(found(1).least.is_infinite());
    }

    #[test]
    fn further_paths_are_faster_and_still_below_the_limit() {
        let prices = [3.0, 3.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(corridor(10).cheapest(&prices, 5.0, 9).paths, [vec![2, 3], vec![0, 4, 3]]);
    }

    #[test]
    fn the_fastest_path_below_a_price_gives_the_next_deadline() {
        let prices = [3.0, 3.0, 1.0, 1.0, 0.0, 0.0];
        let next = |below: f64| corridor(100).fastest_below(&prices, below);
        assert_eq!(next(7.0), Some(2_000_000));
        assert_eq!(next(5.0), Some(7_000_000));
        assert_eq!(next(3.0), Some(10_000_000));
        assert_eq!(next(1.0), None);
        assert_eq!(corridor(100).fastest(|link| link != 1), Some(vec![0, 4, 3]));
    }
}
