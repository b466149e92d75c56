//! The JSON of result folders: indented by two spaces with a newline at the end, or all on one line. The bytes are those of
//! [`serde_json::to_vec_pretty`] and [`serde_json::to_vec`], which take two to three times as many instructions: they look at each
//! byte of each name, and write each piece of a line by itself. Numbers and texts with special characters are still their work.

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};
use serde_json::{Error, Result};
use std::fmt::Display;
use std::io::{self, Write};

/// A value as the bytes of a file.
///
/// # Errors
/// The value has no form in JSON.
pub fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    write_json(value, &mut text)?;
    Ok(text)
}

/// Writes a value as [`to_json`] does, in pieces of about [`PIECE`] bytes.
///
/// # Errors
/// The value has no form in JSON, or writing fails.
pub fn write_json(value: &impl Serialize, out: impl Write) -> Result<()> {
    let mut json = Json { out: Some(out), text: Vec::new(), depth: 0 };
    value.serialize(&mut json)?;
    json.text.push(b'\n');
    json.flush()
}

/// Appends a value to a text, on one line.
///
/// # Errors
/// The value has no form in JSON.
pub fn append_json(value: &(impl Serialize + ?Sized), text: &mut Vec<u8>) -> Result<()> {
    let mut json = Json::<io::Empty> { out: None, text: std::mem::take(text), depth: 0 };
    let result = value.serialize(&mut json);
    *text = json.text;
    result
}

/// Size in bytes of the pieces in which a value is written: the kernel takes what is still in a core's cache.
const PIECE: usize = 128 << 10;

/// The comma and newline that end the line before, and as much indentation as most lines have.
const BEGINNING: &[u8; 34] = b",\n                                ";

/// A value on its way to a file.
struct Json<W> {
    /// Where its lines go, one for each entry; `None` if all is on one line, which stays in `text`.
    out: Option<W>,
    /// The text that is not in `out` yet.
    text: Vec<u8>,
    /// Number of open arrays and objects.
    depth: usize,
}

impl<W: Write> Json<W> {
    /// Opens an array or an object, whose closing bracket is `end`.
    fn open(&mut self, begin: u8, end: u8) -> Open<'_, W> {
        self.text.push(begin);
        self.depth += 1;
        Open { json: self, end, filled: false }
    }

    /// Ends an entry with a comma if `comma` is set, and begins the next line.
    #[inline]
    fn begin(&mut self, comma: bool) {
        let spaces = 2 * self.depth;
        let most = if self.out.is_some() { BEGINNING.len().min(2 + spaces) } else { 1 };
        self.text.extend_from_slice(&BEGINNING[usize::from(!comma)..most]);
        if most == BEGINNING.len() {
            self.text.resize(self.text.len() + 2 + spaces - most, b' ');
        }
    }

    /// Appends a text between quotes.
    #[inline]
    fn quoted(&mut self, text: &str) {
        self.text.push(b'"');
        self.text.extend_from_slice(text.as_bytes());
        self.text.push(b'"');
    }

    /// Appends what is between a key and its value.
    #[inline]
    fn colon(&mut self) {
        self.text.extend_from_slice(if self.out.is_some() { b": " } else { b":" });
    }

    /// Begins an object with one entry, whose value is to follow: the form of an enum's variant with fields.
    fn variant(&mut self, name: &'static str) -> Result<Open<'_, W>> {
        let mut object = self.open(b'{', b'}');
        object.key(name)?;
        Ok(object)
    }

    /// Writes the text so far.
    fn flush(&mut self) -> Result<()> {
        if let Some(out) = &mut self.out {
            out.write_all(&self.text).map_err(Error::io)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// Whether a text needs no escapes: it has no quotes, backslashes and control characters. Eight bytes are looked at together: the
/// top bit of one of them is set in the result if there is such a byte.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = 0x80 * ONES;
    let special = |word: u64| {
        let (quote, backslash) = (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        let below = |of: u64, least: u64| of.wrapping_sub(ONES * least) & !of;
        (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & TOPS
    };
    let (words, rest) = text.as_chunks::<8>();
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    words.iter().all(|word| special(u64::from_ne_bytes(*word)) == 0) && rest.iter().all(plain)
}

/// An array or an object that is open.
struct Open<'a, W> {
    json: &'a mut Json<W>,
    end: u8,
    /// Whether it has entries.
    filled: bool,
}

impl<W: Write> Open<'_, W> {
    fn begin(&mut self) {
        self.json.begin(self.filled);
        self.filled = true;
    }

    /// Begins an entry of an object.
    #[inline]
    fn key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<()> {
        self.begin();
        let start = self.json.text.len();
        key.serialize(&mut *self.json)?;
        if self.json.text.get(start) != Some(&b'"') {
            return Err(Error::custom("a key of an object is not a text"));
        }
        self.json.colon();
        Ok(())
    }

    /// Adds an entry of an object whose name, a field's, is plain.
    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        debug_assert!(is_plain(name.as_bytes()), "names of fields need no escapes");
        self.begin();
        self.json.quoted(name);
        self.json.colon();
        value.serialize(&mut *self.json)
    }

    /// Adds an element of an array.
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.begin();
        value.serialize(&mut *self.json)
    }

    fn close(self) -> Result<()> {
        let Open { json, end, filled } = self;
        json.depth -= 1;
        if filled {
            json.begin(false);
        }
        json.text.push(end);
        if json.text.len() < PIECE { Ok(()) } else { json.flush() }
    }

    /// Closes a variant's fields and the object around them.
    fn close_variant(self) -> Result<()> {
        let Open { json, end, filled } = self;
        Open { json: &mut *json, end, filled }.close()?;
        Open { json, end: b'}', filled: true }.close()
    }
}

/// Values without entries, as serde_json writes them.
macro_rules! plain {
    ($($method:ident($type:ty)),+ $(,)?) => {
        $(
            #[inline]
            fn $method(self, value: $type) -> Result<()> {
                serde_json::to_writer(&mut self.text, &value)
            }
        )+
    };
}

impl<'a, W: Write> Serializer for &'a mut Json<W> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'a, W>;
    type SerializeTuple = Open<'a, W>;
    type SerializeTupleStruct = Open<'a, W>;
    type SerializeTupleVariant = Open<'a, W>;
    type SerializeMap = Open<'a, W>;
    type SerializeStruct = Open<'a, W>;
    type SerializeStructVariant = Open<'a, W>;

    plain! {
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64), serialize_i128(i128),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_u128(u128),
        serialize_f32(f32), serialize_f64(f64), serialize_bool(bool), serialize_char(char),
    }
    #[inline]
    fn serialize_str(self, text: &str) -> Result<()> {
        if is_plain(text.as_bytes()) {
            self.quoted(text);
            return Ok(());
        }
        serde_json::to_writer(&mut self.text, text)
    }
    /// Quantities with their units are printed where they are to stand.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<()> {
        let start = self.text.len();
        write!(self.text, "\"{value}").map_err(Error::io)?;
        if is_plain(&self.text[start + 1..]) {
            self.text.push(b'"');
            return Ok(());
        }
        self.text.truncate(start);
        self.serialize_str(&value.to_string())
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        bytes.iter().collect::<Vec<_>>().serialize(self)
    }
    #[inline]
    fn serialize_unit(self) -> Result<()> {
        self.text.extend_from_slice(b"null");
        Ok(())
    }
    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let object = self.variant(variant)?;
        value.serialize(&mut *object.json)?;
        object.close()
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'a, W>> {
        Ok(self.open(b'[', b']'))
    }
    fn serialize_tuple(self, _: usize) -> Result<Open<'a, W>> {
        Ok(self.open(b'[', b']'))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'a, W>> {
        Ok(self.open(b'[', b']'))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'a, W>> {
        self.variant(variant)?;
        Ok(self.open(b'[', b']'))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Open<'a, W>> {
        Ok(self.open(b'{', b'}'))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a, W>> {
        Ok(self.open(b'{', b'}'))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'a, W>> {
        self.variant(variant)?;
        Ok(self.open(b'{', b'}'))
    }
}

/// Arrays: of elements, whose end is `close` or `close_variant`.
macro_rules! array {
    ($($trait:ident: $method:ident, $close:ident;)+) => {
        $(impl<W: Write> ser::$trait for Open<'_, W> {
            type Ok = ();
            type Error = Error;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }
            fn end(self) -> Result<()> {
                self.$close()
            }
        })+
    };
}
array! {
    SerializeSeq: serialize_element, close;
    SerializeTuple: serialize_element, close;
    SerializeTupleStruct: serialize_field, close;
    SerializeTupleVariant: serialize_field, close_variant;
}

/// Objects with the fields of a type.
macro_rules! object {
    ($($trait:ident: $close:ident;)+) => {
        $(impl<W: Write> ser::$trait for Open<'_, W> {
            type Ok = ();
            type Error = Error;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
                self.field(name, value)
            }
            fn end(self) -> Result<()> {
                self.$close()
            }
        })+
    };
}
object! {
    SerializeStruct: close;
    SerializeStructVariant: close_variant;
}

impl<W: Write> ser::SerializeMap for Open<'_, W> {
    type Ok = ();
    type Error = Error;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key(key)
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(&mut *self.json)
    }
    fn end(self) -> Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn is_as_serde_json_writes_it(value: &impl Serialize) {
        let expected = serde_json::to_string_pretty(value).unwrap() + "\n";
        assert_eq!(String::from_utf8(to_json(value).unwrap()).unwrap(), expected);
        let mut line = b"before ".to_vec();
        append_json(value, &mut line).unwrap();
        let expected = format!("before {}", serde_json::to_string(value).unwrap());
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn the_bytes_are_those_of_serde_json() {
        let mut deep = json!({ "last": [[], {}, { "a": 1.5, "b": [null, "x\n"] }] });
        for level in 0..30 {
            deep = if level % 2 == 0 {
                json!([1, deep, 2])
            } else {
                json!({ "before": {}, "inner": deep, "z": [] })
            };
        }
        for value in [deep, json!([]), json!({}), json!([[]]), json!({ "a": {} }), Value::Null, json!("text")]
        {
            is_as_serde_json_writes_it(&value);
        }
    }

    #[test]
    fn every_kind_of_value_is_written_as_serde_json_writes_it() {
        #[derive(Serialize)]
        struct Unit;
        #[derive(Serialize)]
        struct New(u8);
        #[derive(Serialize)]
        struct Pair(i8, Option<f32>);
        #[derive(Serialize)]
        enum Variant {
            Unit,
            New(New),
            Tuple(u64, String),
            Fields { a: Unit, b: Vec<bool> },
        }
        let variants = [
            Variant::Unit,
            Variant::New(New(7)),
            Variant::Tuple(u64::MAX, "\\".into()),
            Variant::Fields { a: Unit, b: vec![true, false] },
        ];
        let numbers = [0.0, -0.0, 1.0, 1e16, 1.5e300, 0.1 + 0.2, f64::NAN, f64::INFINITY];
        let (empty, some) =
            ((Vec::<u8>::new(), Unit), (Pair(-1, None), Pair(1, Some(2.5)), 'x', '"', i128::MIN));
        is_as_serde_json_writes_it(&(variants, numbers, empty, some, u128::MAX));
        is_as_serde_json_writes_it(&BTreeMap::from([("a\"", Some(Variant::Unit)), ("b", None)]));
        assert!(to_json(&BTreeMap::from([(1, 2)])).is_err());
    }

    #[test]
    fn printed_values_are_texts() {
        struct Printed(&'static str);
        impl Serialize for Printed {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self.0)
            }
        }
        is_as_serde_json_writes_it(&["", "10 Mbit/s", "a \"quote\"", "line\nline"].map(Printed));
    }

    #[test]
    fn special_characters_are_escaped_wherever_they_are() {
        for special in (0..=0x7fu8).map(char::from).chain("äß€😀".chars()) {
            for (before, after) in [("", ""), ("1234567", ""), ("12345678", "123"), ("éé", "éééééé")]
            {
                is_as_serde_json_writes_it(&format!("{before}{special}{after}"));
            }
        }
    }

    #[test]
    fn a_long_value_is_written_in_pieces() {
        let long: Vec<Vec<String>> = (0..3000).map(|n| vec![format!("entry {n}"); 8]).collect();
        assert!(to_json(&long).unwrap().len() > 3 * PIECE);
        is_as_serde_json_writes_it(&long);
    }
}
