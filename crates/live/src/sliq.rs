//! SLIQ over UDP sockets. The protocol is `weir_transport::sliq`, which knows no socket and no clock; here are both, for one socket and
//! the connections that it carries, in one thread.

mod driver;
mod port;

pub use driver::{Application, Now, drive};
pub use port::{Buffers, Port};
