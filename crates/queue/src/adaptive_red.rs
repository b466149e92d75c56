//! Adaptive RED: RED that derives its thresholds and its weight from the link's rate and a target delay. It adapts its largest
//! marking probability, `max_p`, to keep the average halfway between the thresholds (Floyd, Gummadi, Shenker, "Adaptive RED",
//! 2001, sections 4 and 5; the steps are those of Linux `red_adaptative_algo`).

use crate::red::{self, Red};
use crate::{Backlog, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Packet, Random, Span, Time, math};

/// Parameters of adaptive RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds.
    pub limit: Limit,
    /// Target of the average queueing delay. `min` is half of what the link sends in this time, at least 5 packets; `max` is
    /// three times `min` (section 4.3).
    pub target: Span,
    /// Initial `max_p`, the largest marking probability; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub probability: f64,
    /// How often `max_p` is adapted; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether ECN-capable packets too are dropped, not marked, while the average is at least `max`.
    pub harddrop: bool,
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
            probability: 0.02,
            interval: Span::from_millis(500),
            ecn: true,
            harddrop: false,
        }
    }
}

/// Smallest lower threshold, in packets (section 4.3).
const SMALLEST_MIN: f64 = 5.0;
/// Range of `max_p` (section 4.1).
const SHARES: [f64; 2] = [0.01, 0.5];
/// Largest increase of `max_p`, which is also at most a quarter of it, and the factor of its decrease (section 4.1).
const UP: f64 = 0.01;
const DOWN: f64 = 0.9;

/// A queue under adaptive RED.
#[derive(Debug)]
pub(crate) struct AdaptiveRed<P> {
    red: Red<P>,
    interval: Span,
    next_update: Time,
}

impl<P: Packet> AdaptiveRed<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> AdaptiveRed<P> {
        let packets_per_second =
            link.rate.bytes_in(Span::from_secs(1)).get() as f64 / link.mtu.get().max(1) as f64;
        let min = (config.target.as_secs_f64() * packets_per_second / 2.0).max(SMALLEST_MIN);
        let inner = red::Config {
            limit: config.limit,
            probability: config.probability,
            ecn: config.ecn,
            harddrop: config.harddrop,
            ..red::Config::default()
        };
        let mut red = Red::new(&inner, link, random);
        (red.detector.min, red.detector.max) = (min, 3.0 * min);
        // A time constant of a second: 1 - exp(-1/C), C in packets/s (section 4.4).
        red.detector.set_weight(1.0 - math::exp(-1.0 / packets_per_second.max(1.0)));
        AdaptiveRed { red, interval: config.interval, next_update: Time::ZERO + config.interval }
    }

    /// Adapts `max_p` (section 4.1): additive increase, multiplicative decrease.
    fn adapt(&mut self, at: Time) {
        let detector = &mut self.red.detector;
        let (average, span) = (detector.average(at), detector.max - detector.min);
        let share = detector.max_p;
        if average > detector.min + 0.6 * span && share <= SHARES[1] {
            detector.max_p = (share + UP.min(share / 4.0)).min(SHARES[1].max(share));
        } else if average < detector.min + 0.4 * span && share >= SHARES[0] {
            detector.max_p = share * DOWN;
        }
    }
}

impl<P: Packet> Queue<P> for AdaptiveRed<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        self.red.enqueue(packet, now, fate);
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        self.red.dequeue(now, fate)
    }

    fn update(&mut self, now: Time) {
        while now >= self.next_update {
            self.adapt(self.next_update);
            self.next_update += self.interval;
            if self.red.backlog().packets == 0
                && self.red.detector.max_p < SHARES[0]
                && now >= self.next_update
            {
                // An empty queue only lowers `max_p`, and `max_p` is already at its smallest.
                let ticks = now.since(self.next_update).as_nanos() / self.interval.as_nanos().max(1);
                self.next_update += self.interval * ticks;
            }
        }
        Queue::<P>::update(&mut self.red, now);
    }

    fn backlog(&self) -> Backlog {
        self.red.backlog()
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        self.red.state(report);
        report("largest_drop_probability", self.red.detector.max_p);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Bytes, Ecn, Rate};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(120),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    #[test]
    fn thresholds_and_weight_come_from_the_rate() {
        // 10,000 packets/s: 5 ms are 50 packets, so 25 and 75; w_q = 1 - exp(-1/10,000). At 12 Mbit/s 2.5 packets become 5.
        let red: AdaptiveRed<TestPacket> =
            AdaptiveRed::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        assert_eq!((red.red.detector.min, red.red.detector.max), (25.0, 75.0));
        let slow = Link { rate: Rate::from_mbit_per_sec(12), ..LINK };
        let red: AdaptiveRed<TestPacket> =
            AdaptiveRed::new(&Config::default(), &slow, Random::stream(1, "queue"));
        assert_eq!((red.red.detector.min, red.red.detector.max), (5.0, 15.0));
    }

    #[test]
    fn max_p_rises_by_a_quarter_or_by_0_01_and_falls_by_a_tenth() {
        let mut red: AdaptiveRed<TestPacket> =
            AdaptiveRed::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        // Nothing arrives: 0.02 x 0.9 a step, until it is below 0.01: after seven steps, 0.00957.
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        Queue::<TestPacket>::update(&mut red, at(1_000));
        assert!((red.red.detector.max_p - 0.0162).abs() < 1e-9);
        Queue::<TestPacket>::update(&mut red, at(3_600_000));
        assert!((red.red.detector.max_p - 0.02 * 0.9f64.powi(7)).abs() < 1e-9);
        // A queue of 300 packets takes the average above 55 (60 % of the way): up a quarter, and from 0.04 on by 0.01.
        for _ in 0..10_000 {
            red.enqueue(TestPacket::new(1500, Ecn::Ect0), at(3_600_100), &mut fate);
        }
        let before = red.red.detector.max_p;
        Queue::<TestPacket>::update(&mut red, at(3_600_500));
        assert!((red.red.detector.max_p / before - 1.25).abs() < 1e-9);
        red.red.detector.max_p = 0.1;
        Queue::<TestPacket>::update(&mut red, at(3_601_000));
        assert!((red.red.detector.max_p - 0.11).abs() < 1e-9);
        red.red.detector.max_p = 0.499;
        Queue::<TestPacket>::update(&mut red, at(3_602_000));
        assert_eq!(red.red.detector.max_p, 0.5);
    }

    #[test]
    fn an_unresponsive_overload_raises_max_p_until_the_average_is_between_the_thresholds() {
        // An eleventh of 11,000 packets/s is dropped. Evenly spread signals turn a probability s into a share of 2 s / (1 + s), so
        // max_p moves until s = 1/21 is reached between 40 % and 60 % of the way from min to max: max_p from 0.079 to 0.119.
        let mut red = AdaptiveRed::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let mut fate = TestFate::default();
        for tick in 0..1_320_000u64 {
            let now = Time::from_nanos(tick * 90_909);
            let mut packet = TestPacket::new(1500, Ecn::NotEct);
            packet.arrive(now);
            red.enqueue(packet, now, &mut fate);
            if tick % 11 != 0 {
                red.dequeue(now, &mut fate);
            }
        }
        let average = red.red.detector.average(red.next_update);
        assert!((40.0..60.0).contains(&average), "{average}");
        assert!((0.07..0.13).contains(&red.red.detector.max_p), "{}", red.red.detector.max_p);
        assert_eq!(fate.dropped_full, 0);
    }
}
