//! The optimum where every class has a concave utility, by column generation over paths or trees.
//!
//! The master problem has all ways that were found so far, and its dual solution has prices. The cheapest ways at these prices are
//! added until they cost no less than they are worth. Both bounds hold whatever the solver's accuracy was: the lower one is the utility of
//! rates that were shrunk until no link carries too much; the upper one, by Lagrange duality, is what the links' rates are worth at the
//! prices, and what each class has left when it takes what suits it at the price of its cheapest way.

use super::conic::{Program, Solution};
use super::search::{Search, searches};
use super::{Class, Forwarding, Log};
use crate::network::Network;
use crate::packing::{ROUNDING, WIDEST};
use crate::pool::{Column, Pool};
use std::collections::BTreeMap;
use std::ops::Range;

/// The gap at which an answer is exact, as a share of the sum of all priorities.
const GAP: f64 = 1e-11;
/// The same where there are more ways than [`MANY`]: each further round takes long, and rates are exact to a thousandth or better.
const GAP_OF_MANY: f64 = 1e-6;
const MANY: usize = 600;
/// The accuracy of the first round, while most ways are not known yet.
const COARSEST: f64 = 1e-5;
/// The accuracy of the last round. Whether an inelastic flow is whole depends on prices that may differ little.
const FINEST: f64 = 1e-12;
/// How much more exactly a round is solved than the gap of the one before.
const AHEAD: f64 = 0.1;
/// Most rounds.
const MOST_ROUNDS: u32 = 400;
/// Rates below this share of the largest are left out: the solver's interior points give every way a little.
const NOTHING: f64 = 1e-10;

/// What the flows of a class do that take part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// An elastic utility.
    Log(Log),
    /// A bit per second is worth this up to so many.
    Linear { worth: f64, most: f64 },
}

/// The flows of a class that take part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Demand {
    pub(super) count: u32,
    pub(super) form: Form,
}

/// The ways of all classes that were found so far.
pub(super) struct Ways<'a> {
    pub(super) network: &'a Network,
    pub(super) classes: &'a [Class],
    /// The owners of each class: one for each receiver, or one for trees.
    owners: Vec<Range<usize>>,
    class_at: Vec<usize>,
    searches: Vec<Search>,
    /// For each link, that in the other direction.
    backs: Vec<Option<u32>>,
    pub(super) pool: Pool,
    /// Whether all receivers of a class can be reached in time.
    pub(super) reached: Vec<bool>,
    is_first: bool,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Solved {
    /// For each class, bits per second of all its flows together.
    pub(super) rates: Vec<f64>,
    /// For each link, what a bit per second more would add.
    pub(super) prices: Vec<f64>,
    /// For each class, what a bit per second costs on its cheapest ways to all receivers.
    pub(super) costs: Vec<f64>,
    /// What each link carries, in bits per second.
    pub(super) loads: Vec<f64>,
    /// What each way of the pool carries.
    pub(super) carried: Vec<f64>,
    /// The sum of utilities, and a bound that it cannot exceed.
    pub(super) utility: f64,
    pub(super) bound: f64,
    /// The sum of all priorities.
    pub(super) scale: f64,
}

impl Form {
    /// What the first bit per second is worth.
    fn worth(&self) -> f64 {
        match *self {
            Form::Log(log) => log.priority * log.shape,
            Form::Linear { worth, .. } => worth,
        }
    }
}

impl Demand {
    fn priority(&self) -> f64 {
        f64::from(self.count)
            * match self.form {
                Form::Log(log) => log.priority,
                Form::Linear { worth, most } => worth * most,
            }
    }

    fn most(&self) -> f64 {
        f64::from(self.count)
            * match self.form {
                Form::Log(log) => log.cap.bits_per_sec() as f64,
                Form::Linear { most, .. } => most,
            }
    }

    /// The utility of a rate of all flows together.
    fn utility(&self, rate: f64) -> f64 {
        match self.form {
            _ if self.count == 0 => 0.0,
            Form::Log(log) => {
                let count = f64::from(self.count);
                count * log.priority * libm::log1p(log.shape * rate / count)
            }
            Form::Linear { worth, .. } => worth * rate,
        }
    }

    /// What is left of the utility after paying, with the rate that suits the flows best at this price for a bit per second.
    fn surplus(&self, price: f64) -> f64 {
        let suits = match self.form {
            _ if price.is_infinite() => 0.0,
            Form::Log(log) => {
                (f64::from(self.count) * (log.priority / price - 1.0 / log.shape)).clamp(0.0, self.most())
            }
            Form::Linear { worth, .. } if worth > price => self.most(),
            Form::Linear { .. } => 0.0,
        };
        if suits > 0.0 { self.utility(suits) - suits * price } else { 0.0 }
    }
}

/// The master problem's columns and rows by what they stand for.
struct Places {
    unit: f64,
    scale: f64,
    rates: Vec<Option<usize>>,
    ways: Vec<Option<usize>>,
    links: BTreeMap<u32, usize>,
    demands: Vec<Option<usize>>,
    /// For a class and a link that several owners use: their rows.
    shares: BTreeMap<(usize, u32), Vec<(usize, usize)>>,
    /// The owners of a class that use a link, for classes with several.
    users: BTreeMap<(usize, u32), Vec<usize>>,
}

impl<'a> Ways<'a> {
    /// The fastest way of each owner.
    pub(super) fn new(network: &'a Network, classes: &'a [Class], forwarding: Forwarding) -> Ways<'a> {
        let mut ways = Ways {
            network,
            classes,
            owners: Vec::new(),
            class_at: Vec::new(),
            searches: Vec::new(),
            backs: (0..network.links().len() as u32).map(|link| network.back(link)).collect(),
            pool: Pool::default(),
            reached: Vec::new(),
            is_first: true,
        };
        for (number, class) in classes.iter().enumerate() {
            let first = ways.searches.len();
            ways.searches.extend(searches(network, class, forwarding));
            let own = first..ways.searches.len();
            let found: Option<Vec<_>> =
                own.clone().map(|owner| ways.searches[owner].first(network)).collect();
            ways.reached.push(found.is_some());
            for (owner, links) in (first as u32..).zip(found.into_iter().flatten()) {
                ways.pool.add(Column { owner, links });
            }
            ways.class_at.extend(own.clone().map(|_| number));
            ways.owners.push(own);
        }
        ways
    }

    /// The class of a way.
    pub(super) fn class_of(&self, column: &Column) -> usize {
        self.class_at[column.owner as usize]
    }

    /// The links of the cheapest ways of a class at these prices.
    pub(super) fn cheapest(&self, class: usize, prices: &[f64]) -> Vec<u32> {
        let own: Vec<f64> = (0u32..)
            .zip(prices)
            .map(|(link, price)| price * self.classes[class].load(link) + self.answered(class, link, prices))
            .collect();
        let searches = self.owners[class].clone().map(|owner| &self.searches[owner]);
        let first = |search: &Search| search.cheapest(self.network, &own, f64::INFINITY).1.into_iter().next();
        searches.filter_map(first).flatten().collect()
    }

    /// The link over which a class is answered, and the bits there for each bit on this one.
    fn back(&self, class: usize, link: u32) -> Option<(u32, f64)> {
        let answers = self.classes[class].answers;
        let back = if answers > 0.0 { self.backs[link as usize] } else { None };
        back.map(|back| (back, answers))
    }

    /// What the answers to a bit on a link cost.
    fn answered(&self, class: usize, link: u32, prices: &[f64]) -> f64 {
        self.back(class, link).map_or(0.0, |(back, answers)| answers * prices[back as usize])
    }

    /// The optimum for these demands, one for each class.
    pub(super) fn solve(&mut self, demands: &[Demand]) -> Solved {
        let priorities = (0..demands.len()).filter(|&class| self.takes_part(demands, class));
        let scale: f64 = priorities.map(|class| demands[class].priority()).sum();
        let count = self.network.links().len();
        let mut best = Solved {
            rates: vec![0.0; demands.len()],
            prices: vec![0.0; count],
            costs: vec![0.0; demands.len()],
            loads: vec![0.0; count],
            carried: vec![0.0; self.pool.columns().len()],
            utility: 0.0,
            bound: f64::INFINITY,
            scale,
        };
        if scale <= 0.0 {
            return Solved { bound: 0.0, ..best };
        }
        // With the ways of an earlier question few are missing.
        let mut accuracy = if self.is_first { COARSEST } else { FINEST };
        self.is_first = false;
        for _ in 0..MOST_ROUNDS {
            let (program, places) = self.master(demands);
            let Some(solution) = program.solve(accuracy) else { break };
            let found = self.feasible(demands, &places, &solution);
            if found.utility > best.utility || best.bound.is_infinite() {
                let Solved { prices, costs, bound, .. } = best;
                best = Solved { prices, costs, bound, scale, ..found };
            }
            let new = self.price(demands, &places, &solution, &mut best);
            let gap = best.gap();
            let enough = if self.pool.columns().len() > MANY { GAP_OF_MANY } else { GAP };
            if gap <= enough || new == 0 && accuracy <= FINEST {
                break;
            }
            accuracy = if new == 0 { FINEST } else { (gap * AHEAD).clamp(FINEST, accuracy) };
        }
        best.carried.resize(self.pool.columns().len(), 0.0);
        best
    }

    fn takes_part(&self, demands: &[Demand], class: usize) -> bool {
        demands[class].count > 0 && self.reached[class]
    }

    /// The master problem over all ways that were found.
    fn master(&self, demands: &[Demand]) -> (Program, Places) {
        let takes_part = |class: usize| self.takes_part(demands, class);
        let finite = |link: u32| self.network.rate(link as usize).is_finite();
        let rates = self.pool.columns().iter().filter(|column| takes_part(self.class_of(column)));
        let rates = rates.flat_map(|column| &column.links).filter(|&&link| finite(link));
        let mut rates: Vec<f64> = rates.map(|&link| self.network.rate(link as usize)).collect();
        rates.sort_by(f64::total_cmp);
        let most = demands.iter().map(Demand::priority).fold(f64::MIN_POSITIVE, f64::max);
        let mut program = Program::default();
        let mut places = Places {
            unit: rates.get(rates.len() / 2).copied().unwrap_or(1e6),
            scale: 1.0 / most,
            rates: vec![None; demands.len()],
            ways: vec![None; self.pool.columns().len()],
            links: BTreeMap::new(),
            demands: vec![None; self.searches.len()],
            shares: BTreeMap::new(),
            users: BTreeMap::new(),
        };
        let unit = places.unit;
        for (class, demand) in demands.iter().enumerate().filter(|&(class, _)| takes_part(class)) {
            let count = f64::from(demand.count);
            let rate = match demand.form {
                Form::Log(log) => {
                    let rate = program.column(0.0);
                    // What is left of a r + 1 when rates are counted in units and a constant is left out.
                    let shift = count / (log.shape * unit);
                    program.logarithm(rate, count * log.priority * places.scale, shift);
                    rate
                }
                Form::Linear { worth, .. } => program.column(worth * unit * places.scale),
            };
            let cap = program.row(demand.most() / unit);
            program.entry(cap, rate, 1.0);
            places.rates[class] = Some(rate);
            for owner in self.owners[class].clone() {
                let row = program.row(0.0);
                program.entry(row, rate, 1.0);
                places.demands[owner] = Some(row);
            }
        }
        for (number, column) in self.pool.columns().iter().enumerate() {
            let owner = column.owner as usize;
            let class = self.class_at[owner];
            let Some(row) = places.demands[owner] else { continue };
            let way = program.column(0.0);
            program.entry(row, way, -1.0);
            places.ways[number] = Some(way);
            let backs = column.links.iter().filter_map(|&link| self.back(class, link));
            for link in
                column.links.iter().copied().chain(backs.map(|(back, _)| back)).filter(|&link| finite(link))
            {
                places
                    .links
                    .entry(link)
                    .or_insert_with(|| program.row((self.network.rate(link as usize) / unit).min(WIDEST)));
            }
            for &link in column.links.iter().filter(|&&link| finite(link)) {
                if self.owners[class].len() > 1 {
                    let users = places.users.entry((class, link)).or_default();
                    if !users.contains(&owner) {
                        users.push(owner);
                    }
                }
            }
        }
        for (&(class, link), users) in places.users.iter().filter(|(_, users)| users.len() > 1) {
            let share = program.column(0.0);
            program.entry(places.links[&link], share, self.classes[class].load(link));
            let row = |&owner: &usize| {
                let row = program.row(0.0);
                program.entry(row, share, -1.0);
                (owner, row)
            };
            places.shares.insert((class, link), users.iter().map(row).collect());
        }
        for (number, column) in self.pool.columns().iter().enumerate() {
            let Some(way) = places.ways[number] else { continue };
            let (owner, class) = (column.owner as usize, self.class_of(column));
            for (back, answers) in column.links.iter().filter_map(|&link| self.back(class, link)) {
                if let Some(&row) = places.links.get(&back) {
                    program.entry(row, way, answers);
                }
            }
            for &link in column.links.iter().filter(|&&link| finite(link)) {
                match places.shares.get(&(class, link)) {
                    None => program.entry(places.links[&link], way, self.classes[class].load(link)),
                    Some(rows) => {
                        let own = rows.iter().find(|(user, _)| *user == owner);
                        if let Some(&(_, row)) = own {
                            program.entry(row, way, 1.0);
                        }
                    }
                }
            }
        }
        (program, places)
    }

    /// Rates near a solution that the links can carry.
    fn feasible(&self, demands: &[Demand], places: &Places, solution: &Solution) -> Solved {
        let columns = self.pool.columns();
        let of_way = |way: &Option<usize>| way.map_or(0.0, |way| solution.x[way].max(0.0) * places.unit);
        let mut carried: Vec<f64> = places.ways.iter().map(of_way).collect();
        let largest = carried.iter().copied().fold(0.0, f64::max);
        carried.iter_mut().filter(|rate| **rate < largest * NOTHING).for_each(|rate| *rate = 0.0);
        let mut sums = vec![0.0; self.searches.len()];
        for (column, rate) in columns.iter().zip(&carried) {
            sums[column.owner as usize] += rate;
        }
        let mut rates: Vec<f64> = (0..demands.len())
            .map(|class| {
                let least = sums[self.owners[class].clone()].iter().copied().fold(f64::INFINITY, f64::min);
                if self.takes_part(demands, class) { least.min(demands[class].most()) } else { 0.0 }
            })
            .collect();
        for (column, rate) in columns.iter().zip(&mut carried) {
            let whole = sums[column.owner as usize];
            *rate *= if whole > 0.0 { rates[self.class_of(column)] / whole } else { 0.0 };
        }
        let mut loads = self.loads(&carried);
        let full = |(link, load): (usize, &f64)| load / self.network.rate(link);
        let too_much = loads.iter().enumerate().map(full).fold(1.0, f64::max);
        if too_much > 1.0 {
            let less = 1.0 / (too_much * (1.0 + ROUNDING));
            rates.iter_mut().chain(&mut carried).chain(&mut loads).for_each(|rate| *rate *= less);
        }
        let utility = demands.iter().zip(&rates).map(|(demand, rate)| demand.utility(*rate)).sum();
        Solved { rates, loads, carried, utility, ..Solved::default() }
    }

    /// What each link carries: of a class with coding, the largest of the flows to its receivers.
    fn loads(&self, carried: &[f64]) -> Vec<f64> {
        let mut flows: BTreeMap<(usize, u32), BTreeMap<u32, f64>> = BTreeMap::new();
        for (column, &rate) in self.pool.columns().iter().zip(carried).filter(|&(_, &rate)| rate > 0.0) {
            for &link in &column.links {
                let own = flows.entry((self.class_of(column), link)).or_default();
                *own.entry(column.owner).or_default() += rate;
            }
        }
        let mut loads = vec![0.0; self.network.links().len()];
        for ((class, link), own) in flows {
            let largest = own.into_values().fold(0.0, f64::max);
            loads[link as usize] += largest * self.classes[class].load(link);
            if let Some((back, answers)) = self.back(class, link) {
                loads[back as usize] += largest * answers;
            }
        }
        loads
    }

    /// Finds the cheapest ways at the prices of a solution. Improves the bound, and returns how many ways are new.
    fn price(
        &mut self,
        demands: &[Demand],
        places: &Places,
        solution: &Solution,
        best: &mut Solved,
    ) -> usize {
        // The program counts utility in 1 / scale, and rates in units.
        let to_price = |row: usize| solution.prices[row].max(0.0) / (places.scale * places.unit);
        let mut prices = vec![0.0; self.network.links().len()];
        for (&link, &row) in &places.links {
            prices[link as usize] = to_price(row);
        }
        let priced = prices.iter().enumerate().filter(|&(_, &price)| price > 0.0);
        let mut bound: f64 = priced.map(|(link, price)| self.network.rate(link) * price).sum();
        let mut costs = vec![0.0; demands.len()];
        let mut found: Vec<Column> = Vec::new();
        for (class, demand) in demands.iter().enumerate() {
            for owner in self.owners[class].clone() {
                let own = self.own_prices(class, owner, places, solution, &prices);
                let below = places.demands[owner].map_or(demand.form.worth(), to_price);
                let (least, ways) = self.searches[owner].cheapest(self.network, &own, below);
                costs[class] += least * (1.0 - ROUNDING);
                let owner = owner as u32;
                found.extend(ways.into_iter().map(|links| Column { owner, links }));
            }
            if self.takes_part(demands, class) {
                bound += demand.surplus(costs[class]);
            }
        }
        if bound < best.bound {
            (best.bound, best.prices, best.costs) = (bound, prices, costs);
        }
        let mut new = 0;
        for column in found {
            let takes_part = self.takes_part(demands, self.class_of(&column));
            new += usize::from(takes_part && self.pool.add(column));
        }
        new
    }

    /// A link's price as an owner sees it: the owners of a class that use a link share its price as their rows say. A link that none
    /// uses is shared evenly; one that others use is free.
    fn own_prices(
        &self,
        class: usize,
        owner: usize,
        places: &Places,
        solution: &Solution,
        prices: &[f64],
    ) -> Vec<f64> {
        let owners = self.owners[class].len();
        let mut own = vec![0.0; prices.len()];
        for (link, &price) in (0u32..).zip(prices).filter(|&(_, &price)| price > 0.0) {
            let users = places.users.get(&(class, link)).map_or(&[][..], Vec::as_slice);
            let part = match (owners, users, places.shares.get(&(class, link))) {
                (1, ..) => 1.0,
                (_, [], _) => 1.0 / owners as f64,
                (_, users, _) if !users.contains(&owner) => 0.0,
                (_, _, None) => 1.0,
                (_, _, Some(rows)) => {
                    let of = |row: usize| solution.prices[row].max(0.0);
                    let whole: f64 = rows.iter().map(|&(_, row)| of(row)).sum();
                    let mine = rows.iter().find(|(user, _)| *user == owner).map_or(0.0, |&(_, row)| of(row));
                    if whole > 0.0 { mine / whole } else { 1.0 / rows.len() as f64 }
                }
            };
            own[link as usize] = part * price * self.classes[class].load(link);
        }
        for (link, own) in (0u32..).zip(&mut own) {
            *own += self.answered(class, link, prices);
        }
        own
    }
}

impl Solved {
    /// The distance of the utility from its bound, as a share of the sum of priorities.
    pub(super) fn gap(&self) -> f64 {
        if self.scale > 0.0 { ((self.bound - self.utility) / self.scale).max(0.0) } else { 0.0 }
    }
}
