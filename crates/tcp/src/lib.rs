//! TCP as in Linux 6.18, as a pure state machine: [`Connection`] takes segments and times and returns segments and the time of
//! the next timer. Data is not carried, only its length. Segments themselves are in `weir_endpoint`.
//!
//! `connection.rs` is the file to open first; each other one holds one concept.
#![forbid(unsafe_code)]

mod accecn;
mod ack;
mod batch;
mod buffer;
mod chrono;
mod config;
mod connection;
mod delack;
mod end;
mod jiffies;
mod limits;
mod no_sack;
mod pacer;
mod rack;
mod rate;
mod reassembly;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod sender;
mod space;
mod sub_mss;
mod timers;
mod transmit;
mod undo;
mod window;
mod written;

pub use config::Config;
pub use connection::{Connection, Info};
pub use end::{HEADER, Parameters, ends};
