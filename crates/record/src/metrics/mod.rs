//! The registry of metrics: each is declared once, in the file of its family, with its title, unit, levels, definition, source,
//! bound, domain and reduction. From the declaration follow its value in `summary.json`, its column in the tables, its curve, its
//! distribution, its plot on a run's page, and what claims, `weir list`, `weir plot` and `weir compare` know of it.

/// Declares a family of metrics: a constant for each, and all of them in the order in which they are shown.
macro_rules! family {
    ($($constant:ident { name: $name:literal, $($rest:tt)* })*) => {
        $(
            #[doc = concat!("The metric `", $name, "`.")]
            pub const $constant: Metric = Metric { name: $name, $($rest)* ..Metric::USUAL };
        )*
        /// The metrics of this family, in the order in which they are shown.
        pub(super) const FAMILY: &[Metric] = &[$($constant),*];
    };
}

pub mod admission;
pub mod aqm;
pub mod completion;
pub mod connection;
mod domain;
pub mod ensemble;
pub mod flowshare;
mod found;
pub mod harm;
pub mod limited;
pub mod message;
pub mod overlay;
pub mod point;
pub mod queue;
pub mod rate;
mod reduction;
pub mod second;
mod shown;
mod state_values;
pub mod steadiness;
pub mod tcp;
#[cfg(test)]
mod tests;
mod transit;
mod value;
mod view;
mod window;

pub use domain::{Domain, Outside};
pub use found::Metrics;
pub(crate) use reduction::{Counts, Flows, Packets, Reduction};
pub use second::SETTLING_TOLERANCE;
pub use shown::{Column, Plot, Zeros};
pub(crate) use value::ratio;
pub use value::{Distribution, Value};
pub use view::View;
pub use window::Window;

use crate::bound::Bound;
use reduction::{Queue, of_flows, of_queue};
use serde::{Deserialize, Serialize};
use weir_base::Ecn;

/// All families, in the order in which their metrics are shown.
const FAMILIES: [&[Metric]; 16] = [
    queue::FAMILY,
    aqm::FAMILY,
    rate::FAMILY,
    tcp::FAMILY,
    limited::FAMILY,
    completion::FAMILY,
    message::FAMILY,
    connection::FAMILY,
    ensemble::FAMILY,
    flowshare::FAMILY,
    point::FAMILY,
    overlay::FAMILY,
    admission::FAMILY,
    second::FAMILY,
    steadiness::FAMILY,
    harm::FAMILY,
];

/// All metrics, in the order in which they are shown.
pub const METRICS: &[Metric] = &all();

const fn count() -> usize {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
}

const fn all() -> [Metric; count()] {
    let (mut all, mut count, mut family) = ([Metric::USUAL; count()], 0, 0);
    while family < FAMILIES.len() {
        let mut place = 0;
        while place < FAMILIES[family].len() {
            all[count] = FAMILIES[family][place];
            (count, place) = (count + 1, place + 1);
        }
        family += 1;
    }
    all
}

/// A metric: its name, definition, source and reduction.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, which carries the unit unless it is a count or a plain ratio.
    pub name: &'static str,
    /// Its title in reports.
    pub title: &'static str,
    /// Its unit: `%`, `ms`, `Mbit/s`, `packets`, ...; empty for a plain ratio.
    pub unit: &'static str,
    /// The levels for which it is computed.
    pub of: &'static [Level],
    /// Its definition.
    pub definition: &'static str,
    /// The source of its definition.
    pub source: &'static str,
    /// Default bound within which two results agree; `None` if comparisons judge it only when asked to.
    pub bound: Option<Bound>,
    /// Difference, in its unit, up to which two values count as equal where the bound is a share: a share of almost nothing
    /// says nothing.
    pub negligible: f64,
    /// The values that it can have: any other is an error of weir itself.
    pub domain: Domain,
    /// What a subject of a run did that has no value of it, for example `did not complete`; empty if there is nothing to say.
    pub absent: &'static str,
    /// Its plot on a run's page, with a line for each group; `None` if it has none, or is one of the lines of another plot.
    pub plot: Option<Plot>,
    /// Its numbers on the index.
    pub columns: &'static [Column],
    /// Names of the recorded states of queues, transports or stations from which it is computed.
    pub(crate) states: &'static [&'static str],
    /// How it is computed.
    pub(crate) reduction: Reduction,
    /// How it is computed for each point of a curve, if not as for the window.
    pub(crate) curve: Option<Reduction>,
}

impl Metric {
    /// What a declaration need not say.
    const USUAL: Metric = Metric {
        name: "",
        title: "",
        unit: "",
        of: &[],
        definition: "",
        source: "",
        bound: None,
        negligible: 0.0,
        domain: Domain::NotNegative,
        absent: "",
        plot: None,
        columns: &[],
        states: &[],
        reduction: Reduction::Flows(|_| Value::Undefined),
        curve: None,
    };
}

impl Metric {
    /// Whether runs have its distribution, for cumulative plots.
    pub fn has_spread(&self) -> bool {
        use Reduction::{Completions, Delays, Rtts, Took};
        matches!(self.reduction, Delays | Rtts | Completions | Took(_))
    }

    /// Whether it is computed over time, for curves.
    pub fn has_curve(&self) -> bool {
        use Reduction::{Counts, Estimates, GrowthShare, Packets, Share, StateMean, StateSum, Windows};
        let curve = self.curve.unwrap_or(self.reduction);
        let of_records = matches!(curve, Packets(_) | Counts(_) | Windows | Share(..));
        let of_states = matches!(curve, Estimates | StateMean { .. } | StateSum { .. } | GrowthShare(_));
        of_records || of_states || self.has_spread()
    }
}

/// By name, which is unique.
impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

/// What a metric is computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The whole run: all flows; for metrics of queues, the bottleneck's queue.
    Run,
    /// A link and its queue.
    Link,
    /// The packets at a link that arrived with one codepoint.
    Class,
    /// One flow.
    Flow,
    /// A traffic group.
    Group,
    /// Two traffic groups, the earlier relative to the later.
    Pair,
}

/// The metrics that are computed for a level: made at compile time, since they are computed for each of thousands of flows.
struct OfLevel {
    all: Places,
    /// Those that flows may have which have no more than packets and a window.
    plain: Places,
    /// Number of metrics that are never left out.
    always: usize,
}

/// Metrics by their places in [`METRICS`].
#[derive(Clone, Copy)]
struct Places {
    places: [u8; METRICS.len()],
    count: usize,
}

impl Places {
    const NONE: Places = Places { places: [0; METRICS.len()], count: 0 };

    const fn with(mut self, place: usize) -> Places {
        self.places[self.count] = place as u8;
        self.count += 1;
        self
    }
}

const OF_LEVEL: &[OfLevel; Level::Pair as usize + 1] = &{
    const NONE: OfLevel = OfLevel { all: Places::NONE, plain: Places::NONE, always: 0 };
    let mut of_level = [NONE; Level::Pair as usize + 1];
    let mut number = 0;
    while number < METRICS.len() {
        let (levels, mut place) = (METRICS[number].of, 0);
        while place < levels.len() {
            let of = &mut of_level[levels[place] as usize];
            of.all = of.all.with(number);
            if METRICS[number].reduction.of_plain_flows() {
                of.plain = of.plain.with(number);
            }
            of.always += METRICS[number].reduction.always() as usize;
            place += 1;
        }
        number += 1;
    }
    of_level
};

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

fn compute(level: Level, value: impl Fn(&Metric) -> Option<Value>) -> Metrics {
    compute_these(level, &OF_LEVEL[level as usize].all, value)
}

fn compute_these(level: Level, these: &Places, value: impl Fn(&Metric) -> Option<Value>) -> Metrics {
    let mut found = Metrics::with_room(OF_LEVEL[level as usize].always);
    for &place in &these.places[..these.count] {
        if let Some(value) = value(&METRICS[usize::from(place)]) {
            found.push(place, value.rounded());
        }
    }
    found
}

impl View<'_> {
    /// Metrics of the run as a whole.
    pub fn of_run(&self) -> Metrics {
        let all: Vec<usize> = (0..self.flows.len()).collect();
        let flows = Flows::new(self, &all, Level::Run);
        let bottleneck =
            self.info.bottleneck.map(|link| link as usize).filter(|&link| link < self.links.len());
        compute(Level::Run, |metric| match bottleneck {
            Some(link) => of_queue(metric, &self.queue(link, None)).or_else(|| of_flows(metric, &flows)),
            None if metric.reduction.of_any_queue() => Some(Value::Undefined),
            None => of_flows(metric, &flows),
        })
    }

    /// Metrics of a link, or of one class of its packets; empty if there is no such link.
    pub fn of_link(&self, link: usize, class: Option<Ecn>) -> Metrics {
        let level = if class.is_some() { Level::Class } else { Level::Link };
        compute(level, |metric| {
            if link < self.links.len() { of_queue(metric, &self.queue(link, class)) } else { None }
        })
    }

    /// Metrics of a flow; empty if there is no such flow.
    pub fn of_flow(&self, flow: usize) -> Metrics {
        if flow >= self.flows.len() {
            return Metrics::default();
        }
        let alone = [flow];
        let flows = Flows::new(self, &alone, Level::Flow);
        let OfLevel { all, plain, .. } = &OF_LEVEL[Level::Flow as usize];
        let these = if flows.are_plain() { plain } else { all };
        compute_these(Level::Flow, these, |metric| of_flows(metric, &flows))
    }

    /// Metrics of a group.
    pub fn of_group(&self, group: usize) -> Metrics {
        let members = self.members(group);
        let flows = Flows::new(self, &members, Level::Group);
        compute(Level::Group, |metric| of_flows(metric, &flows))
    }

    /// Metrics of one group relative to another.
    pub fn of_pair(&self, group: usize, other: usize) -> Metrics {
        let members = [self.members(group), self.members(other)];
        let [a, b] = members.each_ref().map(|members| Flows::new(self, members, Level::Group));
        compute(Level::Pair, |metric| match metric.reduction {
            Reduction::Pair(f) => Some(f(&a, &b)),
            _ => None,
        })
    }

    /// The codepoints with which packets arrived at a link.
    pub fn classes(&self, link: usize) -> impl Iterator<Item = Ecn> + '_ {
        let arrived = self.links.get(link).map_or([0; 4], |link| link.sum.arrived);
        weir_base::CODEPOINTS.into_iter().filter(move |&class| arrived[class as usize] > 0)
    }

    fn queue(&self, link: usize, class: Option<Ecn>) -> Queue<'_> {
        Queue { view: self, link, class }
    }
}
