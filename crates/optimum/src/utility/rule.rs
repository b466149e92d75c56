//! Which inelastic flows are on.
//!
//! Source: digest G 2.6, A 7.4, A 9.2. A STRAP flow steps down where the depth exceeds K p / m, so it pays at most p / m for a bit per second;
//! a FLOG flow has its floor f as long as the price is at most p / f. The study's planner goes through the flows in falling order of that
//! worth, and stops one that would make the price exceed what it or any before it pays. This is that rule with the exact price of each
//! flow instead of one estimate for a bottleneck: a flow's rate is worth p / m a bit up to m, and the optimum of such utilities serves
//! it whole exactly where its price is at most that.

use super::elastic::{Demand, Form, Solved, Ways};
use super::why::{self, Allocation, Blocked};
use super::{Class, Forwarding, Utility};
use crate::network::Network;

/// A flow is whole if it has all but this share of what it needs, which is what the solver's accuracy leaves open.
const WHOLE: f64 = 1e-5;

/// Decides and explains.
pub(super) fn decide(network: &Network, classes: &[Class], forwarding: Forwarding) -> Allocation {
    let mut ways = Ways::new(network, classes, forwarding);
    let first = |class: &Class| if class.utility.worth().is_none() { class.count } else { 0 };
    let mut state = State {
        on: classes.iter().map(first).collect(),
        blocked: vec![None; classes.len()],
        solved: Solved::default(),
    };
    state.solved = ways.solve(&demands(classes, &state.on));
    let worth = |class: &usize| classes[*class].utility.worth();
    let mut order: Vec<usize> =
        (0..classes.len()).filter(|class| worth(class).is_some() && ways.reached[*class]).collect();
    order.sort_by(|a, b| worth(b).unwrap_or(0.0).total_cmp(&worth(a).unwrap_or(0.0)));
    for class in order {
        state.admit(&mut ways, class);
    }
    why::explain(&ways, state.on, state.blocked, state.solved)
}

/// What is decided so far.
struct State {
    /// How many flows of each class are on.
    on: Vec<u32>,
    /// Why not all are.
    blocked: Vec<Option<Blocked>>,
    /// The optimum with these.
    solved: Solved,
}

impl State {
    /// Turns as many flows of a class on as fit. The class's own price rises with their number, so the number is found by bisection, first
    /// near what would be served of all.
    fn admit(&mut self, ways: &mut Ways<'_>, class: usize) {
        let classes = ways.classes;
        let Class { count, utility, .. } = &classes[class];
        let (mut fits, mut fails) = (0, count.saturating_add(1));
        let mut hint = Some(*count);
        if self.solved.costs[class] > utility.worth().unwrap_or(0.0) {
            self.blocked[class] = Some(Blocked::Price);
            return;
        }
        while fails - fits > 1 {
            let next = hint.take().unwrap_or(fits + (fails - fits) / 2).clamp(fits + 1, fails - 1);
            self.on[class] = next;
            let tried = ways.solve(&demands(classes, &self.on));
            let broken = self.broken(classes, class, &tried);
            let Some(other) = broken else {
                (fits, self.solved) = (next, tried);
                hint = (next < *count).then_some(next + 1);
                continue;
            };
            fails = next;
            let whole = utility.most();
            self.blocked[class] = Some(match other == class {
                true => Blocked::Room { left: (tried.rates[class] - f64::from(next - 1) * whole).max(0.0) },
                false => Blocked::Others(other),
            });
            if other == class && matches!(utility, Utility::Strap { .. }) {
                hint = Some((tried.rates[class] / whole + WHOLE) as u32);
            }
        }
        self.on[class] = fits;
        if fits == *count {
            self.blocked[class] = None;
        }
    }

    /// The class itself if its flows are not whole in a solution, otherwise another one that is on and is not whole then.
    fn broken(&self, classes: &[Class], class: usize, solved: &Solved) -> Option<usize> {
        let is_broken = |&other: &usize| {
            let on = f64::from(self.on[other]);
            let least = match classes[other].utility {
                Utility::Log(_) => return false,
                Utility::Strap { rate, .. } => rate,
                Utility::Flog { floor, .. } => floor,
            };
            solved.rates[other] < on * least.bits_per_sec() as f64 * (1.0 - WHOLE)
        };
        std::iter::once(class).chain(0..classes.len()).find(is_broken)
    }
}

/// What the flows that are on ask for.
fn demands(classes: &[Class], on: &[u32]) -> Vec<Demand> {
    let demand = |(class, &count): (&Class, &u32)| {
        let form = match class.utility {
            Utility::Log(log) | Utility::Flog { log, .. } => Form::Log(log),
            Utility::Strap { priority, rate } => {
                let most = rate.bits_per_sec() as f64;
                Form::Linear { worth: priority / most, most }
            }
        };
        Demand { count, form }
    };
    classes.iter().zip(on).map(demand).collect()
}
