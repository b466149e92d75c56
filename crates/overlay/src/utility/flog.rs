//! FLOG: the utility of an elastic flow with a floor, below which it is worth nothing.
//!
//! Source: digest A 7.5, G 4.25. The rate is LOG's. Each interval counts three signs that the flow has too little; a sign that is absent
//! clears its count, and a count above 15 triages the flow. It does not start again by itself: the planner starts it.
//!
//! The study's proxy keeps up to 500 packets of the flow. Here the host keeps them back, so what waits is computed: what the workload
//! offers, less what was admitted.

use super::{Rule, Verdict, above_zero, log, scale};
use weir_base::{Bytes, ParameterError, Rate, Span, Time};

/// The interval of priority 0 (digest A 7.5).
const INTERVAL: Span = Span::from_millis(100);
/// Gain of the average of the admitted rate (digest A 7.5).
const GAIN: f64 = 0.2;
/// A count above this triages the flow (digest X 1.5).
const MOST: u32 = 15;
/// What waits may last so long at the present rate (digest X 1.5).
const LONGEST: f64 = 1.0;
/// Packets that wait at most: beyond it the study's proxy drops them (digest A 7.1).
const WAITING: u64 = 490;

/// Parameters of FLOG: r = K p / Q - 1 / a, at most the cap, and nothing if that stays below the floor.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p, above 0: flows share a bottleneck in proportion to it.
    pub priority: f64,
    /// The most that the flow may send.
    pub cap: Rate,
    /// The least that is worth anything, at most the cap.
    pub floor: Rate,
    /// Shape a in seconds per bit, above 0; its inverse is subtracted from the rate.
    pub shape: f64,
}

impl Default for Config {
    fn default() -> Config {
        let (cap, floor) = (Rate::from_mbit_per_sec(100), Rate::from_bits_per_sec(0));
        Config { priority: 1.0, cap, floor, shape: 20.0 }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<ParameterError> {
        above_zero("priority", self.priority).or_else(|| above_zero("shape", self.shape)).or_else(|| {
            let (message, help) = ("the floor is above the cap", "write a floor of at most the cap");
            (self.floor > self.cap).then(|| ParameterError::new("floor", message, help))
        })
    }

    /// The rate equation.
    pub fn log(&self) -> log::Config {
        log::Config { priority: self.priority, cap: self.cap, shape: self.shape }
    }

    /// The time between looks.
    fn interval(&self) -> Span {
        INTERVAL.scale(scale(self.priority))
    }
}

/// What a flow that is on keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// When it is looked at.
    pub due: Time,
    since: Time,
    /// Bytes admitted since the last look, and of the last packet.
    bytes: u64,
    packet: u64,
    /// The average of the admitted rate in bits per second; `None` before the first look.
    average: Option<f64>,
    /// Bytes that wait.
    backlog: f64,
    counts: [u32; 3],
}

impl State {
    /// A flow that starts now.
    pub fn new(config: &Config, now: Time) -> State {
        let due = now + config.interval();
        State { due, since: now, bytes: 0, packet: 0, average: None, backlog: 0.0, counts: [0; 3] }
    }

    /// A packet has been admitted.
    pub fn admitted(&mut self, bytes: Bytes) {
        self.bytes += bytes.get();
        self.packet = bytes.get();
    }

    /// A look is due.
    pub fn on_look(&mut self, config: &Config, offered: Rate, now: Time) -> Verdict {
        let seconds = now.since(self.since).as_secs_f64();
        (self.since, self.due) = (now, now + config.interval());
        let bytes = std::mem::take(&mut self.bytes) as f64;
        let sample = if seconds > 0.0 { 8.0 * bytes / seconds } else { 0.0 };
        let before = self.average.unwrap_or(sample);
        let average = before + GAIN * (sample - before);
        self.average = Some(average);
        let most = (WAITING * self.packet) as f64;
        let gained = offered.bits_per_sec() as f64 / 8.0 * seconds - bytes;
        let backlog = (self.backlog + gained).clamp(0.0, most);
        let has_grown = backlog > std::mem::replace(&mut self.backlog, backlog);
        let waits = if average > 0.0 { 8.0 * backlog / average } else { f64::INFINITY };
        let is_long = backlog > 0.0 && waits > LONGEST;
        let floor = config.floor.bits_per_sec() as f64;
        let signs = [is_long && average < 1.1 * before, is_long && has_grown, average < floor];
        for (count, sign) in self.counts.iter_mut().zip(signs) {
            *count = if sign { *count + 1 } else { 0 };
        }
        let [slow, growing, low] = self.counts.map(|count| count > MOST);
        if low {
            return Verdict::Triage { is_loss: false, rule: Rule::Floor, value: average, bound: floor };
        }
        if slow || growing {
            return Verdict::Triage { is_loss: false, rule: Rule::Backlog, value: waits, bound: LONGEST };
        }
        Verdict::Stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until a flow that is admitted at this rate is triaged.
    fn looks(config: &Config, offered: u64, admitted: u64) -> (u32, Verdict) {
        let mut state = State::new(config, Time::ZERO);
        for look in 1..100 {
            let due = state.due;
            let bytes = Rate::from_bits_per_sec(admitted).bytes_in(due.since(state.since)).get();
            for _ in 0..bytes / 1000 {
                state.admitted(Bytes::new(1000));
            }
            let verdict = state.on_look(config, Rate::from_bits_per_sec(offered), due);
            if verdict != Verdict::Stays {
                return (look, verdict);
            }
        }
        (100, Verdict::Stays)
    }

    #[test]
    fn a_flow_below_its_floor_is_triaged_at_the_sixteenth_look() {
        let config = Config { floor: Rate::from_mbit_per_sec(3), ..Config::default() };
        let (look, verdict) = looks(&config, 3_000_000, 2_000_000);
        assert!(matches!(verdict, Verdict::Triage { rule: Rule::Floor, .. }), "{verdict:?}");
        assert_eq!(look, 16);
        assert_eq!(looks(&config, 3_500_000, 3_500_000).1, Verdict::Stays);
    }

    #[test]
    fn a_flow_whose_packets_wait_for_a_second_is_triaged_without_a_floor() {
        // 490 packets of 1,000 bytes wait for 2 s at 2 Mbit/s, and for 0.56 s at 7.
        let (_, verdict) = looks(&Config::default(), 10_000_000, 2_000_000);
        assert!(matches!(verdict, Verdict::Triage { rule: Rule::Backlog, .. }), "{verdict:?}");
        assert_eq!(looks(&Config::default(), 10_000_000, 7_000_000).1, Verdict::Stays);
    }

    #[test]
    fn a_floor_above_the_cap_is_refused() {
        let config = Config { floor: Rate::from_mbit_per_sec(200), ..Config::default() };
        assert_eq!(config.fault().map(|fault| fault.key), Some("floor"));
    }
}
