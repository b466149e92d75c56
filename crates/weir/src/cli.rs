//! The arguments of the command line. Every command's `--help` ends with an example.

#[cfg(test)]
mod manual;
mod test;
mod wrap;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
pub(crate) use test::TestArgs;
use weir_report::plot::PIXELS;
pub(crate) use wrap::{LinkAction, LinkArgs, WrapArgs};

/// The version, and the commit that the program was built from.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WEIR_COMMIT"), ")");

/// A workbench for transport control: one lab file, run on a simulator and on real Linux, with one report.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version = VERSION,
    max_term_width = 100,
    after_help = "\
Start here:
  weir new first.toml          a commented lab
  weir run first.toml          run it on the simulator
  weir run first.toml --on sim,live"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a lab, write its records and report, print its table
    Run(RunArgs),
    /// Rebuild a result folder's report from its records
    Report(ReportArgs),
    /// Compare two results, or the two engines of one result, side by side, with verdicts
    Compare(CompareArgs),
    /// Draw a metric of a result as an SVG or PNG file
    Plot(PlotArgs),
    /// Answer a common question about a line: is it bloated, is it fair, does a call work on it?
    Test(TestArgs),
    /// Run a program behind an emulated network
    Wrap(WrapArgs),
    /// Show and change the links of wrapped programs and live runs while they work
    Link(LinkArgs),
    /// Run the labs of a study and judge its published claims by what is measured
    Reproduce(ReproduceArgs),
    /// Say what a packet capture of any network tells about its flows: rates, RTT, retransmissions, marks
    Analyze(crate::analyze::AnalyzeArgs),
    /// Observe the root queue of a network device: sojourn, drops, marks, rate and backlog, whoever made it
    Observe(crate::observe::ObserveArgs),
    /// Compute the most that a network can carry to all receivers of a session by a deadline, whatever forwards in it
    Capacity(crate::capacity::CapacityArgs),
    /// Compute what the flows of an overlay would have where the sum of utilities is largest, and why no flow gets more
    Optimum(crate::optimum::OptimumArgs),
    /// List the names that a lab can use
    List(ListArgs),
    /// Describe a name: its meaning, its parameters, their defaults and its source
    Describe(DescribeArgs),
    /// Write a commented lab to start from
    New(NewArgs),
    /// Export a result as tidy tables (CSV, JSON, Parquet), and its records as CSV and JSON
    Export(ExportArgs),
    /// Keep a dated note on a result
    Note(crate::note::NoteArgs),
    /// List all results below a folder in the browser: search, compare, follow what runs
    Serve(crate::serve::ServeArgs),
    /// Print the JSON schema of lab files
    #[command(after_help = "Example:\n  weir schema > lab.schema.json")]
    Schema,
    /// Load weir's congestion controls into the running kernel, for any program to use
    Kernel(KernelArgs),
    /// Plan transfers over paths whose rate is reserved, and keep their reservations
    Circuit(crate::circuit::CircuitArgs),
    #[command(flatten)]
    Daemon(weir_daemon::Command),
    /// Send files and streams over paths that lose packets (SLIQ), measure them, and plan how a deadline is kept
    Sliq(Box<crate::sliq::SliqArgs>),
    /// Show what of weir runs for long here (aggregation points, transfers, nodes of an overlay), and what it has counted
    #[command(after_help = "Example:\n  weir status --json")]
    Status {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what this machine can do, and what would make a result invalid
    Doctor(DoctorArgs),
    /// Print shell completions
    #[command(after_help = "Example:\n  weir completions bash > /etc/bash_completion.d/weir")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the reference of the manual as Markdown files
    #[command(hide = true)]
    Reference(crate::reference::ReferenceArgs),
}

/// Which engines run a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// The deterministic simulator
    Sim,
    /// Real Linux: network namespaces with kernel TCP
    Live,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir run labs/quickstart.toml
  weir run labs/quickstart.toml --on sim,live --out /tmp/quickstart
  weir run lab.toml --set run.duration='60 s' --set dumbbell.rate='1 Gbit/s'
  weir run lab.toml --dry-run                       print the tree, an estimate, and the commands that a live run would execute
  weir run lab.toml --rerun --only queue=PIE --only rate='10 Mbit/s'

Repeating the command resumes an interrupted run. This also holds for --rerun: its results are kept in DIR/.weir-rerun and replace the \
older ones when they are complete. index.html can be opened during the run (for --rerun, the one in that folder): it is rewritten about \
every ten seconds.
Exit status: 0 done; 1 a run failed or (--strict) was invalid; 2 bad input; 130 interrupted.")]
pub(crate) struct RunArgs {
    /// The lab file
    pub lab: PathBuf,
    /// Engines, separated by a comma
    #[arg(long, value_delimiter = ',', default_value = "sim", value_name = "ENGINE")]
    pub on: Vec<EngineName>,
    /// Where the results go [default: results/<lab name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Change a value of the lab: a path with dots, and TOML (quotes around text may be left out)
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Simulated runs in parallel [default: all cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Live runs in parallel; more than one only on links of a few Mbit/s, which leave the cores idle
    #[arg(long, value_name = "N", default_value = "1")]
    pub live_jobs: std::num::NonZeroUsize,
    /// Print the tree of runs and an estimate, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The columns of the table, separated by commas: headings (goodput, on-time, done-p99, delay, ...), metrics of every link and
    /// group (rtt_ms, queue_delay_ms:p99), or all [default: what fits]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Print the summary as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write no HTML report
    #[arg(long)]
    pub no_report: bool,
    /// Run everything again (or what --only names); the new results replace the old ones when they are complete, except files
    /// that are not weir's
    #[arg(long)]
    pub rerun: bool,
    /// Run only the cells that have this label on this level of the tree, which is given by its full name or the last part of it.
    /// Several labels of a level widen the choice, several levels narrow it
    #[arg(long, value_name = "LEVEL=LABEL")]
    pub only: Vec<String>,
    /// How often a failed run is tried again; a run whose command failed never is
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub retries: u32,
    /// Fail when a run was invalid, because the machine was too busy for example
    #[arg(long)]
    pub strict: bool,
    /// Let live runs execute the lab's commands, as the user who runs weir; --dry-run shows them. Without it weir asks at a
    /// terminal, and refuses elsewhere
    #[arg(long)]
    pub allow_commands: bool,
    /// Capture the packets of these links in runs/<id>/<LINK>.pcap (dumbbells have links `down` and `up`, other networks NAME
    /// and NAME-up); runs that are there already are not captured
    #[arg(long, value_name = "LINK", value_delimiter = ',')]
    pub pcap: Vec<String>,
    /// Run on the Dask cluster of this scheduler, on the simulator; it needs python3 with the packages weir and distributed
    #[arg(long, value_name = "tcp://HOST:PORT", conflicts_with_all = ["jobs", "live_jobs", "only", "retries", "pcap"])]
    pub dask: Option<String>,
    /// With --dask: results travel back over the network. By default workers write into the result folder, which all of them mount
    /// under the same path
    #[arg(long, requires = "dask")]
    pub carry: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir report results/quickstart
  weir report results/quickstart --warmup '5 s'     another warm-up, without running again
  weir report results/agreement --order queue,mix   the levels of the tree in another order")]
pub(crate) struct ReportArgs {
    /// A result folder
    pub folder: PathBuf,
    /// Leave this much from the start of every run out of the metrics, instead of the lab's warm-up
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<weir_base::Span>,
    /// Put these levels of the tree first, in this order, and the others after them; each is given by its full name or the last
    /// part of it
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub order: Vec<String>,
    /// The columns of the table, separated by commas: headings (goodput, on-time, done-p99, delay, ...), metrics of every link and
    /// group (rtt_ms, queue_delay_ms:p99), or all [default: what fits]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Print the summary as one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir compare results/quickstart                   its simulated against its live runs
  weir compare results/before results/after --out /tmp/comparison
  weir compare results/web --cells pie,fq-codel --out /tmp/comparison    cells of one result, in this order
  weir compare results/agreement --bound utilisation_percent=3

Verdicts: agree (the whole 95 % interval of the difference lies within the bound), differ, cannot tell.
Single flows of both are held beside each other: where their samples part, and with captures (weir run --pcap) the first packet that \
differs.
Exit status: 0 every verdict is `agree`, or --cells; 1 otherwise; 2 bad input, or no run is left to compare.")]
pub(crate) struct CompareArgs {
    /// A result folder
    pub first: PathBuf,
    /// Another result folder; without it the two engines of the first are compared
    pub second: Option<PathBuf>,
    /// A bound other than a metric's own: a number in its unit, or a share with %
    #[arg(long, value_name = "METRIC=BOUND")]
    pub bound: Vec<String>,
    /// Show these cells of one result, in this order, instead of judging: each by its labels (joined by /), a label that no other cell
    /// has, or the name of its runs
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    pub cells: Vec<String>,
    /// Write the comparison as a page, index.html, into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The size of a plot.
fn size(text: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| text.trim().parse().ok().filter(|side| PIXELS.contains(side));
    let sides = text.split_once(['x', '×']).and_then(|(width, height)| side(width).zip(side(height)));
    sides.ok_or_else(|| {
        format!("write WIDTHxHEIGHT, each from {} to {}, for example 1600x900", PIXELS.start(), PIXELS.end())
    })
}

/// What a plot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotKind {
    /// A line over time for each cell
    Time,
    /// The share of values at or below each value, a line for each cell
    Cdf,
    /// A bar with its 95 % interval for each label of a level
    Bars,
    /// Means with 95 % intervals along a level of numbers, a line for each label of another
    Lines,
    /// Means over two levels
    Heat,
    /// A delay over the throughput, with an ellipse for each cell: down and to the right is better
    DelayThroughput,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir plot results/web --metric queue_delay_ms --by queue --kind cdf -o delay.svg
  weir plot results/web --metric goodput_mbps --of bulk --kind bars -o goodput.png
  weir plot results/grid --metric rtt_ms --of web --along rate --by queue --kind lines --only rtt='40 ms' -o rtt.svg
  weir plot results/grid --metric rtt_ms --of web --kind bars --by queue --mean-over rate --title 'RTT of pages' --size 1600x900 -o rtt.png
  weir plot results/cellular --kind delay-throughput --by cc -o cellular.svg

A level that varies is an axis, is fixed (--only) or is averaged (--mean-over); otherwise the plot is refused. Cells without a value stand \
in the plot with the reason. Time and CDF plots show one run of each cell, the first valid one; means are over all valid repeats. If both \
engines ran, bars, lines and heat maps show the simulator, and say so.")]
pub(crate) struct PlotArgs {
    /// A result folder
    pub folder: PathBuf,
    /// The metric, as `weir list metrics` names it [default: delay-throughput has the RTT of the group --of, else the queue delay]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// The link or the group that it is taken of [default: the whole run, else the only one that has it]
    #[arg(long, value_name = "NAME")]
    pub of: Option<String>,
    /// The level whose labels have a line, a bar or a row each; its full name or the last parts of it, as pages show it [default: the
    /// first that varies]
    #[arg(long, value_name = "LEVEL")]
    pub by: Option<String>,
    /// The level along which lines go, or that has the columns [default: the next that varies]
    #[arg(long, value_name = "LEVEL")]
    pub along: Option<String>,
    /// Plot only the cells that have this label on this level. Several labels of a level widen the choice, several levels
    /// narrow it
    #[arg(long, value_name = "LEVEL=LABEL")]
    pub only: Vec<String>,
    /// Take the mean over the labels of this level, which is then no axis; the plot names it
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub mean_over: Vec<String>,
    /// What the plot shows
    #[arg(long, value_enum)]
    pub kind: PlotKind,
    /// Use a logarithmic axis: for the values of a CDF, or along the level of lines
    #[arg(long)]
    pub log: bool,
    /// A title other than the metric's; what is fixed or averaged stands below it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Width and height in pixels; texts and lines grow with them [default: 900x480, a PNG twice as many each way]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    pub size: Option<(u32, u32)>,
    /// The file to write: its name ends in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir reproduce textbook                     the labs as they are written
  weir reproduce textbook/pie --full          with the settings of [full]: more repeats, more cells
  weir reproduce dualpi2 --on sim,live        on both engines the cells that [live] in its labs selects

A study is a folder in `labs` with a profile.toml, which its labs extend; [[expect]] in a lab states what was published.
Labs without claims run only with --full, or when they are named. With --on live, only the labs with [live] run, if there are any.
Verdicts: holds, fails, differs (it does not hold, for a reason that the lab gives), not measured (no valid run). Claims \
that name the same row hold together or not at all. The table is also in index.html and reproduce.json, and for each study documents/STUDY.md (live \
STUDY-live.md) has it with pictures of the claims, between the opening and the sections of about.md in the study's folder.
Exit status: 0 no claim fails; 1 some fail or were not measured, or a run failed; 2 bad input; 130 interrupted.")]
pub(crate) struct ReproduceArgs {
    /// A study, or one of its labs; everything if left out
    #[arg(value_name = "STUDY[/LAB]")]
    pub what: Option<String>,
    /// Engines, separated by a comma
    #[arg(long, value_delimiter = ',', default_value = "sim", value_name = "ENGINE")]
    pub on: Vec<EngineName>,
    /// Apply the settings of the labs' [full]: the whole study, not only what its claims need
    #[arg(long)]
    pub full: bool,
    /// Where the results go [default: results/reproduce, with --full and --on live results/reproduce-full-live]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where the studies are [default: labs]
    #[arg(long, value_name = "DIR")]
    pub labs: Option<PathBuf>,
    /// Simulated runs in parallel [default: all cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Live runs in parallel; more than one only on links of a few Mbit/s, which leave the cores idle
    #[arg(long, value_name = "N", default_value = "1")]
    pub live_jobs: std::num::NonZeroUsize,
    /// Run everything again, instead of keeping the runs that are there
    #[arg(long)]
    pub rerun: bool,
    /// Let live runs execute the labs' commands, as the user who runs weir. Without it weir shows them and asks at a terminal,
    /// and refuses elsewhere
    #[arg(long)]
    pub allow_commands: bool,
    /// Print the table as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Congestion controllers
    Controllers,
    /// Queue disciplines
    Queues,
    /// Workloads
    Workloads,
    /// Transports
    Transports,
    /// Stations at routers
    Stations,
    /// Utilities by which the overlay admits flows
    Utilities,
    /// Metrics
    Metrics,
    /// Labs in the folder `labs` below this one, and in its studies
    Labs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  weir list\n  weir list queues")]
pub(crate) struct ListArgs {
    /// What to list; everything if left out
    pub kind: Option<Kind>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  weir describe pie\n  weir describe goodput_mbps\n  weir describe run.windows      a setting of a lab file\n  weir describe records.flows    the columns of a table of the records\n  weir describe tidy.links       the columns of an exported table"
)]
pub(crate) struct DescribeArgs {
    /// A name that `weir list` prints, a setting of a lab file, or a table (`records.flows`, `tidy.flows`)
    pub name: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weir new first.toml && weir run first.toml")]
pub(crate) struct NewArgs {
    /// The file to write; it must not exist
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weir export results/quickstart --out /tmp/tables")]
pub(crate) struct ExportArgs {
    /// A result folder
    pub folder: PathBuf,
    /// Where the tables go [default: <folder>/export]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weir doctor")]
pub(crate) struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir kernel list
  weir kernel load yield --set beta=20          and, while it is loaded, again with another value
  weir kernel use yield -- rsync -a here/ there:backup
  weir kernel load prague --ect1 eth0           its packets leave eth0 as ECT(1)
  weir kernel unload

The kernel lists a control as weir_NAME: any program may choose it (TCP_CONGESTION, `ip route ... congctl`, the sysctl \
tcp_congestion_control). Connections keep their control when it is unloaded. docs/kernel.md has the details.")]
pub(crate) struct KernelArgs {
    #[command(subcommand)]
    pub action: KernelAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelAction {
    /// Load controls until they are unloaded, or set the parameters of a loaded one
    #[command(after_help = "\
Examples:
  weir kernel load yield
  weir kernel load yield --set beta=20          and, while it is loaded, again with another value
  weir kernel load prague --ect1 eth0")]
    Load {
        /// The controls to load
        #[arg(required = true)]
        names: Vec<String>,
        /// A parameter, as in a lab file (`weir describe NAME`); the others keep their values
        #[arg(long, value_name = "PARAMETER=VALUE")]
        set: Vec<String>,
        /// Relabel ECT(0) as ECT(1) in packets of the control's connections that leave this device: prague, dctcp
        #[arg(long, value_name = "DEVICE")]
        ect1: Vec<String>,
    },
    /// Unload controls
    #[command(after_help = "Example:\n  weir kernel unload yield")]
    Unload {
        /// The controls to unload; if left out, all that `load` has loaded
        names: Vec<String>,
    },
    /// List the controls: which are loaded, their parameters, and the connections here that use them
    #[command(after_help = "Example:\n  weir kernel list --json")]
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Run a command whose connections all use a control, which is loaded while the command runs; exit with its status
    #[command(after_help = "Example:\n  weir kernel use yield -- rsync -a here/ there:backup")]
    Use {
        /// The control
        name: String,
        /// A parameter, as in a lab file
        #[arg(long, value_name = "PARAMETER=VALUE")]
        set: Vec<String>,
        /// Relabel as `load` does
        #[arg(long, value_name = "DEVICE")]
        ect1: Vec<String>,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
}
