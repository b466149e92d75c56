//! The metrics of one subject, by name. Those of each of ten thousand flows are in memory at once: a value takes 32 bytes.

use super::{Distribution, METRICS, Metric, Value};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Values by metric name, in the registry's order; an object in JSON.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    values: Vec<(Name, Short)>,
    distributions: Vec<Distribution>,
}

/// The name of a metric.
#[derive(Debug, Clone, PartialEq)]
enum Name {
    /// The metric at this place in [`METRICS`].
    Known(u8),
    /// A metric of another version of weir, in a summary that was read.
    Other(Box<str>),
}

/// A [`Value`], with the place of its distribution instead of the distribution itself.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Short {
    Undefined,
    Count(u64),
    Number(f64),
    Distribution(u32),
}

impl Name {
    /// The name of the metric after `before` is looked for first: summaries are in the registry's order.
    fn of(name: &str, before: Option<&Name>) -> Name {
        let next = if let Some(Name::Known(place)) = before { usize::from(*place) + 1 } else { 0 };
        let mut places = (next..METRICS.len()).chain(0..next);
        let found = places.find(|place| METRICS[*place].name == name);
        found.map_or_else(|| Name::Other(name.into()), |place| Name::Known(place as u8))
    }

    fn metric(&self) -> Option<&'static Metric> {
        match self {
            Name::Known(place) => METRICS.get(usize::from(*place)),
            Name::Other(_) => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Name::Known(place) => METRICS[usize::from(*place)].name,
            Name::Other(name) => name,
        }
    }
}

impl Metrics {
    /// The value of a metric; undefined if it is not among these.
    pub fn get(&self, name: &str) -> Value {
        let found = self.values.iter().find(|(known, _)| known.text() == name);
        found.map_or(Value::Undefined, |(_, short)| self.full(*short))
    }

    /// The value of a metric of this version; undefined if it is not among these.
    pub fn value(&self, metric: &Metric) -> Value {
        self.get(metric.name)
    }

    /// The same as a single number; of a distribution the mean.
    pub fn number(&self, metric: &Metric) -> Option<f64> {
        self.value(metric).scalar()
    }

    /// The same if it is a count.
    pub fn count(&self, metric: &Metric) -> Option<u64> {
        match self.value(metric) {
            Value::Count(count) => Some(count),
            _ => None,
        }
    }

    /// The same if it is a distribution.
    pub fn distribution(&self, metric: &Metric) -> Option<Distribution> {
        self.value(metric).distribution().copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value)> {
        self.values.iter().map(|(name, short)| (name.text(), self.full(*short)))
    }

    /// Those of this version's metrics.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static Metric, Value)> {
        self.values.iter().filter_map(|(name, short)| Some((name.metric()?, self.full(*short))))
    }

    /// No metrics, with memory for this many.
    pub(super) fn with_room(room: usize) -> Metrics {
        Metrics { values: Vec::with_capacity(room), distributions: Vec::new() }
    }

    /// Adds the value of the metric at a place in [`METRICS`].
    pub(super) fn push(&mut self, place: u8, value: Value) {
        self.put(Name::Known(place), value);
    }

    /// Adds the value of a metric after all others.
    pub(crate) fn add(&mut self, name: &'static str, value: Value) {
        self.put_named(name, value);
    }

    fn put(&mut self, name: Name, value: Value) {
        let short = match value {
            Value::Undefined => Short::Undefined,
            Value::Count(count) => Short::Count(count),
            Value::Number(number) => Short::Number(number),
            Value::Distribution(distribution) => {
                self.distributions.push(distribution);
                Short::Distribution(self.distributions.len() as u32 - 1)
            }
        };
        self.values.push((name, short));
    }

    fn put_named(&mut self, name: &str, value: Value) {
        self.put(Name::of(name, self.values.last().map(|(name, _)| name)), value);
    }

    fn full(&self, short: Short) -> Value {
        match short {
            Short::Undefined => Value::Undefined,
            Short::Count(count) => Value::Count(count),
            Short::Number(number) => Value::Number(number),
            Short::Distribution(place) => Value::Distribution(self.distributions[place as usize]),
        }
    }
}

impl FromIterator<(&'static str, Value)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (&'static str, Value)>>(values: I) -> Metrics {
        let mut metrics = Metrics::default();
        values.into_iter().for_each(|(name, value)| metrics.put_named(name, value));
        metrics
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (name, short) in &self.values {
            // As a `Value`, without making one of each.
            match short {
                Short::Undefined => map.serialize_entry(name.text(), &()),
                Short::Count(count) => map.serialize_entry(name.text(), count),
                Short::Number(number) => map.serialize_entry(name.text(), number),
                Short::Distribution(place) => {
                    map.serialize_entry(name.text(), &self.distributions[*place as usize])
                }
            }?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Metrics, D::Error> {
        /// A name, copied only where the text has it with escapes.
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Metrics;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metrics by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((Key(name), value)) = map.next_entry::<Key<'_>, Value>()? {
                    metrics.put_named(&name, value);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_read_back_as_they_were_written_even_if_another_version_wrote_them() {
        let spread = Distribution::of([1.5, 2.5]).unwrap();
        let entries = [
            ("rtt_ms", Value::Distribution(spread)),
            ("goodput_mbps", Value::Number(4.5)),
            ("from_another_version", Value::Count(7)),
            ("timeouts", Value::Undefined),
            ("request_time_ms", Value::Distribution(Distribution::of([3.5]).unwrap())),
        ];
        let metrics: Metrics = entries.into_iter().collect();
        let text = serde_json::to_string(&metrics).unwrap();
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
        assert!(metrics.iter().eq(entries));
        assert!(entries.iter().all(|(name, value)| metrics.get(name) == *value));
        assert_eq!(metrics.get("jain_index"), Value::Undefined);
        assert_eq!(metrics.known().count(), 4);
    }
}
