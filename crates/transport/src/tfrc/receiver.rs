//! TFRC's receiver (RFC 5348, section 6): the loss event rate of arriving packets, and the times of reports.

use super::{Report, WHOLE};
use crate::paced::{Data, Reporter, Writer};
use weir_base::{Span, Time};
use weir_control::tfrc::{Gaps, LossIntervals, loss_event_rate_of, throughput};

/// The receiver's state.
#[derive(Debug)]
pub(crate) struct Receiver {
    gaps: Gaps,
    history: LossIntervals,
    timeout_rtts: f64,
    /// Timestamp and arrival time of the last data packet.
    last: Option<(u32, Time)>,
    /// Round trip time that the sender has stated.
    rtt: Option<Span>,
    /// Length of the last packet.
    size: f64,
    /// Bytes since the last report, the time of that report, and bytes and length of the period before it.
    bytes: u64,
    since: Time,
    before: (u64, Span),
    /// Whether data packets have arrived since the last report.
    news: bool,
    due: Time,
}

impl Receiver {
    /// A receiver before the first packet.
    pub(crate) fn new(discounting: bool, timeout_rtts: f64) -> Receiver {
        Receiver {
            gaps: Gaps::default(),
            history: LossIntervals::new(discounting),
            timeout_rtts,
            last: None,
            rtt: None,
            size: 0.0,
            bytes: 0,
            since: Time::ZERO,
            before: (0, Span::ZERO),
            news: false,
            due: Time::NEVER,
        }
    }

    /// Receive rate in bytes a second: since the last report, or from the report before it if that is less than a round trip ago.
    fn receive_rate(&self, now: Time) -> f64 {
        let elapsed = now.since(self.since);
        let (bytes, span) = match self.rtt {
            Some(rtt) if elapsed >= rtt => (self.bytes, elapsed),
            _ => (self.bytes + self.before.0, elapsed + self.before.1),
        };
        if span.is_zero() { 0.0 } else { bytes as f64 / span.as_secs_f64() }
    }
}

impl Reporter for Receiver {
    fn arrived(&mut self, data: &Data, length: u32, now: Time) {
        let first = self.last.is_none();
        self.last = Some((data.timestamp, now));
        self.size = length.into();
        self.bytes += u64::from(length);
        self.news = true;
        if data.rtt > 0 {
            self.rtt = Some(Span::from_micros(data.rtt.into()));
        }
        let sequence = match self.gaps.highest() {
            Some(highest) => {
                highest.wrapping_add_signed((data.sequence.wrapping_sub(highest as u32) as i32).into())
            }
            None => UNWRAPPED_FROM | u64::from(data.sequence),
        };
        let (rate, size, timeout_rtts) = (self.receive_rate(now), self.size, self.timeout_rtts);
        let (history, rtt, mut event) = (&mut self.history, self.rtt.unwrap_or(Span::from_secs(1)), false);
        self.gaps.arrived(sequence, now, |losses| {
            // Losses of one run may span several round trips; only the first loss of a round trip has an effect.
            for n in 0..losses.count.min(LONGEST_RUN) {
                let equation = |p| throughput(size, rtt, p, 1.0, timeout_rtts);
                event |= history.lost(losses.first + n, 1, losses.time(n), rtt, || {
                    1.0 / loss_event_rate_of(rate, equation)
                });
            }
        });
        self.history.arrived(sequence);
        // The first packet is reported at once, and a loss event as soon as it is detected (sections 6.1, 6.3).
        if first || event {
            self.due = now;
        } else if self.due == Time::NEVER
            && let Some(rtt) = self.rtt
        {
            self.due = now.max(self.since + rtt);
        }
    }

    fn report(&mut self, to: &mut Writer, now: Time) -> bool {
        let Some((timestamp, at)) = self.last.filter(|_| self.news && self.due <= now) else { return false };
        let loss = self.history.loss_event_rate().unwrap_or(0.0);
        let report = Report {
            timestamp,
            delay: now.since(at).as_micros() as u32,
            received: self.receive_rate(now) as u32,
            loss: (loss * WHOLE) as u32,
        };
        to.put(&report.encoded());
        (self.before, self.bytes) = ((self.bytes, now.since(self.since)), 0);
        (self.since, self.news, self.due) = (now, false, Time::NEVER);
        true
    }

    fn next_timer(&self) -> Time {
        if self.news { self.due } else { Time::NEVER }
    }
}

/// First unwrapped sequence number, which leaves room for numbers below the first one.
const UNWRAPPED_FROM: u64 = 1 << 32;
/// Packets of a run of losses that are processed one by one. A longer run is an outage, with one loss event or a few.
const LONGEST_RUN: u64 = 4096;
