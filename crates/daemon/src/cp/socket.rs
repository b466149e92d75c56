//! A UDP socket whose datagrams carry the header of the Coordination Protocol (CP-UDP). Through it an application writes cells of its
//! aggregation point's table, reads the cells that it watches, and learns when they change.

use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use weir_base::Span;
use weir_coord::cell::Cell;
use weir_coord::endpoint::{Endpoint, Identity};
use weir_coord::header::{Flags, Prefix, Version};
use weir_linux::clock::timespec_of;

/// The largest UDP payload (RFC 768).
const LARGEST: usize = 65_507;
/// Most changes that are kept for an application that does not read them.
const KEPT: usize = 1024;

/// A socket of one flow.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    endpoint: Endpoint,
    peer: Option<SocketAddr>,
    packet: Vec<u8>,
    changes: VecDeque<(Cell, u32)>,
    refused: u64,
}

impl Socket {
    /// A socket at this address for the flow that `identity` names; it watches these cells. Without a key, its headers begin in
    /// `version` and continue in the peer's. It sends to `peer`; if that is `None`, to the source of the flow's first datagram.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn bind(
        at: SocketAddr,
        peer: Option<SocketAddr>,
        identity: Identity,
        version: Version,
        watched: &[Cell],
    ) -> io::Result<Socket> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(Socket {
            socket,
            endpoint: Endpoint::new(identity, version, watched),
            peer,
            packet: vec![0; LARGEST],
            changes: VecDeque::new(),
            refused: 0,
        })
    }

    /// Its own address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The address that it sends to; `None` before it is known.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Sets the flow's own cell at a general-purpose address (0 to 249) to a value of 24 bits. The next datagram carries it, and the
    /// aggregation point keeps it as long as the flow lives.
    pub fn write(&mut self, address: u8, value: u32) {
        self.endpoint.write(address, value);
    }

    /// The last reported value of a watched cell; `None` before the first report.
    pub fn value(&self, cell: Cell) -> Option<u32> {
        self.endpoint.value(cell)
    }

    /// Watched cells that have changed since the last call, with their values, in order of change: the last 1,024 at most.
    pub fn changes(&mut self) -> impl Iterator<Item = (Cell, u32)> {
        self.changes.drain(..)
    }

    /// Number of datagrams that were refused: from another address, of another flow, without a header, or forged.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// The kernel's error; [`ErrorKind::NotConnected`] without a peer; [`ErrorKind::InvalidInput`] for a payload that is too long.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.send_flagged(Flags::default(), payload)
    }

    /// Sends a datagram that the aggregation point returns: it carries written cells there, and reports back. For flows that
    /// receive no other datagrams.
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn ask(&mut self) -> io::Result<()> {
        self.send_flagged(Flags::REFLECT, &[])
    }

    fn send_flagged(&mut self, flags: Flags, payload: &[u8]) -> io::Result<()> {
        let peer = self.peer.ok_or(ErrorKind::NotConnected)?;
        let header = self.endpoint.header_length();
        let packet = self.packet.get_mut(..header + payload.len()).ok_or(ErrorKind::InvalidInput)?;
        packet[header..].copy_from_slice(payload);
        packet[..header].fill(0);
        self.endpoint.seal(flags, packet);
        loop {
            match self.socket.send_to(&self.packet[..header + payload.len()], peer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT, None)?,
                // The error is an earlier datagram's: nobody listens there, or nobody does yet.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
                result => return result.map(drop),
            }
        }
    }

    /// Waits for a datagram of the flow, and returns its payload; `None` if none arrives `within` that time, if one is given.
    /// Reports in headers are taken on the way; answers to [`Socket::ask`] carry reports only and are not returned.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&mut self, within: Option<Duration>) -> io::Result<Option<&[u8]>> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            if let Some((from, to)) = self.take()? {
                return Ok(Some(&self.packet[from..to]));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.wait(PollFlags::IN, left)?;
        }
    }

    /// Takes datagrams up to the first of the flow. Returns where in `packet` its payload begins and ends; `None` if none is there.
    fn take(&mut self) -> io::Result<Option<(usize, usize)>> {
        loop {
            let (length, from) = match self.socket.recv_from(&mut self.packet) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            if self.peer.is_some_and(|peer| peer != from) {
                self.refused += 1;
                continue;
            }
            let packet = &self.packet[..length];
            let changes = &mut self.changes;
            let opened = self.endpoint.open(packet, |cell, value| {
                if changes.len() == KEPT {
                    changes.pop_front();
                }
                changes.push_back((cell, value));
            });
            match opened {
                Ok(header) => {
                    if Prefix::read(packet).is_ok_and(|prefix| prefix.flags.has(Flags::REFLECT)) {
                        continue;
                    }
                    self.peer = Some(from);
                    return Ok(Some((header, length)));
                }
                Err(_) => self.refused += 1,
            }
        }
    }

    fn wait(&self, wanted: PollFlags, within: Option<Duration>) -> io::Result<()> {
        let timeout = within.map(|within| timespec_of(Span::from_nanos(within.as_nanos() as u64)));
        match poll(&mut [PollFd::new(&self.socket, wanted)], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
