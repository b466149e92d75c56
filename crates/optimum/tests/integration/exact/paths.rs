//! All simple paths and all trees in time, one by one.

use std::collections::BTreeSet;
use weir_optimum::{Network, Session};

/// Calls `found` with each simple path between two nodes whose delay is at most `most` nanoseconds.
pub(crate) fn each_path(network: &Network, ends: (usize, usize), most: u64, found: &mut dyn FnMut(&[u32])) {
    let mut walk = Walk::new(network, ends.1, most);
    walk.go(ends.0, 0, found);
}

/// How many simple paths in time there are.
pub(crate) fn count(network: &Network, ends: (usize, usize), most: u64) -> usize {
    let mut number = 0;
    each_path(network, ends, most, &mut |_| number += 1);
    number
}

struct Walk {
    leaving: Vec<Vec<(u32, usize, u64)>>,
    to: usize,
    most: u64,
    /// From each node the least delay to the end, by which dead ends are seen early.
    left: Vec<u64>,
    passed: Vec<bool>,
    path: Vec<u32>,
}

impl Walk {
    fn new(network: &Network, to: usize, most: u64) -> Walk {
        let count = network.nodes().len();
        let mut leaving = vec![Vec::new(); count];
        for (index, link) in (0..).zip(network.links()) {
            leaving[link.from].push((index, link.to, link.delay.as_nanos()));
        }
        let mut left = vec![u64::MAX; count];
        left[to] = 0;
        for _ in 0..count {
            for link in network.links() {
                left[link.from] = left[link.from].min(left[link.to].saturating_add(link.delay.as_nanos()));
            }
        }
        Walk { leaving, to, most, left, passed: vec![false; count], path: Vec::new() }
    }

    fn go(&mut self, node: usize, delay: u64, found: &mut dyn FnMut(&[u32])) {
        if node == self.to {
            return found(&self.path);
        }
        self.passed[node] = true;
        for place in 0..self.leaving[node].len() {
            let (link, next, more) = self.leaving[node][place];
            if !self.passed[next] && (delay + more).saturating_add(self.left[next]) <= self.most {
                self.path.push(link);
                self.go(next, delay + more, found);
                self.path.pop();
            }
        }
        self.passed[node] = false;
    }
}

/// The sets of links that one path in time to each receiver makes; every tree in time is one of them.
pub(crate) fn unions(network: &Network, session: &Session, most: u64) -> BTreeSet<BTreeSet<u32>> {
    let mut unions = BTreeSet::from([BTreeSet::new()]);
    for &receiver in &session.receivers {
        let mut next = BTreeSet::new();
        each_path(network, (session.source, receiver), most, &mut |path| {
            next.extend(
                unions.iter().map(|union: &BTreeSet<u32>| union.iter().chain(path).copied().collect()),
            );
        });
        // A set that contains another one takes more for the same.
        let smallest = next.iter().filter(|&set: &&BTreeSet<u32>| {
            !set.iter().any(|link| {
                let mut less = set.clone();
                less.remove(link);
                next.contains(&less)
            })
        });
        unions = smallest.cloned().collect();
    }
    unions
}
