//! Commands on existing results: `weir report`, `weir export`; and `weir new`.
//!
//! A tree that is not complete, or is being written at the moment, is read as far as it has come, and every command says how
//! far that is.

use crate::cli::{ExportArgs, NewArgs, ReportArgs};
use crate::failure::{Failure, terminal_width};
use crate::{print, print_json, say};
use std::fs;
use std::io::Write;
use weir_base::Span;
use weir_engine::{FolderError, Results, ResultsError, atomic_write, create_folder};
use weir_report::Columns;

/// The columns that `--columns` asks for.
pub(crate) fn columns(names: &[String]) -> Result<Option<Columns>, Failure> {
    Columns::read(names)
        .map_err(|why| Failure::bad_input(why, "for example --columns goodput,delay, rtt_ms:p99 or all"))
}

/// Rebuilds a folder's summary and report from its records.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let columns = columns(&args.columns)?;
    // A command that is running the lab writes its pages too.
    let (lock, writer) = match Results::lock(&args.folder) {
        Ok(lock) => (Some(lock), None),
        Err(ResultsError::Folder(FolderError::Held { holder, .. })) => (None, Some(holder)),
        Err(error) => return Err(error.into()),
    };
    let mut results = Results::open(&args.folder)?;
    tell(&results);
    results.reorder(&args.order).map_err(|level| {
        let levels: Vec<_> = results.lab.tree().levels.into_iter().map(|(level, _)| level).collect();
        Failure::bad_input(
            format!("`{level}` is not a level of this tree, or is given twice"),
            format!("the levels are {}", levels.join(", ")),
        )
    })?;
    if let Some(warmup) = args.warmup {
        let shortest = results.runs.iter().map(|run| run.info.duration).min().unwrap_or(Span::MAX);
        if warmup >= shortest {
            return Err(Failure::bad_input(
                format!("a warm-up of {warmup} leaves nothing of a run of {shortest}"),
                "give a warm-up that is shorter than every run",
            ));
        }
    }
    let summary = results.summary(args.warmup)?;
    if lock.is_some() {
        results.write_summary(&summary)?;
        weir_report::write(&results, &summary, args.warmup)?;
    }
    if args.json {
        return print_json(&summary);
    }
    print(&weir_report::table_of(&summary, columns.as_ref(), terminal_width()))?;
    match writer {
        Some(holder) => {
            print(&format!("\n{} now. The pages are not written: {holder} writes them.\n", results.count()))
        }
        None => print(&format!("\n{}.  {}\n", results.count(), args.folder.join("index.html").display())),
    }
}

/// Prints what the user should know about a result folder before any number.
pub(crate) fn tell(results: &Results) {
    let (folder, count) = (results.path.display(), results.count());
    if !count.is_complete() {
        say(&format!("weir: {folder} is not complete: it holds {count}"));
    }
    if let Some(staging) = results.unfinished_rerun() {
        say(&format!(
            "weir: {folder} holds older results; an interrupted --rerun is in {}",
            staging.display()
        ));
    }
    if results.unchecked > 0 {
        let unchecked = results.unchecked;
        say(&format!(
            "weir: the descriptions of {unchecked} runs in {folder} have no checksum: an older version of weir wrote them"
        ));
    }
}

/// Exports a folder's records as tables.
pub(crate) fn export(args: &ExportArgs) -> Result<(), Failure> {
    let results = Results::open(&args.folder)?;
    tell(&results);
    let summary = results.summary(None)?;
    let cannot = |error: &dyn std::fmt::Display| {
        let help =
            "check that you can write the folder and that its disk has space; --out DIR writes elsewhere";
        Failure::bad_input(format!("{}: {error}", args.folder.display()), help)
    };
    // Below the result folder, which may come from somebody else, nothing is written through a link.
    let out = match &args.out {
        Some(out) => create_folder(out, ""),
        None => create_folder(&args.folder, "export"),
    };
    let out = out.map_err(|error| cannot(&error))?;
    let text = weir_record::to_json(&summary).map_err(|error| cannot(&error))?;
    atomic_write(&out, "summary.json", &text).map_err(|error| cannot(&error))?;
    let tidy = create_folder(&out, "tidy").map_err(|error| cannot(&error))?;
    let files = weir_record::export_tidy(&summary, &tidy).map_err(|error| cannot(&error))?;
    results.export(&out)?;
    print(&format!(
        "{} exported to {out}: a row for each run, group, flow and link in {out}/tidy ({} files; `weir describe tidy.flows` \
         tells of the columns), and each run's records in a folder of its id\n",
        results.count(),
        files.len(),
        out = out.display()
    ))
}

/// Writes a commented lab to start from.
pub(crate) fn new(args: &NewArgs) -> Result<(), Failure> {
    let taken = |error: std::io::Error| {
        let help = "give the name of a new file, in a folder that exists";
        Failure::bad_input(format!("{}: {error}", args.file.display()), help)
    };
    let mut file = fs::File::create_new(&args.file).map_err(taken)?;
    file.write_all(weir_plan::template().as_bytes()).map_err(taken)?;
    print(&format!("{0} is written.  weir run {0}\n", args.file.display()))
}
