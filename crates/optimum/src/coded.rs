//! Several sessions with coding: a packing of link shares, by column generation over paths.
//!
//! A session's share of a link is the largest flow that any of its receivers has there. The master problem has, for each session and
//! link that several of its receivers use, the share as a variable and a row for each such receiver; if one receiver alone uses the
//! link, its flow is the share. Most links are never full, so only those have rows that were too full in a round before. Paths that
//! carried nothing for some rounds are left out until a search finds them again.

use crate::answer::{Bounds, GAP, Prices};
use crate::corridor::Corridor;
use crate::master::Program;
use crate::network::Network;
use crate::packing::{ROUNDING, WIDEST, Watch};
use crate::pool::{Column, Pool};
use crate::prices::{Priced, prove};
use crate::stop::Stop;
use std::collections::{BTreeMap, HashMap};

/// The accuracy of the first round, as a relative gap.
const COARSEST: f64 = 1e-2;
/// The accuracy beyond which no round is repeated.
const FINEST: f64 = 1e-9;
/// How much more exactly the master problem is solved than the gap of the round before.
const AHEAD: f64 = 0.1;
/// The weight of the best prices so far beside those of the master problem, whose prices jump from round to round (Wentges, "Weighted
/// Dantzig-Wolfe decomposition for linear mixed-integer programming", International Transactions in Operational Research 1997).
const CENTRE: f64 = 0.6;
/// Most paths that one search adds.
const PATHS: usize = 3;
/// Rates below this share of a flow are left out.
const NOTHING: f64 = 1e-9;
/// A path that carried less than this share of its flow for so many rounds is left out.
const IDLE: (f64, u32) = (1e-5, 10);
/// After so many rounds in which the gap kept more than this share, the master problem is solved ten times more exactly.
const SLOW: (u32, f64) = (3, 0.95);

/// A session: its weight, the indices of its receivers among all, and whether all of them can be reached in time.
pub(crate) struct Member {
    pub(crate) weight: f64,
    pub(crate) receivers: Vec<u32>,
    pub(crate) reached: bool,
}

/// Sessions, and the corridors of all receivers.
pub(crate) struct Sessions<'a> {
    pub(crate) network: &'a Network,
    pub(crate) members: Vec<Member>,
    pub(crate) corridors: Vec<Corridor>,
    pub(crate) stop: &'a Stop,
}

/// What of the links and the pool is in the master problem.
pub(crate) struct Scope {
    /// Links that have rows. Each path to a receiver must pass one, or its flow would have no bound.
    limited: Vec<bool>,
    /// For each column, how many rounds it carried nothing.
    idle: Vec<u32>,
}

impl Scope {
    /// The links of cuts before all receivers.
    pub(crate) fn new(network: &Network, cuts: impl IntoIterator<Item = u32>) -> Scope {
        let mut limited = vec![false; network.links().len()];
        for link in cuts {
            limited[link as usize] = true;
        }
        Scope { limited, idle: Vec::new() }
    }

    fn has(&self, column: usize) -> bool {
        self.idle.get(column).is_none_or(|&rounds| rounds < IDLE.1)
    }
}

/// What the master problem gave: a rate for each column, and for each receiver prices by link and what a unit of its flow is worth.
struct Round {
    rates: Vec<f64>,
    prices: Vec<Vec<f64>>,
    worth: Vec<f64>,
}

/// The best so far.
pub(crate) struct Packed {
    pub(crate) bounds: Bounds,
    /// The rate of each session.
    pub(crate) sessions: Vec<f64>,
    pub(crate) prices: Prices,
}

impl Sessions<'_> {
    /// The best so far, when this is proved: what the pool's rates carry.
    pub(crate) fn start(&self, pool: &mut Pool, upper: f64, prices: Prices) -> Packed {
        let mut rates = pool.rates.clone();
        let sessions = self.shrink(pool, &mut rates);
        pool.rates = rates;
        let lower = self.worth(&sessions);
        Packed { bounds: Bounds { lower, upper }, sessions, prices }
    }

    /// The sum of the sessions' rates by weight.
    fn worth(&self, sessions: &[f64]) -> f64 {
        self.members.iter().zip(sessions).map(|(member, rate)| member.weight * rate).sum()
    }

    /// Improves both bounds until the gap is closed, nothing improves, or `watch` says stop. `best` has bounds and prices that were
    /// proved before.
    pub(crate) fn pack(
        &self,
        pool: &mut Pool,
        mut scope: Scope,
        mut best: Packed,
        watch: Watch<'_>,
    ) -> Packed {
        scope.idle.resize(pool.columns().len(), 0);
        let mut centre = self.even();
        let every = vec![f64::INFINITY; self.corridors.len()];
        self.price(pool, &mut scope, &mut best, &mut centre, None, &every);
        let (mut accuracy, mut slow) = (COARSEST, 0);
        while best.bounds.gap() > GAP / 2.0 && watch(best.bounds) && !self.stop.is_set() {
            let before = best.bounds.gap();
            let Some(mut round) = self.master(pool, &scope, accuracy) else { break };
            let mut new = self.widen(pool, &mut scope, &round.rates);
            let sessions = self.shrink(pool, &mut round.rates);
            let lower = self.worth(&sessions);
            if lower > best.bounds.lower {
                best.bounds.lower = lower;
                best.sessions = sessions;
                pool.rates = round.rates;
            }
            for weight in [CENTRE, 0.0] {
                let found = self.price(
                    pool,
                    &mut scope,
                    &mut best,
                    &mut centre,
                    Some((&round.prices, weight)),
                    &round.worth,
                );
                new += found;
            }
            if new == 0 && accuracy <= FINEST {
                break;
            }
            slow = if best.bounds.gap() > before * SLOW.1 { slow + 1 } else { 0 };
            let ahead = match slow >= SLOW.0 || new == 0 {
                true => accuracy * AHEAD,
                false => best.bounds.gap() * AHEAD,
            };
            slow %= SLOW.0;
            accuracy = ahead.clamp(FINEST, accuracy.max(FINEST));
        }
        best
    }

    /// Prices by which each link is as dear as it is narrow, for each receiver.
    fn even(&self) -> Vec<Vec<f64>> {
        let rate = |link: usize| self.network.rate(link);
        let even = |corridor: &Corridor| {
            let mut prices = vec![0.0; self.network.links().len()];
            for link in corridor.links().map(|link| link as usize).filter(|&link| rate(link).is_finite()) {
                prices[link] = 1.0 / rate(link);
            }
            prices
        };
        self.corridors.iter().map(even).collect()
    }

    /// Gives rows to the links that these rates fill too much, and counts for how long columns carry nothing. Returns the number of new
    /// rows.
    fn widen(&self, pool: &Pool, scope: &mut Scope, rates: &[f64]) -> usize {
        let mut new = 0;
        for (link, load) in self.loads(pool, rates).into_iter().enumerate() {
            if !scope.limited[link] && load > self.network.rate(link) {
                scope.limited[link] = true;
                new += 1;
            }
        }
        let flows = self.flows(pool, rates);
        scope.idle.resize(rates.len(), 0);
        for ((column, rate), idle) in pool.columns().iter().zip(rates).zip(&mut scope.idle) {
            let carries = *rate > flows[column.owner as usize] * IDLE.0;
            *idle = if carries { 0 } else { idle.saturating_add(1) };
        }
        new
    }

    /// Searches a path for each receiver at prices between those of the centre and those of the master problem (without these, at the
    /// centre). A better proof replaces the best one and becomes the centre. Paths that cost less than they are worth at the prices of
    /// the master problem join it; returns how many.
    fn price(
        &self,
        pool: &mut Pool,
        scope: &mut Scope,
        best: &mut Packed,
        centre: &mut [Vec<f64>],
        master: Option<(&Vec<Vec<f64>>, f64)>,
        worth: &[f64],
    ) -> usize {
        let mut priced: Vec<Option<Priced>> = Vec::new();
        let mut new = 0;
        for ((owner, corridor), &worth) in (0..).zip(&self.corridors).zip(worth) {
            let own_centre = &centre[owner as usize];
            let (own, prices): (Option<&Vec<f64>>, Vec<f64>) = match master {
                None => (None, own_centre.clone()),
                Some((master, weight)) => {
                    let own = &master[owner as usize];
                    let mix = |(centre, own): (&f64, &f64)| weight * centre + (1.0 - weight) * own;
                    (Some(own), own_centre.iter().zip(own).map(mix).collect())
                }
            };
            let found = corridor.cheapest(&prices, f64::INFINITY, PATHS);
            for links in found.paths {
                let cost = own.map_or(0.0, |own| links.iter().map(|&link| own[link as usize]).sum());
                if cost >= worth * (1.0 - ROUNDING) {
                    continue;
                }
                let index = pool.index(Column { owner, links });
                scope.idle.resize(pool.columns().len(), u32::MAX);
                if scope.idle[index] >= IDLE.1 {
                    scope.idle[index] = 0;
                    new += 1;
                }
            }
            let listed = (0..).zip(prices.iter().copied()).filter(|&(_, price)| price > 0.0).collect();
            priced.push(Some(Priced { prices: listed, least: found.least * (1.0 - ROUNDING) }));
        }
        let mut of_member = |member: &Member| {
            let receivers = member.receivers.iter().filter_map(|&index| priced[index as usize].take());
            (member.weight, receivers.collect())
        };
        let sessions = self.members.iter().map(&mut of_member).collect();
        let (upper, prices) = prove(self.network, sessions);
        if upper < best.bounds.upper || master.is_none() {
            // The proof's prices are those of the search, scaled to what the sessions are worth.
            for (member, lists) in self.members.iter().zip(&prices.sessions) {
                for (&receiver, list) in member.receivers.iter().zip(lists) {
                    let own = &mut centre[receiver as usize];
                    own.fill(0.0);
                    list.iter().for_each(|&(link, price)| own[link as usize] = price);
                }
            }
        }
        if upper < best.bounds.upper {
            (best.bounds.upper, best.prices) = (upper, prices);
        }
        new
    }

    /// Solves the master problem.
    fn master(&self, pool: &Pool, scope: &Scope, accuracy: f64) -> Option<Round> {
        let unit = crate::packing::unit(self.network, pool);
        let mut program = Program::default();
        let users = self.users(pool, scope);
        // Each receiver's row keeps its session's rate from being larger than its flow.
        let mut flows = vec![None; self.corridors.len()];
        let reached = self.members.iter().filter(|member| member.reached);
        for member in reached.clone() {
            let mut rows = Vec::new();
            for &receiver in &member.receivers {
                let row = program.row(0.0);
                flows[receiver as usize] = Some(row);
                rows.push((row, 1.0));
            }
            program.column(member.weight, rows);
        }
        let mut capacity: HashMap<u32, usize> = HashMap::new();
        // The row in which a receiver's flow over a link counts.
        let mut counted: HashMap<(u32, u32), usize> = HashMap::new();
        for (&(_, link), receivers) in &users {
            let limit = (self.network.rate(link as usize) / unit).min(WIDEST);
            let row = *capacity.entry(link).or_insert_with(|| program.row(limit));
            if let &[receiver] = receivers.as_slice() {
                counted.insert((receiver, link), row);
                continue;
            }
            let rows: Vec<usize> = receivers.iter().map(|_| program.row(0.0)).collect();
            counted.extend(receivers.iter().zip(&rows).map(|(&receiver, &row)| ((receiver, link), row)));
            program.column(0.0, rows.into_iter().map(|row| (row, -1.0)).chain([(row, 1.0)]));
        }
        let before = reached.count() + users.values().filter(|receivers| receivers.len() > 1).count();
        let taken: Vec<usize> = (0..pool.columns().len()).filter(|&index| scope.has(index)).collect();
        for &index in &taken {
            let column = &pool.columns()[index];
            let limited = column.links.iter().filter_map(|&link| counted.get(&(column.owner, link)));
            let flow = flows[column.owner as usize].map(|row| (row, -1.0));
            program.column(0.0, limited.map(|&row| (row, 1.0)).chain(flow));
        }
        let solution = program.solve(accuracy, self.stop)?;
        let mut prices = vec![vec![0.0; self.network.links().len()]; self.corridors.len()];
        for ((receiver, link), row) in counted {
            prices[receiver as usize][link as usize] = solution.prices[row].max(0.0);
        }
        let mut rates = vec![0.0; pool.columns().len()];
        for (&index, rate) in taken.iter().zip(&solution.x[before..]) {
            rates[index] = rate.max(0.0) * unit;
        }
        let worth = flows.iter().map(|row| row.map_or(0.0, |row| solution.prices[row])).collect();
        Some(Round { rates, prices, worth })
    }

    /// For each session and each link with rows that it uses, the receivers whose paths use it.
    fn users(&self, pool: &Pool, scope: &Scope) -> BTreeMap<(usize, u32), Vec<u32>> {
        let session = self.session_of_receiver();
        let mut users: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
        let taken = pool.columns().iter().enumerate().filter(|&(index, _)| scope.has(index));
        for (_, column) in taken {
            for &link in column.links.iter().filter(|&&link| scope.limited[link as usize]) {
                let receivers = users.entry((session[column.owner as usize], link)).or_default();
                if !receivers.contains(&column.owner) {
                    receivers.push(column.owner);
                }
            }
        }
        users
    }

    fn session_of_receiver(&self) -> Vec<usize> {
        let mut session = vec![0; self.corridors.len()];
        for (index, member) in self.members.iter().enumerate() {
            for &receiver in &member.receivers {
                session[receiver as usize] = index;
            }
        }
        session
    }

    /// Removes what is next to nothing, makes all flows smaller by the factor by which the fullest link carries too much, and returns
    /// the rate of each session.
    fn shrink(&self, pool: &Pool, rates: &mut [f64]) -> Vec<f64> {
        let flows = self.flows(pool, rates);
        for (column, rate) in pool.columns().iter().zip(rates.iter_mut()) {
            if *rate < flows[column.owner as usize] * NOTHING {
                *rate = 0.0;
            }
        }
        let loads = self.loads(pool, rates);
        let fullest = loads.iter().enumerate().map(|(link, load)| load / self.network.rate(link));
        let too_much = fullest.fold(1.0, f64::max) * (1.0 + ROUNDING);
        for rate in rates.iter_mut() {
            *rate /= too_much;
        }
        let flows = self.flows(pool, rates);
        let least = |member: &Member| {
            member.receivers.iter().map(|&receiver| flows[receiver as usize]).fold(f64::INFINITY, f64::min)
        };
        self.members.iter().map(least).collect()
    }

    /// The flow to each receiver.
    fn flows(&self, pool: &Pool, rates: &[f64]) -> Vec<f64> {
        let mut flows = vec![0.0; self.corridors.len()];
        for (column, rate) in pool.columns().iter().zip(rates) {
            flows[column.owner as usize] += rate;
        }
        flows
    }

    /// The load of each link: the sum of the sessions' shares.
    fn loads(&self, pool: &Pool, rates: &[f64]) -> Vec<f64> {
        let mut own: HashMap<(u32, u32), f64> = HashMap::new();
        for (column, rate) in pool.columns().iter().zip(rates).filter(|&(_, &rate)| rate > 0.0) {
            for &link in &column.links {
                *own.entry((column.owner, link)).or_default() += rate;
            }
        }
        let session = self.session_of_receiver();
        // Sorted, so that sums are the same each time.
        let mut shares: BTreeMap<(usize, u32), f64> = BTreeMap::new();
        for ((receiver, link), load) in own {
            let share = shares.entry((session[receiver as usize], link)).or_default();
            *share = share.max(load);
        }
        let mut loads = vec![0.0; self.network.links().len()];
        for ((_, link), share) in shares {
            loads[link as usize] += share;
        }
        loads
    }
}
