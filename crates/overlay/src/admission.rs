//! Admission: a flow's utility turns the depth at its source into a rate, and a pacer admits packets at that rate. It also keeps whether the
//! flow is on, off or triaged, with the reason in numbers.
//!
//! Source: digest A 7.2 to A 7.5, G 1.3, G 2.6. The study admits in ticks of a millisecond with a random part; here a timer is exact, so
//! each packet has its own time.

mod pace;

pub use pace::CATCH_UP;
pub(crate) use pace::Credit;

use crate::utility::{Config, Rule, Seen, Verdict, flog, log, strap};
use pace::Pace;
use weir_base::{Bytes, Random, Rate, Span, Time};

/// Stands for no limit: packets are admitted as they come.
const UNPACED: Rate = Rate::from_mbit_per_sec(100_000);

/// K per capacity in bits: the depth at which one flow of priority 1 fills a link of the median capacity. The study's values are 3e4
/// to 4e5 (digest X 1.5). A small one makes shares uneven by the hops of a way, which count as bytes too; 2e5 keeps 5 to 1 within 2 %.
pub const K_PER_CAPACITY: f64 = 2e5;
/// The least depth in bits at which a flow of priority 1 fills the fastest link: a packet of 1,500 bytes, so that a source can fill it.
pub const K_PER_FASTEST: f64 = 12_000.0;

/// What a flow is and asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Its utility.
    pub utility: Config,
    /// The rate of payload that its application offers.
    pub offered: Rate,
    /// The time within which its packets must arrive.
    pub deadline: Option<Span>,
    /// It ends after so many bytes of payload.
    pub size: Option<Bytes>,
    /// When it begins and when it ends at the latest.
    pub begins: Time,
    /// The end.
    pub ends: Time,
}

impl Terms {
    /// An elastic flow without a deadline that is always there.
    pub fn elastic(log: log::Config) -> Terms {
        let utility = Config::Log(log);
        Terms { utility, offered: log.cap, deadline: None, size: None, begins: Time::ZERO, ends: Time::NEVER }
    }
}

/// How a flow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It stopped itself because of the price, and may try again.
    Triaged,
    /// The planner has stopped it.
    Off,
    /// It is admitted.
    On,
    /// No way is as fast as its deadline.
    Unreachable,
    /// It stopped itself because of loss, and may try again.
    LossTriaged,
    /// It has ended.
    Ended,
    /// It has not begun.
    Waiting,
}

impl Standing {
    /// Its number in records: the study's, and two more (digest A 11).
    pub fn number(self) -> u8 {
        self as u8
    }
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Triaged => "triaged",
            Standing::Off => "off",
            Standing::On => "on",
            Standing::Unreachable => "unreachable",
            Standing::LossTriaged => "loss-triaged",
            Standing::Ended => "ended",
            Standing::Waiting => "waiting",
        }
    }
    /// Whether it stopped itself.
    pub const fn is_triaged(self) -> bool {
        matches!(self, Standing::Triaged | Standing::LossTriaged)
    }
    /// Whether the flow is there: it has begun and has not ended.
    pub const fn is_present(self) -> bool {
        !matches!(self, Standing::Ended | Standing::Waiting)
    }
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The flow's own admission.
    Flow,
    /// The planner of its node.
    Planner,
}

/// A reason: what was compared with what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// The rule, which says what the numbers are.
    pub rule: Rule,
    /// What it is.
    pub value: f64,
    /// What it may or must be.
    pub bound: f64,
}

/// A flow stands otherwise than before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// How it stands now.
    pub standing: Standing,
    /// What decided.
    pub by: By,
    /// Why.
    pub reason: Reason,
}

/// What the planner says to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// It is to be on, as a restarted flow.
    Start,
    /// It is to be off until it is started.
    Stop,
    /// No way is as fast as its deadline: it is off until it is started.
    Unreachable,
}

/// What a flow that is on keeps.
#[derive(Debug, Clone)]
enum Running {
    Elastic,
    Steps(strap::State),
    Floored(flog::State),
}

/// The admission of one flow.
#[derive(Debug, Clone)]
pub struct Admission {
    terms: Terms,
    /// The priority that a transfer has as LOG.
    priority: f64,
    standing: Standing,
    running: Running,
    /// When a triaged flow tries again; [`Time::NEVER`] if it does not by itself.
    again: Time,
    /// When it came to stand as it does.
    since: Time,
    pace: Pace,
    sent: Bytes,
    toggles: u32,
    random: Random,
    events: Vec<Event>,
}

impl Admission {
    /// The admission of a flow. Until its time has come, nothing is admitted.
    pub fn new(terms: Terms, random: Random) -> Admission {
        let begins = terms.begins;
        Admission {
            terms,
            priority: 1.0,
            standing: Standing::Waiting,
            running: Running::Elastic,
            again: Time::NEVER,
            since: Time::ZERO,
            pace: Pace::new(Rate::from_bits_per_sec(0), begins),
            sent: Bytes::ZERO,
            toggles: 0,
            random,
            events: Vec::new(),
        }
    }

    /// What it is and asks for.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }
    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing
    }
    /// When it came to stand so.
    pub fn since(&self) -> Time {
        self.since
    }
    /// How often it was started or stopped.
    pub fn toggles(&self) -> u32 {
        self.toggles
    }
    /// Bytes that were admitted.
    pub fn sent(&self) -> Bytes {
        self.sent
    }

    /// The rate that it has as a whole or not at all; `None` of an elastic flow.
    pub fn whole(&self) -> Option<Rate> {
        self.terms.utility.whole(self.terms.offered)
    }

    /// The rate when it was last looked at.
    pub fn rate(&self) -> Rate {
        match (&self.running, self.standing) {
            (_, standing) if standing != Standing::On => Rate::from_bits_per_sec(0),
            (Running::Steps(state), _) => {
                let part = self.strap().map_or(1.0, |config| state.part(&config));
                self.whole().unwrap_or_default().scale(part)
            }
            _ => self.pace.rate(),
        }
    }

    /// Step and inertia of an inelastic flow that is on.
    pub fn steps(&self) -> Option<(u32, f64)> {
        match &self.running {
            Running::Steps(state) if self.standing == Standing::On => Some((state.step, state.inertia)),
            _ => None,
        }
    }

    /// Whether something has happened to it since the last call of [`Admission::take_events`].
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// By how much its inertia raises the price at which it yields: from 1, and 1 of a flow that is not on.
    pub fn hold(&self) -> f64 {
        match (self.steps(), self.strap()) {
            (Some((_, inertia)), Some(config)) => 1.0 / (1.0 - config.delta * inertia),
            _ => 1.0,
        }
    }

    /// Takes what has happened to it.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn strap(&self) -> Option<strap::Config> {
        match &self.terms.utility {
            Config::Strap(config) => Some(*config),
            Config::Trap(config) => Some(config.strap()),
            _ => None,
        }
    }

    /// The deadline by which loss is judged: TRAP never looks at loss.
    fn judged(&self) -> Option<Span> {
        self.terms.deadline.filter(|_| !matches!(self.terms.utility, Config::Trap(_)))
    }

    /// The equation by which its rate follows the price while it is on; `None` of one that has its whole rate or nothing.
    pub(crate) fn equation(&self) -> Option<log::Config> {
        match &self.terms.utility {
            Config::Log(config) => Some(*config),
            Config::Flog(config) => Some(config.log()),
            Config::File(config) => Some(config.log(self.priority)),
            Config::Strap(_) | Config::Trap(_) => None,
        }
    }

    /// The rate at which packets are admitted.
    fn paced(&self, seen: &Seen) -> Rate {
        if let Some(equation) = self.equation() {
            return equation.rate(seen.k, seen.depth);
        }
        let most = match &self.terms.utility {
            Config::Trap(config) => config.burst(),
            _ => UNPACED,
        };
        match (&self.running, self.strap()) {
            (Running::Steps(state), Some(config)) if state.step < config.steps => {
                self.whole().unwrap_or_default().scale(state.part(&config))
            }
            _ => most,
        }
    }

    fn stand(&mut self, standing: Standing, by: By, reason: Reason, now: Time) {
        if (standing == Standing::On) != (self.standing == Standing::On) {
            self.toggles += 1;
        }
        (self.standing, self.since, self.again) = (standing, now, Time::NEVER);
        if self.terms.utility.may_be_refused() || standing == Standing::Ended {
            self.events.push(Event { at: now, standing, by, reason });
        }
    }

    fn start(&mut self, by: By, reason: Reason, now: Time) {
        let is_restart = self.standing != Standing::Waiting;
        let deadline = self.judged();
        self.running = match (self.strap(), &self.terms.utility) {
            (Some(config), _) => {
                Running::Steps(strap::State::new(&config, is_restart, deadline, &mut self.random, now))
            }
            (None, Config::Flog(config)) => Running::Floored(flog::State::new(config, now)),
            _ => Running::Elastic,
        };
        self.stand(Standing::On, by, reason, now);
        let rate = self.equation().map_or_else(|| self.rate(), |equation| equation.cap);
        self.pace = Pace::new(rate, now);
    }

    /// The planner has decided. What does not change how the flow stands is no event.
    pub fn command(&mut self, command: Command, reason: Reason, now: Time) {
        if !self.standing.is_present() {
            return;
        }
        match command {
            Command::Start if self.standing != Standing::On => self.start(By::Planner, reason, now),
            Command::Stop if self.standing != Standing::Off => {
                self.stand(Standing::Off, By::Planner, reason, now);
            }
            Command::Unreachable if self.standing != Standing::Unreachable => {
                self.stand(Standing::Unreachable, By::Planner, reason, now);
            }
            _ => {}
        }
    }

    /// The utility has another priority from now on, above 0.
    pub fn set_priority(&mut self, priority: f64) {
        self.terms.utility.set_priority(priority);
    }

    /// The planner gives a transfer this LOG priority.
    pub fn prioritise(&mut self, priority: f64) {
        self.priority = priority;
    }

    /// It is looked at, and does what is due.
    pub fn update(&mut self, seen: &Seen, now: Time) {
        self.settle_time(now);
        if self.standing == Standing::On {
            self.look(seen, now);
        }
        if self.standing == Standing::On {
            let rate = self.paced(seen);
            self.pace.set(rate, now);
        }
    }

    /// Begins, ends and tries again at its time.
    fn settle_time(&mut self, now: Time) {
        let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
        if self.standing != Standing::Ended && now >= self.terms.ends {
            let reason = Reason { rule: Rule::Time, value: seconds(now), bound: seconds(self.terms.ends) };
            return self.stand(Standing::Ended, By::Flow, reason, now);
        }
        if self.standing == Standing::Waiting && now >= self.terms.begins {
            let reason = Reason { rule: Rule::Time, value: seconds(now), bound: seconds(self.terms.begins) };
            self.start(By::Flow, reason, now);
        } else if self.standing.is_triaged() && now >= self.again {
            let waited = now.since(self.since).as_secs_f64();
            let bound = self.again.since(self.since).as_secs_f64();
            self.start(By::Flow, Reason { rule: Rule::Restart, value: waited, bound }, now);
        }
    }

    fn look(&mut self, seen: &Seen, now: Time) {
        let (whole, offered, deadline) = (self.whole(), self.terms.offered, self.judged());
        let steps = self.strap();
        let verdict = match (&mut self.running, &self.terms.utility) {
            (Running::Steps(state), _) => match steps {
                Some(config) if now >= state.step_at => {
                    let whole = whole.unwrap_or_default();
                    state.on_step(&config, whole, deadline, seen, &mut self.random, now)
                }
                _ => Verdict::Stays,
            },
            (Running::Floored(state), Config::Flog(config)) if now >= state.due => {
                state.on_look(config, offered, now)
            }
            _ => Verdict::Stays,
        };
        let Verdict::Triage { is_loss, rule, value, bound } = verdict else { return };
        let standing = if is_loss { Standing::LossTriaged } else { Standing::Triaged };
        self.stand(standing, By::Flow, Reason { rule, value, bound }, now);
        self.again = steps.map_or(Time::NEVER, |config| now + config.restart());
    }

    /// The credit that it lacks for its next packet.
    pub(crate) fn lacks(&self, now: Time) -> Credit {
        self.pace.lacks(now)
    }

    /// Its rate was counted elsewhere: it is this one now, and it lacks so much for its next packet.
    pub(crate) fn resume(&mut self, rate: Rate, lacks: Credit, now: Time) {
        self.pace = Pace::resumed(rate, lacks, now);
    }

    /// When the next packet may go; [`Time::NEVER`] if none may at the present rate.
    pub fn next_time(&self) -> Time {
        if self.standing == Standing::On { self.pace.next_time() } else { Time::NEVER }
    }

    /// When [`Admission::update`] is due though nothing is sent.
    pub fn due(&self) -> Time {
        let own = match (&self.running, self.standing) {
            (_, Standing::Waiting) => self.terms.begins,
            (_, Standing::Ended) => return Time::NEVER,
            (Running::Steps(state), Standing::On) => state.step_at,
            (Running::Floored(state), Standing::On) => state.due,
            _ => self.again,
        };
        own.min(self.terms.ends)
    }

    /// Whether a packet may go now.
    pub fn is_open(&self, now: Time) -> bool {
        self.next_time() <= now
    }

    /// A packet of this length has been admitted.
    pub fn admitted(&mut self, bytes: Bytes, now: Time) {
        self.pace.admitted(bytes, now);
        self.sent += bytes;
        if let Running::Floored(state) = &mut self.running {
            state.admitted(bytes);
        }
        let size = self.terms.size.filter(|size| self.sent >= *size && self.standing == Standing::On);
        if let Some(size) = size {
            let reason = Reason { rule: Rule::Size, value: self.sent.get() as f64, bound: size.get() as f64 };
            self.stand(Standing::Ended, By::Flow, reason, now);
        }
    }

    /// The LOG priority that a transfer would need now; `None` if it is none, or cannot end in time.
    pub fn needed_priority(&self, seen: &Seen, elastic: Rate, now: Time) -> Option<f64> {
        let (Config::File(config), Some(size)) = (&self.terms.utility, self.terms.size) else { return None };
        let (rest, left) = (size.saturating_sub(self.sent), (self.terms.begins + config.within).since(now));
        config.needed(rest, left, seen.k, seen.depth, elastic)
    }
}

/// K for a network with links of these capacities, of which the order does not matter: [`K_PER_CAPACITY`] times the median capacity, or
/// [`K_PER_FASTEST`] times the largest if that is more, rounded up to a power of two. `None` without a link.
///
/// K must be one value in the network: a flow's share of a bottleneck is K p. So one node computes it, and the others take what it
/// floods ([`crate::linkstate`]).
pub fn derive_k(capacities: &mut [Rate]) -> Option<f64> {
    capacities.sort_unstable();
    let largest = capacities.last()?.bits_per_sec() as f64;
    let median = capacities[(capacities.len() - 1) / 2].bits_per_sec() as f64;
    let least = (K_PER_CAPACITY * median).max(K_PER_FASTEST * largest);
    (least > 0.0).then(|| libm::exp2(libm::ceil(libm::log2(least))))
}

/// The K that a node floods, given the last one and the newly derived one. It changes only when the new one is not the neighbouring
/// power of two, so that a capacity at a boundary does not move the prices of all flows.
pub fn hold_k(last: Option<f64>, derived: f64) -> f64 {
    match last {
        Some(last) if derived / last < 4.0 && last / derived < 4.0 => last,
        _ => derived,
    }
}

#[cfg(test)]
mod tests;
