//! The arguments of `weir test`.

use super::EngineName;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir test                                          list the tests
  weir test bufferbloat
  weir test bufferbloat --rate 100/20 --queue tail-drop:limit=250p,pie:target=5ms,fq-codel
  weir test fairness --cc cubic,bbr --repeats 3
  weir test rrul --on sim,live --out /tmp/rrul       the same on real Linux
  weir test call --print > call.toml                 the lab, to change and to run with `weir run`

Repeating the command with other choices replaces its results.
Exit status: 0 done; 1 a run failed; 2 bad input; 130 interrupted.")]
pub(crate) struct TestArgs {
    /// The test; left out, all are listed
    pub name: Option<String>,
    /// Rates of the line down and up, in Mbit/s unless a unit is given; one rate holds for both directions
    #[arg(long, value_name = "DOWN/UP", default_value = "50/10", value_parser = weir_ready::read_rates)]
    pub rate: [weir_base::Rate; 2],
    /// Round-trip time of the line without queues
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = weir_ready::read_time)]
    pub rtt: weir_base::Span,
    /// The queues to compare, separated by commas: KIND or KIND:KEY=VALUE:KEY=VALUE, as `weir describe KIND` says. [default: the
    /// test's own, mostly tail-drop:limit=1000p,fq-codel]
    #[arg(long, value_name = "QUEUE", value_delimiter = ',')]
    pub queue: Vec<weir_ready::QueueChoice>,
    /// The congestion controllers to compare, separated by commas [default: the test's own, mostly cubic]
    #[arg(long, value_name = "CONTROLLER", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// Engines, separated by a comma
    #[arg(long, value_delimiter = ',', default_value = "sim", value_name = "ENGINE")]
    pub on: Vec<EngineName>,
    /// Repeats of each cell
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Where the results go [default: results/test-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the lab and run nothing
    #[arg(long)]
    pub print: bool,
    /// Print one JSON document: the verdict, its numbers, and the summary
    #[arg(long)]
    pub json: bool,
}
