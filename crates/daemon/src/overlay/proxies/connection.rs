//! A connection of a host of this site, and its relay to the proxy of another one.

use super::held::Held;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use weir_base::{Bytes, Span, Time};
use weir_linux::transparent;
use weir_overlay::Inner;
use weir_overlay::proxy::tcp::{Admission, Relay, SILENCE, Segment};

/// How often it is looked whether the host has acknowledged what it was given.
const LOOK: Span = Span::from_millis(50);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The flow of the segments that leave here.
    pub(super) flow: Inner,
    relay: Relay,
    /// The host's connection; `None` once it is over.
    stream: Option<TcpStream>,
    /// Bytes of the host until the other proxy has them, and bytes for the host.
    outgoing: Held,
    incoming: Held,
    is_connected: bool,
    can_read: bool,
    can_write: bool,
    has_shut: bool,
    /// Whether it is among those that are served next.
    pub(super) is_listed: bool,
    /// When it is served at the latest.
    pub(super) due: Time,
}

impl Connection {
    /// A connection of a host. `is_connected` says whether it is there already; `most` is the most data of a segment.
    pub(super) fn new(
        flow: Inner,
        stream: TcpStream,
        is_connected: bool,
        most: Bytes,
        now: Time,
    ) -> Connection {
        Connection {
            flow,
            relay: Relay::new(most, now),
            stream: Some(stream),
            outgoing: Held::default(),
            incoming: Held::default(),
            is_connected,
            can_read: is_connected,
            can_write: is_connected,
            has_shut: false,
            is_listed: false,
            due: Time::NEVER,
        }
    }

    /// The host's connection, if it is not over.
    pub(super) fn into_stream(self) -> Option<TcpStream> {
        self.stream
    }

    /// What the kernel says of the socket.
    pub(super) fn is_ready(&mut self, to_read: bool, to_write: bool) {
        self.can_read |= to_read;
        self.can_write |= to_write;
    }

    /// A segment of the other proxy has come, with its data.
    pub(super) fn receive(&mut self, segment: &Segment, data: &[u8], admission: &Admission, now: Time) {
        if let Some(part) = segment.part.filter(|part| self.relay.takes(part)) {
            self.incoming.put(part.from, data);
        }
        self.relay.receive(segment, admission, now);
    }

    /// Moves bytes between the socket and the relay. It takes no more of the host's while it holds `share` of them.
    pub(super) fn exchange(&mut self, space: &mut [u8], share: Bytes, now: Time) {
        self.relay.on_timer(now);
        if let Some(mut stream) = self.stream.take() {
            match self.give(&mut stream, now).and_then(|()| self.take(&mut stream, space, share)) {
                Ok(()) if self.relay.gone().is_none() => self.stream = Some(stream),
                Ok(()) => transparent::reset(stream),
                Err(_) => self.relay.reset(),
            }
        }
        // Both streams have ended, and the host has all: what the kernel still does needs no proxy.
        if self.relay.is_done() {
            self.stream = None;
        }
        self.outgoing.forget(self.relay.needs_from());
    }

    /// Gives the host what has come for it.
    fn give(&mut self, stream: &mut TcpStream, now: Time) -> std::io::Result<()> {
        if !self.is_connected {
            if !self.can_write {
                return Ok(());
            }
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            (self.is_connected, self.can_read) = (true, true);
        }
        while self.can_write {
            let ready = self.relay.ready();
            if ready == Bytes::ZERO {
                break;
            }
            match self.incoming.write(ready.get() as usize, stream) {
                Ok(written) => self.relay.give(Bytes::new(written as u64), now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.relay.ready() == Bytes::ZERO {
            // The end has no bytes, but is given too.
            self.relay.give(Bytes::ZERO, now);
        }
        if self.relay.ends() && !self.has_shut {
            stream.shutdown(Shutdown::Write)?;
            self.has_shut = true;
        }
        if self.relay.waits_for_host() {
            // The stream's end counts as a byte there once it is sent, so the last byte is confirmed with the end.
            let unacknowledged = transparent::unacknowledged(stream)?;
            self.relay.acknowledged(self.relay.given().saturating_sub(unacknowledged), now);
        }
        Ok(())
    }

    /// Takes what the host sends, as far as there is room.
    fn take(&mut self, stream: &mut TcpStream, space: &mut [u8], share: Bytes) -> std::io::Result<()> {
        while self.can_read {
            let left = share.get().saturating_sub(self.outgoing.count());
            let room = self.relay.room().get().min(left).min(space.len() as u64) as usize;
            if room == 0 {
                break;
            }
            match stream.read(&mut space[..room]) {
                Ok(0) => {
                    self.relay.end();
                    self.can_read = false;
                }
                Ok(read) => {
                    self.outgoing.append(&space[..read]);
                    self.relay.take(Bytes::new(read as u64));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_read = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the next segment to `into`, which takes `longest` bytes. Returns whether it has data; `None` if there is none now.
    pub(super) fn next(
        &mut self,
        admission: &Admission,
        longest: usize,
        into: &mut Vec<u8>,
        now: Time,
    ) -> Option<bool> {
        let mut segment = self.relay.next(admission, now)?;
        let data = segment.part.map_or(0, |part| part.bytes as usize);
        loop {
            into.clear();
            segment.encode(into);
            // Ranges are said again; data is not sent again for them.
            if into.len() + data <= longest || !segment.ranges.pop() {
                break;
            }
        }
        if let Some(part) = segment.part {
            self.outgoing.copy(part.from, data, into);
        }
        Some(segment.part.is_some())
    }

    /// When it is to be served again, if nothing happens before.
    pub(super) fn next_time(&self, now: Time) -> Time {
        let waits_for_host = self.stream.is_some() && self.relay.waits_for_host();
        let look = if waits_for_host { now + LOOK } else { Time::NEVER };
        // A relay that is done has nothing to do until it may be forgotten.
        let ends = if self.relay.is_done() { now + SILENCE } else { Time::NEVER };
        self.relay.next_time().min(look).min(ends)
    }

    /// Whether it may be forgotten.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.relay.is_over(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn it_takes_no_more_than_its_share_of_what_a_host_sends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut host = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        host.write_all(&[7; 15_000]).unwrap();
        let mut connection =
            Connection::new(Inner::default(), stream, true, Bytes::new(1000), Time::from_nanos(0));
        let mut space = [0; 4000];
        for (share, held) in [(10_000, 10_000), (5_000, 10_000), (12_000, 12_000), (15_000, 15_000)] {
            connection.can_read = true;
            connection.exchange(&mut space, Bytes::new(share), Time::from_nanos(0));
            assert_eq!(connection.outgoing.count(), held, "a share of {share}");
        }
    }
}
