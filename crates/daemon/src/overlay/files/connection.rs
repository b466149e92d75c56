//! A TCP connection with frames in both directions. Reads wait a tenth of a second at most, so that whoever reads can look around.

use crate::transfer::Talk;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use weir_circuit::transfer::Message;

/// Longest wait for bytes.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long the other host may take no bytes: about the time of a block of 4 MiB at 500 kbit/s.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a refused host may take to hear of it.
const HEARING: Duration = Duration::from_secs(3);
/// Bytes of one read.
const PIECE: usize = 1 << 16;

/// A connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) talk: Talk,
    piece: Vec<u8>,
}

/// What a wait has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Come {
    /// Bytes, which [`Talk::next`] reads.
    Bytes,
    /// Nothing within the time.
    Nothing,
    /// The other host's end of the connection.
    End,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, talk: Talk::default(), piece: vec![0; PIECE] })
    }

    /// Waits for bytes.
    ///
    /// # Errors
    /// The connection's.
    pub(super) fn wait(&mut self) -> io::Result<Come> {
        match self.stream.read(&mut self.piece) {
            Ok(0) => Ok(Come::End),
            Ok(read) => {
                self.talk.hear(&self.piece[..read]);
                Ok(Come::Bytes)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(Come::Nothing),
                _ => Err(error),
            },
        }
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// The connection's.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(self.talk.to_write())?;
        self.talk.wrote(self.talk.waiting());
        Ok(())
    }

    /// Says a message.
    ///
    /// # Errors
    /// The connection's.
    pub(super) fn say(&mut self, message: &Message) -> io::Result<()> {
        self.talk.say(message)?;
        self.flush()
    }

    /// Tells the other host why the session ends, and waits until it has ended it: if bytes of it came later, the kernel would reset the connection, and
    /// the host might not read the reason. Returns whether the host could be told.
    pub(super) fn refuse(&mut self, why: &io::Error) -> bool {
        let told = self.say(&Message::Refuse { reason: why.to_string() }).is_ok();
        let until = Instant::now() + HEARING;
        let _ = self.stream.shutdown(Shutdown::Write);
        while told && Instant::now() < until && matches!(self.stream.read(&mut self.piece), Ok(1..)) {}
        told
    }
}
