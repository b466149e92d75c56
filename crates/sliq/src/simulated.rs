//! One end of a connection that carries messages between two nodes of an overlay, for a driver that is no application. Its packets are
//! simulated: a head of real bytes and a count of zeros, as long as plain or sealed ones.
//!
//! Source: the GNAT software's path controller. It tells what its driver must know of the path: the free room, capacity, delay and loss.

use super::connection::Connection;
pub use super::departure::Left;
use super::hop::Path;
use super::{Parameters, StreamParameters};
use weir_base::{Bytes, Ecn, Random, Time};
use weir_coord::participation::Identity;
use weir_endpoint::{Datagram, Endpoint, Message, Setup, Stream};

/// Length of an IPv4 header in bytes.
const IP_HEADER: u32 = 20;

/// How an end is made.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// Parameters of the connection and of its first stream.
    pub parameters: &'a Parameters,
    /// Parameters of its further streams. All carry messages.
    pub streams: &'a [StreamParameters],
    /// The congestion controllers: one, or two in the order of preference.
    pub controllers: &'a [weir_control::Config],
    /// Largest IP packet of the path.
    pub mtu: Bytes,
    /// The run's seed.
    pub seed: u64,
    /// A number that both ends share and no other connection has.
    pub number: u64,
    /// Whether this end opens the connection.
    pub opens: bool,
}

/// One end of a connection.
pub struct Simulated {
    connection: Connection,
    opens: bool,
}

impl Simulated {
    /// An end that is not open yet.
    pub fn new(of: &Ends<'_>) -> Simulated {
        let setup = Setup {
            settings: None,
            datagrams: true,
            admitted: false,
            ecn: Ecn::NotEct,
            mtu: of.mtu,
            ip_header: IP_HEADER,
            seed: of.seed,
            flow: of.number,
        };
        let name = if of.opens { "sliq node that opens" } else { "sliq node that waits" };
        let random = Random::stream_of(of.seed, name, of.number);
        let (id, identity) = (super::number(&setup), Identity::in_lab(of.number));
        let mut connection = Connection::new(of.parameters, of.controllers, &setup, id, &identity, random);
        for stream in of.streams {
            connection.add_stream(stream, true);
        }
        Simulated { connection, opens: of.opens }
    }

    /// Begins the connection, if this end is the one that opens it.
    pub fn open(&mut self, now: Time) {
        if self.opens {
            self.connection.open(now);
        }
    }

    /// Whether messages can be sent: it is open, and the peer is heard.
    pub fn is_up(&self) -> bool {
        self.connection.is_heard()
    }

    /// Whether it is over and another one must take its place.
    pub fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// Hands over a message of so many bytes, which begins with `head`; zeros follow. Returns whether the stream has taken it.
    pub fn write(&mut self, stream: u8, head: &[u8], bytes: u64, now: Time) -> bool {
        self.connection.write(Stream(stream.into()), Message { bytes, head }, now) > 0
    }

    /// A packet has arrived.
    pub fn receive(&mut self, head: &[u8], zeros: u32, ecn: Ecn, now: Time) {
        self.connection.take_simulated(head, zeros, ecn, now);
    }

    /// Hands over the messages that have arrived: stream, length, and first bytes.
    pub fn read(&mut self, mut to: impl FnMut(u8, u64, &[u8])) {
        self.connection.read(&mut |Stream(stream), read| to(stream as u8, read.bytes, read.head));
    }

    /// Writes the next packet that leaves now, and says what it carries; `None` if there is none.
    pub fn transmit(&mut self, into: &mut Datagram, now: Time) -> Option<Left> {
        self.connection.simulated_packet_of(None, into, now)?;
        Some(self.connection.left())
    }

    /// When [`Simulated::on_timer`] is due.
    pub fn next_timer(&self) -> Time {
        self.connection.next_timer()
    }

    /// The time has come.
    pub fn on_timer(&mut self, now: Time) {
        self.connection.on_timer(now);
    }

    /// Bytes of all streams that wait for their first transmission.
    pub fn waiting(&self) -> Bytes {
        Bytes::new(self.connection.waiting())
    }

    /// Controllers that fill buffers send nothing for a minute, if there is another one: messages that are sensitive to delay are on
    /// their way.
    pub fn give_way(&mut self, now: Time) {
        self.connection.give_way(now);
    }

    /// The path. Its delay is that of the first of these streams of which it is known, else half of the round trip.
    pub fn path(&self, streams: &[u8], now: Time) -> Path {
        self.connection.path(streams, now)
    }
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulated").field("opens", &self.opens).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
