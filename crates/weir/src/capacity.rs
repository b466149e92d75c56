//! `weir capacity`: the most that any forwarding can deliver by a deadline, against which what was measured can be held.

mod args;
mod input;
mod show;

pub(crate) use args::CapacityArgs;
pub(crate) use show::rate;

use crate::failure::Failure;
use crate::figure::Format;
use crate::{print, print_json, say};
use args::{Deadlines, Routing};
use input::Input;
use weir_base::Span;
use weir_optimum::{Answer, Mode, Problem, Refusal, Stop, Verified, verify};
use weir_report::plot::Figure;

/// An answer and what its check found.
struct Checked {
    answer: Answer,
    verified: Verified,
}

/// Answers in the order of their deadlines.
struct Found {
    mode: Mode,
    checked: Vec<Checked>,
    /// The last deadline that the answers are about; with a range, an answer holds until the next one.
    until: Option<Span>,
    interrupted: bool,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let help = match refusal {
            Refusal::Trees { .. } => "give --routing bounds, which bounds what trees carry from both sides",
            Refusal::Size { .. } => {
                "ask for some of the sessions with --session, or for a part of the network"
            }
            Refusal::Unlimited { .. } => "give the links on the way a rate",
            Refusal::Weight(_) => "write --weight SESSION=NUMBER with a number above 0",
            Refusal::Nothing | Refusal::NoReceiver(_) | Refusal::Twice { .. } => {
                "name one source, and as receivers other nodes, each once"
            }
        };
        Failure::bad_input(refusal.to_string(), help)
    }
}

/// Computes, checks and prints.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<(), Failure> {
    let deadlines = Deadlines::of(&args.deadline)?;
    let format = args.plot.as_deref().map(Format::of).transpose()?;
    if format.is_some() && matches!(deadlines, Deadlines::Single(_)) {
        let message = "--plot draws what a range of deadlines allows, and the deadlines are single ones";
        return Err(Failure::bad_input(message, "write --deadline A..B, for example 40ms..100ms"));
    }
    let mut input = Input::read(args)?;
    if let Some(packet) = args.packet {
        input.network = input.network.with_serialisation(packet, PACKETS);
    }
    let found = find(args, &deadlines, &input)?;
    if args.json {
        print_json(&show::document(&input, &found))?;
    } else {
        print(&show::text(&input, &found))?;
    }
    if let (Some(format), Some(file), Some(until)) = (format, &args.plot, found.until) {
        format.write(&figure(&input, &found, until), file)?;
        say(&format!("{}", file.display()));
    }
    if found.interrupted {
        return Err(Failure::interrupted("interrupted: the last deadline has the bounds so far"));
    }
    Ok(())
}

/// How many packets' serialisation `--packet` adds to a link's delay, as the variant of the study's program does.
const PACKETS: u64 = 3;

fn find(args: &CapacityArgs, deadlines: &Deadlines, input: &Input) -> Result<Found, Failure> {
    let mode = match args.routing {
        None => Mode::Coded,
        Some(Routing::Exact) => Mode::Trees,
        Some(Routing::Bounds) => Mode::TreeBounds,
    };
    let stop = Stop::default();
    let signalled = stop.clone();
    ctrlc::set_handler(move || signalled.set())
        .map_err(|error| Failure::failed(format!("cannot wait for an interrupt: {error}")))?;
    let problem = Problem::new(&input.network, &input.sessions, mode)?.stopped_by(&stop);
    let mut watch = |_| true;
    let (answers, until) = match deadlines {
        Deadlines::Single(list) => (problem.sweep(list, &mut watch), None),
        Deadlines::Range(first, last) => (problem.staircase(*first, *last, &mut watch), Some(*last)),
    };
    let check = |answer: Answer| match verify(&input.network, &input.sessions, &answer) {
        Ok(verified) => Ok(Checked { answer, verified }),
        Err(violation) => Err(Failure::failed_with(
            format!("the answer for {} does not stand its check: {violation}", answer.deadline),
            "this is a fault of weir: please report it with the file",
        )),
    };
    let checked = answers.into_iter().map(check).collect::<Result<_, _>>()?;
    Ok(Found { mode, checked, until, interrupted: stop.is_set() })
}

/// The staircase: what the answers carry, over the deadline.
fn figure(input: &Input, found: &Found, until: Span) -> Figure {
    let points: Vec<(f64, f64)> = found
        .checked
        .iter()
        .map(|Checked { answer, .. }| (answer.deadline.as_millis_f64(), answer.bounds.lower / 1e6))
        .collect();
    let title = format!("{}: at most to all receivers", input.name);
    Figure::steps(&title, ["deadline, ms", "rate, Mbit/s"], "at most", &points, until.as_millis_f64())
}
