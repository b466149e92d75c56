//! Proxies: what stands between unchanged applications and the overlay.

pub mod udp;
