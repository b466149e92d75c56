//! What the pages' scripts are given: the lab's table for the index and the comparison, and each run's series. Pages open
//! from disk, where a browser lets no script fetch a file, so that data are scripts themselves: `weir.lab({...})`.

use crate::model::PIECE;
use crate::model::{Chart, Ink, Lab, LinkNumbers, PacketNumbers, RunNumbers, RunSeries, WaitNumbers};
use crate::number::{compact, push_compact, rounded};
use crate::sentence;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use weir_base::{CODEPOINTS, Ecn};
use weir_record::Distribution;

/// `report/lab.js`: one object with every run's numbers, with short names.
pub(crate) fn lab(lab: &Lab) -> String {
    let groups = lab.group_names();
    let engines = lab.engines();
    let links = link_names(lab);
    let values = level_values(lab);
    let runs: Vec<Value> =
        lab.runs.iter().map(|run| one_run(run, &groups, &engines, &links, &values)).collect();
    let head = json!({
        "lab": lab.name, "levels": lab.levels, "values": values, "groups": groups, "engines": engines, "links": links,
        "classes": CODEPOINTS.map(|class| class.name()), "piece": lab.is_large().then_some(PIECE),
        "growing": u8::from(lab.growing), "metrics": u8::from(lab.has_columns),
    });
    let mut script = format!("weir.lab({head},[\n");
    for run in &runs {
        let _ = writeln!(script, "{run},");
    }
    script + "]);\n"
}

fn link_names(lab: &Lab) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for link in lab.runs.iter().flat_map(|run| &run.links) {
        if !names.contains(&link.name.as_str()) {
            names.push(&link.name);
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

fn one_run(
    run: &RunNumbers,
    groups: &[&str],
    engines: &[&str],
    links: &[&str],
    values: &[Vec<&str>],
) -> Value {
    let params: Vec<usize> =
        values.iter().zip(&run.params).map(|(known, value)| place(known, value.as_str())).collect();
    let measured: Vec<Value> = run
        .links
        .iter()
        .filter(|link| {
            link.packets.arrived > 0 || link.packets.utilisation_percent.is_some_and(|used| used > 0.0)
        })
        .map(|link| one_link(link, place(links, link.name.as_str())))
        .collect();
    let groups: Vec<Value> = run
        .groups
        .iter()
        .map(|group| {
            json!([
                place(groups, group.name.as_str()),
                digits(group.goodput_mbps),
                distribution(group.rtt_ms),
                digits(group.retransmitted_percent),
                digits(group.completion_s),
                digits(group.window_segments),
                digits(group.base_rtt_ms),
                digits(group.share_percent),
                group.link.as_ref().map(|link| place(links, link.as_str())),
                group.waits.iter().map(wait).collect::<Vec<_>>(),
            ])
        })
        .collect();
    json!({
        "id": run.id, "k": run.number, "e": place(engines, run.engine.as_str()), "p": params, "n": run.repeat, "s": sentence::run(run),
        "x": u8::from(!run.invalid.is_empty()), "w": run.warnings, "b": run.bottleneck().map(|link| place(links, link.name.as_str())),
        "l": measured, "g": groups, "j": digits(run.jain), "rr": digits(run.rate_ratio), "wr": digits(run.window_ratio),
    })
}

/// What a group waited for: what, unit, times, how many a second, on time and lost in percent.
fn wait(wait: &WaitNumbers) -> Value {
    json!([
        wait.what,
        wait.unit,
        distribution(wait.times),
        digits(wait.per_second),
        digits(wait.on_time_percent),
        digits(wait.lost_percent),
    ])
}

fn one_link(link: &LinkNumbers, place: usize) -> Value {
    let all = &link.packets;
    json!({
        "i": place, "t": u8::from(!link.carries.is_empty()), "q": sentence::spelled(&link.queue), "r": digits(link.rate_mbps), "cap": digits(link.capacity_mbps), "u": digits(all.utilisation_percent), "d": distribution(all.delay_ms),
        "dp": digits(all.dropped_percent), "mp": digits(all.marked_percent),
        "a": link.probabilities.map(distribution), "c": link.classes.iter().map(one_class).collect::<Vec<_>>(),
    })
}

fn one_class((class, packets): &(Ecn, PacketNumbers)) -> Value {
    json!([
        CODEPOINTS.iter().position(|known| known == class).unwrap_or(0),
        digits(packets.utilisation_percent),
        digits(packets.dropped_percent),
        digits(packets.marked_percent),
        distribution(packets.delay_ms),
    ])
}

/// Six digits, as `summary.json` has them: a script that writes three rounds as the tables do.
fn digits(value: Option<f64>) -> Option<f64> {
    value.map(|value| rounded(value, 6))
}

fn distribution(of: Option<Distribution>) -> Option<[f64; 6]> {
    of.map(|d| [d.mean, d.p1, d.p25, d.p50, d.p75, d.p99].map(|value| rounded(value, 6)))
}

/// `report/<engine>/<id>.js`: the series of one run.
pub(crate) fn series(run: &RunNumbers, series: &RunSeries, colours: &HashMap<String, usize>) -> String {
    let name = json!(format!("{}/{}", run.engine, run.id));
    let events: Vec<Value> = series.events.iter().map(|event| json!([event.at_s, event.what])).collect();
    let mut script = String::with_capacity(length(series));
    let _ = write!(script, "weir.run({name},{{");
    push_grid(series.period_s, series.count, &mut script);
    let _ = write!(script, ",\"w\":{},\"ev\":{},\"sh\":[", compact(Some(run.warmup_s)), json!(events));
    push_values(series.shares.iter().copied().map(Some), &mut script);
    script += "],\"charts\":[";
    series.charts.iter().for_each(|chart| push_chart(chart, run, colours, &mut script));
    script += "]";
    if let Some(flows) = &series.flows {
        script += ",\"flows\":{";
        push_grid(flows.period_s, flows.count, &mut script);
        script += ",\"charts\":[";
        flows.charts.iter().for_each(|chart| push_chart(chart, run, colours, &mut script));
        script += "]}";
    }
    script + "});\n"
}

/// About how long the script of a run becomes: room is made at once, since it would be copied each time that it grows.
fn length(series: &RunSeries) -> usize {
    const OF_A_RUN: usize = 2000;
    const OF_A_LINE: usize = 100;
    const OF_A_VALUE: usize = 6;
    let of = |charts: &[Chart], count: usize| -> usize {
        let line = OF_A_LINE + OF_A_VALUE * count;
        let spread = OF_A_LINE + OF_A_VALUE * series.shares.len();
        charts.iter().map(|chart| OF_A_LINE + chart.lines.len() * line + chart.spreads.len() * spread).sum()
    };
    let flows = series.flows.as_ref().map_or(0, |flows| of(&flows.charts, flows.count));
    OF_A_RUN + of(&series.charts, series.count) + flows
}

/// The grid of times: its period and the number of its points.
fn push_grid(period_s: f64, count: usize, script: &mut String) {
    let _ = write!(script, "\"p\":{},\"n\":{count}", compact(Some(period_s)));
}

fn push_values(values: impl Iterator<Item = Option<f64>>, script: &mut String) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            script.push(',');
        }
        push_compact(value, script);
    }
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    // A text can always be written.
    serde_json::to_string(text).unwrap_or_default()
}

fn push_chart(chart: &Chart, run: &RunNumbers, colours: &HashMap<String, usize>, script: &mut String) {
    let [key, title, unit] = [&chart.key, &chart.title, &chart.unit].map(|text| quoted(text));
    let note = chart.note.as_deref().map_or("null".into(), quoted);
    let _ = write!(script, "\n{{\"k\":{key},\"t\":{title},\"u\":{unit},\"note\":{note},\"lines\":[");
    for line in &chart.lines {
        let (name, ink) = (quoted(&line.name), ink(line.ink, run, colours));
        let [thin, off, cap] = [line.thin, line.hidden, line.bound].map(u8::from);
        let _ = write!(
            script,
            "\n{{\"n\":{name},\"i\":\"{ink}\",\"thin\":{thin},\"off\":{off},\"cap\":{cap},\"v\":["
        );
        push_values(line.values.iter().copied(), script);
        script.push_str("]},");
    }
    script.push_str("],\"d\":[");
    for spread in &chart.spreads {
        let (name, ink) = (quoted(&spread.name), ink(spread.ink, run, colours));
        let limit = json!(spread.limit);
        let _ = write!(
            script,
            "\n{{\"n\":{name},\"i\":\"{ink}\",\"c\":{},\"limit\":{limit},\"v\":[",
            spread.count
        );
        push_values(spread.values.iter().copied().map(Some), script);
        script.push_str("]},");
    }
    script.push_str("]},");
}

/// The name of a colour in the style sheet.
fn ink(ink: Ink, run: &RunNumbers, colours: &HashMap<String, usize>) -> String {
    match ink {
        Ink::Group(index) => {
            let colour =
                run.groups.get(index).and_then(|group| colours.get(group.name.as_str())).unwrap_or(&0);
            format!("g{}", colour % crate::html::GROUP_COLOURS)
        }
        Ink::Class(bits) => format!("c{}", bits % 4),
        Ink::Plain(index) => format!("n{}", index % 4),
    }
}
