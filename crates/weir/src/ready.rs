//! `weir test`: common questions about a line, answered by shipped labs with a verdict.

use crate::cli::{EngineName, TestArgs};
use crate::commands;
use crate::failure::{Failure, terminal_width};
use crate::figure::Format;
use crate::run::{engines, execute, refuse_failed};
use crate::{print, print_json};
use serde_json::json;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use weir_engine::Results;
use weir_plan::Lab;
use weir_ready::{Options, TESTS, Test, find};
use weir_report::plot::Figure;
use weir_session::Execution;

/// Lists the tests, prints one's lab, or runs it and gives its verdict.
pub(crate) fn test(args: &TestArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else { return list(args.json) };
    let unknown = |help| Failure::bad_input(format!("there is no test `{name}`"), help);
    let test = find(name).map_err(unknown)?;
    let [down, up] = args.rate;
    let options = Options {
        down,
        up,
        rtt: args.rtt,
        queues: args.queue.clone(),
        controllers: args.cc.clone(),
        repeats: args.repeats,
    };
    let wrong =
        |why| Failure::bad_input(why, "leave it out, or choose another test (`weir test` lists them)");
    let options = test.complete(options).map_err(wrong)?;
    let lab = test.lab(&options)?;
    if args.print {
        return print(lab.source());
    }
    if args.on.contains(&EngineName::Live) {
        // An ordinary user's process moves into a user namespace; it must still have a single thread.
        let _ = weir_linux::enter();
    }
    let out =
        args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(format!("test-{}", test.name)));
    run(test, &options, &lab, &out, args)
}

fn run(test: &Test, options: &Options, lab: &Lab, out: &Path, args: &TestArgs) -> Result<(), Failure> {
    let leave = commands::leave(std::iter::once(lab), &args.on, false)?;
    let execution = Execution {
        out: out.to_owned(),
        jobs: None,
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        // Other choices make another lab, whose results replace these.
        rerun: out.join("lab.toml").exists(),
        only: &[],
        retries: 1,
        report: true,
    };
    let done = execute(lab, &engines(&args.on), &execution, &leave)?;
    let verdict = test.verdict(&done.summary);
    if done.tally.failed.is_empty() {
        draw(test, options, lab, done.path())?;
    }
    if args.json {
        print_json(&json!({ "verdict": verdict, "summary": done.summary }))?;
    } else {
        print(&weir_report::table_of(&done.summary, None, terminal_width()))?;
        print(&format!(
            "\n{}\n{}\n\n{}\n",
            verdict.sentences[0],
            verdict.sentences[1],
            done.path().join("index.html").display()
        ))?;
    }
    refuse_failed(&done)
}

/// Draws the test's pictures beside the report.
fn draw(test: &Test, options: &Options, lab: &Lab, folder: &Path) -> Result<(), Failure> {
    let results = Results::open(folder)?;
    let varied: Vec<String> = lab
        .tree()
        .levels
        .into_iter()
        .filter(|(_, labels)| labels.len() > 1)
        .map(|(level, _)| level)
        .collect();
    for picture in test.pictures(options) {
        let figure = Figure::of(&results, &picture.wanted(&varied))?;
        Format::Svg.write(&figure, &folder.join(format!("{}.svg", picture.file)))?;
    }
    Ok(())
}

fn list(as_json: bool) -> Result<(), Failure> {
    if as_json {
        let all: Vec<_> =
            TESTS.iter().map(|test| json!({ "name": test.name, "about": test.about })).collect();
        return print_json(&all);
    }
    let width = TESTS.iter().map(|test| test.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for test in &TESTS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:width$}  {}", test.name, test.about);
    }
    print(&text)
}
