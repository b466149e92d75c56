//! A request and its answer: what of both has not got on yet, and moving it on as far as both sockets allow.

use crate::socket::{Socket, Trouble};
use weir_base::{Span, Time};

/// A client's request and the server's answer.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    since: Time,
    number: u64,
    /// The number of the request that was answered last, and how long that took.
    pub(crate) last: Option<(u64, Span)>,
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
    /// Whether the server has.
    server_closed: bool,
}

impl Exchange {
    /// A request begins.
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

    /// The client writes no more: the rest of its request is never written.
    pub(crate) fn stop(&mut self) {
        self.unasked = 0;
    }

    /// Whether more is to be written at the client's end, or else at the server's.
    pub(crate) fn wants_room(&self, client: bool) -> bool {
        if client { self.unasked > 0 } else { self.unheard == 0 && self.unanswered > 0 }
    }

    /// The client writes what is left of its request.
    pub(crate) fn ask(&mut self, socket: &mut impl Socket, now: Time) -> Result<(), Trouble> {
        write(&mut self.unasked, &mut self.written[0], &self.heads[0], socket, now)
    }

    /// The client has read so many bytes of the answer. Answers whether it is whole.
    pub(crate) fn is_answered(&mut self, read: u64, now: Time) -> bool {
        self.unread -= read.min(self.unread);
        if self.unread > 0 {
            return false;
        }
        self.last = Some((self.number, now.since(self.since)));
        self.number += 1;
        true
    }

    /// The server reads what is there, answers when it has read the whole request, and closes when the client has.
    pub(crate) fn serve(&mut self, socket: &mut impl Socket, now: Time) -> Result<(), Trouble> {
        let received = socket.read(&mut |_, _| {})?;
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

/// Writes what is left, as far as there is room: first what is not yet written of the head.
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
