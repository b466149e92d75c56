//! The JSON of result folders: indented by two spaces, with a newline at the end. The bytes are those of
//! [`serde_json::to_vec_pretty`], which writes the indentation of each level separately: a third of its work for a summary
//! of ten thousand flows.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// A value as the bytes of a file.
///
/// # Errors
/// The value has no form in JSON.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    write_json(value, &mut text)?;
    Ok(text)
}

/// Writes a value as [`to_json`] does.
///
/// # Errors
/// The value has no form in JSON, or writing fails.
pub fn write_json(value: &impl Serialize, mut out: impl Write) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut out, Lines::default()))?;
    out.write_all(b"\n").map_err(serde_json::Error::io)
}

/// Writes one entry on each line. What stands before a key, and between it and its value, is written together.
struct Lines {
    /// What begins a line: the comma and newline that end the one before, the indentation, and the quotation mark of a key.
    beginning: Vec<u8>,
    /// Whether the innermost array or object that is open has entries.
    filled: bool,
    /// Whether the string that is being written is a key.
    in_key: bool,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { beginning: b",\n\"".to_vec(), filled: false, in_key: false }
    }
}

impl Lines {
    fn open(&mut self) {
        self.beginning.pop();
        self.beginning.extend(b"  \"");
        self.filled = false;
    }

    fn close(&mut self, writer: &mut (impl ?Sized + Write)) -> io::Result<()> {
        self.beginning.truncate(self.beginning.len() - 3);
        self.beginning.push(b'"');
        if self.filled { self.begin(writer, true) } else { Ok(()) }
    }

    /// Begins a line; the one before ends with a comma unless this entry is the first.
    #[inline]
    fn begin(&self, writer: &mut (impl ?Sized + Write), first: bool) -> io::Result<()> {
        writer.write_all(&self.beginning[usize::from(first)..self.beginning.len() - 1])
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"[")
    }
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer)?;
        writer.write_all(b"]")
    }
    #[inline]
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin(writer, first)
    }
    #[inline]
    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"{")
    }
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer)?;
        writer.write_all(b"}")
    }
    #[inline]
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.in_key = true;
        writer.write_all(&self.beginning[usize::from(first)..])
    }
    #[inline]
    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_key { Ok(()) } else { writer.write_all(b"\"") }
    }
    #[inline]
    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.in_key) { writer.write_all(b"\": ") } else { writer.write_all(b"\"") }
    }
    #[inline]
    fn begin_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        Ok(())
    }
    #[inline]
    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
            let expected = serde_json::to_string_pretty(&value).unwrap() + "\n";
            assert_eq!(String::from_utf8(to_json(&value).unwrap()).unwrap(), expected);
        }
    }
}
