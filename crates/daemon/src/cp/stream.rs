//! A CP-RUDP stream over a UDP socket: a file or a pipe goes from one end to the other at the rate that the aggregation points on the
//! way report. One thread receives packets, runs timers, moves the application's bytes, sends packets and sleeps.

use rustix::event::PollFlags;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_base::{Bytes, Span, Time};
use weir_coord::header::{Flags, Prefix};
use weir_coord::participation::Identity;
use weir_endpoint::{Body, Datagram, Endpoint, Message, Part, Stream};
use weir_linux::clock::Clock;
use weir_linux::udp::{Arrival, Buffers, UdpPort};
use weir_transport::rudp::{Parameters, carrier};

/// Bytes of one read of the input.
const CHUNK: usize = 1 << 16;
/// A stream ends after this long without a packet from the peer.
pub(crate) const SILENCE: Span = Span::from_secs(30);
/// The sender reports a silent peer after this long.
const QUIET: Span = Span::from_secs(3);
/// After the end of the stream, the receiver answers retransmissions until the peer has been silent for this long.
const LINGER: Span = Span::from_secs(1);
/// Shortest sleep: how exactly packets leave.
const GRAIN: Span = Span::from_micros(100);
/// Longest sleep: how often an interrupt is looked for.
const LOOK: Span = Span::from_millis(200);

/// The addresses of a stream's ends, and its MTU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// The socket's own address.
    pub at: SocketAddr,
    /// The peer's address; `None` for whoever opens the stream.
    pub peer: Option<SocketAddr>,
    /// Largest IP packet.
    pub mtu: Bytes,
}

/// The totals of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Summary {
    /// Bytes of the application.
    pub bytes: u64,
    /// From the first packet to the last byte.
    pub took: Span,
    /// Packets that were retransmitted.
    pub retransmitted: u64,
    /// The last reported rate of a flowshare, in Mbit/s; zero without reports.
    pub flowshare_mbps: f64,
}

/// Why a stream ended early.
#[derive(Debug)]
pub(crate) enum CpError {
    /// The peer has said nothing for half a minute.
    Silence,
    /// It was interrupted.
    Interrupted,
    /// An error of the socket, the input or the output.
    Io(io::Error),
}

impl fmt::Display for CpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpError::Silence => write!(f, "nothing has come from the other end for {SILENCE}"),
            CpError::Interrupted => f.write_str("interrupted"),
            CpError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CpError {}

impl From<io::Error> for CpError {
    fn from(error: io::Error) -> CpError {
        CpError::Io(error)
    }
}

/// Whether an aggregation point has sent a packet back to where it came from.
fn is_reflected(packet: &[u8]) -> bool {
    Prefix::read(packet).is_ok_and(|prefix| prefix.flags.has(Flags::REFLECT))
}

/// One end of a stream, and its socket.
pub(crate) struct Driver {
    port: UdpPort,
    buffers: Buffers,
    peer: Option<SocketAddr>,
    endpoint: Box<dyn Endpoint>,
    /// Whether packets begin with a CP header.
    coordinated: bool,
    clock: Clock,
    /// When the stream began: the start, at the end that opens it; the peer's first packet, at the other.
    began: Option<Time>,
    /// When the peer's last packet arrived, the start before the first. A report that the aggregation point reflects is no packet of the peer.
    heard: Time,
    /// The value of `heard` for which a silence was last reported.
    told: Option<Time>,
    /// The latest time passed to the endpoint when it sent.
    latest: Time,
    bytes: u64,
    body: Body,
}

impl Driver {
    /// Binds the socket of an end.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(ends: &Ends, parameters: &Parameters, identity: &Identity) -> io::Result<Driver> {
        let port = UdpPort::bind(ends.at, false)?;
        port.let_fragment()?;
        let clock = Clock::starting_in(Span::ZERO);
        let ip_header = if ends.at.is_ipv4() { 20 } else { 40 };
        Ok(Driver {
            port,
            buffers: Buffers::default(),
            peer: ends.peer,
            endpoint: carrier(parameters, identity, ends.mtu.get() as u32, ip_header),
            coordinated: parameters.application.is_some(),
            clock,
            began: ends.peer.map(|_| clock.now()),
            heard: clock.now(),
            told: None,
            latest: Time::ZERO,
            bytes: 0,
            body: Body::Datagram(Datagram::default()),
        })
    }

    /// Sends all of `from`, and waits until the peer has acknowledged it. `quiet` is called once for each long silence of the peer, with
    /// the time since its last packet.
    ///
    /// # Errors
    /// Why the stream ended early.
    pub(crate) fn send(
        mut self,
        from: &mut (impl Read + AsFd),
        stop: &AtomicBool,
        quiet: &mut dyn FnMut(Span),
    ) -> Result<Summary, CpError> {
        let (mut chunk, mut waiting, mut ended) = (vec![0; CHUNK], 0..0, false);
        let mut ready = true;
        self.endpoint.open(self.clock.now());
        loop {
            self.turn()?;
            while self.endpoint.is_open() && !ended {
                if waiting.is_empty() {
                    if !std::mem::take(&mut ready) {
                        break;
                    }
                    waiting = 0..from.read(&mut chunk)?;
                    if waiting.is_empty() {
                        ended = true;
                        self.endpoint.close(None, self.clock.now());
                        break;
                    }
                }
                let message = Message { bytes: waiting.len() as u64, head: &chunk[waiting.clone()] };
                let taken = self.endpoint.write(Stream(0), message, self.clock.now());
                waiting.start += taken as usize;
                self.bytes += taken;
                if taken == 0 {
                    break;
                }
            }
            self.flush()?;
            if ended && self.endpoint.all_acknowledged() {
                return Ok(self.summary(self.clock.now()));
            }
            self.check(stop)?;
            if self.is_newly_quiet() {
                quiet(self.silence());
            }
            let wanted = self.endpoint.is_open() && !ended && waiting.is_empty();
            ready |= self.sleep(wanted.then(|| from.as_fd()))?;
        }
    }

    /// Writes all that the peer sends to `to`, until the end of the stream.
    ///
    /// # Errors
    /// Why the stream ended early.
    pub(crate) fn receive(mut self, to: &mut impl Write, stop: &AtomicBool) -> Result<Summary, CpError> {
        let mut finished: Option<Summary> = None;
        loop {
            self.turn()?;
            let (mut result, mut bytes) = (Ok(()), 0);
            self.endpoint.read(&mut |_, read| {
                bytes += read.bytes;
                if result.is_ok() {
                    result = to.write_all(read.head);
                }
            });
            result?;
            self.bytes += bytes;
            self.flush()?;
            if finished.is_none() && self.endpoint.finished() {
                to.flush()?;
                finished = Some(self.summary(self.clock.now()));
            }
            match finished {
                Some(summary) if self.silence() >= LINGER => return Ok(summary),
                Some(_) => {}
                None => self.check(stop)?,
            }
            self.sleep(None)?;
        }
    }

    /// Receives all packets that have arrived, and runs the timer if it is due.
    fn turn(&mut self) -> io::Result<()> {
        let Driver { port, buffers, peer, endpoint, coordinated, clock, began, heard, latest, body, .. } =
            self;
        let mut take = |Arrival { from, ecn, at }: Arrival, packet: &mut [u8]| {
            if peer.is_some_and(|peer| peer != from) {
                return;
            }
            body.datagram_mut().set(packet, packet.len() as u32);
            endpoint.receive(body, ecn, at);
            if *coordinated && is_reflected(packet) {
                return;
            }
            // Whoever opens the stream is the peer.
            if endpoint.is_open() || peer.is_some() {
                *peer = Some(from);
                began.get_or_insert(at);
                *heard = at;
            }
        };
        while port.receive(buffers, clock, *latest, &mut take)? {}
        let now = clock.now();
        if endpoint.next_timer() <= now {
            endpoint.on_timer(now);
        }
        Ok(())
    }

    /// Sends all packets that are due.
    fn flush(&mut self) -> io::Result<()> {
        let Some(peer) = self.peer else { return Ok(()) };
        let Driver { port, endpoint, clock, latest, body, .. } = self;
        port.send(peer, &mut |into| {
            *latest = clock.now();
            let ecn = endpoint.transmit(body, *latest)?;
            body.datagram_mut().append_to(into);
            Some(ecn)
        })?;
        Ok(())
    }

    fn silence(&self) -> Span {
        self.clock.now().since(self.heard)
    }

    /// Whether the peer has been silent for long, and its silence has not yet been reported.
    fn is_newly_quiet(&mut self) -> bool {
        self.silence() > QUIET && self.told.replace(self.heard) != Some(self.heard)
    }

    fn check(&self, stop: &AtomicBool) -> Result<(), CpError> {
        if stop.load(Ordering::Relaxed) {
            return Err(CpError::Interrupted);
        }
        // A receiver waits for its first packet as long as it takes.
        if self.began.is_some() && self.silence() > SILENCE {
            return Err(CpError::Silence);
        }
        Ok(())
    }

    /// Sleeps until a packet arrives, a timer is due, or the input can be read. Returns whether the input can.
    fn sleep(&self, input: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let now = self.clock.now();
        let due = self.endpoint.next_timer().max(now + GRAIN).min(now + LOOK);
        self.port.wait(input.map(|input| (input, PollFlags::IN)), Some(due.since(now)))
    }

    fn summary(&self, now: Time) -> Summary {
        let mut flowshare = 0.0;
        self.endpoint.state(&mut |part, name, value| {
            if (part, name) == (Part::Controller(0), "flowshare_mbps") {
                flowshare = value;
            }
        });
        Summary {
            bytes: self.bytes,
            took: now.since(self.began.unwrap_or(now)),
            retransmitted: self.endpoint.sample().map_or(0, |sample| sample.retransmitted),
            flowshare_mbps: flowshare,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use weir_coord::endpoint::{self, Endpoint as Cp};
    use weir_coord::header::Version;

    #[test]
    fn a_reflected_report_does_not_count_as_a_packet_of_the_peer() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let parameters = Parameters { application: Some(1), ..Parameters::default() };
        let identity = Identity { flow: 3, key: None, epoch: 0 };
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let ends = Ends { at, peer: Some(peer.local_addr().unwrap()), mtu: Bytes::new(1500) };
        let mut driver = Driver::open(&ends, &parameters, &identity).unwrap();
        let of = endpoint::Identity { application: 1, flow: 3, protocol: 1, key: None, epoch: 0 };
        let mut cp = Cp::new(of, Version::One, &[]);
        let mut send = |flags| {
            let mut packet = vec![0; cp.header_length()];
            cp.seal(flags, &mut packet);
            peer.send_to(&packet, at).unwrap();
        };
        let start = driver.heard;
        // On the loopback device a packet has arrived when the call that sends it returns.
        send(Flags::REFLECT);
        driver.turn().unwrap();
        assert_eq!(driver.heard, start);
        send(Flags::default());
        driver.turn().unwrap();
        assert!(driver.heard > start);
    }
}
