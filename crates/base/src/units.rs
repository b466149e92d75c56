//! Rates, sizes and times as people write them: `"10 Mbit/s"`, `"64 KiB"`, `"25 ms"`. Reading accepts one number and one unit, with
//! or without a space, and the spellings of `tc(8)` for rates (`10mbit`). Printing chooses the unit with the shortest exact text, so
//! that the printed text reads back to the same value.

use crate::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A rate in bits per second. It counts IP bytes plus the overhead that a link adds to each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Rate {
    /// A rate in bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Rate {
        Rate(bits)
    }
    /// A rate in megabits (10^6) per second.
    pub const fn from_mbit_per_sec(megabits: u64) -> Rate {
        Rate(megabits * 1_000_000)
    }
    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// Megabits per second.
    pub fn mbit_per_sec(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The time to send `bytes` at this rate, rounded to the nearest nanosecond; [`Span::MAX`] at rate zero.
    #[inline]
    pub fn time_to_send(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        match bytes.0.checked_mul(8_000_000_000) {
            Some(scaled) => Span::from_nanos((scaled + self.0 / 2) / self.0),
            None => Span::from_nanos(
                u64::try_from(
                    (u128::from(bytes.0) * 8_000_000_000 + u128::from(self.0 / 2)) / u128::from(self.0),
                )
                .unwrap_or(u64::MAX),
            ),
        }
    }
    /// The time to send `packets` packets of the length `packet` at this rate, with the sum rounded down; [`Span::MAX`] at rate zero.
    pub fn time_to_send_all(self, packet: Bytes, packets: u64) -> Span {
        let bits = u128::from(packets) * u128::from(packet.0) * 8_000_000_000;
        Span::from_nanos(
            bits.checked_div(self.0.into()).and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX),
        )
    }
    /// The whole bytes that this rate sends in a span.
    #[inline]
    pub fn bytes_in(self, span: Span) -> Bytes {
        if let Some(scaled) = self.0.checked_mul(span.as_nanos()) {
            return Bytes(scaled / 8_000_000_000);
        }
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
    /// A part or a multiple of this rate, rounded down.
    pub fn scale(self, factor: f64) -> Rate {
        Rate((self.0 as f64 * factor) as u64)
    }
    /// The rate that sends `bytes` in a span, rounded down; the largest rate if the span is zero.
    pub fn from_bytes_in(bytes: Bytes, span: Span) -> Rate {
        if span.is_zero() {
            return Rate(u64::MAX);
        }
        let bits = u128::from(bytes.0) * 8_000_000_000 / u128::from(span.as_nanos());
        Rate(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// A number of bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The difference, or zero if `other` is more.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        Bytes(iter.map(|b| b.0).sum())
    }
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to write instead, as an example.
    pub help: String,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}
impl std::error::Error for UnitError {}

/// One kind of quantity: its units, largest first, each with its size in the base unit.
struct Kind {
    what: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u64)],
    /// Other spellings that are read but never printed.
    also: &'static [(&'static str, u64)],
}

const RATE: Kind = Kind {
    what: "rate",
    example: "10 Mbit/s",
    units: &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)],
    also: &[
        ("Kbit/s", 1_000),
        ("gbit/s", 1_000_000_000),
        ("mbit/s", 1_000_000),
        ("Gbit", 1_000_000_000),
        ("gbit", 1_000_000_000),
        ("Mbit", 1_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
        ("Kbit", 1_000),
        ("bit", 1),
    ],
};
const BYTES: Kind = Kind {
    what: "size",
    example: "64 KiB",
    units: &[
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("B", 1),
    ],
    also: &[("KB", 1_000), ("byte", 1), ("bytes", 1)],
};
const SPAN: Kind = Kind {
    what: "time",
    example: "25 ms",
    units: &[
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ],
    also: &[("µs", 1_000), ("sec", 1_000_000_000)],
};

impl Kind {
    fn error(&self, message: String) -> UnitError {
        let units: Vec<_> = self.units.iter().rev().map(|(name, _)| *name).collect();
        UnitError {
            message,
            help: format!("write a number and one of {}, for example \"{}\"", units.join(", "), self.example),
        }
    }

    /// The unit that was probably meant, if the text has another case, or `bps` for bits per second, which `tc(8)` reads as bytes.
    fn meant(&self, unit: &str) -> Option<&'static str> {
        let spelled = unit.to_ascii_lowercase();
        let spelled = spelled.strip_suffix("bps").map_or(spelled.clone(), |prefix| format!("{prefix}bit/s"));
        self.units.iter().map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(&spelled))
    }

    /// Reads a number and a unit; the value is in the base unit.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+')))
            .unwrap_or(text.len());
        let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
        if number.is_empty() {
            return Err(self.error(format!("\"{text}\" is not a {}: no number", self.what)));
        }
        if number.starts_with('-') {
            return Err(self.error(format!("a {} cannot be negative", self.what)));
        }
        if unit.is_empty() {
            return Err(self.error(format!("\"{text}\" has no unit")));
        }
        let Some((_, size)) = self.units.iter().chain(self.also).find(|(name, _)| *name == unit) else {
            let mut error = self.error(format!("\"{unit}\" is not a unit of {}", self.what));
            if let Some(meant) = self.meant(unit) {
                error.help = format!("did you mean \"{number} {meant}\"?");
            }
            return Err(error);
        };
        let too_large = || self.error(format!("\"{text}\" is too large"));
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return Err(self.error(format!("\"{number}\" is not a number")));
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
        let mut value = u128::from(whole) * u128::from(*size);
        let (mut part, mut scale) = (0u128, 1u128);
        for digit in fraction.bytes().take(18) {
            part = part * 10 + u128::from(digit - b'0');
            scale *= 10;
        }
        value += (part * u128::from(*size) + scale / 2) / scale;
        // Half of the range stays free, so that the sum of two checked values cannot overflow.
        u64::try_from(value).ok().filter(|v| *v <= u64::MAX / 2).ok_or_else(too_large)
    }

    /// Writes a value exactly, in the unit that makes the shortest text with at most three decimals.
    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.units[self.units.len() - 1].0;
        if value == 0 {
            return write!(f, "0 {}", if self.what == "time" { "s" } else { base });
        }
        let mut shortest = Written { whole: value, thousandths: 0, unit: base };
        for (unit, size) in self.units {
            // No unit is so large that a thousand times the remainder overflows.
            let (whole, thousandths) = (value / size, value % size * 1000);
            if whole == 0 || thousandths % size != 0 {
                continue;
            }
            let thousandths = (thousandths / size) as u32;
            let written = Written { whole, thousandths, unit };
            if written.length() < shortest.length() {
                shortest = written;
            }
        }
        shortest.write(f)
    }
}

/// A value in one of its units, to be written.
struct Written {
    whole: u64,
    thousandths: u32,
    unit: &'static str,
}

impl Written {
    /// Number of decimals, at most three.
    fn decimals(&self) -> usize {
        match self.thousandths {
            0 => 0,
            part if part % 100 == 0 => 1,
            part if part % 10 == 0 => 2,
            _ => 3,
        }
    }

    /// Length of the text in characters, without the space.
    fn length(&self) -> usize {
        let digits = self.whole.checked_ilog10().map_or(1, |digits| digits as usize + 1);
        let decimals = self.decimals();
        digits + decimals + usize::from(decimals > 0) + self.unit.len()
    }

    /// Writes piece by piece, which takes a third of the time of a formatted text: descriptions of runs are full of quantities.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = itoa::Buffer::new();
        f.write_str(digits.format(self.whole))?;
        let decimals = self.decimals();
        if decimals > 0 {
            f.write_str(".")?;
            // The digits behind the thousand have leading zeros.
            f.write_str(&digits.format(1000 + self.thousandths)[1..=decimals])?;
        }
        f.write_str(" ")?;
        f.write_str(self.unit)
    }
}

/// The key of a type's schema for its values in words. A description would give way to that of the setting which has the type; other
/// programs ignore this key.
pub const WORDS: &str = "x-words";

macro_rules! quantity {
    ($type:ident, $kind:ident, $new:expr, $get:expr, $name:literal, $what:literal, $units:literal) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$type, UnitError> {
                $kind.parse(text).map($new)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $kind.print($get(*self), f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a {} with its unit, for example \"{}\"", $kind.what, $kind.example)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": concat!("A ", $what, " with its unit: ", $units, "."),
                    (WORDS): concat!("a ", $what, " with its unit (", $units, ")"),
                    "examples": [$kind.example]
                })
            }
        }
    };
}

quantity!(Rate, RATE, Rate, |r: Rate| r.0, "Rate", "rate", "bit/s, kbit/s, Mbit/s or Gbit/s");
quantity!(Bytes, BYTES, Bytes, |b: Bytes| b.0, "Bytes", "size", "B, kB, KiB, MB, MiB, GB or GiB");
quantity!(Span, SPAN, Span::from_nanos, |s: Span| s.as_nanos(), "Span", "time", "ns, us, ms, s, min or h");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_takes_6_ms_at_2_mbit_per_second() {
        assert_eq!("2 Mbit/s".parse::<Rate>().unwrap().time_to_send(Bytes::new(1500)), Span::from_millis(6));
    }

    #[test]
    fn printed_quantities_read_back_as_the_same_value() {
        for text in ["1.5 Mbit/s", "8 Mbit/s", "1 bit/s", "2.5 Gbit/s", "999 kbit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["25 ms", "1.5 s", "90 s", "0 s", "200 us", "120.5 us", "37 ns", "2 h"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["64 KiB", "1.5 kB", "2.469 MB", "10 MiB", "0 B", "1 B"] {
            let bytes = text.parse::<Bytes>().unwrap();
            assert_eq!(bytes.to_string().parse::<Bytes>().unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn an_invalid_quantity_is_refused_with_the_reason() {
        let message = |text: &str| text.parse::<Rate>().unwrap_err().message;
        assert_eq!(message("10"), "\"10\" has no unit");
        assert_eq!(message("10 Mbps"), "\"Mbps\" is not a unit of rate");
        assert_eq!(message("-1 Mbit/s"), "a rate cannot be negative");
        assert_eq!(message("Mbit/s"), "\"Mbit/s\" is not a rate: no number");
        assert_eq!(message("1.2.3 Mbit/s"), "\"1.2.3\" is not a number");
        assert_eq!(message("99999999999999999999 Gbit/s"), "\"99999999999999999999 Gbit/s\" is too large");
    }

    #[test]
    fn rates_are_read_as_tc_spells_them() {
        for (typed, meant) in
            [("4gbit", "4 Gbit/s"), ("1.5Mbit", "1.5 Mbit/s"), ("64 kbit", "64 kbit/s"), ("9bit", "9 bit/s")]
        {
            assert_eq!(typed.parse::<Rate>().unwrap(), meant.parse().unwrap(), "{typed}");
        }
        assert_eq!("40ms".parse::<Span>().unwrap(), Span::from_millis(40));
    }

    #[test]
    fn a_misspelled_unit_is_refused_with_a_suggestion() {
        let help = |text: &str| text.parse::<Rate>().unwrap_err().help;
        assert_eq!(help("10 Mbps"), "did you mean \"10 Mbit/s\"?");
        assert_eq!(help("2GBIT/S"), "did you mean \"2 Gbit/s\"?");
        assert_eq!("64 kib".parse::<Bytes>().unwrap_err().help, "did you mean \"64 KiB\"?");
        assert_eq!("25 MS".parse::<Span>().unwrap_err().help, "did you mean \"25 ms\"?");
    }

    #[test]
    fn a_rate_times_a_span_gives_bytes_and_back() {
        let (rate, span) = (Rate::from_mbit_per_sec(100), Span::from_millis(20));
        assert_eq!(rate.bytes_in(span), Bytes::new(250_000));
        assert_eq!(Rate::from_bytes_in(Bytes::new(250_000), span), rate);
    }
}
