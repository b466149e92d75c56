//! PIE: a proportional integral controller that holds the queue's delay at a target (RFC 8033), as Linux `sch_pie` runs it:
//! delay is the sojourn of the last packet that left, probability is a fixed-point integer, and drops are de-randomised by
//! an accumulated probability.
//!
//! One difference: ECN is on by default (Linux needs `ecn`), since it affects only flows that negotiate ECN.

use crate::limit::Room;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Packet, Random, Span, Time};

/// Parameters of PIE, named as RFC 8033 and Linux name them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds.
    pub limit: Limit,
    /// Target delay.
    pub target: Span,
    /// How often the drop probability is updated; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub tupdate: Span,
    /// Weight of the delay's deviation from the target, in 1/s (RFC 8033, section 4.2); 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub beta: f64,
    /// How long a burst may last before PIE drops packets.
    pub max_burst: Span,
    /// Whether ECN-capable packets are marked instead of dropped while the drop probability is at most `mark_ecnth`.
    pub ecn: bool,
    /// Drop probability above which ECN-capable packets too are dropped (RFC 8033, section 5.1); 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub mark_ecnth: f64,
    /// Whether the drop probability of a packet is proportional to its length.
    pub bytemode: bool,
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

/// Probability one (Linux `MAX_PROB`): 56 bits.
const ONE: u64 = u64::MAX >> 8;
/// Above this delay the probability rises by a further 2 % each update (RFC 8033, section 5.2).
const HIGH_DELAY: Span = Span::from_millis(250);

/// PIE's parameters, the same for all queues under it.
#[derive(Debug, Clone)]
pub(crate) struct Law {
    target: Span,
    tupdate: Span,
    max_burst: Span,
    ecn: bool,
    /// Probability up to which ECN-capable packets are marked.
    mark_ecnth: f64,
    bytemode: bool,
    /// `alpha` and `beta` in probability units per nanosecond of delay, times 2^20 for resolution.
    alpha: i128,
    beta: i128,
    /// Two packets of the MTU, in bytes: PIE gives no signal to a smaller backlog.
    small: u64,
    mtu: u64,
}

/// PIE's state for one queue.
#[derive(Debug, Clone)]
pub(crate) struct Variables {
    probability: u64,
    accumulated: u64,
    delay: Span,
    delay_before: Span,
    burst_left: Span,
    /// When the last packet left; [`Time::NEVER`] if none has left since the burst allowance was last reset.
    last_dequeue: Time,
    pub(crate) next_update: Time,
}

const WEIGHT_SHIFT: u32 = 20;

impl Variables {
    /// The probability of a signal; 0 to 1.
    pub(crate) fn probability(&self) -> f64 {
        self.probability as f64 / ONE as f64
    }
}

impl Law {
    pub(crate) fn new(config: &Config, link: &Link) -> Law {
        let weight = |w: f64| (w * ONE as f64 / 1e9 * f64::from(1u32 << WEIGHT_SHIFT)) as i128;
        Law {
            target: config.target,
            tupdate: config.tupdate,
            max_burst: config.max_burst,
            ecn: config.ecn,
            mark_ecnth: config.mark_ecnth * ONE as f64,
            bytemode: config.bytemode,
            alpha: weight(config.alpha),
            beta: weight(config.beta),
            small: 2 * link.mtu.get(),
            mtu: link.mtu.get().max(1),
        }
    }

    /// The state of a queue before its first packet.
    pub(crate) fn variables(&self) -> Variables {
        Variables {
            probability: 0,
            accumulated: 0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left: self.max_burst,
            last_dequeue: Time::NEVER,
            next_update: Time::ZERO + self.tupdate,
        }
    }

    /// Whether the arriving packet gets a signal (RFC 8033, section 4.1; Linux `pie_drop_early`).
    #[inline(always)]
    fn signals(&self, of: &mut Variables, backlog: Backlog, length: u32, random: &mut Random) -> bool {
        if !of.burst_left.is_zero()
            || (of.delay < self.target / 2 && of.probability < ONE / 5)
            || backlog.bytes.get() < self.small
        {
            return false;
        }
        let probability = if self.bytemode && u64::from(length) <= self.mtu {
            (u128::from(of.probability) * u128::from(length) / u128::from(self.mtu)) as u64
        } else {
            of.probability
        };
        of.accumulated = if probability == 0 { 0 } else { of.accumulated + probability };
        // De-randomisation (RFC 8033, section 5.4): never before 0.85, always from 8.5 on.
        if of.accumulated < ONE / 100 * 85 {
            return false;
        }
        if of.accumulated >= ONE / 2 * 17 || random.bits() >> 8 < probability {
            of.accumulated = 0;
            return true;
        }
        false
    }

    /// Decides on an arriving packet: returns it, marked if it gets a signal, or drops it.
    #[inline(always)]
    pub(crate) fn admit<P: Packet>(
        &self,
        of: &mut Variables,
        backlog: Backlog,
        packet: P,
        random: &mut Random,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        if self.signals(of, backlog, packet.wire_length(), random) {
            self.signal(of, packet, now, fate)
        } else {
            Some(packet)
        }
    }

    /// Marks or drops an arriving packet that gets a signal; returns a packet that is marked.
    #[cold]
    fn signal<P: Packet>(
        &self,
        of: &mut Variables,
        mut packet: P,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
        let reason = if self.ecn && packet.ecn().is_capable() {
            if of.probability as f64 <= self.mark_ecnth {
                packet.mark_ce();
                fate.marked(&packet, now);
                return Some(packet);
            }
            DropReason::Overload
        } else {
            DropReason::Signal
        };
        self.refuse(of, packet, reason, now, fate);
        None
    }

    /// Drops an arriving packet.
    #[cold]
    pub(crate) fn refuse<P: Packet>(
        &self,
        of: &mut Variables,
        packet: P,
        reason: DropReason,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) {
        of.accumulated = 0;
        fate.dropped(packet, reason, now);
    }

    /// Notes that a packet has left the queue (Linux `pie_process_dequeue`).
    #[inline]
    pub(crate) fn left<P: Packet>(&self, of: &mut Variables, packet: &P, empty: bool, now: Time) {
        of.delay = if empty { Span::ZERO } else { now.since(packet.arrived()) };
        let last = std::mem::replace(&mut of.last_dequeue, now);
        of.burst_left = of.burst_left.saturating_sub(now.since(last));
    }

    /// Takes all steps that are due. Late steps give the same result: a queue does not change between two of its packets.
    #[inline]
    pub(crate) fn update(&self, of: &mut Variables, backlog: Backlog, now: Time) {
        if now >= of.next_update {
            self.catch_up(of, backlog, now);
        }
    }

    #[cold]
    fn catch_up(&self, of: &mut Variables, backlog: Backlog, now: Time) {
        while now >= of.next_update {
            self.calculate_probability(of, backlog);
            of.next_update += self.tupdate;
            let settled = backlog.packets == 0
                && of.probability == 0
                && of.delay.is_zero()
                && of.delay_before.is_zero();
            if settled && now >= of.next_update {
                // Nothing changes any more: skip the updates of the idle time.
                let ticks = now.since(of.next_update).as_nanos() / self.tupdate.as_nanos().max(1);
                of.next_update += self.tupdate * ticks;
            }
        }
    }

    /// One step of the controller (RFC 8033, section 4.2 with the scaling of section 5; Linux `pie_calculate_probability`).
    fn calculate_probability(&self, of: &mut Variables, backlog: Backlog) {
        let idle_guess = of.delay.is_zero() && backlog.packets > 0;
        let mut shift = 0;
        if of.probability < ONE / 10 {
            shift = 1;
            let mut power = 100;
            while power <= 1_000_000 && of.probability < ONE / power {
                shift += 2;
                power *= 10;
            }
        }
        let nanos = |span: Span| i128::from(span.as_nanos());
        let mut delta = ((self.alpha >> shift) * (nanos(of.delay) - nanos(self.target))
            + (self.beta >> shift) * (nanos(of.delay) - nanos(of.delay_before)))
            >> WEIGHT_SHIFT;
        if delta > i128::from(ONE / 50) && of.probability >= ONE / 10 {
            delta = i128::from(ONE / 50);
        }
        if of.delay > HIGH_DELAY {
            delta += i128::from(ONE / 50);
        }
        let probability = i128::from(of.probability) + delta;
        let capped = probability > i128::from(ONE);
        of.probability = probability.clamp(0, i128::from(ONE)) as u64;
        if of.delay.is_zero() && of.delay_before.is_zero() && !idle_guess && !capped {
            of.probability -= of.probability / 64;
        }
        let half = self.target / 2;
        if of.delay < half && of.delay_before < half && of.probability == 0 {
            of.burst_left = self.max_burst;
            of.accumulated = 0;
            of.last_dequeue = Time::NEVER;
        }
        of.delay_before = of.delay;
    }
}

/// A queue under PIE.
#[derive(Debug)]
pub(crate) struct Pie<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
    law: Law,
    variables: Variables,
    random: Random,
}

impl<P: Packet> Pie<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Pie<P> {
        let law = Law::new(config, link);
        Pie {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room: config.limit.room(link),
            variables: law.variables(),
            law,
            random,
        }
    }

    /// Decides on an arriving packet: returns it, marked if it gets a signal, or drops it.
    #[inline(always)]
    fn admit(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        if !self.room.fits(self.backlog, packet.wire_length()) {
            self.law.refuse(&mut self.variables, packet, DropReason::Full, now, fate);
            return None;
        }
        self.law.admit(&mut self.variables, self.backlog, packet, &mut self.random, now, fate)
    }
}

impl<P: Packet> Queue<P> for Pie<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        if let Some(packet) = self.admit(packet, now, fate) {
            self.backlog.add(&packet);
            self.packets.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        self.law.left(&mut self.variables, &packet, self.packets.is_empty(), now);
        Some(packet)
    }

    fn pass(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        let packet = self.admit(packet, now, fate)?;
        self.law.left(&mut self.variables, &packet, true, now);
        Some(packet)
    }

    #[inline]
    fn update(&mut self, now: Time) {
        self.law.update(&mut self.variables, self.backlog, now);
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("drop_probability", self.variables.probability());
        report("delay_ms", self.variables.delay.as_millis_f64());
        report("burst_allowance_ms", self.variables.burst_left.as_millis_f64());
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
        // An unresponsive load of 120 %: a sixth must be dropped, and the delay must reach the target. De-randomisation
        // accumulates 0.85 before each drop, so the probability settles at 1.85 / 6.
        let (mut pie, mut fate) = (pie(Config::default()), TestFate::default());
        let delay = drive(&mut pie, &mut fate, 1.2, Ecn::NotEct, 60);
        assert!((13.0..17.0).contains(&delay), "{delay} ms");
        let probability = pie.variables.probability();
        assert!((probability - 1.85 / 6.0).abs() < 0.04, "{probability}");
        let share = fate.dropped as f64 / (60.0 / 0.001);
        assert!((share - 1.0 / 6.0).abs() < 0.01, "{share}");
        assert_eq!(fate.dropped_full, 0);
    }

    #[test]
    fn a_first_burst_passes_without_drops() {
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
    fn packets_that_arrive_at_a_full_queue_are_counted_as_dropped_full() {
        let config = Config { limit: Limit::Packets(3), ..Config::default() };
        let (mut pie, mut fate) = (pie(config), TestFate::default());
        for _ in 0..5 {
            pie.enqueue(TestPacket::new(1500, Ecn::Ect0), Time::ZERO, &mut fate);
        }
        assert_eq!((fate.dropped_full, pie.backlog().bytes), (2, Bytes::new(4500)));
    }

    #[test]
    fn the_first_update_above_target_raises_the_probability_by_the_hand_computed_step() {
        // The delay is 30 ms and was 0: (0.125 * 0.015 + 1.25 * 0.030) / 2^11, since the probability is zero (shift 1 + 5 * 2).
        let mut pie = pie(Config::default());
        pie.variables.delay = Span::from_millis(30);
        pie.law.calculate_probability(&mut pie.variables, pie.backlog);
        let expected = (0.125 * 0.015 + 1.25 * 0.030) / f64::from(1 << 11);
        let probability = pie.variables.probability();
        assert!((probability / expected - 1.0).abs() < 1e-3, "{probability} {expected}");
    }

    #[test]
    fn after_a_long_idle_time_the_probability_has_decayed() {
        let (mut pie, mut fate) = (pie(Config::default()), TestFate::default());
        drive(&mut pie, &mut fate, 1.2, Ecn::NotEct, 20);
        while pie.dequeue(Time::ZERO + Span::from_secs(20), &mut fate).is_some() {}
        pie.update(Time::ZERO + Span::from_secs(3600));
        assert!(pie.variables.probability < ONE / 1000);
        assert!(pie.variables.next_update > Time::ZERO + Span::from_secs(3600));
    }
}
