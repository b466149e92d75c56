//! The device by which the programs of a site use the overlay: a TUN device with routes to the prefixes of the other nodes.

use super::config::Plan;
use crate::failure::Failure;
use std::io;
use weir_linux::netlink::Netlink;
use weir_linux::tun::Tun;

/// Makes the device of a node, with its address and its routes. All of it is gone when the device is closed.
///
/// # Errors
/// The process may not make devices, or the name, the address or a route is taken.
pub(super) fn open(plan: &Plan) -> Result<Tun, Failure> {
    let name = &plan.device;
    let tun = Tun::open(name).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run it as root; --user NAME makes it another user's once the device is open"
            }
            io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => {
                "another device has this name: `device` in the file names another"
            }
            _ => "`modprobe tun` loads what the kernel needs for it",
        };
        Failure::bad_input(format!("cannot make the device {name}: {error}"), help)
    })?;
    let failed = |what: String| move |error: io::Error| Failure::failed(format!("cannot {what}: {error}"));
    let index = tun.index();
    let mut netlink = Netlink::open().map_err(failed("ask the kernel for routes".to_owned()))?;
    let mtu = u32::try_from(plan.device_mtu.get()).unwrap_or(u32::MAX);
    netlink.set_mtu(index, mtu).map_err(failed(format!("set the MTU of {name}")))?;
    if let Some(address) = plan.address {
        netlink.add_address(index, address).map_err(failed(format!("give {name} the address {address}")))?;
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
    Ok(tun)
}
