//! The commands that a lab's live runs execute on the machine, for the user who is to allow them.

use crate::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use weir_workload::command::{Config, Host};

/// A command of a lab as it is written. Each run fills in its placeholders for addresses, ports and the like.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commanded {
    /// Its traffic group.
    pub group: String,
    /// The host that it runs in, by the name of its node.
    pub host: String,
    /// The text that the shell runs.
    pub command: String,
    /// Environment variables in addition to weir's own.
    pub environment: BTreeMap<String, String>,
}

/// The commands of these cells, each once.
pub(crate) fn of(cells: &[Cell]) -> Vec<Commanded> {
    let mut seen = HashSet::new();
    let of_cell =
        |cell: &Cell| cell.groups.iter().flat_map(|group| of_group(cell, group)).collect::<Vec<_>>();
    cells.iter().flat_map(of_cell).filter(|command| seen.insert(command.clone())).collect()
}

fn of_group(cell: &Cell, group: &crate::run::Group) -> Vec<Commanded> {
    let Some(Config { run, host, peer, environment, .. }) = group.workload.command() else { return vec![] };
    // A command has one pair of hosts.
    let pair = group.pairs[0];
    let (own, other) = match host {
        Host::Sender => (pair.from, pair.to),
        Host::Receiver => (pair.to, pair.from),
    };
    let commanded = |node: usize, command: &String| Commanded {
        group: group.name.clone(),
        host: cell.network.nodes[node].name.clone(),
        command: command.clone(),
        environment: environment.clone(),
    };
    let peer = peer.iter().map(|peer| commanded(other, peer));
    peer.chain([commanded(own, run)]).collect()
}
