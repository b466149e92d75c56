//! Where a report shows a metric: as a plot of a run's page, and as numbers of the index.

use crate::selector::Statistic;
use serde::Serialize;

/// A metric's own plot on a run's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plot {
    /// Its place among the plots of this kind.
    pub place: u8,
    /// The key by which the plots of two engines are matched.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
}

/// A number of the index: its mean over the repeats of a cell, for each link (or class) or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its place among the numbers of a link or a group.
    #[serde(skip)]
    pub place: u8,
    /// Its key in the page.
    pub key: &'static str,
    /// Its name in the page.
    pub what: &'static str,
    /// The statistic, if the metric is a distribution.
    pub statistic: Statistic,
    /// Whether L4S packets have a number of their own where they are separate.
    pub by_class: bool,
    /// Whether it is the first of its link or group.
    pub main: bool,
    /// What becomes of zeros.
    pub zeros: Zeros,
}

/// What becomes of zeros in a number of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zeros {
    /// They are numbers like others.
    Shown,
    /// A mean of zero is not shown.
    Hidden,
    /// Runs with zero do not count.
    LeftOut,
}

impl Column {
    /// A number, the mean if the metric is a distribution.
    pub(super) const fn new(place: u8, key: &'static str, what: &'static str) -> Column {
        let (statistic, zeros) = (Statistic::Mean, Zeros::Shown);
        Column { place, key, what, statistic, by_class: false, main: false, zeros }
    }

    pub(super) const fn of(self, statistic: Statistic) -> Column {
        Column { statistic, ..self }
    }

    pub(super) const fn main(self) -> Column {
        Column { main: true, ..self }
    }

    pub(super) const fn by_class(self) -> Column {
        Column { by_class: true, ..self }
    }

    pub(super) const fn zeros(self, zeros: Zeros) -> Column {
        Column { zeros, ..self }
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::{Level, METRICS};
    use std::collections::HashSet;

    #[test]
    fn numbers_and_plots_have_keys_and_places_of_their_own() {
        for level in [Level::Link, Level::Class, Level::Group] {
            let of_level = METRICS.iter().filter(|metric| metric.of.contains(&level));
            let shown: Vec<_> = of_level.flat_map(|metric| metric.columns).collect();
            let keys: HashSet<&str> = shown.iter().map(|column| column.key).collect();
            let places: HashSet<u8> = shown.iter().map(|column| column.place).collect();
            assert_eq!((keys.len(), places.len()), (shown.len(), shown.len()), "{level:?}");
        }
        let plots: Vec<_> = METRICS.iter().filter_map(|metric| metric.plot).collect();
        let keys: HashSet<&str> = plots.iter().map(|plot| plot.key).collect();
        let places: HashSet<u8> = plots.iter().map(|plot| plot.place).collect();
        assert_eq!((keys.len(), places.len()), (plots.len(), plots.len()));
    }
}
