//! PIE: a proportional integral controller that holds the queue's delay at a target (RFC 8033), as Linux `sch_pie` runs it:
//! delay is the sojourn of the last packet that left, probability is a fixed-point integer, and drops are de-randomised by
//! an accumulated probability.
//!
//! One difference: ECN is on unless switched off (Linux needs `ecn`), since only flows that negotiate ECN feel it.

use crate::limit::Room;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::collections::VecDeque;
use weir_base::{Packet, Random, Span, Time};

/// Parameters of PIE, named as RFC 8033 and Linux name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much it holds.
    pub limit: Limit,
    /// The delay to hold.
    pub target: Span,
    /// How often the probability is computed anew; at least 100 us.
    #[serde(deserialize_with = "period")]
    pub tupdate: Span,
    /// Weight of the distance from the target, in 1/s (RFC 8033, section 4.2); 0 to 100.
    #[serde(deserialize_with = "weight")]
    pub alpha: f64,
    /// Weight of the change since the last update, in 1/s; 0 to 100.
    #[serde(deserialize_with = "weight")]
    pub beta: f64,
    /// How long a burst may last before it is dropped from.
    pub max_burst: Span,
    /// Whether ECN-capable packets are marked instead of dropped, while the probability is at most `mark_ecnth`.
    pub ecn: bool,
    /// Probability above which even ECN-capable packets are dropped (RFC 8033, section 5.1); 0 to 1.
    #[serde(deserialize_with = "share")]
    pub mark_ecnth: f64,
    /// Whether short packets are dropped less often, in proportion to their length.
    pub bytemode: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            target: Span::from_millis(15),
            tupdate: Span::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::from_millis(150),
            ecn: true,
            mark_ecnth: 0.1,
            bytemode: false,
        }
    }
}

/// Shortest `tupdate`: an update more often than each packet of 1500 bytes at 100 Mbit/s measures nothing new.
const SHORTEST_UPDATE: Span = Span::from_micros(100);
/// Largest `alpha` and `beta`: far beyond what is stable (Linux takes up to 2^32/16, RFC 8033 proposes 0.125 and 1.25).
const LARGEST_WEIGHT: f64 = 100.0;

fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    match Span::deserialize(deserializer)? {
        period if period >= SHORTEST_UPDATE => Ok(period),
        period => Err(D::Error::custom(format!(
            "PIE cannot update every {period}; write at least {SHORTEST_UPDATE}"
        ))),
    }
}
fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, LARGEST_WEIGHT)
}
fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 1.0)
}
fn within<'de, D: Deserializer<'de>>(deserializer: D, most: f64) -> Result<f64, D::Error> {
    match f64::deserialize(deserializer)? {
        value if (0.0..=most).contains(&value) => Ok(value),
        value => Err(D::Error::custom(format!("{value} is out of range; write a number from 0 to {most}"))),
    }
}

/// Probability one (Linux `MAX_PROB`): 56 bits.
const ONE: u64 = u64::MAX >> 8;
/// Above this delay the probability rises by a further 2 % each update (RFC 8033, section 5.2).
const HIGH_DELAY: Span = Span::from_millis(250);

/// A queue under PIE.
#[derive(Debug)]
pub struct Pie<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
    config: Config,
    /// `alpha` and `beta` in probability units per nanosecond of delay, times 2^20 for resolution.
    alpha: i128,
    beta: i128,
    /// Two packets: with less in the queue nothing is dropped.
    small: u64,
    mtu: u64,
    random: Random,
    probability: u64,
    accumulated: u64,
    delay: Span,
    delay_before: Span,
    burst_left: Span,
    last_dequeue: Option<Time>,
    next_update: Time,
}

const WEIGHT_SHIFT: u32 = 20;

impl<P: Packet> Pie<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Pie<P> {
        let weight = |w: f64| (w * ONE as f64 / 1e9 * f64::from(1u32 << WEIGHT_SHIFT)) as i128;
        Pie {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room: config.limit.resolve(link),
            alpha: weight(config.alpha),
            beta: weight(config.beta),
            small: 2 * link.mtu.get(),
            mtu: link.mtu.get().max(1),
            random,
            probability: 0,
            accumulated: 0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left: config.max_burst,
            last_dequeue: None,
            next_update: Time::ZERO + config.tupdate,
            config: config.clone(),
        }
    }

    /// Whether the packet that arrives is to carry a signal (RFC 8033, section 4.1; Linux `pie_drop_early`).
    fn signals(&mut self, length: u32) -> bool {
        if !self.burst_left.is_zero()
            || (self.delay < self.config.target / 2 && self.probability < ONE / 5)
            || self.backlog.bytes.get() < self.small
        {
            return false;
        }
        let probability = if self.config.bytemode && u64::from(length) <= self.mtu {
            (u128::from(self.probability) * u128::from(length) / u128::from(self.mtu)) as u64
        } else {
            self.probability
        };
        self.accumulated = if probability == 0 { 0 } else { self.accumulated + probability };
        // De-randomisation (RFC 8033, section 5.4): never before 0.85, always from 8.5 on.
        if self.accumulated < ONE / 100 * 85 {
            return false;
        }
        if self.accumulated >= ONE / 2 * 17 || self.random.bits() >> 8 < probability {
            self.accumulated = 0;
            return true;
        }
        false
    }

    /// Takes all steps that are due.
    fn catch_up(&mut self, now: Time) {
        while now >= self.next_update {
            self.calculate_probability();
            self.next_update += self.config.tupdate;
            let settled = self.packets.is_empty()
                && self.probability == 0
                && self.delay.is_zero()
                && self.delay_before.is_zero();
            if settled && now >= self.next_update {
                // Nothing changes any more: skip the ticks that an idle time has left behind.
                let ticks = now.since(self.next_update).as_nanos() / self.config.tupdate.as_nanos().max(1);
                self.next_update += self.config.tupdate * ticks;
            }
        }
    }

    /// One step of the controller (RFC 8033, section 4.2 with the scaling of section 5; Linux `pie_calculate_probability`).
    fn calculate_probability(&mut self) {
        let idle_guess = self.delay.is_zero() && self.backlog.packets > 0;
        let mut shift = 0;
        if self.probability < ONE / 10 {
            shift = 1;
            let mut power = 100;
            while power <= 1_000_000 && self.probability < ONE / power {
                shift += 2;
                power *= 10;
            }
        }
        let nanos = |span: Span| i128::from(span.as_nanos());
        let mut delta = ((self.alpha >> shift) * (nanos(self.delay) - nanos(self.config.target))
            + (self.beta >> shift) * (nanos(self.delay) - nanos(self.delay_before)))
            >> WEIGHT_SHIFT;
        if delta > i128::from(ONE / 50) && self.probability >= ONE / 10 {
            delta = i128::from(ONE / 50);
        }
        if self.delay > HIGH_DELAY {
            delta += i128::from(ONE / 50);
        }
        let probability = i128::from(self.probability) + delta;
        let capped = probability > i128::from(ONE);
        self.probability = probability.clamp(0, i128::from(ONE)) as u64;
        if self.delay.is_zero() && self.delay_before.is_zero() && !idle_guess && !capped {
            self.probability -= self.probability / 64;
        }
        let half = self.config.target / 2;
        if self.delay < half && self.delay_before < half && self.probability == 0 {
            self.burst_left = self.config.max_burst;
            self.accumulated = 0;
            self.last_dequeue = None;
        }
        self.delay_before = self.delay;
    }
}

impl<P: Packet> Queue<P> for Pie<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        let reason = if !self.room.fits(self.backlog, packet.wire_length()) {
            Some(DropReason::Full)
        } else if !self.signals(packet.wire_length()) {
            None
        } else if self.config.ecn && packet.ecn().is_capable() {
            if self.probability as f64 <= self.config.mark_ecnth * ONE as f64 {
                packet.mark_ce();
                fate.marked(&packet, now);
                None
            } else {
                Some(DropReason::Overload)
            }
        } else {
            Some(DropReason::Signal)
        };
        if let Some(reason) = reason {
            self.accumulated = 0;
            fate.dropped(packet, reason, now);
        } else {
            self.backlog.add(&packet);
            self.packets.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        self.delay = if self.packets.is_empty() { Span::ZERO } else { now.since(packet.arrived()) };
        if let Some(last) = self.last_dequeue.replace(now) {
            self.burst_left = self.burst_left.saturating_sub(now.since(last));
        }
        Some(packet)
    }

    #[inline]
    fn update(&mut self, now: Time) {
        if now >= self.next_update {
            self.catch_up(now);
        }
    }

    fn wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("drop_probability", self.probability as f64 / ONE as f64);
        report("delay_ms", self.delay.as_millis_f64());
        report("burst_allowance_ms", self.burst_left.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Bytes, Ecn, Rate};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(10),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    fn pie(config: Config) -> Pie<TestPacket> {
        Pie::new(&config, &LINK, Random::stream(1, "pie"))
    }

    /// Offers packets at `load` times the link's rate, serves at the link's rate, and returns the mean delay of the last half in ms.
    fn drive(pie: &mut Pie<TestPacket>, fate: &mut TestFate, load: f64, ecn: Ecn, seconds: u64) -> f64 {
        let (service, end) = (Span::from_micros(1200), Time::ZERO + Span::from_secs(seconds));
        let gap = service.scale(1.0 / load);
        let (mut arrival, mut departure, mut delays) = (Time::ZERO, Time::ZERO, vec![]);
        while arrival < end {
            if arrival <= departure {
                let mut packet = TestPacket::new(1500, ecn);
                packet.arrive(arrival);
                pie.enqueue(packet, arrival, fate);
                arrival += gap;
            } else {
                let half = Time::ZERO + Span::from_secs(seconds / 2);
                if let Some(packet) = pie.dequeue(departure, fate).filter(|_| departure > half) {
                    delays.push(departure.since(packet.arrived()).as_millis_f64());
                }
                departure += service;
            }
        }
        delays.iter().sum::<f64>() / delays.len() as f64
    }

    #[test]
    fn pie_holds_its_target_against_a_constant_overload() {
        // 20 % too much, deaf: a sixth must be dropped, and the delay come to the target. De-randomisation spends 0.85 of a
        // drop waiting before each one, so the probability settles at 1.85 / 6.
        let (mut pie, mut fate) = (pie(Config::default()), TestFate::default());
        let delay = drive(&mut pie, &mut fate, 1.2, Ecn::NotEct, 60);
        assert!((13.0..17.0).contains(&delay), "{delay} ms");
        let probability = pie.probability as f64 / ONE as f64;
        assert!((probability - 1.85 / 6.0).abs() < 0.04, "{probability}");
        let share = fate.dropped as f64 / (60.0 / 0.001);
        assert!((share - 1.0 / 6.0).abs() < 0.01, "{share}");
        assert_eq!(fate.dropped_full, 0);
    }

    #[test]
    fn a_first_burst_passes_untouched() {
        let (mut pie, mut fate) = (pie(Config::default()), TestFate::default());
        drive(&mut pie, &mut fate, 2.0, Ecn::NotEct, 0);
        for i in 0..100 {
            let now = Time::from_nanos(i * 1000);
            let mut packet = TestPacket::new(1500, Ecn::NotEct);
            packet.arrive(now);
            pie.enqueue(packet, now, &mut fate);
        }
        assert_eq!((fate.dropped, pie.backlog().packets), (0, 100));
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_a_tenth_and_dropped_beyond() {
        let (mut light, mut fate) = (pie(Config::default()), TestFate::default());
        drive(&mut light, &mut fate, 1.02, Ecn::Ect0, 20);
        assert!(fate.marked > 0 && fate.dropped == fate.dropped_overload, "{fate:?}");
        let (mut heavy, mut fate) = (pie(Config::default()), TestFate::default());
        drive(&mut heavy, &mut fate, 2.0, Ecn::Ect0, 20);
        assert!(fate.dropped_overload > 1000, "{fate:?}");
    }

    #[test]
    fn without_room_the_packet_is_dropped_as_full() {
        let config = Config { limit: Limit::Packets(3), ..Config::default() };
        let (mut pie, mut fate) = (pie(config), TestFate::default());
        for _ in 0..5 {
            pie.enqueue(TestPacket::new(1500, Ecn::Ect0), Time::ZERO, &mut fate);
        }
        assert_eq!((fate.dropped_full, pie.backlog().bytes), (2, Bytes::new(4500)));
    }

    #[test]
    fn the_first_update_above_target_raises_the_probability_by_the_hand_computed_step() {
        // Delay 30 ms, before 0: (0.125 * 0.015 + 1.25 * 0.030) / 2^11 since the probability is zero (shift 1 + 5 * 2).
        let mut pie = pie(Config::default());
        pie.delay = Span::from_millis(30);
        pie.calculate_probability();
        let expected = (0.125 * 0.015 + 1.25 * 0.030) / f64::from(1 << 11);
        let probability = pie.probability as f64 / ONE as f64;
        assert!((probability / expected - 1.0).abs() < 1e-3, "{probability} {expected}");
    }

    #[test]
    fn after_a_long_idle_time_the_probability_has_decayed() {
        let (mut pie, mut fate) = (pie(Config::default()), TestFate::default());
        drive(&mut pie, &mut fate, 1.2, Ecn::NotEct, 20);
        while pie.dequeue(Time::ZERO + Span::from_secs(20), &mut fate).is_some() {}
        pie.update(Time::ZERO + Span::from_secs(3600));
        assert!(pie.probability < ONE / 1000);
        assert!(pie.next_update > Time::ZERO + Span::from_secs(3600));
    }
}
