//! RED: random early detection. Signals depend on the average queue length: there are none below a lower threshold, and between
//! the thresholds their probability grows with the average. The count of packets since the last signal spreads them evenly (Floyd
//! and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993, sections 4 and 7; gentle: Floyd,
//! "Recommendation on using the gentle variant of RED", 2000).
//!
//! Linux `sch_red` does the same in integers, and is not gentle. Its thresholds are in bytes; here they are in packets or bytes,
//! as the lab writes them.

use crate::limit::{Room, Size};
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Packet, ParameterError, Random, Span, Time, math};

/// Parameters of RED, named as Linux and the paper name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds.
    pub limit: Limit,
    /// Average queue length below which no packet is signalled. Its unit decides how the queue is measured: in packets if `min` is
    /// in packets or bdp, in bytes if it is in bytes or time.
    pub min: Limit,
    /// Average queue length from which every packet is signalled; with `gentle`, the signal probability reaches one at twice this
    /// length. At least `min`; by default three times `min`. It is converted to the unit of `min`.
    pub max: Option<Limit>,
    /// Signal probability just below `max` (max_p); 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub probability: f64,
    /// Weight of the current queue length in the average (w_q); 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub wq: f64,
    /// Whether the signal probability grows from `probability` to one between `max` and twice `max`, instead of being one from
    /// `max` on.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether ECN-capable packets too are dropped, not marked, while the average is at least `max`.
    pub harddrop: bool,
    /// Whether the signal probability of a packet is proportional to its length.
    pub bytemode: bool,
}

impl crate::Parameters for Config {
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        let max = self.max.map(|max| ("max", max));
        [("limit", self.limit), ("min", self.min)].into_iter().chain(max).collect()
    }
    fn fault(&self, link: &Link) -> Option<ParameterError> {
        let (min, max, in_bytes) = self.thresholds(link);
        let unit = if in_bytes { "bytes" } else { "packets" };
        (min > max).then(|| ParameterError {
            key: "max",
            message: format!("max is below min: {max} and {min} {unit} on this link"),
            help: "write a max of at least min; left out, it is three times min".into(),
        })
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            // Sections 6 and 7 of the paper: 5 and 15 packets, 1/50 and 0.002.
            min: Limit::Packets(5),
            max: None,
            probability: 0.02,
            wq: 0.002,
            gentle: true,
            ecn: true,
            harddrop: false,
            bytemode: false,
        }
    }
}

/// The average queue length and the signals that follow from it; shared with adaptive RED.
#[derive(Debug)]
pub(crate) struct Detector {
    in_bytes: bool,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Signal probability just below `max`.
    pub(crate) max_p: f64,
    wq: f64,
    gentle: bool,
    harddrop: bool,
    ecn: bool,
    bytemode: bool,
    mtu: f64,
    /// The link's time for a packet of the MTU; each such time that the queue is idle counts as a packet that found it empty.
    service: Span,
    average: f64,
    /// Packets since the last signal; -1 while the average is below `min`.
    count: i64,
    idle_since: Option<Time>,
}

/// A threshold on this link, in packets or in bytes, and whether it is in bytes.
fn length(limit: Limit, link: &Link) -> (f64, bool) {
    match limit.resolve(link) {
        Size::Packets(packets) => (f64::from(packets), false),
        Size::Bytes(bytes) => (bytes.get() as f64, true),
    }
}

impl Config {
    /// The thresholds on this link, in packets or in bytes, and whether they are bytes.
    fn thresholds(&self, link: &Link) -> (f64, f64, bool) {
        let mtu = link.mtu.get().max(1) as f64;
        let (min, in_bytes) = length(self.min, link);
        let max = self.max.map_or(3.0 * min, |max| match (length(max, link), in_bytes) {
            ((max, false), true) => max * mtu,
            ((max, true), false) => max / mtu,
            ((max, _), _) => max,
        });
        (min, max, in_bytes)
    }
}

impl Detector {
    pub(crate) fn new(config: &Config, link: &Link) -> Detector {
        let (min, max, in_bytes) = config.thresholds(link);
        Detector {
            in_bytes,
            min,
            max,
            max_p: config.probability,
            wq: config.wq,
            gentle: config.gentle,
            harddrop: config.harddrop,
            ecn: config.ecn,
            bytemode: config.bytemode,
            mtu: link.mtu.get().max(1) as f64,
            service: link.rate.time_to_send(link.mtu).max(Span::from_nanos(1)),
            average: 0.0,
            count: -1,
            idle_since: Some(Time::ZERO),
        }
    }

    pub(crate) fn set_weight(&mut self, wq: f64) {
        self.wq = wq;
    }

    /// The average as it would be if a packet found an empty queue now (section 4 of the paper: `(1 - w_q)^m avg`).
    pub(crate) fn average(&self, now: Time) -> f64 {
        match self.idle_since {
            Some(since) => {
                let packets = now.since(since).as_nanos() as f64 / self.service.as_nanos() as f64;
                self.average * math::pow(1.0 - self.wq, packets)
            }
            None => self.average,
        }
    }

    /// The average in packets of the MTU.
    pub(crate) fn average_packets(&self, now: Time) -> f64 {
        self.average(now) / if self.in_bytes { self.mtu } else { 1.0 }
    }

    /// The signal probability at this average, before the count spreads the signals.
    pub(crate) fn share(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            self.max_p * (average - self.min) / (self.max - self.min)
        } else if self.gentle && average < 2.0 * self.max {
            self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max
        } else {
            1.0
        }
    }

    /// Updates the average for an arriving packet, and passes, marks or drops the packet.
    pub(crate) fn admit<P: Packet>(
        &mut self,
        mut packet: P,
        backlog: Backlog,
        random: &mut Random,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        if self.idle_since.is_some() && backlog.packets == 0 {
            self.average = self.average(now);
            self.idle_since = Some(now);
        } else {
            let length = if self.in_bytes { backlog.bytes.get() as f64 } else { f64::from(backlog.packets) };
            self.average += self.wq * (length - self.average);
        }
        let share = self.share(self.average);
        if share == 0.0 {
            self.count = -1;
            return Some(packet);
        }
        self.count += 1;
        if share < 1.0 {
            let scale =
                if self.bytemode { (f64::from(packet.wire_length()) / self.mtu).min(1.0) } else { 1.0 };
            let rest = 1.0 - self.count as f64 * share;
            // The next signal comes after 1 to 1/share packets, all equally likely (section 7, method 2).
            if rest > 0.0 && !random.chance(share * scale / rest) {
                return Some(packet);
            }
        }
        self.count = 0;
        let hard = self.harddrop && self.average >= self.max;
        if self.ecn && packet.ecn().is_capable() && !hard {
            packet.mark_ce();
            fate.marked(&packet, now);
            return Some(packet);
        }
        let capable = self.ecn && packet.ecn().is_capable();
        fate.dropped(packet, if capable { DropReason::Overload } else { DropReason::Signal }, now);
        None
    }

    /// The queue has a packet.
    fn busy(&mut self) {
        self.idle_since = None;
    }

    /// The queue has become empty.
    fn empty(&mut self, now: Time) {
        self.idle_since = Some(now);
    }
}

/// A queue under RED.
#[derive(Debug)]
pub(crate) struct Red<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
    pub(crate) detector: Detector,
    random: Random,
    /// The time of the last call.
    now: Time,
}

impl<P: Packet> Red<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Red<P> {
        Red {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room: config.limit.room(link),
            detector: Detector::new(config, link),
            random,
            now: Time::ZERO,
        }
    }
}

impl<P: Packet> Queue<P> for Red<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.now = now;
        let Some(packet) = self.detector.admit(packet, self.backlog, &mut self.random, now, fate) else {
            return;
        };
        if !self.room.fits(self.backlog, packet.wire_length()) {
            return fate.dropped(packet, DropReason::Full, now);
        }
        self.backlog.add(&packet);
        self.packets.push_back(packet);
        self.detector.busy();
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<P>) -> Option<P> {
        self.now = now;
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        if self.packets.is_empty() {
            self.detector.empty(now);
        }
        Some(packet)
    }

    fn update(&mut self, now: Time) {
        self.now = now;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        let average = self.detector.average(self.now);
        report("average_packets", self.detector.average_packets(self.now));
        report("drop_probability", self.detector.share(average));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Bytes, Ecn, Rate};

    /// A packet of 1500 bytes takes a millisecond.
    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn detector(config: &Config) -> Detector {
        Detector::new(config, &LINK)
    }

    #[test]
    fn the_probability_is_linear_between_the_thresholds_and_from_there_to_twice_the_upper_one() {
        // min 5, max 15, max_p 0.02: halfway 0.01; gentle at 22.5 halfway from 0.02 to 1, 0.51.
        let red = detector(&Config::default());
        for (average, share) in
            [(4.9, 0.0), (5.0, 0.0), (10.0, 0.01), (15.0, 0.02), (22.5, 0.51), (30.0, 1.0)]
        {
            assert!((red.share(average) - share).abs() < 1e-12, "{average}: {}", red.share(average));
        }
        let abrupt = detector(&Config { gentle: false, ..Config::default() });
        assert_eq!((abrupt.share(14.999) < 0.02, abrupt.share(15.0)), (true, 1.0));
    }

    #[test]
    fn the_average_follows_the_length_and_decays_while_the_link_is_idle() {
        // From zero, n packets that find 50 raise the average to 50 (1 - 0.998^n): 5 after 53 (0.998^53 = 0.8993), as the paper
        // computes for a burst of 50 (section 6.1).
        let mut red = detector(&Config::default());
        let (mut fate, mut random) = (TestFate::default(), Random::stream(1, "queue"));
        let backlog = Backlog { packets: 50, bytes: Bytes::new(75_000) };
        red.busy();
        for _ in 0..53 {
            red.admit(TestPacket::new(1500, Ecn::NotEct), backlog, &mut random, Time::ZERO, &mut fate);
        }
        assert!((red.average(Time::ZERO) - 50.0 * (1.0 - 0.899_3)).abs() < 0.01);
        // The queue is idle for 346.2 ms, in which 346.2 packets could have been sent: the average halves.
        let before = red.average(Time::ZERO);
        red.empty(Time::ZERO);
        let after = red.average(Time::ZERO + Span::from_micros(346_200));
        assert!((after / before - 0.5).abs() < 1e-3, "{}", after / before);
    }

    #[test]
    fn signals_are_spread_evenly_over_the_packets_between_them() {
        // At an average of 10 the probability is 0.01: gaps are 1 to 100 packets, 50.5 on average, all equally likely.
        let mut red = detector(&Config::default());
        let (mut fate, mut random) = (TestFate::default(), Random::stream(1, "queue"));
        let backlog = Backlog { packets: 10, bytes: Bytes::new(15_000) };
        red.busy();
        red.average = 10.0;
        let (mut gaps, mut gap) = (vec![], 0);
        for _ in 0..200_000 {
            gap += 1;
            let before = fate.marked;
            red.admit(TestPacket::new(1500, Ecn::Ect0), backlog, &mut random, Time::ZERO, &mut fate);
            if fate.marked > before {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 50.5).abs() < 2.0, "{mean}");
        assert!(gaps[1..].iter().all(|gap| (1..=101).contains(gap)), "{:?}", gaps.iter().max());
        let short = gaps.iter().filter(|gap| **gap <= 25).count() as f64 / gaps.len() as f64;
        assert!((short - 0.25).abs() < 0.03, "{short}");
    }

    #[test]
    fn thresholds_in_time_are_bytes_and_the_upper_one_is_three_times_the_lower() {
        let red = detector(&Config { min: "5 ms".parse().unwrap(), ..Config::default() });
        assert_eq!((red.in_bytes, red.min, red.max), (true, 7_500.0, 22_500.0));
        let mixed = Config { max: Some("45 kB".parse().unwrap()), ..Config::default() };
        assert_eq!((detector(&mixed).min, detector(&mixed).max), (5.0, 30.0));
    }

    #[test]
    fn hard_drop_spares_capable_packets_only_below_the_upper_threshold() {
        for (average, marked, overload) in [(14.99, 1, 0), (40.0, 0, 1)] {
            let config = Config { harddrop: true, probability: 1.0, wq: 0.0, ..Config::default() };
            let mut red: Red<TestPacket> = Red::new(&config, &LINK, Random::stream(1, "queue"));
            let mut fate = TestFate::default();
            red.detector.busy();
            red.detector.average = average;
            red.detector.count = 1;
            red.enqueue(TestPacket::new(1500, Ecn::Ect0), Time::ZERO, &mut fate);
            assert_eq!((fate.marked, fate.dropped_overload), (marked, overload), "{average}");
        }
    }
}
