//! `weir analyze`: what a capture of any network says about the flows in it, and two captures about the queue between them.

mod between;
pub(crate) mod page;
mod show;

use crate::failure::Failure;
use crate::{print, say};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use weir_base::Span;
use weir_base::terminal::printable_line;
use weir_observe::{Analysis, Capture, CaptureError, Ended, Report, Settings, Unread};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir analyze trace.pcapng
  tcpdump -i eth0 -s 128 -w - | weir analyze - --out /tmp/trace
  weir analyze trace.pcap --json | jq '.analysis.flows[].there.retransmissions'
  weir analyze before.pcap after.pcap --offset 0s     two captures by one clock: sojourn and loss of each packet between them

For each direction of a flow: rates, RTT, retransmissions apart from reordering and copies, spurious ones, ECN marks, the end of the path at \
which the capture was taken, and packets that it missed. Rates count IP bytes. docs/observe.md says how each number is found.
Exit status: 0 done, of a cut or damaged file up to that place; 2 the file is no capture or cannot be read.")]
pub(crate) struct AnalyzeArgs {
    /// A capture in the format pcap or pcapng; - reads standard input
    pub file: PathBuf,
    /// A capture of the same packets at another place, such as behind a queue
    pub second: Option<PathBuf>,
    /// What the second capture's clock shows less that of the first, such as 0s or -3ms [default: estimated; docs/observe.md says how]
    #[arg(long, value_name = "TIME", requires = "second", allow_hyphen_values = true)]
    pub offset: Option<between::Offset>,
    /// The longest time between two captures; a packet that takes more counts as lost
    #[arg(long, value_name = "TIME", requires = "second", default_value = "10 s")]
    pub longest: Span,
    /// Read the report of a queue in the identifications of IPv4: delay, drops and marks, as the queue saw them (docs/observe.md has the code)
    #[arg(long, conflicts_with = "second")]
    pub stamped: bool,
    /// Write the analysis into this folder: a page (index.html), all numbers (analysis.json), and what passed in each period
    /// (series.csv) or, of two captures, each packet (packets.csv)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show this many flows, those with the most bytes first; --json and --out have all
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "second")]
    pub flows: usize,
    /// Tell this many flows apart; packets of further ones are counted together. Each takes about a kilobyte of memory
    #[arg(long, value_name = "N", default_value_t = Settings::default().most_flows, conflicts_with = "second")]
    pub most_flows: usize,
    /// The time over which peak rates are taken, and each value of the series; longer in the series if there would be more than 4096
    #[arg(long, value_name = "TIME", default_value_t = Settings::default().period, conflicts_with = "second")]
    pub period: Span,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// An analysis with what is known of its file.
#[derive(Serialize)]
struct Document<'a> {
    /// The file, as it was named.
    file: String,
    /// Bytes of the file that were read.
    bytes: u64,
    #[serde(flatten)]
    ended: &'a Ended,
    #[serde(flatten)]
    unread: &'a Unread,
    analysis: Report<'a>,
}

/// Reads the capture and shows what it says.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<(), Failure> {
    if let Some(second) = &args.second {
        return between::analyze(args, [&args.file, second]);
    }
    if args.period.is_zero() {
        let help = "give --period a time, for example '100 ms'";
        return Err(Failure::bad_input("peak rates are taken over a time above 0", help));
    }
    let mut capture = open(&args.file)?;
    let AnalyzeArgs { most_flows, period, stamped: is_stamped, .. } = *args;
    let mut analysis = Analysis::new(Settings { most_flows, period, is_stamped });
    analysis.read(&mut capture).map_err(|error| unreadable(&args.file, &error))?;
    let document = Document {
        file: printable_line(&args.file.display().to_string()).into_owned(),
        bytes: capture.position(),
        ended: capture.ended(),
        unread: capture.unread(),
        analysis: analysis.report(),
    };
    if let Some(folder) = &args.out {
        page::write(&document, args.flows, folder)?;
        say(&format!("{}", folder.join("index.html").display()));
    }
    if args.json { print_document(&document) } else { print(&show::text(&document, args.flows)) }
}

/// Opens a capture.
///
/// # Errors
/// There is no such file, or it is no capture.
fn open(file: &Path) -> Result<Capture<Box<dyn Read>>, Failure> {
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(|error| unreadable(file, &error))?)
    };
    Capture::open(reader).map_err(|error| match error {
        CaptureError::Read(error) => unreadable(file, &error),
        error => Failure::bad_input(
            format!("{}: not a capture: {error}", file.display()),
            "give a file that tcpdump, dumpcap or `weir run --pcap` has written; one that is compressed must be unpacked first",
        ),
    })
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(
        format!("{}: {error}", file.display()),
        "name a file that you can read, or - for standard input",
    )
}

/// Prints the document as it is made: it may have a hundred thousand flows.
fn print_document(document: &impl Serialize) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from);
    match written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::failed(format!("cannot write: {error}"))),
    }
}
