//! Compares the two engines' answers to the same losses, as a table in Markdown: retransmissions and timeouts, the window after
//! recovery, completion. Reads a result folder of `labs/scripted-loss.toml`.
//!
//!     cargo run --release --example scripted_loss -- results/scripted-loss

use std::collections::BTreeMap;
use std::path::Path;
use weir_engine::{FinishedRun, Results};
use weir_record::FlowEventKind;

/// How an engine answered a script.
struct Answer {
    retransmissions: u64,
    timeouts: Option<u64>,
    /// The threshold that the last reduction left: the window with which recovery ends. `None` without a reduction.
    after_recovery: Option<f64>,
    seconds: Option<f64>,
}

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "results/scripted-loss".into());
    let results = match Results::open(Path::new(&folder)) {
        Ok(results) => results,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    let mut cells: Vec<String> = vec![];
    let mut answers = BTreeMap::new();
    for run in &results.runs {
        let cell = run.info.params.iter().map(|param| param.value.as_str()).collect::<Vec<_>>().join(" | ");
        if !cells.contains(&cell) {
            cells.push(cell.clone());
        }
        answers.insert((cell, run.info.engine.clone()), answer(run));
    }
    println!(
        "| controller | script | retransmissions sim / live | timeouts | window after recovery | completion, s | apart by | |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let (mut same, mut all) = (0, 0);
    for cell in &cells {
        let of = |engine: &str| answers.get(&(cell.clone(), engine.to_owned()));
        let (Some(sim), Some(live)) = (of("sim"), of("live")) else { continue };
        let agrees = print_row(cell, sim, live);
        same += u32::from(agrees);
        all += 1;
    }
    println!(
        "\n{same} of {all} cells agree: equal counts, windows within one segment, completion within 5 %."
    );
}

fn print_row(cell: &str, sim: &Answer, live: &Answer) -> bool {
    let apart = sim.seconds.zip(live.seconds).map(|(sim, live)| 100.0 * (sim / live - 1.0));
    let near = match (sim.after_recovery, live.after_recovery) {
        (Some(sim), Some(live)) => (sim - live).abs() <= 1.0,
        (None, None) => true,
        _ => false,
    };
    let counts = sim.retransmissions == live.retransmissions && sim.timeouts == live.timeouts;
    let agrees = counts && near && apart.is_some_and(|apart| apart.abs() <= 5.0);
    let count = |n: Option<u64>| n.map_or("?".into(), |n| n.to_string());
    let window = |w: Option<f64>| w.map_or("-".into(), |w| format!("{w:.0}"));
    let seconds = |s: Option<f64>| s.map_or("-".into(), |s| format!("{s:.3}"));
    println!(
        "| {cell} | {} / {} | {} / {} | {} / {} | {} / {} | {} | {} |",
        sim.retransmissions,
        live.retransmissions,
        count(sim.timeouts),
        count(live.timeouts),
        window(sim.after_recovery),
        window(live.after_recovery),
        seconds(sim.seconds),
        seconds(live.seconds),
        apart.map_or("-".into(), |apart| format!("{apart:+.1} %")),
        if agrees { "agrees" } else { "**differs**" },
    );
    agrees
}

fn answer(run: &FinishedRun) -> Answer {
    let records = run.records().expect("a finished run has its records");
    let time = |kind| records.events.iter().find(|event| event.kind == kind).map(|event| event.at);
    let (started, completed) = (time(FlowEventKind::Started), time(FlowEventKind::Completed));
    let last = records.transport.last();
    Answer {
        retransmissions: records.flows.iter().map(|sample| sample.retransmitted).sum(),
        timeouts: last.and_then(|sample| sample.timeouts),
        after_recovery: last.and_then(|sample| sample.ssthresh),
        seconds: started.zip(completed).map(|(started, completed)| completed.since(started).as_secs_f64()),
    }
}
