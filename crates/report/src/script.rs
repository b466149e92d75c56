//! The data of the pages' scripts: the lab's table for the index and the comparison, and each run's series. Pages open from
//! disk, where a browser lets no script fetch a file: the data files are therefore scripts themselves, `weir.lab({...})`.

use crate::charts::{Chart, Ink, RunSeries};
use crate::compact::{push_compact, push_line};
use crate::lab::{Group, Lab, Link, PIECE, Run};
use crate::number::rounded;
use crate::sentence;
use crate::waits::{self, Wait};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use weir_base::CODEPOINTS;
use weir_record::metrics::aqm::{AQM_DROP, AQM_MARK};
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::queue::{
    ARRIVED, DROP_PROBABILITY, LINK_CAPACITY, MARK_PROBABILITY, QUEUE_DELAY, UTILISATION,
};
use weir_record::metrics::rate::{GOODPUT, JAIN, RATE_RATIO, WINDOW_RATIO};
use weir_record::metrics::tcp::{CWND, RETRANSMISSION_PERCENT, RTT, RTT_BASE};
use weir_record::{ClassSummary, Distribution, Metric, Metrics};

/// `report/lab.js`: one object with every run's numbers, with short names.
pub(crate) fn lab(lab: &Lab) -> Vec<u8> {
    let groups = lab.group_names();
    let engines = lab.engines();
    let links = link_names(lab);
    let values = level_values(lab);
    let head = json!({
        "lab": lab.name, "levels": lab.levels, "values": values, "groups": groups, "engines": engines, "links": links,
        "classes": CODEPOINTS.map(|class| class.name()), "piece": lab.is_large().then_some(PIECE),
        "growing": u8::from(lab.growing), "metrics": u8::from(lab.has_columns),
    });
    let mut script = b"weir.lab(".to_vec();
    push_json(&head, &mut script);
    push(&mut script, b",[\n");
    for run in &lab.runs {
        push_json(&one_run(run, &groups, &engines, &links, &values), &mut script);
        push(&mut script, b",\n");
    }
    push(&mut script, b"]);\n");
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

/// A run's line in the lab's table. Values of levels, engines, groups and links are indices into the lists of the table's
/// head.
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
    /// Warnings.
    w: &'a [String],
    /// Bottleneck.
    b: Option<usize>,
    /// Links.
    l: Vec<LinkRow>,
    /// Groups.
    g: Vec<GroupRow>,
    /// Jain's index.
    j: Option<f64>,
    /// Rate ratio.
    rr: Option<f64>,
    /// Window ratio.
    wr: Option<f64>,
}

/// A link: index, whether it carries data, queue, rate, capacity, utilisation, queue delay, drops and marks in percent, drop
/// and mark probability of the AQM, and a row for each codepoint.
#[derive(Serialize)]
struct LinkRow {
    i: usize,
    t: u8,
    q: String,
    r: Option<f64>,
    cap: Option<f64>,
    u: Option<f64>,
    d: Option<Digits>,
    dp: Option<f64>,
    mp: Option<f64>,
    a: [Option<Digits>; 2],
    c: Vec<ClassRow>,
}

/// A codepoint, then utilisation, drops and marks in percent, and queue delay.
type ClassRow = (usize, Option<f64>, Option<f64>, Option<f64>, Option<Digits>);

/// A group's index, goodput, RTT, retransmissions in percent, completion time, window, base RTT, share, link, and waiting
/// times.
type GroupRow = (
    usize,
    Option<f64>,
    Option<Digits>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<usize>,
    Vec<WaitRow>,
);

/// Waiting times of a group: kind, unit, times, number per second, on time and lost in percent.
type WaitRow = (&'static str, &'static str, Option<Digits>, Option<f64>, Option<f64>, Option<f64>);

/// A distribution: mean and percentiles 1, 25, 50, 75 and 99.
type Digits = [f64; 6];

fn one_run<'a>(
    run: &'a Run,
    groups: &[&str],
    engines: &[&str],
    links: &[&str],
    values: &[Vec<&str>],
) -> Row<'a> {
    let sent = |link: &Link<'_>| {
        link.queue.metrics.count(&ARRIVED) > Some(0)
            || link.number(&UTILISATION).is_some_and(|used| used > 0.0)
    };
    let group = |group: Group<'_>| {
        let of = &group.summary.metrics;
        (
            place(groups, &group.summary.name),
            number(of, &GOODPUT),
            distribution(of, &RTT),
            number(of, &RETRANSMISSION_PERCENT),
            number(of, &COMPLETION_TIME),
            number(of, &CWND),
            number(of, &RTT_BASE),
            digits(group.share_percent),
            group.link.map(|link| place(links, link)),
            waits::of(&group).iter().map(wait).collect(),
        )
    };
    Row {
        id: &run.id,
        k: run.number,
        e: place(engines, run.engine()),
        p: values.iter().zip(&run.params).map(|(known, value)| place(known, value.as_str())).collect(),
        n: run.summary.repeat,
        s: sentence::run(run),
        x: u8::from(!run.is_sound()),
        w: &run.warnings,
        b: run.bottleneck().map(|link| place(links, link.name())),
        l: run.links().filter(sent).map(|link| one_link(&link, place(links, link.name()))).collect(),
        g: run.groups().map(group).collect(),
        j: number(&run.summary.metrics, &JAIN),
        rr: digits(run.of_pair(&RATE_RATIO)),
        wr: digits(run.of_pair(&WINDOW_RATIO)),
    }
}

fn wait(wait: &Wait) -> WaitRow {
    (
        wait.what,
        wait.unit,
        wait.times.map(six_digits),
        digits(wait.per_second),
        digits(wait.on_time_percent),
        digits(wait.lost_percent),
    )
}

fn one_link(link: &Link<'_>, place: usize) -> LinkRow {
    let all = &link.queue.metrics;
    LinkRow {
        i: place,
        t: u8::from(!link.queue.carries.is_empty()),
        q: sentence::spelled(&link.queue.queue),
        r: digits(link.plan.rate_mbps),
        cap: number(all, &LINK_CAPACITY),
        u: number(all, &UTILISATION),
        d: distribution(all, &QUEUE_DELAY),
        dp: number(all, &DROP_PROBABILITY),
        mp: number(all, &MARK_PROBABILITY),
        a: [distribution(all, &AQM_DROP), distribution(all, &AQM_MARK)],
        c: link.queue.classes.iter().map(one_class).collect(),
    }
}

fn one_class(class: &ClassSummary) -> ClassRow {
    let of = &class.metrics;
    (
        CODEPOINTS.iter().position(|known| *known == class.class).unwrap_or(0),
        number(of, &UTILISATION),
        number(of, &DROP_PROBABILITY),
        number(of, &MARK_PROBABILITY),
        distribution(of, &QUEUE_DELAY),
    )
}

/// Six digits, as in `summary.json`: a script that shows three of them rounds like the tables.
fn digits(value: Option<f64>) -> Option<f64> {
    value.map(|value| rounded(value, 6))
}

fn number(of: &Metrics, metric: &Metric) -> Option<f64> {
    digits(of.number(metric))
}

fn distribution(of: &Metrics, metric: &Metric) -> Option<Digits> {
    of.distribution(metric).map(six_digits)
}

fn six_digits(d: Distribution) -> Digits {
    [d.mean, d.p1, d.p25, d.p50, d.p75, d.p99].map(|value| rounded(value, 6))
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
