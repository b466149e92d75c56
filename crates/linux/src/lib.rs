//! What the other crates need of Linux, as small types over system calls. Hosts: [`namespace`]s, [`netlink`], [`device`]s and their
//! offloads ([`ethtool`]), the [`order`] of packets, tables of nf_tables ([`nft`]), routes by marks ([`policy`]). Packets: sockets for
//! frames ([`port`], [`ring`], and [`shut`], which keeps them from the kernel's own stack), for datagrams ([`udp`]) and for those of groups
//! ([`multicast`]), connections with addresses of other hosts ([`transparent`]), devices whose other end is the process ([`tun`], and
//! [`pair`] where there is no TUN). Processes: the [`clock`] and scheduling, [`signals`], [`privileges`], those that end with the one that
//! started them ([`process`]), what they ask each other ([`question`]), folders that one of them uses at a time ([`lock`]), and folders that
//! end with the processes that use them ([`memory`]).

mod auxdata;
pub mod clock;
pub mod device;
pub mod ethtool;
pub mod lock;
pub mod memory;
pub mod multicast;
pub mod namespace;
pub mod netlink;
pub mod nft;
mod offload;
pub mod option;
pub mod order;
pub mod pair;
pub mod policy;
pub mod port;
pub mod privileges;
pub mod process;
pub mod question;
pub mod ring;
pub mod shut;
pub mod signals;
pub mod tcp_info;
pub mod transparent;
pub mod tun;
pub mod udp;

pub use clock::{Scheduling, claim_processor};
pub use namespace::{Privilege, enter, may_make_namespaces};
