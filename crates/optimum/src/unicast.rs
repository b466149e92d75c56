//! Paths as columns: the most that a flow over paths in time carries from a source to one receiver.

use crate::corridor::Corridor;
use crate::cut;
use crate::network::Network;
use crate::packing::{Oracle, Proof};
use crate::pool::{Column, Pool};

/// Most paths that one search adds: more make the master problem larger than they help.
const PATHS: usize = 4;
/// Most paths of the flow that is found first.
const FIRST: usize = 200;
/// The flow to one receiver.
pub(crate) struct Flow<'a> {
    pub(crate) corridor: &'a Corridor,
    /// The value of a unit of its rate.
    pub(crate) value: f64,
}

impl Oracle for Flow<'_> {
    fn value(&self, _: u32) -> f64 {
        self.value
    }

    fn cheapest(&mut self, prices: &[f64]) -> (f64, Vec<Column>) {
        let found = self.corridor.cheapest(prices, self.value, PATHS);
        let paths = found.paths.into_iter().filter(|_| found.least < self.value);
        (found.least / self.value, paths.map(|links| Column { owner: 0, links }).collect())
    }
}

/// Adds paths of a flow through one corridor that takes the fastest path with room again and again. If the pool carries nothing yet,
/// it carries this flow.
pub(crate) fn fill(network: &Network, pool: &mut Pool, owner: u32, corridor: &Corridor) {
    let mut room: Vec<f64> = (0..network.links().len()).map(|link| network.rate(link)).collect();
    let is_first = pool.carrying().next().is_none();
    for _ in 0..FIRST {
        if corridor.is_stopped() {
            return;
        }
        let Some(path) = corridor.fastest(|link| room[link as usize] > 0.0) else { return };
        let rate = path.iter().map(|&link| room[link as usize]).fold(f64::INFINITY, f64::min);
        for &link in &path {
            room[link as usize] -= rate;
        }
        let is_new = pool.add(Column { owner, links: path });
        if let Some(carried) = pool.rates.last_mut().filter(|_| is_first && is_new) {
            *carried = rate;
        }
    }
}

/// What the least cut of a corridor proves about the flow through it, when a unit of its rate has this value.
pub(crate) fn least_cut(network: &Network, corridor: &Corridor, ends: (usize, usize), value: f64) -> Proof {
    let mut proof = Proof::nothing(network);
    let (upper, links) = cut::least(network, corridor, ends);
    proof.upper = upper * value;
    for link in links {
        proof.prices[link as usize] = value;
    }
    proof
}
