//! What the application has written to a connection. Before the connection is open the handshake keeps it, from then on the
//! sender does.

/// What the application has written, and whether more is to come. Positions count from the SYN's, which is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Position after the last byte.
    pub(crate) end: u64,
    /// Whether the application always has more: the buffer is filled again whenever it is woken.
    pub(crate) endless: bool,
    /// Whether it then fills the buffer all the time.
    pub(crate) greedy: bool,
    /// Whether it has closed its side: a FIN follows what was written.
    pub(crate) closed: bool,
}

impl Default for Written {
    fn default() -> Written {
        Written { end: 1, endless: false, greedy: false, closed: false }
    }
}

impl Written {
    /// From now on the application always has data.
    pub(crate) fn write_forever(&mut self, greedy: bool) {
        (self.endless, self.greedy) = (true, greedy);
    }

    /// The application has written its last byte.
    pub(crate) fn close(&mut self) {
        (self.endless, self.closed) = (false, true);
    }

    /// How much lies beyond this position.
    #[inline]
    pub(crate) fn beyond(&self, position: u64) -> u64 {
        self.end.saturating_sub(position)
    }
}
