//! PI2: one queue under a linear PI controller. Its probability p' is squared for classic packets, which replaces PIE's heuristics,
//! and multiplied by a coupling factor for scalable ones (ECT(1), CE), so that both get equal rates (De Schepper, Bondarenko,
//! Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT 2016).
//!
//! The defaults are those of the paper's authors: 20 ms, 32 ms, 80/256 and 800/256 Hz on p' (`dualpi2_params_init` of their first
//! submission to Linux, 2018). Their `sch_pi2` of 2015 has the same, 10/16 and 100/16 Hz on p = 2 p', each 30 ms. It also gives no
//! signal to a backlog of less than two packets of the MTU; PI2 here does.
//!
//! The paper's p is the probability of scalable packets. Here p' is half of p, as in RFC 9332, so that `alpha` and `beta` are the
//! paper's for classic traffic. With `max_probability` at 0.5, at most a quarter of the classic packets get a signal, when every
//! scalable one is marked; the limit must drop a larger excess.

use crate::limit::Room;
use crate::pi::Pi;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue, parameter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{Ecn, Packet, Random, Span, Time};

/// Parameters of PI2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds.
    pub limit: Limit,
    /// Target delay.
    pub target: Span,
    /// How often the base probability p' is updated; at least 100 us.
    #[serde(deserialize_with = "parameter::period")]
    pub tupdate: Span,
    /// Weight of the delay's deviation from the target in p', in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub alpha: f64,
    /// Weight of the delay's change since the last update in p', in 1/s; 0 to 100.
    #[serde(deserialize_with = "parameter::weight")]
    pub beta: f64,
    /// Factor between p' and the marking probability of scalable packets; 0 to 255.
    #[serde(deserialize_with = "parameter::coupling")]
    pub coupling_factor: f64,
    /// Largest p'; 0 to 1.
    #[serde(deserialize_with = "parameter::share")]
    pub max_probability: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether packets with ECT(1) or CE count as scalable; if not, all are classic.
    pub scalable: bool,
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
            target: Span::from_millis(20),
            tupdate: Span::from_millis(32),
            alpha: 0.3125,
            beta: 3.125,
            coupling_factor: 2.0,
            max_probability: 1.0,
            ecn: true,
            scalable: true,
        }
    }
}

/// A queue under PI2.
#[derive(Debug)]
pub(crate) struct Pi2<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
    pi: Pi,
    coupling: f64,
    ecn: bool,
    scalable: bool,
    random: Random,
}

impl<P: Packet> Pi2<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> Pi2<P> {
        Pi2 {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room: config.limit.room(link),
            pi: Pi::new(config.target, config.tupdate, config.alpha, config.beta, config.max_probability),
            coupling: config.coupling_factor,
            ecn: config.ecn,
            scalable: config.scalable,
            random,
        }
    }

    fn coupled(&self) -> f64 {
        (self.coupling * self.pi.probability()).min(1.0)
    }
}

impl<P: Packet> Queue<P> for Pi2<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        if !self.room.fits(self.backlog, packet.wire_length()) {
            return fate.dropped(packet, DropReason::Full, now);
        }
        let is_scalable = self.scalable && matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce);
        let signal = if is_scalable {
            let probability = self.coupled();
            probability > 0.0 && self.random.chance(probability)
        } else {
            self.pi.signals_squared(&mut self.random)
        };
        if signal {
            if !self.ecn || !packet.ecn().is_capable() {
                return fate.dropped(packet, DropReason::Signal, now);
            }
            packet.mark_ce();
            fate.marked(&packet, now);
        }
        self.backlog.add(&packet);
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn update(&mut self, now: Time) {
        let head = self.packets.front().map(Packet::arrived);
        self.pi.update(now, |at| head.map(|arrived| at.since(arrived)));
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("base_probability", self.pi.probability());
        report("drop_probability", self.pi.squared());
        report("mark_probability", self.coupled());
        report("delay_ms", self.pi.delay().as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFate, TestPacket};
    use weir_base::{Bytes, Rate};

    const LINK: Link = Link {
        rate: Rate::from_mbit_per_sec(12),
        base_rtt: Some(Span::from_millis(20)),
        mtu: Bytes::new(1500),
    };

    /// Offers unresponsive `ecn` packets at a load for a minute: the queue, and the dropped and marked shares of the last half.
    fn drive(load: f64, ecn: Ecn) -> (Pi2<TestPacket>, f64, f64) {
        let mut pi2 = Pi2::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        let (mut fate, mut half, mut offered) = (TestFate::default(), TestFate::default(), 0.0f64);
        for ms in 0..60_000u64 {
            let now = Time::ZERO + Span::from_millis(ms);
            offered += load;
            while offered >= 1.0 {
                offered -= 1.0;
                let mut packet = TestPacket::new(1500, ecn);
                packet.arrive(now);
                pi2.enqueue(packet, now, if ms < 30_000 { &mut fate } else { &mut half });
            }
            pi2.dequeue(now, &mut fate);
        }
        let all = 30_000.0 * load;
        (pi2, half.dropped as f64 / all, half.marked as f64 / all)
    }

    #[test]
    fn an_unresponsive_overload_settles_where_the_square_drops_the_excess() {
        // The load is a fifth too high: a sixth is dropped, so p' is sqrt(1/6) = 0.408, and the delay is held at 20 ms.
        let (pi2, dropped, _) = drive(1.2, Ecn::NotEct);
        assert!((dropped - 1.0 / 6.0).abs() < 0.01, "{dropped}");
        assert!((pi2.pi.probability() - 0.408).abs() < 0.06, "{}", pi2.pi.probability());
        assert!((10.0..30.0).contains(&pi2.pi.delay().as_millis_f64()), "{:?}", pi2.pi.delay());
    }

    #[test]
    fn scalable_packets_are_marked_by_the_coupled_probability_and_classic_ones_by_the_square() {
        let mut pi2 = Pi2::new(&Config::default(), &LINK, Random::stream(1, "queue"));
        // A standing delay of 20 ms keeps p' where it is; 10,000 packets of each kind.
        pi2.pi = Pi::new(Span::from_millis(20), Span::from_secs(3600), 0.3125, 3.125, 1.0);
        let hour = Time::ZERO + Span::from_secs(3600);
        let share = |pi2: &mut Pi2<TestPacket>, ecn| {
            let mut fate = TestFate::default();
            for _ in 0..10_000 {
                pi2.enqueue(TestPacket::new(1500, ecn), hour, &mut fate);
                pi2.dequeue(hour, &mut fate);
            }
            (fate.marked as f64 / 1e4, fate.dropped as f64 / 1e4)
        };
        // One step at 3.125 (0.1 - 0) + 0.3125 (0.1 - 0.02) = 0.3375.
        let mut packet = TestPacket::new(1500, Ecn::Ect0);
        packet.arrive(Time::ZERO + Span::from_millis(3_599_900));
        let mut fate = TestFate::default();
        pi2.enqueue(packet, Time::ZERO + Span::from_millis(3_599_900), &mut fate);
        pi2.dequeue(hour, &mut fate);
        assert!((pi2.pi.probability() - 0.3375).abs() < 1e-9, "{}", pi2.pi.probability());
        let (marked, dropped) = share(&mut pi2, Ecn::Ect1);
        assert!((marked - 0.675).abs() < 0.02 && dropped == 0.0, "{marked} {dropped}");
        let (marked, dropped) = share(&mut pi2, Ecn::Ect0);
        assert!((marked - 0.1139).abs() < 0.015 && dropped == 0.0, "{marked} {dropped}");
        let (marked, dropped) = share(&mut pi2, Ecn::NotEct);
        assert!((dropped - 0.1139).abs() < 0.015 && marked == 0.0, "{marked} {dropped}");
    }
}
