//! `weir run`: lab, plan, engines, records, summary, report, table.

use crate::cli::{EngineName, RunArgs};
use crate::failure::{Failure, terminal_width};
use crate::progress::Line;
use crate::{identity, print, print_json, results};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_engine::{Cell, Engine, EngineError, ResultFolder, Results, Tally, cell_id, run_all};
use weir_live::Live;
use weir_plan::{Lab, Run};
use weir_sim::Simulator;

static CANCEL: AtomicBool = AtomicBool::new(false);

/// Runs a lab.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let lab = Lab::load(&args.lab, &args.set)?;
    let engines = engines(&args.on);
    if args.on.contains(&EngineName::Live) {
        // An ordinary user's process moves into a user namespace; it must still have a single thread. Whether it worked
        // is asked again, and told, by the engine's own check.
        let _ = weir_live::enter();
    }
    if args.dry_run {
        return print(&outline(&lab, &engines));
    }
    let runs = lab.runs();
    check(&engines, &runs, args.pcap.as_deref())?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(lab.name()));
    let mut folder = ResultFolder::open(&out, lab.source(), identity::build(), args.rerun)?;
    let cells: Vec<_> = runs
        .iter()
        .flat_map(|run| engines.iter().map(move |engine| Cell { engine: engine.as_ref(), run }))
        .collect();
    // A second Ctrl-C ends the program at once; unfinished runs leave nothing that counts.
    let interrupt = || {
        if CANCEL.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(interrupt)
        .map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
    let line = Line::new(cells.iter().map(|cell| cell_id(cell.engine.name(), cell.run)).collect());
    let jobs = args.jobs.or(std::thread::available_parallelism().ok()).map_or(1, |jobs| jobs.get());
    let tally = run_all(&cells, &folder, jobs, args.pcap.as_deref(), &CANCEL, &line)?;
    line.clear();
    conclude(args, &mut folder, &tally, cells.len())
}

/// Computes and shows what has come of the runs.
fn conclude(args: &RunArgs, folder: &mut ResultFolder, tally: &Tally, cells: usize) -> Result<(), Failure> {
    if tally.cancelled {
        let done = tally.done + tally.kept;
        let kept = format!("interrupted; {done} of {cells} runs are kept in {}", folder.path().display());
        return Err(Failure::interrupted(format!("{kept}; the same command goes on from there")));
    }
    let found = Results::open(folder.path())?;
    let summary = found.summary(None)?;
    found.write_summary(&summary)?;
    if tally.failed.is_empty() {
        folder.complete();
    }
    if !args.no_report {
        results::write_report(&found, &summary, None)?;
    }
    if args.json {
        print_json(&summary)?;
    } else {
        print(&weir_report::table(&summary, terminal_width()))?;
        let page = folder.path().join(if args.no_report { "summary.json" } else { "index.html" });
        print(&format!("\n{} runs, {} kept from before.  {}\n", tally.done, tally.kept, page.display()))?;
    }
    if let Some((id, reason)) = tally.failed.first() {
        let count = tally.failed.len();
        return Err(Failure::failed(format!("{count} of {cells} runs failed; the first, {id}: {reason}")));
    }
    let spoiled = summary.runs.iter().filter(|run| !run.spoiled.is_empty()).count();
    if args.strict && spoiled > 0 {
        return Err(Failure::failed(format!("{spoiled} of {cells} runs were spoiled")));
    }
    Ok(())
}

fn engines(names: &[EngineName]) -> Vec<Box<dyn Engine>> {
    let mut names = names.to_vec();
    names.dedup();
    let engine = |name: &EngineName| -> Box<dyn Engine> {
        match name {
            EngineName::Sim => Box::new(Simulator),
            EngineName::Live => Box::new(Live),
        }
    };
    names.iter().map(engine).collect()
}

/// Refuses what cannot be run, before anything is written.
fn check(engines: &[Box<dyn Engine>], runs: &[Run], pcap: Option<&str>) -> Result<(), Failure> {
    for run in runs {
        engines.iter().try_for_each(|engine| engine.check(run))?;
        let mut links = run.measured_links().map(|(_, link)| link.name.as_str());
        if let Some(name) = pcap.filter(|name| !links.any(|link| link == *name)) {
            let links: Vec<_> = run.measured_links().map(|(_, link)| link.name.clone()).collect();
            return Err(EngineError::Unable {
                what: format!("there is no link `{name}` to capture"),
                help: format!("the links are {}", links.join(", ")),
            }
            .into());
        }
    }
    Ok(())
}

/// Simulated data packets a second that one core is taken to manage, for the estimate.
const PACKETS_PER_SECOND: f64 = 3e6;

/// The tree and an estimate, for `--dry-run`.
fn outline(lab: &Lab, engines: &[Box<dyn Engine>]) -> String {
    let tree = lab.tree();
    let mut text =
        format!("{}{}\n", lab.name(), lab.title().map_or(String::new(), |title| format!(": {title}")));
    for (depth, (level, labels)) in tree.levels.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:indent$}{level}: {}", "", labels.join(" | "), indent = 2 * depth + 2);
    }
    let runs = tree.runs();
    let _ = writeln!(
        text,
        "{} cells, {} repeats each: {runs} runs, {} of network time",
        tree.cells, tree.repeats, tree.simulated
    );
    for engine in engines {
        let seconds = if engine.runs_alone() {
            tree.simulated.as_secs_f64() + runs as f64 * 0.5
        } else {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            tree.packets as f64 / PACKETS_PER_SECOND / cores.min(runs.max(1) as usize) as f64
        };
        let _ = writeln!(text, "  {:5} about {}", engine.name(), seconds_text(seconds));
    }
    for run in lab.runs().iter().take(20) {
        let _ = writeln!(text, "  {}", run.id);
    }
    if runs > 20 {
        let _ = writeln!(text, "  ... and {} more", runs - 20);
    }
    text
}

fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".into(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
