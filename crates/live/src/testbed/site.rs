//! The namespace of a node of the overlay. It has a device to the hosts behind it, `eth0`, by which all goes that has no other way, and one
//! for each link to another node, with an address of its own. It forwards what hosts send to the device that its daemon makes, and what goes
//! beside the overlay to the next node.

use super::{HostSettings, add_pair, index_of, mtu_of, set_up_tcp};
use crate::address::{GATEWAY_MAC, address_of, gateway};
use crate::overlay;
use std::io;
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_linux::netlink::Netlink;
use weir_linux::order::keep_order;
use weir_plan::{Ip, Run};

/// A node of the overlay.
#[derive(Debug)]
pub(crate) struct Site {
    /// Its network namespace.
    pub namespace: Namespace,
    /// The fabric's ends of its devices, each with the index of its node.
    pub devices: Vec<(u32, usize)>,
}

/// Makes the namespace of a node, and its devices. Called inside the fabric's namespace.
pub(super) fn add(run: &Run, site: &overlay::Site) -> io::Result<Site> {
    let namespace = Namespace::new()?;
    let _ = keep_order(site.at);
    namespace.inside(|| {
        let _ = keep_order(site.at);
        set_up_tcp(HostSettings { versions: &[Ip::V4], ..HostSettings::default() })?;
        set_sysctl("ipv4.ip_forward", "1")
    })?;
    let mut devices = vec![(add_pair(&namespace, "eth0", site.at, mtu_of(run, site.at)?)?, site.at)];
    let gateway = gateway(Ip::V4);
    let address = |node: usize| address_of(node, Ip::V4);
    namespace.inside(|| {
        let (mut netlink, device) = (Netlink::open()?, index_of("eth0")?);
        netlink.add_address(device, address(site.at))?;
        netlink.add_neighbour(device, gateway, GATEWAY_MAC)?;
        netlink.add_route(device, None, gateway)
    })?;
    for (number, end) in (1..).zip(&site.ends) {
        let name = format!("eth{number}");
        devices.push((add_pair(&namespace, &name, end.node, mtu_of(run, end.node)?)?, end.node));
        namespace.inside(|| {
            let (mut netlink, device) = (Netlink::open()?, index_of(&name)?);
            netlink.add_address(device, address(end.node))?;
            netlink.add_neighbour(device, gateway, GATEWAY_MAC)?;
            netlink.add_route(device, Some(address(end.other)), gateway)?;
            let mut leaving = site.leaving_by(number - 1);
            leaving.try_for_each(|host| netlink.add_route(device, Some(address(host)), gateway))
        })?;
    }
    Ok(Site { namespace, devices })
}
