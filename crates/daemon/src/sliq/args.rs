//! The arguments of `weir sliq serve`, `send` and `perf`.

use crate::frame::Common;
use crate::transfer::PublicKey;
use clap::{ArgGroup, Args};
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_base::{Bytes, Rate, Span};

/// The arguments of `serve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["into", "stdout", "perf"])))]
#[command(group(ArgGroup::new("who").required(true).args(["allow", "plain"])))]
#[command(after_help = "\
Examples:
  weir sliq serve --key weir.key --allow 8f3c... --into /data/incoming --listen 10.1.2.3:7765
  weir sliq serve --key weir.key --allow 8f3c... --stdout | tar x
  weir sliq serve --plain --perf
  weir sliq serve --key weir.key --allow 8f3c... --into /data/incoming --listen 10.2.0.5:9000 --application 1 --flow 0

Files that are not whole end in .weir-part; the sender's command, given again, goes on with them. Nothing is overwritten, and nothing \
is written outside the folder. With --stdout it ends with the first stream that has come whole.")]
pub struct ServeArgs {
    /// This host's keys, as `keygen` wrote them
    #[arg(long, value_name = "FILE", required_unless_present = "plain")]
    pub(crate) key: Option<PathBuf>,
    /// The public key of a host that may connect; may be given several times
    #[arg(long, value_name = "KEY", requires = "key")]
    pub(crate) allow: Vec<PublicKey>,
    /// Accept unprotected connections from processes of this machine instead, over loopback
    #[arg(long)]
    pub(crate) plain: bool,
    /// Receive files into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// Receive one stream, and write it to standard output
    #[arg(long)]
    pub(crate) stdout: bool,
    /// Count the bytes and messages of `weir sliq perf`, and keep none
    #[arg(long)]
    pub(crate) perf: bool,
    /// Most bytes that the folder may hold, for example 2000GB
    #[arg(long, value_name = "BYTES", requires = "into")]
    pub(crate) quota: Option<Bytes>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7765")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The connection's application in the Coordination Protocol, and its flow there.
#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    /// The application's id at the aggregation points (0 to 31); they report the rate, so there is no congestion controller
    #[arg(long, value_name = "N", requires = "flow", value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) application: Option<u8>,
    /// The flow's number within the application (0 to 127): the same at both ends, and no other flow's
    #[arg(long, value_name = "N", requires = "application", value_parser = clap::value_parser!(u8).range(0..=127))]
    pub(crate) flow: Option<u8>,
    /// A file with the application's key, 32 hexadecimal digits; other users must not be able to read it
    #[arg(long, value_name = "FILE", requires = "application")]
    pub(crate) application_key: Option<PathBuf>,
}

/// The share of the application's rate that a flow takes.
#[derive(Debug, Args)]
pub(crate) struct ShareArgs {
    /// How the application's flows split its total rate (equal, weighted, frames, priority, ensemble)
    #[arg(long, value_name = "NAME", default_value = "equal", requires = "application")]
    pub(crate) scheme: String,
    /// The flow's rate before the first report
    #[arg(long, value_name = "RATE", default_value = "500kbit", requires = "application")]
    pub(crate) first_rate: Rate,
    /// The flow's maximum rate, whatever is reported
    #[arg(long, value_name = "RATE", default_value = "1gbit", requires = "application")]
    pub(crate) max_rate: Rate,
}

/// How packets leave.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// The largest IP packet to try: packets begin with a payload of 1,200 bytes, and grow to the largest that the path carries
    #[arg(long, value_name = "BYTES", default_value = "1500B")]
    pub(crate) mtu: Bytes,
    /// Hand packets to the kernel one by one, without segmentation offload
    #[arg(long)]
    pub(crate) no_offload: bool,
}

/// The other host, and how packets reach it.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// This host's keys, as `keygen` wrote them
    #[arg(long, value_name = "FILE", required_unless_present = "plain")]
    pub(crate) key: Option<PathBuf>,
    /// The public key of the other host
    #[arg(long, value_name = "KEY", required_unless_present = "plain")]
    pub(crate) peer: Option<PublicKey>,
    /// Send unprotected packets, to a process of this machine over loopback
    #[arg(long, conflicts_with_all = ["key", "peer"])]
    pub(crate) plain: bool,
    /// The congestion controller, as `weir list controllers` names it [default: copa, with cubic as second]
    #[arg(long, value_name = "NAME", value_parser = controller, conflicts_with = "application")]
    pub(crate) cc: Option<weir_control::Config>,
    /// A second controller, which sends data that the first one may not send
    #[arg(long, value_name = "NAME", value_parser = controller, conflicts_with = "application")]
    pub(crate) second: Option<weir_control::Config>,
    /// The address and port of this end; the application's `local` and `local_ports` at its aggregation point must include them
    /// [default: any]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) at: Option<SocketAddr>,
    /// The longest wait for the other host's first answer, and its longest silence later
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) timeout: Span,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    #[command(flatten)]
    pub(crate) member: MemberArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
}

fn controller(text: &str) -> Result<weir_control::Config, String> {
    text.parse()
}

/// The arguments of `send`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sliq send big.dat 10.1.2.3 --key weir.key --peer 1b9e...
  weir sliq send *.h5 10.1.2.3:7765 --key weir.key --peer 1b9e... --cc bbr
  tar c folder | weir sliq send - 10.1.2.3 --key weir.key --peer 1b9e...     to `weir sliq serve --stdout`
  weir sliq send big.dat 10.2.0.5:9000 --key weir.key --peer 1b9e... --at 10.1.0.5:9000 --application 1 --flow 0

The last one sends at the rate that `weir ap` reports at the edge of its site; the other end names the same application and flow.
Each second it tells how much the receiver has. It succeeds when the receiver has all of it, verified and on its disk.
The same command, given again after an interruption, sends the blocks of 4 MiB that are missing.")]
pub struct SendArgs {
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The host that runs `weir sliq serve`, with or without its port
    #[arg(required = true, value_name = "HOST")]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Print a JSON document each second, and one at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The arguments of `perf`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sliq perf 10.1.2.3 --key weir.key --peer 1b9e... --duration 5s --cc bbr
  weir sliq perf 10.1.2.3 --key weir.key --peer 1b9e... --bytes 1MiB --connections 1000
  weir sliq perf 10.1.2.3 --key weir.key --peer 1b9e... --deadline 50ms --rate 4mbit --message 1100B

Without --deadline it sends as much as it can, and tells what has arrived. With --deadline it sends messages at a rate by ARQ and FEC, \
and tells how many were there in time. One-way delays take the way back to be as long as the way there when both are shortest.")]
pub struct PerfArgs {
    /// The host that runs `weir sliq serve --perf`, with or without its port
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How long to send
    #[arg(long, alias = "seconds", value_name = "TIME", default_value = "5 s", conflicts_with = "bytes")]
    pub(crate) duration: Span,
    /// Send this many bytes over each connection, instead of for a time
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<Bytes>,
    /// How many connections send at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub(crate) connections: u32,
    /// Send messages, each of which is to be delivered within this time of its hand-over
    #[arg(long, value_name = "TIME", conflicts_with_all = ["bytes", "connections"])]
    pub(crate) deadline: Option<Span>,
    /// The share of messages to be delivered by the deadline, from 0.5 to 0.9999
    #[arg(long, value_name = "SHARE", default_value_t = 0.995, requires = "deadline")]
    pub(crate) target: f64,
    /// The rate of the messages
    #[arg(long, value_name = "RATE", default_value = "1mbit", requires = "deadline")]
    pub(crate) rate: Rate,
    /// The length of a message
    #[arg(long, value_name = "BYTES", default_value = "1000B", requires = "deadline")]
    pub(crate) message: Bytes,
    /// Send bulk data beside the messages, as much as the path carries, with priority 3
    #[arg(long, requires = "deadline")]
    pub(crate) bulk: bool,
    /// The priority of the messages: 0 goes first, 7 last
    #[arg(long, value_name = "N", default_value_t = 3, requires = "deadline", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) priority: u8,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
