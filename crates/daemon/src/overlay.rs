//! `weir overlay`: a node of the backpressure overlay on this host, and what it says of its neighbours and flows.

mod ask;
mod bundle;
mod carrier;
mod config;
mod control;
mod device;
mod files;
mod key_log;
mod networks;
mod node;
mod proxies;
mod repairs;
mod sealing;
mod signing;
mod up;

use crate::failure::Failure;
use crate::frame::{Common, Daemon, Process};
use crate::output::print;
use crate::transfer::{Keys, random};
use crate::{
    Run,
    overlay::ask::{AddArgs, DelArgs, SetArgs, StatusArgs, WhyArgs},
};
use clap::{Args, Subcommand};
use config::Plan;
use files::{ReceiveArgs, SendArgs};
use signing::SigningKey;
use std::path::{Path, PathBuf};
use up::UpArgs;

/// The arguments of `weir overlay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, for site A of three sites; docs/overlay-hosts.md has all of it:
  weir overlay keygen a.key                   prints this node's public keys, which all nodes are given
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
    /// Make a node's keys, and print the public ones for the files of all nodes
    Keygen(KeygenArgs),
    /// Read a node's file and say what the node would be
    Check(CheckArgs),
    /// Run the overlay of a lab on this host, without its traffic, and say how to enter its nodes and hosts
    Up(UpArgs),
    /// Run a node: programs of the site use the overlay by a device with routes to the other sites
    Node(NodeArgs),
    /// Show the neighbours and the flows of the nodes on this host
    Status(StatusArgs),
    /// Say how a flow stands, and what was decided about it
    Why(WhyArgs),
    /// Change a flow's priority or the node's K, or drain the node
    Set(SetArgs),
    /// Add a service
    Add(AddArgs),
    /// Remove a service
    Del(DelArgs),
    /// Receive files from other sites into a folder
    Receive(ReceiveArgs),
    /// Send files to a host of another site, or to a multicast group
    Send(SendArgs),
}

impl Run for OverlayArgs {
    fn run(&self) -> Result<(), Failure> {
        match &self.action {
            Action::Keygen(args) => args.run(),
            Action::Check(args) => args.run(),
            Action::Up(args) => args.run(),
            Action::Node(args) => Run::run(args),
            Action::Status(args) => args.run(),
            Action::Why(args) => args.run(),
            Action::Set(args) => args.run(),
            Action::Add(args) => args.run(),
            Action::Del(args) => args.run(),
            Action::Receive(args) => Run::run(args),
            Action::Send(args) => Run::run(args),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir overlay keygen a.key              makes the file, and prints the lines `key` and `sign` of its [[node]]
  weir overlay keygen a.key --again      prints these lines of a file that is there")]
struct KeygenArgs {
    /// The file for the private key; it must not exist yet
    file: PathBuf,
    /// The file is there: print its public keys
    #[arg(long)]
    again: bool,
}

impl KeygenArgs {
    fn run(&self) -> Result<(), Failure> {
        let keys = match self.again {
            true => Keys::of_command(&self.file, "overlay")?,
            false => Keys::generate(&self.file).map_err(|error| {
                let message = format!("cannot write {}: {error}", self.file.display());
                Failure::bad_input(
                    message,
                    "name a new file; with --again the keys of one that is there are printed",
                )
            })?,
        };
        print(&public_lines(&keys)?)
    }
}

/// The lines `key` and `sign` of a node with these keys, for the files of all nodes.
///
/// # Errors
/// No key for signatures can be derived.
pub fn public_lines(keys: &Keys) -> Result<String, Failure> {
    let sign = signing_key(keys)?.public();
    Ok(format!("key = \"{}\"\nsign = \"{sign}\"\n", keys.public))
}

/// What `weir overlay check` says of a file with this text at `path`, beside which its keys are.
///
/// # Errors
/// What is wrong, with its line, and what to write.
pub fn told_of(path: &Path, text: &str) -> Result<String, Failure> {
    Ok(Plan::parse(path, text)?.to_string())
}

/// Reads what another process asks of a node, and writes it again.
///
/// # Errors
/// Why it is no question.
pub fn asked_again(question: &[u8]) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&control::understood(question)?).map_err(|error| error.to_string())
}

/// Random bytes, as an error that says so if there are none.
fn drawn<const N: usize>() -> Result<[u8; N], Failure> {
    random().map_err(|error| Failure::failed(format!("the system gives no random bytes: {error}")))
}

/// The key by which the owner of these keys signs.
fn signing_key(keys: &Keys) -> Result<SigningKey, Failure> {
    SigningKey::of(keys).ok_or_else(|| Failure::failed("cannot derive a key for signatures"))
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
    /// Append the secrets of the connections to neighbours to this file, by which `weir sliq decode` opens captured packets. Who reads it can
    /// read and forge what passes between the nodes: for tests only
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
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
        node::run(&self.file, self.key_log.as_deref(), process)
    }
}
