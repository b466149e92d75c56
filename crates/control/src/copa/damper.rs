//! The damper of the GNAT software, for what is left of a large queue: when more than 40 packets waited and fewer than 1/delta do, the
//! window goes back to what it was when the packet that tells so was sent. It stays there while one window of packets leaves, and
//! the next queue is looked for after one more.

use crate::Ack;
use std::collections::VecDeque;
use weir_base::Bytes;

/// Packets that wait before the damper is armed (the GNAT software).
const MANY: f64 = 40.0;

/// What the damper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looks for a large queue.
    Watching,
    /// Waits for it to empty.
    Armed,
    /// Holds the window until what was sent has passed this offset.
    Holding(u64),
    /// Lets the window move, and looks for nothing until what was sent has passed this offset.
    Resting(u64),
}

/// A damper, and the windows with which what is under way was sent.
#[derive(Debug)]
pub(super) struct Damper {
    state: State,
    mss: f64,
    /// From which offset on packets were sent with which window, in packets; oldest first, and never empty.
    windows: VecDeque<(u64, f64)>,
}

impl Damper {
    /// The damper of a connection with a window of so many packets of so many bytes.
    pub(super) fn new(cwnd: f64, mss: u64) -> Damper {
        Damper { state: State::Watching, mss: mss as f64, windows: VecDeque::from([(0, cwnd)]) }
    }

    /// Packets are of another size from now on.
    pub(super) fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss.get() as f64;
    }

    /// An acknowledgement has come, while so many packets wait of which `wanted` are to. Answers the window to go back to where
    /// the damper takes hold of it.
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

    /// What is sent from now on is sent with a window of so many packets.
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
    fn the_window_goes_back_to_that_of_the_packet_and_stays_for_a_window() {
        let mut damper = Damper::new(10.0, 1000);
        // A window more is sent and another is acknowledged each time; the windows are 20, 30 and so on.
        let at = |n: u64| {
            let mut ack = ack(ms(n), 1);
            (ack.acknowledged, ack.next_sequence) = (n * 10_000, (n + 1) * 10_000);
            ack
        };
        for (n, waiting) in [(1, 39.0), (2, 41.0), (3, 20.0)] {
            assert_eq!(damper.on_ack(&at(n), waiting, 2.0), None);
            damper.note(&at(n), 10.0 * (n + 1) as f64);
        }
        // Acknowledged are the bytes from 30,000 to 40,000, which left when the window was 30.
        assert_eq!(damper.on_ack(&at(4), 1.0, 2.0), Some(30.0));
        damper.note(&at(4), 30.0);
        // It is held until 30 packets more have left, and not looked at for 30 after that.
        for n in 5..15 {
            assert_eq!(damper.on_ack(&at(n), 41.0, 2.0), None);
            assert_eq!(damper.holds(), n < 8, "{n}");
        }
        assert_eq!(damper.state, State::Armed);
    }
}
