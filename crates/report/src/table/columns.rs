//! The columns of the terminal's table: what each group is judged by, and what else there is of links and groups.

use crate::absent;
use crate::answer::{self, Answer};
use crate::number::{number, rough};
use weir_base::Ecn;
use weir_record::compare::Estimate;
use weir_record::metrics::{ensemble, message, queue, rate, tcp};
use weir_record::{Level, Metric, RunSummary, Statistic, Summary, metric};

/// Largest number of groups with a column each; if there are more, only their sum is shown.
const GROUPS: usize = 24;
/// Largest number of groups with columns other than the one by which each is judged.
const DETAILED: usize = 4;
/// Largest number of links with columns; if more carry data, those with the longest queues.
const LINKS: usize = 4;
/// Worth of a column that is never left out.
pub(super) const MAIN: u8 = 10;
/// Least worth of a column that shows the interval of its mean.
const WITH_INTERVAL: u8 = 7;

/// The value of a run in a column.
type Of = Box<dyn Fn(&RunSummary) -> Option<f64>>;

/// A column of numbers: subject, heading, unit, and worth (the columns of least worth are left out first).
pub(super) struct Column {
    /// The subject: a link, with the class if it is of one, or a group; empty for the whole run.
    pub(super) whose: String,
    pub(super) head: String,
    pub(super) unit: &'static str,
    pub(super) worth: u8,
    of: Of,
    /// The metric and the group, if the column is of one: they explain missing values.
    about: Option<(Metric, String)>,
}

impl Column {
    fn new(
        whose: &str,
        head: &str,
        unit: &'static str,
        worth: u8,
        of: impl Fn(&RunSummary) -> Option<f64> + 'static,
    ) -> Column {
        Column { whose: whose.into(), head: head.into(), unit, worth, of: Box::new(of), about: None }
    }

    /// The mean over some runs, with its interval if there is one.
    pub(super) fn over(&self, runs: &[&RunSummary]) -> String {
        let values: Vec<f64> = runs.iter().filter_map(|run| (self.of)(run)).collect();
        // A cell whose runs have no value says so, and one in which only some have.
        let Some(estimate) = Estimate::of(&values) else { return "–".into() };
        let part = if values.len() < runs.len() {
            format!(" ({}/{})", values.len(), runs.len())
        } else {
            String::new()
        };
        match estimate.interval {
            Some((_, high)) if self.worth >= WITH_INTERVAL => {
                format!("{} ±{}{part}", number(estimate.mean), rough(high - estimate.mean))
            }
            _ => number(estimate.mean) + &part,
        }
    }

    /// Why none of some runs has a value, if there is a reason.
    pub(super) fn why(&self, runs: &[&RunSummary]) -> Option<String> {
        let (metric, group) = self.about.as_ref().filter(|(metric, _)| !metric.absent.is_empty())?;
        let without = runs.iter().all(|run| (self.of)(run).is_none());
        runs.first()
            .filter(|_| without)
            .map(|run| format!("{group} {}", absent::why(metric, run, Some(group))))
    }

    /// Its name in notes: the heading with its subject.
    pub(super) fn name(&self) -> String {
        if self.whose.is_empty() { self.head.clone() } else { format!("{} of {}", self.head, self.whose) }
    }
}

/// The columns that a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// Every usual column.
    All,
    /// The usual columns with these headings, and these metrics of every link and group.
    Named(Vec<Wanted>),
}

/// A column that a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Usual columns, by a heading.
    Heading(String),
    /// A metric, by its name, and a statistic of it.
    Metric(String, Statistic),
}

/// The headings of usual columns that a user may name; those of several words with hyphens.
const HEADINGS: [&str; 14] = [
    "used",
    "delay",
    "p99",
    "drop",
    "mark",
    "retrans",
    "goodput",
    "on time",
    "lost",
    "done",
    "done p99",
    "answer p99",
    "echo p50",
    "ensembles",
];

impl Columns {
    /// Reads `all`, or names of headings and metrics; a metric may be followed by `:p99` or another percentile.
    ///
    /// # Errors
    /// A name that is neither a heading nor a metric.
    pub fn read(names: &[String]) -> Result<Option<Columns>, String> {
        match names {
            [] => Ok(None),
            [all] if all == "all" => Ok(Some(Columns::All)),
            names => names
                .iter()
                .map(|name| Wanted::read(name))
                .collect::<Result<_, _>>()
                .map(|all| Some(Columns::Named(all))),
        }
    }
}

impl Wanted {
    fn read(name: &str) -> Result<Wanted, String> {
        let heading = name.replace(['-', '_'], " ");
        if HEADINGS.contains(&heading.as_str()) {
            return Ok(Wanted::Heading(heading));
        }
        let (name, statistic) = name.split_once(':').unwrap_or((name, "mean"));
        let Some(statistic) = Statistic::ALL.into_iter().find(|known| known.name() == statistic) else {
            return Err(format!("`{statistic}` is none of mean, p1, p25, p50, p75 and p99"));
        };
        if metric(name).is_none() {
            let headings: Vec<String> = HEADINGS.iter().map(|heading| heading.replace(' ', "-")).collect();
            return Err(format!(
                "`{name}` is neither a column ({}) nor a metric (`weir list metrics` prints all)",
                headings.join(", ")
            ));
        }
        Ok(Wanted::Metric(name.into(), statistic))
    }

    /// The columns that are meant, of some usual ones.
    fn columns(&self, usual: &mut Vec<Column>, summary: &Summary) -> Vec<Column> {
        match self {
            Wanted::Heading(head) => usual.extract_if(.., |column| column.head == *head).collect(),
            Wanted::Metric(name, statistic) => {
                metric(name).map_or(vec![], |metric| each_of(*metric, *statistic, summary))
            }
        }
    }
}

/// A metric of the run, or of every link and group that has it.
fn each_of(metric: Metric, statistic: Statistic, summary: &Summary) -> Vec<Column> {
    let percentile = statistic != Statistic::Mean;
    let head = if percentile {
        format!("{} {}", metric.title, statistic.name()).to_lowercase()
    } else {
        metric.title.to_lowercase()
    };
    let mut columns = vec![];
    if metric.of.contains(&Level::Link) {
        let links = summary.runs.iter().flat_map(|run| &run.queues).filter(|queue| !queue.carries.is_empty());
        for link in distinct(links.map(|queue| queue.link.as_str())) {
            let name = link.to_owned();
            columns.push(Column::new(link, &head, metric.unit, MAIN, move |run| {
                statistic.of(run.queues.iter().find(|queue| queue.link == name)?.metrics.value(&metric))
            }));
        }
    }
    if metric.of.contains(&Level::Group) {
        for name in group_names(summary) {
            columns.push(of_group(name, &head, metric, statistic, MAIN));
        }
    }
    if columns.is_empty() {
        columns.push(Column::new("", &head, metric.unit, MAIN, move |run| {
            statistic.of(run.metrics.value(&metric))
        }));
    }
    columns
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    names.for_each(|name| {
        if !all.contains(&name) {
            all.push(name);
        }
    });
    all
}

fn group_names(summary: &Summary) -> Vec<&str> {
    distinct(summary.runs.iter().flat_map(|run| &run.groups).map(|group| &*group.name))
}

/// A metric of a group.
fn of_group(name: &str, head: &str, metric: Metric, statistic: Statistic, worth: u8) -> Column {
    let group = name.to_owned();
    let column = Column::new(name, head, metric.unit, worth, move |run| {
        statistic.of(run.groups.iter().find(|other| *other.name == *group)?.metrics.value(&metric))
    });
    Column { about: Some((metric, name.to_owned())), ..column }
}

/// The columns that have something to show: those that a user asks for, else the usual ones.
pub(super) fn columns(summary: &Summary, wanted: Option<&Columns>) -> Vec<Column> {
    let mut columns = usual(summary);
    if let Some(Columns::Named(names)) = wanted {
        columns = names.iter().flat_map(|name| name.columns(&mut columns, summary)).collect();
    } else {
        // Columns of marks and retransmissions are left out if all their values are 0, as in most labs.
        let shows = |column: &Column| {
            summary.runs.iter().any(|run| (column.of)(run).is_some_and(|value| value != 0.0))
        };
        let quiet = ["mark", "retrans", "lost"];
        columns.retain(|column| !quiet.contains(&column.head.as_str()) || shows(column));
    }
    if wanted.is_some() {
        columns.iter_mut().for_each(|column| column.worth = MAIN);
    }
    columns
        .retain(|column| column.worth == MAIN || summary.runs.iter().any(|run| (column.of)(run).is_some()));
    columns
}

fn usual(summary: &Summary) -> Vec<Column> {
    let mut columns = Vec::new();
    let links = data_links(summary);
    for link in &links {
        columns.extend(columns_of(link, summary));
    }
    columns.extend(groups(summary));
    if links.is_empty() {
        let of_run = |metric: &'static Metric| move |run: &RunSummary| run.metrics.number(metric);
        columns.extend([
            Column::new("", "used", "%", 9, of_run(&queue::UTILISATION)),
            Column::new("", "delay", "ms", 8, of_run(&queue::QUEUE_DELAY)),
            Column::new("", "drop", "%", 6, of_run(&queue::DROP_PROBABILITY)),
        ]);
    }
    columns.push(Column::new("", "retrans", "%", 3, |run| run.metrics.number(&tcp::RETRANSMISSION_PERCENT)));
    columns
}

/// The links that carry data, the busiest first; if there are more than [`LINKS`], those with the longest queues.
fn data_links(summary: &Summary) -> Vec<String> {
    /// A link: its longest delay, and what it sent in all runs.
    struct Seen<'a>(&'a str, f64, f64);
    let mut links: Vec<Seen<'_>> = Vec::new();
    for queue in summary.runs.iter().flat_map(|run| &run.queues).filter(|queue| !queue.carries.is_empty()) {
        let delay = queue.metrics.number(&queue::QUEUE_DELAY).unwrap_or(0.0);
        let sent = queue.metrics.number(&queue::LINK_CAPACITY).zip(queue.metrics.number(&queue::UTILISATION));
        let sent = sent.map_or(0.0, |(capacity, used)| capacity * used);
        match links.iter_mut().find(|link| link.0 == queue.link) {
            Some(link) => (link.1, link.2) = (link.1.max(delay), link.2 + sent),
            None => links.push(Seen(&queue.link, delay, sent)),
        }
    }
    let mut delays: Vec<f64> = links.iter().map(|link| link.1).collect();
    delays.sort_by(|a, b| b.total_cmp(a));
    let least = delays.get(LINKS - 1).copied().unwrap_or(0.0);
    links.retain(|link| link.1 >= least);
    links.truncate(LINKS);
    links.sort_by(|a, b| b.2.total_cmp(&a.2));
    links.into_iter().map(|link| link.0.into()).collect()
}

/// Least share of a class in what a link sent, in percent, for the class to have columns of its own.
const CLASS_PERCENT: f64 = 1.0;

/// The classes of a link with columns of their own, L4S first; empty unless L4S and other packets crossed it.
fn classes_apart(link: &str, summary: &Summary) -> Vec<Ecn> {
    let queues = summary.runs.iter().flat_map(|run| &run.queues).filter(|queue| queue.link == *link);
    let mut classes: Vec<Ecn> = Vec::new();
    for queue in queues {
        let part = |of: &weir_record::ClassSummary| of.metrics.number(&queue::UTILISATION).unwrap_or(0.0);
        let all: f64 = queue.classes.iter().map(part).sum();
        for class in queue.classes.iter().filter(|class| class.class != Ecn::Ce) {
            if 100.0 * part(class) >= CLASS_PERCENT * all
                && part(class) > 0.0
                && !classes.contains(&class.class)
            {
                classes.push(class.class);
            }
        }
    }
    classes.sort_by_key(|class| *class != Ecn::Ect1);
    if classes.len() > 1 && classes[0] == Ecn::Ect1 { classes } else { vec![] }
}

/// The columns of a link: for all its packets, or for each of its classes.
fn columns_of(link: &str, summary: &Summary) -> Vec<Column> {
    let classes = classes_apart(link, summary);
    let of = |class: Option<Ecn>, metric: &'static Metric, statistic: Statistic| {
        let link = link.to_owned();
        move |run: &RunSummary| {
            let queue = run.queues.iter().find(|queue| queue.link == link)?;
            let metrics = match class {
                None => &queue.metrics,
                Some(class) => &queue.classes.iter().find(|one| one.class == class)?.metrics,
            };
            statistic.of(metrics.value(metric))
        }
    };
    let (mean, p99) = (Statistic::Mean, Statistic::P99);
    let mut columns = vec![Column::new(link, "used", "%", 6, of(None, &queue::UTILISATION, mean))];
    let each = if classes.is_empty() { vec![None] } else { classes.into_iter().map(Some).collect() };
    for class in each {
        let whose = match class {
            None => link.to_owned(),
            Some(Ecn::Ect1) => format!("{link} L4S"),
            Some(class) => format!("{link} {}", crate::tables::class_name(class.name())),
        };
        columns.extend([
            Column::new(&whose, "delay", "ms", 8, of(class, &queue::QUEUE_DELAY, mean)),
            Column::new(&whose, "p99", "ms", 5, of(class, &queue::QUEUE_DELAY, p99)),
            Column::new(&whose, "drop", "%", 4, of(class, &queue::DROP_PROBABILITY, mean)),
            Column::new(&whose, "mark", "%", 4, of(class, &queue::MARK_PROBABILITY, mean)),
        ]);
    }
    columns
}

/// The columns of groups: for each what it is judged by, which is never left out, and of a few groups what else their applications
/// wait for. Of very many groups only the sum of their goodputs is shown.
fn groups(summary: &Summary) -> Vec<Column> {
    let names = group_names(summary);
    if names.len() > GROUPS {
        let sum = |run: &RunSummary| {
            run.groups.iter().map(|group| group.metrics.number(&rate::GOODPUT)).sum::<Option<f64>>()
        };
        return vec![Column::new("all groups", "goodput", "Mbit/s", MAIN, sum)];
    }
    let (mut main, mut others) = (vec![], vec![]);
    for name in &names {
        let runs = summary.runs.iter().flat_map(|run| &run.groups).filter(|group| *group.name == **name);
        let goodput = |worth| of_group(name, "goodput", rate::GOODPUT, Statistic::Mean, worth);
        let Some(answer) = answer::of(runs) else {
            main.push(goodput(MAIN));
            continue;
        };
        main.push(of_group(name, answer.head, answer.metric, answer.statistic, MAIN));
        if names.len() <= DETAILED {
            others.push(goodput(7));
            others.extend(details(name, &answer));
        }
    }
    main.extend(others);
    main
}

/// What else applications of a group wait for.
fn details(name: &str, answer: &Answer) -> Vec<Column> {
    const P99: Statistic = Statistic::P99;
    const MEAN: Statistic = Statistic::Mean;
    const KINDS: [(Metric, &str, Statistic, u8); 6] = [
        (message::FRAMES_LOST, "lost", MEAN, 5),
        (message::REQUEST_TIME, "answer p99", P99, 7),
        (message::ECHO_TIME, "echo p99", P99, 5),
        (message::ECHOES_LOST, "lost", MEAN, 5),
        (ensemble::PER_SECOND, "ensembles", MEAN, 7),
        (ensemble::ASYNCHRONY, "asynchrony", MEAN, 7),
    ];
    let others = KINDS.iter().filter(|(_, head, ..)| *head != answer.head);
    others.map(|(metric, head, statistic, worth)| of_group(name, head, *metric, *statistic, *worth)).collect()
}
