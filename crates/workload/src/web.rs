//! Web-like traffic: short flows that arrive at random, each a TCP connection of its own that sends its bytes and closes. Arrivals
//! are a Poisson process; sizes are fixed, Pareto or from a list. The plan draws all of them from the run's seed, so both engines
//! have the same flows at the same times.

use crate::checks;
use crate::sizes::Pareto;
use crate::times::exponential;
use crate::{Arrival, Bytes, Parameters, Random, Role, Sizes, Span, Workload, transfer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{ParameterError, Rate};

/// New flows per second if neither `rate` nor `load` is given.
const DEFAULT_RATE: f64 = 10.0;
/// Largest number of new flows per second.
const MOST: f64 = 1e6;

/// Parameters of web-like traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Mean number of flows of the group that begin each second; 10 unless this or `load` is given.
    pub rate: Option<f64>,
    /// Mean offered load of all flows of the group, instead of `rate`, which then follows from the mean size.
    pub load: Option<Rate>,
    /// Size of each flow: a fixed size (`"30 kB"`), Pareto (`{ shape = 1.2, mean = "30 kB", cap = "3 MB" }`), or a list with weights
    /// (`[{ size = "1 kB", weight = 9 }, { size = "1 MB", weight = 1 }]`).
    pub size: Sizes,
}

impl Default for Config {
    fn default() -> Config {
        let pareto = Pareto { shape: 1.2, mean: Bytes::new(30_000), cap: Bytes::new(3_000_000) };
        Config { rate: None, load: None, size: Sizes::Pareto(pareto) }
    }
}

impl Config {
    /// New flows per second.
    fn per_second(&self) -> f64 {
        match (self.rate, self.load) {
            (None, Some(load)) => load.bits_per_sec() as f64 / (8.0 * self.size.mean()),
            (rate, _) => rate.unwrap_or(DEFAULT_RATE),
        }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::OneWay
    }
    fn build(&self, size: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        // Planned flows have a size; other flows have the mean size.
        Box::new(transfer::Transfer::of(size.unwrap_or(Bytes::new(self.size.mean() as u64))))
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        let mut faults = self.size.faults("size", "a flow");
        if self.rate.is_some() && self.load.is_some() {
            let message = "`rate` and `load` both say how many flows arrive";
            faults.push(ParameterError::new("load", message, "keep one of the two"));
        }
        faults.extend(self.load.and_then(|load| checks::rate("load", load)));
        let key = if self.load.is_some() { "load" } else { "rate" };
        if faults.is_empty() {
            faults.extend(checks::per_second(key, "new flows", self.per_second(), MOST));
        }
        faults
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        Some(Bytes::new((self.per_second() * self.size.mean() * time.as_secs_f64()) as u64))
    }
    fn expected_arrivals(&self, time: Span) -> Option<u64> {
        Some((self.per_second() * time.as_secs_f64()) as u64)
    }
    fn arrivals(&self, from: Span, to: Span, sources: u64, random: &mut Random) -> Vec<Arrival> {
        let gap = Span::from_nanos((1e9 * sources as f64 / self.per_second() + 0.5) as u64);
        let sizes = self.size.drawer();
        let mut arrivals = Vec::new();
        let mut at = from;
        loop {
            at += exponential(gap, random);
            if at >= to {
                return arrivals;
            }
            arrivals.push(Arrival { at, size: sizes.draw(random) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_arrive_at_the_rate_of_the_load_between_start_and_stop() {
        // 6 Mbit/s in flows of 30 kB are 25 flows per second.
        let config = Config {
            load: Some(Rate::from_mbit_per_sec(6)),
            size: Sizes::Fixed(Bytes::new(30_000)),
            ..Config::default()
        };
        let (from, to) = (Span::from_secs(1), Span::from_secs(401));
        let arrivals = config.arrivals(from, to, 1, &mut Random::stream(1, "test"));
        // 10,000 are expected, with a standard deviation of 100.
        assert!((9_600..10_400).contains(&arrivals.len()), "{}", arrivals.len());
        assert!(arrivals.iter().all(|arrival| arrival.at > from && arrival.at < to));
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert_eq!(config.wanted(Span::from_secs(8)), Some(Bytes::new(6_000_000)));
        assert_eq!(config.expected_arrivals(Span::from_secs(8)), Some(200));
        // Each of four sources has a quarter: 2,500 with a standard deviation of 50.
        let quarter = config.arrivals(from, to, 4, &mut Random::stream(1, "test")).len();
        assert!((2_300..2_700).contains(&quarter), "{quarter}");
    }

    #[test]
    fn rate_and_load_exclude_each_other() {
        let config = Config { rate: Some(1.0), load: Some(Rate::from_mbit_per_sec(1)), ..Config::default() };
        assert_eq!(config.faults(Bytes::new(1500))[0].key, "load");
    }
}
