//! A probability as a lab file writes it: a number from 0 to 1, or per cent in a text.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;
use weir_base::WORDS;

/// From 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probability(pub(crate) f64);

impl Probability {
    pub(crate) fn of_number<E: Error>(value: f64) -> Result<Probability, E> {
        if (0.0..=1.0).contains(&value) {
            return Ok(Probability(value));
        }
        let message = format!("{value} is not a probability");
        Err(E::custom(if value > 1.0 && value <= 100.0 {
            format!("{message}; write {} for {value} %", value / 100.0)
        } else {
            format!("{message}; write a number from 0 to 1")
        }))
    }

    pub(crate) fn of_text<E: Error>(text: &str) -> Result<Probability, E> {
        let number = text.trim().strip_suffix('%').map(|number| number.trim().parse::<f64>());
        match number {
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => Ok(Probability(percent / 100.0)),
            Some(Ok(percent)) => {
                Err(E::custom(format!("{percent} % is not a probability; write from 0 % to 100 %")))
            }
            _ => Err(E::custom(format!(
                "\"{text}\" is not a probability; write a number from 0 to 1, or per cent, for example \"1 %\""
            ))),
        }
    }
}

/// What a probability may be, for messages.
pub(crate) const EXPECTED: &str = "a probability, for example 0.01 or \"1 %\"";

/// Reads the forms of a probability on behalf of another visitor.
macro_rules! visit_probability {
    ($wrap:expr) => {
        fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
            Probability::of_number(value).map($wrap)
        }
        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Probability::of_number(value as f64).map($wrap)
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Probability::of_number(value as f64).map($wrap)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Probability::of_text(text).map($wrap)
        }
    };
}
pub(crate) use visit_probability;

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Probability, D::Error> {
        struct Forms;
        impl Visitor<'_> for Forms {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            visit_probability!(|probability| probability);
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "Probability".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A number from 0 to 1, or per cent in a text.",
            "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, { "type": "string", (WORDS): "per cent in a text", "examples": ["1 %"] }]
        })
    }
}
