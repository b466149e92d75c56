//! The data of the pages' scripts: the lab's table for the index and the comparison, and each run's series. Pages open from
//! disk, where a browser lets no script fetch a file: the data files are therefore scripts themselves, `weir.lab({...})`.

mod overlay;

use crate::absent;
use crate::charts::{Chart, Ink, RunSeries};
use crate::compact::{push_compact, push_line};
use crate::lab::{Group, Lab, Link, PIECE, Run};
use crate::naming::spelled;
use crate::number::rounded;
use crate::repeats;
use crate::sentence;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use weir_base::CODEPOINTS;
use weir_record::metrics::aqm::{AQM_DROP, AQM_MARK};
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::message::{FRAME_DELAY, FRAMES_LOST, REQUESTS_PER_SECOND};
use weir_record::metrics::queue::{ARRIVED, LINK_CAPACITY, UTILISATION};
use weir_record::metrics::rate::{JAIN, RATE_RATIO, WINDOW_RATIO};
use weir_record::metrics::tcp::{CWND, RTT_BASE};
use weir_record::{ClassSummary, Column, Level, METRICS, Metric, Metrics, RunSummary, Value};

/// `report/lab.js`: every run's numbers, as lists in the order of the metrics that the head names. The runs are JSON within a string,
/// since a browser reads thousands of rows quicker so than as literals of a script.
pub(crate) fn lab(lab: &Lab) -> Vec<u8> {
    let groups = lab.group_names();
    let engines = lab.engines();
    let links = link_names(lab);
    let values = level_values(lab);
    let head = json!({
        "lab": lab.name, "levels": lab.levels, "values": values, "groups": groups, "engines": engines, "links": links,
        "classes": CODEPOINTS.map(|class| class.name()), "piece": lab.is_large().then_some(PIECE),
        "growing": u8::from(lab.growing), "metrics": u8::from(lab.has_columns),
        "of": { "run": names(OF_RUN), "pair": names(OF_PAIR), "link": names(&of_level(Level::Link)),
                "class": names(&of_level(Level::Class)), "group": names(&of_level(Level::Group)) },
        "columns": columns(),
    });
    let mut script = b"weir.lab(".to_vec();
    push_json(&head, &mut script);
    push(&mut script, b",JSON.parse('[\\\n");
    let of_group = of_level(Level::Group);
    let head = Head {
        known: known(lab, &groups, &of_group),
        groups: &groups,
        engines: &engines,
        links: &links,
        values: &values,
        of_link: of_level(Level::Link),
        of_class: of_level(Level::Class),
        of_group,
    };
    let doubts = doubts(lab);
    let mut row = vec![];
    for (place, (run, doubts)) in lab.runs.iter().zip(&doubts).enumerate() {
        if place > 0 {
            push(&mut script, b",\\\n");
        }
        row.clear();
        push_json(&head.run(run, doubts), &mut row);
        push_quoted(&row, &mut script);
    }
    push(&mut script, b"\\\n]'));\n");
    script
}

fn link_names(lab: &Lab) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for link in lab.runs.iter().flat_map(Run::links) {
        if !names.contains(&link.name()) {
            names.push(link.name());
        }
    }
    names
}

/// For each run what the repeats of its cell do not settle, if it is the first of them.
fn doubts(lab: &Lab) -> Vec<Vec<String>> {
    let mut cells: HashMap<(&[String], &str), Vec<usize>> = HashMap::new();
    for (place, run) in lab.runs.iter().enumerate() {
        cells.entry((run.params.as_slice(), run.engine())).or_default().push(place);
    }
    let mut doubts = vec![vec![]; lab.runs.len()];
    for places in cells.values() {
        let all = || places.iter().map(|place| &lab.runs[*place]);
        let any_sound = all().any(Run::is_sound);
        let runs: Vec<&RunSummary> =
            all().filter(|run| run.is_sound() || !any_sound).map(|run| &*run.summary).collect();
        doubts[places[0]] = repeats::doubts(&runs);
    }
    doubts
}

/// For each group the places of the metrics of which a run has a value, among those with a reason for their absence.
fn known(lab: &Lab, groups: &[&str], of_group: &[Metric]) -> Vec<Vec<usize>> {
    let explained: Vec<usize> =
        (0..of_group.len()).filter(|metric| !of_group[*metric].absent.is_empty()).collect();
    let has = |name: &str, metric: usize| {
        let mut all = lab.runs.iter().flat_map(Run::groups).filter(|group| *group.summary.name == *name);
        all.any(|group| {
            let told = of_group[metric] != COMPLETION_TIME || group.summary.completes;
            told && group.number(&of_group[metric]).is_some()
        })
    };
    groups
        .iter()
        .map(|name| explained.iter().copied().filter(|metric| has(name, *metric)).collect())
        .collect()
}

/// The values of each level, in order of appearance.
fn level_values(lab: &Lab) -> Vec<Vec<&str>> {
    let mut values: Vec<Vec<&str>> = vec![Vec::new(); lab.levels.len()];
    for run in &lab.runs {
        for (known, value) in values.iter_mut().zip(&run.params) {
            if !known.contains(&value.as_str()) {
                known.push(value);
            }
        }
    }
    values
}

fn place<T: PartialEq + ?Sized>(names: &[&T], name: &T) -> usize {
    names.iter().position(|known| *known == name).unwrap_or(0)
}

/// The metrics of the run itself, and of its first pair of groups.
const OF_RUN: &[Metric] = &[JAIN];
const OF_PAIR: &[Metric] = &[RATE_RATIO, WINDOW_RATIO];
/// The metrics of links, classes and groups that the index or the comparison shows, without those that declare columns.
const COMPARED: &[Metric] =
    &[LINK_CAPACITY, AQM_DROP, AQM_MARK, CWND, RTT_BASE, REQUESTS_PER_SECOND, FRAME_DELAY, FRAMES_LOST];

/// The metrics of a level in the lab's table, in the order of their values.
fn of_level(level: Level) -> Vec<Metric> {
    let shown = |metric: &&Metric| !metric.columns.is_empty() || COMPARED.contains(metric);
    METRICS.iter().filter(|metric| metric.of.contains(&level)).filter(shown).copied().collect()
}

fn names(metrics: &[Metric]) -> Vec<&'static str> {
    metrics.iter().map(|metric| metric.name).collect()
}

/// The numbers of the index, as the metrics declare them.
fn columns() -> Vec<Json> {
    let all = METRICS.iter().flat_map(|metric| metric.columns.iter().map(move |column| (metric, column)));
    let mut all: Vec<(&Metric, &Column)> = all.collect();
    all.sort_by_key(|(_, column)| column.place);
    let one = |(metric, column): (&Metric, &Column)| json!({ "metric": metric.name, "unit": metric.unit, "of": metric.of, "shown": column });
    all.into_iter().map(one).collect()
}

/// A run's line in the lab's table. Values of levels, engines, groups and links are indices into the lists of the table's
/// head, and `v` holds the values of the metrics that the head names.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    /// Index in the tree.
    k: usize,
    /// Engine.
    e: usize,
    /// Choice on each level.
    p: Vec<usize>,
    /// Number of the repeat.
    n: u32,
    /// Sentence.
    s: String,
    /// Whether it is invalid.
    x: u8,
    /// Warnings; those of the cell's repeats together stand in its first run.
    w: Vec<&'a str>,
    /// Bottleneck.
    b: Option<usize>,
    /// Metrics of the run.
    v: Vec<Digits>,
    /// Metrics of the first pair of groups.
    pair: Vec<Digits>,
    /// Links.
    l: Vec<LinkRow>,
    /// Groups.
    g: Vec<GroupRow>,
    /// Metrics that other runs have of a group and this one has not: group, metric, and the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    a: Vec<(usize, usize, String)>,
}

#[derive(Serialize)]
struct LinkRow {
    i: usize,
    /// Whether it carries data.
    t: u8,
    /// Queue.
    q: String,
    /// When its traffic ended, if that was before the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    z: Option<f64>,
    v: Vec<Digits>,
    /// The codepoints of its packets.
    c: Vec<ClassRow>,
}

#[derive(Serialize)]
struct ClassRow {
    i: usize,
    v: Vec<Digits>,
}

#[derive(Serialize)]
struct GroupRow {
    i: usize,
    /// Its narrowest link.
    l: Option<usize>,
    v: Vec<Digits>,
}

/// A value: nothing, a number, or mean and percentiles 1, 25, 50, 75 and 99 of a distribution.
#[derive(Serialize)]
#[serde(untagged)]
enum Digits {
    Number(Option<f64>),
    Distribution([f64; 6]),
}

/// The names that the indices of rows refer to, and the metrics of each level.
struct Head<'a> {
    groups: &'a [&'a str],
    engines: &'a [&'a str],
    links: &'a [&'a str],
    values: &'a [Vec<&'a str>],
    of_link: Vec<Metric>,
    of_class: Vec<Metric>,
    of_group: Vec<Metric>,
    /// For each group those metrics with a reason for their absence of which a run has a value.
    known: Vec<Vec<usize>>,
}

impl Head<'_> {
    fn run<'r>(&self, run: &'r Run, doubts: &'r [String]) -> Row<'r> {
        let sent = |link: &Link<'_>| {
            link.queue.metrics.count(&ARRIVED) > Some(0)
                || link.number(&UTILISATION).is_some_and(|used| used > 0.0)
        };
        let choice = |(known, value): (&Vec<&str>, &String)| place(known, value.as_str());
        let (own, none) = (&run.summary, Metrics::default());
        Row {
            id: &run.id,
            k: run.number,
            e: place(self.engines, run.engine()),
            p: self.values.iter().zip(&run.params).map(choice).collect(),
            n: own.repeat,
            s: sentence::run(run),
            x: u8::from(!run.is_sound()),
            w: run.warnings.iter().chain(doubts).map(String::as_str).collect(),
            b: run.bottleneck().map(|link| place(self.links, link.name())),
            v: values(&own.metrics, OF_RUN),
            pair: values(own.pairs.first().map_or(&none, |pair| &pair.metrics), OF_PAIR),
            l: run.links().filter(sent).map(|link| self.link(&link)).collect(),
            g: run.groups().map(|group| self.group(&group)).collect(),
            a: self.absent(run),
        }
    }

    /// The metrics of groups that other runs have and this one has not, with the reasons.
    fn absent(&self, run: &Run) -> Vec<(usize, usize, String)> {
        let mut found = vec![];
        for group in run.groups() {
            let own = place(self.groups, &group.summary.name);
            let Some(known) = self.known.get(own) else { continue };
            let missing = known.iter().filter(|metric| group.number(&self.of_group[**metric]).is_none());
            found.extend(missing.map(|&metric| {
                (own, metric, absent::why(&self.of_group[metric], &run.summary, Some(&group.summary.name)))
            }));
        }
        found
    }

    fn link(&self, link: &Link<'_>) -> LinkRow {
        let class = |class: &ClassSummary| ClassRow {
            i: CODEPOINTS.iter().position(|known| *known == class.class).unwrap_or(0),
            v: values(&class.metrics, &self.of_class),
        };
        LinkRow {
            i: place(self.links, link.name()),
            t: u8::from(!link.queue.carries.is_empty()),
            q: spelled(&link.queue.queue),
            z: link.plan.ended_s.map(|end| rounded(end, 3)),
            v: values(&link.queue.metrics, &self.of_link),
            c: link.queue.classes.iter().map(class).collect(),
        }
    }

    fn group(&self, group: &Group<'_>) -> GroupRow {
        let of = &group.summary.metrics;
        let value = |metric: &Metric| match *metric != COMPLETION_TIME || group.summary.completes {
            true => digits(of.value(metric)),
            false => Digits::Number(None),
        };
        GroupRow {
            i: place(self.groups, &group.summary.name),
            l: group.link.map(|link| place(self.links, link)),
            v: self.of_group.iter().map(value).collect(),
        }
    }
}

fn values(of: &Metrics, metrics: &[Metric]) -> Vec<Digits> {
    metrics.iter().map(|metric| digits(of.value(metric))).collect()
}

/// Six digits, as in `summary.json`: a script that shows three of them rounds like the tables.
fn digits(value: Value) -> Digits {
    match value {
        Value::Distribution(d) => {
            Digits::Distribution([d.mean, d.p1, d.p25, d.p50, d.p75, d.p99].map(|value| rounded(value, 6)))
        }
        other => Digits::Number(other.scalar().map(|value| rounded(value, 6))),
    }
}

/// `report/<engine>/<id>.js`: the series of one run.
pub(crate) fn series(run: &Run, series: &RunSeries, colours: &HashMap<String, usize>) -> Vec<u8> {
    let mut script = Vec::with_capacity(length(series));
    let events: Vec<(f64, &str)> =
        series.events.iter().map(|event| (event.at_s, event.what.as_str())).collect();
    push(&mut script, b"weir.run(");
    push_json(&format!("{}/{}", run.engine(), run.id), &mut script);
    push(&mut script, b",{");
    push_grid(series.period_s, series.count, &mut script);
    push(&mut script, b",\"w\":");
    push_compact(Some(run.summary.warmup_s), &mut script);
    push(&mut script, b",\"ev\":");
    push_json(&events, &mut script);
    push(&mut script, b",\"sh\":[");
    push_values(&series.shares, &mut script);
    push(&mut script, b"],\"charts\":[");
    series.charts.iter().for_each(|chart| push_chart(chart, run, colours, &mut script));
    push(&mut script, b"]");
    if let Some(flows) = &series.flows {
        push(&mut script, b",\"flows\":{");
        push_grid(flows.period_s, flows.count, &mut script);
        push(&mut script, b",\"charts\":[");
        flows.charts.iter().for_each(|chart| push_chart(chart, run, colours, &mut script));
        push(&mut script, b"]}");
    }
    if let Some(overlay) = &series.overlay {
        push(&mut script, b",\"overlay\":");
        overlay::push(overlay, run, colours, &mut script);
    }
    push(&mut script, b"});\n");
    script
}

/// Approximate length of a run's script in bytes, to reserve its memory at once: a growing script would be copied.
fn length(series: &RunSeries) -> usize {
    const OF_A_RUN: usize = 2000;
    const OF_A_LINE: usize = 100;
    const OF_A_VALUE: usize = 5;
    let of = |charts: &[Chart], count: usize| -> usize {
        let line = OF_A_LINE + OF_A_VALUE * count;
        let spread = OF_A_LINE + OF_A_VALUE * series.shares.len();
        charts.iter().map(|chart| OF_A_LINE + chart.lines.len() * line + chart.spreads.len() * spread).sum()
    };
    let flows = series.flows.as_ref().map_or(0, |flows| of(&flows.charts, flows.count));
    OF_A_RUN + of(&series.charts, series.count) + flows
}

/// Appends a text.
fn push(script: &mut Vec<u8>, text: &[u8]) {
    script.extend_from_slice(text);
}

/// Appends a value as JSON.
pub(crate) fn push_json(value: &(impl Serialize + ?Sized), script: &mut Vec<u8>) {
    // Texts and numbers are always valid JSON, and writing to memory cannot fail.
    let _ = serde_json::to_writer(script, value);
}

/// Appends text within a script's string in single quotes. JSON has no control characters outside of escapes.
fn push_quoted(json: &[u8], script: &mut Vec<u8>) {
    for byte in json {
        if matches!(byte, b'\\' | b'\'') {
            script.push(b'\\');
        }
        script.push(*byte);
    }
}

/// The grid of times: its period and the number of its points.
fn push_grid(period_s: f64, count: usize, script: &mut Vec<u8>) {
    push(script, b"\"p\":");
    push_compact(Some(period_s), script);
    push(script, b",\"n\":");
    push_json(&count, script);
}

fn push_values(values: &[f64], script: &mut Vec<u8>) {
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            script.push(b',');
        }
        push_compact(Some(*value), script);
    }
}

fn push_chart(chart: &Chart, run: &Run, colours: &HashMap<String, usize>, script: &mut Vec<u8>) {
    push(script, b"\n{\"k\":");
    push_json(&chart.key, script);
    push(script, b",\"t\":");
    push_json(&chart.title, script);
    push(script, b",\"u\":");
    push_json(&chart.unit, script);
    if let Some(note) = &chart.note {
        push(script, b",\"note\":");
        push_json(note, script);
    }
    if chart.stacked {
        push(script, b",\"stack\":1");
    }
    push(script, b",\"lines\":[");
    for line in &chart.lines {
        push_name(&line.name, line.ink, run, colours, script);
        let flags: [(bool, &[u8]); 3] =
            [(line.thin, b",\"thin\":1"), (line.hidden, b",\"off\":1"), (line.bound, b",\"cap\":1")];
        for (_, flag) in flags.into_iter().filter(|(is_set, _)| *is_set) {
            push(script, flag);
        }
        push(script, b",\"v\":[");
        push_line(&line.values, script);
        push(script, b"]},");
    }
    push(script, b"],\"d\":[");
    for spread in &chart.spreads {
        push_name(&spread.name, spread.ink, run, colours, script);
        push(script, b",\"c\":");
        push_json(&spread.count, script);
        push(script, b",\"limit\":");
        push_json(&spread.limit, script);
        push(script, b",\"v\":[");
        push_values(&spread.values, script);
        push(script, b"]},");
    }
    push(script, b"]},");
}

/// Appends the begin of a line or a distribution: its name, and the class of its colour in the style sheet.
fn push_name(name: &str, ink: Ink, run: &Run, colours: &HashMap<String, usize>, script: &mut Vec<u8>) {
    let (kind, number) = match ink {
        Ink::Group(index) => {
            let colour =
                run.summary.groups.get(index).and_then(|group| colours.get(&*group.name)).unwrap_or(&0);
            (b'g', colour % crate::html::GROUP_COLOURS)
        }
        Ink::Class(bits) => (b'c', bits % 4),
        Ink::Plain(index) => (b'n', index % 4),
    };
    push(script, b"\n{\"n\":");
    push_json(name, script);
    push(script, b",\"i\":\"");
    // The number has one digit.
    push(script, &[kind, b'0' + number as u8, b'"']);
}
