//! The namespaces of a run: one for each host, with a loopback and a veth end `eth0`, one for each node of an overlay ([`site`]), and one
//! for the fabric, which holds the other ends and the packet sockets. All of it lives in descriptors of this process and ends with it.

mod direct;
mod site;

use crate::address::{GATEWAY_MAC, address_of, fabric_mac_of, gateway, mac_of};
use crate::card;
use crate::overlay;
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index};
use serde_json::{Map, Value};
pub(crate) use site::Site;
use std::io;
use std::os::fd::AsFd;
use weir_base::Span;
use weir_endpoint::RTO_MIN;
use weir_linux::ethtool::switch_offloads_off;
use weir_linux::namespace::{Namespace, set_sysctl, sysctl};
use weir_linux::netlink::{End, Netlink};
use weir_linux::order::{ORDER, keep_order};
use weir_linux::ring::{ReceiveRing, Sender};
use weir_plan::{Buffer, Group, Ip, Run};

/// The sysctls whose effective values are recorded: those that decide TCP's behaviour and differ between systems.
const RECORDED: [&str; 21] = [
    ORDER,
    "ipv4.tcp_rmem",
    "ipv4.tcp_wmem",
    "ipv4.tcp_ecn",
    "ipv4.tcp_no_metrics_save",
    "ipv4.tcp_slow_start_after_idle",
    "ipv4.tcp_comp_sack_nr",
    "ipv4.tcp_comp_sack_delay_ns",
    "ipv4.tcp_timestamps",
    "ipv4.tcp_sack",
    "ipv4.tcp_dsack",
    "ipv4.tcp_recovery",
    "ipv4.tcp_frto",
    "ipv4.tcp_early_retrans",
    "ipv4.tcp_reordering",
    "ipv4.tcp_moderate_rcvbuf",
    "ipv4.tcp_window_scaling",
    "ipv4.tcp_adv_win_scale",
    "ipv4.tcp_rto_min_us",
    "ipv4.tcp_pacing_ss_ratio",
    "ipv4.tcp_pacing_ca_ratio",
];

/// Settings of every host in every run: no stray packets, and no memory of earlier connections.
const FIXED: [(&str, &str); 7] = [
    ("ipv4.conf.all.rp_filter", "0"),
    ("ipv4.conf.default.rp_filter", "0"),
    ("ipv4.tcp_no_metrics_save", "1"),
    ("ipv4.tcp_fastopen", "0"),
    ("ipv4.tcp_mtu_probing", "0"),
    // Rate limits of ICMP and of challenge ACKs would blur what is measured.
    ("ipv4.icmp_ratelimit", "0"),
    ("ipv4.tcp_invalid_ratelimit", "0"),
];

/// Settings of a host with IPv4: IPv6 is off.
const WITHOUT_V6: [(&str, &str); 2] =
    [("ipv6.conf.all.disable_ipv6", "1"), ("ipv6.conf.default.disable_ipv6", "1")];

/// Settings of a host with IPv6: it has no address beyond the configured one, and solicits no router or neighbour
/// (Documentation/networking/ip-sysctl.rst). Set before the host gets its device, which inherits the defaults.
const WITH_V6: [(&str, &str); 8] = [
    ("ipv6.conf.all.disable_ipv6", "0"),
    ("ipv6.conf.default.disable_ipv6", "0"),
    ("ipv6.conf.default.accept_dad", "0"),
    ("ipv6.conf.default.accept_ra", "0"),
    ("ipv6.conf.default.autoconf", "0"),
    ("ipv6.conf.default.router_solicitations", "0"),
    // No link-local address of its own: IN6_ADDR_GEN_MODE_NONE.
    ("ipv6.conf.default.addr_gen_mode", "1"),
    ("ipv6.icmp.ratelimit", "0"),
];

/// How a host's TCP is set up; `None` keeps the kernel's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostSettings {
    /// Its IP versions.
    pub versions: &'static [Ip],
    /// The node of the only host that it reaches through the network; `None` if it reaches all.
    pub reaches: Option<usize>,
    /// `tcp_wmem`.
    pub send: Option<Buffer>,
    /// `tcp_rmem`.
    pub receive: Option<Buffer>,
    /// Whether ECN is asked for and agreed to.
    pub ecn: Option<bool>,
    /// Whether windows are scaled.
    pub window_scaling: Option<bool>,
    /// Whether acknowledgements are selective.
    pub sack: Option<bool>,
    /// `tcp_rto_min_us`; `None` also for the kernel's usual value.
    pub rto_min: Option<Span>,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Index of its node.
    pub node: usize,
    /// Index of its device at the fabric's end; `None` without a fabric.
    pub device: Option<u32>,
    /// Its network namespace.
    pub namespace: Namespace,
}

/// All hosts of a run, and the fabric's sockets.
#[derive(Debug)]
pub(crate) struct Testbed {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The nodes of the overlay, by their numbers.
    pub sites: Vec<Site>,
    /// `None` if veth pairs join them ([`Testbed::direct`]).
    fabric: Option<Namespace>,
}

impl Testbed {
    /// Makes the namespaces of a run and everything in them.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn build(run: &Run, sites: &[overlay::Site]) -> io::Result<Testbed> {
        Testbed::build_with(run, sites, |node| Some(settings_of(&run.groups, node)))
    }

    /// The same with these settings of the host at each node. A node without settings gets no host of its own.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn build_with(
        run: &Run,
        sites: &[overlay::Site],
        settings: impl Fn(usize) -> Option<HostSettings> + Sync,
    ) -> io::Result<Testbed> {
        let fabric = Namespace::new()?;
        let (mut hosts, mut places) = (vec![], vec![]);
        let at_site = |node: &usize| sites.iter().any(|site| site.has(*node));
        fabric.inside(|| {
            // A kernel without IPv6 has nothing to switch off.
            WITHOUT_V6.iter().for_each(|(name, value)| drop(set_sysctl(name, value)));
            let all = run.network.nodes.iter().enumerate().filter(|(_, node)| node.host);
            for (node, _) in all.filter(|(node, _)| !at_site(node)) {
                let Some(settings) = settings(node) else { continue };
                hosts.push(add_host(node, settings, mtu_of(run, node)?)?);
                hosts
                    .last()
                    .map_or(Ok(()), |host: &Host| host.namespace.inside(|| card::set_up(run, node)))?;
            }
            for site in sites {
                places.push(site::add(run, site)?);
            }
            Ok(())
        })?;
        Ok(Testbed { hosts, sites: places, fabric: Some(fabric) })
    }

    /// All devices at the fabric's end, each with the index of its node.
    pub(crate) fn devices(&self) -> Vec<(u32, usize)> {
        let hosts = self.hosts.iter().filter_map(|host| Some((host.device?, host.node)));
        hosts.chain(self.sites.iter().flat_map(|site| site.devices.iter().copied())).collect()
    }

    /// Opens the fabric's sockets.
    ///
    /// # Errors
    /// The kernel's; there is no fabric.
    pub(crate) fn open_sockets(&self, mtu: usize) -> io::Result<(ReceiveRing, Sender)> {
        let fabric = self.fabric.as_ref().ok_or_else(|| io::Error::other("there is no fabric"))?;
        fabric.inside(|| Ok((ReceiveRing::open(mtu)?, Sender::open()?)))
    }

    /// The settings in effect on each of these hosts, by the name of its node.
    pub(crate) fn effective_settings(&self, run: &Run) -> Map<String, Value> {
        let mut all = Map::new();
        for host in &self.hosts {
            let read = host.namespace.inside(|| {
                Ok(RECORDED
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), sysctl(name)?.into())))
                    .collect())
            });
            if let Ok(settings) = read {
                all.insert(run.network.nodes[host.node].name.clone(), Value::Object(settings));
            }
        }
        all
    }
}

/// The settings that the groups with an end at a node ask of its host. If groups differ, the last one counts; `check` refuses
/// such a run.
pub(crate) fn settings_of(groups: &[Group], node: usize) -> HostSettings {
    let mut settings = HostSettings { versions: &[Ip::V4], ..HostSettings::default() };
    for group in groups.iter().filter(|group| group.is_at(node)) {
        settings.versions = match group.ip {
            Ip::V4 => &[Ip::V4],
            Ip::V6 => &[Ip::V6],
        };
        let Some(asked) = &group.settings else { continue };
        settings.ecn = Some(asked.ecn);
        settings.window_scaling = Some(asked.window_scaling);
        settings.sack = Some(asked.sack);
        settings.rto_min = Some(asked.rto_min).filter(|least| *least != RTO_MIN);
        settings.send = Some(asked.send_buffer);
        settings.receive = Some(asked.receive_buffer);
    }
    settings
}

/// Makes a host and its pair of devices. Called inside the fabric's namespace.
fn add_host(node: usize, settings: HostSettings, mtu: u32) -> io::Result<Host> {
    let namespace = Namespace::new()?;
    // Before the devices, which take it over. A kernel that cannot do it is told of by `weir doctor`.
    let _ = keep_order(node);
    namespace.inside(|| {
        let _ = keep_order(node);
        set_up_tcp(settings)
    })?;
    let device = add_pair(&namespace, "eth0", node, mtu)?;
    namespace.inside(|| {
        let mut netlink = Netlink::open()?;
        let eth0 = index_of("eth0")?;
        settings.versions.iter().try_for_each(|ip| {
            netlink.add_address(eth0, address_of(node, *ip))?;
            netlink.add_neighbour(eth0, gateway(*ip), GATEWAY_MAC)?;
            netlink.add_route(eth0, settings.reaches.map(|other| address_of(other, *ip)), gateway(*ip))
        })
    })?;
    Ok(Host { node, device: Some(device), namespace })
}

/// Makes the pair of devices between a node of the fabric and a namespace, where it is called `name`, without addresses. Returns the index
/// of the fabric's end. Called inside the fabric's namespace.
fn add_pair(namespace: &Namespace, name: &str, node: usize, mtu: u32) -> io::Result<u32> {
    let own = format!("h{node}");
    let near = End { name: &own, mac: fabric_mac_of(node), namespace: None };
    let far = End { name, mac: mac_of(node), namespace: Some(namespace.as_fd()) };
    let mut netlink = Netlink::open()?;
    netlink.add_veth(&near, &far, mtu)?;
    let device = index_of(&own)?;
    switch_offloads_off(&own)?;
    netlink.set_up(device)?;
    namespace.inside(|| {
        let mut netlink = Netlink::open()?;
        netlink.set_up(index_of("lo")?)?;
        let device = index_of(name)?;
        switch_offloads_off(name)?;
        netlink.set_gso_max_segs(device, 1)?;
        netlink.set_up(device)
    })?;
    Ok(device)
}

/// Sets the sysctls of the namespace that the calling thread is in.
fn set_up_tcp(settings: HostSettings) -> io::Result<()> {
    for (name, value) in FIXED {
        // Kernels differ in which of these they have and let a namespace set; what is in effect is recorded.
        let _ = set_sysctl(name, value);
    }
    if settings.versions.contains(&Ip::V6) {
        WITH_V6.iter().try_for_each(|(name, value)| set_sysctl(name, value))?;
    } else {
        // A kernel without IPv6 has nothing to switch off.
        WITHOUT_V6.iter().for_each(|(name, value)| drop(set_sysctl(name, value)));
    }
    for (name, switch) in [
        ("ipv4.tcp_ecn", settings.ecn),
        ("ipv4.tcp_window_scaling", settings.window_scaling),
        ("ipv4.tcp_sack", settings.sack),
    ] {
        if let Some(on) = switch {
            set_sysctl(name, if on { "1" } else { "0" })?;
        }
    }
    if let Some(least) = settings.rto_min {
        set_sysctl("ipv4.tcp_rto_min_us", &least.as_micros().to_string())?;
    }
    for (name, buffer) in [("ipv4.tcp_wmem", settings.send), ("ipv4.tcp_rmem", settings.receive)] {
        if let Some(buffer) = buffer {
            let numbers = [buffer.min, buffer.initial, buffer.max].map(|bytes| bytes.get().to_string());
            set_sysctl(name, &numbers.join(" "))?;
        }
    }
    Ok(())
}

/// The MTU of a node's devices.
fn mtu_of(run: &Run, node: usize) -> io::Result<u32> {
    u32::try_from(run.network.nodes[node].mtu.get()).map_err(io::Error::other)
}

/// The index of a device of the calling thread's namespace.
fn index_of(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(&socket, name)?)
}
