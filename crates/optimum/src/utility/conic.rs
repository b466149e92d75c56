//! A program with logarithms, solved by the interior point method of the crate `clarabel`: the sum of `values` times x and of weights times
//! logarithms is to be as large as possible, each row's sum is at most its limit, and x is not negative.
//!
//! A logarithm is a number t with t <= log(x + shift), which is the exponential cone. The solver's dual solution has the rows' prices.
//! Nothing relies on its accuracy: [`super::elastic`] computes bounds from what it finds.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, ExponentialConeT, IPSolver, NonnegativeConeT, SupportedConeT,
};

/// The most steps of the solver; with exponential cones it takes 15 to 40.
const MOST_STEPS: u32 = 200;

/// A program.
#[derive(Debug, Default)]
pub(super) struct Program {
    limits: Vec<f64>,
    values: Vec<f64>,
    /// Row, column and factor.
    entries: Vec<(usize, usize, f64)>,
    /// Column, weight and shift.
    logarithms: Vec<(usize, f64, f64)>,
}

/// Nearly a solution: x may leave the limits a little, and prices may be a little below zero.
#[derive(Debug)]
pub(super) struct Solution {
    pub(super) x: Vec<f64>,
    pub(super) prices: Vec<f64>,
}

impl Program {
    /// Adds a row.
    pub(super) fn row(&mut self, limit: f64) -> usize {
        self.limits.push(limit);
        self.limits.len() - 1
    }

    /// Adds a column that adds `value` for each unit.
    pub(super) fn column(&mut self, value: f64) -> usize {
        self.values.push(value);
        self.values.len() - 1
    }

    /// Adds a factor of a column to a row.
    pub(super) fn entry(&mut self, row: usize, column: usize, factor: f64) {
        self.entries.push((row, column, factor));
    }

    /// Adds `weight` times the logarithm of a column plus `shift`.
    pub(super) fn logarithm(&mut self, column: usize, weight: f64, shift: f64) {
        self.logarithms.push((column, weight, shift));
    }

    /// Solves it to this gap. `None` if the solver finds nothing of use.
    pub(super) fn solve(&self, gap: f64) -> Option<Solution> {
        let (columns, rows) = (self.values.len(), self.limits.len());
        let count = self.logarithms.len();
        let (mut places, mut owners, mut factors) = (Vec::new(), Vec::new(), Vec::new());
        let mut put = |row: usize, column: usize, factor: f64| {
            places.push(row);
            owners.push(column);
            factors.push(factor);
        };
        for &(row, column, factor) in &self.entries {
            put(row, column, factor);
        }
        for column in 0..columns {
            put(rows + column, column, -1.0);
        }
        let mut limits = self.limits.clone();
        limits.resize(rows + columns, 0.0);
        let mut costs: Vec<f64> = self.values.iter().map(|value| -value).collect();
        for (number, &(column, weight, shift)) in self.logarithms.iter().enumerate() {
            // (t, 1, x + shift) is in the cone of (a, b, c) with b exp(a / b) <= c.
            let first = rows + columns + 3 * number;
            put(first, columns + number, -1.0);
            put(first + 2, column, -1.0);
            limits.extend([0.0, 1.0, shift]);
            costs.push(-weight);
        }
        let (height, width) = (rows + columns + 3 * count, columns + count);
        let matrix = CscMatrix::new_from_triplets(height, width, places, owners, factors);
        let linear: SupportedConeT<f64> = NonnegativeConeT(rows + columns);
        let cones: Vec<_> = std::iter::once(linear).chain((0..count).map(|_| ExponentialConeT())).collect();
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_threads(1)
            .presolve_enable(false)
            .tol_gap_abs(gap)
            .tol_gap_rel(gap)
            .tol_feas(gap)
            .max_iter(MOST_STEPS)
            .build()
            .ok()?;
        let nothing = CscMatrix::zeros((width, width));
        let mut solver = DefaultSolver::new(&nothing, &costs, &matrix, &limits, &cones, settings).ok()?;
        solver.solve();
        let (mut x, mut prices) = (solver.solution.x.clone(), solver.solution.z.clone());
        x.truncate(columns);
        prices.truncate(rows);
        x.iter().chain(&prices).all(|number| number.is_finite()).then_some(Solution { x, prices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_share_a_row_by_their_weights() {
        // 2 log x + log y + 0.1 z with x + y + z <= 9: the price is 3 / 9, above what z is worth.
        let mut program = Program::default();
        let row = program.row(9.0);
        for value in [0.0, 0.0, 0.1] {
            let column = program.column(value);
            program.entry(row, column, 1.0);
        }
        program.logarithm(0, 2.0, 0.0);
        program.logarithm(1, 1.0, 0.0);
        let solution = program.solve(1e-12).unwrap();
        // The sum of logarithms is flat at its top: rates are less exact than the gap.
        let near = |a: f64, b: f64| (a - b).abs() < 1e-5;
        let [x, y, z] = solution.x[..] else { panic!("{solution:?}") };
        assert!(near(x, 6.0) && near(y, 3.0) && near(z, 0.0), "{solution:?}");
        assert!(near(solution.prices[0], 1.0 / 3.0), "{solution:?}");
    }
}
