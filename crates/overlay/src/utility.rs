//! Utilities: what a flow's rate is worth, and so what it is at a price. The price is the depth at the source.
//!
//! Source: digest A 7.2 to A 7.5, A 9.4. One line a utility below. Rates and depths are of payload. K is in bits squared per second.

pub mod file;
pub mod flog;
pub mod log;
pub mod strap;
pub mod trap;

use weir_base::{Bytes, ParameterError, Rate};

weir_base::registry! {
    /// A flow's utility and its parameters, as a lab names it.
    pub enum Config: "utility" {
        Log(log::Config) = "log" ("LOG"): "Elastic: U = p log(a r + 1), so r = K p / Q - 1 / a bit/s at a depth of Q bits, at most the cap (GNAT proxy, LOG)";
        Strap(strap::Config) = "strap" ("STRAP"): "Inelastic: the whole rate m or nothing; on while Q <= K p / (m (1 - delta i)) bits, with inertia i that grows from 0 to 1 (GNAT proxy, STRAP)";
        Trap(trap::Config) = "trap" ("TRAP"): "Inelastic as STRAP, with a written rate m, at most b bit/s and delta 0.9; loss does not stop it (GNAT proxy, TRAP)";
        Flog(flog::Config) = "flog" ("FLOG"): "Elastic with a floor: r = K p / Q - 1 / a bit/s, and nothing if the mean stays below the floor for 16 intervals of 0.1 s (GNAT proxy, FLOG)";
        File(file::Config) = "file" ("FILE"): "A transfer of a size with a time to end: value p log(size / time + 1); LOG of a priority from 1 to 25 that follows from what is left (GNAT planner, file transfers)";
    }
}

/// What a flow sees when it is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// K in bits squared per second.
    pub k: f64,
    /// The depth that is its price.
    pub depth: Bytes,
    /// The part of its packets that do not arrive in time; `None` if no receiver says.
    pub loss: Option<f64>,
}

/// The rule by which a flow was stopped or started. Each compares a value with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Its time has come: seconds.
    Time,
    /// It has sent what it had: bytes.
    Size,
    /// Depth in bits, and the depth up to which it holds on.
    Price,
    /// Loss in percent, and what it tolerates.
    Loss,
    /// Its mean rate in bits per second, and its floor.
    Floor,
    /// Seconds for which its packets wait, and how long they may.
    Backlog,
    /// Seconds since it was triaged: it tries again by itself.
    Restart,
    /// Its rate in bits per second, and the capacity that is left at its source.
    Fit,
    /// The depth in bits that its admission would bring, and the one up to which the flows admitted hold on.
    PriceIf,
    /// Seconds since the last probe of its destination, and how long that must be: it is the next one.
    Probe,
    /// Another flow of its destination probes: seconds for which it has.
    Rotation,
    /// Seconds for which it has been on, and the time after which it is stable.
    Stable,
    /// Least delay of a way in milliseconds, and its deadline.
    Unreachable,
    /// Flows of its destination that come and go, and how many may.
    Thrash,
    /// Flows of its set that are off, and how many may.
    Coupled,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 15] = [
        Rule::Time,
        Rule::Size,
        Rule::Price,
        Rule::Loss,
        Rule::Floor,
        Rule::Backlog,
        Rule::Restart,
        Rule::Fit,
        Rule::PriceIf,
        Rule::Probe,
        Rule::Rotation,
        Rule::Stable,
        Rule::Unreachable,
        Rule::Thrash,
        Rule::Coupled,
    ];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Time => "time",
            Rule::Size => "size",
            Rule::Price => "price",
            Rule::Loss => "loss",
            Rule::Floor => "floor",
            Rule::Backlog => "backlog",
            Rule::Restart => "restart",
            Rule::Fit => "fit",
            Rule::PriceIf => "price-if-admitted",
            Rule::Probe => "probe",
            Rule::Rotation => "rotation",
            Rule::Stable => "stable",
            Rule::Unreachable => "unreachable",
            Rule::Thrash => "thrash",
            Rule::Coupled => "coupled",
        }
    }
}

/// What a look at a flow says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It goes on.
    Stays,
    /// It is stopped.
    Triage {
        /// Whether loss is the reason.
        is_loss: bool,
        /// The rule.
        rule: Rule,
        /// What it is.
        value: f64,
        /// What it may be.
        bound: f64,
    },
}

impl Config {
    /// The first fault.
    pub fn fault(&self) -> Option<ParameterError> {
        match self {
            Config::Log(config) => config.fault(),
            Config::Strap(config) => config.fault(),
            Config::Trap(config) => config.fault(),
            Config::Flog(config) => config.fault(),
            Config::File(config) => config.fault(),
        }
    }

    /// Its priority.
    pub fn priority(&self) -> f64 {
        match self {
            Config::Log(config) => config.priority,
            Config::Strap(config) => config.priority,
            Config::Trap(config) => config.priority,
            Config::Flog(config) => config.priority,
            Config::File(config) => config.priority,
        }
    }

    /// Its priority becomes another, above 0.
    pub fn set_priority(&mut self, priority: f64) {
        match self {
            Config::Log(config) => config.priority = priority,
            Config::Strap(config) => config.priority = priority,
            Config::Trap(config) => config.priority = priority,
            Config::Flog(config) => config.priority = priority,
            Config::File(config) => config.priority = priority,
        }
    }

    /// The rate that it has as a whole or not at all, of a flow that offers this; `None` of an elastic one.
    pub fn whole(&self, offered: Rate) -> Option<Rate> {
        match self {
            Config::Strap(config) => Some(config.rate.unwrap_or(offered)),
            Config::Trap(config) => Some(config.rate),
            Config::Log(_) | Config::Flog(_) | Config::File(_) => None,
        }
    }

    /// Whether it may be refused: a planner has something to decide.
    pub fn may_be_refused(&self) -> bool {
        !matches!(self, Config::Log(_))
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::Log(log::Config::default())
    }
}

/// By what intervals of a flow of this priority are longer: 1 for small ones, up to 2 (digest A 7.4).
fn scale(priority: f64) -> f64 {
    (2.0 * priority + 10.0) / (priority + 10.0)
}

/// A number of bytes in bits.
pub fn bits(bytes: Bytes) -> f64 {
    8.0 * bytes.get() as f64
}

/// The fault of a parameter that must be above 0 and is not.
fn above_zero(key: &'static str, value: f64) -> Option<ParameterError> {
    let is_sound = value > 0.0 && value.is_finite();
    (!is_sound).then(|| ParameterError::new(key, format!("`{key}` must be above 0"), "write for example 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_utility_refuses_a_priority_that_is_not_above_0() {
        for (name, _) in Config::NAMES {
            for priority in [0.0, -1.0, f64::MAX * 2.0] {
                let json = serde_json::json!({ "priority": priority });
                let Ok(config) = Config::with_parameters(name, json) else { continue };
                assert_eq!(config.fault().map(|fault| fault.key), Some("priority"), "{name} {priority}");
            }
            assert_eq!(name.parse::<Config>().unwrap().fault(), None, "{name}");
        }
    }

    #[test]
    fn prices_by_hand() {
        // docs/overlay.md, "Prices by hand": K is 1e12, the depth is 40,000 bytes, 320,000 bits.
        let (k, depth) = (1e12, Bytes::new(40_000));
        let log = log::Config { cap: Rate::from_mbit_per_sec(20), ..log::Config::default() };
        assert_eq!(log.rate(k, depth).bits_per_sec(), 3_124_999);
        let strap = strap::Config { priority: 2.0, ..strap::Config::default() };
        let limit = |mbit, inertia| strap.limit(k, Rate::from_mbit_per_sec(mbit), inertia).round();
        assert_eq!([3, 4, 5, 6].map(|mbit| limit(mbit, 0.0)), [666_667.0, 500_000.0, 400_000.0, 333_333.0]);
        assert_eq!(limit(6, 1.0), 416_667.0);
    }
}
