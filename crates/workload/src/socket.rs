//! A socket as an application sees it. The simulator's sockets are endpoints of weir's own transports; most of the live engine's are
//! the kernel's. The application is the same.

use crate::Writes;
use weir_base::{Bytes, Rate, Time};

/// One of a flow's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The end at the host that sends the flow's data.
    Sender,
    /// The end at the host that receives it.
    Receiver,
}

/// An operation that a socket refuses, or that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The operation, as it follows "cannot": "connect".
    pub what: &'static str,
    /// The reason.
    pub why: String,
}

impl Trouble {
    /// An operation that the socket's transport does not support.
    pub fn unsupported(what: &'static str) -> Trouble {
        Trouble { what, why: "its transport does not support this".into() }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.why)
    }
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Bytes read.
    pub bytes: u64,
    /// Whether the peer has closed and all of its data has been read.
    pub ended: bool,
    /// When it was read.
    pub at: Time,
}

/// A socket. No call blocks; `now` is the time of the call.
pub trait Socket {
    /// Begins to open the connection.
    ///
    /// # Errors
    /// An error of the socket.
    fn open(&mut self, now: Time) -> Result<(), Trouble>;

    /// Whether the connection is established.
    ///
    /// # Errors
    /// The connection has failed.
    fn is_open(&mut self) -> Result<bool, Trouble>;

    /// Writes up to `bytes` bytes to a stream: `head` first, then zeros. Returns the number of bytes for which there was room.
    ///
    /// # Errors
    /// An error of the socket.
    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble>;

    /// The application always has data from now on. Returns whether the socket keeps its buffer full by itself; if not, the
    /// application writes whenever there is room.
    ///
    /// # Errors
    /// An error of the socket.
    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble>;

    /// Sends a datagram whose IP packet has `length` bytes, and whose payload begins with `head`. `due` is the time at which the
    /// application intended to send it.
    ///
    /// # Errors
    /// An error of the socket. A datagram for which the host has no room is lost; that is no error.
    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble>;

    /// Reads all that has arrived. For each datagram it calls `datagram` with the first bytes and the length of the payload, and the time
    /// at which it was read: a socket of the kernel reads later than the call, if other programs are busy.
    ///
    /// # Errors
    /// An error of the socket.
    fn read(&mut self, now: Time, datagram: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble>;

    /// Ends the application's writing: the data written so far is sent, then the end of the stream.
    fn close(&mut self, now: Time);

    /// Bytes that the socket has accepted and that wait to leave for the first time. A socket whose datagrams leave at once has none.
    ///
    /// # Errors
    /// An error of the socket.
    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        Ok(Bytes::ZERO)
    }

    /// The rate of IP packets at which the transport sends or is told to send, as by an aggregation point; `None` if it tells none. It may
    /// send a packet that asks for it.
    fn sending_rate(&mut self, now: Time) -> Option<Rate> {
        let _ = now;
        None
    }
}

/// The sockets of an application: a pair of ends for each of its flows.
pub trait Sockets {
    /// The type of a socket.
    type Socket<'a>: Socket
    where
        Self: 'a;

    /// The socket at this end of a flow, numbered from 0. `None` if there is no socket: a server has none before a client has
    /// connected, and the network itself may replace an end.
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
    fn read(&mut self, now: Time, datagram: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        (**self).read(now, datagram)
    }
    fn close(&mut self, now: Time) {
        (**self).close(now);
    }
    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        (**self).unsent()
    }
    fn sending_rate(&mut self, now: Time) -> Option<Rate> {
        (**self).sending_rate(now)
    }
}
