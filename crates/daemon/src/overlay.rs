//! `weir overlay`: a node of the backpressure overlay on this host, and what it says of its neighbours and flows.

mod ask;
mod carrier;
mod config;
mod control;
mod device;
mod node;

use crate::failure::Failure;
use crate::frame::{Common, Daemon, Process};
use crate::output::print;
use crate::{
    Run,
    overlay::ask::{SetArgs, StatusArgs, WhyArgs},
};
use clap::{Args, Subcommand};
use config::Plan;
use std::path::PathBuf;

/// The arguments of `weir overlay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, for site A of three sites; docs/overlay-hosts.md has all of it:
  weir sliq keygen a.key                      prints this node's public key, which all nodes are given
  weir overlay check a.toml
  weir overlay node a.toml
  weir overlay status
  weir overlay why 10.1.0.1:5000-10.2.0.1:5000")]
pub struct OverlayArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read a node's file and say what the node would be
    Check(CheckArgs),
    /// Run a node: programs of the site use the overlay by a device with routes to the other sites
    Node(NodeArgs),
    /// Show the neighbours and the flows of the nodes on this host
    Status(StatusArgs),
    /// Say how a flow stands, and what was decided about it
    Why(WhyArgs),
    /// Change a flow's priority, or the node's K
    Set(SetArgs),
}

impl Run for OverlayArgs {
    fn run(&self) -> Result<(), Failure> {
        match &self.action {
            Action::Check(args) => args.run(),
            Action::Node(args) => Run::run(args),
            Action::Status(args) => args.run(),
            Action::Why(args) => args.run(),
            Action::Set(args) => args.run(),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir overlay check /etc/weir/a.toml

Exit status: 0 the file is right; 2 it is not, with the line and what to write.")]
struct CheckArgs {
    /// The node's file
    file: PathBuf,
}

impl CheckArgs {
    fn run(&self) -> Result<(), Failure> {
        print(&Plan::read(&self.file)?.to_string())
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  weir overlay node /etc/weir/a.toml --metrics 127.0.0.1:9100

It runs until it is interrupted. It makes a device with routes to the other sites; both are gone when it ends, also when it is killed. On \
SIGHUP it reads the services of its file again; if anything in the file is wrong, nothing changes.
Exit status: 0 interrupted; 1 the device was removed; 2 bad input.")]
struct NodeArgs {
    /// The node's file
    file: PathBuf,
    #[command(flatten)]
    common: Common,
}

impl Daemon for NodeArgs {
    const COMMAND: &'static str = "overlay node";
    const KIND: &'static str = "overlay node";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        node::run(&self.file, process)
    }
}
