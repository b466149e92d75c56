//! Windows below one segment. Data leaves in quanta of one segment, or of as many as the controller requests (TCP Nice: two, so
//! that a receiver that acknowledges every second segment answers). After a quantum no new data leaves for the time in which this
//! window would have carried the quantum: `srtt * quantum / window`. Lost segments are retransmitted without this wait.

use weir_base::{Bytes, Span, Time};

/// The state of a window below one segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubMssPacing {
    /// Segments in a quantum; 0 while the window is one segment or more.
    quantum: u32,
    /// Segments of the present quantum that have yet to leave.
    left: u32,
    /// Time at which the last quantum began.
    begun: Time,
}

impl SubMssPacing {
    /// Sets the number of segments in a quantum; 0 if the window is one segment or more. `last_sent` is the time of the last segment.
    pub(crate) fn set_quantum(&mut self, segments: u32, last_sent: Time) {
        if segments == 0 || self.quantum == 0 {
            // Data sent before the window fell counts as the present quantum.
            *self = SubMssPacing { quantum: segments, left: 0, begun: last_sent };
        }
    }

    /// Whether the window is below one segment.
    #[inline]
    pub(crate) fn is_at_work(&self) -> bool {
        self.quantum > 0
    }

    /// When new data may leave. `srtt8` is the smoothed RTT in eighths of microseconds.
    pub(crate) fn next_at(&self, srtt8: u64, mss: u16, window: Bytes) -> Time {
        if self.left > 0 {
            return Time::ZERO;
        }
        let bytes = u128::from(self.quantum) * u128::from(mss);
        let nanos = u128::from(srtt8) * 125 * bytes / u128::from(window.get().max(1));
        self.begun + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }

    /// A segment of new data has left.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time) {
        if !self.is_at_work() {
            return;
        }
        if self.left == 0 {
            (self.left, self.begun) = (self.quantum - 1, now);
        } else {
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::sender::Sender;
    use crate::written::Written;
    use weir_base::Random;
    use weir_control::{Ack, Controller};

    /// A controller with a fixed window.
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
        fn set_mss(&mut self, _: Bytes) {}
    }

    const MSS: u16 = 1000;

    /// A sender with endless data and an RTT of 50 ms.
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

    /// Departure times of segments within these milliseconds, if each segment is acknowledged at once.
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
    fn a_window_of_half_a_segment_sends_one_segment_each_two_round_trips() {
        assert_eq!(departures(&mut sender(500, None), 1..=450), [100, 200, 300, 400]);
    }

    #[test]
    fn a_quantum_of_two_segments_doubles_the_wait() {
        let mut sender = sender(500, Some(2000));
        assert_eq!(departures(&mut sender, 1..=450), [200, 200, 400, 400]);
        assert_eq!(sender.cwnd(), 2);
    }

    #[test]
    fn a_window_of_a_50th_of_a_segment_sends_two_segments_each_100_round_trips() {
        // A window of 20 bytes is a 50th of a segment of 1000 bytes; 100 round trips of 50 ms are 5 s.
        assert_eq!(departures(&mut sender(20, Some(2000)), 1..=10_001), [5_000, 5_000, 10_000, 10_000]);
    }

    #[test]
    fn a_growing_window_shortens_the_wait_and_a_whole_segment_ends_it() {
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
    fn a_window_of_a_segment_or_more_sends_without_waiting() {
        let mut sender = sender(3000, Some(2000));
        let mut count = 0;
        while sender.poll(at(1)).is_some() {
            count += 1;
        }
        assert_eq!((count, sender.cwnd()), (3, 3));
    }
}
