//! `weir sliq`: the transport SLIQ between hosts: files, streams and measurements; and its plan for a given channel.

mod decode;
mod plan;

use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_daemon::{Failure, Run, sliq};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sliq keygen ~/.config/weir.key
  weir sliq serve --key weir.key --allow 8f3c... --into /data/incoming --listen 10.1.2.3:7765
  weir sliq send big.dat 10.1.2.3 --key weir.key --peer 1b9e...
  weir sliq plan --per 20% --rtt 20ms --owd 10ms --rate 10mbit --packet 1250B --deadline 50ms --target 0.995")]
pub(crate) struct SliqArgs {
    #[command(subcommand)]
    pub action: SliqAction,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum SliqAction {
    /// Find how a stream with a deadline is protected against loss with the fewest packets
    Plan(plan::PlanArgs),
    /// Open the packets of a capture whose secrets a node has logged, for Wireshark
    Decode(decode::DecodeArgs),
    /// Make a key pair, by which other hosts recognise this one
    Keygen(KeygenArgs),
    #[command(flatten)]
    Daemon(sliq::Command),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir sliq keygen ~/.config/weir.key     prints the public key, which the other host is given")]
pub(crate) struct KeygenArgs {
    /// The file for both keys; it must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs `weir sliq`.
pub(crate) fn sliq(action: &SliqAction) -> Result<(), Failure> {
    match action {
        SliqAction::Plan(args) => plan::plan(args),
        SliqAction::Decode(args) => decode::decode(args),
        SliqAction::Keygen(args) => crate::keygen::keygen(&args.file),
        SliqAction::Daemon(daemon) => daemon.run(),
    }
}
