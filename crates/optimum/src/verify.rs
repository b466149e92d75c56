//! A check of an answer that shares no code with the search for it: that its paths and trees are in time, that no link carries too
//! much, and by linear programming duality that nothing can exceed its upper bound.

mod duality;

use crate::answer::{Answer, Carried, Cut, Delivery, Piece};
use crate::network::{Network, Session};
use std::collections::{BTreeMap, VecDeque};
use weir_base::Span;

/// The relative difference that floating point may make in a sum.
const ROUNDING: f64 = 1e-9;

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// Everything.
    All,
    /// Everything but the upper bound, for which too many paths or trees would have to be looked at.
    AllButUpper,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Violation {
    /// A path does not lead from the source to its receiver.
    #[error("session {session}: a path does not lead from the source to the receiver {receiver}")]
    Path {
        /// Index of the session.
        session: usize,
        /// Index of the receiver's node.
        receiver: usize,
    },
    /// A tree does not reach a receiver in time.
    #[error("session {session}: a tree does not reach the receiver {receiver} in time")]
    Tree {
        /// Index of the session.
        session: usize,
        /// Index of the receiver's node.
        receiver: usize,
    },
    /// A path is too slow, or its delay is not what the answer says.
    #[error("session {session}: a path or tree takes {delay}")]
    Late {
        /// Index of the session.
        session: usize,
        /// Its delay.
        delay: Span,
    },
    /// The rates of paths or trees do not add up.
    #[error("session {session}: its rate is not carried to the receiver {receiver}")]
    Rate {
        /// Index of the session.
        session: usize,
        /// Index of the receiver's node.
        receiver: usize,
    },
    /// A link carries more than its rate.
    #[error("link {link} carries {load} bit/s")]
    Load {
        /// Index of the link.
        link: usize,
        /// What it carries.
        load: f64,
    },
    /// The lower bound is not what the sessions carry.
    #[error("the lower bound is {stated} bit/s, but {carried} are carried")]
    Lower {
        /// The bound.
        stated: f64,
        /// What is carried.
        carried: f64,
    },
    /// A price is no number from 0 up, or the prices do not add up to the upper bound.
    #[error("the upper bound is {stated} bit/s, but the prices add up to {priced}")]
    Upper {
        /// The bound.
        stated: f64,
        /// What the prices add up to.
        priced: f64,
    },
    /// The cheapest ways to a session's receivers cost less than its weight.
    #[error("session {session}: its receivers are reached for {price}, below its weight")]
    Duality {
        /// Index of the session.
        session: usize,
        /// What they cost.
        price: f64,
    },
    /// A cut leaves a path, or is not tight.
    #[error("the cut before the receiver {0} leaves a path in time, or is not tight")]
    Cut(usize),
}

/// Checks an answer for these sessions.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify(network: &Network, sessions: &[Session], answer: &Answer) -> Result<Verified, Violation> {
    let check = Check { network, answer };
    let mut loads = vec![0.0; network.links().len()];
    let mut carried = 0.0;
    for (index, (session, of_session)) in sessions.iter().zip(&answer.sessions).enumerate() {
        let shares = match &of_session.delivery {
            Delivery::Paths(lists) => check.paths(index, session, of_session, lists)?,
            Delivery::Trees(trees) => check.trees(index, session, of_session, trees)?,
        };
        for (link, share) in shares {
            loads[link] += share;
        }
        carried += session.weight * of_session.rate;
    }
    for (link, &load) in loads.iter().enumerate() {
        if load > network.rate(link) * (1.0 + ROUNDING) {
            return Err(Violation::Load { link, load });
        }
    }
    let stated = answer.bounds.lower;
    if stated > carried * (1.0 + ROUNDING) {
        return Err(Violation::Lower { stated, carried });
    }
    check.upper()?;
    if let Some(cut) = &answer.cut {
        check.cut(sessions, cut)?;
    }
    check.duality(sessions)
}

/// Whether a number is at least another one; false for what is no number.
fn reaches(value: f64, least: f64) -> bool {
    value >= least
}

struct Check<'a> {
    network: &'a Network,
    answer: &'a Answer,
}

impl Check<'_> {
    /// A session's share of each link with coding: the largest flow of a receiver.
    fn paths(
        &self,
        index: usize,
        session: &Session,
        carried: &Carried,
        lists: &[Vec<Piece>],
    ) -> Result<BTreeMap<usize, f64>, Violation> {
        let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
        for (&receiver, paths) in session.receivers.iter().zip(lists) {
            let mut flows: BTreeMap<usize, f64> = BTreeMap::new();
            let mut sum = 0.0;
            for path in paths {
                self.path(index, session.source, receiver, path)?;
                sum += path.rate;
                for &link in &path.links {
                    *flows.entry(link as usize).or_default() += path.rate;
                }
            }
            if !reaches(sum, carried.rate * (1.0 - ROUNDING)) {
                return Err(Violation::Rate { session: index, receiver });
            }
            for (link, flow) in flows {
                let share = shares.entry(link).or_default();
                *share = share.max(flow);
            }
        }
        Ok(shares)
    }

    /// Whether a path leads from the source to the receiver in time, past no host and no node twice.
    fn path(&self, session: usize, source: usize, receiver: usize, path: &Piece) -> Result<(), Violation> {
        let wrong = Violation::Path { session, receiver };
        let (mut node, mut passed, mut delay) = (source, vec![source], Span::ZERO);
        for &link in &path.links {
            let Some(ends) = self.network.links().get(link as usize) else { return Err(wrong) };
            let may_pass = node == source || self.network.nodes()[node].forwards;
            if ends.from != node || !may_pass || passed.contains(&ends.to) {
                return Err(wrong);
            }
            node = ends.to;
            passed.push(node);
            delay += ends.delay;
        }
        if node != receiver || !reaches(path.rate, 0.0) {
            return Err(wrong);
        }
        if delay > self.answer.deadline || delay != path.delay {
            return Err(Violation::Late { session, delay });
        }
        Ok(())
    }

    /// A session's share of each link without coding: the sum of its trees.
    fn trees(
        &self,
        index: usize,
        session: &Session,
        carried: &Carried,
        trees: &[Piece],
    ) -> Result<BTreeMap<usize, f64>, Violation> {
        let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
        let mut sum = 0.0;
        for tree in trees {
            let times = self.times(session.source, |link| tree.links.contains(&(link as u32)));
            let mut last = Span::ZERO;
            for &receiver in &session.receivers {
                match times[receiver] {
                    Some(time) if time <= self.answer.deadline => last = last.max(time),
                    _ => return Err(Violation::Tree { session: index, receiver }),
                }
            }
            if last != tree.delay {
                return Err(Violation::Late { session: index, delay: last });
            }
            sum += tree.rate;
            for &link in &tree.links {
                *shares.entry(link as usize).or_default() += tree.rate;
            }
        }
        if !reaches(sum, carried.rate * (1.0 - ROUNDING)) || trees.iter().any(|tree| !reaches(tree.rate, 0.0))
        {
            return Err(Violation::Rate { session: index, receiver: session.receivers[0] });
        }
        Ok(shares)
    }

    /// When each node is reached first over the links that may be used (Bellman and Ford, with a queue of the nodes that changed).
    fn times(&self, source: usize, may_use: impl Fn(usize) -> bool) -> Vec<Option<Span>> {
        let mut times = vec![None; self.network.nodes().len()];
        times[source] = Some(Span::ZERO);
        let mut changed = VecDeque::from([source]);
        while let Some(node) = changed.pop_front() {
            let passes = node == source || self.network.nodes()[node].forwards;
            let Some(time) = times[node].filter(|_| passes) else { continue };
            for link in self.network.leaving(node) {
                let ends = &self.network.links()[link];
                let next: Span = time + ends.delay;
                let is_usable = may_use(link) && self.network.rate(link) > 0.0;
                if is_usable && times[ends.to].is_none_or(|known| next < known) {
                    times[ends.to] = Some(next);
                    changed.push_back(ends.to);
                }
            }
        }
        times
    }

    /// Whether the prices add up to the upper bound.
    fn upper(&self) -> Result<(), Violation> {
        let stated = self.answer.bounds.upper;
        let lists = self.answer.prices.sessions.iter().flatten().flatten();
        let mut priced = 0.0;
        let by_link = self.answer.prices.by_link(self.network.links().len());
        for (link, price) in by_link.into_iter().enumerate().filter(|&(_, price)| price > 0.0) {
            priced += self.network.rate(link) * price;
        }
        if lists.clone().any(|&(_, price)| !reaches(price, 0.0))
            || !reaches(stated * (1.0 + ROUNDING), priced)
        {
            return Err(Violation::Upper { stated, priced });
        }
        Ok(())
    }

    /// Whether every path in time to the receiver crosses the cut, whose rate is what is carried.
    fn cut(&self, sessions: &[Session], cut: &Cut) -> Result<(), Violation> {
        let source = sessions[0].source;
        let times = self.times(source, |link| !cut.links.contains(&(link as u32)));
        let leaks = times[cut.receiver].is_some_and(|time| time <= self.answer.deadline);
        let sum: f64 = cut.links.iter().map(|&link| self.network.rate(link as usize)).sum();
        let rate = self.answer.sessions[0].rate;
        let is_tight = (sum - cut.rate).abs() <= sum * ROUNDING && sum <= rate * (1.0 + 1e-5);
        if leaks || !is_tight { Err(Violation::Cut(cut.receiver)) } else { Ok(()) }
    }
}
