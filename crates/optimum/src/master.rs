//! The master problem of column generation: a packing program, solved by the interior point method of the crate `clarabel`.
//!
//! Its dual solution lies in the interior of the optimal face instead of at a corner, so that the prices of two rounds differ
//! less and fewer rounds are needed. It need not be exact until the last rounds (Gondzio, González-Brevis and Munari, "New
//! developments in the primal-dual column generation technique", EJOR 2013). Nothing relies on its accuracy: bounds are computed
//! from its solution by [`crate::packing`] and [`crate::coded`].

use crate::stop::Stop;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultInfo, DefaultSettings, DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT,
    SupportedConeT,
};

/// The exactest gap that is asked of the solver, whose numbers have 16 digits.
const FINEST: f64 = 1e-9;

/// A program: the sum of `values` times x is to be as large as possible, each row's sum is at most its limit, and x is not negative.
#[derive(Debug, Default)]
pub(crate) struct Program {
    limits: Vec<f64>,
    values: Vec<f64>,
    /// Where each column begins, and the rows and factors of all columns.
    begins: Vec<usize>,
    rows: Vec<usize>,
    factors: Vec<f64>,
}

/// Nearly a solution: x may leave the limits a little, and prices may be a little below zero.
#[derive(Debug)]
pub(crate) struct Solution {
    pub(crate) x: Vec<f64>,
    pub(crate) prices: Vec<f64>,
}

impl Program {
    /// Adds a row.
    pub(crate) fn row(&mut self, limit: f64) -> usize {
        self.limits.push(limit);
        self.limits.len() - 1
    }

    /// Adds a column.
    pub(crate) fn column(&mut self, value: f64, entries: impl IntoIterator<Item = (usize, f64)>) {
        self.values.push(value);
        self.begins.push(self.rows.len());
        let mut entries: Vec<(usize, f64)> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|&(row, _)| row);
        self.rows.extend(entries.iter().map(|&(row, _)| row));
        self.factors.extend(entries.iter().map(|&(_, factor)| factor));
    }

    /// Solves it to this relative gap. `None` if the solver finds nothing of use, or was stopped.
    pub(crate) fn solve(&self, gap: f64, stop: &Stop) -> Option<Solution> {
        let (columns, rows) = (self.values.len(), self.limits.len());
        // Each column has one more entry, in the row of its own that keeps it from being negative.
        let mut begins = Vec::with_capacity(columns + 1);
        let (mut places, mut factors) = (Vec::new(), Vec::new());
        for column in 0..columns {
            let end = self.begins.get(column + 1).copied().unwrap_or(self.rows.len());
            let entries = self.begins[column]..end;
            begins.push(places.len());
            places.extend_from_slice(&self.rows[entries.clone()]);
            factors.extend_from_slice(&self.factors[entries]);
            places.push(rows + column);
            factors.push(-1.0);
        }
        begins.push(places.len());
        let matrix = CscMatrix::new(rows + columns, columns, begins, places, factors);
        let limits: Vec<f64> = self.limits.iter().copied().chain(std::iter::repeat_n(0.0, columns)).collect();
        let costs: Vec<f64> = self.values.iter().map(|value| -value).collect();
        let cones: [SupportedConeT<f64>; 1] = [NonnegativeConeT(rows + columns)];
        let nothing = CscMatrix::zeros((columns, columns));
        let (settings, stopped) = (settings(gap)?, stop.clone());
        // One step of the solver may take seconds where there are many sessions.
        stop.or(move || {
            let mut solver = DefaultSolver::new(&nothing, &costs, &matrix, &limits, &cones, settings).ok()?;
            solver.set_termination_callback(move |_: &DefaultInfo<f64>| stopped.is_set());
            solver.solve();
            let solution = &solver.solution;
            let (x, mut prices) = (solution.x.clone(), solution.z.clone());
            prices.truncate(rows);
            x.iter().chain(&prices).all(|number| number.is_finite()).then_some(Solution { x, prices })
        })
    }
}

fn settings(gap: f64) -> Option<DefaultSettings<f64>> {
    let gap = gap.max(FINEST);
    DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .presolve_enable(false)
        .tol_gap_abs(gap)
        .tol_gap_rel(gap)
        .tol_feas(gap.min(1e-6) * 0.1)
        .max_iter(100)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_has_its_known_solution_and_prices() {
        // 3x + 2y, x + y <= 4, x + 3y <= 6, x <= 3: the best is x = 3, y = 1.
        let mut program = Program::default();
        let rows = [4.0, 6.0, 3.0].map(|limit| program.row(limit));
        program.column(3.0, [(rows[0], 1.0), (rows[1], 1.0), (rows[2], 1.0)]);
        program.column(2.0, [(rows[1], 3.0), (rows[0], 1.0)]);
        let solution = program.solve(1e-9, &Stop::default()).unwrap();
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        // The first row and the third are tight; 6 is reached exactly at x = 3, y = 1 too.
        assert!(near(&solution.x, &[3.0, 1.0]), "{:?}", solution.x);
        let value: f64 =
            [4.0, 6.0, 3.0].iter().zip(&solution.prices).map(|(limit, price)| limit * price).sum();
        assert!((value - 11.0).abs() < 1e-5, "{:?}", solution.prices);
    }

    #[test]
    fn a_solver_that_is_stopped_gives_nothing() {
        let mut program = Program::default();
        let row = program.row(1.0);
        program.column(1.0, [(row, 1.0)]);
        let stop = Stop::default();
        assert!(program.solve(1e-9, &stop).is_some());
        stop.set();
        assert!(program.solve(1e-9, &stop).is_none());
    }
}
