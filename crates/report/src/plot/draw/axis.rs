//! An axis whose ticks are given.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// A linear axis with its own ticks.
pub(super) struct Axis {
    scale: RangedCoordf64,
    ticks: Vec<f64>,
}

/// An axis over this range, which may run backwards, with these ticks.
pub(super) fn axis(range: Range<f64>, ticks: Vec<f64>) -> Axis {
    Axis { scale: range.into(), ticks }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.scale.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { vec![] } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.scale.range()
    }
}
