//! Real Linux: hosts are network namespaces with the kernel's own TCP, and the network between them is the `fabric` crate,
//! pumped in real time from packet sockets. Beside the engine, an aggregation point between two devices of a host (`ap`) and the
//! endpoints of its applications (`cp`).

pub mod address;
mod answer;
pub mod ap;
mod apps;
mod budget;
mod card;
mod checks;
mod clock;
mod command;
mod controls;
mod counts;
pub mod cp;
mod datagram;
mod device;
pub mod doctor;
mod endpoint_socket;
mod engine;
mod ethtool;
mod frame;
mod headers;
mod in_use;
mod inject;
mod kernel_socket;
mod lateness;
mod load;
pub mod namespace;
mod netlink;
mod option;
mod order;
mod output;
mod packet;
mod ping;
mod port;
pub mod privileges;
mod pump;
mod relay;
mod ring;
mod shut;
pub mod signals;
pub mod sliq;
mod sockets;
mod tally;
mod tcp_info;
mod testbed;
pub mod udp;

pub use clock::{Scheduling, claim_processor};
pub use engine::Live;
pub use namespace::{Privilege, enter, may_make_namespaces};
#[doc(hidden)]
pub use packet::examine_frame;
pub use ping::ping;
pub use tally::{FlowSums, LinkSums, Tally};
pub use tcp_info::{Losses, losses};
