//! The data that an application has written to a flow.

/// Number of full packets that may wait to be sent.
const ROOM: u64 = 64;

/// Waiting data, as a count of bytes.
#[derive(Debug)]
pub(crate) struct Source {
    /// Bytes of data in a full packet.
    payload: u32,
    waiting: u64,
    /// Whether the application always has more.
    endless: bool,
    closed: bool,
}

impl Source {
    /// An empty source for packets with so many bytes of data.
    pub(crate) fn new(payload: u32) -> Source {
        Source { payload, waiting: 0, endless: false, closed: false }
    }

    /// Accepts as many bytes as there is room for, and returns their number.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let room = (ROOM * u64::from(self.payload)).saturating_sub(self.waiting);
        let taken = if self.closed { 0 } else { bytes.min(room) };
        self.waiting += taken;
        taken
    }

    /// From now on there is always data.
    pub(crate) fn keep_full(&mut self) {
        self.endless = true;
    }

    /// The application writes no more.
    pub(crate) fn close(&mut self) {
        (self.closed, self.endless) = (true, false);
    }

    /// Takes the data of the next packet and returns its length in bytes; zero without data.
    pub(crate) fn take(&mut self) -> u32 {
        if self.endless {
            return self.payload;
        }
        let bytes = self.waiting.min(self.payload.into());
        self.waiting -= bytes;
        bytes as u32
    }

    /// Whether there is data to send.
    pub(crate) fn has_more(&self) -> bool {
        self.endless || self.waiting > 0
    }

    /// Whether it is closed and all its data has left.
    pub(crate) fn has_ended(&self) -> bool {
        self.closed && !self.has_more()
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_gives_full_packets_and_a_last_short_one() {
        let mut source = Source::new(1000);
        assert_eq!(source.write(2500), 2500);
        source.close();
        assert_eq!([source.take(), source.take()], [1000, 1000]);
        assert!(!source.has_ended());
        assert_eq!([source.take(), source.take()], [500, 0]);
        assert!(source.has_ended());
        assert_eq!(source.write(1), 0, "closed");
    }

    #[test]
    fn a_source_has_room_for_64_packets_and_an_endless_one_never_ends() {
        let mut source = Source::new(1000);
        assert_eq!(source.write(100_000), 64_000);
        source.keep_full();
        assert!((0..200).all(|_| source.take() == 1000) && source.has_more());
    }
}
