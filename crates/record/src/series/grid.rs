//! The grid of a run's series: points, each of one sample period or several, and the records in them.

use super::Values;
use crate::metrics::{View, ratio};
use crate::packed::PackedHistogram;
use crate::selector::Statistic;
use std::cell::Cell;
use weir_base::{Histogram, Span, Time};

/// The grid of points.
pub(super) struct Grid {
    sample: Span,
    /// Number of sample periods in a point.
    step: u64,
    /// For each point, the time that its records cover.
    covered: Vec<Span>,
    /// The last time that was looked up, and its point: records are in the order of time, so that most have the time of the one
    /// before.
    last: Cell<(Time, usize)>,
}

impl Grid {
    /// The grid of a view's whole run, with at most this many points.
    pub(super) fn new(view: &View<'_>, most: usize) -> Grid {
        // The first bound is the start of the run.
        let ends = view.bounds.get(1..).unwrap_or_default();
        let last = ends.last().copied().unwrap_or(Time::ZERO);
        // If the description gives no period, the whole run is one point.
        let sample = view.info.sample;
        let sample = if sample.is_zero() { last.since(Time::ZERO) } else { sample };
        let mut grid = Grid { sample, step: 1, covered: Vec::new(), last: Cell::default() };
        let periods = if ends.is_empty() { 0 } else { grid.point(last) + 1 };
        grid.step = periods.div_ceil(most.max(1)).max(1) as u64;
        grid.last = Cell::default();
        let mut last_of_point = vec![Time::ZERO; periods.div_ceil(grid.step as usize)];
        for &at in ends {
            last_of_point[grid.point(at)] = at;
        }
        let mut before = Time::ZERO;
        for end in last_of_point {
            grid.covered.push(end.since(before));
            before = before.max(end);
        }
        grid
    }

    /// The point of a period that ends at `at`, within half a period.
    pub(super) fn point(&self, at: Time) -> usize {
        let (last, point) = self.last.get();
        if last == at {
            return point;
        }
        let sample = self.sample.as_nanos().max(1);
        let period =
            (at.as_nanos() / sample + u64::from(at.as_nanos() % sample >= sample.div_ceil(2))).max(1) - 1;
        let point = (period / self.step) as usize;
        self.last.set((at, point));
        point
    }

    pub(super) fn period(&self) -> Span {
        self.sample * self.step
    }

    /// For each point, the time that its records cover.
    pub(super) fn covered(&self) -> &[Span] {
        &self.covered
    }

    pub(super) fn count(&self) -> usize {
        self.covered.len()
    }

    /// Points without records.
    pub(super) fn points<'r, T>(&self) -> Points<'r, T> {
        std::iter::repeat_with(|| None).take(self.count()).collect()
    }

    /// Adds a record to those of its point.
    pub(super) fn join<'r, T: Clone>(
        &self,
        points: &mut Points<'r, T>,
        at: Time,
        record: &'r T,
        merge: impl Fn(&mut T, &T),
    ) {
        let Some(point) = points.get_mut(self.point(at)) else { return };
        let mut sum = match point.take() {
            None => {
                *point = Some(Merged::One(record));
                return;
            }
            Some(Merged::One(first)) => Box::new(first.clone()),
            Some(Merged::Several(sum)) => sum,
        };
        merge(&mut sum, record);
        *point = Some(Merged::Several(sum));
    }

    /// Means without values.
    pub(super) fn means(&self) -> Means {
        Means(vec![(0.0, 0.0); self.count()])
    }

    /// Means of the values in each point.
    pub(super) fn means_of(&self, values: impl Iterator<Item = (Time, f64)>) -> Values {
        let mut means = self.means();
        values.for_each(|(at, value)| means.add(self.point(at), value));
        means.values()
    }

    /// A statistic of the histograms in each point, in milliseconds; the histograms are in the order of their times. Nearly all
    /// points have only one histogram, which need not be unpacked and merged.
    pub(super) fn times<'r>(
        &self,
        histograms: impl Iterator<Item = (Time, &'r PackedHistogram)>,
        statistic: Statistic,
    ) -> Values {
        let share = statistic.share();
        let of_one = |one: &PackedHistogram| share.map_or_else(|| one.mean(), |share| one.percentile(share));
        let of_all = |all: &Histogram| share.map_or_else(|| all.mean(), |share| all.percentile(share));
        let mut values = vec![None; self.count()];
        let mut merged = Histogram::new();
        let counted = histograms.filter(|(_, histogram)| histogram.count() > 0);
        let mut rest = counted.map(|(at, histogram)| (self.point(at), histogram)).peekable();
        while let Some((point, first)) = rest.next() {
            let mut value = None;
            if rest.peek().is_some_and(|(next, _)| *next == point) {
                first.add_to(&mut merged);
                while let Some((_, other)) = rest.next_if(|(next, _)| *next == point) {
                    other.add_to(&mut merged);
                }
                value = of_all(&merged);
                merged.clear();
            }
            if let Some(place) = values.get_mut(point) {
                *place = Some(value.unwrap_or_else(|| of_one(first)).as_millis_f64());
            }
        }
        values
    }
}

/// The records of each point; nearly all points have at most one.
pub(super) type Points<'r, T> = Vec<Option<Merged<'r, T>>>;

/// The records of a point, merged into one.
pub(super) enum Merged<'r, T> {
    One(&'r T),
    Several(Box<T>),
}

impl<T> std::ops::Deref for Merged<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match self {
            Merged::One(record) => record,
            Merged::Several(sum) => sum,
        }
    }
}

/// For each point, the sum and the number of the values in it.
pub(super) struct Means(Vec<(f64, f64)>);

impl Means {
    pub(super) fn add(&mut self, point: usize, value: f64) {
        if let Some((sum, count)) = self.0.get_mut(point) {
            *sum += value;
            *count += 1.0;
        }
    }

    pub(super) fn values(&self) -> Values {
        self.0.iter().map(|&(sum, count)| ratio(sum, count)).collect()
    }
}
