//! Link state: who the neighbours are, what all nodes say of their links and groups, and the ways that follow.
//!
//! Source: digest A 2.3, A 6.1, A 6.2, A 6.8. Three parts: [`adjacency`] (discovery and outages), [`database`] (flooding, ageing, boot
//! epochs) and [`routes`] (hops and delays). The study never forgets a dead node's links; here a link counts only while both ends name
//! it, so it goes when a neighbour's next announcement comes, and what is not repeated is forgotten after 5 s.

pub mod adjacency;
pub mod database;
pub mod routes;

pub use adjacency::{Adjacency, Change};
pub use database::{Accepted, Database};
pub use routes::{Neighbour, Routes};

#[cfg(test)]
mod tests;
