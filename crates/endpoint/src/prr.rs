//! Proportional rate reduction (RFC 6937) as in Linux `tcp_cwnd_reduction`: during a reduction, the window is the segments in
//! flight plus the segments that may be sent in answer to this acknowledgement.

/// A reduction under way. All counts in segments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prr {
    prior_cwnd: u32,
    delivered: u32,
    sent: u32,
    cwnd: u32,
}

impl Prr {
    /// Begins at this window (`tcp_init_cwnd_reduction`).
    pub fn begin(&mut self, cwnd: u32) {
        *self = Prr { prior_cwnd: cwnd, delivered: 0, sent: 0, cwnd };
    }
    /// The window now.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }
    /// A segment left.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgement delivered this many segments; `progress` says that the first unacknowledged byte moved and no new loss
    /// was found.
    pub fn on_ack(&mut self, delivered: u32, ssthresh: u32, in_flight: u32, progress: bool) {
        if delivered == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.delivered += delivered;
        let may_send = if in_flight > ssthresh {
            let share =
                (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior_cwnd));
            share as i64 - i64::from(self.sent)
        } else {
            let bound = (i64::from(self.delivered) - i64::from(self.sent)).max(i64::from(delivered));
            (bound + i64::from(progress)).min(i64::from(ssthresh - in_flight))
        };
        // The first retransmission goes at once.
        let may_send = may_send.max(i64::from(self.sent == 0));
        self.cwnd = (i64::from(in_flight) + may_send).max(0) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_sends_one_segment_for_every_two_delivered() {
        let mut prr = Prr::default();
        prr.begin(20);
        let (mut in_flight, mut sent) = (20, 0);
        for _ in 0..18 {
            in_flight -= 1;
            prr.on_ack(1, 10, in_flight, false);
            while in_flight < prr.cwnd() {
                prr.on_sent();
                sent += 1;
                in_flight += 1;
            }
        }
        assert_eq!((in_flight, sent), (11, 9));
    }

    #[test]
    fn below_the_threshold_prr_adds_the_delivered_segments_and_one_more_on_progress() {
        let mut prr = Prr::default();
        prr.begin(20);
        prr.on_sent();
        prr.on_ack(3, 10, 4, true);
        assert_eq!(prr.cwnd(), 8);
    }
}
