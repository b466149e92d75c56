//! The least cut of a corridor: by how much a flow that ignores the deadline exceeds one that keeps it is not known, but never falls
//! short. Maximum flow by Dinic's algorithm ("Algorithm for solution of a problem of maximum flow in networks with power estimation",
//! Soviet Mathematics Doklady 1970), in whole bits per second.

use crate::corridor::Corridor;
use crate::network::Network;
use std::collections::{HashMap, VecDeque};

/// The rate of links without limit, which no sum of limited rates reaches.
const UNLIMITED: u64 = 1 << 62;

struct Arc {
    to: usize,
    room: u64,
    /// The link in this direction, `None` for the way back.
    link: Option<u32>,
}

struct Residual {
    /// Pairs: a link and its way back.
    arcs: Vec<Arc>,
    leaving: Vec<Vec<usize>>,
    source: usize,
    target: usize,
}

/// The rate of the least cut between two ends over a corridor's links, in bits per second, and its links; infinite if there is none.
pub(crate) fn least(
    network: &Network,
    corridor: &Corridor,
    (source, target): (usize, usize),
) -> (f64, Vec<u32>) {
    let mut residual = Residual::new(network, corridor, source, target);
    let mut flow = 0u64;
    while let Some(levels) = residual.levels() {
        let mut next = vec![0; residual.leaving.len()];
        loop {
            let pushed = residual.push(&levels, &mut next);
            if pushed == 0 {
                break;
            }
            flow += pushed;
            if flow >= UNLIMITED {
                return (f64::INFINITY, Vec::new());
            }
        }
    }
    let reached = residual.reached();
    let crosses = |arc: &usize| !reached[residual.arcs[*arc].to];
    let sides = residual.leaving.iter().zip(&reached).filter(|&(_, &reached)| reached);
    let crossing = sides.flat_map(|(arcs, _)| arcs).filter(|arc| crosses(arc));
    (flow as f64, crossing.filter_map(|&arc| residual.arcs[arc].link).collect())
}

impl Residual {
    /// Nodes are renumbered: only those of the corridor count.
    fn new(network: &Network, corridor: &Corridor, source: usize, target: usize) -> Residual {
        let mut numbers = HashMap::from([(source, 0), (target, 1)]);
        let mut arcs = Vec::new();
        let mut leaving = vec![Vec::new(), Vec::new()];
        for link in corridor.links() {
            let ends = &network.links()[link as usize];
            let mut number = |node: usize| {
                let count = numbers.len();
                *numbers.entry(node).or_insert(count)
            };
            let (from, to) = (number(ends.from), number(ends.to));
            leaving.resize_with(numbers.len(), Vec::new);
            let room = ends.rate.map_or(UNLIMITED, |rate| rate.bits_per_sec());
            leaving[from].push(arcs.len());
            arcs.push(Arc { to, room, link: Some(link) });
            leaving[to].push(arcs.len());
            arcs.push(Arc { to: from, room: 0, link: None });
        }
        Residual { arcs, leaving, source: 0, target: 1 }
    }

    /// For each node, its number of arcs from the source; `None` if the target is not reached.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut levels = vec![u32::MAX; self.leaving.len()];
        levels[self.source] = 0;
        let mut queue = VecDeque::from([self.source]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.leaving[node] {
                let Arc { to, room, .. } = self.arcs[arc];
                if room > 0 && levels[to] == u32::MAX {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        (levels[self.target] != u32::MAX).then_some(levels)
    }

    /// Pushes flow along one path of rising levels; 0 if there is none left.
    fn push(&mut self, levels: &[u32], next: &mut [usize]) -> u64 {
        let mut path: Vec<usize> = Vec::new();
        let mut node = self.source;
        while node != self.target {
            if let Some(&arc) = self.leaving[node].get(next[node]) {
                let Arc { to, room, .. } = self.arcs[arc];
                if room > 0 && levels[to] == levels[node] + 1 {
                    path.push(arc);
                    node = to;
                } else {
                    next[node] += 1;
                }
            } else {
                // A dead end: one step back, and on to the next arc there.
                let Some(arc) = path.pop() else { return 0 };
                node = self.arcs[arc ^ 1].to;
                next[node] += 1;
            }
        }
        let pushed = path.iter().map(|&arc| self.arcs[arc].room).min().unwrap_or(0);
        for arc in path {
            self.arcs[arc].room -= pushed;
            self.arcs[arc ^ 1].room += pushed;
        }
        pushed
    }

    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.leaving.len()];
        reached[self.source] = true;
        let mut stack = vec![self.source];
        while let Some(node) = stack.pop() {
            for &arc in &self.leaving[node] {
                let Arc { to, room, .. } = self.arcs[arc];
                if room > 0 && !std::mem::replace(&mut reached[to], true) {
                    stack.push(to);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::read_csv;

    #[test]
    fn the_least_cut_is_found_among_the_links_that_are_in_time() {
        let network = read_csv(
            "from,to,rate,delay\na,b,5 bit/s,1 ms\nb,d,3 bit/s,1 ms\na,c,4 bit/s,5 ms\nc,d,9 bit/s,5 ms\nb,c,1 bit/s,1 ms\n",
        )
        .unwrap();
        let cut = |ms: u64| {
            let (rate, mut links) = least(&network, &Corridor::new(&network, 0, 2, ms * 1_000_000), (0, 2));
            links.sort_unstable();
            (rate, links)
        };
        assert_eq!(cut(1), (0.0, vec![]));
        assert_eq!(cut(2), (3.0, vec![1]));
        assert_eq!(cut(7), (4.0, vec![1, 4]));
        assert_eq!(cut(10), (8.0, vec![1, 2, 4]));
    }
}
