//! Adaptive error control: the protection of a stream with a deadline, computed from the state of the channel (the GNAT report, section
//! 3.3). Packets are sent in groups, each in one or more rounds. With acknowledgements between the rounds and only source packets it is
//! pure ARQ; with repair packets in several rounds, coded ARQ; with repair packets in one round, FEC.

pub mod code;
pub(crate) mod group;
mod odds;
mod optimum;
mod plan;

pub use odds::{Have, MOST_IN_ROUND};
pub use plan::{Channel, Choice, Goal, Mode, Plan, Planner, WORST_PER, choose};
