//! Requests and answers over a kernel connection: what of a request and its answer has not got on yet, and moving it on as
//! far as both sockets let it. One thread plays both ends.

use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use weir_base::{Span, Time};

/// A client's request and the server's answer, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    since: Time,
    /// The number of the request under way, or of the next one.
    pub(crate) number: u64,
    under_way: bool,
    /// Of the request: not yet taken by the client's socket, and not yet read by the server.
    unasked: u64,
    unheard: u64,
    /// Of the answer: not yet taken by the server's socket, and not yet read by the client.
    unanswered: u64,
    unread: u64,
    /// What request and answer begin with, and how much of each was written.
    heads: [String; 2],
    written: [u64; 2],
    /// Whether the client has all that it wanted, and has closed.
    pub(crate) over: bool,
}

/// What has come of moving on.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Bytes of answers that the client has read.
    pub(crate) read: u64,
    /// How long the request took that is answered now.
    pub(crate) answered: Option<Span>,
    /// Whether the client has seen the end of the stream.
    pub(crate) ended: bool,
}

impl Exchange {
    /// A request begins.
    pub(crate) fn begin(&mut self, request: u64, response: u64, heads: [String; 2], now: Time) {
        *self = Exchange {
            since: now,
            number: self.number,
            under_way: true,
            unasked: request,
            unheard: request,
            unanswered: response,
            unread: response,
            heads,
            written: [0; 2],
            over: false,
        };
    }

    /// The client closes: what it has not written of a request, it never will.
    pub(crate) fn stop(&mut self) {
        self.unasked = 0;
    }

    /// Moves everything on as far as it goes without waiting. `now` is asked when an answer is whole.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn advance(
        &mut self,
        client: &OwnedFd,
        server: Option<&OwnedFd>,
        payload: &[u8],
        scratch: &mut Vec<u8>,
        now: impl Fn() -> Time,
    ) -> Result<Moved, Errno> {
        let mut moved = Moved::default();
        let [request, answer] = &self.heads;
        let [asked, told] = &mut self.written;
        write(client, &mut self.unasked, asked, request, payload)?;
        if let Some(server) = server {
            let (heard, ended) = read(server, scratch)?;
            self.unheard -= heard.min(self.unheard);
            if self.unheard == 0 {
                write(server, &mut self.unanswered, told, answer, payload)?;
            }
            if ended && (self.unheard > 0 || self.unanswered == 0) {
                // The client has closed, and there is nothing left to answer. It may have gone altogether; then there is
                // nothing left to close.
                let _ = rustix::net::shutdown(server, Shutdown::Write);
            }
        }
        (moved.read, moved.ended) = read(client, scratch)?;
        self.unread -= moved.read.min(self.unread);
        if self.under_way && self.unread == 0 {
            self.under_way = false;
            self.number += 1;
            moved.answered = Some(now().since(self.since));
        }
        Ok(moved)
    }
}

/// Writes what is left as far as there is room: first what is not yet written of the head, then payload.
fn write(
    socket: impl AsFd,
    left: &mut u64,
    written: &mut u64,
    head: &str,
    payload: &[u8],
) -> Result<(), Errno> {
    while *left > 0 {
        let head = usize::try_from(*written).ok().and_then(|at| head.as_bytes().get(at..));
        let bytes = head.filter(|head| !head.is_empty()).unwrap_or(payload);
        let piece = usize::try_from(*left).unwrap_or(bytes.len()).min(bytes.len());
        match rustix::net::send(&socket, &bytes[..piece], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => {
                *left -= sent as u64;
                *written += sent as u64;
            }
            // Nothing can be written before the connection is there.
            Err(Errno::AGAIN | Errno::NOTCONN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads all that is there; how much it was, and whether it was the last.
fn read(socket: impl AsFd, scratch: &mut Vec<u8>) -> Result<(u64, bool), Errno> {
    let mut bytes = 0;
    loop {
        scratch.clear();
        // As everywhere, the kernel throws the bytes away and only counts them.
        match rustix::net::recv(&socket, spare_capacity(scratch), RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Ok((bytes, true)),
            Ok((_, length)) => bytes += length as u64,
            Err(Errno::AGAIN | Errno::NOTCONN) => return Ok((bytes, false)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
