//! Real Linux: hosts are network namespaces with the kernel's own TCP, and the network between them is the `fabric` crate,
//! pumped in real time from packet sockets.

pub mod address;
mod answer;
mod apps;
mod budget;
mod card;
mod checks;
mod clock;
mod command;
mod controls;
mod datagram;
pub mod doctor;
mod engine;
mod ethtool;
mod frame;
mod headers;
mod inject;
mod kernel_socket;
mod lateness;
mod load;
pub mod namespace;
mod netlink;
mod output;
mod packet;
mod ping;
mod pump;
mod relay;
mod ring;
mod sockets;
mod tally;
mod tcp_info;
mod testbed;

pub use engine::Live;
pub use namespace::{Privilege, enter, may_make_namespaces};
#[doc(hidden)]
pub use packet::examine_frame;
pub use ping::ping;
pub use tally::{FlowSums, LinkSums, Tally};
pub use tcp_info::{Losses, losses};
