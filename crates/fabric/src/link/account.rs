//! The part of a link's work that falls into a period. A packet in transmission at the end of a period counts there with the
//! bytes and the time sent so far; the rest counts in the next period. A link's capacity is the bytes that it sent and those
//! that it could have sent while idle, so it never sends more than its capacity, whatever its rate does.

use super::{Link, LinkCounters};
use crate::trace::bits_of;
use crate::wire::Wire;
use weir_base::{Bytes, Rate, Span, Time};

/// State that is carried from one period to the next.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Up to when idle time has been counted. On a paced link it is the end of the transmission under way.
    pub(super) since: Time,
    /// Capacity of the idle time, in bits times nanoseconds per second.
    pub(super) idle_bits: u128,
    /// Time spent sending in this period, until `since`; only for a link that is not paced.
    busy: Span,
    /// The unsent part of the transmission that was under way when the last period ended.
    unsent: Unsent,
}

/// The unsent part of a transmission that has begun.
#[derive(Debug, Clone, Copy, Default)]
struct Unsent {
    /// Bytes by codepoint on arrival.
    bytes: [u64; 4],
    /// Time that sending them takes.
    time: Span,
}

/// One or more packets in transmission together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transmission {
    /// When the transmission ends.
    pub(super) until: Time,
    /// How long it takes in all.
    pub(super) takes: Span,
    /// Bytes of its packets, by codepoint on arrival.
    pub(super) bytes: [u64; 4],
}

impl Transmission {
    fn unsent(&self, now: Time) -> Unsent {
        let time = self.until.since(now).min(self.takes);
        let part = |bytes: u64| {
            let left = (u128::from(bytes) * u128::from(time.as_nanos()))
                .div_ceil(u128::from(self.takes.as_nanos().max(1)));
            left as u64
        };
        Unsent { bytes: self.bytes.map(part), time }
    }
}

impl<P: Wire> Link<P> {
    /// The counters of the period that ends now.
    pub(crate) fn take_counters(&mut self, now: Time) -> LinkCounters {
        self.count_idle(now);
        let unsent = self.unsent(now);
        let mut counters = std::mem::take(&mut self.stats.counters);
        let before = std::mem::replace(&mut self.account.unsent, unsent);
        for (class, bytes) in counters.sent_bytes.iter_mut().enumerate() {
            *bytes = (*bytes + before.bytes[class]).saturating_sub(unsent.bytes[class]);
        }
        counters.busy = (counters.busy + before.time).saturating_sub(unsent.time);
        self.account.busy = Span::ZERO;
        if self.impairments.is_none() {
            // No packet is lost on the way.
            counters.forwarded += counters.sent.iter().sum::<u64>();
        }
        let bits = self.account.idle_bits + bits_of(Bytes::new(counters.sent_bytes.iter().sum()));
        let byte = bits_of(Bytes::new(1));
        counters.capacity = Bytes::new((bits / byte) as u64);
        self.account.idle_bits = bits % byte;
        counters
    }

    /// The unsent part of the transmission under way.
    fn unsent(&self, now: Time) -> Unsent {
        let Some(pacing) = &self.pacing else { return self.transmission().unsent(now) };
        let mut unsent = pacing.transmission.unsent(now);
        if let Some((packet, left)) = &pacing.carried {
            unsent.bytes[packet.class() as usize] += left;
        }
        unsent
    }

    /// The transmission under way, or the last one, of a link that is not paced.
    pub(super) fn transmission(&self) -> Transmission {
        let (sent, takes) = if self.last_sent.0 > 0 { self.last_sent } else { self.interrupted };
        let mut bytes = [0; 4];
        bytes[self.last_class as usize] = sent;
        Transmission { until: self.free_at, takes, bytes }
    }

    /// Counts the capacity of the idle time since the last call, at the rate that the link has had since then.
    pub(super) fn count_idle(&mut self, now: Time) {
        let since = self.account.since;
        if now < since {
            return;
        }
        let rate = self.rate.unwrap_or_default();
        self.account.idle_bits += match &mut self.pacing {
            Some(pacing) => pacing.capacity(rate, since, now),
            None => {
                let left = self.transmission().unsent(now).time;
                let busy = (self.stats.counters.busy + self.account.unsent.time).saturating_sub(left);
                let busy_since = busy.saturating_sub(std::mem::replace(&mut self.account.busy, busy));
                rate_over(rate, now.since(since).saturating_sub(busy_since))
            }
        };
        self.account.since = now;
    }
}

/// Capacity of a rate over a time, in bits times nanoseconds per second.
pub(super) fn rate_over(rate: Rate, time: Span) -> u128 {
    u128::from(rate.bits_per_sec()) * u128::from(time.as_nanos())
}
