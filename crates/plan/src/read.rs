//! Reads a lab's values into typed sections by serde, and gives each error the place of the innermost value it is about.

use crate::diagnostic::Fault;
use crate::tree::{Entry, Item, Node, Table};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The name by which a type asks for a value that may be given for each direction; see [`crate::per_direction::PerDirection`].
pub(crate) const PER_DIRECTION: &str = "weir per direction";

/// Reads a value.
pub(crate) fn read<'de, T: serde::Deserialize<'de>>(node: &'de Node) -> Result<T, Fault> {
    T::deserialize(node)
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.item {
            Item::String(text) => visitor.visit_borrowed_str(text),
            Item::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            Item::Float(number) => visitor.visit_f64(*number),
            Item::Bool(truth) => visitor.visit_bool(*truth),
            Item::Array(values) => visitor.visit_seq(Values(values.iter())),
            Item::Table(table) => visitor.visit_map(Entries::of(table)),
        }
        .map_err(|fault| fault.at(self.origin))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self).map_err(|fault| fault.at(self.origin))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.item {
            Item::Table(table)
                if name == PER_DIRECTION && (table.get("down").is_some() || table.get("up").is_some()) =>
            {
                visitor.visit_map(Entries::of(table))
            }
            _ => visitor.visit_newtype_struct(self),
        }
        .map_err(|fault| fault.at(self.origin))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.item {
            Item::String(text) => {
                visitor.visit_enum(IntoDeserializer::<Fault>::into_deserializer(text.as_str()))
            }
            Item::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(Entries::of(table))),
            _ => Err(Fault::custom(format!(
                "this is {}, not one of {}",
                self.what(),
                crate::diagnostic::listed(names.iter().copied())
            ))),
        }
        .map_err(|fault| fault.at(self.origin))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Values<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Values<'de> {
    type Error = Fault;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|node| seed.deserialize(node).map_err(|fault| fault.at(node.origin))).transpose()
    }
}

struct Entries<'de> {
    rest: indexmap::map::Iter<'de, String, Entry>,
    value: Option<&'de Node>,
}

impl<'de> Entries<'de> {
    fn of(table: &'de Table) -> Entries<'de> {
        Entries { rest: table.0.iter(), value: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, entry)) = self.rest.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        let key = StrDeserializer::<Fault>::new(key);
        seed.deserialize(key).map(Some).map_err(|fault| fault.at(entry.named))
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let node = self.value.take().ok_or_else(|| Fault::custom("a value was asked for before its key"))?;
        seed.deserialize(node).map_err(|fault| fault.at(node.origin))
    }
}
