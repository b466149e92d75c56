//! What a wrapped program reaches behind its network: the far end, to which packets for all other networks go, and stand-ins for the
//! program's host and the far end between which packets of a prefix have links of their own.
//!
//! Stand-ins are hosts of the plan without a namespace. A packet of the program for an address with the prefix enters at the one and is
//! for the other, whose packets the far end's host gets; a packet of the far end's host from such an address goes back the same way.

use crate::headers::addresses;
use std::net::IpAddr;
use weir_base::Prefix;

/// The stand-ins of one prefix, by their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) prefix: Prefix,
    /// That of the program's host.
    pub(crate) near: usize,
    /// That of the far end.
    pub(crate) far: usize,
}

/// The ends of a wrapped program's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    /// The node of the program's host.
    pub(crate) near: usize,
    /// The node of the far end.
    pub(crate) far: usize,
    /// The longest prefixes first.
    branches: Vec<Branch>,
}

impl Outside {
    /// The ends, with these prefixes.
    pub(crate) fn new(near: usize, far: usize, mut branches: Vec<Branch>) -> Outside {
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.prefix.length()));
        Outside { near, far, branches }
    }

    /// The host that gets the packets for a node: its own, or that for which it stands.
    pub(crate) fn host_of(&self, node: usize) -> usize {
        let stands = |branch: &&Branch| branch.near == node || branch.far == node;
        match self.branches.iter().find(stands) {
            Some(branch) if branch.near == node => self.near,
            Some(_) => self.far,
            None => node,
        }
    }

    /// The stand-ins at which a packet enters and to which it goes, if it comes from the host at `node` and its address at the other side
    /// of the network has one of the prefixes.
    pub(crate) fn ends(&self, node: usize, ip: &[u8]) -> Option<(usize, usize)> {
        if self.branches.is_empty() || node != self.near && node != self.far {
            return None;
        }
        let (source, destination) = addresses(ip)?;
        let with = |address: IpAddr| self.branches.iter().find(|branch| branch.prefix.contains(address));
        if node == self.near {
            with(destination).map(|branch| (branch.near, branch.far))
        } else {
            with(source).map(|branch| (branch.far, branch.near))
        }
    }
}
