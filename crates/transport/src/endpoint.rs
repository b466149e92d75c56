//! One end of a connection of any transport, as its driver sees it: packets, writes and times go in; packets, reads and the next
//! time come out. The simulator drives endpoints at its hosts; live, user-space transports are driven over UDP sockets, and
//! kernel TCP and UDP are sockets instead.

use crate::Body;
use std::borrow::Cow;
use weir_base::{Bytes, Ecn, Rate, Span, Time};

/// A stream of a connection. A transport without streams has but one, number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Stream(pub u32);

/// What an application hands to an endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    /// Length in bytes, `head` included.
    pub bytes: u64,
    /// The bytes that it begins with; zeros follow. A transport whose payload nobody reads ignores them.
    pub head: &'a [u8],
}

/// What an application gets from an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Length in bytes, `head` included.
    pub bytes: u64,
    /// The bytes that it begins with, where the transport carries them.
    pub head: &'a [u8],
    /// By when it was to be delivered, where it has a deadline and the transport knows: by this end's clock.
    pub due: Option<Time>,
}

/// Which part of an endpoint a state variable belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The congestion controller of this number, from 0.
    Controller(u32),
    /// The stream of this number.
    Stream(u32),
}

impl Part {
    /// What records call a state variable of this part. A connection has two controllers at most, which have variables of the same names.
    pub fn name_of(self, variable: &'static str) -> Cow<'static, str> {
        match self {
            Part::Controller(0) | Part::Stream(_) => Cow::Borrowed(variable),
            Part::Controller(_) => Cow::Owned(format!("second_{variable}")),
        }
    }
}

/// The state of a connection's sending side (compare `struct tcp_info`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow-start threshold in packets; `None` before the first reduction.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Smallest RTT.
    pub min_rtt: Option<Span>,
    /// Retransmission timeout, with its backoff.
    pub rto: Span,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets retransmitted so far.
    pub retransmitted: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Pacing rate, whether enforced or not.
    pub pacing_rate: Option<Rate>,
    /// Newest delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Bytes acknowledged so far.
    pub acknowledged: Bytes,
}

/// Events of a connection's sending side so far, each a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Recoveries entered without a timeout.
    pub recoveries: u64,
    /// Reductions that were undone.
    pub undos: u64,
}

/// One end of a connection. Calls carry the time; it never goes back.
pub trait Endpoint: Send {
    /// The end of another flow whose stream is to be one of this connection; `None` where it cannot be. The driver has such ends send
    /// until none of them has anything to send, since a call to one may let another go on.
    fn join(&mut self, config: &crate::Config, setup: &crate::Setup<'_>) -> Option<Box<dyn Endpoint>> {
        let _ = (config, setup);
        None
    }
    /// Opens the connection. An endpoint that is never opened waits for its peer to do it.
    fn open(&mut self, now: Time);
    /// A packet has arrived, with its codepoint.
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time);
    /// Writes the next packet that leaves now into `into` and answers its codepoint. The driver calls it until it answers `None`,
    /// after every other call that may have changed something. `into` may hold an older packet's body.
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn>;
    /// When [`Endpoint::on_timer`] is due; [`Time::NEVER`] when it is not.
    fn next_timer(&self) -> Time;
    /// A deadline has come. May be called early.
    fn on_timer(&mut self, now: Time);
    /// Whether [`Endpoint::transmit`] would answer `None` and change nothing. `false` is always a correct answer.
    fn is_quiet(&self) -> bool {
        false
    }

    /// The host's card takes no packet now. Answers whether data that would leave now stays unsent for it, as on Linux; otherwise
    /// the driver sends what there is, and the card drops it.
    fn refused(&mut self, now: Time) -> bool {
        let _ = now;
        false
    }
    /// How many bytes of its data may wait in the host's card before it sends no more (Linux's TCP small queues).
    fn small_queue(&self) -> u64 {
        u64::MAX
    }

    /// The driver sends no more for now, since [`Endpoint::small_queue`] is reached: the burst is over, and not for want of window.
    fn throttled(&mut self, now: Time) {
        let _ = now;
    }

    /// The application writes; answers how many bytes there was room for. A datagram is taken whole or not at all.
    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64;
    /// From now on the application always has data, so that the send buffer stays full: `greedy` tops it up at once, otherwise
    /// it is filled when a third of it is free. Answers whether the endpoint can do that by itself.
    fn keep_full(&mut self, stream: Stream, greedy: bool) -> bool {
        let _ = (stream, greedy);
        false
    }
    /// The application reads all that has arrived.
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>));
    /// The application writes no more to a stream; `None` closes the sending side whole.
    fn close(&mut self, stream: Option<Stream>, now: Time);

    /// Whether the connection is established.
    fn is_open(&self) -> bool;
    /// Whether the peer has closed and everything that it sent has arrived.
    fn finished(&self) -> bool;
    /// Whether all that was written, the end of the stream included, is acknowledged.
    fn all_acknowledged(&self) -> bool;
    /// The events of the sending side: cheap enough to be asked after every packet.
    fn counts(&self) -> Counts {
        Counts::default()
    }
    /// The state of the sending side; `None` before the connection is open, and for transports without congestion control.
    fn sample(&self) -> Option<Sample> {
        None
    }
    /// Reports the internal state of controllers and streams: part, name and value each. Names carry their unit.
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        let _ = report;
    }
}
