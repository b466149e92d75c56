//! The pictures of a test: plots of its results, in files of their own.

use weir_report::plot::{Kind, Wanted};

/// A plot of a test's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Name of its file, without an ending.
    pub file: &'static str,
    kind: Kind,
    metric: &'static str,
    of: &'static str,
    by: Option<&'static str>,
    along: Option<&'static str>,
    /// The label that is kept of a level.
    only: Option<(&'static str, String)>,
    log: bool,
}

impl Picture {
    /// A metric of a group or a link over time, a line for each cell.
    pub(crate) fn over_time(file: &'static str, metric: &'static str, of: &'static str) -> Picture {
        Picture { file, kind: Kind::Time, metric, of, by: None, along: None, only: None, log: false }
    }

    /// The distribution of a metric, a line for each cell.
    pub(crate) fn distribution(file: &'static str, metric: &'static str, of: &'static str) -> Picture {
        Picture { kind: Kind::Cdf, ..Picture::over_time(file, metric, of) }
    }

    /// Its mean, a bar for each label of the level.
    pub(crate) fn bars(
        file: &'static str,
        metric: &'static str,
        of: &'static str,
        by: &'static str,
    ) -> Picture {
        Picture { kind: Kind::Bars, by: Some(by), ..Picture::over_time(file, metric, of) }
    }

    /// Its mean along a level, a line for each label of another.
    pub(crate) fn lines(
        file: &'static str,
        metric: &'static str,
        of: &'static str,
        [by, along]: [Option<&'static str>; 2],
    ) -> Picture {
        Picture { kind: Kind::Lines, by, along, ..Picture::over_time(file, metric, of) }
    }

    /// Its mean over two levels.
    pub(crate) fn heat(
        file: &'static str,
        metric: &'static str,
        of: &'static str,
        [by, along]: [&'static str; 2],
    ) -> Picture {
        Picture { kind: Kind::Heat, by: Some(by), along: Some(along), ..Picture::over_time(file, metric, of) }
    }

    /// The same of the cells with this label on this level.
    pub(crate) fn only(self, level: &'static str, label: &str) -> Picture {
        Picture { only: Some((level, label.into())), ..self }
    }

    /// The same with a logarithmic axis, of values or along a level.
    pub(crate) fn log(self) -> Picture {
        Picture { log: true, ..self }
    }

    /// The plot as it is asked for, of a tree with these levels that vary. The mean is taken over those that the picture does not show.
    pub fn wanted(&self, levels: &[String]) -> Wanted {
        let shown = |level: &&String| {
            let is = |name: &str| **level == *name;
            self.by.is_some_and(is)
                || self.along.is_some_and(is)
                || self.only.as_ref().is_some_and(|(name, _)| is(name))
        };
        let has_axes = !matches!(self.kind, Kind::Time | Kind::Cdf);
        let hidden = levels.iter().filter(|level| has_axes && !shown(level));
        Wanted {
            kind: self.kind,
            metric: Some(self.metric.into()),
            of: Some(self.of.into()),
            by: self.by.map(Into::into),
            along: self.along.map(Into::into),
            only: self.only.iter().map(|(level, label)| ((*level).into(), label.clone())).collect(),
            mean_over: hidden.cloned().collect(),
            log: self.log,
            title: None,
            size: None,
        }
    }
}
