//! Flow control: how many segments may be sent for the first time, by stream and for all streams together, so that a receiver that
//! reads slowly holds no more than that many. Each segment counts once, whether it is read, given up, or ends the stream.
//!
//! Both ends know what may be sent before anything is told. The study has the first number, for a stream, and no second.

/// Segments of a stream that the receiver may hold (the GNAT software).
pub(crate) const STREAM: u32 = 32_768;
/// Segments of all streams of a connection together.
pub(crate) const CONNECTION: u32 = 2 * STREAM;
/// The peer is told when this part of a window is free that it does not know of.
const TELL: u32 = 4;

/// What the sender may still send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    sent: u32,
    limit: u32,
}

impl Allowed {
    pub(crate) fn new(window: u32) -> Allowed {
        Allowed { sent: 0, limit: window }
    }

    /// Whether one more segment may be sent for the first time.
    pub(crate) fn has_room(&self) -> bool {
        self.limit.wrapping_sub(self.sent) as i32 > 0
    }

    /// A segment is sent for the first time.
    pub(crate) fn take(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// The peer allows so many in all. One that takes back what it has allowed is not heard.
    pub(crate) fn raise(&mut self, limit: u32) {
        if limit.wrapping_sub(self.limit) as i32 > 0 {
            self.limit = limit;
        }
    }
}

/// What the receiver allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Granted {
    window: u32,
    consumed: u32,
    told: u32,
}

impl Granted {
    pub(crate) fn new(window: u32) -> Granted {
        Granted { window, consumed: 0, told: window }
    }

    /// So many segments no longer take room.
    pub(crate) fn consume(&mut self, segments: u32) {
        self.consumed = self.consumed.wrapping_add(segments);
    }

    /// How many segments the peer may send in all, if it is to be told.
    pub(crate) fn tell(&mut self) -> Option<u32> {
        let limit = self.consumed.wrapping_add(self.window);
        let due = limit.wrapping_sub(self.told) >= self.window / TELL;
        due.then(|| {
            self.told = limit;
            limit
        })
    }

    /// What the peer was told is lost.
    pub(crate) fn tell_again(&mut self) {
        self.told = self.told.wrapping_sub(self.window / TELL);
    }

    /// Whether the peer may have sent so many.
    pub(crate) fn covers(&self, segments: u32) -> bool {
        self.consumed.wrapping_add(self.window).wrapping_sub(segments) as i32 >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_stops_at_the_limit_until_it_is_raised() {
        let mut allowed = Allowed::new(2);
        for _ in 0..2 {
            assert!(allowed.has_room());
            allowed.take();
        }
        assert!(!allowed.has_room());
        allowed.raise(1);
        assert!(!allowed.has_room());
        allowed.raise(3);
        assert!(allowed.has_room());
    }

    #[test]
    fn a_quarter_of_the_window_is_told_and_told_again_when_it_is_lost() {
        let mut granted = Granted::new(100);
        granted.consume(24);
        assert_eq!(granted.tell(), None);
        granted.consume(1);
        assert_eq!(granted.tell(), Some(125));
        assert_eq!(granted.tell(), None);
        granted.tell_again();
        assert_eq!(granted.tell(), Some(125));
        assert!(granted.covers(125) && !granted.covers(126));
    }
}
