//! A testbed without a fabric: devices of nodes and hosts are joined by veth pairs, as fast as the kernel carries packets from one to the
//! other. Addresses and names of devices are those of a testbed with a fabric, but a node has a device for each host behind it.

use super::{Host, HostSettings, Site, Testbed, index_of, mtu_of, set_up_tcp};
use crate::address::{address_of, fabric_mac_of, gateway, mac_of};
use crate::overlay;
use std::io;
use std::os::fd::AsFd;
use weir_linux::namespace::{Namespace, set_sysctl};
use weir_linux::netlink::{End, Mac, Netlink};
use weir_plan::{Ip, Run};

impl Testbed {
    /// Makes the namespaces of a run whose links all join two nodes of the overlay, or a node and a host behind it.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn direct(run: &Run, sites: &[overlay::Site]) -> io::Result<Testbed> {
        let settings = HostSettings { versions: &[Ip::V4], ..HostSettings::default() };
        let made = |forwards: bool| {
            let namespace = Namespace::new()?;
            namespace.inside(|| {
                set_up_tcp(settings)?;
                Netlink::open()?.set_up(index_of("lo")?)?;
                if forwards { set_sysctl("ipv4.ip_forward", "1") } else { Ok(()) }
            })?;
            io::Result::Ok(namespace)
        };
        let namespaces = sites.iter().map(|_| made(true)).collect::<io::Result<Vec<_>>>()?;
        let mut hosts = vec![];
        for (number, site) in sites.iter().enumerate() {
            for (here, end) in site.ends.iter().enumerate().filter(|(_, end)| end.site > number) {
                let there = sites[end.site].ends.iter().position(|other| other.node == end.other);
                let there = there.ok_or_else(|| io::Error::other("a link has one end"))?;
                let near = Port {
                    namespace: &namespaces[number],
                    name: &format!("eth{}", here + 1),
                    mac: mac_of(end.node),
                };
                let far = Port {
                    namespace: &namespaces[end.site],
                    name: &format!("eth{}", there + 1),
                    mac: mac_of(end.other),
                };
                join(&near, &far, mtu_of(run, end.node)?)?;
                near.leads_to(end.node, end.other, far.mac, site.leaving_by(here))?;
                far.leads_to(end.other, end.node, near.mac, sites[end.site].leaving_by(there))?;
            }
            for node in site.behind() {
                let namespace = made(false)?;
                let near = Port {
                    namespace: &namespaces[number],
                    name: &format!("h{node}"),
                    mac: fabric_mac_of(node),
                };
                let far = Port { namespace: &namespace, name: "eth0", mac: mac_of(node) };
                join(&near, &far, mtu_of(run, node)?)?;
                near.reaches_host(node, far.mac)?;
                far.is_host(node, near.mac)?;
                hosts.push(Host { node, device: None, namespace });
            }
        }
        let sites = namespaces.into_iter().map(|namespace| Site { namespace, devices: vec![] }).collect();
        Ok(Testbed { hosts, sites, fabric: None })
    }
}

/// A device that is an end of a pair.
struct Port<'a> {
    namespace: &'a Namespace,
    name: &'a str,
    mac: Mac,
}

impl Port<'_> {
    /// Does something with the device, in its namespace.
    fn set(&self, work: impl FnOnce(&mut Netlink, u32) -> io::Result<()> + Send) -> io::Result<()> {
        self.namespace.inside(|| {
            let (mut netlink, device) = (Netlink::open()?, index_of(self.name)?);
            netlink.set_up(device)?;
            work(&mut netlink, device)
        })
    }

    /// The device gets the address of one end, and leads to the other end and, by that, to these hosts.
    fn leads_to(
        &self,
        own: usize,
        other: usize,
        mac: Mac,
        mut hosts: impl Iterator<Item = usize> + Send,
    ) -> io::Result<()> {
        let address = |node: usize| address_of(node, Ip::V4);
        self.set(|netlink, device| {
            netlink.add_address(device, address(own))?;
            netlink.add_neighbour(device, address(other), mac)?;
            netlink.add_prefix_route(device, &address(other).into(), None)?;
            hosts.try_for_each(|host| netlink.add_route(device, Some(address(host)), address(other)))
        })
    }

    /// The device of a node leads to a host.
    fn reaches_host(&self, host: usize, mac: Mac) -> io::Result<()> {
        self.set(|netlink, device| {
            netlink.add_neighbour(device, address_of(host, Ip::V4), mac)?;
            netlink.add_prefix_route(device, &address_of(host, Ip::V4).into(), None)
        })
    }

    /// The device of a host leads to all others, by its node.
    fn is_host(&self, host: usize, mac: Mac) -> io::Result<()> {
        self.set(|netlink, device| {
            netlink.add_address(device, address_of(host, Ip::V4))?;
            netlink.add_neighbour(device, gateway(Ip::V4), mac)?;
            netlink.add_route(device, None, gateway(Ip::V4))
        })
    }
}

/// Makes a pair of devices.
fn join(near: &Port<'_>, far: &Port<'_>, mtu: u32) -> io::Result<()> {
    let there = End { name: far.name, mac: far.mac, namespace: Some(far.namespace.as_fd()) };
    let here = End { name: near.name, mac: near.mac, namespace: None };
    near.namespace.inside(|| Netlink::open()?.add_veth(&here, &there, mtu))
}
