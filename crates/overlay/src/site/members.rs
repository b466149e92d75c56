//! Which groups the hosts of a site have joined: by the node's own device, and in each network whose router for groups the node is.

use super::igmp;
use super::querier::Querier;
use crate::message::MOST_JOINED;
use std::collections::BTreeSet;
use weir_base::Time;

/// Where a datagram comes from or goes to within a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The node's own device.
    Device,
    /// The network of this number.
    Network(usize),
}

/// The memberships of a site.
#[derive(Debug)]
pub(super) struct Members {
    device: BTreeSet<u32>,
    networks: Vec<Querier>,
}

impl Members {
    /// Of a node with these addresses, one in each network.
    pub(super) fn new(addresses: &[u32]) -> Members {
        let networks = addresses.iter().map(|address| Querier::new(*address)).collect();
        Members { device: BTreeSet::new(), networks }
    }

    /// Whether a host of the site has joined the group.
    pub(super) fn has(&self, group: u32) -> bool {
        self.sides_of(group).next().is_some()
    }

    /// Whether there are networks.
    pub(super) fn has_networks(&self) -> bool {
        !self.networks.is_empty()
    }

    /// Where members of a group are.
    pub(super) fn sides_of(&self, group: u32) -> impl Iterator<Item = Side> {
        let device = self.device.contains(&group).then_some(Side::Device);
        let networks = self.networks.iter().enumerate().filter(move |(_, network)| network.has(group));
        device.into_iter().chain(networks.map(|(at, _)| Side::Network(at)))
    }

    /// A datagram has come from a host. Groups of which it speaks go to `heard`. Returns false if the datagram is not of IGMP.
    pub(super) fn hear(
        &mut self,
        side: Side,
        datagram: &[u8],
        is_carried: impl Fn(u32) -> bool,
        now: Time,
        mut heard: impl FnMut(u32),
    ) -> bool {
        if let Side::Network(at) = side {
            if !igmp::read(datagram, |_, _| {}) {
                return false;
            }
            if let Some(network) = self.networks.get_mut(at) {
                network.hear(datagram, is_carried, now, heard);
            }
            return true;
        }
        // The kernel says at the device what all programs of this host want together.
        igmp::read(datagram, |group, is_member| {
            if !is_member {
                self.device.remove(&group);
            } else if is_carried(group) && self.device.len() < MOST_JOINED {
                self.device.insert(group);
            }
            heard(group);
        })
    }

    /// When [`Members::on_timer`] is due.
    pub(super) fn next_time(&self) -> Time {
        self.networks.iter().map(Querier::next_time).min().unwrap_or(Time::NEVER)
    }

    /// Asks hosts of networks, by `send`. Groups that have lost the members of a network go to `gone`.
    pub(super) fn on_timer(
        &mut self,
        now: Time,
        mut send: impl FnMut(usize, &[u8]),
        mut gone: impl FnMut(u32),
    ) {
        for (at, network) in self.networks.iter_mut().enumerate() {
            if network.next_time() <= now {
                network.on_timer(now, |datagram| send(at, datagram), &mut gone);
            }
        }
    }
}
