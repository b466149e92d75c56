//! `weir cp`: endpoints of the Coordination Protocol: a file or a pipe over CP-RUDP, or datagrams over CP-UDP, through aggregation
//! points.

mod datagrams;
mod socket;
mod stream;

pub use socket::Socket;

use crate::Run;
use crate::failure::Failure;
use crate::frame::status::Status;
use crate::frame::{Common, Daemon, Process, log};
use crate::key::key;
use clap::Args;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use stream::{CpError, Driver, Ends, SILENCE, Summary};
use weir_base::{Bytes, Rate, Span};
use weir_coord::participation::Identity;
use weir_coord::scheme;
use weir_coord::seal::Key;
use weir_transport::rudp::Parameters;

/// Smallest IP packet: the room that the headers and some payload need.
const LEAST_MTU: Bytes = Bytes::new(256);
const MOST_MTU: Bytes = Bytes::new(65_535);

/// The arguments of `weir cp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, where `weir ap` stands at the edge of each site and its applications name these addresses and ports:
  weir cp recv --at 10.2.0.5:9000 --application 1 --flow 0 copy.bin
  weir cp send --at 10.1.0.5:9000 --to 10.2.0.5:9000 --application 1 --flow 0 film.bin

Without aggregation points on the way nothing is reported: a stream then halves its rate every four round trips.
Exit status: 0 all has arrived; 1 it has not; 2 bad input; 130 interrupted.")]
pub struct CpArgs {
    #[command(subcommand)]
    pub(crate) action: Command,
}

daemons! {
    /// The two ends of a stream.
    pub(crate) enum Command {
    /// Send a file, or the standard input
    #[command(after_help = "\
Example:
  tar c frames | weir cp send --at 10.1.0.5:9000 --to 10.2.0.5:9000 --application 1 --flow 0 --scheme frames")]
    Send(SendArgs),
    /// Receive into a file, or to the standard output
    #[command(after_help = "\
Example:
  weir cp recv --at 10.2.0.5:9000 --application 1 --flow 0 | tar x")]
    Recv(RecvArgs),
    }
}

impl Run for CpArgs {
    fn run(&self) -> Result<(), Failure> {
        self.action.run()
    }
}

/// An endpoint's address, application, flow, key and largest packet.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// The address and port of this end; the application's `local` and `local_ports` at its aggregation point must include them
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) at: SocketAddr,
    /// The application's id at the aggregation points (0 to 31)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) application: u8,
    /// The flow's number within the application (0 to 127): the same at both ends, and no other flow's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=127))]
    pub(crate) flow: u8,
    /// A file with the application's key, 32 hexadecimal digits; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The largest IP packet
    #[arg(long, value_name = "BYTES", default_value = "1500B")]
    pub(crate) mtu: Bytes,
}

/// The arguments of `send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) who: Who,
    /// The address and port of the other end
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) to: SocketAddr,
    /// How the application's flows split its total rate (equal, weighted, frames, priority, ensemble)
    #[arg(long, value_name = "NAME", default_value = "equal")]
    pub(crate) scheme: String,
    /// The flow's rate before the first report; with --datagrams, its rate throughout
    #[arg(long, default_value = "500kbit")]
    pub(crate) rate: Rate,
    /// The flow's maximum rate, whatever is reported
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    pub(crate) max_rate: Rate,
    /// Largest random change of a gap between two packets, as a share (0 to 1) of its length; flows with the same rate then do not
    /// send in step
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) jitter: f64,
    /// Number of packets that leave together (1 to 64), followed by a gap as long as all their gaps; TCP with delayed acknowledgements
    /// sends two
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) burst: u32,
    /// Send the input as datagrams with this payload each, at a fixed rate and without retransmissions (CP-UDP)
    #[arg(long, value_name = "BYTES")]
    pub(crate) datagrams: Option<Bytes>,
    /// The file to send [default: the standard input]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// The arguments of `recv`.
#[derive(Debug, Args)]
pub(crate) struct RecvArgs {
    #[command(flatten)]
    pub(crate) who: Who,
    /// Receive datagrams (CP-UDP), and write their payloads one after another
    #[arg(long)]
    pub(crate) datagrams: bool,
    /// The file to write [default: the standard output]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".into())
}

impl Daemon for SendArgs {
    const COMMAND: &'static str = "cp send";
    const KIND: &'static str = "sender of a coordinated flow";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        send(self, process)
    }
}

impl Daemon for RecvArgs {
    const COMMAND: &'static str = "cp recv";
    const KIND: &'static str = "receiver of a coordinated flow";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        recv(self, process)
    }
}

fn send(args: &SendArgs, process: &Process) -> Result<(), Failure> {
    let identity = args.who.identity()?;
    if args.to.is_ipv4() != args.who.at.is_ipv4() {
        let message = format!("{} and {} are of two versions of IP", args.who.at, args.to);
        return Err(Failure::bad_input(message, "write both as IPv4, or both as IPv6"));
    }
    let scheme = scheme(&args.scheme)?;
    if args.rate > args.max_rate {
        let message = format!("--rate {} is above --max-rate {}", args.rate, args.max_rate);
        return Err(Failure::bad_input(message, "raise --max-rate, or lower --rate"));
    }
    let mut input = Input::open(args.file.as_deref())?;
    if let Some(size) = args.datagrams {
        return datagrams::send(args, &identity, size, &mut input, process);
    }
    let parameters = Parameters {
        application: Some(args.who.application),
        scheme,
        rate: args.rate,
        max_rate: args.max_rate,
        jitter: args.jitter,
        burst: args.burst,
        ..Parameters::default()
    };
    let ends = Ends { at: args.who.at, peer: Some(args.to), mtu: args.who.mtu };
    let mut quiet = |silence: Span| {
        let seconds = silence.as_secs_f64();
        log::info(&format!(
            "nothing has come from {} for {seconds:.0} s; it is given up after {SILENCE}",
            args.to
        ));
    };
    let driver =
        Driver::open(&ends, &parameters, &identity).map_err(|error| Failure::failed(error.to_string()))?;
    let stop = args.who.begin(process)?;
    print_summary("sent", driver.send(&mut input, &stop, &mut quiet))
}

fn recv(args: &RecvArgs, process: &Process) -> Result<(), Failure> {
    let identity = args.who.identity()?;
    let mut output: Box<dyn Write> = match &args.file {
        Some(path) => Box::new(Output::new(path)?),
        None => Box::new(io::stdout()),
    };
    if args.datagrams {
        return datagrams::recv(args, &identity, &mut output, process);
    }
    let parameters = Parameters { application: Some(args.who.application), ..Parameters::default() };
    let ends = Ends { at: args.who.at, peer: None, mtu: args.who.mtu };
    let driver =
        Driver::open(&ends, &parameters, &identity).map_err(|error| Failure::failed(error.to_string()))?;
    let stop = args.who.begin(process)?;
    print_summary("received", driver.receive(&mut output, &stop))
}

/// Prints the summary of a stream, or returns why it failed.
fn print_summary(what: &str, result: Result<Summary, CpError>) -> Result<(), Failure> {
    let Summary { bytes, took, retransmitted, flowshare_mbps } = result.map_err(|error| match error {
        CpError::Interrupted => Failure::interrupted("interrupted"),
        CpError::Silence => Failure::failed_with(
            error.to_string(),
            "check that `weir cp recv` runs there with the same --application and --flow, and with `weir ap show` what the \
             aggregation points on the way refuse",
        ),
        error => Failure::failed(error.to_string()),
    })?;
    let rate = bytes as f64 * 8e-6 / took.as_secs_f64().max(1e-9);
    log::info(&format!(
        "{what} {bytes} bytes in {:.3} s, {rate:.2} Mbit/s; {retransmitted} packets retransmitted; the last flowshare was {flowshare_mbps:.2} Mbit/s",
        took.as_secs_f64()
    ));
    Ok(())
}

impl Who {
    fn identity(&self) -> Result<Identity, Failure> {
        if !(LEAST_MTU..=MOST_MTU).contains(&self.mtu) {
            let message = format!("an IP packet of a stream cannot be {} long", self.mtu);
            return Err(Failure::bad_input(message, format!("write from {LEAST_MTU} to {MOST_MTU}")));
        }
        identity(self.flow, self.key.as_deref())
    }

    /// Begins, once the socket is bound. Returns the flag that stops it.
    pub(crate) fn begin(&self, process: &Process) -> Result<Arc<AtomicBool>, Failure> {
        let at = self.at.to_string();
        process.name(&format!("{at}-{}", std::process::id()))?;
        let (application, flow) = (self.application.to_string(), self.flow.to_string());
        process.begin(move || Status {
            place: format!("at {at}"),
            labels: vec![
                ("at".into(), at.clone()),
                ("application".into(), application.clone()),
                ("flow".into(), flow.clone()),
            ],
            ..Status::default()
        })?;
        Ok(process.stop())
    }
}

/// The identity of an endpoint: its flow's number, its application's key from this file, and an epoch from the clock.
///
/// # Errors
/// The file cannot be read, or others can read it.
pub(crate) fn identity(flow: u8, key: Option<&Path>) -> Result<Identity, Failure> {
    let key: Option<Key> = key.map(self::key).transpose()?;
    // Each start of an endpoint needs a higher epoch than the one before.
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Identity { flow, key, epoch: since_1970.as_secs() as u32 })
}

/// The scheme of this name.
///
/// # Errors
/// No scheme has this name.
pub(crate) fn scheme(name: &str) -> Result<scheme::Config, Failure> {
    name.parse().map_err(|_| {
        let message = format!("there is no scheme `{name}`");
        Failure::bad_input(message, "write equal, weighted, frames, priority or ensemble")
    })
}

fn about(path: &Path, error: &io::Error, help: &str) -> Failure {
    Failure::bad_input(format!("{}: {error}", path.display()), help)
}

/// A file that is created, or emptied, only when the first data or the end has arrived.
struct Output {
    path: PathBuf,
    file: Option<File>,
}

impl Output {
    fn new(path: &Path) -> Result<Output, Failure> {
        let help = "name a file that can be written";
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if path.is_dir() || !folder.is_dir() || path.file_name().is_none() {
            return Err(Failure::bad_input(format!("{} cannot be a file", path.display()), help));
        }
        let changed = if path.exists() { path } else { folder };
        rustix::fs::access(changed, rustix::fs::Access::WRITE_OK)
            .map_err(|error| about(path, &error.into(), help))?;
        Ok(Output { path: path.to_owned(), file: None })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => Ok(none.insert(File::create(&self.path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
            })?)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

/// The source of the data to send.
enum Input {
    File(File),
    Standard(io::Stdin),
}

impl Input {
    fn open(path: Option<&Path>) -> Result<Input, Failure> {
        let Some(path) = path else { return Ok(Input::Standard(io::stdin())) };
        let file = File::open(path).map_err(|error| about(path, &error, "name a file that can be read"))?;
        Ok(Input::File(file))
    }
}

impl Read for Input {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        // Read without the buffer of the standard input: `poll` does not see buffered bytes.
        let fd = self.as_fd();
        loop {
            match rustix::io::read(fd, &mut *to) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::File(file) => file.as_fd(),
            Input::Standard(input) => input.as_fd(),
        }
    }
}
