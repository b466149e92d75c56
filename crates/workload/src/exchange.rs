//! A request and its answer: the bytes of both that are not written or read yet, and how they proceed as far as the sockets allow.

use crate::socket::{Socket, Trouble};
use weir_base::{Span, Time};

/// A client's request and the server's answer.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    since: Time,
    number: u64,
    /// The number of the last answered request, and the time that the answer took; `None` before the first.
    pub(crate) last: Option<(u64, Span)>,
    /// Bytes of the request that the client's socket has not taken yet, and that the server has not read yet.
    unasked: u64,
    unheard: u64,
    /// Bytes of the answer that the server's socket has not taken yet, and that the client has not read yet.
    unanswered: u64,
    unread: u64,
    /// The first bytes of request and answer, and the number of bytes written of each.
    heads: [String; 2],
    written: [u64; 2],
    /// Whether the client is finished and has closed.
    pub(crate) over: bool,
    /// Whether the server has closed.
    server_closed: bool,
}

impl Exchange {
    /// Begins a request.
    pub(crate) fn begin(&mut self, request: u64, response: u64, heads: [String; 2], now: Time) {
        *self = Exchange {
            since: now,
            number: self.number,
            unasked: request,
            unheard: request,
            unanswered: response,
            unread: response,
            heads,
            ..Exchange::default()
        };
    }

    /// Stops the client: the rest of its request is never written.
    pub(crate) fn stop(&mut self) {
        self.unasked = 0;
    }

    /// Whether there is more to write at the client's end if `client`, or else at the server's.
    pub(crate) fn wants_room(&self, client: bool) -> bool {
        if client { self.unasked > 0 } else { self.unheard == 0 && self.unanswered > 0 }
    }

    /// Writes the rest of the client's request, as far as there is room.
    pub(crate) fn ask(&mut self, socket: &mut impl Socket, now: Time) -> Result<(), Trouble> {
        write(&mut self.unasked, &mut self.written[0], &self.heads[0], socket, now)
    }

    /// The client has read `read` more bytes of the answer. Returns whether the answer is complete.
    pub(crate) fn is_answered(&mut self, read: u64, now: Time) -> bool {
        self.unread -= read.min(self.unread);
        if self.unread > 0 {
            return false;
        }
        self.last = Some((self.number, now.since(self.since)));
        self.number += 1;
        true
    }

    /// Reads at the server, answers once the whole request has been read, and closes after the client has closed.
    pub(crate) fn serve(&mut self, socket: &mut impl Socket, now: Time) -> Result<(), Trouble> {
        let received = socket.read(now, &mut |_, _, _| {})?;
        self.unheard -= received.bytes.min(self.unheard);
        if self.unheard == 0 {
            write(&mut self.unanswered, &mut self.written[1], &self.heads[1], socket, now)?;
        }
        if received.ended && (self.unheard > 0 || self.unanswered == 0) && !self.server_closed {
            self.server_closed = true;
            socket.close(now);
        }
        Ok(())
    }
}

/// Writes up to `left` bytes, as far as there is room, beginning with the unwritten part of the head.
fn write(
    left: &mut u64,
    written: &mut u64,
    head: &str,
    socket: &mut impl Socket,
    now: Time,
) -> Result<(), Trouble> {
    if *left > 0 {
        let head =
            usize::try_from(*written).ok().and_then(|at| head.as_bytes().get(at..)).unwrap_or_default();
        let taken = socket.write(*left, head, now)?;
        *left -= taken;
        *written += taken;
    }
    Ok(())
}
