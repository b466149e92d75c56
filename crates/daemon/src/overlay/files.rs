//! Files over the overlay: `weir overlay send` and `weir overlay receive`. Both are programs of a site as all others: they use the kernel's TCP, which
//! the nodes carry between their proxies, and its multicast. So they run on any host of a site, as any user. The nodes see to it that an address of
//! another site is of that site, and seal what is sent; there are no further keys. Only a deadline or a priority is asked of the host's own node.
//!
//! One receiver has one connection, with the frames that SLIQ carries too. A group has datagrams to all, and a connection for each receiver, by
//! which it says what it lacks ([`weir_circuit::group`]).

mod args;
mod connection;
mod ends;
mod from_group;
mod group;
mod members;
mod receive;
mod send;
mod server;
mod service;
mod session;
mod to_group;
mod to_host;

pub(super) use args::{ReceiveArgs, SendArgs};
