//! An endpoint of a transport that the kernel does not have, over a UDP socket: its application's socket. What it sends are whole
//! packets: zeros that the simulator counts are bytes here.

use crate::sliq::{Buffers, Port};
use rustix::event::epoll::EventFlags;
use std::io;
use std::net::SocketAddr;
use weir_base::{Bytes, Time};
use weir_transport::{Body, Counts, Datagram, Endpoint, Message, Stream};
use weir_workload::{Received, Socket, Trouble, Writes};

/// The one stream of a flow.
const STREAM: Stream = Stream(0);
/// Calls that receive before others get their turn.
const TURNS: usize = 4;

/// One end of a flow.
pub(crate) struct EndpointSocket {
    pub(crate) port: Port,
    peer: SocketAddr,
    pub(crate) end: weir_transport::End,
    /// Length in bytes of a datagram's IP and UDP headers.
    headers: u64,
    body: Body,
    /// What the epoll instance was asked to tell of it.
    pub(crate) watched: EventFlags,
    /// What was told so far as events.
    pub(crate) told: Counts,
    /// The time for which its timer is in the queue; [`Time::NEVER`] when it is not.
    pub(crate) armed: Time,
}

impl EndpointSocket {
    /// An endpoint that sends from a socket to its peer.
    pub(crate) fn new(
        port: Port,
        peer: SocketAddr,
        end: weir_transport::End,
        headers: u64,
    ) -> EndpointSocket {
        let body = Body::Datagram(Datagram::default());
        let watched = EventFlags::empty();
        EndpointSocket {
            port,
            peer,
            end,
            headers,
            body,
            watched,
            told: Counts::default(),
            armed: Time::NEVER,
        }
    }

    /// Takes what has arrived.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn receive(&mut self, buffers: &mut Buffers, now: Time) -> io::Result<()> {
        let EndpointSocket { port, peer, end, body, .. } = self;
        for _ in 0..TURNS {
            let more = port.receive(buffers, &mut |from, ecn, packet| {
                if from == *peer {
                    body.datagram_mut().set(packet, packet.len() as u32);
                    end.receive(body, ecn, now);
                }
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Sends what there is to send.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn flush(&mut self, now: Time) -> io::Result<()> {
        let EndpointSocket { port, peer, end, body, .. } = self;
        port.send(*peer, &mut |into| {
            let ecn = end.transmit(body, now)?;
            let datagram = body.datagram_mut();
            into.extend_from_slice(&datagram.head);
            into.resize(into.len() + datagram.zeros as usize, 0);
            Some(ecn)
        })?;
        Ok(())
    }
}

impl Socket for EndpointSocket {
    fn open(&mut self, now: Time) -> Result<(), Trouble> {
        self.end.open(now);
        Ok(())
    }

    fn is_open(&mut self) -> Result<bool, Trouble> {
        Ok(self.end.is_open())
    }

    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble> {
        Ok(self.end.write(STREAM, Message { bytes, head }, now))
    }

    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble> {
        Ok(self.end.keep_full(STREAM, writes == Writes::Greedy))
    }

    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble> {
        let bytes = length.get().saturating_sub(self.headers);
        self.end.write(STREAM, Message { bytes, head }, due);
        Ok(())
    }

    fn read(&mut self, datagram: &mut dyn FnMut(&[u8], u64)) -> Result<Received, Trouble> {
        let mut bytes = 0;
        self.end.read(&mut |_, read| {
            bytes += read.bytes;
            datagram(read.head, read.bytes);
        });
        Ok(Received { bytes, ended: self.end.finished() })
    }

    fn close(&mut self, now: Time) {
        self.end.close(None, now);
    }
}
