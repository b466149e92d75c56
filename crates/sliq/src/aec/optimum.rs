//! Search for the plan that sends the fewest packets on average, for a group of given size, a given number of rounds and a given maximum
//! loss. The size of the first round is given; the size of each later round may depend on the packets that have arrived until then, as
//! acknowledgements tell.
//!
//! This is a Markov decision process with one constraint. With a price for the lost share it becomes one without, which a dynamic
//! programme over the rounds, last first, solves exactly; the price is raised until the loss is small enough (Lagrangian relaxation;
//! Altman, "Constrained Markov Decision Processes", 1999, chapter 3). The price also gives a lower bound on the packets of all plans.
//! Plans between that bound and the best plan so far are searched decision by decision, each only as far as the bound allows.

use super::odds::{self, Have, MOST_IN_ROUND, Odds};

/// A price at which only the loss counts, in packets per group lost.
const DEAREST: f64 = 1e9;
/// Maximum number of steps of the search for the price. Each finds a corner of the convex hull; no problem has needed more than 15.
const STEPS: usize = 60;
/// A group of at least this many source packets is not searched if its plan is within this share of its bound.
const LARGE: usize = 5;
const CLOSE: f64 = 0.002;
/// Maximum number of decisions that the last search tries. It then takes the best plan so far, whose distance from the bound is known.
const VISITS: usize = 4000;
/// The gain in packets from which a plan counts as better: less is rounding.
const LEAST_GAIN: f64 = 1e-9;

/// The number of packets of each round after the first: by round, then by the number of the state ([`odds::index`]).
pub(super) type Table = Vec<Vec<u8>>;

/// A problem: the size of a group and its limits.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) odds: &'a Odds,
    /// Source packets.
    pub(super) k: usize,
    /// Rounds after the first.
    pub(super) later: usize,
    /// Packets of the first round.
    pub(super) first: usize,
    /// Maximum number of packets of a later round.
    pub(super) most: usize,
    /// The maximum share of lost source packets.
    pub(super) allowed: f64,
}

/// A plan of a [`Problem`].
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) table: Table,
    /// Mean number of packets per group.
    pub(super) sent: f64,
    /// Mean share of lost source packets.
    pub(super) loss: f64,
    /// No plan of the problem sends fewer packets than this.
    pub(super) least: f64,
}

/// The best plan at a price, and the value of each state.
struct Priced {
    table: Table,
    /// Mean packets plus price of the loss from this round on, by round and state.
    values: Vec<Vec<f64>>,
    sent: f64,
    loss: f64,
}

impl Problem<'_> {
    /// The plan with the fewest packets; `None` if no plan loses little enough, or if the bound shows that none sends fewer packets than
    /// `beat`. `price` is the price of a similar problem, or 0, and is set to this problem's: the bound at that price rules most problems
    /// out.
    pub(super) fn solve(&self, beat: f64, price: &mut f64) -> Option<Found> {
        if *price > 0.0 && beat.is_finite() && self.bound(*price) >= beat {
            return None;
        }
        let mut loose = self.priced(0.0);
        if loose.loss <= self.allowed {
            let Priced { table, sent, loss, .. } = loose;
            return (sent < beat).then_some(Found { table, sent, loss, least: sent });
        }
        let mut strict = self.priced(DEAREST);
        if strict.loss > self.allowed {
            return None;
        }
        // The two plans are corners of the convex hull of all plans' packets and losses, one on each side of the allowed loss. The price
        // at which they are equal gives a corner between them, until there is none.
        for _ in 0..STEPS {
            *price = (strict.sent - loose.sent) / (loose.loss - strict.loss);
            let between = self.priced(*price);
            let worth = |plan: &Priced| plan.sent + *price * plan.loss;
            if worth(&between) - *price * self.allowed >= beat {
                return None;
            }
            if worth(&between) >= worth(&loose) - LEAST_GAIN {
                // The bound lies below the plan that the search finds, which may send as many packets as `beat` or more.
                return self.search(&between, *price, strict).filter(|found| found.sent < beat);
            }
            if between.loss <= self.allowed {
                strict = between;
            } else {
                loose = between;
            }
        }
        None
    }

    /// The plan with the lowest loss.
    pub(super) fn safest(&self) -> Found {
        let Priced { table, sent, loss, .. } = self.priced(DEAREST);
        Found { table, sent, loss, least: sent }
    }

    /// The numbers of packets that a later round may send: at least as many as are still needed, within the limit.
    fn choices(&self, have: Have) -> std::ops::RangeInclusive<usize> {
        (self.k - have.packets()).min(self.most)..=self.most
    }

    /// The value of a state if the round sends `packets`: these packets, plus the mean value of the next states.
    fn worth(&self, price: f64, next: Option<&[f64]>, have: Have, packets: usize) -> f64 {
        let mut after = 0.0;
        match next {
            Some(values) => self.odds.next(self.k, have, packets, |have, probability| {
                after += probability * values[odds::index(self.k, have)];
            }),
            None => after = price * self.odds.loss(self.k, have, packets),
        }
        packets as f64 + after
    }

    /// A lower bound on the packets of any plan, whatever the price.
    fn bound(&self, price: f64) -> f64 {
        let (_, values) = self.decided(price);
        let reach = self.after_first();
        let follows = match values.first() {
            Some(values) => reach.iter().zip(values).map(|(reach, value)| reach * value).sum(),
            None => price * self.lost(&reach),
        };
        self.first as f64 + follows - price * self.allowed
    }

    /// The best plan at this price.
    fn priced(&self, price: f64) -> Priced {
        let (table, values) = self.decided(price);
        let (sent, loss) = self.outcome(&table);
        Priced { table, values, sent, loss }
    }

    /// The decisions of the best plan at this price, and the value of each state.
    fn decided(&self, price: f64) -> (Table, Vec<Vec<f64>>) {
        let mut table = vec![vec![0; odds::count(self.k)]; self.later];
        let mut values = vec![vec![0.0; odds::count(self.k)]; self.later];
        for round in (0..self.later).rev() {
            let (now, after) = values.split_at_mut(round + 1);
            let next = after.first().map(Vec::as_slice);
            for (state, have) in odds::states(self.k).enumerate() {
                let mut best = f64::INFINITY;
                for packets in self.choices(have) {
                    // The value of the next states is at least 0.
                    if packets as f64 >= best {
                        break;
                    }
                    let worth = self.worth(price, next, have, packets);
                    if worth < best {
                        best = worth;
                        table[round][state] = packets as u8;
                    }
                }
                now[round][state] = best;
            }
        }
        (table, values)
    }

    /// The probability of each state after the first round.
    fn after_first(&self) -> Vec<f64> {
        let mut reach = vec![0.0; odds::count(self.k)];
        self.odds.next(self.k, Have::NOTHING, self.first, |have, probability| {
            reach[odds::index(self.k, have)] += probability;
        });
        reach
    }

    /// The probability of each state after a round, from the probabilities before it.
    fn after(&self, reach: &[f64], packets: &[u8]) -> Vec<f64> {
        let mut after = vec![0.0; reach.len()];
        for (state, have) in odds::states(self.k).enumerate().filter(|(state, _)| reach[*state] > 0.0) {
            self.odds.next(self.k, have, packets[state].into(), |have, probability| {
                after[odds::index(self.k, have)] += reach[state] * probability;
            });
        }
        after
    }

    /// Mean packets and mean loss of a plan.
    pub(super) fn outcome(&self, table: &[Vec<u8>]) -> (f64, f64) {
        let (mut sent, mut reach) = (self.first as f64, self.after_first());
        for packets in table {
            sent +=
                reach.iter().zip(packets).map(|(reach, packets)| reach * f64::from(*packets)).sum::<f64>();
            reach = self.after(&reach, packets);
        }
        (sent, self.lost(&reach))
    }

    /// The mean loss if the group ends with these probabilities of states.
    fn lost(&self, reach: &[f64]) -> f64 {
        odds::states(self.k).zip(reach).map(|(have, reach)| reach * self.odds.loss(self.k, have, 0)).sum()
    }

    /// Searches for a plan between the bound at this price and the best known plan.
    fn search(&self, priced: &Priced, price: f64, known: Priced) -> Option<Found> {
        let least = priced.sent + price * (priced.loss - self.allowed);
        if self.k >= LARGE && known.sent - least < CLOSE * known.sent {
            return Some(Found { table: known.table, sent: known.sent, loss: known.loss, least });
        }
        let options = (0..self.later)
            .map(|round| {
                let next = priced.values.get(round + 1).map(Vec::as_slice);
                let states = odds::states(self.k).zip(&priced.values[round]);
                states
                    .map(|(have, value)| {
                        let extra = |packets| self.worth(price, next, have, packets) - value;
                        let mut options: Vec<(f64, u8)> =
                            self.choices(have).map(|packets| (extra(packets), packets as u8)).collect();
                        options.sort_by(|a, b| a.0.total_cmp(&b.0));
                        options
                    })
                    .collect()
            })
            .collect();
        let mut search = Search {
            problem: self,
            options,
            least,
            best: Found { table: known.table, sent: known.sent, loss: known.loss, least },
            table: priced.table.clone(),
            visits: VISITS,
        };
        search.decide(0, 0, &self.after_first(), self.first as f64, 0.0);
        Some(search.best)
    }
}

/// The depth-first search between the bound and the best known plan.
struct Search<'a> {
    problem: &'a Problem<'a>,
    /// By round and state: the extra cost of each number of packets over the best one at the price, cheapest first.
    options: Vec<Vec<Vec<(f64, u8)>>>,
    least: f64,
    best: Found,
    table: Table,
    visits: usize,
}

impl Search<'_> {
    /// Decides for this state of this round and all later ones. The decisions so far cost `sent` packets, and `extra` beyond the bound.
    fn decide(&mut self, round: usize, state: usize, reach: &[f64], sent: f64, extra: f64) {
        if round == self.problem.later {
            let loss = self.problem.lost(reach);
            if loss <= self.problem.allowed && sent < self.best.sent - LEAST_GAIN {
                (self.best.sent, self.best.loss) = (sent, loss);
                self.best.table.clone_from(&self.table);
            }
            return;
        }
        if state == reach.len() {
            let after = self.problem.after(reach, &self.table[round]);
            return self.decide(round + 1, 0, &after, sent, extra);
        }
        if reach[state] == 0.0 {
            return self.decide(round, state + 1, reach, sent, extra);
        }
        for option in 0..self.options[round][state].len() {
            let (dearer, packets) = self.options[round][state][option];
            let extra = extra + reach[state] * dearer;
            if self.visits == 0 || self.least + extra >= self.best.sent - LEAST_GAIN {
                return;
            }
            self.visits -= 1;
            self.table[round][state] = packets;
            self.decide(round, state + 1, reach, sent + reach[state] * f64::from(packets), extra);
        }
    }
}

const _: () = assert!(MOST_IN_ROUND <= u8::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest packets of any plan that loses little enough, by trying each; `None` if there is none.
    fn brute_force(problem: &Problem<'_>) -> Option<f64> {
        let states: Vec<Have> = odds::states(problem.k).collect();
        let choices: Vec<_> =
            (0..problem.later).flat_map(|_| &states).map(|have| problem.choices(*have)).collect();
        let mut plan: Vec<usize> = choices.iter().map(|choices| *choices.start()).collect();
        let mut best: Option<f64> = None;
        loop {
            let table: Table =
                plan.chunks(states.len()).map(|round| round.iter().map(|n| *n as u8).collect()).collect();
            let (sent, loss) = problem.outcome(&table);
            if loss <= problem.allowed {
                best = Some(best.map_or(sent, |best| best.min(sent)));
            }
            let Some(at) = (0..plan.len()).find(|at| plan[*at] < *choices[*at].end()) else { return best };
            plan[at] += 1;
            (0..at).for_each(|at| plan[at] = *choices[at].start());
        }
    }

    /// Every plan is tried for small groups, with few rounds and few packets per round: at most about 20,000 plans.
    #[test]
    fn no_plan_of_a_small_group_is_better_than_the_one_found() {
        let mut compared = 0;
        for per in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5] {
            let odds = Odds::new(per);
            for (k, later, most) in
                [(1, 1, 8), (1, 2, 6), (1, 3, 4), (2, 1, 8), (2, 2, 4), (3, 1, 5), (4, 1, 4)]
            {
                for first in k..k + 4 {
                    for allowed in [0.05, 0.02, 0.005, 0.001] {
                        let problem = Problem { odds: &odds, k, later, first, most, allowed };
                        let found = problem.solve(f64::INFINITY, &mut 0.0);
                        let best = brute_force(&problem);
                        assert_eq!(found.is_some(), best.is_some(), "{per} {problem:?}");
                        let (Some(found), Some(best)) = (found, best) else { continue };
                        assert!(
                            (found.sent - best).abs() < 1e-8,
                            "{} is not {best}: {per} {problem:?}",
                            found.sent
                        );
                        assert!(found.loss <= allowed && found.least <= best + 1e-8);
                        assert!((problem.outcome(&found.table).0 - found.sent).abs() < 1e-12);
                        let better = |beat: f64| problem.solve(beat, &mut 0.0).is_some();
                        assert!(!better(found.sent) && better(found.sent + 1e-9), "{per} {problem:?}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn plans_for_one_packet_and_two_rounds_match_values_computed_by_hand() {
        // At a loss of 0.1, one retransmission brings the loss to 0.01, with 1.1 packets on average.
        let odds = Odds::new(0.1);
        let problem = Problem { odds: &odds, k: 1, later: 1, first: 1, most: 5, allowed: 0.01 + 1e-12 };
        let found = problem.solve(f64::INFINITY, &mut 0.0).unwrap();
        assert_eq!((found.table, found.sent), (vec![vec![1]], 1.1));
        // A thousandth needs two copies in the second round: 1.2 packets.
        let found = Problem { allowed: 0.001 + 1e-12, ..problem }.solve(f64::INFINITY, &mut 0.0).unwrap();
        assert_eq!((found.table, found.sent), (vec![vec![2]], 1.2));
    }
}
