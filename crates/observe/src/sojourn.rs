//! A queue of the running kernel, from what its tracepoints say: which packets came, which left, and which were dropped. Pure: events with
//! their times go in, numbers come out. `weir observe` brings the events of a device.
//!
//! A packet is known by its address in the kernel. A queue that splits a large packet (GSO) into its segments (tbf does) has new
//! addresses for them; they are found by their flow, those of TCP by their sequence numbers too.

mod header;
mod waiting;

pub use header::HEADER;

use crate::Times;
use header::Header;
use serde::Serialize;
use std::collections::BTreeMap;
use waiting::{Found, Waiting};
use weir_base::{Ecn, Histogram, Span, Time};

/// A packet of which nothing is heard for so long counts as lost from sight.
const FORGOTTEN: Span = Span::from_secs(10);

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It came to the queue.
    Came,
    /// It left the queue for the device. The queue's own counters, if they are known.
    Left(Option<Counted>),
    /// It was dropped, for this reason of the kernel.
    Dropped(u32),
    /// It went on to the device. Without having waited it has passed an empty queue.
    Started,
}

/// What a queue has counted by itself, a packet that leaves included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Segments that were sent.
    pub sent: u64,
    /// Packets that were dropped; one of several segments counts once.
    pub drops: u64,
}

/// What was counted between the first and the last packet that left, by the queue and by its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Compared {
    /// By the queue.
    pub counted: Counted,
    /// By its events.
    pub seen: Counted,
}

/// An event of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub what: What,
    /// The packet's address.
    pub packet: u64,
    /// Segments that it consists of, at least 1.
    pub segments: u32,
    /// Its length from the link's header on.
    pub bytes: u32,
    /// Its first bytes from the IP header on.
    pub header: &'a [u8; HEADER],
}

/// What happened in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct QueuePeriod {
    /// When it began, in seconds since the first one.
    pub from_s: f64,
    /// Segments that came.
    pub came: u64,
    /// Segments that left, and their bytes.
    pub left: u64,
    /// Bytes of the segments that left, from the link's header on.
    pub left_bytes: u64,
    /// Segments that were dropped.
    pub dropped: u64,
    /// Segments that were marked (CE).
    pub marked: u64,
    /// Mean time in the queue of those that left, in milliseconds.
    pub sojourn_mean_ms: Option<f64>,
    /// The longest of them, in milliseconds.
    pub sojourn_max_ms: Option<f64>,
    /// Segments in the queue at its end.
    pub waiting: u64,
}

/// What was seen of a queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueReport {
    /// From the first to the last event, in seconds.
    pub duration_s: f64,
    /// Segments that came.
    pub came: u64,
    /// Segments that left after they had come to the queue.
    pub left: u64,
    /// Segments that passed an empty queue without waiting.
    pub passed: u64,
    /// Segments that left or passed, those too of which it was not seen that they came: what the queue's own counter counts.
    pub sent: u64,
    /// Bytes of the segments that left or passed, from the link's header on.
    pub sent_bytes: u64,
    /// The rate of these, from the first to the last event; `None` if there is one event at most.
    pub rate_mbps: Option<f64>,
    /// Segments that were dropped, by the kernel's reason.
    pub dropped: BTreeMap<u32, u64>,
    /// Segments that came, by the codepoint of their ECN field on arrival: Not-ECT, ECT(1), ECT(0), CE.
    pub came_by_codepoint: [u64; 4],
    /// The same of those that were dropped.
    pub dropped_by_codepoint: [u64; 4],
    /// The same of those that the queue has marked (CE).
    pub marked_by_codepoint: [u64; 4],
    /// Time in the queue of segments that left; those that passed it have none.
    pub sojourn_ms: Option<Times>,
    /// Time from arrival to the drop: microseconds for those that were refused.
    pub dropped_after_ms: Option<Times>,
    /// Segments in the queue at the end.
    pub waiting: u64,
    /// The most segments that were in it.
    pub most_waiting: u64,
    /// The most bytes that were in it.
    pub most_waiting_bytes: u64,
    /// Segments that left or were dropped, of which it was not seen that they came. Those of the first moments, which came before the
    /// observation began, are not counted.
    pub unmatched: u64,
    /// Segments that came, of which no more was heard.
    pub forgotten: u64,
    /// The queue's own counters, and the same of the events; `None` for a queue whose counters are kept by processor.
    pub compared: Option<Compared>,
}

/// Follows the packets of a queue.
#[derive(Debug)]
pub struct QueueWatch {
    period: Span,
    waiting: Waiting,
    first: Option<Time>,
    last: Time,
    /// The first segment that came and left; what left before it had come before the observation.
    is_settled: bool,
    totals: QueueReport,
    /// The queue's counters when the first packet left, and packets that were dropped since.
    counted: Option<Counted>,
    dropped_since: u64,
    /// Segments that passed since the last packet that left.
    passed_since: u64,
    sojourn: Histogram,
    dropped_after: Histogram,
    now: QueuePeriod,
    now_sojourn: Histogram,
    ends: Time,
    swept: Time,
}

impl QueueWatch {
    /// One that has seen nothing. `period` is the length of its periods, above 0.
    pub fn new(period: Span) -> QueueWatch {
        QueueWatch {
            period: period.max(Span::from_nanos(1)),
            waiting: Waiting::default(),
            first: None,
            last: Time::ZERO,
            is_settled: false,
            totals: QueueReport::default(),
            counted: None,
            dropped_since: 0,
            passed_since: 0,
            sojourn: Histogram::new(),
            dropped_after: Histogram::new(),
            now: QueuePeriod::default(),
            now_sojourn: Histogram::new(),
            ends: Time::NEVER,
            swept: Time::ZERO,
        }
    }

    /// An event; they come in their order. `each` is handed the periods that have ended before it.
    pub fn event(&mut self, event: &Event<'_>, each: &mut dyn FnMut(&QueuePeriod)) {
        let Event { at, what, packet, segments, .. } = *event;
        let first = *self.first.get_or_insert(at);
        if self.ends == Time::NEVER {
            (self.ends, self.swept) = (first + self.period, first);
        }
        while self.ends <= at {
            self.close(each);
        }
        self.last = self.last.max(at);
        if at.since(self.swept) >= Span::from_secs(1) {
            self.swept = at;
            self.totals.forgotten += self.waiting.forget(at, FORGOTTEN);
        }
        let header = Header::of(event.header);
        let segments = u64::from(segments.max(1));
        match what {
            What::Came => {
                let codepoint = header.ecn();
                self.totals.came += segments;
                self.now.came += segments;
                self.totals.came_by_codepoint[codepoint as usize] += segments;
                self.totals.forgotten += self.waiting.came(event, &header);
                let (count, bytes) = self.waiting.held();
                self.totals.most_waiting = self.totals.most_waiting.max(count);
                self.totals.most_waiting_bytes = self.totals.most_waiting_bytes.max(bytes.get());
            }
            What::Left(counted) => {
                self.totals.sent += segments;
                if let Some(counted) = counted {
                    self.compare(counted, segments);
                }
                match self.waiting.take(event, &header) {
                    Some(found) => self.left(event, &found, header.ecn()),
                    None => self.unmatched(segments),
                }
            }
            What::Started => {
                // One that has left the queue before is known no more.
                if let Some(found) = self.waiting.take_whole(packet) {
                    self.totals.passed += found.segments;
                    self.passed_since += found.segments;
                    self.totals.sent += found.segments;
                    self.count_sent(event, &found);
                }
            }
            What::Dropped(reason) => {
                self.dropped_since += 1;
                match self.waiting.take(event, &header) {
                    Some(found) => self.dropped(event, &found, reason),
                    None => {
                        *self.totals.dropped.entry(reason).or_default() += segments;
                        self.unmatched(segments);
                    }
                }
            }
        }
    }

    /// A packet has left, after which the queue has counted so much. Several that left at once tell the same.
    fn compare(&mut self, counted: Counted, segments: u64) {
        let begin = *self.counted.get_or_insert_with(|| {
            (self.dropped_since, self.passed_since) = (0, 0);
            counted
        });
        let passed = std::mem::take(&mut self.passed_since);
        let seen = self.totals.compared.map_or(0, |compared| compared.seen.sent);
        // What left with the first one is in the first counters already.
        let more = if counted.sent == begin.sent { 0 } else { segments };
        self.totals.compared = Some(Compared {
            counted: Counted {
                sent: counted.sent.wrapping_sub(begin.sent),
                drops: counted.drops.wrapping_sub(begin.drops) & u64::from(u32::MAX),
            },
            seen: Counted { sent: seen + more + passed, drops: self.dropped_since },
        });
    }

    fn left(&mut self, event: &Event<'_>, found: &Found, codepoint: Ecn) {
        self.is_settled = true;
        let time = event.at.since(found.came);
        for _ in 0..found.segments {
            self.sojourn.record(time);
            self.now_sojourn.record(time);
        }
        self.totals.left += found.segments;
        if codepoint == Ecn::Ce && found.codepoint != Ecn::Ce {
            self.totals.marked_by_codepoint[found.codepoint as usize] += found.segments;
            self.now.marked += found.segments;
        }
        self.count_sent(event, found);
    }

    fn count_sent(&mut self, event: &Event<'_>, found: &Found) {
        self.now.left += found.segments;
        self.now.left_bytes += u64::from(event.bytes);
        self.totals.sent_bytes += u64::from(event.bytes);
    }

    fn dropped(&mut self, event: &Event<'_>, found: &Found, reason: u32) {
        *self.totals.dropped.entry(reason).or_default() += found.segments;
        self.totals.dropped_by_codepoint[found.codepoint as usize] += found.segments;
        self.now.dropped += found.segments;
        let time = event.at.since(found.came);
        (0..found.segments).for_each(|_| self.dropped_after.record(time));
    }

    /// Segments of which it was not seen that they came. Until one was, they may have come before the observation.
    fn unmatched(&mut self, segments: u64) {
        if self.is_settled {
            self.totals.unmatched += segments;
        }
    }

    fn close(&mut self, each: &mut dyn FnMut(&QueuePeriod)) {
        let mut period = std::mem::take(&mut self.now);
        period.sojourn_mean_ms = self.now_sojourn.mean().map(Span::as_millis_f64);
        period.sojourn_max_ms = self.now_sojourn.max().map(Span::as_millis_f64);
        period.waiting = self.waiting.held().0;
        let since = self.ends.since(self.first.unwrap_or(self.ends));
        period.from_s = (since - self.period).as_secs_f64();
        self.now_sojourn.clear();
        self.ends += self.period;
        each(&period);
    }

    /// What was seen until now.
    pub fn report(&self) -> QueueReport {
        let duration = self.last.since(self.first.unwrap_or(self.last)).as_secs_f64();
        let rate = self.totals.sent_bytes as f64 * 8e-6 / duration;
        QueueReport {
            duration_s: duration,
            rate_mbps: (duration > 0.0).then_some(rate),
            sojourn_ms: Times::of(&self.sojourn),
            dropped_after_ms: Times::of(&self.dropped_after),
            waiting: self.waiting.held().0,
            ..self.totals.clone()
        }
    }
}

impl Default for QueueReport {
    fn default() -> QueueReport {
        QueueReport {
            duration_s: 0.0,
            came: 0,
            left: 0,
            passed: 0,
            sent: 0,
            sent_bytes: 0,
            rate_mbps: None,
            dropped: BTreeMap::new(),
            came_by_codepoint: [0; 4],
            dropped_by_codepoint: [0; 4],
            marked_by_codepoint: [0; 4],
            sojourn_ms: None,
            dropped_after_ms: None,
            waiting: 0,
            most_waiting: 0,
            most_waiting_bytes: 0,
            unmatched: 0,
            forgotten: 0,
            compared: None,
        }
    }
}

impl QueueReport {
    /// Segments that were dropped.
    pub fn drops(&self) -> u64 {
        self.dropped.values().sum()
    }
}

#[cfg(test)]
mod tests;
