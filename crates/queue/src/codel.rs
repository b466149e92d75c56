//! CoDel: when the sojourn has been above a target throughout an interval, CoDel marks or drops the packet at the head. Further
//! signals follow at intervals that shrink with the inverse square root of their number, until the sojourn is below the target
//! (RFC 8289; Linux `sch_codel`).
//!
//! Two differences from Linux: ECN is on by default, since it affects only flows that negotiate ECN; and the square root is
//! exact, where Linux refines a reciprocal of 16 bits.

use crate::limit::Room;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Bytes, Packet, Random, Span, Time, math};

/// Parameters of CoDel, named as Linux names them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds.
    pub limit: Limit,
    /// Acceptable delay of a standing queue; RFC 8289, section 4.3, advises 5 % to 10 % of `interval`.
    pub target: Span,
    /// How long the delay may stay above the target before the first signal: about the longest round-trip time (RFC 8289,
    /// section 4.2); at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Every ECN-capable packet with a longer sojourn than this is marked as it leaves (Linux `ce_threshold`, for data centres).
    /// No such marking by default.
    pub ce_threshold: Option<Span>,
}

impl crate::Parameters for Config {
    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            ce_threshold: None,
        }
    }
}

/// CoDel's parameters, the same for all queues under it.
#[derive(Debug, Clone)]
pub(crate) struct Law {
    pub(crate) target: Span,
    pub(crate) interval: Span,
    pub(crate) ecn: bool,
    pub(crate) ce_threshold: Option<Span>,
    /// CoDel gives no signal while the queue holds at most this many bytes.
    pub(crate) mtu: Bytes,
}

/// CoDel's state for one queue (RFC 8289, section 5.3).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variables {
    /// Signals since the dropping state was entered.
    pub(crate) count: u32,
    last_count: u32,
    pub(crate) dropping: bool,
    /// When the next signal is due in the dropping state.
    drop_next: Time,
    /// The time at which the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Time>,
    /// Sojourn of the last packet that left.
    pub(crate) delay: Span,
}

/// The queue that CoDel takes packets from, with its state.
pub(crate) trait Source<P> {
    fn pop(&mut self) -> Option<P>;
    fn bytes_left(&self) -> Bytes;
    fn variables(&mut self) -> &mut Variables;
}

impl Law {
    /// The time to the signal after the `count`-th: `interval / sqrt(count)` (RFC 8289, section 5.5).
    fn spacing(&self, count: u32) -> Span {
        self.interval.scale(1.0 / math::sqrt(f64::from(count.max(1))))
    }

    /// The next packet of the source, and whether the delay has been above the target for an interval (RFC 8289, section 5.6
    /// `dodequeue`; Linux `codel_should_drop`).
    #[inline]
    fn next<P: Packet>(&self, source: &mut impl Source<P>, now: Time) -> (Option<P>, bool) {
        let packet = source.pop();
        let left = source.bytes_left();
        let variables = source.variables();
        let Some(arrived) = packet.as_ref().map(Packet::arrived) else {
            variables.first_above = None;
            return (None, false);
        };
        variables.delay = now.since(arrived);
        if variables.delay < self.target || left <= self.mtu {
            variables.first_above = None;
            return (packet, false);
        }
        let due = *variables.first_above.get_or_insert(now + self.interval);
        (packet, now >= due)
    }

    /// Marks the packet if that is possible; else drops it.
    fn signal<P: Packet>(&self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        if self.ecn && packet.ecn().is_capable() {
            packet.mark_ce();
            fate.marked(&packet, now);
            Some(packet)
        } else {
            fate.dropped(packet, DropReason::Signal, now);
            None
        }
    }

    /// Takes a packet out of the source (RFC 8289, section 5.5 `deque`; Linux `codel_dequeue`).
    #[inline]
    pub(crate) fn dequeue<P: Packet>(
        &self,
        source: &mut impl Source<P>,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        let (mut packet, mut late) = self.next(source, now);
        if packet.is_none() {
            source.variables().dropping = false;
            return None;
        }
        let mut marked = false;
        if source.variables().dropping {
            if !late {
                source.variables().dropping = false;
            }
            while source.variables().dropping && now >= source.variables().drop_next {
                let Some(chosen) = packet.take() else { break };
                let variables = source.variables();
                variables.count = variables.count.saturating_add(1);
                variables.drop_next += self.spacing(variables.count);
                packet = self.signal(chosen, now, fate);
                if packet.is_some() {
                    marked = true;
                    break;
                }
                (packet, late) = self.next(source, now);
                source.variables().dropping = late;
            }
        } else if late {
            if let Some(chosen) = packet.take() {
                packet = self.signal(chosen, now, fate);
                marked = packet.is_some();
            }
            if packet.is_none() {
                (packet, _) = self.next(source, now);
            }
            let variables = source.variables();
            variables.dropping = true;
            // Soon after the last dropping state, this one starts at the signal rate that controlled the queue then.
            let rate = variables.count.saturating_sub(variables.last_count);
            let recently = now.since(variables.drop_next) < self.interval * 16;
            variables.count = if rate > 1 && recently { rate } else { 1 };
            variables.last_count = variables.count;
            variables.drop_next = now + self.spacing(variables.count);
        }
        if let (Some(threshold), false, Some(packet)) = (self.ce_threshold, marked, &mut packet)
            && source.variables().delay > threshold
            && packet.ecn().is_capable()
        {
            packet.mark_ce();
            fate.marked(packet, now);
        }
        packet
    }
}

/// A queue under CoDel.
#[derive(Debug)]
pub(crate) struct Codel<P> {
    inner: Inner<P>,
    room: Room,
    law: Law,
}

#[derive(Debug)]
struct Inner<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    variables: Variables,
}

impl<P: Packet> Source<P> for Inner<P> {
    fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
    fn bytes_left(&self) -> Bytes {
        self.backlog.bytes
    }
    fn variables(&mut self) -> &mut Variables {
        &mut self.variables
    }
}

impl<P: Packet> Codel<P> {
    pub(crate) fn new(config: &Config, link: &Link, _: Random) -> Codel<P> {
        Codel {
            inner: Inner {
                packets: VecDeque::new(),
                backlog: Backlog::default(),
                variables: Variables::default(),
            },
            room: config.limit.room(link),
            law: Law {
                target: config.target,
                interval: config.interval,
                ecn: config.ecn,
                ce_threshold: config.ce_threshold,
                mtu: link.mtu,
            },
        }
    }
}

impl<P: Packet> Queue<P> for Codel<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        if self.room.fits(self.inner.backlog, packet.wire_length()) {
            self.inner.backlog.add(&packet);
            self.inner.packets.push_back(packet);
        } else {
            fate.dropped(packet, DropReason::Full, now);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.law.dequeue(&mut self.inner, now, fate)
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let variables = &self.inner.variables;
        report("delay_ms", variables.delay.as_millis_f64());
        report("dropping", f64::from(u8::from(variables.dropping)));
        report("signals_count", f64::from(variables.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Ecn, Rate};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// A thousand packets arrive at once and one leaves each millisecond: the times of the signals, in ms.
    fn signals(config: Config, ecn: Ecn, until: u64) -> Vec<u64> {
        let mut codel = Codel::new(&config, &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        for _ in 0..1000 {
            codel.enqueue(TestPacket::new(1500, ecn), Time::ZERO, &mut fate);
        }
        (0..until)
            .filter(|ms| {
                let before = fate.marked + fate.dropped;
                codel.dequeue(at(1000 * ms), &mut fate);
                fate.marked + fate.dropped > before
            })
            .collect()
    }

    #[test]
    fn signals_begin_after_one_interval_and_follow_the_inverse_square_root() {
        // Above the target from 5 ms on, so first after 105 ms; then 100 / sqrt(1), 100 / sqrt(2) = 70.7, 57.7, 50, 44.7 ms
        // later: at 205, 275.7, 333.4, 383.4 and 428.2 ms, or the departure after that.
        for ecn in [Ecn::Ect0, Ecn::NotEct] {
            assert_eq!(signals(Config::default(), ecn, 430), [105, 205, 276, 334, 384, 429], "{ecn:?}");
        }
    }

    #[test]
    fn the_spacing_is_the_interval_over_the_square_root_of_the_count() {
        let codel: Codel<TestPacket> = Codel::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        assert_eq!(codel.law.spacing(1), Span::from_millis(100));
        assert_eq!(codel.law.spacing(4), Span::from_millis(50));
        assert_eq!(codel.law.spacing(2), Span::from_nanos(70_710_678));
        assert_eq!(codel.law.spacing(100), Span::from_millis(10));
    }

    #[test]
    fn a_backlog_of_one_packet_or_less_causes_no_signal() {
        let mut codel = Codel::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        for second in 1..20 {
            for _ in 0..2 {
                codel.enqueue(TestPacket::new(1500, Ecn::NotEct), at((second - 1) * 1_000_000), &mut fate);
            }
            for _ in 0..2 {
                assert!(codel.dequeue(at(second * 1_000_000), &mut fate).is_some());
            }
        }
        assert_eq!(fate.dropped, 0);
    }

    #[test]
    fn a_delay_that_returns_soon_resumes_from_the_earlier_drop_count() {
        let mut codel = Codel::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let variables = &mut codel.inner.variables;
        (variables.count, variables.last_count) = (9, 1);
        variables.drop_next = at(1_000_000);
        let mut fate = TestFate::default();
        for _ in 0..200 {
            let mut packet = TestPacket::new(1500, Ecn::Ect0);
            packet.arrive(at(1_000_000));
            codel.enqueue(packet, at(1_000_000), &mut fate);
        }
        for ms in 1000..1110 {
            codel.dequeue(at(1000 * ms), &mut fate);
        }
        // The count of nine less `last_count`, one.
        assert_eq!((fate.marked, codel.inner.variables.count), (1, 8));
    }

    #[test]
    fn every_ecn_capable_packet_above_the_ce_threshold_is_marked() {
        let config = Config { ce_threshold: Some(Span::from_millis(2)), ..Config::default() };
        assert_eq!(signals(config.clone(), Ecn::Ect1, 8), [3, 4, 5, 6, 7]);
        assert_eq!(signals(config, Ecn::NotEct, 8), [] as [u64; 0]);
    }
}
