//! DualPI2: two queues, one for L4S traffic (ECT(1), CE) with a shallow marking threshold, one for classic traffic under PI2; the
//! classic controller's base probability p' is squared for classic packets and, times k, marks those of L4S, so that flows of
//! both kinds get about equal rates (RFC 9332; Linux `sch_dualpi2`).
//!
//! The controller's variable is p' of RFC 9332: p_C = p'^2, p_CL = k p', overload from p' = 1/k on.

mod config;
#[cfg(test)]
mod tests;

pub(crate) use config::Config;
use config::{Delay, Mask, OverloadMarking, Scheduler};

use crate::limit::Room;
use crate::pi::Pi;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue};
use std::collections::VecDeque;
use weir_base::{Bytes, Ecn, Packet, Random, Span, Time};

/// Weights of the round robin are whole percents, as in Linux.
const WHOLE: i64 = 100;

/// Where the step is.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    Sojourn(Span),
    Length(Room),
}

/// A coupled dual queue.
#[derive(Debug)]
pub struct DualPi2<P> {
    classic: VecDeque<P>,
    /// Each with whether the step applies to it.
    l4s: VecDeque<(P, bool)>,
    classic_backlog: Backlog,
    l4s_backlog: Backlog,
    room: Room,
    memory: Room,
    pi: Pi,
    config: Config,
    threshold: Threshold,
    /// With fewer bytes than this, p' gives no signals.
    small: Bytes,
    /// Weights of the classic and the L4S queue.
    weights: [i64; 2],
    /// Whose turn it is: L4S while it is not positive. In weighted bytes.
    credit: i64,
    credit_at_rest: i64,
    random: Random,
}

/// What is done with a packet.
enum Verdict {
    Pass,
    Mark,
    Drop(DropReason),
}

impl<P: Packet> DualPi2<P> {
    pub(crate) fn new(config: &Config, link: &Link, random: Random) -> DualPi2<P> {
        let most = if config.drop_overload { 1.0 } else { (1.0 / config.coupling_factor.max(1e-9)).min(1.0) };
        let classic = (config.classic_protection * WHOLE as f64).round() as i64;
        let weights = [classic, WHOLE - classic];
        let credit = link.mtu.get() as i64 * (weights[0] - weights[1]);
        DualPi2 {
            classic: VecDeque::new(),
            l4s: VecDeque::new(),
            classic_backlog: Backlog::default(),
            l4s_backlog: Backlog::default(),
            room: config.limit.resolve(link),
            memory: Room::Bytes(config.memory_limit.unwrap_or(Bytes::new(u64::MAX / 2))),
            pi: Pi::new(config.target, config.tupdate, config.alpha, config.beta, most),
            threshold: match config.step_thresh {
                Limit::Time(span) => Threshold::Sojourn(span),
                length => Threshold::Length(length.resolve(link)),
            },
            small: Bytes::new(link.mtu.get() * u64::from(config.min_backlog)),
            weights,
            credit,
            credit_at_rest: credit,
            config: config.clone(),
            random,
        }
    }

    fn is_l4s(&self, packet: &P) -> bool {
        match self.config.ecn_mask {
            Mask::L4sEct => matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce),
            Mask::AnyEct => packet.ecn().is_capable(),
        }
    }

    /// p_CL, as it would be without an upper bound.
    fn coupled(&self) -> f64 {
        self.config.coupling_factor * self.pi.probability()
    }

    fn is_overloaded(&self) -> bool {
        self.config.drop_overload && self.coupled() >= self.config.l_drop && self.pi.probability() > 0.0
    }

    /// Whether L4S is next. At least one queue holds a packet.
    #[inline]
    fn takes_l4s(&self, now: Time) -> bool {
        let (Some((l4s, _)), Some(classic)) = (self.l4s.front(), self.classic.front()) else {
            return !self.l4s.is_empty();
        };
        match self.config.scheduler {
            Scheduler::Strict => true,
            Scheduler::Wrr => self.credit <= 0,
            Scheduler::TimeShifted => {
                now.since(l4s.arrived()) + self.config.t_shift >= now.since(classic.arrived())
            }
        }
    }

    /// What p' says to a packet (RFC 9332, appendix A.2; Linux `must_drop`), with `native` for what the L4S queue's own AQM says.
    #[inline]
    fn judge(&mut self, l4s: bool, capable: bool, native: f64) -> Verdict {
        let quiet = self.backlog().bytes < self.small;
        let overloaded = self.is_overloaded();
        if !l4s || (overloaded && !quiet) {
            if !quiet && self.pi.signals_squared(&mut self.random) {
                return match (overloaded, capable) {
                    (true, true) => Verdict::Drop(DropReason::Overload),
                    (false, true) => Verdict::Mark,
                    (_, false) => Verdict::Drop(DropReason::Signal),
                };
            }
            if !l4s {
                return Verdict::Pass;
            }
        }
        let coupled = if quiet || (overloaded && self.config.overload_marking == OverloadMarking::Step) {
            0.0
        } else {
            self.coupled()
        };
        let probability = coupled.max(native);
        let marks = probability > 0.0 && (probability >= 1.0 || self.random.chance(probability));
        if marks { Verdict::Mark } else { Verdict::Pass }
    }

    /// The probability of a mark from the L4S queue's own AQM, a step or a ramp (RFC 9332, appendix A.1, `laqm`).
    #[inline]
    fn native(&self, packet: &P, applies: bool, now: Time) -> f64 {
        let above = match self.threshold {
            Threshold::Length(room) => room.is_exceeded(self.l4s_backlog),
            Threshold::Sojourn(least) => {
                let sojourn = now.since(packet.arrived());
                if applies && sojourn > least && !self.config.ramp.is_zero() {
                    return ((sojourn - least).as_secs_f64() / self.config.ramp.as_secs_f64()).min(1.0);
                }
                sojourn > least
            }
        };
        f64::from(u8::from(applies && above))
    }

    /// Takes the next packet out, with its queue, whether the step applies to it, and what it takes of the credit.
    #[inline]
    fn take(&mut self, now: Time) -> Option<(P, bool, bool, i64)> {
        let both = !self.l4s.is_empty() && !self.classic.is_empty();
        if self.takes_l4s(now) {
            let (packet, applies) = self.l4s.pop_front()?;
            self.l4s_backlog.remove(&packet);
            let cost = if both { self.weights[0] * i64::from(packet.wire_length()) } else { 0 };
            Some((packet, true, applies, cost))
        } else {
            let packet = self.classic.pop_front()?;
            self.classic_backlog.remove(&packet);
            let cost = if both { -self.weights[1] * i64::from(packet.wire_length()) } else { 0 };
            Some((packet, false, false, cost))
        }
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) {
        self.update(now);
        let (length, backlog) = (packet.wire_length(), self.backlog());
        if !self.room.fits(backlog, length) || !self.memory.fits(backlog, length) {
            return fate.dropped(packet, DropReason::Full, now);
        }
        let l4s = self.is_l4s(&packet);
        if self.config.drop_early {
            match self.judge(l4s, packet.ecn().is_capable(), 0.0) {
                Verdict::Pass => {}
                Verdict::Mark => {
                    packet.mark_ce();
                    fate.marked(&packet, now);
                }
                Verdict::Drop(reason) => return fate.dropped(packet, reason, now),
            }
        }
        if l4s {
            let applies = self.l4s_backlog.packets >= self.config.min_qlen_step;
            self.l4s_backlog.add(&packet);
            self.l4s.push_back((packet, applies));
        } else {
            self.classic_backlog.add(&packet);
            self.classic.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        let sent = loop {
            let Some((mut packet, l4s, applies, cost)) = self.take(now) else { break None };
            let native = if l4s { self.native(&packet, applies, now) } else { 0.0 };
            let verdict = if !self.config.drop_early {
                self.judge(l4s, packet.ecn().is_capable(), native)
            } else if native > 0.0 && self.random.chance(native) {
                Verdict::Mark
            } else {
                Verdict::Pass
            };
            match verdict {
                Verdict::Drop(reason) => {
                    fate.dropped(packet, reason, now);
                    continue;
                }
                // One that was marked as it arrived here is not marked again.
                Verdict::Mark if packet.ecn() != Ecn::Ce || packet.class() == Ecn::Ce => {
                    packet.mark_ce();
                    fate.marked(&packet, now);
                }
                Verdict::Mark | Verdict::Pass => {}
            }
            self.credit += cost;
            break Some(packet);
        };
        if self.backlog().packets == 0 {
            self.credit = self.credit_at_rest;
        }
        sent
    }

    fn update(&mut self, now: Time) {
        let classic = self.classic.front().map(Packet::arrived);
        let l4s = self.l4s.front().map(|(packet, _)| packet.arrived());
        let head = match self.config.delay {
            Delay::ClassicFirst => classic.or(l4s),
            Delay::Longest => match (classic, l4s) {
                (Some(classic), Some(l4s)) => Some(classic.min(l4s)),
                (classic, l4s) => classic.or(l4s),
            },
        };
        self.pi.update(now, |at| head.map(|arrived| at.since(arrived)));
    }

    fn wakeup(&self) -> Option<Time> {
        Some(self.pi.next_update())
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.classic_backlog.packets + self.l4s_backlog.packets,
            bytes: self.classic_backlog.bytes + self.l4s_backlog.bytes,
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("base_probability", self.pi.probability());
        report("drop_probability", self.pi.squared());
        report("mark_probability", self.coupled().min(1.0));
        report("delay_ms", self.pi.delay().as_millis_f64());
        report("classic_packets", f64::from(self.classic_backlog.packets));
        report("l4s_packets", f64::from(self.l4s_backlog.packets));
        report("overload", f64::from(u8::from(self.is_overloaded())));
    }
}
