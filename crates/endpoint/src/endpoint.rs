//! The interface between one end of a connection and its driver, for all transports: packets, writes and times go in; packets,
//! reads and the time of the next timer come out. The simulator drives endpoints at its hosts; the live engine drives user-space
//! transports over UDP sockets, and uses kernel sockets for TCP and UDP.

use crate::Body;
use std::any::Any;
use std::borrow::Cow;
use weir_base::{Bytes, Ecn, Rate, Span, Time};

/// A stream of a connection. A transport without streams has only number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Stream(pub u32);

/// Data that an application writes to an endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    /// Length in bytes, `head` included.
    pub bytes: u64,
    /// The first bytes of the data; zeros follow. A transport that does not carry payload bytes ignores them.
    pub head: &'a [u8],
}

/// Data that an application reads from an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Length in bytes, `head` included.
    pub bytes: u64,
    /// The first bytes of the data, if the transport carries payload bytes.
    pub head: &'a [u8],
    /// Deadline of its delivery by this end's clock; `None` if it has none or the transport does not know it.
    pub due: Option<Time>,
}

/// The part of an endpoint to which a state variable belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The congestion controller of this number, from 0.
    Controller(u32),
    /// The stream of this number.
    Stream(u32),
}

impl Part {
    /// Name of a state variable of this part in records. A connection has at most two controllers, whose variables have the same names.
    #[inline]
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
    /// Smoothed RTT; `None` before the first sample.
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
    /// Packets retransmitted so far that had arrived, as the receiver reports; `None` if it does not report them.
    pub spurious: Option<u64>,
    /// Pacing rate, whether enforced or not.
    pub pacing_rate: Option<Rate>,
    /// Newest delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Bytes acknowledged so far.
    pub acknowledged: Bytes,
}

/// For how long a connection's sending side was limited by what so far (compare `tcpi_busy_time` and the fields after it in
/// `struct tcp_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Time in which it had data to send, or data in flight.
    pub busy: Span,
    /// The part of that in which the receiver's window held it back.
    pub receive_window: Span,
    /// The part of that in which the send buffer was too small.
    pub send_buffer: Span,
    /// Whether the newest delivery rate is that of an application with too little data (`tcpi_delivery_rate_app_limited`).
    pub app_limited: bool,
}

/// Numbers of events of a connection's sending side so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Recoveries entered without a timeout.
    pub recoveries: u64,
    /// Reductions that were undone.
    pub undos: u64,
}

/// One end of a connection. Calls carry the time, which never decreases.
pub trait Endpoint: Send {
    /// The end of another flow whose stream joins this connection; `None` if it cannot. `parameters` are those of that flow's transport.
    /// The driver calls [`Endpoint::transmit`] of all
    /// joined ends until none of them has a packet, since a call to one end may enable another one.
    fn join(&mut self, parameters: &dyn Any, setup: &crate::Setup<'_>) -> Option<Box<dyn Endpoint>> {
        let _ = (parameters, setup);
        None
    }
    /// Opens the connection. An endpoint that is never opened waits for its peer to do it.
    fn open(&mut self, now: Time);
    /// A packet has arrived, with its codepoint.
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time);
    /// Writes the next packet that leaves now into `into` and returns its codepoint. The driver calls it until it returns `None`,
    /// after every other call that may have changed the state. `into` may hold an older packet's body.
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn>;
    /// When [`Endpoint::on_timer`] is due; [`Time::NEVER`] without a timer.
    fn next_timer(&self) -> Time;
    /// A deadline has come. May be called early.
    fn on_timer(&mut self, now: Time);
    /// Whether [`Endpoint::transmit`] would return `None` and change nothing. `false` is always correct.
    fn is_quiet(&self) -> bool {
        false
    }

    /// The host's network card accepts no packet now. Returns whether the endpoint keeps its data unsent for this reason, as Linux
    /// does; otherwise the driver sends the data and the card drops it.
    fn refused(&mut self, now: Time) -> bool {
        let _ = now;
        false
    }
    /// Bytes of the endpoint's data in the host's network card from which on it sends no more (Linux's TCP small queues).
    fn small_queue(&self) -> u64 {
        u64::MAX
    }

    /// The driver sends no more for now, since [`Endpoint::small_queue`] is reached: the burst ends, but not by the window.
    fn throttled(&mut self, now: Time) {
        let _ = now;
    }

    /// The application writes. Returns the number of bytes that the endpoint accepts. A datagram is accepted whole or not at all.
    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64;
    /// From now on the application always has data, so that the send buffer stays full. With `greedy` it is refilled at once,
    /// otherwise when a third of it is free. Returns whether the endpoint can do that by itself.
    fn keep_full(&mut self, stream: Stream, greedy: bool) -> bool {
        let _ = (stream, greedy);
        false
    }
    /// The application reads all that has arrived.
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>));
    /// The application writes no more to a stream; `None` closes the whole sending side.
    fn close(&mut self, stream: Option<Stream>, now: Time);

    /// Whether the connection is established.
    fn is_open(&self) -> bool;
    /// Whether the peer has closed and all its data has arrived.
    fn finished(&self) -> bool;
    /// Whether all written data, the end of the stream included, is acknowledged.
    fn all_acknowledged(&self) -> bool;
    /// The events of the sending side so far. Cheap enough for a call after every packet.
    fn counts(&self) -> Counts {
        Counts::default()
    }
    /// Data packets of this end's own stream that were retransmitted so far. `None` for a transport that never retransmits data, and
    /// for TCP, whose headers tell it to the taps at the host edge.
    fn retransmitted(&self) -> Option<u64> {
        None
    }
    /// The state of the sending side; `None` before the connection is open, and for transports without congestion control.
    fn sample(&self) -> Option<Sample> {
        None
    }
    /// For how long the sending side was limited by what so far; `None` before the connection is open, and for transports that do not
    /// tell.
    fn limits(&self, now: Time) -> Option<Limits> {
        let _ = now;
        None
    }
    /// Bytes that were written and wait to leave for the first time. A transport whose writes leave at once has none.
    fn unsent(&self) -> Bytes {
        Bytes::ZERO
    }
    /// The rate of IP packets at which it sends, or is told to send, now; `None` if it does not tell one.
    fn sending_rate(&self, now: Time) -> Option<Rate> {
        let _ = now;
        None
    }
    /// Reports the internal state of controllers and streams as parts, names and values. Names end with their unit.
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        let _ = report;
    }
}
