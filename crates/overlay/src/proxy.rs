//! Proxies: what stands between unchanged applications and the overlay.

pub mod tcp;
pub mod udp;
