//! `weir compare`: two results, or the two engines of one, side by side, with verdicts.

use crate::cli::CompareArgs;
use crate::failure::{Failure, terminal_width};
use crate::results::tell;
use crate::{print, print_json};
use std::path::Path;
use weir_engine::Results;
use weir_record::compare::{Compared, Rule, Verdict, compare as judge};
use weir_record::{RunSummary, Summary};

/// Compares, prints the table, and fails unless everything agrees.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let rules = args
        .bound
        .iter()
        .map(|text| text.parse::<Rule>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|message| Failure::bad_input(message, "for example --bound queue_delay_ms=15%"))?;
    let first = summary(&args.first)?;
    let (reference, other, names) = match &args.second {
        Some(second) => {
            let other = summary(second)?;
            let names = [args.first.display().to_string(), second.display().to_string()];
            (first.runs, other.runs, names)
        }
        None => {
            let (live, sim): (Vec<RunSummary>, Vec<_>) =
                first.runs.into_iter().partition(|run| run.engine == "live");
            if live.is_empty() || sim.is_empty() {
                return Err(Failure::bad_input(
                    format!("{} holds the runs of one engine only", args.first.display()),
                    "run the lab with --on sim,live, or name a second result folder",
                ));
            }
            (live, sim, ["live".into(), "sim".into()])
        }
    };
    let compared: Compared = judge(&reference, &other, &Rule::defaults_but(rules));
    if let (true, Some((id, reason))) = (compared.rows.is_empty(), compared.left_out.first()) {
        return Err(Failure::bad_input(
            format!(
                "no run is left to compare; the first of {} left out, {id}: {reason}",
                compared.left_out.len()
            ),
            "run again on an idle machine; `weir doctor` tells what spoils a live run",
        ));
    }
    if compared.rows.is_empty() {
        return Err(Failure::bad_input(
            "the two have no run in common",
            "compare results of the same lab: runs are paired by what they chose on each level, and by repeat",
        ));
    }
    if let Some(folder) = &args.out {
        weir_report::write_comparison(folder, &compared, [&names[0], &names[1]])?;
    }
    if args.json {
        print_json(&compared)?;
    } else {
        print(&weir_report::compare_table(&compared, [&names[0], &names[1]], terminal_width()))?;
        if let Some(folder) = &args.out {
            print(&format!("\n{}\n", folder.join("index.html").display()))?;
        }
    }
    match compared.verdict() {
        Verdict::Agree => Ok(()),
        _ => Err(Failure::quiet(1)),
    }
}

/// The metrics of a result folder.
fn summary(folder: &Path) -> Result<Summary, Failure> {
    let results = Results::open(folder)?;
    tell(&results);
    Ok(results.summary(None)?)
}
