//! Values that may be given for each direction of a link. Doc comments here are the user's documentation.

use crate::read::PER_DIRECTION;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A value that may differ by direction: `{ down = .., up = .. }`. Down is the direction of the lab's data unless a group has
/// `direction = "up"`. Each setting says what a plain value means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PerDirection<T> {
    /// One value, without a direction.
    Plain(T),
    /// One for each direction.
    Each {
        /// Of the direction down.
        down: Option<T>,
        /// Of the direction up.
        up: Option<T>,
    },
}

impl<T: Clone> PerDirection<T> {
    /// Both directions, a plain value counting for both.
    pub(crate) fn both(self) -> [Option<T>; 2] {
        match self {
            PerDirection::Plain(value) => [Some(value.clone()), Some(value)],
            PerDirection::Each { down, up } => [down, up],
        }
    }
    /// Both directions, a plain value counting for down alone.
    pub(crate) fn down_only(self) -> [Option<T>; 2] {
        match self {
            PerDirection::Plain(value) => [Some(value), None],
            PerDirection::Each { down, up } => [down, up],
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerDirection<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PerDirection<T>, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = PerDirection<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or a table of one for each direction, `down` and `up`")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<PerDirection<T>, D::Error> {
                T::deserialize(deserializer).map(PerDirection::Plain)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerDirection<T>, A::Error> {
                let (mut down, mut up) = (None, None);
                while let Some(key) = map.next_key::<Direction>()? {
                    match key {
                        Direction::Down => down = Some(map.next_value()?),
                        Direction::Up => up = Some(map.next_value()?),
                    }
                }
                Ok(PerDirection::Each { down, up })
            }
        }
        deserializer.deserialize_newtype_struct(PER_DIRECTION, Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for PerDirection<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Ways_{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let plain = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [plain.clone(), {
            "type": "object",
            "properties": { "down": plain.clone(), "up": plain },
            "additionalProperties": false
        }] })
    }
}

/// A direction through the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// From left to right.
    #[default]
    Down,
    /// From right to left.
    Up,
}
