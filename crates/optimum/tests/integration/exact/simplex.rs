//! Linear programs by the simplex method on a dense table, with the rule of Bland that ends it (Mathematics of Operations Research
//! 1977). It shares nothing with the solver that `weir-optimum` uses.

/// Below this a number in the table is zero.
const ZERO: f64 = 1e-9;
/// Most exchanges of a column. The programs of the tests take some hundred.
const MOST_PIVOTS: u32 = 5_000;

/// A program: `values` times x is to be as large as possible, rows times x at most `limits`, which are not negative, and x from 0 up.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) rows: Vec<Vec<(usize, f64)>>,
    pub(crate) limits: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

impl Program {
    pub(crate) fn row(&mut self, limit: f64) -> usize {
        self.limits.push(limit);
        self.rows.push(Vec::new());
        self.rows.len() - 1
    }

    pub(crate) fn column(&mut self, value: f64, entries: &[(usize, f64)]) {
        for &(row, factor) in entries {
            self.rows[row].push((self.values.len(), factor));
        }
        self.values.push(value);
    }

    /// The largest value.
    pub(crate) fn best(&self) -> f64 {
        self.solve().0
    }

    /// The largest value and x.
    pub(crate) fn solve(&self) -> (f64, Vec<f64>) {
        let (rows, columns) = (self.rows.len(), self.values.len());
        let width = columns + rows + 1;
        let mut table = vec![vec![0.0; width]; rows + 1];
        for (row, entries) in self.rows.iter().enumerate() {
            for &(column, factor) in entries {
                table[row][column] += factor;
            }
            table[row][columns + row] = 1.0;
            table[row][width - 1] = self.limits[row];
        }
        for (column, value) in self.values.iter().enumerate() {
            table[rows][column] = -value;
        }
        let mut basis: Vec<usize> = (columns..columns + rows).collect();
        // Rounding may make it go in a circle of solutions that are equal to the last digits: any of them will do.
        for _ in 0..MOST_PIVOTS {
            let Some(enters) = (0..width - 1).find(|&column| table[rows][column] < -ZERO) else { break };
            let ratio = |row: usize| table[row][width - 1] / table[row][enters];
            let leaves = (0..rows)
                .filter(|&row| table[row][enters] > ZERO)
                .min_by(|&a, &b| {
                    let (one, two) = (ratio(a), ratio(b));
                    if (one - two).abs() < 1e-12 { basis[a].cmp(&basis[b]) } else { one.total_cmp(&two) }
                })
                .expect("limits bound every column");
            pivot(&mut table, leaves, enters);
            basis[leaves] = enters;
        }
        let mut x = vec![0.0; columns];
        for (row, &column) in basis.iter().enumerate().filter(|(_, column)| **column < columns) {
            x[column] = table[row][width - 1];
        }
        (table[rows][width - 1], x)
    }
}

fn pivot(table: &mut [Vec<f64>], row: usize, column: usize) {
    let by = table[row][column];
    table[row].iter_mut().for_each(|number| *number /= by);
    let own = table[row].clone();
    for (other, numbers) in table.iter_mut().enumerate() {
        let factor = numbers[column];
        if other != row && factor != 0.0 {
            numbers.iter_mut().zip(&own).for_each(|(number, own)| *number -= factor * own);
        }
    }
}
