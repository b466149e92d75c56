//! A socket as an application sees it. The simulator's sockets are endpoints of its own transports, the live engine's are the
//! kernel's; the application is the same.

use crate::Writes;
use weir_base::{Bytes, Time};

/// One of a flow's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// At the host that the flow's data leaves.
    Sender,
    /// At the host that it goes to.
    Receiver,
}

/// What a socket refuses to do, or fails at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What was to be done, after "cannot": "connect".
    pub what: &'static str,
    /// Why it was not.
    pub why: String,
}

impl Trouble {
    /// A socket cannot do this at all.
    pub fn unsupported(what: &'static str) -> Trouble {
        Trouble { what, why: "its transport does not know how".into() }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.why)
    }
}

/// What a read has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Bytes read.
    pub bytes: u64,
    /// Whether the peer has closed and everything that it sent was read.
    pub ended: bool,
}

/// A socket. No call waits; each carries the time at which the application makes it.
pub trait Socket {
    /// Begins to open the connection.
    ///
    /// # Errors
    /// The socket's.
    fn open(&mut self, now: Time) -> Result<(), Trouble>;

    /// Whether the connection is established.
    ///
    /// # Errors
    /// Why it will never be.
    fn is_open(&mut self) -> Result<bool, Trouble>;

    /// Writes up to `bytes` bytes to a stream: what is left of `head`, then zeros. Answers how many there was room for.
    ///
    /// # Errors
    /// The socket's.
    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble>;

    /// From now on the application always has data. Answers whether the socket keeps itself full; otherwise the application
    /// writes whenever there is room.
    ///
    /// # Errors
    /// The socket's.
    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble>;

    /// Sends a datagram whose IP packet is `length` bytes long, and whose payload begins with `head`. The application was to send it at
    /// `due`.
    ///
    /// # Errors
    /// The socket's; a datagram that the host has no room for is lost there, and no error.
    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble>;

    /// Reads what has arrived. Of datagrams, each is handed to `datagram`: its first bytes, and the length of its payload.
    ///
    /// # Errors
    /// The socket's.
    fn read(&mut self, datagram: &mut dyn FnMut(&[u8], u64)) -> Result<Received, Trouble>;

    /// The application writes no more: what it has written goes out, then the end of the stream.
    fn close(&mut self, now: Time);
}

/// The sockets that an application works with: one pair of ends for each of its flows.
pub trait Sockets {
    /// What a socket is.
    type Socket<'a>: Socket
    where
        Self: 'a;

    /// The socket at this end of the application's flow of this number, from 0. `None` where there is none: a server has none
    /// before a client has reached it, and the network itself may stand in for an end.
    fn at(&mut self, flow: usize, end: End) -> Option<Self::Socket<'_>>;
}

impl<S: Socket> Socket for &mut S {
    fn open(&mut self, now: Time) -> Result<(), Trouble> {
        (**self).open(now)
    }
    fn is_open(&mut self) -> Result<bool, Trouble> {
        (**self).is_open()
    }
    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble> {
        (**self).write(bytes, head, now)
    }
    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble> {
        (**self).keep_full(writes)
    }
    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble> {
        (**self).send(length, head, due)
    }
    #[inline]
    fn read(&mut self, datagram: &mut dyn FnMut(&[u8], u64)) -> Result<Received, Trouble> {
        (**self).read(datagram)
    }
    fn close(&mut self, now: Time) {
        (**self).close(now);
    }
}
