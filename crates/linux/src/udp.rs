//! A UDP socket that sends and receives several packets in a call, with `quinn-udp`: segmentation offload (GSO), receive
//! offload (GRO) and ECN codepoints. All buffers are allocated at the start.

use crate::clock::{Clock, timespec_of};
use crate::option;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use weir_base::{Ecn, Span, Time};

/// Largest payload of a UDP datagram over IPv4 (RFC 768, RFC 791), and so of a batch in one call.
const LARGEST: usize = 65_507;
/// Size of a receive buffer: as much as the kernel joins on receipt.
const BUFFER: usize = 1 << 16;
/// Packets to a peer that [`UdpPort::gather`] keeps at most: so many share the cost of a call, and the first of them waits for few others.
const HELD: usize = 16;
/// Peers whose packets are kept at a time.
const PEERS: usize = 8;
/// Room for packets that were not read or sent yet: 0.3 s of 100 Mbit/s and more. The system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;

/// A UDP socket.
pub struct UdpPort {
    socket: UdpSocket,
    state: UdpSocketState,
    at: SocketAddr,
    /// Most packets in a call.
    most: usize,
    /// What waits to be sent: one batch for a peer.
    batches: Vec<Batch>,
    /// Whether one of them waits for the kernel to have room.
    is_blocked: bool,
    /// The packet that begins the next batch, kept while the previous batch is sent.
    last: Vec<u8>,
    /// When the newest packet was received.
    latest: Time,
}

/// Packets to one peer that are sent in one call: all of the same length, but for the last, which may be shorter.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    segment: usize,
    to: Option<(SocketAddr, Ecn)>,
}

/// The facts about a packet that has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Who has sent it.
    pub from: SocketAddr,
    /// Its codepoint.
    pub ecn: Ecn,
    /// When the kernel received it, so that the reader's wake-up time is not part of a round trip.
    pub at: Time,
}

/// Buffers for received packets.
pub struct Buffers {
    bytes: Vec<u8>,
    about: [RecvMeta; BATCH_SIZE],
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { bytes: vec![0; BATCH_SIZE * BUFFER], about: [RecvMeta::default(); BATCH_SIZE] }
    }
}

impl UdpPort {
    /// A socket at an address, in the network namespace that the calling thread is in. With `offload` one call may send several
    /// packets (GSO).
    ///
    /// # Errors
    /// The kernel's.
    pub fn bind(at: SocketAddr, offload: bool) -> io::Result<UdpPort> {
        let socket = UdpSocket::bind(at)?;
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER));
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BUFFER)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER));
        let state = UdpSocketState::new((&socket).into())?;
        let most = if offload { state.max_gso_segments() } else { 1 };
        let at = socket.local_addr()?;
        let (batches, last) = (Vec::new(), Vec::new());
        Ok(UdpPort { socket, state, at, most, batches, is_blocked: false, last, latest: Time::ZERO })
    }

    /// Its own address.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Lets the kernel fragment packets that are too long for the path (RFC 791), as it does for ordinary sockets. Without this
    /// such packets are lost, so that a transport can find the path's MTU.
    ///
    /// # Errors
    /// The kernel's.
    pub fn let_fragment(&self) -> io::Result<()> {
        let (level, option, value) = match self.at {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT),
        };
        option::set(&self.socket, level, option, value)
    }

    /// Whether packets wait for the kernel to have room.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Hands over packets that have arrived. No arrival is earlier than `since`, the latest time known to the reader. Returns
    /// whether there may be more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(
        &mut self,
        buffers: &mut Buffers,
        clock: &Clock,
        since: Time,
        to: &mut dyn FnMut(Arrival, &mut [u8]),
    ) -> io::Result<bool> {
        let mut slices = buffers.bytes.chunks_mut(BUFFER).map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut buffers.about) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message about a packet that was sent, or a signal.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let (stamps, now) = (clock.stamps(), clock.now());
        for (slice, about) in slices.iter_mut().zip(&buffers.about[..count]) {
            let at = about.timestamp.map_or(now, |stamp| stamps.time(stamp.as_nanos() as u64));
            self.latest = at.clamp(self.latest.max(since).min(now), now);
            let ecn = about.ecn.map_or(Ecn::NotEct, |ecn| match ecn {
                EcnCodepoint::Ect0 => Ecn::Ect0,
                EcnCodepoint::Ect1 => Ecn::Ect1,
                EcnCodepoint::Ce => Ecn::Ce,
            });
            for packet in slice[..about.len].chunks_mut(about.stride.max(1)) {
                to(Arrival { from: about.addr, ecn, at: self.latest }, packet);
            }
        }
        // A call that had room for more has found no more.
        Ok(count == BATCH_SIZE)
    }

    /// Sends the packets that `next` appends, one in each call of it, until `next` returns `None` or the kernel has no room.
    /// Returns `false` in the latter case; the packets left over go first in the next call.
    ///
    /// # Errors
    /// The kernel's, except errors that concern a single packet, such as one too long for the path: that packet is lost.
    pub fn send(
        &mut self,
        peer: SocketAddr,
        next: &mut dyn FnMut(&mut Vec<u8>) -> Option<Ecn>,
    ) -> io::Result<bool> {
        Ok(self.gather(peer, next)? && self.flush()?)
    }

    /// As [`UdpPort::send`], but the last few packets may wait for further ones to the same peer until [`UdpPort::flush`] is called.
    ///
    /// # Errors
    /// As [`UdpPort::send`].
    pub fn gather(
        &mut self,
        peer: SocketAddr,
        next: &mut dyn FnMut(&mut Vec<u8>) -> Option<Ecn>,
    ) -> io::Result<bool> {
        if self.is_blocked && !self.flush()? {
            return Ok(false);
        }
        let of_peer = |batch: &Batch| batch.to.is_some_and(|(to, _)| to == peer);
        let Some(at) = self.batches.iter().position(of_peer).or_else(|| self.unused()) else {
            return Ok(self.flush()? && self.gather(peer, next)?);
        };
        loop {
            let batch = &mut self.batches[at];
            let start = batch.bytes.len();
            let Some(ecn) = next(&mut batch.bytes) else { break };
            let length = batch.bytes.len() - start;
            if length == 0 {
                continue;
            }
            // A packet with another codepoint, or longer than the first, begins another batch.
            let fits = batch.to == Some((peer, ecn)) && length <= batch.segment;
            if start > 0 && !fits {
                self.last.clear();
                self.last.extend_from_slice(&batch.bytes[start..]);
                batch.bytes.truncate(start);
                if !self.flush_one(at)? {
                    // One batch waits for the kernel; a packet beyond it is lost, as in a full queue.
                    return Ok(false);
                }
                self.batches[at].bytes.extend_from_slice(&self.last);
            }
            let batch = &mut self.batches[at];
            if batch.to.is_none() {
                (batch.to, batch.segment) = (Some((peer, ecn)), length);
            }
            let (all, segment) = (batch.bytes.len(), batch.segment);
            let is_full = all + segment > LARGEST || all >= self.most * segment;
            if (length < segment || is_full) && !self.flush_one(at)? {
                return Ok(false);
            }
        }
        let Batch { bytes, segment, to } = &self.batches[at];
        if to.is_some() && bytes.len() >= HELD * segment { self.flush_one(at) } else { Ok(true) }
    }

    /// A batch that no peer has; `None` if there are enough of them.
    fn unused(&mut self) -> Option<usize> {
        let unused = self.batches.iter().position(|batch| batch.to.is_none());
        unused.or_else(|| {
            let at = self.batches.len();
            (at < PEERS).then(|| {
                self.batches.push(Batch::default());
                at
            })
        })
    }

    /// Sends a packet by itself.
    ///
    /// # Errors
    /// As [`UdpPort::send`].
    pub fn send_one(&mut self, peer: SocketAddr, packet: &[u8]) -> io::Result<bool> {
        let mut left = Some(packet);
        self.send(peer, &mut |into| {
            into.extend_from_slice(left.take()?);
            Some(Ecn::NotEct)
        })
    }

    /// Sleeps until packets arrive, the kernel has room for those that wait, `other` is ready, or `timeout` is over. Returns
    /// whether `other` is ready.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(
        &self,
        other: Option<(BorrowedFd<'_>, PollFlags)>,
        timeout: Option<Span>,
    ) -> io::Result<bool> {
        let wanted = if self.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let (fd, flags) = other.unwrap_or((self.as_fd(), wanted));
        let mut all = [PollFd::new(self, wanted), PollFd::from_borrowed_fd(fd, flags)];
        match poll(&mut all, timeout.map(timespec_of).as_ref()) {
            Ok(_) => Ok(other.is_some() && !all[1].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the packets that wait. Returns whether the kernel had room.
    ///
    /// # Errors
    /// As [`UdpPort::send`].
    pub fn flush(&mut self) -> io::Result<bool> {
        for at in 0..self.batches.len() {
            if !self.flush_one(at)? {
                return Ok(false);
            }
        }
        self.is_blocked = false;
        Ok(true)
    }

    /// The same for the packets of one batch.
    fn flush_one(&mut self, at: usize) -> io::Result<bool> {
        let Batch { bytes, segment, to } = &mut self.batches[at];
        let Some((destination, ecn)) = *to else { return Ok(true) };
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let transmit =
            Transmit { destination, ecn, contents: bytes, segment_size: Some(*segment), src_ip: None };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_blocked = true;
                return Ok(false);
            }
            // The device has no segmentation: `quinn-udp` stops using it, and these packets are lost.
            Err(_) if self.state.max_gso_segments() < self.most => self.most = self.state.max_gso_segments(),
            Err(error) if !is_of_packet(&error) => return Err(error),
            // A packet exceeds the device's MTU: a probe of the path's MTU with others behind it, or all packets since the MTU
            // has changed. Each is sent by itself.
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && bytes.len() > *segment => {
                for contents in bytes.chunks(*segment) {
                    let alone = Transmit { destination, ecn, contents, segment_size: None, src_ip: None };
                    // A packet refused now is lost, as in a full queue.
                    let _ = self.state.try_send((&self.socket).into(), &alone);
                }
            }
            Ok(()) | Err(_) => {}
        }
        bytes.clear();
        *to = None;
        Ok(true)
    }
}

/// Whether an error concerns this packet or an earlier one, and not the socket. The packet is then lost.
fn is_of_packet(error: &io::Error) -> bool {
    let of_packet = [
        libc::EMSGSIZE,
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::ENETDOWN,
        libc::ENOBUFS,
        libc::EPERM,
        libc::EINTR,
    ];
    error.raw_os_error().is_some_and(|code| of_packet.contains(&code))
}

impl AsFd for UdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
