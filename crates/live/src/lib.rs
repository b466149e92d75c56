//! Real Linux: hosts are network namespaces with the kernel's own TCP, and the network between them is the `fabric` crate,
//! pumped in real time from packet sockets.
//!
//! In goes a run; out come the same records as the simulator's, with the lateness of each packet. `engine.rs` is the file to open first.

pub mod address;
mod answer;
mod apps;
mod budget;
mod card;
mod checks;
mod command;
pub mod control;
mod controls;
mod counts;
mod datagram;
pub mod doctor;
mod endpoint_socket;
mod engine;
mod frame;
mod headers;
mod in_use;
mod inject;
mod kernel_socket;
mod lateness;
mod load;
mod output;
mod outside;
mod overlay;
mod packet;
mod ping;
mod pump;
mod relay;
mod sockets;
mod tally;
mod tcp_info;
mod testbed;
mod wrap;

pub use answer::answer;
pub use datagram::datagram;
pub use engine::Live;
pub use headers::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
pub use overlay::{Entrance, Links as OverlayLinks, PREFIX as OVERLAY_PREFIX, up};
#[doc(hidden)]
pub use packet::examine_frame;
pub use ping::ping;
pub use tally::{FlowSums, LinkSums, Tally};
pub use wrap::{
    Beyond, Keeper, Program, Replay, Wrapped, check_internet, check_prefixes, far_end, resolver_note,
    restore_forwarding, wrap,
};
