//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation), as in Linux `tcp_rate.c`: the data delivered between the
//! sending and the delivery of a segment, over the longer of the send and the acknowledgement interval.

use super::rack::sent_after;
use super::scoreboard::Sent;
use weir_base::{Bytes, Rate, Span};
use weir_control::RateSample;

/// Counters of a connection. Times are in microseconds; `delivered` begins at 1 with the handshake, as in Linux.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) delivered: u64,
    delivered_at: u64,
    first_sent_at: u64,
    /// Number of delivered segments up to which the application limits sending; 0 if it does not.
    app_limited: u64,
    /// Delivered segments, interval and application limit of the sample that is kept.
    best: (u32, u64, bool),
}

/// The state of the sample of one acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sampling {
    pub(crate) prior_delivered: u64,
    prior_at: u64,
    send_interval: u64,
    last_end: u64,
    app_limited: bool,
}

impl Delivery {
    pub(crate) fn new(now: u64) -> Delivery {
        Delivery { delivered: 1, delivered_at: now, first_sent_at: now, app_limited: 0, best: (0, 0, false) }
    }

    /// A segment leaves (`tcp_rate_skb_sent`).
    #[inline]
    pub(crate) fn on_sent(&mut self, sent: &mut Sent, now: u64, idle: bool) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        sent.first_sent_at = self.first_sent_at;
        // A stamp of 0 means that the sample is taken, so the stamp itself is never 0.
        sent.delivered_at = self.delivered_at.max(1);
        sent.delivered = self.delivered;
        sent.app_limited = self.app_limited != 0;
    }

    /// A segment is delivered (`tcp_rate_skb_delivered`).
    pub(crate) fn on_delivered(&mut self, sampling: &mut Sampling, sent: &Sent) {
        if sent.delivered_at == 0 {
            return;
        }
        if sampling.prior_delivered == 0
            || sent_after(sent.sent_at, sent.end(), self.first_sent_at, sampling.last_end)
        {
            sampling.prior_delivered = sent.delivered;
            sampling.prior_at = sent.delivered_at;
            sampling.app_limited = sent.app_limited;
            sampling.last_end = sent.end();
            sampling.send_interval = sent.sent_at.saturating_sub(sent.first_sent_at);
            self.first_sent_at = sent.sent_at;
        }
    }

    /// Ends the acknowledgement (`tcp_rate_gen`). Returns its sample; `None` if it has none or the interval is below the RTT.
    #[inline(always)]
    pub(crate) fn sample(
        &mut self,
        sampling: &Sampling,
        now: u64,
        newly: u32,
        losses: u32,
        min_rtt: u64,
    ) -> Option<RateSample> {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if newly > 0 {
            self.delivered_at = now;
        }
        if sampling.prior_at == 0 {
            return None;
        }
        let delivered = (self.delivered - sampling.prior_delivered) as u32;
        let interval = sampling.send_interval.max(now.saturating_sub(sampling.prior_at));
        // Faster than a round trip: retransmissions and originals were confused.
        if interval < min_rtt || interval == 0 {
            return None;
        }
        let (best, best_interval, _) = self.best;
        let is_faster = || u64::from(delivered) * best_interval >= u64::from(best) * interval;
        if !sampling.app_limited || is_faster() {
            self.best = (delivered, interval, sampling.app_limited);
        }
        Some(RateSample {
            delivered,
            interval: Span::from_micros(interval),
            prior_delivered: sampling.prior_delivered,
            losses,
            app_limited: sampling.app_limited,
        })
    }

    /// The application has no data to send although the window allows it (`tcp_rate_check_app_limited`).
    pub(crate) fn limited_by_application(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether the application limits sending (`tp->app_limited`).
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// Whether the application limited the kept sample (`tp->rate_app_limited`).
    pub(crate) fn rate_is_app_limited(&self) -> bool {
        self.best.2
    }

    /// The kept sample as a rate of payload, as in `tcp_info`; `None` before the first sample.
    pub(crate) fn rate(&self, mss: u16) -> Option<Rate> {
        let (delivered, interval, _) = self.best;
        (interval > 0).then(|| {
            Rate::from_bytes_in(
                Bytes::new(u64::from(delivered) * u64::from(mss)),
                Span::from_micros(interval),
            )
        })
    }
}
