//! The names that sections about the tree (`[only]`, `[[plot]]`, `[[expect]]`) may use: levels, labels, windows, groups and
//! links. They are gathered once, so that checking takes linear time.

use crate::diagnostic::{Fault, Origin, nearest, suggest};
use crate::vary::{Level, leading_number};
use std::collections::{BTreeSet, HashMap, HashSet};
use weir_record::Level as Of;

/// The level that a user means: the one of this name, or the only one that ends in these parts (`queue` for `dumbbell.queue`).
pub fn level_named<'a>(levels: impl IntoIterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let is_last_part = |level: &str| level.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    let (mut found, mut others) = (None, 0);
    for level in levels {
        if level == name {
            return Some(level);
        }
        if is_last_part(level) {
            (found, others) = (Some(level), others + 1);
        }
    }
    found.filter(|_| others == 1)
}

/// A level's name in short: the last parts of it, as many as no other level has.
pub fn short_level(levels: &[String], level: usize) -> &str {
    let name = levels[level].as_str();
    let mut parts = name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]);
    parts.find(|part| level_named(levels.iter().map(String::as_str), part) == Some(name)).unwrap_or(name)
}

/// The names of a tree.
#[derive(Default)]
pub struct Names<'a> {
    levels: &'a [Level],
    /// For each level its labels, and the first label that does not begin with a number, if there is one.
    labels: HashMap<&'a str, (HashSet<&'a str>, Option<&'a str>)>,
    groups: BTreeSet<&'a str>,
    /// Groups that have more than one flow, or none, in some cell.
    not_alone: HashSet<&'a str>,
    /// The windows of `[run.windows]`.
    windows: BTreeSet<&'a str>,
    /// Groups and instrumented links.
    members: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    /// The names of these levels.
    pub(crate) fn of(levels: &'a [Level]) -> Names<'a> {
        let labels = |level: &'a Level| {
            let labels = || level.choices.iter().map(|choice| choice.label.as_str());
            let unnumbered = labels().find(|label| leading_number(label).is_none());
            (level.name.as_str(), (labels().collect(), unnumbered))
        };
        Names { levels, labels: levels.iter().map(labels).collect(), ..Names::default() }
    }

    /// A window of some cell.
    pub(crate) fn add_window(&mut self, name: &'a str) {
        self.windows.insert(name);
    }

    /// An instrumented link of some cell.
    pub(crate) fn add_link(&mut self, name: &'a str) {
        self.members.insert(name);
    }

    /// A traffic group of some cell, and how many flows it has there.
    pub(crate) fn add_group(&mut self, name: &'a str, flows: u64) {
        self.groups.insert(name);
        self.members.insert(name);
        if flows != 1 {
            self.not_alone.insert(name);
        }
    }

    /// The levels, each with its labels, in the order of the tree.
    pub fn levels(&self) -> impl Iterator<Item = (&'a str, Vec<&'a str>)> {
        let labels = |level: &'a Level| level.choices.iter().map(|choice| choice.label.as_str()).collect();
        self.levels.iter().map(move |level| (level.name.as_str(), labels(level)))
    }

    /// The fault of a level's name; `None` if the tree has the level.
    pub fn level(&self, level: &str, origin: Origin) -> Option<Fault> {
        if self.has_level(level) {
            return None;
        }
        let help = suggest(level, self.levels.iter().map(|level| level.name.as_str()));
        Some(Fault::new(origin, format!("the tree has no level `{level}`"), help))
    }

    /// Whether the tree has this level.
    pub fn has_level(&self, level: &str) -> bool {
        self.labels.contains_key(level)
    }

    /// The fault of a window's name; `None` if the run has the window.
    pub fn window(&self, name: &str, origin: Origin) -> Option<Fault> {
        if self.windows.contains(name) {
            return None;
        }
        let help = match self.windows.is_empty() {
            true => format!("write [run.windows], and under it {name} = [\"2 s\", \"8 s\"]"),
            false => suggest(name, self.windows.iter().copied()),
        };
        Some(Fault::new(origin, format!("the run has no window `{name}`"), help))
    }

    /// The fault of a level's name or of the first unknown label; `None` if the level has them all.
    pub fn labels(
        &self,
        level: &str,
        named: impl IntoIterator<Item = impl AsRef<str>>,
        origin: Origin,
    ) -> Option<Fault> {
        let Some((labels, _)) = self.labels.get(level) else { return self.level(level, origin) };
        let unknown = named.into_iter().find(|label| !labels.contains(label.as_ref()))?;
        let unknown = unknown.as_ref();
        let choices = self.levels.iter().find(|other| other.name == level)?.choices.iter();
        let help = suggest(unknown, choices.map(|choice| choice.label.as_str()));
        Some(Fault::new(origin, format!("the level `{level}` has no \"{unknown}\""), help))
    }

    /// The fault of a level whose labels must begin with numbers; `None` if they do.
    pub fn numbers(&self, level: &str, origin: Origin) -> Option<Fault> {
        let Some((_, unnumbered)) = self.labels.get(level) else { return self.level(level, origin) };
        let message = format!("the label \"{}\" of that level does not begin with a number", (*unnumbered)?);
        Some(Fault::new(origin, message, "name a level of rates, times or counts"))
    }

    /// The fault of a metric and of the names that it is taken of, at the place of the names or of the metric. `None` if all is
    /// right.
    pub fn metric(
        &self,
        metric: &str,
        of: &[String],
        by_class: bool,
        [of_origin, metric_origin]: [Origin; 2],
    ) -> Option<Fault> {
        let taken = self.taken_of(metric, of).map(|level| match level {
            Of::Run | Of::Link if by_class => Of::Class,
            level => level,
        });
        match taken {
            Ok(level) => metric_fault(metric, level, metric_origin),
            Err(name) => {
                let message = format!("no group, flow or link is called `{name}`");
                let several = of.len() > 1;
                let names = if several { &self.groups } else { &self.members };
                Some(Fault::new(of_origin, message, suggest(name, names.iter().copied())))
            }
        }
    }

    /// The kind of thing that a metric is taken of: a group, a link, a flow, two groups or the whole run. The error is an
    /// unknown name in `of`.
    fn taken_of<'b>(&self, metric: &str, of: &'b [String]) -> Result<Of, &'b str> {
        let of = match of {
            [] => return Ok(Of::Run),
            [of] => of.as_str(),
            several => {
                return match several.iter().find(|of| !self.groups.contains(of.as_str())) {
                    Some(unknown) => Err(unknown),
                    None => Ok(Of::Pair),
                };
            }
        };
        let is_flow = || {
            let (group, number) = of.rsplit_once('-')?;
            Some(self.groups.contains(group) && number.parse::<u64>().is_ok())
        };
        if self.groups.contains(of) {
            // A group of one flow has that flow's name, so claims about it may also use metrics of flows alone.
            let of_flows = weir_record::metric(metric)
                .is_some_and(|metric| metric.of.contains(&Of::Flow) && !metric.of.contains(&Of::Group));
            let flow = of_flows && !self.not_alone.contains(of);
            Ok(if flow { Of::Flow } else { Of::Group })
        } else if self.members.contains(of) {
            Ok(Of::Link)
        } else if is_flow() == Some(true) {
            Ok(Of::Flow)
        } else {
            Err(of)
        }
    }
}

/// The fault of a metric at this level; `None` if the metric exists there.
fn metric_fault(name: &str, level: Of, origin: Origin) -> Option<Fault> {
    let Some(metric) = weir_record::metric(name) else {
        let help = match nearest(name, weir_record::METRICS.iter().map(|metric| metric.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`weir list metrics` shows them all".into(),
        };
        return Some(Fault::new(origin, format!("there is no metric `{name}`"), help));
    };
    if metric.of.contains(&level) {
        return None;
    }
    let of = match level {
        Of::Group => "a traffic group",
        Of::Link => "a link",
        Of::Flow => "a flow",
        Of::Pair => "two groups",
        Of::Class => "the packets of one codepoint",
        _ => "the whole run",
    };
    let help = "`of` names what a metric describes; `weir describe METRIC` shows what this can be";
    Some(Fault::new(origin, format!("`{name}` is not a metric of {of}"), help))
}

#[cfg(test)]
mod tests {
    use super::level_named;

    #[test]
    fn a_level_is_named_in_full_or_by_last_parts_that_no_other_has() {
        let levels = ["dumbbell.queue", "a.cc", "b.cc", "cc.rate"];
        assert_eq!(level_named(levels, "dumbbell.queue"), Some("dumbbell.queue"));
        assert_eq!(level_named(levels, "queue"), Some("dumbbell.queue"));
        assert_eq!((level_named(levels, "cc"), level_named(levels, "ueue")), (None, None));
        assert_eq!(level_named(["a.cc", "cc"], "cc"), Some("cc"));
        // The last parts of a level, as many as no other level has.
        assert_eq!(level_named(["traffic.a.cc", "traffic.b.cc"], "a.cc"), Some("traffic.a.cc"));
    }
}
