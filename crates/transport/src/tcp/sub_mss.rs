//! Windows below one segment. What such a window stands for leaves in quanta: one segment, or as many as the controller wants
//! to leave at once (TCP Nice: two, so that a receiver that acknowledges every second one answers), and then no new data for as
//! long as a window in flight all the while would have taken to send as much, `srtt * quantum / window`. What is lost is sent
//! again without waiting.

use super::sender::Sender;
use weir_base::{Span, Time};

/// Where a window below one segment is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubMssPacing {
    /// Segments of a quantum; 0 while the window is a segment or more.
    quantum: u32,
    /// Those that are yet to leave of the quantum that has begun.
    left: u32,
    /// When the last quantum began.
    begun: Time,
}

impl Sender {
    /// The window is a segment or more, or so many segments leave at once.
    pub(crate) fn set_quantum(&mut self, segments: u32) {
        if segments == 0 || self.sub_mss.quantum == 0 {
            // What left before the window fell counts as the quantum that has begun.
            self.sub_mss = SubMssPacing { quantum: segments, left: 0, begun: self.last_sent };
        }
    }

    /// Whether the window is below one segment.
    #[inline]
    pub(crate) fn is_sub_mss(&self) -> bool {
        self.sub_mss.quantum > 0
    }

    /// When new data may leave, as far as the pacer and a window below one segment go.
    #[inline]
    pub(crate) fn new_data_ready_at(&self) -> Time {
        let ready = self.pacer.ready_at();
        if self.is_sub_mss() { ready.max(self.next_quantum_at()) } else { ready }
    }

    fn next_quantum_at(&self) -> Time {
        let SubMssPacing { quantum, left, begun } = self.sub_mss;
        if left > 0 {
            return Time::ZERO;
        }
        // The smoothed RTT is in eighths of microseconds.
        let bytes = u128::from(quantum) * u128::from(self.mss);
        let nanos =
            u128::from(self.rtt.srtt8()) * 125 * bytes / u128::from(self.controller_window.get().max(1));
        begun + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }

    /// New data has left.
    #[inline]
    pub(crate) fn count_quantum(&mut self, now: Time) {
        if self.is_sub_mss() {
            let SubMssPacing { quantum, left, .. } = self.sub_mss;
            if left == 0 {
                self.sub_mss = SubMssPacing { left: quantum - 1, begun: now, quantum };
            } else {
                self.sub_mss.left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::Config;
    use crate::tcp::written::Written;
    use weir_base::{Bytes, Random};
    use weir_control::{Ack, Controller};

    /// A window that stays.
    struct Fixed {
        window: u64,
        quantum: Option<u64>,
    }

    impl Controller for Fixed {
        fn on_ack(&mut self, _: &Ack, _: &mut Random) {}
        fn window(&self) -> Bytes {
            Bytes::new(self.window)
        }
        fn send_quantum(&self) -> Option<Bytes> {
            self.quantum.map(Bytes::new)
        }
    }

    const MSS: u16 = 1000;

    /// A sender with more than it can send, over 50 ms.
    fn sender(window: u64, quantum: Option<u64>) -> Sender {
        let config = Config { mss: MSS, ..Config::new("newreno".parse().unwrap()) };
        let mut sender = Sender::new(&config, Written::default(), Time::ZERO, 1 << 30, Some(50_000));
        sender.written.endless = true;
        give(&mut sender, window, quantum);
        sender
    }

    fn give(sender: &mut Sender, window: u64, quantum: Option<u64>) {
        sender.controller = Box::new(Fixed { window, quantum });
        sender.read_window();
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// When segments leave within so many milliseconds, if each is acknowledged at once.
    fn departures(sender: &mut Sender, millis: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        let mut left = Vec::new();
        for now in millis {
            while let Some(outgoing) = sender.poll(at(now)) {
                assert!(outgoing.new, "nothing was lost");
                left.push(now);
                sender.board.pop();
            }
        }
        left
    }

    #[test]
    fn half_a_segment_leaves_as_one_each_two_round_trips() {
        assert_eq!(departures(&mut sender(500, None), 1..=450), [100, 200, 300, 400]);
    }

    #[test]
    fn two_at_once_wait_twice_as_long() {
        let mut sender = sender(500, Some(2000));
        assert_eq!(departures(&mut sender, 1..=450), [200, 200, 400, 400]);
        assert_eq!(sender.cwnd(), 2);
    }

    #[test]
    fn a_48th_of_a_segment_leaves_as_two_each_96_round_trips() {
        // 4.8 s and, since 1000 bytes have no 48th, 0.8 % more.
        assert_eq!(departures(&mut sender(20, Some(2000)), 1..=10_001), [5_000, 5_000, 10_000, 10_000]);
    }

    #[test]
    fn a_window_that_grows_meanwhile_shortens_the_wait_and_a_whole_segment_ends_it() {
        let mut sender = sender(100, None);
        assert!(departures(&mut sender, 1..=300).is_empty());
        assert_eq!(sender.new_data_ready_at(), at(500));
        give(&mut sender, 125, None);
        assert_eq!(departures(&mut sender, 301..=401), [400]);
        assert_eq!(sender.new_data_ready_at(), at(800));
        give(&mut sender, 1000, None);
        assert!(!sender.is_sub_mss() && sender.new_data_ready_at() <= at(401));
    }

    #[test]
    fn a_window_of_a_segment_or_more_waits_for_nothing_whatever_leaves_at_once() {
        let mut sender = sender(3000, Some(2000));
        let mut count = 0;
        while sender.poll(at(1)).is_some() {
            count += 1;
        }
        assert_eq!((count, sender.cwnd()), (3, 3));
    }
}
