//! `weir optimum`: what each flow of an overlay would have where the sum of utilities is largest, the prices of links, and why no flow gets
//! more.

mod show;

use crate::failure::Failure;
use crate::{print, print_json, say};
use clap::Args;
use std::path::PathBuf;
use weir_base::Span;
use weir_engine::optimum::{EXACT, Question, QuestionError};
use weir_optimum::Allocation;
use weir_plan::{Lab, Run, suggest};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir optimum labs/overlay/utility.toml
  weir optimum labs/overlay/system-latency.toml --at 15s
  weir optimum labs/overlay/utility.toml --run 3_r1 --json

The lab has an [overlay]. Its links count with their rate, delay and loss at that time, less headers and messages; rates are of payload, as \
goodput is. A price is what a Mbit/s more would add to the sum of utilities. docs/optimum.md has the model.
Exit status: 0 done; 1 no exact answer was found; 2 bad input.")]
pub(crate) struct OptimumArgs {
    /// A lab with an overlay
    pub lab: PathBuf,
    /// The time of the run, for labs in which links or flows change [default: the end of the warm-up]
    #[arg(long, value_name = "TIME")]
    pub at: Option<Span>,
    /// The run, of a lab that varies [default: the first]
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Change a value of the lab, as `weir run` does
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// An answer about a run.
struct Answered<'a> {
    run: &'a Run,
    question: Question,
    answer: Allocation,
}

/// Computes and prints.
pub(crate) fn optimum(args: &OptimumArgs) -> Result<(), Failure> {
    let lab = Lab::load(&args.lab, &args.set)?;
    let runs = lab.runs();
    let run = chosen(&runs, args)?;
    let at = args.at.unwrap_or(run.warmup);
    if at >= run.duration {
        let message = format!("the run ends at {}, before {at}", run.duration);
        return Err(Failure::bad_input(message, "give --at a time within the run"));
    }
    let question = Question::new(run, at).map_err(refused)?;
    if question.classes.is_empty() {
        let message = format!("no flow of the overlay is there at {at}");
        return Err(Failure::bad_input(message, "give --at a time at which flows have started"));
    }
    warn(run, &question);
    let answer = question.answer().map_err(refused)?;
    let gap = answer.gap;
    let answered = Answered { run, question, answer };
    if args.json {
        print_json(&show::document(&answered))?;
    } else {
        print(&show::text(&answered))?;
    }
    if gap > EXACT {
        let message = format!("the answer may be {gap:.0e} of all priorities below the optimum");
        return Err(Failure::failed_with(message, "this is a fault of weir: please report it with the lab"));
    }
    Ok(())
}

fn chosen<'a>(runs: &'a [Run], args: &OptimumArgs) -> Result<&'a Run, Failure> {
    let Some(first) = runs.first() else {
        return Err(Failure::bad_input("the lab has no run", "let its tree have a cell"));
    };
    let Some(name) = &args.run else {
        if runs.len() > 1 && !first.params.is_empty() {
            say(&format!("note: the lab varies; this is about its first run, {}", first.id));
        }
        return Ok(first);
    };
    runs.iter().find(|run| run.id == *name).ok_or_else(|| {
        let ids = runs.iter().map(|run| run.id.as_str());
        Failure::bad_input(format!("the lab has no run `{name}`"), suggest(name, ids))
    })
}

fn refused(error: QuestionError) -> Failure {
    let help = match error {
        QuestionError::NoOverlay => "name a lab with [overlay]; `weir capacity` is about any other",
        QuestionError::Network(_) | QuestionError::Classes(_) => "ask for a smaller lab",
    };
    Failure::bad_input(error.to_string(), help)
}

/// Says what the answer leaves out.
fn warn(run: &Run, question: &Question) {
    let others: Vec<&str> =
        run.groups.iter().filter(|group| group.overlay.is_none()).map(|group| group.name.as_str()).collect();
    if !others.is_empty() {
        say(&format!("note: what these groups take beside the overlay is left out: {}", others.join(", ")));
    }
    let links = question.links.iter().map(|&link| &run.network.links[link]);
    let varies = |link: &&weir_plan::Link| link.traces().next().is_some() || link.wifi.is_some();
    let names: Vec<&str> = links.filter(varies).map(|link| link.name.as_str()).collect();
    if !names.is_empty() {
        say(&format!("note: these links count with their mean rate: {}", names.join(", ")));
    }
}
