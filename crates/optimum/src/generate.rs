//! Networks by generator and seed: grids whose links have whole milliseconds and megabits, as in the study of delay-bounded multicast
//! capacity that `docs/capacity.md` names, and random graphs.

use crate::network::{Link, Network, Node};
use weir_base::{Random, Rate, Span};

/// Values of generated links: uniform whole numbers from 1 to these.
#[derive(Debug, Clone, Copy)]
pub struct Values {
    /// The largest rate in Mbit/s.
    pub rate: u64,
    /// The largest delay in milliseconds.
    pub delay: u64,
}

/// The study's values, up to 10 of each.
impl Default for Values {
    fn default() -> Values {
        Values { rate: 10, delay: 10 }
    }
}

/// A square grid of `side` times `side` nodes, named from 1 row by row. Neighbours are joined in both directions, which have the same
/// rate and delay.
pub fn grid(side: usize, values: Values, seed: u64) -> Network {
    let mut random = Random::stream(seed, "grid");
    let pairs = (0..side * side).flat_map(|node| {
        let right = (node % side + 1 < side).then_some((node, node + 1));
        let below = (node / side + 1 < side).then_some((node, node + side));
        right.into_iter().chain(below)
    });
    build(side * side, pairs.collect(), values, &mut random)
}

/// `nodes` nodes on a random tree, and further random pairs up to `pairs` pairs in all; each pair is joined in both directions.
pub fn random(nodes: usize, pairs: usize, values: Values, seed: u64) -> Network {
    let mut random = Random::stream(seed, "random graph");
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for node in 1..nodes {
        joined.push((random.below(node as u64) as usize, node));
    }
    let most = nodes * nodes.saturating_sub(1) / 2;
    let mut known: std::collections::HashSet<(usize, usize)> = joined.iter().copied().collect();
    while joined.len() < pairs.min(most) {
        let (a, b) = (random.below(nodes as u64) as usize, random.below(nodes as u64) as usize);
        if a != b && known.insert((a.min(b), a.max(b))) {
            joined.push((a.min(b), a.max(b)));
        }
    }
    build(nodes, joined, values, &mut random)
}

fn build(nodes: usize, pairs: Vec<(usize, usize)>, values: Values, random: &mut Random) -> Network {
    let node = |number: usize| Node { name: number.to_string(), forwards: true };
    let mut links = Vec::new();
    for (a, b) in pairs {
        let delay = Span::from_millis(1 + random.below(values.delay));
        let rate = Some(Rate::from_mbit_per_sec(1 + random.below(values.rate)));
        links.extend([(a, b), (b, a)].map(|(from, to)| Link { from, to, rate, delay }));
    }
    Network::new((1..=nodes).map(node).collect(), links).expect("every pair joins two of the nodes")
}
