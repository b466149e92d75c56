//! The networks of the site whose hosts send to groups and join them, each at a device of this host.

use super::config::Plan;
use crate::failure::Failure;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_linux::device::{addresses, index_of_name};
use weir_linux::multicast::Multicast;
use weir_overlay::site::Places;
use weir_overlay::site::datagram::fill_checksum;

/// A network.
struct Network {
    sockets: Multicast,
    /// This host's address there.
    address: Ipv4Addr,
}

/// The networks of a node.
#[derive(Default)]
pub(super) struct Networks {
    all: Vec<Network>,
    /// Ready when one of them is, or what they were joined with; `None` without networks.
    ready: Option<OwnedFd>,
}

impl Networks {
    /// Opens the devices that the file names.
    ///
    /// # Errors
    /// A device is not there or has no address of this site, or the process may not open it.
    pub(super) fn open(plan: &Plan) -> Result<Networks, Failure> {
        let all = plan.groups.devices.iter().map(|device| network(device, plan)).collect::<Result<_, _>>()?;
        Ok(Networks { all, ready: None })
    }

    /// This host's address in each network.
    pub(super) fn addresses(&self) -> Vec<u32> {
        self.all.iter().map(|network| network.address.to_bits()).collect()
    }

    /// Waits for datagrams of networks and for `other` together.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn join(&mut self, other: BorrowedFd<'_>) -> Result<(), Failure> {
        let joined = || -> io::Result<OwnedFd> {
            let ready = epoll::create(CreateFlags::CLOEXEC)?;
            for descriptor in self.all.iter().map(|network| network.sockets.as_fd()).chain([other]) {
                epoll::add(&ready, descriptor, EventData::new_u64(0), EventFlags::IN)?;
            }
            Ok(ready)
        };
        if !self.all.is_empty() {
            let ready = joined();
            self.ready =
                Some(ready.map_err(|error| Failure::failed(format!("cannot wait for hosts: {error}")))?);
        }
        Ok(())
    }

    /// What is ready when a datagram or what they were joined with is; `None` without networks.
    pub(super) fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes the next datagram to a group that a host of a network has sent, and returns its length; `None` if there is none now.
    pub(super) fn receive(&self, network: usize, into: &mut [u8]) -> Option<usize> {
        // A device that goes down says so once, and hosts are back when it is up.
        let come = self.all.get(network)?.sockets.receive(into).ok().flatten()?;
        if come.lacks_checksum {
            fill_checksum(&mut into[..come.length]);
        }
        Some(come.length)
    }

    /// Sends a datagram to the hosts of a network. What its device does not take is lost.
    pub(super) fn send(&self, network: usize, datagram: &[u8]) {
        if let Some(network) = self.all.get(network) {
            network.sockets.send(datagram);
        }
    }
}

fn network(device: &str, plan: &Plan) -> Result<Network, Failure> {
    let index = index_of_name(device).ok_or_else(|| {
        let help = "`group_devices` names devices of this host; `ip link` lists them";
        Failure::bad_input(format!("there is no device {device}"), help)
    })?;
    let places = Places::new(plan.prefixes.clone());
    let is_own = |address: &Ipv4Addr| places.node_of(address.to_bits()) == Some(plan.id);
    let of_site = addresses(device).unwrap_or_default().into_iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(address).filter(is_own),
        IpAddr::V6(_) => None,
    });
    let address = of_site.ok_or_else(|| {
        let help =
            format!("hosts there are asked for their groups with it: `ip address add` gives {device} one");
        Failure::bad_input(format!("{device} has no address of the prefixes of {:?}", plan.name), help)
    })?;
    let sockets = Multicast::open(index).map_err(|error| {
        let help = "run it as root; --user NAME makes it another user's once the device is open";
        Failure::bad_input(format!("cannot take datagrams to groups at {device}: {error}"), help)
    })?;
    Ok(Network { sockets, address })
}
