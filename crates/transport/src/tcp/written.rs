//! The data that the application has written to a connection. The handshake keeps it until the connection is open, then the
//! sender does.

/// The written data, and whether more will follow. Positions count from the SYN, which has position 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Position after the last byte.
    pub(crate) end: u64,
    /// Whether the application always has more: the buffer is filled again whenever it is woken.
    pub(crate) endless: bool,
    /// Whether an endless application refills the buffer at once, without waiting to be woken.
    pub(crate) greedy: bool,
    /// Whether the application has closed its side: a FIN follows the written data.
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

    /// Number of written bytes beyond this position.
    #[inline]
    pub(crate) fn beyond(&self, position: u64) -> u64 {
        self.end.saturating_sub(position)
    }
}
