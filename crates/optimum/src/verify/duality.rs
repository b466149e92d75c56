//! Whether the cheapest ways in time to a session's receivers cost at least its weight.
//!
//! Paths: labels in the order of their delay, each node keeping those that are cheaper than all faster ones. Trees: a search over the
//! paths of one receiver after the other, where links that were taken before are free. Neither needs the estimates or the dynamic
//! programs by which answers are found.

use super::{Check, ROUNDING, Verified, Violation};
use crate::answer::Delivery;
use crate::network::Session;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_base::Span;

/// Most labels or steps for a session.
const MOST_STEPS: usize = 20_000_000;

/// There were too many labels or steps.
struct TooMany;

impl Check<'_> {
    pub(super) fn duality(&self, sessions: &[Session]) -> Result<Verified, Violation> {
        let mut verified = Verified::All;
        for (index, session) in sessions.iter().enumerate() {
            let lists = &self.answer.prices.sessions[index];
            let is_tree = lists.len() == 1
                && session.receivers.len() > 1
                && matches!(self.answer.sessions[index].delivery, Delivery::Trees(_));
            let price = if is_tree {
                self.cheapest_tree(session, &self.by_link(&lists[0]))
            } else {
                let mut prices = session.receivers.iter().zip(lists);
                prices.try_fold(0.0, |sum, (&receiver, list)| {
                    Ok(sum + self.cheapest_path(session, receiver, &self.by_link(list))?)
                })
            };
            match price {
                Ok(price) if price >= session.weight * (1.0 - ROUNDING) => {}
                Ok(price) => return Err(Violation::Duality { session: index, price }),
                Err(TooMany) => verified = Verified::AllButUpper,
            }
        }
        Ok(verified)
    }

    fn by_link(&self, list: &[(u32, f64)]) -> Vec<f64> {
        let mut prices = vec![0.0; self.network.links().len()];
        for &(link, price) in list {
            prices[link as usize] += price;
        }
        prices
    }

    /// The price of the cheapest path in time to a receiver, but at most the session's weight.
    fn cheapest_path(&self, session: &Session, receiver: usize, prices: &[f64]) -> Result<f64, TooMany> {
        // No path costs less than nothing.
        if prices.iter().all(|&price| price == 0.0) {
            let times = self.times(session.source, |_| true);
            let in_time = times[receiver].is_some_and(|time| time <= self.answer.deadline);
            return Ok(if in_time { 0.0 } else { session.weight });
        }
        let mut cheapest = vec![f64::INFINITY; self.network.nodes().len()];
        let mut labels = vec![(session.source, 0.0)];
        let mut heap = BinaryHeap::from([Reverse((Span::ZERO, 0usize))]);
        while let Some(Reverse((delay, index))) = heap.pop() {
            let (node, price): (usize, f64) = labels[index];
            if price >= cheapest[node] {
                continue;
            }
            cheapest[node] = price;
            let passes = node == session.source || self.network.nodes()[node].forwards;
            if node == receiver || !passes {
                continue;
            }
            for link in self.network.leaving(node).filter(|&link| self.network.rate(link) > 0.0) {
                let ends = &self.network.links()[link];
                let (delay, price) = (delay + ends.delay, price + prices[link]);
                let is_of_use = price < session.weight && price < cheapest[ends.to];
                if is_of_use && delay <= self.answer.deadline {
                    heap.push(Reverse((delay, labels.len())));
                    labels.push((ends.to, price));
                }
            }
            if labels.len() > MOST_STEPS {
                return Err(TooMany);
            }
        }
        Ok(cheapest[receiver].min(session.weight))
    }

    /// The price of the cheapest tree in time, but at most the session's weight.
    fn cheapest_tree(&self, session: &Session, prices: &[f64]) -> Result<f64, TooMany> {
        let mut search = Trees {
            check: self,
            session,
            prices: prices.to_vec(),
            best: session.weight,
            passed: vec![false; self.network.nodes().len()],
            left: MOST_STEPS,
        };
        search.receiver(0, 0.0)?;
        Ok(search.best)
    }
}

/// A search over the paths of one receiver after the other.
struct Trees<'a> {
    check: &'a Check<'a>,
    session: &'a Session,
    /// Links that were taken are free.
    prices: Vec<f64>,
    best: f64,
    passed: Vec<bool>,
    left: usize,
}

impl Trees<'_> {
    fn receiver(&mut self, index: usize, price: f64) -> Result<(), TooMany> {
        if index == self.session.receivers.len() {
            self.best = self.best.min(price);
            return Ok(());
        }
        let passed = std::mem::replace(&mut self.passed, vec![false; self.check.network.nodes().len()]);
        let done = self.walk(index, self.session.source, Span::ZERO, price);
        self.passed = passed;
        done
    }

    /// Goes on from a node to the receiver of this index.
    fn walk(&mut self, index: usize, node: usize, delay: Span, price: f64) -> Result<(), TooMany> {
        if node == self.session.receivers[index] {
            return self.receiver(index + 1, price);
        }
        self.left = self.left.checked_sub(1).ok_or(TooMany)?;
        let network = self.check.network;
        if node != self.session.source && !network.nodes()[node].forwards {
            return Ok(());
        }
        self.passed[node] = true;
        for link in network.leaving(node).filter(|&link| network.rate(link) > 0.0) {
            let ends = &network.links()[link];
            let (later, dearer) = (delay + ends.delay, price + self.prices[link]);
            if self.passed[ends.to]
                || later > self.check.answer.deadline
                || dearer >= self.best * (1.0 - ROUNDING)
            {
                continue;
            }
            let own = std::mem::take(&mut self.prices[link]);
            self.walk(index, ends.to, later, dearer)?;
            self.prices[link] = own;
        }
        self.passed[node] = false;
        Ok(())
    }
}
