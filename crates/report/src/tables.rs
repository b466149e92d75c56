//! The tables of a run's page and of comparisons: links and their queues, verdicts, and how it was run.

use crate::html::{Cell, Table, escape};
use crate::lab::{Lab, Run};
use crate::naming::{engine_name, spelled};
use crate::number::{count, number, rough_with};
use crate::verdict::Said;
use weir_record::compare::{Compared, Comparison};
use weir_record::metrics::queue::{
    ARRIVED, DROP_PROBABILITY, DROPPED_FULL, DROPPED_OVERLOAD, DROPPED_SIGNAL, LINK_LOST, MARK_PROBABILITY,
    QUEUE_DELAY, UTILISATION,
};
use weir_record::{Distribution, Metric, Metrics};

pub(crate) fn links_table(run: &Run) -> String {
    let mut table = Table::new(
        "Links and their queues",
        &[
            "link",
            "class",
            "queue",
            "rate at the start, Mbit/s",
            "used, %",
            "delay mean, ms",
            "p1",
            "p25",
            "p50",
            "p75",
            "p99",
            "arrived, packets",
            "dropped, %",
            "dropped by reason, packets",
            "marked, %",
            "lost by the link, packets",
        ],
    );
    for link in run.links() {
        let (about, of_link) = (|text: &str| Cell::text(text), &link.queue.metrics);
        let (queue, rate) = (spelled(&link.queue.queue), Cell::given(link.plan.rate_mbps));
        let lost = Cell::count(Some(of_link.count(&LINK_LOST).unwrap_or(0)));
        let whole = [about(link.name()), about(""), about(&queue), rate];
        table.row(link_row(whole, of_link, about(&drop_reasons(of_link)), lost));
        let classes = &link.queue.classes;
        for class in classes.iter().filter(|_| classes.len() > 1) {
            let own = [about(""), about(class_name(class.class.name())), about(""), Cell::number(None)];
            table.row(link_row(own, &class.metrics, about(""), Cell::count(None)));
        }
    }
    table.render()
}

/// A row of the table of links: its subject, the numbers of its packets, the reasons of drops, and the link's own losses.
fn link_row(about: [Cell; 4], packets: &Metrics, reasons: Cell, lost: Cell) -> Vec<Cell> {
    let delays = packets.distribution(&QUEUE_DELAY);
    let delay = |pick: fn(&Distribution) -> f64| Cell::number(delays.as_ref().map(pick));
    let mut row = Vec::from(about);
    row.extend([
        Cell::number(packets.number(&UTILISATION)),
        delay(|d| d.mean),
        delay(|d| d.p1),
        delay(|d| d.p25),
        delay(|d| d.p50),
        delay(|d| d.p75),
        delay(|d| d.p99),
        Cell::count(Some(packets.count(&ARRIVED).unwrap_or(0))),
        Cell::number(packets.number(&DROP_PROBABILITY)),
        reasons,
        Cell::number(packets.number(&MARK_PROBABILITY)),
        lost,
    ]);
    row
}

/// The reasons for which a queue dropped packets, with the number for each.
fn drop_reasons(of: &Metrics) -> String {
    const REASONS: [(&str, Metric); 3] = [
        ("queue full", DROPPED_FULL),
        ("signal of the AQM", DROPPED_SIGNAL),
        ("AQM overloaded", DROPPED_OVERLOAD),
    ];
    let told =
        REASONS.iter().filter_map(|(reason, metric)| Some((reason, of.count(metric).filter(|n| *n > 0)?)));
    told.map(|(reason, packets)| format!("{reason} {}", count(packets))).collect::<Vec<_>>().join(", ")
}

/// The names, in a station's state, of the counters that every station has.
const OF_EVERY_STATION: [&str; 4] = ["seen_packets", "discarded_packets", "made_packets", "held_packets"];

/// The table of a run's stations; empty if there are none.
pub(crate) fn stations_table(run: &Run) -> String {
    if run.summary.stations.is_empty() {
        return String::new();
    }
    let head = [
        "station",
        "kind",
        "at router",
        "packets seen",
        "discarded",
        "made",
        "held at the end",
        "other counters",
    ];
    let mut table = Table::new("Stations, from the start of the run", &head);
    for station in &run.summary.stations {
        let said = |(name, value): (&String, &f64)| {
            let whole = value.fract() == 0.0 && (0.0..1e15).contains(value);
            let value = if whole { count(*value as u64) } else { number(*value) };
            format!("{} {value}", name.replace('_', " "))
        };
        // Bins, neighbours and flows of an overlay's node are too many for a cell.
        let own = station
            .state
            .iter()
            .filter(|(name, _)| !OF_EVERY_STATION.contains(&name.as_str()) && !crate::overlay::is_part(name));
        let own: Vec<String> = own.map(said).collect();
        let counter = |name| Cell::count(station.state.get(name).map(|count| *count as u64));
        let [seen, discarded, made, held] = OF_EVERY_STATION.map(counter);
        table.row(vec![
            Cell::text(&station.name),
            Cell::text(&station.kind),
            Cell::text(&station.at),
            seen,
            discarded,
            made,
            held,
            Cell::long(&own.join(", ")),
        ]);
    }
    table.render()
}

/// A codepoint as RFC 3168 writes it.
pub fn class_name(class: &str) -> &str {
    match class {
        "not-ect" => "Not-ECT",
        "ect0" => "ECT(0)",
        "ect1" => "ECT(1)",
        "ce" => "CE",
        other => other,
    }
}

pub(crate) fn how_it_was_run(lab: &Lab, run: &Run) -> String {
    let mut items: Vec<(String, String)> =
        lab.levels.iter().cloned().zip(run.params.iter().cloned()).collect();
    items.push(("engine".into(), engine_name(run.engine()).into()));
    items.push(("repeat".into(), run.summary.repeat.to_string()));
    items.push(("seed".into(), run.summary.seed.to_string()));
    items.push(("duration".into(), rough_with(run.summary.duration_s, "s")));
    items.push(("left out as warm-up".into(), rough_with(run.summary.warmup_s, "s")));
    items.push(("run".into(), run.id.clone()));
    items.extend(run.audit.iter().map(|audit| ("packets".into(), audit.clone())));
    items.extend(run.environment.iter().cloned());
    let rows: String = items
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value)))
        .collect();
    let settings: String = run
        .settings
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value)))
        .collect();
    let settings = match settings.is_empty() {
        true => settings,
        false => format!(
            "<details><summary>Settings in force</summary><dl class=\"facts wide\">{settings}</dl></details>"
        ),
    };
    format!("<section><h2>How it was run</h2><dl class=\"facts\">{rows}</dl>{settings}</section>\n")
}

/// How a lab was run: the settings that all its runs share, and the lab file with every schedule, trace and parameter.
pub(crate) fn how_the_lab_was_run(lab: &Lab) -> String {
    let Some(first) = lab.runs.first() else { return String::new() };
    let shared = |of: &dyn Fn(&Run) -> String| {
        let text = of(first);
        if lab.runs.iter().any(|run| of(run) != text) { "varies".into() } else { text }
    };
    let repeats = lab.runs.iter().map(|run| run.summary.repeat).max().unwrap_or(1);
    let engines: Vec<&str> = lab.engines().into_iter().map(engine_name).collect();
    let items = [
        ("duration of a run", shared(&|run| rough_with(run.summary.duration_s, "s"))),
        ("left out as warm-up", shared(&|run| rough_with(run.summary.warmup_s, "s"))),
        ("repeats of a cell", repeats.to_string()),
        ("engine", engines.join(", ")),
        ("weir", lab.version.clone()),
    ];
    let rows: String = items
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect();
    let source = match lab.source.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>The lab file</summary><pre class=\"scroll tall\" tabindex=\"0\">{}</pre></details>",
            escape(&lab.source)
        ),
    };
    format!("<section><h2>How it was run</h2><dl class=\"facts\">{rows}</dl>{source}</section>\n")
}

/// Whether a row of a comparison is about the cell of a run.
pub(crate) fn is_of(row: &Comparison, run: &Run) -> bool {
    row.cell.as_ref().is_some_and(|cell| cell.iter().map(|param| &param.value).eq(&run.params))
}

/// The names of two compared engines, the reference first.
pub(crate) const ENGINES: [&str; 2] = ["live Linux", "simulator"];

/// The table of a comparison's rows; `names` are those of the reference and of the results compared with it.
pub(crate) fn agreement_table<'a>(
    rows: impl Iterator<Item = &'a Comparison>,
    with_cell: bool,
    names: [&str; 2],
) -> String {
    let [reference, other] = names;
    let (caption, less) = match names == ENGINES {
        true => ("Agreement of the two engines", "simulator less live".to_owned()),
        false => ("Agreement of the two results", format!("{other} less {reference}")),
    };
    let head = ["cell", "measure", "verdict", other, reference, &less, "95 % interval", "bound"];
    let mut table = Table::new(caption, &head);
    let mut above = String::new();
    for row in rows {
        let said = Said::of(row);
        let again = if said.cell == above { " again" } else { "" };
        let cell = format!("<span class=\"wrap{again}\">{}</span>", escape(&said.cell));
        let verdict =
            format!("<span class=\"verdict {}\">{}</span>", said.verdict.replace(' ', "-"), said.verdict);
        table.row(vec![
            Cell::html(if with_cell { cell } else { String::new() }),
            Cell::text(&said.measure),
            Cell::html(verdict),
            Cell::figure(said.other),
            Cell::figure(said.reference),
            Cell::figure(said.difference),
            Cell::figure(said.interval),
            Cell::figure(said.bound),
        ]);
        above = said.cell;
    }
    table.render()
}

/// The runs that a comparison left out, with the reasons; empty if there are none.
pub(crate) fn left_out(compared: &Compared) -> String {
    if compared.left_out.is_empty() {
        return String::new();
    }
    let items: String = compared
        .left_out
        .iter()
        .map(|(id, why)| format!("<li>{}: {}</li>", escape(id), escape(why)))
        .collect();
    format!(
        "<details><summary>{} runs were left out</summary><ul>{items}</ul></details>\n",
        compared.left_out.len()
    )
}
