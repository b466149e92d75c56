//! The overlay of a run on this host. A daemon (`weir overlay node`) runs for each node, in a network namespace of its own; its links to
//! other nodes and to the hosts behind it are those of the fabric ([`dissolved`]). The daemons have their files in memory ([`file`]), end
//! with this process ([`daemons`]), and are asked for their records ([`records`]). What their links carry is sealed, so the time of a
//! datagram across the overlay is that between the two hosts' ends ([`crossings`]). Hosts send to groups and join them ([`multicast`]).

mod checks;
mod crossings;
mod daemons;
mod dissolved;
mod file;
mod joined;
mod multicast;
mod records;
mod up;

pub(crate) use checks::{check, remarks};
pub(crate) use crossings::Crossings;
pub(crate) use daemons::Daemons;
pub use daemons::PREFIX;
pub(crate) use dissolved::{Dissolved, Site, dissolved};
pub(crate) use joined::join;
pub(crate) use multicast::{Ways, group_of};
pub(crate) use records::Watched;
pub use up::{Entrance, Links, up};
