//! Which flows fit (digest A 9.2).

use super::capacity::{Left, is_fast, unit_rate};
use super::seen::{BinSeen, FlowSeen, NodeSeen};
use super::{LEAST, Planner};
use crate::admission::{Command, Standing};
use crate::utility::{Config, Rule};
use weir_base::{Span, Time};

/// A flow that is on as a whole or not at all, or a set of such flows with what is elastic among them.
struct Unit<'a> {
    members: Vec<&'a FlowSeen<'a>>,
    priority: f64,
    /// The rate as a whole, in bits per second.
    whole: f64,
    /// Elastic members: the priority of each, and the most that it wants.
    elastic: Vec<(f64, f64)>,
    deadline: Option<Span>,
    standing: Standing,
    /// By how much inertia raises the price at which it yields; 1 if it is not on.
    hold: f64,
    is_lossy: bool,
}

impl Unit<'_> {
    /// Priority for a bit per second.
    fn density(&self) -> f64 {
        self.priority / self.whole
    }

    /// The same as the flow itself sees it, with its inertia. So one that has come does not displace one that holds on at any price at which
    /// the new one would.
    fn worth(&self) -> f64 {
        self.density() * self.hold
    }
}

/// The priority of an elastic flow and the most that it wants.
fn elastic(flow: &FlowSeen<'_>) -> (f64, f64) {
    let cap = match &flow.terms.utility {
        Config::Log(config) => config.cap,
        Config::Flog(config) => config.cap,
        Config::File(config) => config.cap,
        Config::Strap(_) | Config::Trap(_) => flow.terms.offered,
    };
    let most = cap.min(flow.terms.offered).bits_per_sec() as f64;
    (flow.terms.utility.priority(), most)
}

/// The standing of a set: on if all its flows are.
fn common(members: &[&FlowSeen<'_>]) -> Standing {
    let first = members.iter().map(|flow| flow.standing).find(|standing| *standing != Standing::On);
    first.unwrap_or(Standing::On)
}

/// A bin as it is judged.
struct Judged<'a> {
    bin: &'a BinSeen,
    k: f64,
    /// The elastic flows of the bin that are on.
    elastic: Vec<(f64, f64)>,
    /// What elastic flows of other bins have.
    others: f64,
    /// What is admitted of the flows that are not off, less what was found to fit.
    admitted: f64,
    /// How many flows come and go.
    thrash: u32,
    is_steady: bool,
    starts_left: u32,
    /// Flows that loss has stopped, or that try again, for which room is kept.
    kept: Vec<u32>,
}

impl Judged<'_> {
    /// The depth at which this capacity is filled by the elastic flows and these.
    fn price(&self, capacity: f64, more: &[(f64, f64)]) -> f64 {
        let all = [&self.elastic[..], more].concat();
        if all.is_empty() { 0.0 } else { self.k / unit_rate(&all, capacity - self.others) }
    }
}

impl Planner {
    pub(super) fn plan(&mut self, seen: &NodeSeen<'_>, now: Time) {
        let mut left = Left::new(seen.capacities);
        if left.total() < LEAST {
            return;
        }
        for bin in seen.bins {
            self.find_unreachable(seen, bin);
            let of_bin = || seen.flows.iter().filter(|flow| flow.bin == bin.key);
            let is_on = |flow: &&FlowSeen<'_>| flow.is_elastic() && flow.standing == Standing::On;
            let others = seen.flows.iter().filter(|flow| flow.bin != bin.key).filter(is_on);
            let trend = self.trends.entry(bin.key).or_default().clone();
            let mut judged = Judged {
                bin,
                k: seen.k,
                elastic: of_bin().filter(is_on).filter(|flow| flow.coupled.is_none()).map(elastic).collect(),
                others: others.map(|flow| self.mean(flow.number)).sum(),
                admitted: of_bin()
                    .filter(|flow| flow.standing != Standing::Off)
                    .map(|flow| self.mean(flow.number))
                    .sum(),
                thrash: of_bin().filter(|flow| self.thrashes(flow, now)).count() as u32,
                is_steady: trend.is_steady(),
                starts_left: trend.starts(),
                kept: Vec::new(),
            };
            if judged.thrash > 0 {
                self.trends.entry(bin.key).or_default().failed();
                judged.starts_left = 1;
            }
            let units = self.units(seen, bin);
            let mut refused = Vec::new();
            for unit in &units {
                self.judge(unit, &mut judged, &mut left, &mut refused);
            }
            self.stop_refused(&refused, &judged);
            self.judge_floored(seen, &mut judged, &left);
            self.probe(seen, bin, &left, &judged.kept, now);
            if judged.starts_left < trend.starts() && judged.thrash == 0 {
                self.trends.entry(bin.key).or_default().started();
            }
        }
    }

    /// Flows of which the deadline is shorter than every way: off until one is fast enough.
    fn find_unreachable(&mut self, seen: &NodeSeen<'_>, bin: &BinSeen) {
        for flow in seen.flows.iter().filter(|flow| flow.bin == bin.key) {
            let Some(deadline) = flow.terms.deadline.filter(|_| flow.terms.utility.may_be_refused()) else {
                continue;
            };
            // Toward the receiver that is farthest.
            let best = |ways: &Vec<Option<Span>>| ways.iter().flatten().min().copied().unwrap_or(Span::MAX);
            let least = bin.ways.iter().map(best).max().unwrap_or(Span::MAX);
            let (value, bound) = (least.as_millis_f64(), deadline.as_millis_f64());
            let is_out = !is_fast(Some(least), Some(deadline));
            if is_out && flow.standing != Standing::Unreachable {
                self.say(flow.number, Command::Unreachable, Rule::Unreachable, value, bound);
            } else if !is_out && flow.standing == Standing::Unreachable {
                self.say(flow.number, Command::Start, Rule::Unreachable, value, bound);
            }
        }
    }

    /// The flows of a bin that are on as a whole or not at all, those first that are worth most for a bit; of equal ones those that are on.
    fn units<'a>(&self, seen: &NodeSeen<'a>, bin: &BinSeen) -> Vec<Unit<'a>> {
        let present = |flow: &&FlowSeen<'_>| {
            flow.bin == bin.key && flow.standing.is_present() && flow.standing != Standing::Unreachable
        };
        let mut units: Vec<Unit<'a>> = Vec::new();
        let mut sets: Vec<u32> = Vec::new();
        for flow in seen.flows.iter().filter(present) {
            let members: Vec<&FlowSeen<'a>> = match flow.coupled {
                Some(set) if sets.contains(&set) => continue,
                Some(set) => {
                    sets.push(set);
                    seen.flows.iter().filter(present).filter(|other| other.coupled == Some(set)).collect()
                }
                None => vec![flow],
            };
            let rates = members.iter().filter_map(|flow| flow.terms.utility.whole(flow.terms.offered));
            let whole: f64 = rates.map(|rate| rate.bits_per_sec() as f64).sum();
            if whole <= 0.0 {
                continue;
            }
            let inelastic = members.iter().filter(|flow| !flow.is_elastic());
            let priority = inelastic.map(|flow| flow.terms.utility.priority()).fold(0.0, f64::max);
            units.push(Unit {
                priority,
                whole,
                elastic: members.iter().filter(|flow| flow.is_elastic()).map(|flow| elastic(flow)).collect(),
                deadline: members.iter().filter_map(|flow| flow.terms.deadline).min(),
                standing: common(&members),
                hold: members.iter().map(|flow| flow.hold).fold(f64::INFINITY, f64::min),
                is_lossy: members
                    .iter()
                    .any(|flow| self.flows.get(&flow.number).is_some_and(|memory| memory.is_lossy)),
                members,
            });
        }
        units.sort_by(|a, b| {
            let on = |unit: &Unit<'_>| unit.standing != Standing::On;
            b.worth().total_cmp(&a.worth()).then(on(a).cmp(&on(b)))
        });
        units
    }

    fn judge<'a>(
        &mut self,
        unit: &'a Unit<'a>,
        judged: &mut Judged<'_>,
        left: &mut Left,
        refused: &mut Vec<(&'a Unit<'a>, bool, Rule, f64, f64)>,
    ) {
        let toward = left.toward(judged.bin, unit.deadline);
        let price = judged.price(left.total() - unit.whole, &unit.elastic);
        let limit = judged.k * unit.density();
        let (fits, may_probe, rule, value, bound) = if unit.whole > toward {
            (false, false, Rule::Fit, unit.whole, toward)
        } else if unit.whole > judged.admitted {
            (false, true, Rule::Fit, unit.whole, judged.admitted)
        } else {
            (price <= limit, true, Rule::PriceIf, price, limit)
        };
        let is_off = unit.standing == Standing::Off;
        if fits && !is_off {
            left.take(judged.bin, unit.deadline, unit.whole);
            judged.admitted -= unit.whole;
            if unit.is_lossy {
                judged.kept.extend(unit.members.iter().map(|flow| flow.number));
            }
        }
        // Of those that loss has stopped one probes ([`super::loss`]), if there is room for it on the links that are fast enough.
        if unit.is_lossy && may_probe {
            return;
        }
        // All that fit start together (digest A 9.2); of those that do not, one probes.
        let may_start = fits || may_probe && judged.starts_left > 0;
        if is_off && judged.is_steady && judged.thrash == 0 && may_start {
            let rule = if fits { rule } else { Rule::Probe };
            self.say_all(unit, Command::Start, rule, value, bound);
            left.take(judged.bin, unit.deadline, unit.whole);
            judged.admitted -= unit.whole;
            judged.starts_left -= u32::from(!fits);
        } else if !fits && !is_off {
            refused.push((unit, may_probe, rule, value, bound));
        } else if fits && unit.standing == Standing::Triaged && judged.thrash > 1 {
            self.say_all(unit, Command::Start, rule, value, bound);
        }
    }

    /// Stops flows that do not fit, those first that are worth least for a bit, until one alone comes and goes: that one probes.
    fn stop_refused(&mut self, refused: &[(&Unit<'_>, bool, Rule, f64, f64)], judged: &Judged<'_>) {
        let mut thrash = judged.thrash;
        for (unit, may_probe, rule, value, bound) in refused.iter().rev() {
            if *may_probe && thrash <= 1 {
                continue;
            }
            let is_on = unit.standing == Standing::On;
            // A flow that is on stays while others that come and go can be stopped instead.
            if *may_probe && is_on {
                continue;
            }
            self.say_all(unit, Command::Stop, *rule, *value, *bound);
            thrash = thrash.saturating_sub(unit.members.len() as u32);
        }
    }

    fn say_all(&mut self, unit: &Unit<'_>, command: Command, rule: Rule, value: f64, bound: f64) {
        for flow in &unit.members {
            self.say(flow.number, command, rule, value, bound);
        }
    }

    /// Starts FLOG flows that stopped themselves, if all floors hold with them.
    fn judge_floored(&mut self, seen: &NodeSeen<'_>, judged: &mut Judged<'_>, left: &Left) {
        let floor = |flow: &FlowSeen<'_>| match &flow.terms.utility {
            Config::Flog(config) => Some(config.floor.bits_per_sec() as f64),
            _ => None,
        };
        let floored = || seen.flows.iter().filter(|flow| flow.bin == judged.bin.key && floor(flow).is_some());
        let mut waiting: Vec<&FlowSeen<'_>> =
            floored().filter(|flow| matches!(flow.standing, Standing::Triaged | Standing::Off)).collect();
        let density =
            |flow: &FlowSeen<'_>| flow.terms.utility.priority() / floor(flow).unwrap_or_default().max(1.0);
        waiting.sort_by(|a, b| density(b).total_cmp(&density(a)));
        let on: Vec<&FlowSeen<'_>> = floored().filter(|flow| flow.standing == Standing::On).collect();
        let mut running = on;
        let mut all = judged.elastic.clone();
        let capacity = left.toward(judged.bin, None).min(left.total() - judged.others);
        for flow in waiting {
            let with = [&all[..], &[elastic(flow)]].concat();
            let unit = unit_rate(&with, capacity);
            let holds = |flow: &FlowSeen<'_>| {
                let (priority, most) = elastic(flow);
                (priority * unit).min(most) >= floor(flow).unwrap_or_default().min(most)
            };
            if holds(flow) && running.iter().all(|flow| holds(flow)) {
                let value = (flow.terms.utility.priority() * unit).min(elastic(flow).1);
                self.say(flow.number, Command::Start, Rule::Floor, value, floor(flow).unwrap_or_default());
                all = with;
                running.push(flow);
            }
        }
    }
}
