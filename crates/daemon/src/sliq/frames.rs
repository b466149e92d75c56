//! Frames over a stream of SLIQ.

use crate::transfer::Talk;
use weir_base::Time;
use weir_endpoint::{Endpoint, Message as Written, Read, Stream};
use weir_sliq::link::Link;

/// The stream that carries frames.
pub(super) const STREAM: Stream = Stream(0);

impl Talk {
    /// Reads the data that has arrived on a connection; `other` receives the data of other streams.
    pub(super) fn take(&mut self, link: &mut Link, mut other: impl FnMut(Stream, Read<'_>)) {
        link.read(&mut |stream, read| match stream {
            STREAM => self.hear(read.head),
            _ => other(stream, read),
        });
    }

    /// Passes as many bytes to the connection as it has room for.
    pub(super) fn write(&mut self, link: &mut Link, now: Time) {
        while self.waiting() > 0 {
            let head = self.to_write();
            let taken = link.write(STREAM, Written { bytes: head.len() as u64, head }, now) as usize;
            if taken == 0 {
                return;
            }
            self.wrote(taken);
        }
    }
}
