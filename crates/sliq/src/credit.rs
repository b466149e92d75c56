//! Flow control: how many segments may be sent for the first time, per stream and for all streams together, so that a slow reader bounds
//! what a receiver holds. Each segment counts once, whether it is read, given up, or ends the stream.
//!
//! Both ends know the initial windows without an exchange. The study has the window of a stream, but none for all streams.

/// Segments of a stream that the receiver may hold (the GNAT software).
pub(crate) const STREAM: u32 = 32_768;
/// Segments of all streams of a connection together that the receiver may hold.
pub(crate) const CONNECTION: u32 = 2 * STREAM;
/// The peer is told a new limit when it has grown by this fraction (1/4) of the window.
const TELL: u32 = 4;

/// The sender's side: the limit that the peer has set.
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

    /// The peer allows this many segments in all. A lower limit than before is ignored.
    pub(crate) fn raise(&mut self, limit: u32) {
        if limit.wrapping_sub(self.limit) as i32 > 0 {
            self.limit = limit;
        }
    }
}

/// The receiver's side: the limit that it sets.
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

    /// This many segments no longer take up buffer space.
    pub(crate) fn consume(&mut self, segments: u32) {
        self.consumed = self.consumed.wrapping_add(segments);
    }

    /// The new limit in segments, if the peer is to be told; it then counts as told.
    pub(crate) fn tell(&mut self) -> Option<u32> {
        let limit = self.consumed.wrapping_add(self.window);
        let due = limit.wrapping_sub(self.told) >= self.window / TELL;
        due.then(|| {
            self.told = limit;
            limit
        })
    }

    /// The packet with the last limit is lost: the peer is told again.
    pub(crate) fn tell_again(&mut self) {
        self.told = self.told.wrapping_sub(self.window / TELL);
    }

    /// Whether the peer was allowed to send this many segments in all.
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
    fn credit_is_granted_each_quarter_of_the_window_and_again_if_the_grant_is_lost() {
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
