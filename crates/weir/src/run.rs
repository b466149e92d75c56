//! `weir run`: lab, plan, engines, records, summary, report, table.

mod dask;

use crate::cli::{EngineName, RunArgs};
use crate::commands::{self, Leave};
use crate::failure::{Failure, terminal_width};
use crate::progress::Line;
use crate::results::columns;
use crate::{print, print_json, say};
use dask::Swept;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_base::Span;
use weir_base::terminal::printable_line;
use weir_engine::{Engine, cores};
use weir_live::Live;
use weir_plan::{Lab, Run};
use weir_record::Summary;
use weir_report::Columns;
use weir_session::{Caller, Done, Execution, Only, build_of, commands_of};
use weir_sim::Simulator;

static CANCEL: AtomicBool = AtomicBool::new(false);

/// Runs a lab.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let columns = columns(&args.columns)?;
    let lab = Lab::load(&args.lab, &args.set)?;
    // A lab whose claims are wrong is not run.
    weir_study::claims(&lab)?;
    let engines = engines(&args.on);
    if args.on.contains(&EngineName::Live) {
        // An ordinary user's process moves into a user namespace; it must still have a single thread. The engine's own check
        // reports whether this worked.
        let _ = weir_linux::enter();
    }
    if args.dry_run {
        let only = Only::read(&args.only, &lab)?;
        return print(&(outline(&lab, &only, &engines, args.live_jobs) + &commands_of(&lab)));
    }
    if let Some(scheduler) = &args.dask {
        let Swept { path, done, kept } = dask::sweep(args, scheduler)?;
        let summary = dask::summary(&path)?;
        show(args, &summary, &counted_runs(done, kept, ""), &path, columns.as_ref())?;
        return refuse_invalid(args, &summary);
    }
    let leave = commands::leave(std::iter::once(&lab), &args.on, args.allow_commands)?;
    let execution = Execution {
        out: args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(lab.name())),
        jobs: args.jobs,
        live_jobs: args.live_jobs,
        pcap: &args.pcap,
        rerun: args.rerun,
        only: &args.only,
        retries: args.retries,
        report: !args.no_report,
    };
    conclude(args, &execute(&lab, &engines, &execution, &leave)?, columns.as_ref())
}

/// Runs what is not there yet, then writes summary and report. The [`Leave`] permits the lab's commands, if it has any.
pub(crate) fn execute(
    lab: &Lab,
    engines: &[Box<dyn Engine>],
    execution: &Execution<'_>,
    _: &Leave,
) -> Result<Done, Failure> {
    catch_interrupts()?;
    let caller = Caller { build: build(), cancel: &CANCEL, show: &Line::new() };
    Ok(weir_session::execute(lab, engines, execution, &caller)?)
}

/// This build of the program.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| std::env::current_exe().map_or_else(|_| String::new(), |program| build_of(&program)))
}

/// Prints why runs failed.
///
/// # Errors
/// Some did.
pub(crate) fn refuse_failed(done: &Done) -> Result<(), Failure> {
    let (failed, wanted) = (&done.tally.failed, done.wanted);
    if failed.is_empty() {
        return Ok(());
    }
    for (id, reason) in failed.iter().take(FAILURES_TOLD) {
        say(&format!("weir: run {id} failed: {reason}"));
    }
    let (count, more) = (failed.len(), failed.len().saturating_sub(FAILURES_TOLD));
    let more = if more > 0 { format!("; {more} of them are not listed here") } else { String::new() };
    let message = format!("{count} of {wanted} runs failed{more}; the same command tries them again");
    Err(Failure::failed(message))
}

/// Ctrl-C ends the runs in an orderly way. A second one ends the program at once; unfinished runs leave nothing that counts.
pub(crate) fn catch_interrupts() -> Result<(), Failure> {
    static CAUGHT: AtomicBool = AtomicBool::new(false);
    if CAUGHT.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let interrupt = || {
        if CANCEL.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(interrupt).map_err(|error| {
        let why = match error {
            ctrlc::Error::System(error) => weir_base::not_started(error).to_string(),
            other => other.to_string(),
        };
        Failure::failed(format!("cannot catch Ctrl-C: {why}"))
    })
}

/// Prints the outcome of the runs.
fn conclude(args: &RunArgs, done: &Done, columns: Option<&Columns>) -> Result<(), Failure> {
    let Done { summary, tally, done: ran, count, .. } = done;
    let retried = match tally.retried {
        0 => String::new(),
        some => format!(", {some} at the second attempt"),
    };
    let there = if count.is_complete() { String::new() } else { format!("  There are {count}.") };
    let counted = counted_runs(*ran, tally.kept, &retried) + &there;
    show(args, summary, &counted, done.path(), columns)?;
    if !args.pcap.is_empty() && tally.kept > 0 {
        let kept = tally.kept;
        say(&format!("weir: {kept} runs were kept from before and not captured; --rerun captures them too"));
    }
    refuse_failed(done)?;
    refuse_invalid(args, summary)
}

/// `6 runs done, 48 kept from before.`; `retried` comes after `done`.
fn counted_runs(done: usize, kept: usize, retried: &str) -> String {
    format!("{done} {} done{retried}, {kept} kept from before.", if done == 1 { "run" } else { "runs" })
}

/// Prints the metrics, then how many runs were done and where the report is.
fn show(
    args: &RunArgs,
    summary: &Summary,
    counted: &str,
    folder: &Path,
    columns: Option<&Columns>,
) -> Result<(), Failure> {
    if args.json {
        return print_json(summary);
    }
    print(&weir_report::table_of(summary, columns, terminal_width()))?;
    let page = folder.join(if args.no_report { "summary.json" } else { "index.html" });
    print(&format!("\n{counted}  {}\n", page.display()))
}

/// Refuses a summary with invalid runs, with `--strict`.
fn refuse_invalid(args: &RunArgs, summary: &Summary) -> Result<(), Failure> {
    let invalid = summary.runs.iter().filter(|run| !run.invalid.is_empty()).count();
    if args.strict && invalid > 0 {
        return Err(Failure::failed(format!("{invalid} of {} runs were invalid", summary.runs.len())));
    }
    Ok(())
}

/// Most failed runs that are listed one by one.
const FAILURES_TOLD: usize = 20;

/// The engines of these names, each once.
pub(crate) fn engines(names: &[EngineName]) -> Vec<Box<dyn Engine>> {
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

/// Estimated time of one core, in seconds, for a simulated data packet, a flow, a recorded sample, and a run with its part of
/// the report: fitted to the labs of `benches/`, to 10,000 to 100,000 flows and to a run of 72 h.
const PER_PACKET: f64 = 0.25e-6;
const PER_FLOW: f64 = 10e-6;
const PER_RECORD: f64 = 0.25e-6;
const PER_RUN: f64 = 1.5e-3;

/// `1 run`, `2 runs`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The part of the tree that is wanted and an estimate, for `--dry-run`.
fn outline(lab: &Lab, only: &Only, engines: &[Box<dyn Engine>], live_jobs: NonZeroUsize) -> String {
    let tree = lab.tree();
    let mut text = format!(
        "{}{}\n",
        lab.name(),
        lab.title().map_or(String::new(), |title| format!(": {}", printable_line(title)))
    );
    for (depth, (level, labels)) in tree.levels.iter().enumerate() {
        let labels: Vec<&str> =
            labels.iter().map(String::as_str).filter(|label| only.takes(level, label)).collect();
        let labels = printable_line(&labels.join(" | ")).into_owned();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:indent$}{}: {labels}", "", printable_line(level), indent = 2 * depth + 2);
    }
    let all = lab.runs();
    let wanted: Vec<&Run> = all.iter().filter(|run| only.holds(run)).collect();
    let share = wanted.len() as f64 / all.len().max(1) as f64;
    let _ = writeln!(
        text,
        "{}, {} each: {}, {} of network time",
        counted(wanted.len() as u64 / u64::from(tree.repeats.max(1)), "cell"),
        counted(u64::from(tree.repeats), "repeat"),
        counted(wanted.len() as u64, "run"),
        wanted.iter().fold(Span::ZERO, |sum, run| sum + run.duration)
    );
    for engine in engines {
        let about = seconds_text(seconds(lab, engine.as_ref(), live_jobs) * share);
        let _ = writeln!(text, "  {:5} about {about}", engine.name());
    }
    for run in wanted.iter().take(20) {
        let _ = writeln!(text, "  {}", run.id);
    }
    if wanted.len() > 20 {
        let _ = writeln!(text, "  ... and {} more", wanted.len() - 20);
    }
    text
}

/// The number of labs and runs and the estimated time, in a line.
pub(crate) fn estimate<'a>(
    labs: impl Iterator<Item = &'a Lab>,
    engines: &[Box<dyn Engine>],
    live_jobs: NonZeroUsize,
) -> String {
    let (mut count, mut runs, mut of_engine) = (0, 0, vec![0.0; engines.len()]);
    for lab in labs {
        count += 1;
        runs += lab.tree().runs();
        for (sum, engine) in of_engine.iter_mut().zip(engines) {
            *sum += seconds(lab, engine.as_ref(), live_jobs);
        }
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let each = engines.iter().zip(of_engine);
    let each: Vec<String> =
        each.map(|(engine, sum)| format!("{} on {}", seconds_text(sum), engine.name())).collect();
    format!("{count} lab{}, {runs} run{}: about {}", plural(count), plural(runs), each.join(", "))
}

/// Estimated time that an engine needs for a lab, in seconds.
fn seconds(lab: &Lab, engine: &dyn Engine, live_jobs: NonZeroUsize) -> f64 {
    let tree = lab.tree();
    let runs = tree.runs();
    if engine.runs_alone() {
        (tree.simulated.as_secs_f64() + runs as f64 * 0.5) / live_jobs.get().min(runs.max(1) as usize) as f64
    } else {
        let packets_and_flows = tree.packets as f64 * PER_PACKET + tree.flows as f64 * PER_FLOW;
        let work = packets_and_flows + tree.records as f64 * PER_RECORD + runs as f64 * PER_RUN;
        work / cores().min(runs.max(1) as usize) as f64
    }
}

fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{:.1} s", s.max(0.1)),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
