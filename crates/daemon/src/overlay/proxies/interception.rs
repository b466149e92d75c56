//! How TCP connections of this site's programs to other sites come to the node: nf_tables hands their packets to a transparent listener
//! (Documentation/networking/tproxy.rst). The table goes with the process, and the route with the device.

use super::super::config::Plan;
use crate::failure::Failure;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use weir_base::Prefix;
use weir_linux::nft::{Refused, Table, Transparent};
use weir_linux::policy::{self, Delivery};
use weir_linux::transparent;

/// Beginning of the marks of packets, and of the number of the routes' table: "we" in ASCII. The device's index follows.
const MARK: u32 = 0x7765_0000;
/// The bit that tells packets of the node's own sockets.
const OWN: u32 = 0x8000;
/// What to do where the kernel cannot do it.
const HELP: &str = "tcp = \"carry\" in the files of all nodes carries TCP as all else; `weir doctor` says what this kernel has";

/// The interception of connections, while it lives.
#[derive(Debug)]
pub(in crate::overlay) struct Interception {
    listener: TcpListener,
    address: SocketAddr,
    /// The mark of the node's own sockets.
    pub(super) own_mark: u32,
    _table: Table,
    _delivery: Delivery,
}

impl Interception {
    /// Intercepts the connections to other sites' prefixes. `device` is the index of the node's device, which is up.
    ///
    /// # Errors
    /// The kernel has no transparent proxies, or the process may not use them.
    pub(in crate::overlay) fn open(plan: &Plan, device: u32) -> Result<Interception, Failure> {
        let mark = MARK | device & (OWN - 1);
        let own_mark = mark | OWN;
        let failed = |error: io::Error| Failure::bad_input(format!("cannot proxy TCP: {error}"), HELP);
        // A killed node leaves a rule that has no effect.
        policy::remove_left_rules().map_err(failed)?;
        // On loopback: nobody else can connect but by what is steered here.
        let listener =
            transparent::listener(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), own_mark).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let prefixes = |own: bool| -> Vec<Prefix> {
            let of = plan.prefixes.iter().filter(|(_, node)| (*node == plan.id) == own);
            of.map(|(prefix, _)| *prefix).collect()
        };
        let delivery = Delivery::new(Ipv4Addr::UNSPECIFIED.into(), mark, mark, device).map_err(failed)?;
        let proxy = Transparent {
            to: &prefixes(false),
            not_to: &prefixes(true),
            at: address,
            mark,
            own_mark,
            except: None,
        };
        let refused = |refused: Refused| Failure::bad_input(format!("cannot proxy TCP: {refused}"), HELP);
        let table = Table::transparent(&format!("weir-{}", plan.device), &proxy).map_err(refused)?;
        Ok(Interception { listener, address, own_mark, _table: table, _delivery: delivery })
    }

    /// The socket that accepts connections.
    pub(super) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Its own address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}
