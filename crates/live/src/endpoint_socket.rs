//! An endpoint of a transport that the kernel does not have, over a UDP socket. It sends whole packets: payload that the
//! simulator only counts is sent here as zero bytes.

use rustix::event::epoll::EventFlags;
use std::io;
use std::net::SocketAddr;
use weir_base::Time;
use weir_endpoint::{Body, Counts, Datagram, Endpoint};
use weir_engine::EndSocket;
use weir_linux::clock::Clock;
use weir_linux::udp::{Buffers, UdpPort};
use weir_transport::End;

/// Receive calls before other sockets get their turn.
const TURNS: usize = 4;

/// One end of a flow.
pub(crate) struct EndpointSocket {
    pub(crate) port: UdpPort,
    peer: SocketAddr,
    pub(crate) socket: EndSocket,
    body: Body,
    /// The latest time passed to the endpoint when it sent.
    latest: Time,
    /// The events for which the epoll instance watches it.
    pub(crate) watched: EventFlags,
    /// The counts that are already recorded as events.
    pub(crate) told: Counts,
    /// The time for which its timer is in the queue; [`Time::NEVER`] when it is not.
    pub(crate) armed: Time,
}

impl EndpointSocket {
    /// An endpoint that sends from a socket to its peer.
    pub(crate) fn new(port: UdpPort, peer: SocketAddr, socket: EndSocket) -> EndpointSocket {
        let body = Body::Datagram(Datagram::default());
        let watched = EventFlags::empty();
        let (latest, told, armed) = (Time::ZERO, Counts::default(), Time::NEVER);
        EndpointSocket { port, peer, socket, body, latest, watched, told, armed }
    }

    /// The endpoint.
    pub(crate) fn endpoint(&mut self) -> &mut End {
        &mut self.socket.end
    }

    /// Hands the endpoint the packets that have arrived.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn receive(&mut self, buffers: &mut Buffers, clock: &Clock) -> io::Result<()> {
        let EndpointSocket { port, peer, socket, body, latest, .. } = self;
        for _ in 0..TURNS {
            let more = port.receive(buffers, clock, *latest, &mut |arrival, packet| {
                if arrival.from == *peer {
                    body.datagram_mut().set(packet, packet.len() as u32);
                    socket.end.receive(body, arrival.ecn, arrival.at);
                }
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Sends all packets that are ready. Returns whether there were any.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn flush(&mut self, clock: &Clock) -> io::Result<bool> {
        let EndpointSocket { port, peer, socket, body, latest, .. } = self;
        let mut sent = false;
        port.send(*peer, &mut |into| {
            // A packet leaves when those before it are with the kernel.
            *latest = clock.now();
            let ecn = socket.end.transmit(body, *latest)?;
            body.datagram_mut().append_to(into);
            sent = true;
            Some(ecn)
        })?;
        Ok(sent)
    }
}
