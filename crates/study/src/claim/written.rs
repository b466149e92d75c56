//! A claim as it is written in a lab file.

use super::{Against, Along, Claim, Expected, Order, Over, Relation, Repeats, Tolerance};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use weir_base::{CODEPOINTS, Ecn};
use weir_plan::{SettingHelp, Words, describe_setting_in};
use weir_record::Statistic;

/// The expected value of a metric, and its source. A claim states `value` with a `tolerance`, or `at_least` or `at_most` or both,
/// or an `order`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// The row of the study's table to which the claim belongs ("H1"): a row holds only if all its claims, from any of the
    /// study's labs, hold. Without it, the claim is a row by itself.
    #[schemars(example = &"H1")]
    pub(super) row: Option<String>,
    /// The metric, with its unit, as `weir list metrics` names it (`utilisation_percent`).
    #[schemars(example = &"utilisation_percent")]
    pub(super) metric: String,
    /// The traffic group, flow or link that the metric describes, or two groups, `["a", "b"]`, for a metric that compares them.
    /// Without it, the metric is that of the whole run.
    #[serde(default)]
    #[schemars(example = &"bulk")]
    pub(super) of: Words,
    /// The codepoint of the packets, for a metric that a link has for each codepoint: "not-ect", "ect0", "ect1" or "ce", on arrival
    /// at the link that `of` names, or at the lab's first link.
    pub(super) class: Option<Ecn>,
    /// One of the windows that `[run.windows]` names; by default the whole run after its warm-up.
    #[serde(rename = "in")]
    #[schemars(example = &"loaded")]
    pub(super) window: Option<String>,
    /// The statistic, for a metric that is a distribution; by default its mean.
    #[serde(default)]
    pub(super) statistic: Statistic,
    /// The cells of the tree: for each named level a label, or a list of labels; by default all cells.
    #[serde(default, rename = "where")]
    #[schemars(extend("examples" = [{ "queue": "pie" }]))]
    pub(super) cells: BTreeMap<String, Words>,
    /// How a cell's repeats are combined; by default their mean.
    #[serde(default)]
    pub(super) repeats: Repeats,
    /// The value to which this one is relative. With labels of levels, `{ background = "newreno" }`, it is that of the cell which has these labels
    /// there and the same ones on all other levels. It may be that of another group, `{ of = "foreground" }`, of another codepoint,
    /// `{ class = "ect0" }`, or of another window, `{ in = "before" }`. With `{ engine = "sim" }` it is that of the other engine, and is
    /// judged only where both engines have run. Several of these may be combined.
    #[serde(default)]
    #[schemars(extend("examples" = [{ "background": "newreno" }]))]
    pub(super) against: BTreeMap<String, String>,
    /// How the two values are combined; by default the change, in percent.
    #[serde(rename = "as")]
    pub(super) relation: Option<Relation>,
    /// Judges, instead of the metric's value, the point along a level at which it passes a bound:
    /// `{ level = "rate", above = 50 }` is the number at the start of the first label at which the metric is above 50; `below`
    /// likewise.
    pub(super) along: Option<Along>,
    /// Whether a claim about several cells must hold for each of them or for their mean; by default for each.
    #[serde(default)]
    pub(super) over: Over,
    /// The level whose labels `value` or `order` lists.
    #[schemars(example = &"queue")]
    pub(super) by: Option<String>,
    /// The expected value, in the metric's unit or the unit of the combined value; with `by`, a table of labels with a value
    /// each.
    #[schemars(example = &15.0)]
    pub(super) value: Option<Values>,
    /// How far the measured value may be from the expected one: a number in the same unit, or a share such as "5 %".
    #[schemars(example = &"5 %")]
    pub(super) tolerance: Option<Tolerance>,
    /// The lowest accepted value.
    #[schemars(example = &90.0)]
    pub(super) at_least: Option<f64>,
    /// The highest accepted value.
    #[schemars(example = &20.0)]
    pub(super) at_most: Option<f64>,
    /// The order of the cells' values along `by`: `"a ~ b < c"` means that a and b both are less than c, and says nothing about a
    /// and b; `>` means that values fall.
    #[schemars(example = &"pie < tail-drop")]
    pub(super) order: Option<Order>,
    /// The source of the value: a paper's section, figure or table, a standard, an issue.
    #[schemars(example = &"RFC 8033, section 4.2")]
    pub(super) source: String,
    /// Why a difference is known and accepted, with a link to the evidence: an address, or a file such as "docs/why.md". Such
    /// claims are counted separately.
    #[schemars(example = &"docs/judge.md")]
    pub(super) differs: Option<String>,
}

/// The JSON schema of a lab file, claims included.
pub fn schema() -> serde_json::Value {
    let mut lab = weir_plan::schema();
    let mut claims = schemars::schema_for!(Vec<Written>).to_value();
    if let (Some(all), Some(own)) = (lab["$defs"].as_object_mut(), claims["$defs"].as_object_mut()) {
        all.append(own);
    }
    lab["properties"][super::SECTION]["items"] = claims["items"].take();
    lab
}

/// The schema of a lab file, claims included, made once.
static SCHEMA: LazyLock<serde_json::Value> = LazyLock::new(schema);

/// A setting of a lab file, or a key of a claim (`expect.metric`). `None` if there is none.
pub fn describe_setting(path: &str) -> Option<SettingHelp> {
    describe_setting_in(&SCHEMA, path)
}

/// The key of `against` that says whose metric the other value is.
pub(super) const OF: &str = "of";
/// The key of `against` that names the packets' codepoint.
pub(super) const CLASS: &str = "class";
/// The key of `against` that names the window.
pub(super) const IN: &str = "in";
/// The key of `against` that names the engine.
pub(super) const ENGINE: &str = "engine";

impl Written {
    /// The claims that it states. It must have been checked.
    pub(super) fn claims(self) -> Vec<Claim> {
        let near =
            |value| Expected::Near { value, tolerance: self.tolerance.unwrap_or(Tolerance::Absolute(0.0)) };
        let expected: Vec<(Option<&str>, Expected)> = match (&self.value, &self.order, &self.by) {
            (Some(Values::One(value)), ..) => vec![(None, near(*value))],
            (Some(Values::Of(values)), ..) => {
                values.iter().map(|(label, value)| (Some(label.as_str()), near(*value))).collect()
            }
            (None, Some(order), Some(by)) => {
                vec![(None, Expected::Order { by: by.clone(), order: order.clone() })]
            }
            _ => vec![(None, Expected::Within { at_least: self.at_least, at_most: self.at_most })],
        };
        expected.into_iter().map(|(label, expected)| self.claim(label, expected)).collect()
    }

    fn claim(&self, label: Option<&str>, expected: Expected) -> Claim {
        let mut cells: super::Cells =
            self.cells.iter().map(|(level, labels)| (level.clone(), labels.0.clone())).collect();
        if let (Some(level), Some(label)) = (&self.by, label) {
            cells.insert(level.clone(), vec![label.into()]);
        }
        let against = (!self.against.is_empty()).then(|| {
            let mut cells = self.against.clone();
            let class = cells.remove(CLASS).and_then(|name| codepoint(&name));
            let (of, window, engine) = (cells.remove(OF), cells.remove(IN), cells.remove(ENGINE));
            Against { of, class, window, engine, cells, relation: self.relation.unwrap_or_default() }
        });
        Claim {
            row: self.row.clone(),
            metric: self.metric.clone(),
            of: self.of.0.clone(),
            class: self.class,
            window: self.window.clone(),
            statistic: self.statistic,
            cells,
            repeats: self.repeats,
            against,
            along: self.along.clone(),
            over: self.over,
            expected,
            source: self.source.clone(),
            differs: self.differs.clone(),
        }
    }
}

/// The codepoint of this name.
pub(super) fn codepoint(name: &str) -> Option<Ecn> {
    CODEPOINTS.into_iter().find(|codepoint| codepoint.name() == name)
}

/// A value, or a value for each label.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    One(f64),
    Of(Vec<(String, f64)>),
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct OneOrEach;
        impl<'de> Visitor<'de> for OneOrEach {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a table of labels and numbers")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Values, E> {
                Ok(Values::One(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Values, E> {
                Ok(Values::One(value as f64))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Values, E> {
                Ok(Values::One(value as f64))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    values.push(entry);
                }
                Ok(Values::Of(values))
            }
        }
        deserializer.deserialize_any(OneOrEach)
    }
}

impl JsonSchema for Values {
    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "number" },
            { "type": "object", "additionalProperties": { "type": "number" } }
        ] })
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Order, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let falling = text.contains('>');
        let places: Vec<Vec<String>> = text
            .split(['<', '>'])
            .map(|place| place.split('~').map(|label| label.trim().to_owned()).collect())
            .collect();
        let wrong =
            |why: &str| Err(D::Error::custom(format!("\"{text}\" {why}; write for example \"a ~ b < c\"")));
        if falling && text.contains('<') {
            return wrong("mixes `<` and `>`");
        }
        if places.len() < 2 || places.iter().flatten().any(String::is_empty) {
            return wrong("is not an order");
        }
        Ok(Order { places, falling })
    }
}

impl JsonSchema for Order {
    fn schema_name() -> Cow<'static, str> {
        "Order".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "examples": ["a ~ b < c", "c > a ~ b"] })
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tolerance, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Tolerance;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in the metric's unit, or a share such as \"5 %\"")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Tolerance, E> {
                if value < 0.0 {
                    Err(E::custom("a tolerance cannot be negative"))
                } else {
                    Ok(Tolerance::Absolute(value))
                }
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Tolerance, E> {
                let share =
                    text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                match share {
                    Some(share) if share.is_finite() && share >= 0.0 => Ok(Tolerance::Share(share / 100.0)),
                    _ => Err(E::custom(format!(
                        "\"{text}\" is not a tolerance; write a number, or a share such as \"5 %\""
                    ))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Tolerance {
    fn schema_name() -> Cow<'static, str> {
        "Tolerance".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["number", "string"], "examples": [2.0, "5 %"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_claim_is_described() {
        let claim = describe_setting("expect").unwrap();
        assert!(claim.keys.len() > 15, "{claim:?}");
        for (key, _) in claim.keys {
            let help = describe_setting(&format!("expect.{key}")).unwrap();
            assert!(!help.summary.is_empty() && !help.values.is_empty(), "{help:?}");
            assert!(help.example.is_some() || !help.keys.is_empty(), "{help:?}");
        }
        assert!(describe_setting("dumbbell.rate").is_some() && describe_setting("expect.nothing").is_none());
    }
}
