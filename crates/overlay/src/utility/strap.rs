//! STRAP: the utility of an inelastic flow, which has its whole rate or nothing.
//!
//! Source: digest A 7.4, G 2.6. The flow holds on while the depth Q in bits is at most K p / (m (1 - delta i)): its utility per bit p / m
//! is then worth the price Q / K. Inertia i grows while it holds on, so that a running flow stays beside a new one that is equal. It
//! rises and falls by steps; each fall is a penalty, and penalties beyond what inertia tolerates triage it. It then tries again by itself,
//! with no inertia: the self-probe.
//!
//! A step is here a part of the rate m. The study admits that part of what waits at each service, and so nearly the whole rate.

use super::{Rule, Seen, Verdict, above_zero, bits, scale};
use weir_base::{ParameterError, Random, Rate, Span, Time};

/// Time between steps (digest A 7.4).
pub const STEP: Span = Span::from_millis(10);
/// Inertia of a new flow, and what each clean interval adds (digest A 7.4).
const INERTIA: f64 = 0.05;
/// The averaging interval of priority 0, without its random part (digest A 7.4).
const AVERAGE: Span = Span::from_millis(200);
/// The random part of the averaging interval (digest A 7.4).
const RANDOM: Span = Span::from_millis(20);
/// The averaging interval of a flow with a deadline, in deadlines (digest A 7.4).
const DEADLINES: u64 = 6;
/// The time after which a triaged flow of priority 0 tries again (digest A 7.4).
const RESTART: f64 = 6.0;

/// Parameters of STRAP: on while Q <= K p / (m (1 - delta i)), with inertia i from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p, above 0. What counts is p / m: of two flows of one priority the one of the larger rate yields first.
    pub priority: f64,
    /// Nominal rate m of its payload; by default what its workload offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "3 Mbit/s")]
    pub rate: Option<Rate>,
    /// delta, from 0 to below 1: by how much a flow of full inertia tolerates a higher price, and what part of its packets may be lost.
    pub delta: f64,
    /// Steps n from nothing to the whole rate, from 1 to 1000.
    pub steps: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { priority: 1.0, rate: None, delta: 0.2, steps: 8 }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<ParameterError> {
        above_zero("priority", self.priority).or_else(|| {
            if self.rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
                return Some(ParameterError::new(
                    "rate",
                    "the rate must be above 0",
                    "write for example \"3 Mbit/s\"",
                ));
            }
            if !(0.0..1.0).contains(&self.delta) {
                return Some(ParameterError::new(
                    "delta",
                    "`delta` must be from 0 to below 1",
                    "write for example 0.2",
                ));
            }
            let is_sound = (1..=1000).contains(&self.steps);
            (!is_sound).then(|| {
                ParameterError::new("steps", "`steps` must be from 1 to 1000", "write for example 8")
            })
        })
    }

    /// The depth in bits up to which a flow of this nominal rate and inertia holds on.
    pub fn limit(&self, k: f64, nominal: Rate, inertia: f64) -> f64 {
        k * self.priority / (nominal.bits_per_sec() as f64 * (1.0 - self.delta * inertia))
    }

    /// The time after which it tries again when it was triaged: whole seconds.
    pub fn restart(&self) -> Span {
        Span::from_secs((RESTART / scale(self.priority)) as u64)
    }
}

/// What a flow that is on keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Steps of [`Config::steps`] that it has.
    pub step: u32,
    /// From 0 to 1.
    pub inertia: f64,
    penalty: Span,
    /// The end of the present averaging interval, and its length.
    ends: Time,
    average: Span,
    /// Whether the price stayed below the limit in this interval.
    is_clean: bool,
    /// When the next step is.
    pub step_at: Time,
    /// When loss is looked at again.
    loss_at: Time,
}

impl State {
    /// A flow that has just come, or has been started again.
    pub fn new(
        config: &Config,
        is_restart: bool,
        deadline: Option<Span>,
        random: &mut Random,
        now: Time,
    ) -> State {
        let mut state = State {
            step: 1,
            inertia: if is_restart { 0.0 } else { INERTIA },
            penalty: Span::ZERO,
            ends: now,
            average: Span::ZERO,
            is_clean: true,
            step_at: now + STEP,
            loss_at: now + deadline.unwrap_or_default(),
        };
        state.begin(config, deadline, random, now);
        state
    }

    fn begin(&mut self, config: &Config, deadline: Option<Span>, random: &mut Random, now: Time) {
        self.average = match deadline {
            Some(deadline) => deadline * DEADLINES,
            None => (AVERAGE + random.within(RANDOM)).scale(scale(config.priority)),
        };
        (self.ends, self.penalty, self.is_clean) = (now + self.average, Span::ZERO, true);
    }

    /// The part of the whole rate that it has.
    pub fn part(&self, config: &Config) -> f64 {
        f64::from(self.step) / f64::from(config.steps)
    }

    fn fall(&mut self, config: &Config, span: Span) {
        self.step = self.step.saturating_sub(1);
        self.penalty = self.penalty + span.scale(1.0 - self.part(config));
    }

    fn rise(&mut self, config: &Config) {
        self.step = (self.step + 1).min(config.steps);
    }

    /// A step is due.
    pub fn on_step(
        &mut self,
        config: &Config,
        nominal: Rate,
        deadline: Option<Span>,
        seen: &Seen,
        random: &mut Random,
        now: Time,
    ) -> Verdict {
        self.step_at = now + STEP;
        let (price, limit) = (bits(seen.depth), config.limit(seen.k, nominal, self.inertia));
        let tolerated = config.delta * self.inertia;
        let is_lossy = |loss: f64| loss > tolerated;
        let loss = seen.loss.filter(|_| deadline.is_some()).unwrap_or_default();
        if price > limit {
            self.is_clean = false;
            self.fall(config, STEP);
        } else if let Some(deadline) = deadline {
            if now >= self.loss_at {
                self.loss_at = now + deadline;
                if is_lossy(loss) { self.fall(config, deadline * 2) } else { self.rise(config) }
            }
        } else {
            self.rise(config);
        }
        if self.penalty > self.average.scale(tolerated) {
            return if is_lossy(loss) {
                Verdict::Triage {
                    is_loss: true,
                    rule: Rule::Loss,
                    value: 100.0 * loss,
                    bound: 100.0 * tolerated,
                }
            } else {
                Verdict::Triage { is_loss: false, rule: Rule::Price, value: price, bound: limit }
            };
        }
        if now >= self.ends {
            if self.is_clean {
                self.inertia = (self.inertia + INERTIA).min(1.0);
            }
            self.begin(config, deadline, random, now);
        }
        Verdict::Stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Bytes;

    const M: Rate = Rate::from_mbit_per_sec(5);

    fn seen(bits: u64, loss: f64) -> Seen {
        Seen { k: 1e12, depth: Bytes::new(bits / 8), loss: Some(loss) }
    }
    /// Steps on which a flow goes until it is triaged, at most `most`, with what it was triaged by.
    fn steps(
        state: &mut State,
        config: &Config,
        deadline: Option<Span>,
        seen: &Seen,
        most: u32,
    ) -> (u32, Verdict) {
        let mut random = Random::stream(1, "test");
        for taken in 1..=most {
            let at = state.step_at;
            let verdict = state.on_step(config, M, deadline, seen, &mut random, at);
            if verdict != Verdict::Stays {
                return (taken, verdict);
            }
        }
        (most, Verdict::Stays)
    }
    fn new(config: &Config, is_restart: bool, deadline: Option<Span>) -> State {
        State::new(config, is_restart, deadline, &mut Random::stream(1, "test"), Time::ZERO)
    }

    #[test]
    fn the_limit_is_k_p_over_m_and_a_quarter_higher_with_full_inertia() {
        let config = Config { priority: 2.0, ..Config::default() };
        assert_eq!(config.limit(1e12, M, 0.0), 400_000.0);
        assert_eq!(config.limit(1e12, M, 1.0), 500_000.0);
        // s is 12/11 for priority 1 and 1.5 for 10: 6 s / s is 5.5 and 4.
        assert_eq!(Config::default().restart(), Span::from_secs(5));
        assert_eq!(Config { priority: 10.0, ..config }.restart(), Span::from_secs(4));
    }

    #[test]
    fn a_flow_below_its_limit_has_its_whole_rate_after_70_ms_and_grows_inert() {
        let (config, below) = (Config { priority: 2.0, ..Config::default() }, seen(390_000, 0.0));
        let mut state = new(&config, false, None);
        steps(&mut state, &config, None, &below, 7);
        assert_eq!((state.step, state.part(&config)), (8, 1.0));
        // 20 intervals of 233 to 257 ms (s = 7/6) take inertia from 0.05 to 1.
        steps(&mut state, &config, None, &below, 600);
        assert_eq!(state.inertia, 1.0);
    }

    #[test]
    fn a_restarted_flow_tolerates_no_step_down_a_new_one_1_and_an_inert_one_7() {
        let (config, above) = (Config { priority: 2.0, ..Config::default() }, seen(600_000, 0.0));
        let triaged = |mut state: State| {
            let (taken, verdict) = steps(&mut state, &config, None, &above, 100);
            assert!(
                matches!(verdict, Verdict::Triage { is_loss: false, rule: Rule::Price, .. }),
                "{verdict:?}"
            );
            taken
        };
        assert_eq!(triaged(State { step: 8, ..new(&config, true, None) }), 1);
        // The budget is 0.2 x 0.05 x 233 ms or more = 2.3 to 2.6 ms: 1.25 ms at step 7, and 3.75 with step 6.
        assert_eq!(triaged(State { step: 8, ..new(&config, false, None) }), 2);
        // With full inertia it is 47 to 52 ms: 45 ms down to step 0, and 10 ms each from there.
        assert_eq!(triaged(State { step: 8, inertia: 1.0, ..new(&config, false, None) }), 9);
    }

    #[test]
    fn loss_beyond_what_inertia_tolerates_triages_a_flow_with_a_deadline_alone() {
        let (config, deadline) = (Config { priority: 2.0, ..Config::default() }, Some(Span::from_millis(60)));
        let lossy = seen(1000, 0.3);
        let whole = || State { step: 8, inertia: 1.0, ..new(&config, false, deadline) };
        let (_, verdict) = steps(&mut whole(), &config, deadline, &lossy, 1000);
        assert!(matches!(verdict, Verdict::Triage { is_loss: true, rule: Rule::Loss, .. }), "{verdict:?}");
        assert_eq!(steps(&mut whole(), &config, deadline, &seen(1000, 0.1), 1000).1, Verdict::Stays);
        assert_eq!(steps(&mut whole(), &config, None, &lossy, 1000).1, Verdict::Stays);
    }
}
