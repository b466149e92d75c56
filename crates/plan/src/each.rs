//! Settings that may differ between the flows of a group: one value for all, a list that the flows go through in turn, or a range.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use weir_base::Span;

/// A time for each flow of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Times {
    /// The same for all.
    One(Span),
    /// For the first flow, the second and so on; the list begins again when it ends. Never empty.
    List(Vec<Span>),
    /// Evenly spaced from the first flow's time to the last one's.
    Range(Range),
}

/// A range of times, which the flows divide evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    /// The first flow's time.
    pub(crate) from: Span,
    /// The last flow's time.
    pub(crate) to: Span,
}

impl Times {
    /// The time of one of `count` flows, by its number from 0.
    pub(crate) fn of(&self, flow: u64, count: u64) -> Span {
        match self {
            Times::One(time) => *time,
            Times::List(times) => times[(flow % times.len() as u64) as usize],
            Times::Range(Range { from, to }) => {
                let (from, to) = (i128::from(from.as_nanos()), i128::from(to.as_nanos()));
                let last = i128::from(count.saturating_sub(1).max(1));
                Span::from_nanos((from + (to - from) * i128::from(flow) / last) as u64)
            }
        }
    }

    /// The values as the lab file gives them.
    pub(crate) fn written(&self) -> Vec<Span> {
        match self {
            Times::One(time) => vec![*time],
            Times::List(times) => times.clone(),
            Times::Range(Range { from, to }) => vec![*from, *to],
        }
    }

    /// The shortest.
    pub(crate) fn least(&self) -> Span {
        self.written().into_iter().min().unwrap_or(Span::ZERO)
    }

    /// The longest.
    pub(crate) fn most(&self) -> Span {
        self.written().into_iter().max().unwrap_or(Span::ZERO)
    }

    /// The fewest flows with which each of its values is used.
    pub(crate) fn flows(&self) -> u64 {
        self.written().len() as u64
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Times, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Times;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time with its unit, for example \"20 ms\", a list of times, or a table of `from` and `to`",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Times, E> {
                text.parse().map(Times::One).map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Times, A::Error> {
                let mut times = Vec::new();
                while let Some(time) = seq.next_element()? {
                    times.push(time);
                }
                if times.is_empty() {
                    Err(A::Error::custom("the list is empty"))
                } else {
                    Ok(Times::List(times))
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Times, A::Error> {
                Range::deserialize(MapAccessDeserializer::new(map)).map(Times::Range)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Times {
    fn schema_name() -> Cow<'static, str> {
        "Times".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, range) = (generator.subschema_for::<Span>(), generator.subschema_for::<Range>());
        schemars::json_schema!({
            "description": "A time for all flows, a list with one for each, or a range that the flows divide evenly.",
            "anyOf": [time.clone(), { "type": "array", "items": time, "minItems": 1 }, range]
        })
    }
}

/// The destination of the data of a group's flows: one place, or a list that the flows go through in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Places, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Places;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or a list of names")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Places, E> {
                Ok(Places(vec![name.into()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Places, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                if names.is_empty() { Err(A::Error::custom("the list is empty")) } else { Ok(Places(names)) }
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Places {
    fn schema_name() -> Cow<'static, str> {
        "Places".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A name, or a list of names that the flows go through in turn.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1, "uniqueItems": true }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_of_a_list_are_taken_in_turn_and_a_range_is_divided_evenly() {
        let ms = Span::from_millis;
        let all = |times: &Times, count| (0..count).map(|flow| times.of(flow, count)).collect::<Vec<_>>();
        assert_eq!(all(&Times::One(ms(5)), 2), [ms(5), ms(5)]);
        assert_eq!(all(&Times::List(vec![ms(10), ms(40)]), 3), [ms(10), ms(40), ms(10)]);
        let range = |from, to| Times::Range(Range { from: ms(from), to: ms(to) });
        assert_eq!(all(&range(10, 40), 4), [ms(10), ms(20), ms(30), ms(40)]);
        assert_eq!(all(&range(40, 10), 2), [ms(40), ms(10)]);
        assert_eq!(all(&range(10, 40), 1), [ms(10)]);
    }
}
