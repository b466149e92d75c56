//! `weir compare`: two results, or the two engines of one, side by side, with verdicts; or cells of one result.

use crate::cli::CompareArgs;
use crate::failure::{Failure, terminal_width};
use crate::results::tell;
use crate::{print, print_json};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weir_engine::Results;
use weir_record::compare::{Compared, Rule, Verdict, compare as judge};
use weir_record::metrics::queue::QUEUE_DELAY;
use weir_record::{Param, RunSummary, Summary};
use weir_report::{Chosen, Side, Trajectories};

/// Most cells in one plot: each has a colour.
const MOST_CELLS: usize = 6;

/// Compares, prints the table, and fails unless everything agrees.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    if !args.cells.is_empty() {
        return cells(args);
    }
    let rules = args.bound.iter().map(|text| text.parse::<Rule>()).collect::<Result<Vec<_>, _>>().map_err(
        |message| {
            let example = format!("write for example --bound {}=15%", QUEUE_DELAY.name);
            Failure::bad_input(message, example)
        },
    )?;
    let first = read(&args.first)?;
    let second = args.second.as_deref().map(read).transpose()?;
    let judged = Judged::of(&first, second.as_ref(), rules)?;
    if let Some(folder) = &args.out {
        judged.write(&first, second.as_ref(), folder)?;
    }
    let Judged { compared, names, trajectories } = &judged;
    let names = [names[0].as_str(), names[1].as_str()];
    if args.json {
        print_json(&Document { compared, trajectories })?;
    } else {
        print(&weir_report::compare_table(compared, names, terminal_width()))?;
        print(&trajectories.partings(terminal_width()))?;
        tell_page(args)?;
    }
    match compared.verdict() {
        Verdict::Agree => Ok(()),
        _ => Err(Failure::quiet(1)),
    }
}

/// Writes the page that compares two results, or the engines of one, into a folder.
///
/// # Errors
/// The results cannot be read or compared, or the page cannot be written.
pub(crate) fn write_page(folders: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let mut read = folders.iter().map(|folder| read(folder));
    let Some(first) = read.next().transpose()? else { return Ok(()) };
    let second = read.next().transpose()?;
    Judged::of(&first, second.as_ref(), vec![])?.write(&first, second.as_ref(), out)
}

/// Two results, or the live and the simulated runs of one, held against each other.
struct Judged {
    compared: Compared,
    names: [String; 2],
    trajectories: Trajectories,
}

impl Judged {
    fn of(first: &Read, second: Option<&Read>, rules: Vec<Rule>) -> Result<Judged, Failure> {
        let (reference, other, names) = match second {
            Some(second) => {
                (first.summary.runs.clone(), second.summary.runs.clone(), [first.name(), second.name()])
            }
            None => {
                let (live, sim): (Vec<RunSummary>, Vec<_>) =
                    first.summary.runs.iter().cloned().partition(|run| run.engine == "live");
                if live.is_empty() || sim.is_empty() {
                    return Err(Failure::bad_input(
                        format!("{} has runs of only one engine", first.name()),
                        "run the lab with --on sim,live, name a second result folder, or give --cells X,Y",
                    ));
                }
                (live, sim, ["live".into(), "sim".into()])
            }
        };
        let compared: Compared = judge(&reference, &other, &Rule::defaults_but(rules));
        if let (true, Some((id, reason))) = (compared.rows.is_empty(), compared.left_out.first()) {
            return Err(Failure::bad_input(
                format!(
                    "no runs are left to compare; the first of {} excluded runs is {id}: {reason}",
                    compared.left_out.len()
                ),
                "run again on an idle machine; `weir doctor` shows what makes live runs invalid",
            ));
        }
        if compared.rows.is_empty() {
            return Err(Failure::bad_input(
                "the two results have no run in common",
                "compare results of the same lab: runs are paired by their labels on each level, and by repeat",
            ));
        }
        let sides = [names[0].as_str(), names[1].as_str()];
        let trajectories = trajectories(&first.results, second.map(|second| &second.results), sides)?;
        Ok(Judged { compared, names, trajectories })
    }

    /// Writes the page into a folder.
    fn write(&self, first: &Read, second: Option<&Read>, out: &Path) -> Result<(), Failure> {
        let sides: Vec<Side<'_>> = std::iter::once(first).chain(second).map(Read::side).collect();
        let names = [self.names[0].as_str(), self.names[1].as_str()];
        let judged = Some((&self.compared, names));
        Ok(weir_report::write_comparison(out, &sides, false, judged, Some(&self.trajectories))?)
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    compared: &'a Compared,
    trajectories: &'a Trajectories,
}

/// Single flows of both results, or of the live and the simulated runs of one, beside each other.
fn trajectories(
    first: &Results,
    second: Option<&Results>,
    names: [&str; 2],
) -> Result<Trajectories, Failure> {
    let sides = match second {
        Some(second) => [Chosen::of(first, |_| true), Chosen::of(second, |_| true)],
        None => ["live", "sim"].map(|engine| Chosen::of(first, |run| run.file.engine == engine)),
    };
    Ok(Trajectories::new([&sides[0], &sides[1]], names)?)
}

/// Shows cells of one result, in the order in which they are named.
fn cells(args: &CompareArgs) -> Result<(), Failure> {
    if args.second.is_some() || !args.bound.is_empty() {
        return Err(Failure::bad_input(
            "--cells selects cells of one result, and gives no verdicts",
            "omit the second result and --bound",
        ));
    }
    if args.cells.len() > MOST_CELLS {
        let message = format!("{} cells cannot be told apart in a plot", args.cells.len());
        return Err(Failure::bad_input(message, format!("name {MOST_CELLS} at most")));
    }
    let mut results = Results::open(&args.first)?;
    tell(&results);
    let chosen =
        args.cells.iter().map(|name| cell(&results, name)).collect::<Result<Vec<Vec<Param>>, _>>()?;
    let place = |params: &[Param]| chosen.iter().position(|cell| cell == params);
    results.runs.retain(|run| place(&run.info.params).is_some());
    results.runs.sort_by_key(|run| place(&run.info.params));
    let summary = results.summary(None)?;
    if let Some(folder) = &args.out {
        let name = args.first.display().to_string();
        let side = Side { name, results: &results, summary: &summary };
        weir_report::write_comparison(folder, &[side], true, None, None)?;
    }
    if args.json {
        return print_json(&summary);
    }
    print(&weir_report::table(&summary, terminal_width()))?;
    tell_page(args)
}

/// The cell of a name: its labels joined by `/`, the id of its runs without the repeat, or a label that no other cell has.
fn cell(results: &Results, name: &str) -> Result<Vec<Param>, Failure> {
    let mut cells: Vec<&[Param]> = vec![];
    for run in &results.runs {
        let own = &run.info.params[..];
        let labels: Vec<&str> = own.iter().map(|param| param.value.as_str()).collect();
        let id = run.file.run.id.rsplit_once("_r").map_or(run.file.run.id.as_str(), |(cell, _)| cell);
        if (labels.join("/") == name || id == name || labels.contains(&name)) && !cells.contains(&own) {
            cells.push(own);
        }
    }
    let spelled = |cell: &[Param]| cell.iter().map(|p| p.value.as_str()).collect::<Vec<_>>().join("/");
    match cells.as_slice() {
        [one] => Ok(one.to_vec()),
        [] => {
            let first = results.runs.first().map_or(String::new(), |run| spelled(&run.info.params));
            Err(Failure::bad_input(
                format!("no cell is called `{name}`"),
                format!("a cell is named by its labels, for example {first}, or by the name of its runs"),
            ))
        }
        several => {
            let some: Vec<String> = several.iter().take(4).map(|cell| spelled(cell)).collect();
            Err(Failure::bad_input(
                format!("{} cells have the label `{name}`", several.len()),
                format!("give all labels: {}", some.join(", ")),
            ))
        }
    }
}

/// Prints the path of the page, if one was written.
fn tell_page(args: &CompareArgs) -> Result<(), Failure> {
    match &args.out {
        Some(folder) => print(&format!("\n{}\n", folder.join("index.html").display())),
        None => Ok(()),
    }
}

/// A result with its metrics.
struct Read {
    results: Results,
    summary: Summary,
}

impl Read {
    fn name(&self) -> String {
        self.results.path.display().to_string()
    }

    fn side(&self) -> Side<'_> {
        Side { name: self.name(), results: &self.results, summary: &self.summary }
    }
}

fn read(folder: &Path) -> Result<Read, Failure> {
    let results = Results::open(folder)?;
    tell(&results);
    let summary = results.summary(None)?;
    Ok(Read { results, summary })
}
