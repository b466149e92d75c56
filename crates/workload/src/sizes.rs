//! Sizes of flows, requests and answers: fixed, drawn from a Pareto distribution with a cap, or drawn from a list with weights.

use crate::checks;
use crate::{Bytes, Random};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use weir_base::ParameterError;
use weir_base::math::pow;

/// A distribution of sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Sizes {
    /// One size for all.
    Fixed(Bytes),
    /// A Pareto distribution with a cap.
    Pareto(Pareto),
    /// Sizes with weights, drawn in proportion to them.
    Listed(Vec<Listed>),
}

/// A Pareto distribution whose values above the cap count as the cap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    /// The shape: a smaller one means a heavier tail. Web objects have 1.1 to 1.3 (Crovella and Bestavros 1997).
    pub shape: f64,
    /// The mean size, with the cap's effect included.
    pub mean: Bytes,
    /// The largest size.
    pub cap: Bytes,
}

/// A size and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The size.
    pub size: Bytes,
    /// Frequency of the size relative to the others.
    pub weight: f64,
}

impl Pareto {
    /// The mean of a Pareto distribution with this scale (its smallest value) and the cap: the scale plus the integral of the tail
    /// probability from the scale to the cap.
    fn mean_with(&self, scale: f64) -> f64 {
        let (shape, cap) = (self.shape, self.cap.get() as f64);
        if shape == 1.0 {
            return scale * (1.0 + weir_base::math::ln(cap / scale));
        }
        scale * (shape - pow(scale / cap, shape - 1.0)) / (shape - 1.0)
    }

    /// The scale that gives the mean, by bisection, since the mean grows with the scale.
    fn scale(&self) -> f64 {
        let (mut low, mut high) = (1e-3, self.mean.get() as f64);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if self.mean_with(middle) < self.mean.get() as f64 { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}

impl Sizes {
    /// The mean size, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(size) => size.get() as f64,
            Sizes::Pareto(pareto) => pareto.mean.get() as f64,
            Sizes::Listed(sizes) => {
                let weights: f64 = sizes.iter().map(|one| one.weight).sum();
                sizes.iter().map(|one| one.weight * one.size.get() as f64).sum::<f64>() / weights
            }
        }
    }

    /// The drawer of these sizes.
    pub(crate) fn drawer(&self) -> Drawer {
        match self {
            Sizes::Fixed(size) => Drawer::Fixed(*size),
            Sizes::Pareto(pareto) => Drawer::Pareto {
                scale: pareto.scale(),
                power: -1.0 / pareto.shape,
                cap: pareto.cap.get() as f64,
            },
            Sizes::Listed(sizes) => {
                let mut sum = 0.0;
                let upto = |one: &Listed| {
                    sum += one.weight;
                    (sum, one.size)
                };
                Drawer::Listed(sizes.iter().map(upto).collect())
            }
        }
    }

    /// What is wrong with the sizes.
    pub(crate) fn faults(&self, key: &'static str, what: &str) -> Vec<ParameterError> {
        match self {
            Sizes::Fixed(size) => checks::size(key, what, *size).into_iter().collect(),
            Sizes::Pareto(Pareto { shape, mean, cap }) => {
                let mut faults: Vec<ParameterError> =
                    [checks::size(key, what, *mean), checks::size(key, what, *cap)]
                        .into_iter()
                        .flatten()
                        .collect();
                if !(0.1..=100.0).contains(shape) {
                    let message = format!("a Pareto distribution cannot have the shape {shape}");
                    faults.push(ParameterError::new(
                        key,
                        message,
                        "write a number from 0.1 to 100, for example 1.2",
                    ));
                }
                if mean >= cap {
                    let message = format!("a mean of {mean} is not below the cap of {cap}");
                    faults.push(ParameterError::new(key, message, "raise the cap, or lower the mean"));
                }
                faults
            }
            Sizes::Listed(sizes) => {
                let mut faults: Vec<ParameterError> =
                    sizes.iter().filter_map(|one| checks::size(key, what, one.size)).collect();
                let weights: f64 = sizes.iter().map(|one| one.weight).sum();
                let bad = |one: &Listed| !(one.weight >= 0.0 && one.weight.is_finite());
                if sizes.iter().any(bad) || !(weights > 0.0 && weights.is_finite()) {
                    let help = "write [{ size = \"1 kB\", weight = 9 }, { size = \"1 MB\", weight = 1 }]";
                    faults.push(ParameterError::new(
                        key,
                        "weights must be at least 0, and one above 0",
                        help,
                    ));
                }
                faults
            }
        }
    }
}

/// Draws sizes.
#[derive(Debug, Clone)]
pub(crate) enum Drawer {
    Fixed(Bytes),
    Pareto {
        scale: f64,
        power: f64,
        cap: f64,
    },
    /// Each size with the sum of the weights up to it.
    Listed(Vec<(f64, Bytes)>),
}

impl Drawer {
    /// The next size, at least one byte. A fixed size uses no random number.
    pub(crate) fn draw(&self, random: &mut Random) -> Bytes {
        match self {
            Drawer::Fixed(size) => *size,
            Drawer::Pareto { scale, power, cap } => {
                let size = (scale * pow(1.0 - random.unit(), *power)).min(*cap);
                Bytes::new(((size + 0.5) as u64).max(1))
            }
            Drawer::Listed(sizes) => {
                let all = sizes.last().map_or(0.0, |(sum, _)| *sum);
                let drawn = random.unit() * all;
                let found = sizes.iter().find(|(sum, _)| drawn < *sum).or(sizes.last());
                found.map_or(Bytes::new(1), |(_, size)| *size)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sizes, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Sizes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size, { shape, mean, cap } of a Pareto distribution, or a list of { size, weight }",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Sizes, E> {
                text.parse().map(Sizes::Fixed).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                Pareto::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Sizes::Pareto)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Sizes, A::Error> {
                let mut sizes = Vec::new();
                while let Some(one) = values.next_element()? {
                    sizes.push(one);
                }
                Ok(Sizes::Listed(sizes))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let size = serde_json::json!({ "type": "string", "description": "A size with its unit.", "examples": ["30 kB"] });
        schemars::json_schema!({ "anyOf": [
            size,
            { "type": "object", "additionalProperties": false, "required": ["shape", "mean", "cap"], "properties": {
                "shape": { "type": "number", "description": "Shape of the Pareto distribution." },
                "mean": { "type": "string", "description": "The mean size, with the cap's effect included." },
                "cap": { "type": "string", "description": "The largest size." } } },
            { "type": "array", "items": { "type": "object", "additionalProperties": false,
                "required": ["size", "weight"], "properties": {
                    "size": { "type": "string", "description": "A size." },
                    "weight": { "type": "number", "description": "Frequency of the size relative to the others." } } } }
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pareto_distribution_has_the_configured_mean_and_never_exceeds_its_cap() {
        let sizes = Sizes::Pareto(Pareto { shape: 1.5, mean: Bytes::new(30_000), cap: Bytes::new(300_000) });
        let (drawer, mut random) = (sizes.drawer(), Random::stream(1, "test"));
        let drawn: Vec<u64> = (0..200_000).map(|_| drawer.draw(&mut random).get()).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / 200_000.0;
        assert!((mean - 30_000.0).abs() < 600.0, "{mean}");
        assert_eq!(drawn.iter().max(), Some(&300_000));
        // The scale s satisfies s (3 - 2 (s / cap)^0.5) = mean: 12,000 x (3 - 2 x 0.2) is 31,200, so s is a little smaller.
        let least = *drawn.iter().min().unwrap();
        assert!((11_300..12_000).contains(&least), "{least}");
    }

    #[test]
    fn a_pareto_distribution_of_shape_one_has_its_mean() {
        let pareto = Pareto { shape: 1.0, mean: Bytes::new(10_000), cap: Bytes::new(1_000_000) };
        assert!((pareto.mean_with(pareto.scale()) - 10_000.0).abs() < 1e-3);
    }

    #[test]
    fn listed_sizes_are_drawn_in_proportion_to_their_weights() {
        let sizes: Sizes =
            serde_json::from_str(r#"[{ "size": "1 kB", "weight": 3 }, { "size": "9 kB", "weight": 1 }]"#)
                .unwrap();
        assert_eq!(sizes.mean(), 3000.0);
        let (drawer, mut random) = (sizes.drawer(), Random::stream(1, "test"));
        let small = (0..40_000).filter(|_| drawer.draw(&mut random) == Bytes::new(1000)).count();
        assert!((29_600..30_400).contains(&small), "{small}");
    }

    #[test]
    fn sizes_read_back_as_they_are_written() {
        for text in
            [r#""30 kB""#, r#"{"shape":1.2,"mean":"30 kB","cap":"3 MB"}"#, r#"[{"size":"1 B","weight":0.5}]"#]
        {
            let sizes: Sizes = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&sizes).unwrap(), text);
            assert_eq!(sizes.faults("size", "it"), []);
        }
        assert!(serde_json::from_str::<Sizes>("5").is_err());
    }
}
