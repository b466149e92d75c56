//! What the node of this host is asked for a transfer: a service for its flow alone, which is gone when the transfer ends.

use super::super::ask::the_node;
use super::super::control::{Question, ask};
use super::args::SendArgs;
use crate::failure::Failure;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use weir_base::{Bytes, Ports, Prefix, Rate};
use weir_overlay::site::Service;
use weir_overlay::utility::{self, file, log};

/// Stands for no cap: more than any link carries.
const UNLIMITED: Rate = Rate::from_mbit_per_sec(100_000);
/// What frames, headers and repetitions add to the bytes of files at most, before the node takes the flow for a new transfer: one part in so many.
const MORE: u64 = 16;

/// A service at the node. Dropped, it is removed.
pub(super) struct AtNode {
    node: String,
    service: String,
}

impl AtNode {
    /// Asks for what the arguments say, for files of so many bytes. `None` if they ask for nothing.
    ///
    /// # Errors
    /// No node runs here, it answers only another user, or it refuses.
    pub(super) fn ask(args: &SendArgs, to: SocketAddr, bytes: u64) -> Result<Option<AtNode>, Failure> {
        let admit = match (args.deadline, args.priority) {
            (None, None) => return Ok(None),
            (Some(within), priority) => utility::Config::File(file::Config {
                priority: priority.unwrap_or(1.0),
                within,
                cap: UNLIMITED,
            }),
            (None, Some(priority)) => {
                utility::Config::Log(log::Config { priority, cap: UNLIMITED, ..log::Config::default() })
            }
        };
        let node = the_node(args.node.as_ref()).map_err(|failure| {
            let help = "--deadline and --priority are asked of the node of this host; leave them out, or send from the node's host";
            if args.node.is_none() { Failure { help: Some(help.to_owned()), ..failure } } else { failure }
        })?;
        let name = format!("files to {to}");
        let service = Service {
            name: name.clone(),
            from: Some(prefix(source(to)?)?),
            to: Some(prefix(to.ip())?),
            ports: to.port().to_string().parse::<Ports>().ok(),
            admit: Some(admit),
            size: args.deadline.map(|_| Bytes::new(bytes + bytes / MORE + (1 << 20))),
            ..Service::default()
        };
        // A sender that was killed has left its own.
        let _ = ask(&node, &Question::Remove(name.clone()));
        ask(&node, &Question::Add(Box::new(service)))?;
        Ok(Some(AtNode { node, service: name }))
    }
}

impl Drop for AtNode {
    fn drop(&mut self) {
        // The node may have ended.
        let _ = ask(&self.node, &Question::Remove(std::mem::take(&mut self.service)));
    }
}

/// The address from which this host sends there.
fn source(to: SocketAddr) -> Result<IpAddr, Failure> {
    let found = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    let help = "`weir overlay status` shows the nodes of this host, and `ip route get` the way there";
    found
        .map(|at| at.ip())
        .map_err(|error| Failure::bad_input(format!("the overlay does not reach {to}: {error}"), help))
}

/// The prefix of one address.
fn prefix(address: IpAddr) -> Result<Prefix, Failure> {
    let parsed = address.to_string().parse::<Prefix>();
    parsed.map_err(|error| Failure::failed(error.to_string()))
}
