//! What values a metric can have at all. A value outside is no measurement but an error of weir's own.

use super::{Flows, METRICS, Metric, Metrics, Value, View};
use std::fmt;
use weir_base::Rate;

/// The values that a metric can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// 0 or more.
    NotNegative,
    /// From 0 to 1.
    Fraction,
    /// From 0 to 100.
    Percent,
    /// 1 or more.
    OneOrMore,
    /// From 0 to what the slowest link on the flows' way can have carried since they began, in Mbit/s, where that is known.
    Carried,
}

/// Transmission times are whole nanoseconds: a link may carry so much more than its rate, as a share of it.
const ROUNDING: f64 = 1e-3;

impl Domain {
    /// Whether this value is in it; `carried` is the most for [`Domain::Carried`], in Mbit/s.
    fn holds(self, value: &Value, carried: Option<f64>) -> bool {
        let (least, most) = match self {
            Domain::NotNegative => (0.0, f64::INFINITY),
            Domain::Fraction => (0.0, 1.0),
            Domain::Percent => (0.0, 100.0),
            Domain::OneOrMore => (1.0, f64::INFINITY),
            Domain::Carried => (0.0, carried.map_or(f64::INFINITY, |most| most * (1.0 + ROUNDING))),
        };
        let holds = |number: f64| (least..=most).contains(&number);
        match *value {
            Value::Undefined | Value::Count(0) => true,
            Value::Count(count) => holds(count as f64),
            Value::Number(number) => holds(number),
            Value::Distribution(d) => [d.mean, d.p1, d.p25, d.p50, d.p75, d.p99].into_iter().all(holds),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Domain::NotNegative => "0 or more",
            Domain::Fraction => "from 0 to 1",
            Domain::Percent => "from 0 to 100",
            Domain::OneOrMore => "1 or more",
            Domain::Carried => "from 0 to what the flows' way can carry",
        })
    }
}

/// A value that a metric cannot have.
#[derive(Debug, Clone, PartialEq)]
pub struct Outside {
    /// The metric.
    pub metric: &'static Metric,
    /// What it came to.
    pub value: Value,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self.value {
            Value::Undefined => "undefined".into(),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Distribution(d) => format!("{} on average, {} at p1 and {} at p99", d.mean, d.p1, d.p99),
        };
        write!(f, "{} is {value}, and can only be {}", self.metric.name, self.metric.domain)
    }
}

impl Metrics {
    /// Those that have a value which they cannot have; `carried` is the most for [`Domain::Carried`], in Mbit/s.
    pub(crate) fn outside(&self, carried: Option<f64>) -> impl Iterator<Item = Outside> {
        // Both are in the registry's order.
        let mut known = METRICS.iter();
        let defined = self.0.iter().filter(|(_, value)| !matches!(value, Value::Undefined));
        defined.filter_map(move |(name, value)| {
            let metric = known.find(|metric| metric.name == *name)?;
            (!metric.domain.holds(value, carried)).then_some(Outside { metric, value: *value })
        })
    }
}

impl View<'_> {
    /// The most that these flows can have been given, in Mbit/s over the time for which they count: the slowest link of each
    /// group's way at its fastest, since the first flow began, as what waits in a queue or for a segment before it when the
    /// window begins is read in it. None where a way has no such link, or packets may arrive twice.
    pub(crate) fn carried(&self, members: &[usize], level: super::Level) -> Option<f64> {
        let flows = Flows::new(self, members, level);
        let (from, to) = flows.life()?;
        let begun = flows.each().map(|flow| flow.started).min()?;
        let mut rates: Vec<(u32, Rate)> = Vec::new();
        for &flow in members {
            let group = self.info.flows[flow].group;
            if rates.last().is_none_or(|(last, _)| *last != group) {
                let way = &self.info.groups.get(group as usize)?.route;
                let most = if level == super::Level::Flow { way.rate } else { way.together };
                rates.push((group, most.filter(|_| !way.duplicates)?));
            }
        }
        let sum: f64 = rates.iter().map(|(_, rate)| rate.mbit_per_sec()).sum();
        Some(sum * (to.since(begun).as_secs_f64() / to.since(from).as_secs_f64()))
    }
}
