//! What each class gets, and why it gets no more.

use super::elastic::{Solved, Ways};
use std::collections::BTreeSet;

/// A flow is at its cap if it has all but this share of it.
const AT_CAP: f64 = 1e-5;
/// A link whose rate is worth less than this share of all priorities is free.
const FREE: f64 = 1e-5;

/// The optimum.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// What each class gets.
    pub shares: Vec<Share>,
    /// For each link, the utility that a bit per second more would add.
    pub prices: Vec<f64>,
    /// What each link carries, in bits per second.
    pub loads: Vec<f64>,
    /// The sum of utilities; an inelastic flow that is on counts with its priority.
    pub utility: f64,
    /// How far the sum may be from the optimum for the flows that are on, as a share of their priorities.
    pub gap: f64,
}

/// What a class gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// How many of its flows are on.
    pub on: u32,
    /// Bits per second of each of them.
    pub rate: f64,
    /// The price of a bit per second on its cheapest ways to all receivers.
    pub cost: f64,
    /// The links with a price that its packets cross; of a class that is off, those of its cheapest ways.
    pub crosses: Vec<u32>,
    /// Why it gets no more.
    pub why: Why,
}

/// Why a class gets no more.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// It has all that it may send.
    Whole,
    /// A bit more is worth less to it than the links on its ways cost.
    Price,
    /// Some or all of its flows are off.
    Off(Blocked),
    /// Not all receivers can be reached in time.
    Unreachable,
}

/// Why no further flow of an inelastic class is on.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocked {
    /// The price on its ways is above what it pays, already without it.
    Price,
    /// With one more, so many bits per second would be left for it at a price that it pays.
    Room {
        /// Bits per second.
        left: f64,
    },
    /// With one more, this class, which pays more, would not be whole.
    Others(usize),
}

/// Explains a solution.
pub(super) fn explain(
    ways: &Ways<'_>,
    on: Vec<u32>,
    blocked: Vec<Option<Blocked>>,
    solved: Solved,
) -> Allocation {
    let has_price = |link: u32| {
        let link = link as usize;
        solved.prices[link] * ways.network.rate(link) > solved.scale * FREE && solved.prices[link] > 0.0
    };
    let shares = on.iter().zip(blocked).enumerate().map(|(class, (&on, blocked))| {
        let cost = solved.costs[class];
        if !ways.reached[class] {
            return Share { on: 0, rate: 0.0, cost, crosses: Vec::new(), why: Why::Unreachable };
        }
        let utility = ways.classes[class].utility;
        let rate = if on == 0 { 0.0 } else { solved.rates[class] / f64::from(on) };
        let why = match blocked {
            Some(blocked) => Why::Off(blocked),
            None if rate >= utility.most() * (1.0 - AT_CAP) => Why::Whole,
            None => Why::Price,
        };
        let links: BTreeSet<u32> = match on {
            0 => ways.cheapest(class, &solved.prices).into_iter().collect(),
            _ => {
                let own = ways.pool.columns().iter().zip(&solved.carried);
                let own = own.filter(|&(way, &rate)| rate > 0.0 && ways.class_of(way) == class);
                own.flat_map(|(way, _)| way.links.iter().copied()).collect()
            }
        };
        let crosses = links.into_iter().filter(|&link| has_price(link)).collect();
        Share { on, rate, cost, crosses, why }
    });
    let shares = shares.collect();
    let prices = (0u32..).zip(&solved.prices);
    let prices = prices.map(|(link, &price)| if has_price(link) { price } else { 0.0 }).collect();
    Allocation { shares, prices, gap: solved.gap(), loads: solved.loads, utility: solved.utility }
}
