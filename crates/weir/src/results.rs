//! Commands on what is there already: `weir report`, `weir export`; and `weir new`.

use crate::cli::{ExportArgs, NewArgs, ReportArgs};
use crate::failure::{Failure, terminal_width};
use crate::{print, print_json};
use std::fs;
use std::io::Write;
use weir_base::Span;
use weir_engine::Results;

/// Rebuilds a folder's summary and report from its records.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let mut results = Results::open(&args.folder)?;
    results.reorder(&args.order).map_err(|level| {
        let levels: Vec<_> = results.lab.tree().levels.into_iter().map(|(level, _)| level).collect();
        Failure::bad_input(
            format!("`{level}` is no level of this tree, or stands twice"),
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
    results.write_summary(&summary)?;
    weir_report::write(&results, &summary, args.warmup)?;
    if args.json {
        return print_json(&summary);
    }
    print(&weir_report::table(&summary, terminal_width()))?;
    print(&format!("\n{}\n", args.folder.join("index.html").display()))
}

/// Exports a folder's records as tables.
pub(crate) fn export(args: &ExportArgs) -> Result<(), Failure> {
    let results = Results::open(&args.folder)?;
    let out = args.out.clone().unwrap_or_else(|| args.folder.join("export"));
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", out.display()));
    fs::create_dir_all(&out).map_err(|e| cannot(&e))?;
    let summary = serde_json::to_string_pretty(&results.summary(None)?).map_err(|e| cannot(&e))?;
    fs::write(out.join("summary.json"), summary + "\n").map_err(|e| cannot(&e))?;
    results.export(&out)?;
    print(&format!("{} runs exported to {}\n", results.runs.len(), out.display()))
}

/// Writes a commented lab to start from.
pub(crate) fn new(args: &NewArgs) -> Result<(), Failure> {
    let taken = |error: std::io::Error| {
        let help = "give a name that is not taken, in a folder that exists";
        Failure::bad_input(format!("{}: {error}", args.file.display()), help)
    };
    let mut file = fs::File::create_new(&args.file).map_err(taken)?;
    file.write_all(weir_plan::template().as_bytes()).map_err(taken)?;
    print(&format!("{0} is written.  weir run {0}\n", args.file.display()))
}
