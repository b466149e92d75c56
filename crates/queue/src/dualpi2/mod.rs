//! DualPI2: a queue for L4S traffic (ECT(1), CE) with a shallow marking threshold, and a queue for classic traffic under PI2. The
//! classic controller's base probability p' is squared for classic packets and multiplied by k for the marks of L4S packets, so
//! that flows of both kinds get about equal rates (RFC 9332; Linux `sch_dualpi2`).
//!
//! The controller's variable is p' of RFC 9332: p_C = p'^2, p_CL = k p', overload from p' = 1/k on.

mod config;
mod overload;
#[cfg(test)]
mod tests;

pub(crate) use config::Config;
use config::{Delay, Mask, OverloadControl, OverloadMarking, OverloadPriority, Scheduler};
use overload::{Losses, Separate};

use crate::limit::Room;
use crate::pi::{Pi, signals_squared};
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue};
use std::collections::VecDeque;
use weir_base::{Bytes, Ecn, Packet, Random, Span, Time};

/// Weights of the round robin are whole percents, as in Linux.
const WHOLE: i64 = 100;

/// The threshold of the step.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    Sojourn(Span),
    Length(Room),
}

/// A coupled dual queue.
#[derive(Debug)]
pub(crate) struct DualPi2<P> {
    classic: VecDeque<P>,
    /// Each packet with whether the step applies to it.
    l4s: VecDeque<(P, bool)>,
    /// Both queues together.
    backlog: Backlog,
    l4s_backlog: Backlog,
    room: Room,
    pi: Pi,
    /// The separate controller of L4S drops; `None` if p' decides about them.
    separate: Option<Separate>,
    /// Losses of the classic and of the L4S queue.
    losses: [Losses; 2],
    /// When the L4S queue was last empty.
    l4s_empty: Time,
    config: Config,
    threshold: Threshold,
    /// p' gives no signals while fewer bytes than this are queued.
    small: Bytes,
    /// Weights of the classic and the L4S queue.
    weights: [i64; 2],
    /// Credit of the round robin, in weighted bytes: L4S is next unless it is positive.
    credit: i64,
    credit_at_rest: i64,
    random: Random,
}

/// The decision on a packet.
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
        let room = config.limit.room(link);
        DualPi2 {
            classic: VecDeque::new(),
            l4s: VecDeque::new(),
            backlog: Backlog::default(),
            l4s_backlog: Backlog::default(),
            room: config.memory_limit.map_or(room, |bytes| room.within(bytes)),
            pi: Pi::new(config.target, config.tupdate, config.alpha, config.beta, most),
            separate: (config.drop_overload && config.overload_control == OverloadControl::Separate)
                .then(|| Separate::new(config)),
            losses: [Losses::default(), Losses::default()],
            l4s_empty: Time::ZERO,
            threshold: match config.step_thresh {
                Limit::Time(span) => Threshold::Sojourn(span),
                length => Threshold::Length(length.room(link)),
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

    /// p_CL = k p', not limited to 1.
    fn coupled(&self) -> f64 {
        self.config.coupling_factor * self.pi.probability()
    }

    /// Whether k p' has reached `l_drop`, where marks no longer signal a higher p'.
    fn is_saturated(&self) -> bool {
        self.config.drop_overload && self.coupled() >= self.config.l_drop && self.pi.probability() > 0.0
    }

    /// Whether L4S packets are dropped.
    fn is_overloaded(&self) -> bool {
        self.separate.as_ref().map_or_else(|| self.is_saturated(), Separate::is_on)
    }

    /// The square root of the probability of a drop, or of a classic mark.
    #[inline]
    fn root(&self, l4s: bool) -> f64 {
        match &self.separate {
            Some(separate) if l4s => separate.root(),
            // The coupling of marks in reverse: the root of L4S is k times that of classic.
            Some(separate) => {
                self.pi.probability().max(separate.root() / self.config.coupling_factor.max(1.0))
            }
            None => self.pi.probability(),
        }
    }

    /// Whether L4S is next while both queues hold packets.
    fn prefers_l4s(&self, now: Time) -> bool {
        match self.config.scheduler {
            Scheduler::Strict => true,
            Scheduler::Wrr => self.credit <= 0,
            Scheduler::TimeShifted => {
                let wait = |l4s| self.head(l4s).map_or(Span::ZERO, |arrived| now.since(arrived));
                wait(true) + self.config.t_shift >= wait(false)
            }
        }
    }

    /// The decision on a packet by p' and by `native`, the marking probability of the L4S queue's own AQM (RFC 9332, appendix A.2;
    /// Linux `must_drop`).
    #[inline]
    fn judge(&mut self, l4s: bool, capable: bool, native: f64) -> Verdict {
        let quiet = self.backlog.bytes < self.small;
        if !quiet && (!l4s || self.is_overloaded()) && signals_squared(self.root(l4s), &mut self.random) {
            return match (self.is_overloaded() || self.is_saturated(), capable) {
                (true, true) => Verdict::Drop(DropReason::Overload),
                (false, true) => Verdict::Mark,
                (_, false) => Verdict::Drop(DropReason::Signal),
            };
        }
        if !l4s {
            return Verdict::Pass;
        }
        let only_step = self.config.overload_marking == OverloadMarking::Step && self.is_overloaded();
        let coupled = if quiet || only_step { 0.0 } else { self.coupled() };
        let probability = coupled.max(native);
        let marks = probability > 0.0 && (probability >= 1.0 || self.random.chance(probability));
        if marks { Verdict::Mark } else { Verdict::Pass }
    }

    /// The marking probability of the L4S queue's own AQM, a step or a ramp (RFC 9332, appendix A.1, `laqm`).
    #[inline]
    fn native(&self, packet: &P, applies: bool, now: Time) -> f64 {
        let above = match self.threshold {
            Threshold::Length(room) => room.is_exceeded(self.l4s_backlog),
            Threshold::Sojourn(mut least) => {
                let sojourn = now.since(packet.arrived());
                if now.since(self.l4s_empty) <= self.config.burst_window {
                    least += self.config.step_burst;
                }
                if applies && sojourn > least && !self.config.ramp.is_zero() {
                    return ((sojourn - least).as_secs_f64() / self.config.ramp.as_secs_f64()).min(1.0);
                }
                sojourn > least
            }
        };
        f64::from(u8::from(applies && above))
    }

    /// Weights of the classic and the L4S queue in the round robin.
    #[inline]
    fn weights(&self) -> [i64; 2] {
        let [classic, l4s] = self.weights;
        let yields = self.config.overload_priority == OverloadPriority::Classic
            && self.separate.as_ref().is_some_and(Separate::is_on);
        if yields { [l4s, classic] } else { [classic, l4s] }
    }

    /// When a queue's first packet arrived; `None` if the queue is empty.
    fn head(&self, l4s: bool) -> Option<Time> {
        if l4s {
            self.l4s.front().map(|(packet, _)| packet.arrived())
        } else {
            self.classic.front().map(Packet::arrived)
        }
    }

    /// Takes all steps of the controllers that are due.
    #[cold]
    fn update_all(&mut self, now: Time) {
        if !self.config.limit_patience.is_zero() {
            self.learn_from_losses(now);
        }
        let (classic, l4s) = (self.head(false), self.head(true));
        let head = match self.config.delay {
            Delay::Classic => classic,
            Delay::ClassicFirst => classic.or(l4s),
            Delay::Longest => match (classic, l4s) {
                (Some(classic), Some(l4s)) => Some(classic.min(l4s)),
                (classic, l4s) => classic.or(l4s),
            },
        };
        self.pi.update(now, |at| head.map(|arrived| at.since(arrived)));
        if let Some(separate) = &mut self.separate {
            separate.update(now, |at| l4s.map(|arrived| at.since(arrived)));
        }
    }

    /// Raises the probabilities by the drops of the limit, before an update that is due.
    fn learn_from_losses(&mut self, now: Time) {
        let patience = self.config.limit_patience;
        for l4s in [false, true] {
            let head = self.head(l4s);
            let pi = match &mut self.separate {
                Some(separate) if l4s => &mut separate.pi,
                _ => &mut self.pi,
            };
            let above = head.is_some_and(|head| now.since(head) > pi.target());
            if let Some(root) = self.losses[usize::from(l4s)].update(now, above, patience) {
                pi.raise(root);
            }
        }
    }

    /// Takes the next packet out: the packet, whether it was in the L4S queue, whether the step applies to it, and its change of the
    /// credit.
    #[inline]
    fn take(&mut self, now: Time) -> Option<(P, bool, bool, i64)> {
        let (no_classic, no_l4s) = (self.classic.is_empty(), self.l4s.is_empty());
        // While one queue is empty, packets of the other cost no credit.
        let (takes_l4s, [classic, l4s]) =
            if no_classic || no_l4s { (no_classic, [0, 0]) } else { (self.prefers_l4s(now), self.weights()) };
        if takes_l4s {
            let (packet, applies) = self.l4s.pop_front()?;
            self.backlog.remove(&packet);
            self.l4s_backlog.remove(&packet);
            let cost = classic * i64::from(packet.wire_length());
            Some((packet, true, applies, cost))
        } else {
            let packet = self.classic.pop_front()?;
            self.backlog.remove(&packet);
            let cost = -l4s * i64::from(packet.wire_length());
            Some((packet, false, false, cost))
        }
    }

    /// Decides on an arriving packet: returns it, perhaps marked, with whether it goes to the L4S queue, or drops it.
    #[inline(always)]
    fn admit(&mut self, mut packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<(P, bool)> {
        self.update(now);
        let (length, backlog) = (packet.wire_length(), self.backlog);
        let l4s = self.is_l4s(&packet);
        let losses = &mut self.losses[usize::from(l4s)];
        losses.offered += 1;
        if !self.room.fits(backlog, length) {
            losses.lost += 1;
            losses.full += 1;
            fate.dropped(packet, DropReason::Full, now);
            return None;
        }
        if self.config.drop_early {
            match self.judge(l4s, packet.ecn().is_capable(), 0.0) {
                Verdict::Pass => {}
                Verdict::Mark => {
                    packet.mark_ce();
                    fate.marked(&packet, now);
                }
                Verdict::Drop(reason) => {
                    self.losses[usize::from(l4s)].lost += 1;
                    fate.dropped(packet, reason, now);
                    return None;
                }
            }
        }
        Some((packet, l4s))
    }

    /// Decides on a packet that was taken out: returns it, perhaps marked, or drops it.
    #[inline(always)]
    fn release(
        &mut self,
        mut packet: P,
        l4s: bool,
        applies: bool,
        now: Time,
        fate: &mut dyn Fate<P>,
    ) -> Option<P> {
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
                self.losses[usize::from(l4s)].lost += 1;
                fate.dropped(packet, reason, now);
                return None;
            }
            // A packet that this queue marked on arrival is not marked again.
            Verdict::Mark if packet.ecn() != Ecn::Ce || packet.class() == Ecn::Ce => {
                packet.mark_ce();
                fate.marked(&packet, now);
            }
            Verdict::Mark | Verdict::Pass => {}
        }
        Some(packet)
    }

    /// Whether the step applies to a packet that arrives now.
    fn step_applies(&self) -> bool {
        self.l4s_backlog.packets >= self.config.min_qlen_step
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        let Some((packet, l4s)) = self.admit(packet, now, fate) else { return };
        self.backlog.add(&packet);
        if l4s {
            if self.l4s.is_empty() {
                self.l4s_empty = now;
            }
            let applies = self.step_applies();
            self.l4s_backlog.add(&packet);
            self.l4s.push_back((packet, applies));
        } else {
            self.classic.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        self.update(now);
        let sent = loop {
            let Some((packet, l4s, applies, cost)) = self.take(now) else { break None };
            if let Some(packet) = self.release(packet, l4s, applies, now, fate) {
                self.credit += cost;
                break Some(packet);
            }
        };
        if self.backlog.packets == 0 {
            self.credit = self.credit_at_rest;
        }
        sent
    }

    fn pass(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        let (packet, l4s) = self.admit(packet, now, fate)?;
        if l4s {
            self.l4s_empty = now;
        }
        let applies = self.step_applies();
        // The other queue is empty, so the packet costs no credit.
        self.release(packet, l4s, applies, now, fate)
    }

    #[inline]
    fn update(&mut self, now: Time) {
        if now >= self.pi.next_update() {
            self.update_all(now);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, report: &mut dyn FnMut(&str, f64)) {
        report("base_probability", self.pi.probability());
        report("drop_probability", self.root(false) * self.root(false));
        if let Some(separate) = &self.separate {
            report("l4s_drop_probability", separate.root() * separate.root());
            report("l4s_delay_ms", separate.pi.delay().as_millis_f64());
        }
        report("mark_probability", self.coupled().min(1.0));
        report("delay_ms", self.pi.delay().as_millis_f64());
        report("classic_packets", f64::from(self.backlog.packets - self.l4s_backlog.packets));
        report("l4s_packets", f64::from(self.l4s_backlog.packets));
        report("overload", f64::from(u8::from(self.is_overloaded())));
    }
}
