//! Sources of frames that adapt to what their socket tells: how many bytes still wait there, and at which rate the transport sends.
//!
//! The rule: what waits and the new frame leave within [`Governor::hold`] at that rate. Where the transport tells no rate, the source's own
//! takes its place. A frame is a whole: it is sent whole, made smaller before it is sent, or not sent at all.

use crate::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::Rate;

/// How a source adapts to what its socket tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adapt {
    /// Frames keep their sizes. A frame is dropped whole if what still waits in the socket takes longer to leave than a frame's interval.
    Drop,
    /// A frame is made so small that it leaves within a frame's interval, after what still waits in the socket; one that would become
    /// smaller than `least` of its size is dropped whole.
    Shrink,
}

/// What a source knows of its socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Governor {
    /// Time within which what waits is to leave.
    hold: Span,
    /// Bytes that the source itself sends in that time.
    own: u64,
    unsent: Bytes,
    rate: Option<Rate>,
    /// Bytes that the source has sent beyond what the rate carries, as of `at`. A socket that lets every datagram leave at once has none
    /// that wait.
    ahead: u64,
    at: Time,
}

impl Governor {
    /// Of a source that sends `own` bytes in the time `hold`.
    pub(crate) fn new(hold: Span, own: u64) -> Governor {
        Governor { hold, own, unsent: Bytes::ZERO, rate: None, ahead: 0, at: Time::ZERO }
    }

    /// The socket has told this much.
    pub(crate) fn update(&mut self, unsent: Bytes, rate: Option<Rate>, now: Time) {
        let carried = self.rate.map_or(u64::MAX, |rate| rate.bytes_in(now.since(self.at)).get());
        *self = Governor { unsent, rate, ahead: self.ahead.saturating_sub(carried), at: now, ..*self };
    }

    /// The source has sent this many bytes.
    pub(crate) fn sent(&mut self, bytes: Bytes) {
        self.ahead += bytes.get();
    }

    /// Whether what waits leaves in time.
    pub(crate) fn is_clear(&self) -> bool {
        self.waits() <= self.room()
    }

    /// Bytes of a frame that leave in time after what waits.
    pub(crate) fn fits(&self) -> u64 {
        self.room().saturating_sub(self.waits())
    }

    /// When the socket told it last.
    pub(crate) fn at(&self) -> Time {
        self.at
    }

    fn waits(&self) -> u64 {
        self.unsent.get().max(self.ahead)
    }

    fn room(&self) -> u64 {
        self.rate.map_or(self.own, |rate| rate.bytes_in(self.hold).get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn what_waits_leaves_room_for_the_rest_of_an_interval() {
        let mut governor = Governor::new(Span::from_millis(40), 12_500);
        assert_eq!(governor.fits(), 12_500, "nothing was told");
        // 1 Mbit/s are 5,000 bytes in 40 ms.
        governor.update(Bytes::new(3000), Some(Rate::from_mbit_per_sec(1)), at(0));
        assert_eq!((governor.fits(), governor.is_clear()), (2000, true));
        governor.update(Bytes::new(5001), Some(Rate::from_mbit_per_sec(1)), at(40));
        assert_eq!((governor.fits(), governor.is_clear()), (0, false));
        governor.update(Bytes::new(5001), None, at(80));
        assert_eq!(governor.fits(), 12_500 - 5001, "without a rate the source's own counts");
    }

    #[test]
    fn a_source_ahead_of_its_rate_waits_although_the_socket_is_empty() {
        let mut governor = Governor::new(Span::from_millis(40), 12_500);
        let rate = Some(Rate::from_mbit_per_sec(1));
        governor.update(Bytes::ZERO, rate, at(0));
        governor.sent(Bytes::new(12_500));
        governor.update(Bytes::ZERO, rate, at(40));
        assert!(!governor.is_clear(), "7,500 bytes ahead");
        governor.update(Bytes::ZERO, rate, at(80));
        assert_eq!((governor.is_clear(), governor.fits()), (true, 2500));
        governor.update(Bytes::ZERO, rate, at(1000));
        assert_eq!(governor.fits(), 5000);
    }
}
