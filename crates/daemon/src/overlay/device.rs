//! The device by which the programs of a site use the overlay, with routes to the prefixes of the other nodes: a TUN device, or a pair of
//! devices with a packet socket where there is no TUN.

use super::config::Plan;
use crate::failure::Failure;
use crate::frame::log;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::time::{Duration, Instant};
use weir_linux::netlink::Netlink;
use weir_linux::pair::Pair;
use weir_linux::tun::Tun;

/// The longest that the kernel takes to remove the pair of a node that has just ended.
const REMOVAL: Duration = Duration::from_secs(2);
/// How often to look whether it is gone.
const LOOK: Duration = Duration::from_millis(20);

/// A device that is gone, with its address and routes, when it is closed.
#[derive(Debug)]
pub(super) enum Device {
    Tun(Tun),
    Pair(Pair),
}

impl Device {
    /// Makes the device of a node, with its address and its routes.
    ///
    /// # Errors
    /// The process may not make devices, or the name, the address or a route is taken.
    pub(super) fn open(plan: &Plan) -> Result<Device, Failure> {
        let name = &plan.device;
        let mtu = u32::try_from(plan.device_mtu.get()).unwrap_or(u32::MAX);
        let device = Device::make(name, mtu).map_err(|error| {
            let help = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run it as root; --user NAME makes it another user's once the device is open"
                }
                io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => {
                    "another device has this name: `device` in the file names another"
                }
                _ => "`modprobe tun` or `modprobe veth` loads what the kernel needs for it",
            };
            Failure::bad_input(format!("cannot make the device {name}: {error}"), help)
        })?;
        let failed =
            |what: String| move |error: io::Error| Failure::failed(format!("cannot {what}: {error}"));
        let index = device.index();
        let mut netlink = Netlink::open().map_err(failed("ask the kernel for routes".to_owned()))?;
        netlink.set_mtu(index, mtu).map_err(failed(format!("set the MTU of {name}")))?;
        if let Some(address) = plan.address {
            netlink
                .add_address(index, address)
                .map_err(failed(format!("give {name} the address {address}")))?;
        }
        netlink.set_up(index).map_err(failed(format!("bring {name} up")))?;
        if !plan.groups.prefixes.is_empty() {
            netlink.set_multicast(index).map_err(failed(format!("allow groups on {name}")))?;
        }
        let others = plan.prefixes.iter().filter(|(_, node)| *node != plan.id).map(|(prefix, _)| prefix);
        for prefix in others.chain(&plan.groups.prefixes) {
            netlink.add_prefix_route(index, prefix, plan.address).map_err(|error| {
                let message = format!("cannot add a route to {prefix} by {name}: {error}");
                let help = format!("`ip route show {prefix}` shows the route that is there already");
                Failure::bad_input(message, help)
            })?;
        }
        Ok(device)
    }

    /// A TUN device. Where the kernel has none, or the process may open none, a pair; its error counts where that cannot be made either.
    fn make(name: &str, mtu: u32) -> io::Result<Device> {
        let why = match Tun::open(name) {
            Ok(tun) => return Ok(Device::Tun(tun)),
            Err(error) => match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::ResourceBusy => return Err(error),
                _ => error,
            },
        };
        let begun = Instant::now();
        let pair = loop {
            match Pair::open(name, mtu) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && begun.elapsed() < REMOVAL => {
                    std::thread::sleep(LOOK);
                }
                made => break made?,
            }
        };
        log::info(&format!("no TUN device can be made ({why}): {name} is a pair of veth devices"));
        Ok(Device::Pair(pair))
    }

    /// Its index.
    pub(super) fn index(&self) -> u32 {
        match self {
            Device::Tun(tun) => tun.index(),
            Device::Pair(pair) => pair.index(),
        }
    }

    /// Takes the next packet of a program, and returns the packet's length; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's. The device was removed, for example.
    pub(super) fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Device::Tun(tun) => tun.receive(into),
            Device::Pair(pair) => pair.receive(into),
        }
    }

    /// Whether it takes several datagrams in a packet.
    pub(super) fn takes_bundles(&self) -> bool {
        matches!(self, Device::Tun(tun) if tun.takes_bundles())
    }

    /// Hands UDP datagrams to the programs in a packet, as [`Tun::send_bundle`] takes them; where that is not possible they are lost.
    pub(super) fn send_bundle(&self, bundle: &[u8], segment: u16) {
        if let Device::Tun(tun) = self {
            tun.send_bundle(bundle, segment);
        }
    }

    /// Hands a packet to the programs. The kernel may refuse it, as a network may lose it.
    pub(super) fn send(&self, packet: &[u8]) {
        match self {
            Device::Tun(tun) => tun.send(packet),
            Device::Pair(pair) => pair.send(packet),
        };
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Device::Tun(tun) => tun.as_fd(),
            Device::Pair(pair) => pair.as_fd(),
        }
    }
}
