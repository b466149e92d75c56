//! Aggregate functions over the cells that flows have written at one general-purpose address (sections 3.2.5, 5.2.5): offsets
//! 128 and up of that address. The source's figure puts sum, minimum and maximum at 128, 129 and 130; the others follow.

use crate::header::{FLOWS, VALUE_MAX};
use weir_base::math;

/// Set in a stored cell that has been written ("assigned"); the value is in the low 24 bits.
pub(crate) const ASSIGNED: u32 = 1 << 31;

/// The cells of one address, one for each flow: [`ASSIGNED`] and the value, or zero.
pub(crate) type Cells = [u32; FLOWS];

/// An aggregate function. Its result is zero if no cell is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// Sum, at most 2^24 - 1.
    Sum = 128,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Largest value minus smallest value.
    Range,
    /// Mean, rounded to the nearest integer.
    Mean,
    /// Standard deviation of the population, rounded to the nearest integer.
    Deviation,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise XOR.
    Xor,
    /// Flow with the smallest value; the lowest id if there are several.
    MinFlow,
    /// Flow with the largest value; the lowest id if there are several.
    MaxFlow,
    /// Number of assigned cells.
    Assigned,
    /// Flow that wrote its cell last.
    Latest,
}

/// Number of functions.
pub(crate) const FUNCTIONS: usize = Function::ALL.len();

impl Function {
    /// All of them, in order of their offsets.
    pub const ALL: [Function; 13] = [
        Function::Sum,
        Function::Min,
        Function::Max,
        Function::Range,
        Function::Mean,
        Function::Deviation,
        Function::And,
        Function::Or,
        Function::Xor,
        Function::MinFlow,
        Function::MaxFlow,
        Function::Assigned,
        Function::Latest,
    ];

    /// The function at an offset, if there is one.
    pub fn at(offset: u8) -> Option<Function> {
        Function::ALL.get(usize::from(offset.checked_sub(Function::Sum as u8)?)).copied()
    }

    /// Index of its result and of its bit in the row.
    pub(crate) fn index(self) -> usize {
        usize::from(self as u8 - Function::Sum as u8)
    }

    /// The result over the cells; `latest` is the flow that wrote last.
    pub(crate) fn over(self, cells: &Cells, latest: u8) -> u32 {
        let count = || count(cells);
        let extreme = |flow: bool, (value, at): (u32, u32)| if flow { at } else { value };
        match self {
            Function::Assigned => count(),
            _ if count() == 0 => 0,
            Function::Sum => sum(cells).min(VALUE_MAX.into()) as u32,
            Function::Min | Function::MinFlow => extreme(self == Function::MinFlow, min(cells)),
            Function::Max | Function::MaxFlow => extreme(self == Function::MaxFlow, max(cells)),
            Function::Range => max(cells).0 - min(cells).0,
            Function::Mean => ((sum(cells) + u64::from(count()) / 2) / u64::from(count())) as u32,
            Function::Deviation => deviation(cells, count()),
            // An unassigned cell counts as all ones.
            Function::And => cells.iter().fold(VALUE_MAX, |all, c| all & (c | (c >> 31).wrapping_sub(1))),
            Function::Or => cells.iter().fold(0, |all, c| all | c) & VALUE_MAX,
            Function::Xor => cells.iter().fold(0, |all, c| all ^ c) & VALUE_MAX,
            Function::Latest => latest.into(),
        }
    }
}

fn count(cells: &Cells) -> u32 {
    cells.iter().map(|c| c >> 31).sum()
}

fn sum(cells: &Cells) -> u64 {
    // 128 values of 24 bits have a sum of 31 bits.
    cells.iter().map(|c| c & VALUE_MAX).sum::<u32>().into()
}

/// The smallest value and its flow. Subtraction turns an unassigned cell into a number above every value.
fn min(cells: &Cells) -> (u32, u32) {
    let least = cells.iter().map(|c| c.wrapping_sub(ASSIGNED)).fold(u32::MAX, u32::min);
    (least, first(cells, least))
}

/// The largest value and its flow.
fn max(cells: &Cells) -> (u32, u32) {
    let most = cells.iter().copied().fold(0, u32::max) & VALUE_MAX;
    (most, first(cells, most))
}

fn first(cells: &Cells, value: u32) -> u32 {
    cells.iter().position(|c| *c == value | ASSIGNED).unwrap_or(0) as u32
}

fn deviation(cells: &Cells, count: u32) -> u32 {
    let mean = sum(cells) as f64 / f64::from(count);
    let squares: f64 = cells
        .iter()
        .filter(|c| **c & ASSIGNED != 0)
        .map(|c| {
            let distance = f64::from(c & VALUE_MAX) - mean;
            distance * distance
        })
        .sum();
    (math::sqrt(squares / f64::from(count)) + 0.5) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(values: &[(usize, u32)]) -> Cells {
        let mut cells = [0; FLOWS];
        for (flow, value) in values {
            cells[*flow] = ASSIGNED | value;
        }
        cells
    }

    #[test]
    fn aggregates_are_over_assigned_cells_only() {
        // Mean 20; deviation sqrt((100 + 100 + 0 + 0) / 4) = 7.07.
        let cells = cells(&[(3, 10), (7, 30), (100, 20), (127, 20)]);
        let results = Function::ALL.map(|function| function.over(&cells, 7));
        let (and, or, xor) = (10 & 30 & 20, 10 | 30 | 20, 10 ^ 30);
        assert_eq!(results, [80, 10, 30, 20, 20, 7, and, or, xor, 3, 7, 4, 7]);
    }

    #[test]
    fn a_written_zero_counts_and_an_unwritten_cell_does_not() {
        let cells = cells(&[(5, 0), (6, 9)]);
        assert_eq!(Function::Min.over(&cells, 6), 0);
        assert_eq!(Function::MinFlow.over(&cells, 6), 5);
        assert_eq!(Function::And.over(&cells, 6), 0);
        assert_eq!(Function::Mean.over(&cells, 6), 5, "4.5 rounds up");
    }

    #[test]
    fn every_aggregate_of_no_cells_is_zero() {
        assert!(Function::ALL.iter().all(|function| function.over(&[0; FLOWS], 0) == 0));
    }

    #[test]
    fn a_sum_saturates_at_24_bits() {
        assert_eq!(Function::Sum.over(&cells(&[(0, VALUE_MAX), (1, 1)]), 1), VALUE_MAX);
    }

    #[test]
    fn each_offset_names_one_function() {
        for (n, function) in Function::ALL.into_iter().enumerate() {
            assert_eq!(Function::at(128 + n as u8), Some(function));
        }
        assert_eq!((Function::at(127), Function::at(141)), (None, None));
    }
}
