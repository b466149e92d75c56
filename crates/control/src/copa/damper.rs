//! The damper of the GNAT software, for the end of a large queue: when more than 40 packets have waited and fewer than 1/delta still
//! wait, the window returns to its value when the packet that shows this was sent. It stays there while one window of packets
//! leaves; the damper then pauses for one more window.

use crate::Ack;
use std::collections::VecDeque;
use weir_base::Bytes;

/// Number of waiting packets above which the damper is armed (the GNAT software).
const MANY: f64 = 40.0;

/// The state of the damper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for a large queue.
    Watching,
    /// Waits for the large queue to empty.
    Armed,
    /// Holds the window until data beyond this offset has been sent.
    Holding(u64),
    /// Lets the window move, and pauses until data beyond this offset has been sent.
    Resting(u64),
}

/// A damper, with the windows at which the packets in flight were sent.
#[derive(Debug)]
pub(super) struct Damper {
    state: State,
    mss: f64,
    /// Offsets, each with the window in packets at which data from there on was sent; oldest first, and never empty.
    windows: VecDeque<(u64, f64)>,
}

impl Damper {
    /// The damper of a connection with a window of `cwnd` packets of `mss` bytes.
    pub(super) fn new(cwnd: f64, mss: u64) -> Damper {
        Damper { state: State::Watching, mss: mss as f64, windows: VecDeque::from([(0, cwnd)]) }
    }

    /// Changes the packet size.
    pub(super) fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.get() as f64;
    }

    /// Takes an acknowledgement while `waiting` packets are in the queue; `wanted` is 1/delta. Returns the window to go back to in
    /// packets when the damper begins to hold it, or else `None`.
    pub(super) fn on_ack(&mut self, ack: &Ack, waiting: f64, wanted: f64) -> Option<f64> {
        while self.windows.get(1).is_some_and(|(from, _)| *from < ack.acknowledged) {
            self.windows.pop_front();
        }
        let ends = |cwnd: f64| ack.next_sequence + (cwnd * self.mss) as u64;
        let newest = self.windows.back().map_or(0.0, |(_, cwnd)| *cwnd);
        match self.state {
            State::Watching if waiting > MANY => self.state = State::Armed,
            State::Armed if waiting < wanted => {
                let cwnd = self.windows.front().map(|(_, cwnd)| *cwnd);
                self.state = State::Holding(ends(cwnd.unwrap_or(newest)));
                return cwnd;
            }
            State::Holding(until) if ack.next_sequence > until => self.state = State::Resting(ends(newest)),
            State::Resting(until) if ack.next_sequence > until => self.state = State::Watching,
            _ => {}
        }
        None
    }

    /// Whether the window is held.
    pub(super) fn holds(&self) -> bool {
        matches!(self.state, State::Holding(_))
    }

    /// Notes that data from now on is sent with a window of `cwnd` packets.
    pub(super) fn note(&mut self, ack: &Ack, cwnd: f64) {
        match self.windows.back_mut() {
            Some(newest) if newest.0 == ack.next_sequence => newest.1 = cwnd,
            Some(newest) if newest.1 == cwnd => {}
            _ => self.windows.push_back((ack.next_sequence, cwnd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ms};

    #[test]
    fn the_window_returns_to_that_of_the_acknowledged_packet_and_stays_for_a_window() {
        let mut damper = Damper::new(10.0, 1000);
        // In each step one window is sent and one is acknowledged; the windows are 20, 30 and so on.
        let at = |n: u64| {
            let mut ack = ack(ms(n), 1);
            (ack.acknowledged, ack.next_sequence) = (n * 10_000, (n + 1) * 10_000);
            ack
        };
        for (n, waiting) in [(1, 39.0), (2, 41.0), (3, 20.0)] {
            assert_eq!(damper.on_ack(&at(n), waiting, 2.0), None);
            damper.note(&at(n), 10.0 * (n + 1) as f64);
        }
        // The bytes from 30,000 to 40,000 are acknowledged, which were sent when the window was 30.
        assert_eq!(damper.on_ack(&at(4), 1.0, 2.0), Some(30.0));
        damper.note(&at(4), 30.0);
        // The window is held until 30 more packets have been sent; the damper then pauses for 30 packets.
        for n in 5..15 {
            assert_eq!(damper.on_ack(&at(n), 41.0, 2.0), None);
            assert_eq!(damper.holds(), n < 8, "{n}");
        }
        assert_eq!(damper.state, State::Armed);
    }
}
