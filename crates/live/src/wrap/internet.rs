//! A way from the far end to the networks that this host reaches by its default route, for a program of root (IPv4). A veth pair joins the
//! far end to this host, and each of both masquerades what leaves it.
//!
//! All of it goes with the process, however that ends: the pair with the far end's namespace, the table of nf_tables with its socket.
//! Forwarding alone would stay on at the devices of the default route. It is recorded in a journal, one for each network namespace,
//! before it is switched on; the last user switches it off, or after a kill the next command ([`restore_forwarding`]).

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use weir_engine::EngineError;
use weir_linux::device::index_of_name;
use weir_linux::namespace::{Namespace, numbers_in_use, own_number, set_sysctl};
use weir_linux::netlink::{End, Mac, Netlink};
use weir_linux::nft::{self, Only, Table};
use weir_linux::process::began;
use weir_shaper::Journals;

/// The folder of journals. A restart of the machine clears it, as it does the kernel's state.
const FOLDER: &str = "/run/weir/internet";
/// What the names of the pairs' devices at this host begin with; the process id follows.
const DEVICES: &str = "weir";
/// The device of the far end that leads to this host.
const FAR_DEVICE: &str = "internet";
/// Size of the pair's packets in bytes.
const MTU: u32 = 1500;
/// The flags of a route that is there, and of one that refuses (linux/route.h, `RTF_UP` and `RTF_REJECT`).
const UP: u32 = 1;
const REJECT: u32 = 0x200;

/// The hardware addresses of the pair: at this host, and at the far end.
const NEAR_MAC: Mac = [0x02, 0x77, 2, 0, 0, 1];
const FAR_MAC: Mac = [0x02, 0x77, 2, 0, 0, 2];

/// The addresses of a pair, at this host and at the far end. The range is for devices under test, and is not routed on the Internet (RFC
/// 2544, appendix C.2.2).
fn addresses(number: u8) -> (IpAddr, IpAddr) {
    (Ipv4Addr::new(198, 18, number, 1).into(), Ipv4Addr::new(198, 18, number, 2).into())
}

/// Refuses what this host or this user cannot do.
///
/// # Errors
/// The user is not root, this host has no default route, or the kernel cannot masquerade.
pub fn check_internet() -> Result<(), EngineError> {
    if !geteuid().is_root() {
        return Err(only_root());
    }
    if uplinks(&routes()).is_empty() {
        return Err(EngineError::Unable {
            what: "--internet needs a default route (IPv4), and this host has none".into(),
            help: "`ip route` shows the routes; without --internet the program reaches the far end alone"
                .into(),
        });
    }
    nft::try_masquerade().map_err(|error| EngineError::Unable {
        what: format!("--internet needs masquerading by nf_tables: {error}"),
        help: "use Linux 5.12 or later with CONFIG_NF_TABLES and CONFIG_NFT_MASQ (`modprobe nft_masq`)"
            .into(),
    })
}

fn only_root() -> EngineError {
    EngineError::Unable {
        what: "--internet changes the routes and the forwarding of this host, which only root may do".into(),
        help: "run it as root; without --internet the program reaches the far end alone".into(),
    }
}

/// What to know about name resolution behind the network, in a sentence; `None` if a resolver of `/etc/resolv.conf` can be reached from there.
pub fn resolver_note() -> Option<String> {
    note_on(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

/// The same of a file's text (resolv.conf(5)).
fn note_on(text: &str) -> Option<String> {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next().map(str::to_owned))?
    };
    let named: Vec<String> = text.lines().filter_map(of).collect();
    let is_beyond = |name: &String| name.parse().is_ok_and(|address: Ipv4Addr| !address.is_loopback());
    if named.iter().any(is_beyond) {
        return None;
    }
    let has = match &named[..] {
        [] => "/etc/resolv.conf names no resolver".to_owned(),
        named => format!("the program cannot reach the resolver of /etc/resolv.conf ({})", named.join(", ")),
    };
    Some(format!("{has}, so that it finds no addresses of names; docs/wrap.md says what to do"))
}

/// A route of this host.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    device: String,
    to: Ipv4Addr,
    length: u32,
}

/// The routes of the table `main` in the calling thread's network namespace (proc_net(5)).
fn routes() -> Vec<Route> {
    routes_of(&fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default())
}

fn routes_of(text: &str) -> Vec<Route> {
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let there = number(3)? & (UP | REJECT) == UP;
        // Addresses are in network order, printed as a number of this machine.
        let (to, length) = (Ipv4Addr::from(number(1)?.to_ne_bytes()), number(7)?.count_ones());
        there.then(|| Route { device: fields[0].to_owned(), to, length })
    };
    text.lines().filter_map(of).collect()
}

/// The devices of the default route. Two routes to half of all addresses each are one, too: programs for VPNs write it so.
fn uplinks(routes: &[Route]) -> Vec<String> {
    let mut devices: Vec<String> = routes
        .iter()
        .filter(|route| route.length <= 1 && route.device != "lo")
        .map(|route| route.device.clone())
        .collect();
    devices.sort();
    devices.dedup();
    devices
}

/// The highest number of a pair whose addresses nobody uses. A route to more than 256 addresses leaves room for the pair's own.
fn free_number(routes: &[Route], users: &[User]) -> Option<u8> {
    let is_taken = |number: u8| {
        let in_range = |route: &Route| route.length >= 24 && route.to.octets()[..3] == [198, 18, number];
        users.iter().any(|user| user.number == number) || routes.iter().any(in_range)
    };
    (0..=u8::MAX).rev().find(|number| !is_taken(*number))
}

/// Forwarding at a device (Documentation/networking/ip-sysctl.rst). The name of a device may contain dots.
fn forwarding(device: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{device}/forwarding")
}

fn is_forwarding(device: &str) -> bool {
    fs::read_to_string(forwarding(device)).is_ok_and(|value| value.trim() != "0")
}

fn set_forwarding(device: &str, on: bool) -> io::Result<()> {
    fs::write(forwarding(device), if on { "1" } else { "0" })
        .map_err(|error| io::Error::new(error.kind(), format!("cannot set {}: {error}", forwarding(device))))
}

/// A process that has a way out.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct User {
    process: u32,
    began: u64,
    /// The third byte of its pair's addresses.
    number: u8,
}

/// A device at which forwarding was off, and was switched on.
#[derive(Debug, Serialize, Deserialize)]
struct Changed {
    device: String,
    index: u32,
}

/// Who uses the forwarding of a network namespace, and what was changed for it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    users: Vec<User>,
    changed: Vec<Changed>,
}

/// The journal of this network namespace. No other process changes it while this value lives.
#[derive(Debug)]
struct Ledger {
    journals: Journals,
    name: String,
    journal: Journal,
}

impl Ledger {
    /// Waits for other commands. Journals of namespaces that are gone, and users that have ended, are struck out.
    fn lock() -> io::Result<Ledger> {
        let journals = Journals::lock(Path::new(FOLDER)).map_err(io::Error::other)?;
        let own = own_number()?;
        let mut names = journals.names().map_err(io::Error::other)?;
        names.retain(|name| *name != own.to_string());
        // Who cannot see all processes leaves the journals of others.
        if let Some(alive) = (!names.is_empty()).then(numbers_in_use).flatten() {
            names.retain(|name| name.parse().map_or(true, |number| !alive.contains(&number)));
            names.iter().try_for_each(|name| journals.remove(name)).map_err(io::Error::other)?;
        }
        let name = own.to_string();
        let mut journal: Journal = journals.read(&name).map_err(io::Error::other)?.unwrap_or_default();
        journal.users.retain(|user| began(user.process) == Some(user.began));
        Ok(Ledger { journals, name, journal })
    }

    /// Switches forwarding off again if nobody uses it any more.
    fn settle(&mut self) -> io::Result<()> {
        if !self.journal.users.is_empty() {
            return Ok(());
        }
        for Changed { device, index } in &self.journal.changed {
            // A device that is gone has nothing to restore, and another may have got its name.
            if index_of_name(device) == Some(*index) && is_forwarding(device) {
                set_forwarding(device, false)?;
            }
        }
        self.journal = Journal::default();
        self.journals.remove(&self.name).map_err(io::Error::other)
    }

    fn write(&self) -> io::Result<()> {
        self.journals.write(&self.name, &self.journal).map_err(io::Error::other)
    }

    /// Makes this process a user, with forwarding at these devices.
    fn enter(&mut self, number: u8, devices: &[String]) -> io::Result<()> {
        let process = std::process::id();
        let began = began(process).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        self.journal.users.push(User { process, began, number });
        for device in devices.iter().filter(|device| !is_forwarding(device)) {
            let index = index_of_name(device).ok_or_else(io::Error::last_os_error)?;
            self.journal.changed.retain(|it| it.device != *device);
            self.journal.changed.push(Changed { device: device.clone(), index });
        }
        self.write()?;
        devices
            .iter()
            .filter(|device| !is_forwarding(device))
            .try_for_each(|device| set_forwarding(device, true))
    }
}

/// Switches forwarding off again, in the calling thread's network namespace, where a command that was killed has left it on. Costs nothing
/// where no command has a way out.
///
/// # Errors
/// The journal is damaged, or forwarding cannot be set.
pub fn restore_forwarding() -> io::Result<()> {
    // Other users cannot look into the folder, and have nothing to restore.
    if !Path::new(FOLDER).exists() {
        return Ok(());
    }
    Ledger::lock()?.settle()
}

/// A way out. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct WayOut {
    /// The device of the pair at this host.
    device: String,
    /// Whether this process is in the journal.
    is_user: bool,
    /// The tables of this host and of the far end.
    _tables: Vec<Table>,
}

impl WayOut {
    /// Gives the far end a way to the networks of the calling thread's namespace. `inside` are the addresses behind the far end.
    ///
    /// # Errors
    /// What the kernel refused, and what [`check_internet`] refuses.
    pub(super) fn open(far: &Namespace, inside: IpAddr) -> Result<WayOut, EngineError> {
        let way =
            WayOut { device: format!("{DEVICES}{}", std::process::id()), is_user: false, _tables: vec![] };
        way.build(far, inside).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => only_root(),
            _ => EngineError::Unable {
                what: format!("--internet cannot be set up: {error}"),
                help: "`weir doctor` shows what this machine supports".into(),
            },
        })
    }

    fn build(mut self, far: &Namespace, inside: IpAddr) -> io::Result<WayOut> {
        let mut ledger = Ledger::lock()?;
        ledger.settle()?;
        let routes = routes();
        let full = || io::Error::other("all networks of 198.18.0.0/16 are in use");
        let number = free_number(&routes, &ledger.journal.users).ok_or_else(full)?;
        let (near_address, far_address) = addresses(number);
        let mut netlink = Netlink::open()?;
        let near = End { name: &self.device, mac: NEAR_MAC, namespace: None };
        netlink.add_veth(
            &near,
            &End { name: FAR_DEVICE, mac: FAR_MAC, namespace: Some(far.as_fd()) },
            MTU,
        )?;
        // The pair is there, so that no other process takes its addresses.
        set_up(&self.device, near_address, far_address, FAR_MAC, false)?;
        self.is_user = true;
        ledger.enter(number, &uplinks(&routes))?;
        let opened: Vec<String> = ledger.journal.changed.iter().map(|it| it.device.clone()).collect();
        drop(ledger);
        // What arrives where this host forwards nothing otherwise goes to wrapped programs alone.
        let only = Only { from: &opened, to: DEVICES };
        self._tables.push(Table::masquerade(&self.device, &far_address.into(), None, Some(&only))?);
        set_forwarding(&self.device, true)?;
        let table = far.inside(|| {
            set_up(FAR_DEVICE, far_address, near_address, NEAR_MAC, true)?;
            Ok(Table::masquerade("weir", &inside.into(), Some(FAR_DEVICE), None)?)
        });
        self._tables.push(table?);
        Ok(self)
    }
}

/// Gives a device of the pair its address and the way to the other end, which is the default route if `leaves`.
fn set_up(device: &str, own: IpAddr, other: IpAddr, mac: Mac, leaves: bool) -> io::Result<()> {
    // The pair has no IPv6. A kernel without it has nothing to switch off.
    let _ = set_sysctl(&format!("ipv6.conf.{device}.disable_ipv6"), "1");
    let index = index_of_name(device).ok_or_else(io::Error::last_os_error)?;
    let mut netlink = Netlink::open()?;
    netlink.set_up(index)?;
    netlink.add_address(index, own)?;
    netlink.add_neighbour(index, other, mac)?;
    netlink.add_prefix_route(index, &other.into(), None)?;
    if leaves { netlink.add_route(index, None, other) } else { Ok(()) }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // The kernel removes the device with the far end if it cannot be removed now.
        if let (Some(index), Ok(mut netlink)) = (index_of_name(&self.device), Netlink::open()) {
            let _ = netlink.remove_device(index);
        }
        if self.is_user {
            // The next command tries again what fails now: this process has ended then.
            let left = Ledger::lock().and_then(|mut ledger| {
                ledger.journal.users.retain(|user| user.process != std::process::id());
                if ledger.journal.users.is_empty() { ledger.settle() } else { ledger.write() }
            });
            drop(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun.1\t00000080\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
lab0\t00FF12C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
lab0\t000012C6\t00000000\t0001\t0\t0\t0\t0000FEFF\t0\t0\t0
*\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn devices_of_the_default_route_and_free_addresses_are_found_in_the_kernels_table() {
        let routes = routes_of(ROUTES);
        assert_eq!(uplinks(&routes), ["eth0", "tun.1"]);
        // 198.18.255.0/24 has a route; that to 198.18.0.0/15 leaves room.
        assert_eq!(free_number(&routes, &[]), Some(254));
        let user = User { process: 1, began: 1, number: 254 };
        assert_eq!(free_number(&routes, &[user]), Some(253));
        let all: Vec<User> = (0..=u8::MAX).map(|number| User { process: 1, began: 1, number }).collect();
        assert_eq!(free_number(&routes, &all), None);
        assert_eq!((uplinks(&routes_of("")), uplinks(&routes_of("eth0 x"))), (vec![], vec![]));
    }

    #[test]
    fn a_resolver_on_loopback_is_told_of() {
        let told = |text: &str| note_on(text).unwrap_or_default();
        assert_eq!(told("# mine\nnameserver 192.0.2.53\n"), "");
        assert_eq!(told("nameserver 127.0.0.53\nnameserver 192.0.2.53 # second\n"), "");
        assert!(told("search a\nnameserver 127.0.0.53\noptions edns0\n").contains("(127.0.0.53)"));
        assert!(told("nameserver ::1\nnameserver 2001:db8::53\n").contains("(::1, 2001:db8::53)"));
        assert!(told("").starts_with("/etc/resolv.conf names no resolver"));
    }
}
