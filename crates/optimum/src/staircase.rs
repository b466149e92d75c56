//! All deadlines of a range at once. What can be carried is constant between deadlines at which a further path comes in time; the prices
//! of an answer prove it for longer deadlines too, until a path that costs less than it is worth is in time. So the next deadline of
//! interest is the least delay of such a path.

use crate::answer::{Answer, GAP};
use crate::capacity::{LONGEST_DEADLINE, Memory, Mode, Problem};
use crate::corridor::Corridor;
use crate::network::Session;
use crate::packing::Watch;
use crate::trees::Trees;
use weir_base::Span;

/// By which share a path must cost less than it is worth: less than the gap of answers.
const CLEARLY: f64 = GAP / 10.0;

impl Problem<'_> {
    /// What can be carried by all deadlines of a range: an answer where the range begins, and one at each deadline where more can be
    /// carried, up to the gap of 1e-6. When `watch` says no, the steps so far are returned, and the last one has bounds.
    pub fn staircase(&self, first: Span, last: Span, watch: Watch<'_>) -> Vec<Answer> {
        let last = last.min(LONGEST_DEADLINE);
        let mut memory = Memory::default();
        let mut goes_on = true;
        let mut watched = |bounds| {
            goes_on = goes_on && watch(bounds);
            goes_on
        };
        let mut now = self.answer(first, &mut memory, &mut watched);
        let mut steps = vec![now.clone()];
        while let Some(next) = self.next_deadline(&now, last) {
            if !watched(now.bounds) || self.stop.is_set() {
                break;
            }
            now = self.answer(next, &mut memory, &mut watched);
            let before = steps.last().map_or(0.0, |step| step.bounds.lower);
            if now.bounds.lower > before * (1.0 + 2.0 * GAP) || !now.bounds.are_exact() {
                steps.push(now.clone());
            }
        }
        steps
    }

    /// The least deadline up to `last` at which more than this answer may be carried.
    fn next_deadline(&self, answer: &Answer, last: Span) -> Option<Span> {
        let next = |session: usize| match self.mode {
            Mode::Trees => self.next_tree(session, answer, last),
            Mode::Coded | Mode::TreeBounds => self.next_path(session, answer, last),
        };
        let next = (0..self.sessions.len()).filter_map(next).min().map(Span::from_nanos);
        next.filter(|&next| next > answer.deadline && next <= last)
    }

    fn next_path(&self, session: usize, answer: &Answer, last: Span) -> Option<u64> {
        let Session { source, receivers, .. } = &self.sessions[session];
        let corridor = |receiver: usize, limit: Span| {
            Corridor::new(self.network, *source, receiver, limit.as_nanos()).stopped_by(&self.stop)
        };
        let mut lists = answer.prices.sessions[session].iter();
        let mut next: Option<u64> = None;
        let mut missing: Option<u64> = None;
        for &receiver in receivers {
            let prices = by_link(lists.next(), self.network.links().len());
            let least = corridor(receiver, answer.deadline).cheapest(&prices, 0.0, 1).least;
            let later = corridor(receiver, last);
            if least.is_infinite() {
                // Nothing is carried until the last of such receivers is reached.
                missing = missing.max(Some(later.fastest_below(&prices, f64::INFINITY)?));
            } else if least > 0.0 {
                let found = later.fastest_below(&prices, least * (1.0 - CLEARLY));
                next = [next, found].into_iter().flatten().min();
            }
        }
        missing.or(next)
    }

    fn next_tree(&self, session: usize, answer: &Answer, last: Span) -> Option<u64> {
        let prices = by_link(answer.prices.sessions[session].first(), self.network.links().len());
        let trees = Trees::new(self.network, &self.sessions, last.as_nanos()).stopped_by(&self.stop);
        let most = self.sessions[session].weight * (1.0 - CLEARLY);
        // Of rising price and falling delay, so the last one is the fastest.
        trees.fronts(session, &prices, most)?.last().map(|&(_, delay, _)| delay)
    }
}

/// Prices by link.
fn by_link(list: Option<&Vec<(u32, f64)>>, links: usize) -> Vec<f64> {
    let mut prices = vec![0.0; links];
    for &(link, price) in list.into_iter().flatten() {
        prices[link as usize] += price;
    }
    prices
}
