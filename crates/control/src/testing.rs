//! The common part of the controllers' tests: acknowledgements with given values, and an ideal path that drives a controller
//! segment by segment. The path has one bottleneck with a first-in, first-out buffer, acknowledgements that are neither lost nor
//! delayed, and an application that always has data. Lost segments are not retransmitted; newer data takes their place.

use crate::{
    Ack, Codepoint, Config, Congestion, Controller, Delivered, Phase, RateSample, Recovery, RttSample, Sent,
    Signal, Start, Timeout, Timestamps,
};
use std::collections::VecDeque;
use weir_base::{Bytes, Random, Rate, Span, Time};

/// Segment payload in every test.
pub(crate) const MSS: Bytes = Bytes::new(1000);
/// Shortest retransmission timeout (Linux `TCP_RTO_MIN`).
const MIN_RTO: Span = Span::from_millis(200);

/// The start of a connection: 10 segments, no pacing.
pub(crate) fn start() -> Start {
    Start { now: Time::ZERO, mss: MSS, initial_window: 10, paced: false, rtt: None }
}

/// An instant in milliseconds.
pub(crate) fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// An acknowledgement of `segments` at the time `now`, in a connection that fills its window.
pub(crate) fn ack(now: Time, segments: u32) -> Ack {
    Ack {
        now,
        delivered_segments: segments,
        delivered_bytes: Bytes::new(u64::from(segments) * MSS.get()),
        rtt: None,
        srtt: None,
        timestamps: None,
        rate: None,
        delivered: 0,
        lost_segments: 0,
        lost: 0,
        departure: now,
        ce_packets: 0,
        in_flight_before: Bytes::ZERO,
        in_flight: Bytes::ZERO,
        next_sequence: 0,
        acknowledged: 0,
        round_start: false,
        cwnd_limited: true,
        may_grow: true,
        phase: Phase::Open,
    }
}

/// An acknowledgement as of [`ack`], with an RTT sample.
pub(crate) fn ack_with_rtt(now: Time, segments: u32, rtt: Span) -> Ack {
    Ack {
        rtt: Some(RttSample { rtt, delayed: false, queued_back: Span::ZERO }),
        srtt: Some(rtt),
        ..ack(now, segments)
    }
}

/// Offset of the clocks of a path's ends, in milliseconds.
const APART: u32 = 70_000;

/// An acknowledgement with timestamps that show a one-way delay of `delay` milliseconds plus the clocks' offset.
pub(crate) fn stamped(ack: Ack, delay: u32) -> Ack {
    let own_ticks = millis(ack.now);
    let timestamps = Timestamps {
        peer_ticks: APART + own_ticks + delay,
        echoed_ticks: own_ticks,
        tick: Span::from_millis(1),
    };
    Ack { timestamps: Some(timestamps), ..ack }
}

/// A delivery of `segments` at the time `now`, without marks.
pub(crate) fn delivered(now: Time, segments: u32) -> Delivered {
    Delivered {
        now,
        segments,
        acked_segments: segments,
        sacked_out: 0,
        ce_packets: 0,
        rtt: None,
        timestamps: None,
        own_ticks: millis(now),
        next_sequence: 0,
        acknowledged: 0,
        phase: Phase::Open,
        predicted: false,
    }
}

/// A loss at a time.
pub(crate) fn loss(now: Time) -> Congestion {
    Congestion { now, signal: Signal::Loss, in_flight: Bytes::ZERO }
}

/// An ECN echo at a time.
pub(crate) fn mark(now: Time) -> Congestion {
    Congestion { signal: Signal::Ecn, ..loss(now) }
}

/// A timeout that causes a reduction.
pub(crate) fn timeout(now: Time) -> Timeout {
    Timeout { now, in_flight: Bytes::ZERO, next_sequence: 0, reduce: true, delivered: 0, lost: 0 }
}

/// A value of a controller's state; `None` if it reports no such name.
pub(crate) fn state_of(controller: &dyn Controller, name: &str) -> Option<f64> {
    let mut found = None;
    controller.state(&mut |n, value| {
        if n == name {
            found = Some(value);
        }
    });
    found
}

/// A clock of milliseconds, as timestamps carry it.
fn millis(now: Time) -> u32 {
    now.since(Time::ZERO).as_millis() as u32
}

/// A bottleneck.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// Rate of the payload; headers do not count.
    pub(crate) rate: Rate,
    /// Round trip without any queue.
    pub(crate) rtt: Span,
    /// Segments that may wait, beside the one that is being sent.
    pub(crate) buffer: u32,
    /// Number of waiting segments from which on ECN-capable ones are marked; `None` for no marks.
    pub(crate) mark: Option<u32>,
}

/// A segment in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    sequence: u64,
    sent: Time,
    /// When its acknowledgement arrives; `None` if the segment was dropped.
    acked: Option<Time>,
    marked: bool,
    prior_delivered: u64,
    prior_delivered_at: Time,
    first_sent: Time,
}

/// Proportional rate reduction, in segments (RFC 6937 with its conservative bound).
#[derive(Debug, Default)]
struct Prr {
    flight_before: u64,
    delivered: u64,
    out: u64,
    /// Segments that may leave for the newest acknowledgement.
    allowance: u64,
}

impl Prr {
    fn on_ack(&mut self, in_flight: u64, window: u64) {
        self.delivered += 1;
        self.allowance = if in_flight > window {
            (self.delivered * window).div_ceil(self.flight_before.max(1)).saturating_sub(self.out)
        } else {
            self.delivered.saturating_sub(self.out).max(1).min(window - in_flight)
        };
    }
}

/// One connection over one link.
pub(crate) struct Path {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) now: Time,
    /// Segments that were dropped, and segments that were marked, so far.
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    /// Segments delivered so far.
    pub(crate) delivered: u64,
    link: Link,
    random: Random,
    flights: VecDeque<Flight>,
    next_sequence: u64,
    link_free: Time,
    next_send: Time,
    srtt: Option<Span>,
    delivered_at: Time,
    /// When the newest delivered segment was sent.
    first_sent: Time,
    round_end: u64,
    /// Recovery, or a reduction, until this offset is acknowledged.
    recovery_end: Option<u64>,
    prr: Prr,
    /// Losses and marks of data before this offset have already caused a reduction.
    answered: u64,
    phase: Phase,
}

impl Path {
    /// A connection of the named controller with default parameters.
    pub(crate) fn new(controller: &str, link: Link) -> Path {
        let config: Config = controller.parse().unwrap();
        Path::of(&config, link)
    }

    /// A connection of this controller.
    pub(crate) fn of(config: &Config, link: Link) -> Path {
        Path {
            controller: config.build(&start()),
            now: Time::ZERO,
            drops: 0,
            marks: 0,
            delivered: 0,
            link,
            random: Random::stream(1, "path"),
            flights: VecDeque::new(),
            next_sequence: 0,
            link_free: Time::ZERO,
            next_send: Time::ZERO,
            srtt: None,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            round_end: 0,
            recovery_end: None,
            prr: Prr::default(),
            answered: 0,
            phase: Phase::Open,
        }
    }

    /// The window in whole segments.
    pub(crate) fn cwnd(&self) -> u64 {
        self.controller.window().get() / MSS.get()
    }

    /// Runs for `samples` times `part`; returns the window at the end of each part.
    pub(crate) fn trace(&mut self, part: Span, samples: usize) -> Vec<u64> {
        (0..samples)
            .map(|_| {
                let until = self.now + part;
                while self.step(until) {}
                self.now = until;
                self.cwnd()
            })
            .collect()
    }

    /// Runs until the controller responds to a loss or a mark, but at most for `limit`.
    pub(crate) fn run_until_congestion(&mut self, limit: Span) {
        let until = self.now + limit;
        while self.recovery_end.is_none() && self.step(until) {}
    }

    /// Handles the next event, if it is before `until`; returns whether there was one.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.flights.iter().find_map(|f| f.acked);
        let expiry = self.flights.front().map(|f| f.sent + self.rto());
        let sending = self.may_send().then_some(self.next_send.max(self.now));
        let Some(next) = [arrival.or(expiry), sending].into_iter().flatten().min() else { return false };
        if next >= until {
            return false;
        }
        self.now = next;
        if sending == Some(next) {
            self.send();
        } else if arrival.is_some() {
            self.acknowledge();
        } else {
            self.expire();
        }
        true
    }

    fn rto(&self) -> Span {
        MIN_RTO + self.srtt.unwrap_or(Span::from_secs(1))
    }

    fn in_flight(&self) -> Bytes {
        Bytes::new(self.flights.len() as u64 * MSS.get())
    }

    fn may_send(&self) -> bool {
        if self.flights.is_empty() {
            return true; // even where the window is below one segment; `next_send` says when
        }
        match self.recovery_end.is_some() && self.controller.recovery() == Recovery::Proportional {
            true => self.prr.allowance > 0,
            false => self.in_flight() + MSS <= self.controller.window(),
        }
    }

    fn send(&mut self) {
        let service = self.link.rate.time_to_send(MSS);
        let waiting =
            self.link_free.since(self.now).as_nanos().div_ceil(service.as_nanos()).saturating_sub(1);
        let dropped = waiting >= u64::from(self.link.buffer) && self.link_free > self.now;
        let capable = self.controller.codepoint() != Codepoint::Off;
        let marked = capable && self.link.mark.is_some_and(|mark| waiting >= u64::from(mark));
        if !dropped {
            self.link_free = self.link_free.max(self.now) + service;
        }
        if self.controller.wants_sent() {
            self.controller.on_sent(&Sent {
                now: self.now,
                bytes: MSS,
                in_flight_before: self.in_flight(),
                retransmission: false,
            });
        }
        self.flights.push_back(Flight {
            sequence: self.next_sequence,
            sent: self.now,
            acked: (!dropped).then_some(self.link_free + self.link.rtt),
            marked: marked && !dropped,
            prior_delivered: self.delivered,
            prior_delivered_at: self.delivered_at,
            first_sent: self.first_sent,
        });
        self.next_sequence += MSS.get();
        self.prr.out += 1;
        self.prr.allowance = self.prr.allowance.saturating_sub(1);
        let window = self.controller.window();
        if window < MSS {
            let share = MSS.get() as f64 / window.get() as f64;
            let wait = self.srtt.map_or(0.0, Span::as_secs_f64) * share;
            self.next_send = self.now + Span::from_secs_f64(wait);
        }
        if let Some(rate) = self.controller.pacing_rate() {
            self.next_send = self.next_send.max(self.now) + rate.time_to_send(MSS);
        }
    }

    /// Acknowledges the oldest segment that was not dropped; those before it are lost.
    fn acknowledge(&mut self) {
        let in_flight_before = self.in_flight();
        let (mut losses, mut news) = (0, false);
        while let Some(lost) = self.flights.front().filter(|f| f.acked.is_none()) {
            losses += 1;
            news |= lost.sequence >= self.answered;
            self.flights.pop_front();
        }
        let Some(flight) = self.flights.pop_front() else { return };
        self.drops += u64::from(losses);
        self.marks += u64::from(flight.marked);
        let acknowledged = flight.sequence + MSS.get();
        self.tell_delivered(&flight, acknowledged);
        self.leave_recovery(acknowledged);
        if news {
            self.congestion(Signal::Loss, in_flight_before);
        } else if flight.marked && flight.sequence >= self.answered {
            self.congestion(Signal::Ecn, in_flight_before);
        }
        self.prr.on_ack(self.flights.len() as u64, self.cwnd());
        let ack = self.make_ack(&flight, losses, in_flight_before, acknowledged);
        self.controller.on_ack(&ack, &mut self.random);
        if self.controller.wants_reduction() {
            self.congestion(Signal::Own, in_flight_before);
        }
    }

    fn tell_delivered(&mut self, flight: &Flight, acknowledged: u64) {
        if self.controller.wants_delivered() {
            self.controller.on_delivered(&Delivered {
                ce_packets: u32::from(flight.marked),
                rtt: Some(RttSample {
                    rtt: self.now.since(flight.sent),
                    delayed: false,
                    queued_back: Span::ZERO,
                }),
                timestamps: Some(self.timestamps(flight)),
                next_sequence: self.next_sequence,
                acknowledged,
                phase: self.phase,
                ..delivered(self.now, 1)
            });
        }
    }

    fn timestamps(&self, flight: &Flight) -> Timestamps {
        Timestamps {
            peer_ticks: APART + millis(self.now - self.link.rtt / 2),
            echoed_ticks: millis(flight.sent),
            tick: Span::from_millis(1),
        }
    }

    fn make_ack(&mut self, flight: &Flight, losses: u32, in_flight_before: Bytes, acknowledged: u64) -> Ack {
        let rtt = self.now.since(flight.sent);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        self.delivered += 1;
        self.delivered_at = self.now;
        self.first_sent = flight.sent;
        let round_start = acknowledged > self.round_end;
        if round_start {
            self.round_end = self.next_sequence;
        }
        Ack {
            rtt: Some(RttSample { rtt, delayed: false, queued_back: Span::ZERO }),
            srtt: self.srtt,
            rate: Some(RateSample {
                delivered: (self.delivered - flight.prior_delivered) as u32,
                interval: self.now.since(flight.prior_delivered_at).max(flight.sent.since(flight.first_sent)),
                prior_delivered: flight.prior_delivered,
                losses,
                app_limited: false,
            }),
            timestamps: Some(self.timestamps(flight)),
            delivered: self.delivered,
            lost_segments: losses,
            lost: self.drops,
            departure: self.next_send.max(self.now),
            ce_packets: u32::from(flight.marked),
            in_flight_before,
            in_flight: self.in_flight(),
            next_sequence: self.next_sequence,
            acknowledged,
            round_start,
            may_grow: self.recovery_end.is_none(),
            phase: self.phase,
            ..ack(self.now, 1)
        }
    }

    fn congestion(&mut self, signal: Signal, in_flight_before: Bytes) {
        if self.recovery_end.is_none() {
            self.recovery_end = Some(self.next_sequence);
            self.answered = self.next_sequence;
            self.prr = Prr { flight_before: in_flight_before.get() / MSS.get(), ..Prr::default() };
            self.phase = if signal == Signal::Loss { Phase::Recovery } else { Phase::Cwr };
            let in_flight = self.in_flight();
            self.controller.on_enter_recovery(&Congestion { now: self.now, signal, in_flight });
        }
    }

    fn leave_recovery(&mut self, acknowledged: u64) {
        if self.recovery_end.is_some_and(|end| acknowledged >= end) {
            self.recovery_end = None;
            self.phase = Phase::Open;
            self.controller.on_exit_recovery(self.now);
        }
    }

    /// A retransmission timeout: all segments in flight were dropped.
    fn expire(&mut self) {
        self.drops += self.flights.len() as u64;
        self.flights.clear();
        self.recovery_end = None;
        self.phase = Phase::Open;
        self.controller.on_timeout(&Timeout {
            now: self.now,
            in_flight: Bytes::ZERO,
            next_sequence: self.next_sequence,
            reduce: true,
            delivered: self.delivered,
            lost: self.drops,
        });
    }
}
