//! Endpoints of the Coordination Protocol over the kernel's UDP sockets: datagrams with its header ([`Socket`]), which also read and
//! write the cells of their aggregation point, and reliable streams at the rate that it reports ([`send`], [`receive`]).

mod socket;
mod stream;

pub use socket::Socket;
pub use stream::{CpError, Ends, SILENCE, Summary, receive, send};
