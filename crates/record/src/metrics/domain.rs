//! The values that a metric can have. A value outside this domain is an error of weir itself.

use super::{Flows, Metric, Metrics, Value, View};
use std::fmt;

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
    /// From 0 to the greatest rate that the slowest link on the flows' route allows, in Mbit/s; unbounded if it is not known.
    Carried,
}

/// Tolerance above a link's rate, as a share of it: transmission times are rounded to whole nanoseconds.
const ROUNDING: f64 = 1e-3;

impl Domain {
    /// Whether this value is in the domain; `carried` is the upper end of [`Domain::Carried`], in Mbit/s.
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
            Domain::Carried => "from 0 to the rate that the flows' path can carry",
        })
    }
}

/// A value that a metric cannot have.
#[derive(Debug, Clone, PartialEq)]
pub struct Outside {
    /// The metric.
    pub metric: &'static Metric,
    /// Its value.
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
        write!(f, "{} is {value}, outside its range ({})", self.metric.name, self.metric.domain)
    }
}

impl Metrics {
    /// The metrics whose value is outside their domain; `carried` is the upper end of [`Domain::Carried`], in Mbit/s.
    pub(crate) fn outside(&self, carried: Option<f64>) -> impl Iterator<Item = Outside> {
        let outside = move |(metric, value): &(&Metric, Value)| !metric.domain.holds(value, carried);
        self.known().filter(outside).map(|(metric, value)| Outside { metric, value })
    }
}

impl View<'_> {
    /// Greatest possible goodput of these flows over their active time, in Mbit/s: what the slowest link of each group's route
    /// can carry at its greatest rate since the first flow began, because data that waits in a queue or for an earlier segment
    /// at the window's begin is read in the window. `None` if a route has no known rate, or if packets may arrive twice.
    pub(crate) fn carried(&self, members: &[usize], level: super::Level) -> Option<f64> {
        let flows = Flows::new(self, members, level);
        let (from, to) = flows.life()?;
        let begun = flows.each().map(|flow| flow.started).min()?;
        let sum = self.together(members, level)?;
        Some(sum * (to.since(begun).as_secs_f64() / to.since(from).as_secs_f64()))
    }

    /// The rate at which the paths of these flows carry packets at most, in Mbit/s: for each group that of its slowest link. `None` if a
    /// path has no known rate, or if packets may arrive twice.
    pub(super) fn together(&self, members: &[usize], level: super::Level) -> Option<f64> {
        let (mut last, mut sum) = (None, 0.0);
        for &flow in members {
            let group = self.info.flows[flow].group;
            if last.replace(group) != Some(group) {
                let way = &self.info.groups.get(group as usize)?.route;
                let most = if level == super::Level::Flow { way.rate } else { way.together };
                sum += most.filter(|_| !way.duplicates)?.mbit_per_sec();
            }
        }
        Some(sum)
    }
}
