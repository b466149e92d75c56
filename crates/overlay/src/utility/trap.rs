//! TRAP: the form that STRAP had before. Its rate is written down, it never looks at loss, and it is admitted at a burst rate at most.
//!
//! Source: digest A 7.4, which says of it that m and a burst rate b are explicit and that delta is 0.9; all else is STRAP's.

use super::{above_zero, strap};
use weir_base::{ParameterError, Rate};

/// Parameters of TRAP: on while Q <= K p / (m (1 - delta i)), at most b.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Priority p, above 0.
    pub priority: f64,
    /// Nominal rate m of its payload.
    pub rate: Rate,
    /// Burst rate b, at least m: the most at which packets are admitted; by default twice m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "2 Mbit/s")]
    pub burst: Option<Rate>,
    /// delta, from 0 to below 1: by how much a flow of full inertia tolerates a higher price.
    pub delta: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { priority: 1.0, rate: Rate::from_mbit_per_sec(1), burst: None, delta: 0.9 }
    }
}

impl Config {
    pub(super) fn fault(&self) -> Option<ParameterError> {
        above_zero("priority", self.priority).or_else(|| self.strap().fault()).or_else(|| {
            let is_low = self.burst.is_some_and(|burst| burst < self.rate);
            let (message, help) = ("`burst` is below `rate`", "write a burst rate of at least the rate");
            is_low.then(|| ParameterError::new("burst", message, help))
        })
    }

    /// The rate at which packets are admitted at most.
    pub fn burst(&self) -> Rate {
        self.burst.unwrap_or(Rate::from_bits_per_sec(self.rate.bits_per_sec().saturating_mul(2)))
    }

    /// What it has in common with STRAP.
    pub fn strap(&self) -> strap::Config {
        let Config { priority, rate, delta, .. } = *self;
        strap::Config { priority, rate: Some(rate), delta, ..strap::Config::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_inertia_tolerates_ten_times_the_price() {
        let config = Config::default().strap();
        let [none, full] = [0.0, 1.0].map(|inertia| config.limit(1e12, Rate::from_mbit_per_sec(1), inertia));
        assert!((full / none - 10.0).abs() < 1e-9, "{none} {full}");
        assert_eq!(Config::default().burst(), Rate::from_mbit_per_sec(2));
        let slow = Config { burst: Some(Rate::from_bits_per_sec(1)), ..Config::default() };
        assert!(slow.fault().is_some_and(|fault| fault.key == "burst"));
    }
}
