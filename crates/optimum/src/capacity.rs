//! What is asked, checked; and one deadline answered.
//!
//! With one session, links need not be shared: each receiver's flow may use the whole of every link (Ahlswede, Cai, Li and Yeung,
//! "Network information flow", IEEE Transactions on Information Theory 2000), so the answer is the least of the receivers' flows.
//! Several sessions share the links. Without coding, trees share them.

use crate::answer::{Answer, Bounds, Carried, Cut, Delivery, GAP, Piece, Prices};
use crate::coded::{Member, Scope, Sessions};
use crate::corridor::Corridor;
use crate::fewer::fewer;
use crate::network::{Network, Session};
use crate::packing::{Proof, Watch, pack};
use crate::pool::{Column, Pool};
use crate::stop::Stop;
use crate::trees::{Guess, Trees};
use crate::unicast::{Flow, fill, least_cut};
use std::collections::HashMap;
use weir_base::Span;

/// Most receivers of all sessions.
pub const MOST_RECEIVERS: usize = 1_000;
/// Most nodes that forward for which trees are packed exactly.
pub const MOST_NODES_FOR_TREES: usize = 15;
/// Most receivers of a session for which trees are packed exactly: the sets of receivers are all looked at.
const MOST_LEAVES: usize = MOST_NODES_FOR_TREES - 1;
/// Most links times receivers: each receiver keeps the links that are in time, a hundred bytes each.
const MOST_CELLS: usize = 4_000_000;
/// The longest deadline, 1,251 hours; longer ones are taken for this one. Sums of delays up to it are exact in floating point.
pub const LONGEST_DEADLINE: Span = Span::from_nanos(1 << 52);

/// How data is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nodes may code: a link carries the largest of the flows of a session's receivers.
    Coded,
    /// Nodes copy and forward: trees are packed, exactly.
    Trees,
    /// Nodes copy and forward; the lower bound is of trees that were found, the upper one that of coding.
    TreeBounds,
}

/// Why a question cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no session.
    #[error("there is no session")]
    Nothing,
    /// A session has no receiver.
    #[error("the session `{0}` has no receiver")]
    NoReceiver(String),
    /// A session's source, or a receiver that is named before, is a receiver.
    #[error("the session `{session}` has the receiver `{node}`, which is its source or named twice")]
    Twice {
        /// The session.
        session: String,
        /// The node.
        node: String,
    },
    /// A weight is no positive number.
    #[error("the weight of the session `{0}` is not a number above 0")]
    Weight(String),
    /// There are too many receivers for so many links.
    #[error("{receivers} receivers and {links} links are too many")]
    Size {
        /// The receivers of all sessions.
        receivers: usize,
        /// The links.
        links: usize,
    },
    /// Nothing limits what a receiver can receive.
    #[error("from `{from}` to `{to}` leads a path whose links have no rate")]
    Unlimited {
        /// The source.
        from: String,
        /// The receiver.
        to: String,
    },
    /// The network is too large for exact trees.
    #[error(
        "trees are packed exactly in networks of up to {MOST_NODES_FOR_TREES} nodes that forward, and for up to {MOST_LEAVES} \
         receivers a session; here are {nodes} such nodes and {receivers} receivers"
    )]
    Trees {
        /// Nodes that forward.
        nodes: usize,
        /// Receivers of the largest session.
        receivers: usize,
    },
}

/// A network, its sessions, and how it forwards.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    pub(crate) network: &'a Network,
    pub(crate) sessions: Vec<Session>,
    pub(crate) mode: Mode,
    pub(crate) stop: Stop,
}

/// What earlier, shorter deadlines found.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// One for each receiver of a single session, or one for all.
    pools: Vec<Pool>,
    trees: Pool,
}

impl<'a> Problem<'a> {
    /// Checks a question.
    ///
    /// # Errors
    /// The sessions do not fit the network, or it is too large.
    pub fn new(network: &'a Network, sessions: &[Session], mode: Mode) -> Result<Problem<'a>, Refusal> {
        let problem = Problem { network, sessions: sessions.to_vec(), mode, stop: Stop::default() };
        let links = network.links().len();
        let receivers: usize = sessions.iter().map(|session| session.receivers.len()).sum();
        if sessions.is_empty() {
            return Err(Refusal::Nothing);
        }
        if receivers > MOST_RECEIVERS || receivers.saturating_mul(links) > MOST_CELLS {
            return Err(Refusal::Size { receivers, links });
        }
        for session in sessions {
            problem.check(session)?;
        }
        let nodes = network.nodes().iter().filter(|node| node.forwards).count();
        let receivers = sessions.iter().map(|session| session.receivers.len()).max().unwrap_or(0);
        if mode == Mode::Trees && (nodes > MOST_NODES_FOR_TREES || receivers > MOST_LEAVES) {
            return Err(Refusal::Trees { nodes, receivers });
        }
        Ok(problem)
    }

    /// The same question, whose searches this flag stops, also within a round. The bounds so far are then the answer.
    pub fn stopped_by(self, stop: &Stop) -> Problem<'a> {
        Problem { stop: stop.clone(), ..self }
    }

    fn check(&self, session: &Session) -> Result<(), Refusal> {
        let name = |node: usize| self.network.nodes()[node].name.clone();
        if session.receivers.is_empty() {
            return Err(Refusal::NoReceiver(session.name.clone()));
        }
        if !(session.weight.is_finite() && session.weight > 0.0) {
            return Err(Refusal::Weight(session.name.clone()));
        }
        for (index, &receiver) in session.receivers.iter().enumerate() {
            if receiver == session.source || session.receivers[..index].contains(&receiver) {
                return Err(Refusal::Twice { session: session.name.clone(), node: name(receiver) });
            }
            let limit = LONGEST_DEADLINE.as_nanos();
            let corridor = Corridor::new(self.network, session.source, receiver, limit);
            if corridor.fastest(|link| self.network.rate(link as usize).is_infinite()).is_some() {
                return Err(Refusal::Unlimited { from: name(session.source), to: name(receiver) });
            }
        }
        Ok(())
    }

    /// What can be carried by a deadline. After each round `watch` is told the bounds so far; when it says no, they are the answer.
    pub fn capacity(&self, deadline: Span, watch: Watch<'_>) -> Answer {
        self.answer(deadline, &mut Memory::default(), watch)
    }

    /// What can be carried by each of several deadlines, which must not fall: what is found for one helps with the next. If it is
    /// stopped, the answer to that deadline is the last.
    pub fn sweep(&self, deadlines: &[Span], watch: Watch<'_>) -> Vec<Answer> {
        let mut memory = Memory::default();
        let mut answers = Vec::new();
        for &deadline in deadlines {
            answers.push(self.answer(deadline, &mut memory, watch));
            if self.stop.is_set() {
                break;
            }
        }
        answers
    }

    pub(crate) fn answer(&self, deadline: Span, memory: &mut Memory, watch: Watch<'_>) -> Answer {
        let deadline = deadline.min(LONGEST_DEADLINE);
        let limit = deadline.as_nanos();
        let mut answer = match (self.mode, self.sessions.as_slice()) {
            (Mode::Trees, _) => self.trees(limit, memory, watch),
            (_, [session]) => self.one(session, limit, memory, watch),
            _ => self.several(limit, memory, watch),
        };
        if self.mode == Mode::TreeBounds {
            self.guess(&mut answer, limit, memory, watch);
        }
        Answer { deadline, ..answer }
    }

    /// The corridor to each receiver of a session.
    pub(crate) fn corridors(&self, session: &Session, limit: u64) -> Vec<Corridor> {
        let corridor = |&receiver: &usize| {
            Corridor::new(self.network, session.source, receiver, limit).stopped_by(&self.stop)
        };
        session.receivers.iter().map(corridor).collect()
    }

    /// One session with coding.
    fn one(&self, session: &Session, limit: u64, memory: &mut Memory, watch: Watch<'_>) -> Answer {
        let corridors = self.corridors(session, limit);
        memory.pools.resize_with(corridors.len(), Pool::default);
        if corridors.iter().any(Corridor::is_empty) {
            return self.nothing();
        }
        let ends = |receiver: usize| (session.source, session.receivers[receiver]);
        let mut proofs: Vec<Proof> = (0..)
            .zip(&corridors)
            .map(|(receiver, corridor)| least_cut(self.network, corridor, ends(receiver), session.weight))
            .collect();
        let mut order: Vec<usize> = (0..corridors.len()).collect();
        order.sort_by(|&a, &b| proofs[a].upper.total_cmp(&proofs[b].upper));
        let mut lowers = Vec::new();
        for (pool, corridor) in memory.pools.iter_mut().zip(&corridors) {
            fill(self.network, pool, 0, corridor);
            lowers.push(session.weight * pool.rates.iter().sum::<f64>());
        }
        let mut upper = proofs[order[0]].upper;
        for &receiver in &order {
            let others = (0..lowers.len()).filter(|&other| other != receiver);
            let others = others.map(|other| lowers[other]).fold(f64::INFINITY, f64::min);
            let before = upper;
            let mut so_far = |bounds: Bounds| {
                watch(Bounds { lower: bounds.lower.min(others), upper: bounds.upper.min(before) })
            };
            let mut flow = Flow { corridor: &corridors[receiver], value: session.weight };
            let enough = upper * (1.0 - GAP / 2.0);
            let proof = proofs[receiver].clone();
            let pool = &mut memory.pools[receiver];
            let (bounds, proof) =
                pack(self.network, pool, &mut flow, proof, enough, (&self.stop, &mut so_far));
            (lowers[receiver], proofs[receiver]) = (bounds.lower, proof);
            upper = upper.min(bounds.upper);
        }
        let lower = lowers.iter().copied().fold(upper, f64::min);
        let limiting =
            (0..proofs.len()).min_by(|&a, &b| proofs[a].upper.total_cmp(&proofs[b].upper)).unwrap_or(0);
        let rate = lower / session.weight;
        let paths = memory.pools.iter().map(|pool| {
            let mut paths = self.pieces(pool, 0, rate);
            fewer(&mut paths, |link| self.network.rate(link as usize));
            paths
        });
        let paths = paths.collect();
        let mut prices = vec![Vec::new(); proofs.len()];
        prices[limiting] = listed(&proofs[limiting].prices);
        Answer {
            deadline: Span::ZERO,
            bounds: Bounds { lower, upper },
            sessions: vec![Carried { rate, delivery: Delivery::Paths(paths) }],
            cut: self.cut(session, limiting, &corridors[limiting], &proofs[limiting], rate),
            prices: Prices { sessions: vec![prices] },
        }
    }

    /// Links that all paths in time to a receiver cross, whose rates add up to what is carried.
    fn cut(
        &self,
        session: &Session,
        index: usize,
        corridor: &Corridor,
        proof: &Proof,
        rate: f64,
    ) -> Option<Cut> {
        let receiver = session.receivers[index];
        let (_, least) = crate::cut::least(self.network, corridor, (session.source, receiver));
        let priced = proof.prices.iter().enumerate().filter(|&(_, &price)| price > session.weight / 2.0);
        let priced: Vec<u32> = priced.map(|(link, _)| link as u32).collect();
        [least, priced].into_iter().find_map(|links| {
            let sum: f64 = links.iter().map(|&link| self.network.rate(link as usize)).sum();
            let parts = corridor.fastest(|link| !links.contains(&link)).is_none();
            let is_tight = sum <= rate * (1.0 + 2.0 * GAP);
            (parts && is_tight).then_some(Cut { receiver, links, rate: sum })
        })
    }

    /// Several sessions with coding.
    fn several(&self, limit: u64, memory: &mut Memory, watch: Watch<'_>) -> Answer {
        memory.pools.resize_with(1, Pool::default);
        let pool = &mut memory.pools[0];
        let mut sessions =
            Sessions { network: self.network, members: Vec::new(), corridors: Vec::new(), stop: &self.stop };
        let mut prices = Prices::default();
        let mut cuts = Vec::new();
        for session in &self.sessions {
            let own = self.corridors(session, limit);
            let reached = own.iter().all(|corridor| !corridor.is_empty());
            // Sessions keep their receivers' numbers at every deadline, so that columns do.
            let first = sessions.corridors.len() as u32;
            let receivers: Vec<u32> = (first..first + own.len() as u32).collect();
            let mut lists = vec![Vec::new(); own.len()];
            if reached {
                for (&owner, corridor) in receivers.iter().zip(&own) {
                    fill(self.network, pool, owner, corridor);
                }
                let found = own.iter().zip(&session.receivers).map(|(corridor, &receiver)| {
                    least_cut(self.network, corridor, (session.source, receiver), session.weight)
                });
                let found: Vec<_> = found.map(|cut| (cut.upper, listed(&cut.prices))).collect();
                cuts.extend(found.iter().flat_map(|(_, links)| links).map(|&(link, _)| link));
                let least = found.into_iter().enumerate().min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
                if let Some((index, (_, links))) = least {
                    lists[index] = links;
                }
            }
            prices.sessions.push(lists);
            sessions.members.push(Member { weight: session.weight, receivers, reached });
            sessions.corridors.extend(own);
        }
        if sessions.members.iter().all(|member| !member.reached) {
            return self.nothing();
        }
        let upper = crate::packing::cost(self.network, &prices.by_link(self.network.links().len()));
        let start = sessions.start(pool, upper, prices);
        let packed = sessions.pack(pool, Scope::new(self.network, cuts), start, watch);
        let carried = sessions.members.iter().zip(&packed.sessions).map(|(member, &rate)| {
            let paths = member.receivers.iter().map(|&owner| self.pieces(pool, owner, rate));
            let mut paths: Vec<Vec<Piece>> = paths.collect();
            let shares = shares(&paths);
            for own in &mut paths {
                fewer(own, |link| shares.get(&link).copied().unwrap_or(0.0));
            }
            Carried { rate, delivery: Delivery::Paths(paths) }
        });
        Answer {
            deadline: Span::ZERO,
            bounds: packed.bounds,
            sessions: carried.collect(),
            prices: packed.prices,
            cut: None,
        }
    }

    /// Sessions without coding, exactly.
    fn trees(&self, limit: u64, memory: &mut Memory, watch: Watch<'_>) -> Answer {
        let proof = self.cuts(limit);
        if proof.upper <= 0.0 {
            return self.nothing();
        }
        let mut trees = Trees::new(self.network, &self.sessions, limit).stopped_by(&self.stop);
        let pool = &mut memory.trees;
        for column in trees.fastest() {
            pool.add(column);
        }
        let (bounds, proof) = match pool.columns().is_empty() {
            true => (Bounds { lower: 0.0, upper: proof.upper }, proof),
            false => pack(self.network, pool, &mut trees, proof, f64::INFINITY, (&self.stop, watch)),
        };
        let prices = self.sessions.iter().map(|_| vec![listed(&proof.prices)]).collect();
        Answer {
            deadline: Span::ZERO,
            bounds,
            sessions: self.carried_by_trees(pool),
            prices: Prices { sessions: prices },
            cut: None,
        }
    }

    /// What least cuts prove without coding: each tree of a session crosses the cut before any of its receivers.
    fn cuts(&self, limit: u64) -> Proof {
        let mut proof = Proof { upper: 0.0, ..Proof::nothing(self.network) };
        for session in &self.sessions {
            let corridors = self.corridors(session, limit);
            if corridors.iter().any(Corridor::is_empty) {
                continue;
            }
            let ends = session.receivers.iter().map(|&receiver| (session.source, receiver));
            let cut = |(corridor, ends)| least_cut(self.network, corridor, ends, session.weight);
            let cuts = corridors.iter().zip(ends).map(cut);
            let Some(least) = cuts.min_by(|a, b| a.upper.total_cmp(&b.upper)) else { continue };
            proof.prices.iter_mut().zip(&least.prices).for_each(|(price, own)| *price = price.max(*own));
        }
        proof.upper = crate::packing::cost(self.network, &proof.prices);
        proof
    }

    /// Replaces the paths of an answer with coding by trees that were found without proof that they are the best.
    fn guess(&self, answer: &mut Answer, limit: u64, memory: &mut Memory, watch: Watch<'_>) {
        let corridors = self.sessions.iter().map(|session| self.corridors(session, limit)).collect();
        let mut guess = Guess::new(self.network, &self.sessions, corridors);
        let pool = &mut memory.trees;
        for column in guess.fastest() {
            pool.add(column);
        }
        answer.bounds.lower = 0.0;
        answer.cut = None;
        if !pool.columns().is_empty() {
            let upper = answer.bounds.upper;
            let start = Proof { upper, ..Proof::nothing(self.network) };
            let (bounds, _) = pack(self.network, pool, &mut guess, start, f64::INFINITY, (&self.stop, watch));
            answer.bounds.lower = bounds.lower.min(upper);
        }
        answer.sessions = self.carried_by_trees(pool);
    }

    fn carried_by_trees(&self, pool: &Pool) -> Vec<Carried> {
        let carried = |owner: u32| {
            let own = pool.carrying().filter(|(column, _)| column.owner == owner);
            let mut trees: Vec<Piece> = own.map(|(column, rate)| self.tree(column, rate)).collect();
            trees.sort_by(|a, b| (a.delay, &a.links).cmp(&(b.delay, &b.links)));
            Carried { rate: trees.iter().map(|tree| tree.rate).sum(), delivery: Delivery::Trees(trees) }
        };
        (0..self.sessions.len() as u32).map(carried).collect()
    }

    fn tree(&self, column: &Column, rate: f64) -> Piece {
        let session = &self.sessions[column.owner as usize];
        let reached = crate::trees::arrivals(self.network, session.source, &column.links);
        let last = session.receivers.iter().filter_map(|receiver| reached.get(receiver)).max();
        Piece { links: column.links.clone(), rate, delay: Span::from_nanos(last.copied().unwrap_or(0)) }
    }

    /// The paths of one receiver, the fastest first, as far as they are needed for this rate.
    fn pieces(&self, pool: &Pool, owner: u32, rate: f64) -> Vec<Piece> {
        let own = pool.carrying().filter(|(column, _)| column.owner == owner);
        let piece = |(column, rate): (&Column, f64)| {
            let delay = Span::from_nanos(self.network.delay(&column.links));
            Piece { links: column.links.clone(), rate, delay }
        };
        let mut pieces: Vec<Piece> = own.map(piece).collect();
        pieces.sort_by(|a, b| (a.delay, &a.links).cmp(&(b.delay, &b.links)));
        let mut left = rate;
        for piece in &mut pieces {
            piece.rate = piece.rate.min(left);
            left -= piece.rate;
        }
        pieces.retain(|piece| piece.rate > 0.0);
        pieces
    }

    /// The answer where no session reaches all its receivers in time.
    fn nothing(&self) -> Answer {
        let lists = |session: &Session| vec![Vec::new(); session.receivers.len()];
        let carried = |session: &Session| {
            let delivery = match self.mode {
                Mode::Coded => Delivery::Paths(vec![Vec::new(); session.receivers.len()]),
                Mode::Trees | Mode::TreeBounds => Delivery::Trees(Vec::new()),
            };
            Carried { rate: 0.0, delivery }
        };
        Answer {
            deadline: Span::ZERO,
            bounds: Bounds { lower: 0.0, upper: 0.0 },
            sessions: self.sessions.iter().map(carried).collect(),
            prices: Prices { sessions: self.sessions.iter().map(lists).collect() },
            cut: None,
        }
    }
}

/// A session's share of each link: the largest flow that one of its receivers has there.
fn shares(lists: &[Vec<Piece>]) -> HashMap<u32, f64> {
    let mut shares: HashMap<u32, f64> = HashMap::new();
    for paths in lists {
        let mut own: HashMap<u32, f64> = HashMap::new();
        for path in paths {
            for &link in &path.links {
                *own.entry(link).or_default() += path.rate;
            }
        }
        for (link, flow) in own {
            let share = shares.entry(link).or_default();
            *share = share.max(flow);
        }
    }
    shares
}

/// The prices that are not zero, with their links.
fn listed(prices: &[f64]) -> Vec<(u32, f64)> {
    (0..).zip(prices.iter().copied()).filter(|&(_, price)| price > 0.0).collect()
}
