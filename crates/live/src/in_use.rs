//! A socket while its application works with it: the kernel's, or an endpoint of our own.

use crate::kernel_socket::KernelInUse;
use weir_base::{Bytes, Rate, Time};
use weir_endpoint::Endpoint;
use weir_engine::EndSocket;
use weir_workload::{Received, Socket, Trouble, Writes};

/// One of a flow's two sockets.
pub(crate) enum InUse<'a> {
    /// The kernel's transport.
    Kernel(KernelInUse<'a>),
    /// An endpoint over UDP.
    Endpoint(&'a mut EndSocket),
}

macro_rules! each {
    ($socket:expr, $method:ident($($argument:expr),*)) => {
        match $socket {
            InUse::Kernel(socket) => socket.$method($($argument),*),
            InUse::Endpoint(socket) => socket.$method($($argument),*),
        }
    };
}

impl InUse<'_> {
    /// Whether the peer has closed and everything was read.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            InUse::Kernel(socket) => socket.socket.ended,
            InUse::Endpoint(socket) => socket.end.finished(),
        }
    }
}

impl Socket for InUse<'_> {
    fn open(&mut self, now: Time) -> Result<(), Trouble> {
        each!(self, open(now))
    }
    fn is_open(&mut self) -> Result<bool, Trouble> {
        each!(self, is_open())
    }
    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble> {
        each!(self, write(bytes, head, now))
    }
    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble> {
        each!(self, keep_full(writes))
    }
    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble> {
        each!(self, send(length, head, due))
    }
    fn read(&mut self, now: Time, datagram: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        each!(self, read(now, datagram))
    }
    fn close(&mut self, now: Time) {
        each!(self, close(now));
    }
    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        each!(self, unsent())
    }
    fn sending_rate(&mut self, now: Time) -> Option<Rate> {
        each!(self, sending_rate(now))
    }
}
