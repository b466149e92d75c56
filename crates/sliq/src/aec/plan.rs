//! The planner: it chooses the size of groups and the rounds in which they are sent, so that enough packets arrive by the deadline with
//! the fewest packets sent.
//!
//! A plan's last packet must arrive in time whatever the earlier rounds lose. A round begins a round trip after the last packet of the
//! round before has left, and each packet takes its time to send. A first round of `n` packets and later rounds of at most `m` packets
//! each therefore last `(n + (rounds - 1) m) packet times + (rounds - 1) RTT + one-way delay`, from when the first packet is written. An
//! application that writes its packets one by one lengthens that: each source packet but the first waits until it is written. Among the
//! plans that this allows, [`super::optimum`] finds the best for each size of group, number of rounds and first round; the GNAT report
//! took tables made beforehand.

use super::odds::{self, Have, MOST_IN_ROUND, Odds};
use super::optimum::{Found, Problem, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_base::Span;

/// Maximum number of source packets of a group (the GNAT software has 10).
pub(super) const MOST_SOURCES: usize = 10;
/// Maximum number of rounds of a group (the GNAT software has 7).
pub(super) const MOST_ROUNDS: usize = 7;
/// Higher rates of loss count as this one.
pub const WORST_PER: f64 = 0.9;
/// Steps of the rate of loss in the cache: the rate is rounded up to a multiple of 1/100.
const PER_STEPS: f64 = 100.0;
/// Number of plans in the cache before it is emptied: a channel whose state varies needs some dozens.
const CACHED: usize = 256;

/// The channel for which a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Channel {
    /// Probability that a packet is lost, below 1. Losses count as independent.
    pub per: f64,
    /// The longest round trip time to be expected, from when a packet has left to when its acknowledgement arrives.
    pub rtt: Span,
    /// The longest one-way delay to the receiver to be expected.
    pub owd: Span,
    /// Time from one packet to the next at the sender's rate.
    pub packet_time: Span,
    /// Time from one write of the application to the next. A gap below the packet time does not count, since packets then wait to be sent.
    pub gap: Span,
}

/// The goal of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goal {
    /// Time from the write at the sender to the delivery at the receiver.
    pub deadline: Span,
    /// The share of packets to be delivered within the deadline, below 1.
    pub target: f64,
}

/// How a group is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Source packets alone, retransmitted as long as there is time.
    PureArq,
    /// Source and repair packets, in several rounds.
    CodedArq,
    /// Source and repair packets, in one round.
    Fec,
}

impl Mode {
    /// All modes, with the names under which their groups are counted.
    pub(crate) const ALL: [(Mode, &str); 3] =
        [(Mode::PureArq, "pure_arq_groups"), (Mode::CodedArq, "coded_arq_groups"), (Mode::Fec, "fec_groups")];
}

/// How groups are sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// How groups are protected.
    pub mode: Mode,
    /// Number of source packets of a group.
    pub k: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Number of packets of the first round, source packets first.
    pub first: usize,
    /// Mean number of packets sent per source packet.
    pub sent: f64,
    /// A lower bound of `sent` for plans with this group size, number of rounds and first round.
    pub least: f64,
    /// The expected share of source packets that are delivered in time.
    pub delivery: f64,
    /// Source packets that are delivered in time, per packet that arrives.
    pub efficiency: f64,
    /// The latest arrival of a group's last packet, from when its first packet is written.
    pub latest: Span,
    #[serde(skip)]
    later: Table,
}

impl Plan {
    /// The number of packets that a round (from 0) sends when the receiver has `have` of the group: the missing source packets first, then
    /// repair packets. 0 if the group is complete or the rounds are over.
    pub fn packets(&self, round: usize, have: Have) -> usize {
        if round >= self.rounds || have.packets() >= self.k {
            return 0;
        }
        match round.checked_sub(1) {
            None => self.first,
            Some(round) => self.later[round][odds::index(self.k, have)].into(),
        }
    }

    fn new(problem: &Problem<'_>, found: Found, channel: &Channel) -> Plan {
        let Problem { k, later, first, .. } = *problem;
        // A round sends repair packets only if it sends more packets than source packets are missing.
        let coded = first > k
            || found.table.iter().any(|round| {
                odds::states(k)
                    .zip(round)
                    .any(|(have, packets)| have.repairs == 0 && usize::from(*packets + have.sources) > k)
            });
        let mode = match (coded, later) {
            (false, _) => Mode::PureArq,
            (true, 0) => Mode::Fec,
            (true, _) => Mode::CodedArq,
        };
        let most = found.table.iter().map(|round| u64::from(round.iter().copied().max().unwrap_or(0)));
        let longest = first as u64 + most.sum::<u64>();
        let sources = k as f64;
        let delivery = 1.0 - found.loss;
        Plan {
            mode,
            k,
            rounds: later + 1,
            first,
            sent: found.sent / sources,
            least: found.least / sources,
            delivery,
            efficiency: delivery * sources / (found.sent * (1.0 - channel.per)),
            latest: channel.packet_time * longest
                + channel.gap.saturating_sub(channel.packet_time) * (k as u64 - 1)
                + channel.rtt * later as u64
                + channel.owd,
            later: found.table,
        }
    }
}

/// The chosen plan, and the plans that it beat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The plan that reaches the target with the fewest packets; if none reaches it, the plan that delivers most.
    pub plan: Plan,
    /// Whether the plan reaches the target.
    pub reaches_target: bool,
    /// For each other number of rounds the best plan that reaches the target, fewer rounds first. Plans with more rounds than pure ARQ
    /// needs are left out.
    pub beaten: Vec<Plan>,
}

/// Steps per packet time in which [`Room`] counts the gap between writes.
const GAP_STEPS: u64 = 8;

/// The number of packets for which the deadline leaves time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    /// Packets of a group of one over all rounds, by the number of rounds minus one.
    packets: [u16; MOST_ROUNDS],
    /// How much the gap between writes exceeds a packet time, in steps, rounded up.
    gap: u16,
}

impl Room {
    fn new(channel: &Channel, deadline: Span) -> Room {
        let packet_time = channel.packet_time.as_nanos().max(1);
        let gap = channel.gap.saturating_sub(channel.packet_time).as_nanos() * GAP_STEPS;
        // At the maximum a group of two has no room, and longer gaps change nothing.
        let gap = gap.div_ceil(packet_time).min(u16::MAX.into()) as u16;
        let packets = std::array::from_fn(|later| {
            let time = deadline.saturating_sub(channel.owd + channel.rtt * later as u64);
            // More packets than the maximum of all rounds make no difference.
            let most = (later as u64 + 1) * MOST_IN_ROUND as u64 + Room::lost_to(gap, MOST_SOURCES);
            (time.as_nanos() / packet_time).min(most).min(u16::MAX.into()) as u16
        });
        Room { packets, gap }
    }

    /// The packets for which a group of `k` has no time, since its packets are written one by one.
    fn lost_to(gap: u16, k: usize) -> u64 {
        ((k as u64 - 1) * u64::from(gap)).div_ceil(GAP_STEPS)
    }

    /// The packets of a group of `k` over all rounds; 0 if there is less than one for each round.
    fn packets(&self, k: usize, later: usize) -> usize {
        let packets = u64::from(self.packets[later]).saturating_sub(Room::lost_to(self.gap, k));
        let most = (later + 1) * MOST_IN_ROUND;
        if packets <= later as u64 { 0 } else { (packets as usize).min(most) }
    }
}

/// Chooses the plan for this channel without rounding its numbers. `None` if not even one packet arrives by the deadline.
pub fn choose(channel: &Channel, goal: &Goal) -> Option<Choice> {
    let task = Task::new(channel, goal);
    let mut plans: Vec<Plan> = task.rounds().filter_map(|later| task.best(later, f64::INFINITY)).collect();
    let Some(best) = (0..plans.len()).min_by(|a, b| plans[*a].sent.total_cmp(&plans[*b].sent)) else {
        return task.safest();
    };
    let plan = plans.remove(best);
    Some(Choice { plan, reaches_target: true, beaten: plans })
}

/// As [`choose`] without the plans that are beaten, in a fraction of the time: more rounds usually need fewer packets, so few plans with
/// fewer rounds have to be tried.
fn choose_quickly(channel: &Channel, goal: &Goal) -> Option<Choice> {
    let task = Task::new(channel, goal);
    let mut best: Option<Plan> = None;
    for later in task.rounds().rev() {
        // Of plans with equally many packets the one with fewer rounds is chosen.
        let beat = best.as_ref().map_or(f64::INFINITY, |best| best.sent * (1.0 + 1e-12));
        best = task.best(later, beat).or(best);
    }
    match best {
        Some(plan) => Some(Choice { plan, reaches_target: true, beaten: Vec::new() }),
        None => task.safest(),
    }
}

/// A channel and a goal in the form that the search for a plan needs.
struct Task {
    channel: Channel,
    odds: Odds,
    room: Room,
    /// The maximum share of lost source packets.
    allowed: f64,
}

impl Task {
    fn new(channel: &Channel, goal: &Goal) -> Task {
        let channel = Channel { per: channel.per.clamp(0.0, WORST_PER), ..*channel };
        // A margin for rounding.
        let allowed = 1.0 - goal.target + 1e-12;
        Task { channel, odds: Odds::new(channel.per), room: Room::new(&channel, goal.deadline), allowed }
    }

    /// The numbers of rounds, minus one, for which there is time. More rounds than pure ARQ needs are useless: it delivers all that
    /// arrives, and plans that send fewer packets only deliver less.
    fn rounds(&self) -> std::ops::Range<usize> {
        let fit = (0..MOST_ROUNDS).take_while(|later| self.room.packets(1, *later) > 0).count();
        let lost = |later: &usize| self.channel.per.powi(*later as i32 + 1);
        let pure = (0..fit).find(|later| lost(later) <= self.allowed);
        0..pure.map_or(fit, |later| later + 1)
    }

    /// The plan with `later + 1` rounds that sends the fewest packets per source packet; `None` if it does not send fewer than `beat`.
    fn best(&self, later: usize, beat: f64) -> Option<Plan> {
        let (mut best, mut price): (Option<Plan>, f64) = (None, 0.0);
        for_each_problem(&self.odds, later, &self.room, self.allowed, |problem| {
            let beat = best.as_ref().map_or(beat, |best| best.sent * (1.0 - 1e-12)) * problem.k as f64;
            // A first round with more packets than the best plan sends in all is useless, and so is any longer one.
            let is_arq = best.as_ref().is_some_and(|best| best.mode == Mode::PureArq);
            if is_arq || problem.first as f64 >= beat {
                return false;
            }
            if let Some(found) = problem.solve(beat, &mut price) {
                best = Some(Plan::new(&problem, found, &self.channel));
            }
            true
        });
        best
    }

    /// The plan that delivers most, if none reaches the target.
    fn safest(&self) -> Option<Choice> {
        let plan = safest(&self.odds, &self.room, &self.channel)?;
        Some(Choice { plan, reaches_target: false, beaten: Vec::new() })
    }
}

/// The plan that delivers most; of equal plans the one with fewer packets.
fn safest(odds: &Odds, room: &Room, channel: &Channel) -> Option<Plan> {
    let mut best: Option<Plan> = None;
    for later in (0..MOST_ROUNDS).filter(|later| room.packets(1, *later) > 0) {
        for_each_problem(odds, later, room, 0.0, |problem| {
            let plan = Plan::new(&problem, problem.safest(), channel);
            let better = |best: &Plan| (plan.delivery, best.sent) > (best.delivery, plan.sent);
            if best.as_ref().is_none_or(better) {
                best = Some(plan);
            }
            true
        });
    }
    best
}

/// Calls `each` for the sizes of groups and of first rounds for which there is room. If it returns `false`, longer first rounds of this
/// size are skipped.
fn for_each_problem<'a>(
    odds: &'a Odds,
    later: usize,
    room: &Room,
    allowed: f64,
    mut each: impl FnMut(Problem<'a>) -> bool,
) {
    for k in 1..=MOST_SOURCES {
        let packets = room.packets(k, later);
        for first in k..=packets.saturating_sub(later).min(MOST_IN_ROUND) {
            let most = (packets - first).checked_div(later).unwrap_or(0).min(MOST_IN_ROUND);
            if !each(Problem { odds, k, later, first, most, allowed }) {
                break;
            }
        }
    }
}

/// A planner for one goal with a cache of plans. It rounds the rate of loss to hundredths and delays to whole packets, so that a steady
/// channel keeps its plan.
#[derive(Debug)]
pub struct Planner {
    goal: Goal,
    plans: BTreeMap<(u32, Room), Option<Arc<Choice>>>,
}

impl Planner {
    /// A planner for this goal.
    pub fn new(goal: Goal) -> Planner {
        Planner { goal, plans: BTreeMap::new() }
    }

    /// Time from write to delivery.
    pub fn deadline(&self) -> Span {
        self.goal.deadline
    }

    /// The plan for this channel, with its rate of loss rounded up, for a group whose first packet has waited this long to be sent. `None`
    /// if not even one packet arrives by the deadline.
    pub fn plan(&mut self, channel: &Channel, waited: Span) -> Option<Arc<Choice>> {
        let step = (channel.per.clamp(0.0, WORST_PER) * PER_STEPS).ceil();
        let goal = Goal { deadline: self.goal.deadline.saturating_sub(waited), ..self.goal };
        let key = (step as u32, Room::new(channel, goal.deadline));
        if self.plans.len() >= CACHED && !self.plans.contains_key(&key) {
            self.plans.clear();
        }
        let rounded = Channel { per: step / PER_STEPS, ..*channel };
        self.plans.entry(key).or_insert_with(|| choose_quickly(&rounded, &goal).map(Arc::new)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// The GNAT report's link: 10 Mbit/s, 10 ms each way, packets of 1,250 bytes.
    fn gnat(per: f64) -> Channel {
        Channel { per, rtt: ms(20), owd: ms(10), packet_time: ms(1), gap: Span::ZERO }
    }

    fn plan(per: f64, deadline: u64) -> Choice {
        choose(&gnat(per), &Goal { deadline: ms(deadline), target: 0.995 }).unwrap()
    }

    #[test]
    fn a_clean_channel_sends_each_packet_once() {
        let Choice { plan, reaches_target, .. } = plan(0.0, 30);
        assert!(reaches_target);
        assert_eq!((plan.mode, plan.k, plan.rounds, plan.first), (Mode::PureArq, 1, 1, 1));
        assert_eq!((plan.sent, plan.delivery, plan.efficiency), (1.0, 1.0, 1.0));
        assert_eq!(plan.latest, ms(11));
    }

    #[test]
    fn a_deadline_with_time_for_enough_retransmissions_selects_pure_arq() {
        // 0.4^6 = 0.0041 is allowed, and six rounds end after 6 + 100 + 10 ms; 0.1^3 after 3 + 40 + 10 ms.
        for (per, deadline, rounds, latest) in [(0.4, 170, 6, 116), (0.1, 70, 3, 53)] {
            let Choice { plan, .. } = plan(per, deadline);
            assert_eq!((plan.mode, plan.k, plan.rounds, plan.latest), (Mode::PureArq, 1, rounds, ms(latest)));
            assert!((plan.efficiency - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_deadline_without_time_for_acknowledgements_selects_fec() {
        // The best published codes of at most ten source packets at these rates of loss (optimum by dynamic programming). 20 ms are 20
        // packets.
        for (per, published) in [(0.1, 0.791), (0.2, 0.701)] {
            let Choice { plan, .. } = plan(per, 30);
            assert_eq!((plan.mode, plan.rounds), (Mode::Fec, 1));
            assert!((plan.efficiency - published).abs() < 0.002, "{plan:?}");
            assert!(plan.latest <= ms(30));
        }
    }

    #[test]
    fn coded_arq_is_as_good_as_the_published_optimum() {
        // Best efficiency by rounds at a target of 0.995 (the optimum published with the GNAT software), for k up to 10.
        let published = [
            (0.1, 2, 0.950),
            (0.2, 2, 0.929),
            (0.2, 3, 0.979),
            (0.3, 2, 0.895),
            (0.3, 3, 0.961),
            (0.4, 2, 0.859),
            (0.4, 3, 0.939),
            (0.5, 2, 0.839),
            (0.5, 3, 0.918),
        ];
        for (per, rounds, published) in published {
            // Only the number of rounds is limited: packets take no time.
            let channel = Channel { owd: ms(0), packet_time: Span::from_nanos(1), ..gnat(per) };
            let deadline = ms(20 * rounds - 10);
            let choice = choose(&channel, &Goal { deadline, target: 0.995 }).unwrap();
            let plan = choice.plan;
            assert_eq!((plan.mode, plan.rounds as u64), (Mode::CodedArq, rounds));
            assert!(plan.efficiency > published - 0.002, "{per} {rounds}: {} {published}", plan.efficiency);
        }
    }

    /// A grid of rates of loss and deadlines. The bound is that of the dual problem, which no plan can beat.
    #[test]
    fn every_plan_is_within_half_a_point_of_its_bound_and_meets_target_and_deadline() {
        for per in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5] {
            for deadline in (30..=170).step_by(20) {
                let Choice { plan, reaches_target, beaten } = plan(per, deadline);
                let bound = plan.delivery / (plan.least * (1.0 - per));
                assert!(bound - plan.efficiency < 0.005, "{per} {deadline}: {plan:?}");
                assert!(plan.latest <= ms(deadline), "{per} {deadline}: {plan:?}");
                assert!(!reaches_target || plan.delivery >= 0.995 - 1e-9, "{per} {deadline}: {plan:?}");
                assert!(beaten.iter().all(|other| other.sent >= plan.sent));
                // The plan that a connection uses, which is found without the beaten plans.
                let quick =
                    choose_quickly(&gnat(per), &Goal { deadline: ms(deadline), target: 0.995 }).unwrap();
                assert!((quick.plan.sent / plan.sent - 1.0).abs() < 0.002, "{per} {deadline}: {quick:?}");
            }
        }
    }

    #[test]
    fn a_target_out_of_reach_gets_the_plan_that_delivers_most() {
        // Three packets have time: three copies of one, 1 - 0.5^3.
        let channel = Channel { per: 0.5, ..gnat(0.5) };
        let choice = choose(&channel, &Goal { deadline: ms(13), target: 0.995 }).unwrap();
        assert!(!choice.reaches_target);
        assert_eq!((choice.plan.k, choice.plan.first, choice.plan.delivery), (1, 3, 0.875));
        assert!(choose(&channel, &Goal { deadline: ms(10), target: 0.995 }).is_none());
    }

    #[test]
    fn a_planner_rounds_the_loss_rate_up_to_a_hundredth_and_keeps_the_plan() {
        let mut planner = Planner::new(Goal { deadline: ms(50), target: 0.995 });
        let first = planner.plan(&gnat(0.1931), Span::ZERO).unwrap();
        assert_eq!(first.plan, plan(0.2, 50).plan);
        assert!(Arc::ptr_eq(&first, &planner.plan(&gnat(0.1999), Span::ZERO).unwrap()));
        assert!(!Arc::ptr_eq(&first, &planner.plan(&gnat(0.2001), Span::ZERO).unwrap()));
    }

    #[test]
    fn time_spent_in_the_send_queue_is_subtracted_from_the_deadline() {
        let mut planner = Planner::new(Goal { deadline: ms(50), target: 0.995 });
        assert_eq!(planner.plan(&gnat(0.2), ms(20)).unwrap().plan, plan(0.2, 30).plan);
        assert!(planner.plan(&gnat(0.2), ms(40)).is_none());
    }

    #[test]
    fn slow_writes_lead_to_smaller_groups() {
        // 3 ms from one write to the next: each source packet but the first takes the time of two more.
        let slow = Channel { gap: ms(3), ..gnat(0.2) };
        let Choice { plan: slow, reaches_target, .. } =
            choose(&slow, &Goal { deadline: ms(30), target: 0.995 }).unwrap();
        let quick = plan(0.2, 30).plan;
        assert!(reaches_target && slow.k < quick.k && slow.sent > quick.sent);
        // 10 ms of delay, the packets' time, and 2 ms for each later write.
        assert_eq!(slow.latest, ms(10 + slow.first as u64 + 2 * (slow.k as u64 - 1)));
        assert!(slow.latest <= ms(30));
    }

    #[test]
    fn a_plan_gives_packets_for_each_round_until_the_group_is_complete() {
        let Choice { plan, .. } = plan(0.2, 50);
        assert_eq!((plan.mode, plan.rounds), (Mode::CodedArq, 2));
        assert_eq!(plan.packets(0, Have::NOTHING), plan.first);
        let missing_one = Have { sources: plan.k as u8 - 1, repairs: 0 };
        assert!(plan.packets(1, missing_one) >= 1);
        assert_eq!(plan.packets(1, Have { repairs: 1, ..missing_one }), 0);
        assert_eq!(plan.packets(2, missing_one), 0);
    }
}
