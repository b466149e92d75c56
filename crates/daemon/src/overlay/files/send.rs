//! `weir overlay send`: files to one host or to a group.

use super::args::SendArgs;
use super::service::AtNode;
use super::{group, to_group, to_host};
use crate::failure::Failure;
use crate::frame::status::{Board, Status};
use crate::frame::{Common, Daemon, Process};
use crate::transfer::{MOST_FILES, address, open};
use std::net::SocketAddr;

impl Daemon for SendArgs {
    const COMMAND: &'static str = "overlay send";
    const KIND: &'static str = "sender over the overlay";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        if self.files.len() > MOST_FILES {
            let message = format!("{} files are too many for one command", self.files.len());
            return Err(Failure::bad_input(message, format!("send {MOST_FILES} at most")));
        }
        let files = open(&self.files)?;
        let group = group::named(&self.to);
        let to = group.map_or_else(|| address(&self.to), |group| Ok(group.into()))?;
        if group.is_none() && (self.receivers.is_some() || self.wait.is_some()) {
            let help =
                "leave out --receivers and --wait, or send to an address from 224.0.0.0 to 239.255.255.255";
            return Err(Failure::bad_input(format!("{to} is one receiver, not a group"), help));
        }
        if self.common.changes_user() && (self.deadline.is_some() || self.priority.is_some()) {
            let help = "add the service before, with `weir overlay add`";
            return Err(Failure::bad_input("another user may not take back what is asked of the node", help));
        }
        let _at_node = AtNode::ask(self, to, files.iter().map(|file| file.bytes).sum())?;
        let board = begin(process, to)?;
        match group {
            Some(group) => to_group::send(self, files, group, process, board),
            None => to_host::send(self, files, to, process, board),
        }
    }
}

/// Begins: what `weir status` shows of a sender is what the board says.
fn begin(process: &Process, to: SocketAddr) -> Result<Board, Failure> {
    process.name(&format!("{to}-{}", std::process::id()))?;
    let board = Board::default();
    let status = Status::of_transfer(&to.to_string(), [("sent_bytes", 0), ("received_bytes", 0)]);
    board.change(|shown| *shown = status);
    let shown = board.clone();
    process.begin(move || shown.read())?;
    Ok(board)
}
