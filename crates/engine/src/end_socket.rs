//! An end of a connection as its application's socket: in the simulator, and in live runs of weir's own transports.

use weir_base::{Bytes, Rate, Time};
use weir_endpoint::{Endpoint, Message, Stream};
use weir_transport::End;
use weir_workload::{Received, Socket, Trouble, Writes};

/// The one stream of a flow.
const STREAM: Stream = Stream(0);

/// An end of a flow's connection.
pub struct EndSocket {
    /// The end.
    pub end: End,
    /// Length in bytes of a datagram's IP and UDP headers: the application's length counts them, the end's does not.
    headers: u64,
}

impl EndSocket {
    /// The socket of an end; `headers` is the length in bytes of a datagram's IP and UDP headers.
    pub fn new(end: End, headers: u64) -> EndSocket {
        EndSocket { end, headers }
    }
}

impl Socket for EndSocket {
    fn open(&mut self, now: Time) -> Result<(), Trouble> {
        self.end.open(now);
        Ok(())
    }

    #[inline]
    fn is_open(&mut self) -> Result<bool, Trouble> {
        Ok(self.end.is_open())
    }

    #[inline]
    fn write(&mut self, bytes: u64, head: &[u8], now: Time) -> Result<u64, Trouble> {
        Ok(self.end.write(STREAM, Message { bytes, head }, now))
    }

    fn keep_full(&mut self, writes: Writes) -> Result<bool, Trouble> {
        Ok(self.end.keep_full(STREAM, writes == Writes::Greedy))
    }

    #[inline]
    fn send(&mut self, length: Bytes, head: &[u8], due: Time) -> Result<(), Trouble> {
        let bytes = length.get().saturating_sub(self.headers);
        self.end.write(STREAM, Message { bytes, head }, due);
        Ok(())
    }

    #[inline]
    fn read(&mut self, now: Time, datagram: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        if let End::Tcp(connection) = &mut self.end {
            return Ok(Received { bytes: connection.take_read(), ended: connection.finished(), at: now });
        }
        let mut bytes = 0;
        self.end.read(&mut |_, read| {
            bytes += read.bytes;
            datagram(read.head, read.bytes, now);
        });
        Ok(Received { bytes, ended: self.end.finished(), at: now })
    }

    fn close(&mut self, now: Time) {
        self.end.close(None, now);
    }

    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        Ok(self.end.unsent())
    }

    fn sending_rate(&mut self, now: Time) -> Option<Rate> {
        self.end.sending_rate(now)
    }
}
