//! The arguments of transfers over circuits, and of circuits that are asked for.

use crate::frame::Common;
use crate::transfer::PublicKey;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_base::{Bytes, Prefix, Rate, Span};
use weir_circuit::Utc;

/// The file of reservations.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The file of reservations
    #[arg(long, value_name = "FILE", default_value = super::STORE, value_parser = |text: &str| std::path::absolute(text))]
    pub store: PathBuf,
}

/// A circuit that is asked for.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("end").required(true)))]
pub struct Asked {
    /// Where the circuit leads: an address or a prefix
    #[arg(long, value_name = "DESTINATION")]
    pub to: Prefix,
    /// The device that it leaves by
    #[arg(long)]
    pub device: String,
    /// Its rate, in frames as tc counts them
    #[arg(long)]
    pub rate: Rate,
    /// Its round trip
    #[arg(long)]
    pub rtt: Span,
    /// When it begins, in UTC [default: now]
    #[arg(long, value_name = "UTC")]
    pub from: Option<Utc>,
    /// How long it lasts
    #[arg(long = "for", value_name = "TIME", group = "end")]
    pub lasts: Option<Span>,
    /// When it ends, in UTC
    #[arg(long, value_name = "UTC", group = "end")]
    pub until: Option<Utc>,
    /// Admit it by the average use of its links, with room left for the background
    #[arg(long)]
    pub semi: bool,
    /// The card's rate [default: as the device reports it]
    #[arg(long, value_name = "RATE")]
    pub card: Option<Rate>,
    /// Average rate of the other traffic that leaves the device
    #[arg(long, value_name = "RATE")]
    pub background: Option<Rate>,
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir circuit serve --key weir.key --allow 8f3c... --into /data/incoming --listen 10.1.2.3:7765

Incomplete files end in .weir-part; repeating the sender's command resumes them. Nothing is overwritten, and nothing is written outside \
the folder. The payload crosses the network unencrypted; each block is verified by a digest that the sender sends encrypted and \
authenticated.")]
pub struct ServeArgs {
    /// This host's keys, as `keygen` wrote them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The public key of a host that may send; may be given several times
    #[arg(long, value_name = "KEY", required = true)]
    pub(crate) allow: Vec<PublicKey>,
    /// The folder for received files
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: PathBuf,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7765")]
    pub(crate) listen: SocketAddr,
    /// Most bytes that the folder may hold, for example 2000GB
    #[arg(long, value_name = "BYTES")]
    pub(crate) quota: Option<Bytes>,
    /// Also receive bytes sent with --memory: they are verified and discarded
    #[arg(long)]
    pub(crate) memory: bool,
    /// The receive buffer of connections, as root: twice the largest window, plus the bytes that arrive while this host is busy
    /// with something else. Without root, net.ipv4.tcp_rmem limits it
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    pub(crate) receive_buffer: Bytes,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The arguments of `send`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = "\
Examples:
  weir circuit send big.dat 10.1.2.3 --key weir.key --peer 1b9e...
  weir circuit send *.h5 10.1.2.3:7765 --key weir.key --peer 1b9e... --streams 4     after `weir circuit up --streams 4`
  weir circuit send big.dat 10.1.2.3 --key weir.key --peer 1b9e... --rate 4gbit --rtt 26ms --device eth0
                                           plans a circuit, sets it up, sends, and takes it down
  weir circuit send --memory 10GB 10.1.2.3 --key weir.key --peer 1b9e...
                                           sends from memory to `serve --memory`: the path's rate without disks

Each second it prints the bytes that the receiver has read, the retransmitted packets, how many of these the network had lost, and the \
packets that the circuit's shaper refused (as root; a refused packet stays unsent and is no loss). After an interruption, the same \
command sends the missing blocks.")]
pub struct SendArgs {
    /// The files
    #[arg(required_unless_present = "memory", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Send this many bytes from memory instead of files, to a receiver that discards them (`serve --memory`): no disk is used
    #[arg(long, value_name = "BYTES", conflicts_with = "files")]
    pub(crate) memory: Option<Bytes>,
    /// The host that runs `weir circuit serve`, perhaps with its port
    #[arg(required = true, value_name = "HOST")]
    pub(crate) host: String,
    /// This host's keys, as `keygen` wrote them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The public key of the other host
    #[arg(long, value_name = "KEY")]
    pub(crate) peer: PublicKey,
    /// Number of connections that carry the files in parallel
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) streams: u32,
    /// The congestion control [default: that of circuits if it is loaded, otherwise the system's]
    #[arg(long, value_name = "NAME")]
    pub(crate) cc: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnArgs,
    /// Print a JSON document a second, and one at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A circuit that is there for one transfer alone.
#[derive(Debug, Args)]
pub(crate) struct OwnArgs {
    /// Reserve and set up a circuit of this rate to the host, and take it down after the transfer
    #[arg(long, requires = "rtt", requires = "device")]
    pub(crate) rate: Option<Rate>,
    /// The round trip of that circuit
    #[arg(long, requires = "rate")]
    pub(crate) rtt: Option<Span>,
    /// The device that it leaves by
    #[arg(long, requires = "rate")]
    pub(crate) device: Option<String>,
    /// The card's rate [default: as the device reports it]
    #[arg(long, value_name = "RATE", requires = "rate")]
    pub(crate) card: Option<Rate>,
    /// How late this host may wake the shaper; the bucket holds the tokens of that time [default: measured for half a second, at
    /// most 10 ms]
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub(crate) late: Option<Span>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
