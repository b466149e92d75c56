//! Endpoints of the Coordination Protocol over the kernel's UDP sockets: datagrams with its header ([`Socket`]), through which an
//! application reads and writes cells of its aggregation point, and reliable streams at the rate that this point reports ([`Driver`]).

mod socket;
mod stream;

pub use socket::Socket;
pub use stream::{CpError, Driver, Ends, SILENCE, Summary};
