//! Packing columns, which each take an equal share of all their links, by column generation.
//!
//! The upper bound is Farley's ("A note on bounding a class of linear programming problems, including cutting stock problems",
//! Operations Research 1990): prices of the master problem, divided by the least price that any column has for its value, are
//! prices that prove something. The lower bound is the master's solution, shrunk until no link carries too much. Both hold exactly
//! whatever the solver's accuracy was.

use crate::answer::{Bounds, GAP};
use crate::master::Program;
use crate::network::Network;
use crate::pool::{Column, Pool};
use crate::stop::Stop;

/// The accuracy of the first round, as a relative gap.
const COARSEST: f64 = 1e-2;
/// The accuracy beyond which no round is repeated.
const FINEST: f64 = 1e-9;
/// How much more exactly the master problem is solved than the gap of the round before.
const AHEAD: f64 = 0.1;
/// Rates below this share of the whole are left out: the solver's interior points give every column a little.
const NOTHING: f64 = 1e-9;
/// A link that could carry this many times what all carry is taken for no wider: larger numbers would cost accuracy.
pub(crate) const WIDEST: f64 = 1e4;
/// A least price is computed with rounding errors, far smaller than this share of it.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Says whether to go on after a round with these bounds.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(Bounds) -> bool;

/// Finds columns that are cheap for what they are worth.
pub(crate) trait Oracle {
    /// The value of a unit of rate for an owner.
    fn value(&self, owner: u32) -> f64;

    /// At these prices, by link: a lower bound on price by value over all columns, and columns that are worth more than their price.
    fn cheapest(&mut self, prices: &[f64]) -> (f64, Vec<Column>);
}

/// What was proved so far.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    /// Nothing exceeds this.
    pub(crate) upper: f64,
    /// Prices by link that prove it.
    pub(crate) prices: Vec<f64>,
}

impl Proof {
    /// Nothing is proved.
    pub(crate) fn nothing(network: &Network) -> Proof {
        Proof { upper: f64::INFINITY, prices: vec![0.0; network.links().len()] }
    }
}

/// Packs columns into the links until the gap is closed, at least `enough` is carried, nothing improves, or it is stopped. Every
/// column has a link with a rate. The rates of the pool are those of the best packing.
pub(crate) fn pack(
    network: &Network,
    pool: &mut Pool,
    oracle: &mut dyn Oracle,
    mut proof: Proof,
    enough: f64,
    (stop, watch): (&Stop, Watch<'_>),
) -> (Bounds, Proof) {
    let carried = |pool: &Pool, oracle: &dyn Oracle| -> f64 {
        pool.carrying().map(|(column, rate)| oracle.value(column.owner) * rate).sum()
    };
    let mut lower = carried(pool, oracle);
    let mut accuracy = COARSEST;
    loop {
        let bounds = Bounds { lower, upper: proof.upper };
        if bounds.gap() <= GAP / 2.0 || lower >= enough || !watch(bounds) || stop.is_set() {
            return (bounds, proof);
        }
        let values: Vec<f64> = pool.columns().iter().map(|column| oracle.value(column.owner)).collect();
        let Some((mut rates, prices)) = master(network, pool, &values, accuracy, stop) else {
            return (bounds, proof);
        };
        shrink(network, pool, &mut rates);
        let now: f64 = values.iter().zip(&rates).map(|(value, rate)| value * rate).sum();
        if now > lower {
            lower = now;
            pool.rates = rates;
        }
        let (least, columns) = oracle.cheapest(&prices);
        let least = least * (1.0 - ROUNDING);
        let upper = cost(network, &prices) / least;
        if upper < proof.upper {
            proof = Proof { upper, prices: prices.iter().map(|price| price / least).collect() };
        }
        let mut new = 0;
        for column in columns {
            new += usize::from(pool.add(column));
        }
        let gap = Bounds { lower, upper: proof.upper }.gap();
        if new == 0 && accuracy <= FINEST {
            return (Bounds { lower, upper: proof.upper }, proof);
        }
        let ahead = if new == 0 { accuracy * AHEAD * AHEAD } else { gap * AHEAD };
        accuracy = ahead.clamp(FINEST, accuracy.max(FINEST));
    }
}

/// The sum of all rates times their prices.
pub(crate) fn cost(network: &Network, prices: &[f64]) -> f64 {
    let priced = prices.iter().enumerate().filter(|&(_, &price)| price > 0.0);
    priced.map(|(link, price)| network.rate(link) * price).sum()
}

/// Solves the master problem: the columns' rates, and prices by link.
fn master(
    network: &Network,
    pool: &Pool,
    values: &[f64],
    accuracy: f64,
    stop: &Stop,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let unit = unit(network, pool);
    let mut program = Program::default();
    let mut rows = vec![usize::MAX; network.links().len()];
    let mut links = Vec::new();
    for (column, &value) in pool.columns().iter().zip(values) {
        let limited =
            column.links.iter().map(|&link| link as usize).filter(|&link| network.rate(link).is_finite());
        let entries: Vec<(usize, f64)> = limited
            .map(|link| {
                if rows[link] == usize::MAX {
                    rows[link] = program.row((network.rate(link) / unit).min(WIDEST));
                    links.push(link);
                }
                (rows[link], 1.0)
            })
            .collect();
        program.column(value, entries);
    }
    let solution = program.solve(accuracy, stop)?;
    let mut prices = vec![0.0; rows.len()];
    for (link, price) in links.into_iter().zip(solution.prices) {
        prices[link] = price.max(0.0);
    }
    Some((solution.x.into_iter().map(|rate| rate.max(0.0) * unit).collect(), prices))
}

/// The rate that the master problem counts in: what is carried already, so that its numbers are near 1 and its accuracy is relative.
pub(crate) fn unit(network: &Network, pool: &Pool) -> f64 {
    let carried: f64 = pool.rates.iter().sum();
    if carried > 0.0 {
        return carried;
    }
    let links = pool.columns().iter().flat_map(|column| &column.links);
    let rates = links.map(|&link| network.rate(link as usize)).filter(|rate| rate.is_finite());
    rates.fold(1.0, f64::max)
}

/// Removes what is next to nothing, and makes all rates smaller by the factor by which the fullest link carries too much.
fn shrink(network: &Network, pool: &Pool, rates: &mut [f64]) {
    let whole: f64 = rates.iter().sum();
    let mut loads = vec![0.0; network.links().len()];
    for (column, rate) in pool.columns().iter().zip(rates.iter_mut()) {
        if *rate < whole * NOTHING {
            *rate = 0.0;
        }
        for &link in &column.links {
            loads[link as usize] += *rate;
        }
    }
    let too_much = loads.iter().enumerate().map(|(link, load)| load / network.rate(link)).fold(1.0, f64::max);
    for rate in rates {
        *rate /= too_much * (1.0 + ROUNDING);
    }
}
