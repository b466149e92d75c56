//! The arguments of `weir overlay send` and `receive`.

use crate::frame::Common;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_base::{Bytes, Prefix, Span};

/// The arguments of `send`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay send big.dat 10.2.0.5
  weir overlay send *.h5 10.2.0.5 --deadline 5min      as root, on the node's host
  weir overlay send map.tif 239.1.2.3 --receivers 2

HOST runs `weir overlay receive`, and allows this host's address. With a group the files go to all of its members that run `weir overlay \
receive --group`; one that falls silent is told, and the others get all. The same command, given again after an interruption, sends the blocks of \
4 MiB that are missing.
Exit status: 0 all receivers have all files, verified and on their disks; 1 one has not; 2 bad input; 130 interrupted.")]
pub(in crate::overlay) struct SendArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The host that receives them, or a multicast group; with or without its port
    #[arg(required = true, value_name = "HOST|GROUP")]
    pub(super) to: String,
    /// Ask the node of this host for the rate that ends the transfer within this time (utility `file`), and say whether it did
    #[arg(long, value_name = "TIME")]
    pub(super) deadline: Option<Span>,
    /// The priority of the transfer at the node of this host, above 0 [default: 1]
    #[arg(long, value_name = "P", value_parser = above_zero)]
    pub(super) priority: Option<f64>,
    /// The name of that node, if several run here
    #[arg(long, value_name = "NAME")]
    pub(super) node: Option<String>,
    /// A group: begin when so many receivers have joined [default: those that join within --wait]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) receivers: Option<u16>,
    /// A group: the longest wait for receivers [default: 3 s, with --receivers 30 s]
    #[arg(long, value_name = "TIME")]
    pub(super) wait: Option<Span>,
    /// The longest silence of a receiver
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(super) timeout: Span,
    /// Print a JSON document each second, and one at the end
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

/// The arguments of `receive`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay receive /data/incoming --from 10.1.0.0/16
  weir overlay receive /data/incoming --from 10.1.0.0/16 --group 239.1.2.3 --quota 2000GB

Files that are not whole end in .weir-part; the sender's command, given again, goes on with them. Nothing is overwritten, and nothing is \
written outside the folder. Groups reach programs on the node's host alone.
Exit status: 0 interrupted; 2 bad input.")]
pub(in crate::overlay) struct ReceiveArgs {
    /// The folder for received files
    #[arg(value_name = "FOLDER")]
    pub(super) folder: PathBuf,
    /// Addresses that may send: a site's prefix or one address; may be given several times
    #[arg(long, value_name = "PREFIX", required = true)]
    pub(super) from: Vec<Prefix>,
    /// Also receive what is sent to this multicast group, with or without its port; may be given several times
    #[arg(long, value_name = "GROUP")]
    pub(super) group: Vec<String>,
    /// Most bytes that the folder may hold, for example 2000GB
    #[arg(long, value_name = "BYTES")]
    pub(super) quota: Option<Bytes>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7765")]
    pub(super) listen: SocketAddr,
    #[command(flatten)]
    pub(super) common: Common,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".to_owned())
}
