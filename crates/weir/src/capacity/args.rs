//! The arguments of `weir capacity`.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use weir_base::{Bytes, Span};
use weir_optimum::LONGEST_DEADLINE;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir capacity labs/overlay/grid-5x5.csv --from 1 --to 5,21 --deadline 49ms
  weir capacity labs/overlay/grid-5x5.csv --from 1 --to 5,21 --deadline 0ms..60ms --plot staircase.svg
  weir capacity net.csv --from a --to b,c --from d --to e --weight 2=3 --deadline 40ms,60ms
  weir capacity lab.toml --session video --deadline 80ms --json

FILE is a lab, whose groups are the sessions (a group with a list in `to` has several receivers), or CSV with the header \
from,to,rate,delay and a line for each direction of a link (a,b,10 Mbit/s,5 ms). With CSV, each --from and --to make a session, \
and sessions are called 1, 2 and so on.
The answer is an upper bound for everything that forwards in such a network: queues, losses and protocols only take away from it. An \
interrupt prints the bounds so far. docs/capacity.md has the model.
Exit status: 0 done; 2 bad input; 130 interrupted.")]
pub(crate) struct CapacityArgs {
    /// A lab, or a network as CSV (its name ends in .csv)
    pub file: PathBuf,
    /// When every packet must have arrived: a time, several, or a range (40ms..100ms), of which every step is shown
    #[arg(long, value_name = "TIME[..TIME]", value_delimiter = ',', required = true)]
    pub deadline: Vec<Within>,
    /// Only these sessions of a lab
    #[arg(long, value_name = "SESSION", value_delimiter = ',')]
    pub session: Vec<String>,
    /// The source of a session (CSV)
    #[arg(long, value_name = "NODE", requires = "to")]
    pub from: Vec<String>,
    /// The receivers of a session (CSV)
    #[arg(long, value_name = "NODE[,NODE...]", requires = "from")]
    pub to: Vec<String>,
    /// How much a session's rate counts beside those of others [default: 1]
    #[arg(long, value_name = "SESSION=NUMBER")]
    pub weight: Vec<String>,
    /// Let nodes copy and forward, but not code: `exact` up to 15 nodes that forward, or `bounds`
    #[arg(long, value_name = "HOW")]
    pub routing: Option<Routing>,
    /// Add to each link's delay the time that it needs to send three packets of this size
    #[arg(long, value_name = "SIZE")]
    pub packet: Option<Bytes>,
    /// Change a value of the lab, as `weir run` does
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Print one JSON document, with all paths and prices
    #[arg(long)]
    pub json: bool,
    /// Draw the steps of a range into this file: its name ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// How exactly trees are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Routing {
    /// The most that trees carry
    Exact,
    /// What trees that were found carry, and what coding carries at most
    Bounds,
}

/// A time, or all from one to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within {
    first: Span,
    last: Option<Span>,
}

impl FromStr for Within {
    type Err = String;
    fn from_str(text: &str) -> Result<Within, String> {
        let time = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
        match text.split_once("..") {
            None => Ok(Within { first: time(text)?, last: None }),
            Some((first, last)) => {
                let (first, last) = (time(first)?, time(last)?);
                if first > last {
                    return Err(format!(
                        "the range from {first} to {last} is empty; write the shorter time first"
                    ));
                }
                Ok(Within { first, last: Some(last) })
            }
        }
    }
}

/// The deadlines that are asked for.
pub(crate) enum Deadlines {
    /// These, in rising order.
    Single(Vec<Span>),
    /// All of a range.
    Range(Span, Span),
}

impl Deadlines {
    pub(crate) fn of(asked: &[Within]) -> Result<Deadlines, Failure> {
        let longest =
            asked.iter().map(|within| within.last.unwrap_or(within.first)).max().unwrap_or_default();
        if longest > LONGEST_DEADLINE {
            let help = "write at most 1000 h";
            return Err(Failure::bad_input(format!("a deadline of {longest} is too long"), help));
        }
        if let &[Within { first, last: Some(last) }] = asked {
            return Ok(Deadlines::Range(first, last));
        }
        if asked.iter().any(|within| within.last.is_some()) {
            let message = "--deadline has a range among other deadlines";
            return Err(Failure::bad_input(message, "give one range, or single deadlines"));
        }
        let mut single: Vec<Span> = asked.iter().map(|within| within.first).collect();
        single.sort_unstable();
        single.dedup();
        Ok(Deadlines::Single(single))
    }
}
