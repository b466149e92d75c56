//! A kernel socket as its application's socket: non-blocking calls, and the state that the application thread keeps for each
//! socket.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};
use std::net::SocketAddr;
use weir_base::{Bytes, Histogram, Rate, Time};
use weir_coord::layer::Layer;
use weir_linux::clock::Clock;
use weir_workload::{Received, Socket, Trouble, Writes};

/// Most that is written in one call, and read from one socket before others get their turn.
const TURN: usize = 64 * 1024;

/// A kernel socket of a flow.
#[derive(Debug)]
pub(crate) struct KernelSocket {
    pub(crate) fd: OwnedFd,
    /// Whether it is a TCP socket.
    stream: bool,
    /// Whether the connection is established, as far as the application has looked.
    pub(crate) opened: bool,
    /// Whether the peer has closed and everything was read.
    pub(crate) ended: bool,
    /// The events for which the epoll instance watches it.
    pub(crate) watched: EventFlags,
    /// Writes and reads a header before the application's bytes in a datagram; `None` if the flow has none.
    layer: Option<Layer>,
}

impl KernelSocket {
    /// A TCP socket that is not connected yet.
    pub(crate) fn stream(fd: OwnedFd) -> KernelSocket {
        let watched = EventFlags::empty();
        KernelSocket { fd, stream: true, opened: false, ended: false, watched, layer: None }
    }

    /// A TCP socket that was accepted.
    pub(crate) fn accepted(fd: OwnedFd) -> KernelSocket {
        KernelSocket { opened: true, ..KernelSocket::stream(fd) }
    }

    /// The rate of a flowshare that was reported to it; `None` without a report.
    pub(crate) fn flowshare(&self) -> Option<Rate> {
        self.layer.as_ref()?.flowshare()
    }

    /// A UDP socket, with the layer that adds headers to its datagrams, if any.
    pub(crate) fn datagrams(fd: OwnedFd, layer: Option<Layer>) -> KernelSocket {
        KernelSocket { stream: false, layer, ..KernelSocket::stream(fd) }
    }
}

/// State that all sockets of an application thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// The bytes that are written: zeros, except for the head of a datagram.
    payload: Vec<u8>,
    scratch: Vec<u8>,
    /// How late datagrams left, against the workload's times.
    pub(crate) gap_error: Histogram,
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> Shared {
        Shared {
            clock,
            payload: vec![0; TURN],
            scratch: Vec::with_capacity(TURN),
            gap_error: Histogram::default(),
        }
    }
}

/// A kernel socket while its application works with it.
pub(crate) struct KernelInUse<'a> {
    pub(crate) socket: &'a mut KernelSocket,
    pub(crate) shared: &'a mut Shared,
    /// The address that a connection goes to.
    pub(crate) target: SocketAddr,
    /// Length in bytes of a datagram's IP and UDP headers.
    pub(crate) headers: u64,
}

fn trouble(what: &'static str) -> impl Fn(Errno) -> Trouble {
    move |error| Trouble { what, why: std::io::Error::from(error).to_string() }
}

impl Socket for KernelInUse<'_> {
    fn open(&mut self, _: Time) -> Result<(), Trouble> {
        match rustix::net::connect(&self.socket.fd, &self.target) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
            Err(error) => Err(trouble("connect")(error)),
        }
    }

    fn is_open(&mut self) -> Result<bool, Trouble> {
        let fd = &self.socket.fd;
        sockopt::socket_error(fd).and_then(|error| error).map_err(trouble("connect"))?;
        self.socket.opened = match rustix::net::getpeername(fd) {
            Ok(_) => true,
            Err(Errno::NOTCONN) => false,
            Err(error) => return Err(trouble("connect")(error)),
        };
        Ok(self.socket.opened)
    }

    /// Fills the socket's buffer, since the kernel reports room again only when a third of the buffer is free.
    fn write(&mut self, bytes: u64, head: &[u8], _: Time) -> Result<u64, Trouble> {
        let mut written = 0;
        while written < bytes {
            let head = usize::try_from(written).ok().and_then(|at| head.get(at..)).unwrap_or_default();
            let content = if head.is_empty() { &self.shared.payload } else { head };
            let piece = usize::try_from(bytes - written).unwrap_or(TURN).min(content.len());
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket.fd, &content[..piece], flags) {
                Ok(sent) => written += sent as u64,
                // Nothing can be written before the connection is established.
                Err(Errno::AGAIN | Errno::NOTCONN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(trouble("write")(error)),
            }
        }
        Ok(written)
    }

    fn keep_full(&mut self, _: Writes) -> Result<bool, Trouble> {
        Ok(false)
    }

    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble> {
        let payload = &mut self.shared.payload;
        let length = (length.get().saturating_sub(self.headers) as usize).min(payload.len());
        let head = self.socket.layer.as_mut().map_or(head, |layer| layer.seal(head));
        let head = &head[..head.len().min(length)];
        payload[..head.len()].copy_from_slice(head);
        let sent = rustix::net::send(&self.socket.fd, &payload[..length], SendFlags::DONTWAIT);
        payload[..head.len()].fill(0);
        self.shared.gap_error.record(self.shared.clock.now().since(due));
        // A datagram that the host has no room for is lost in the host, as any application's would be; refusals by an earlier
        // ICMP message concern that earlier datagram.
        match sent {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => Ok(()),
            Err(error) => Err(trouble("send")(error)),
        }
    }

    /// For a stream the kernel counts and discards the bytes (`MSG_TRUNC`), which saves the copy.
    fn read(&mut self, now: Time, datagram: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        let (socket, scratch) = (&mut *self.socket, &mut self.shared.scratch);
        let (mut bytes, mut turn, mut at) = (0, TURN, now);
        while turn > 0 && !socket.ended {
            scratch.clear();
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            match rustix::net::recv(&socket.fd, spare_capacity(scratch), flags) {
                Ok((_, 0)) if socket.stream => socket.ended = true,
                Ok((_, length)) => {
                    turn = turn.saturating_sub(length.max(1));
                    // Others may have had the processor since the call.
                    at = self.shared.clock.now();
                    let mut length = length as u64;
                    if !socket.stream {
                        let head = match &mut socket.layer {
                            Some(layer) => layer.open(scratch),
                            None => Some(&scratch[..]),
                        };
                        let Some(head) = head else { continue };
                        length -= (scratch.len() - head.len()) as u64;
                        if let Some(layer) = &mut socket.layer {
                            if let Some(answer) = layer.answer(length, at) {
                                // An answer that the host has no room for is lost as one in the network is.
                                let _ = rustix::net::send(&socket.fd, answer, SendFlags::DONTWAIT);
                            }
                            if layer.is_answer(length) {
                                continue;
                            }
                        }
                        datagram(head, length, at);
                    }
                    bytes += length;
                }
                Err(Errno::AGAIN | Errno::NOTCONN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(trouble("read")(error)),
            }
        }
        Ok(Received { bytes, ended: socket.ended, at })
    }

    /// The kernel sends a datagram at once, or refuses it.
    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        if !self.socket.stream {
            return Ok(Bytes::ZERO);
        }
        let (info, _) = weir_linux::tcp_info::tcp_info(&self.socket.fd)
            .map_err(|error| Trouble { what: "look at a connection", why: error.to_string() })?;
        Ok(Bytes::new(info.tcpi_notsent_bytes.into()))
    }

    fn sending_rate(&mut self, now: Time) -> Option<Rate> {
        self.socket.layer.as_ref()?;
        // The sending end of datagrams receives answers alone, and nothing else reads them. Its layer takes the reports.
        self.read(now, &mut |_, _, _| {}).ok()?;
        self.socket.flowshare()
    }

    fn close(&mut self, _: Time) {
        if self.socket.stream && self.socket.opened {
            // The peer may have gone; then there is nothing left to close.
            let _ = rustix::net::shutdown(&self.socket.fd, Shutdown::Write);
        }
    }
}
