//! `weir.compare`: whether two results agree.

use crate::error;
use crate::result::RunResult;
use crate::table::Table;
use pyo3::prelude::*;
use std::sync::Arc;
use weir_record::compare::{Bound as Most, Compared, Comparison as Row, Rule};
use weir_record::{Cells, Frame, FrameColumn};

/// Compares a result with a reference, as `weir compare` does: the difference of each metric that has a bound, with its 95 %
/// interval over pairs of runs of the same cell and repeat.
///
/// Raises Error if the two have no valid run in common.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    reference: &Bound<'_, RunResult>,
    other: &Bound<'_, RunResult>,
) -> PyResult<Comparison> {
    let (reference, other) = (reference.get().summary(py)?, other.get().summary(py)?);
    let compared =
        py.detach(|| weir_record::compare::compare(&reference.runs, &other.runs, &Rule::defaults()));
    match (compared.rows.is_empty(), compared.left_out.first()) {
        (false, _) => Ok(Comparison { rows: Py::new(py, rows(&compared)?)?, compared }),
        (true, Some((id, reason))) => Err(error::error(
            format!("no runs are left to compare; the first that was excluded is {id}: {reason}"),
            "compare valid results of the same lab",
        )),
        (true, None) => Err(error::error(
            "the two results have no run in common",
            "compare results of the same lab: runs are paired by their labels on each level, and by repeat",
        )),
    }
}

/// Two results, compared.
#[pyclass(module = "weir", frozen)]
pub(crate) struct Comparison {
    compared: Compared,
    rows: Py<Table>,
}

#[pymethods]
impl Comparison {
    /// "agree" if every row agrees, "differ" if any row differs, otherwise "cannot tell".
    #[getter]
    fn verdict(&self) -> &'static str {
        self.compared.verdict().name()
    }

    /// A row for each metric of each subject, in each cell and, if there are several, over all cells (`cell` is empty then): both
    /// means in the metric's unit, the difference with its 95 % interval (`low`, `high`), the bound, and the verdict. With
    /// `relative` 1, differences and the bound are shares of the reference's mean; with 0 they are in the metric's unit.
    #[getter]
    fn rows(&self, py: Python<'_>) -> Py<Table> {
        self.rows.clone_ref(py)
    }

    /// The runs that were left out, each with the reason.
    #[getter]
    fn left_out(&self) -> Vec<(String, String)> {
        self.compared.left_out.clone()
    }

    fn __repr__(&self) -> String {
        format!("<weir.Comparison, {}>", self.verdict())
    }
}

fn rows(compared: &Compared) -> PyResult<Table> {
    let all = &compared.rows;
    let names = |of: &dyn Fn(&Row) -> String| {
        Cells::Names((0..all.len() as u32).collect(), all.iter().map(|row| Arc::from(of(row))).collect())
    };
    let numbers = |of: &dyn Fn(&Row) -> Option<f64>| Cells::OptionalReals(all.iter().map(of).collect());
    let interval = |row: &Row| row.difference.and_then(|difference| difference.interval);
    let cell = |row: &Row| {
        let labels = row.cell.iter().flatten().map(|param| param.value.as_str());
        labels.collect::<Vec<_>>().join("/")
    };
    let bound = |row: &Row| match row.bound {
        Most::Absolute(bound) | Most::Relative(bound) => bound,
    };
    let relative = |row: &Row| u64::from(matches!(row.bound, Most::Relative(_)));
    let columns = [
        ("cell", names(&cell)),
        ("metric", names(&|row| row.metric.clone())),
        ("group", names(&|row| row.group.clone().unwrap_or_default())),
        ("window", names(&|row| row.window.clone().unwrap_or_default())),
        ("reference", numbers(&|row| row.reference)),
        ("other", numbers(&|row| row.other)),
        ("difference", numbers(&|row| row.difference.map(|difference| difference.mean))),
        ("low", numbers(&|row| interval(row).map(|(low, _)| low))),
        ("high", numbers(&|row| interval(row).map(|(_, high)| high))),
        ("bound", Cells::Reals(all.iter().map(bound).collect())),
        ("relative", Cells::Integers(all.iter().map(relative).collect())),
        ("verdict", names(&|row| row.verdict.name().into())),
    ];
    let column = |(name, cells): (&str, Cells)| FrameColumn { name: name.into(), cells };
    Table::new(vec![Frame { columns: columns.into_iter().map(column).collect(), rows: all.len() }])
}
