//! What a network can carry at most: the rate that any forwarding, coded or not, can deliver to all receivers of a session by a
//! deadline. Path flows with a bound on delay are solved by column generation, and every answer has a certificate that [`verify`]
//! checks by other means. The model is that of a linear program over paths: links have a fixed rate and delay, lose nothing and
//! have no queues. It differs from the usual program in that no path is enumerated.
//!
//! Nothing here reads a clock, the environment or the network.
//!
//! `capacity.rs` is the file to open first.
//!
//! ```
//! use weir_optimum::{Mode, Problem, Session, read_csv};
//! let network = read_csv("from,to,rate,delay\na,b,10 Mbit/s,5 ms\na,c,4 Mbit/s,1 ms\nc,b,3 Mbit/s,1 ms\n").unwrap();
//! let session = Session::new("one", network.node("a").unwrap(), vec![network.node("b").unwrap()]);
//! let problem = Problem::new(&network, &[session], Mode::Coded).unwrap();
//! let answer = problem.capacity("5 ms".parse().unwrap(), &mut |_| true);
//! assert!((answer.bounds.lower - 13e6).abs() < 20.0);
//! ```
#![forbid(unsafe_code)]

mod answer;
mod capacity;
mod coded;
mod corridor;
mod csv;
mod cut;
mod fewer;
mod generate;
mod master;
mod network;
mod packing;
mod pool;
mod prices;
mod staircase;
mod stop;
mod trees;
mod unicast;
mod utility;
mod verify;

pub use answer::{Answer, Bounds, Carried, Cut, Delivery, Piece, Prices};
pub use capacity::{LONGEST_DEADLINE, MOST_NODES_FOR_TREES, MOST_RECEIVERS, Mode, Problem, Refusal};
pub use csv::{CsvError, read_csv, write_csv};
pub use generate::{Values, grid, random};
pub use network::{Link, MOST_LINKS, Network, NetworkError, Node, Session};
pub use stop::Stop;
pub use utility::{
    Allocation, Blocked, Class, ClassError, Forwarding, Log, MOST_CLASSES, MOST_FLOWS, Share, Utility, Why,
    utility_optimum,
};
pub use verify::{Verified, Violation, verify};
