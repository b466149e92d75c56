//! Values of plots as text: four significant digits in as few characters as possible. The report of a large lab has millions
//! of them, so nearly all are written from an integer of two or four digits, which is fast.

use crate::number::significant;
use std::io::Write;

/// A value as [`push_compact`] writes it.
pub(crate) fn compact(value: Option<f64>) -> String {
    let mut text = Vec::new();
    push_compact(value, &mut text);
    // The text is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends the values of a line with commas between them. A value that is the one before is left out: nearly half of all
/// values are. `weir.run` puts them back.
pub(crate) fn push_line(values: &[Option<f64>], out: &mut Vec<u8>) {
    values.first().into_iter().for_each(|first| push_compact(*first, out));
    for pair in values.windows(2) {
        out.push(b',');
        if pair[1] != pair[0] {
            push_compact(pair[1], out);
        }
    }
}

/// Appends a value, rounded as [`significant`] does; `null` if it is `None` or not finite.
pub(crate) fn push_compact(value: Option<f64>, out: &mut Vec<u8>) {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return out.extend_from_slice(b"null");
    };
    // Small whole numbers: windows, backlogs and counts of rare events are more than half of the values of all plots.
    let whole = value as u8;
    if whole < 100 && f64::from(whole).to_bits() == value.to_bits() {
        if whole >= 10 {
            out.push(b'0' + whole / 10);
        }
        return out.push(b'0' + whole % 10);
    }
    match four_digits(value.abs()) {
        Some((digits, places)) => {
            if value < 0.0 {
                out.push(b'-');
            }
            push_four(digits, places, out);
        }
        None => push_rare(value, out),
    }
}

/// Appends a value that is neither zero nor from a thousandth to ten thousand. Apart from [`push_compact`], which is called
/// for each value and is smaller without it.
#[cold]
fn push_rare(value: f64, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{}", significant(value));
}

/// For each number of decimal places, the smallest value with four digits in all, and the factor that makes them whole.
const SCALES: [(f64, f64); 7] =
    [(1e3, 1e0), (1e2, 1e1), (1e1, 1e2), (1e0, 1e3), (1e-1, 1e4), (1e-2, 1e5), (1e-3, 1e6)];

/// A value as four digits and decimal places: `digits / 10^places`. `None` below a thousandth or from ten thousand on.
fn four_digits(value: f64) -> Option<(u32, usize)> {
    let places = SCALES.iter().position(|(least, _)| value >= *least)?;
    match (value * SCALES[places].1 + 0.5).min(1e5) as u32 {
        // The value was rounded up to five digits, the last of which is 0.
        10_000 => Some((1000, places.checked_sub(1)?)),
        digits @ ..10_000 => Some((digits, places)),
        _ => None,
    }
}

/// The two digits of each number below 100, the first in the lower byte.
const PAIRS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = u16::from_le_bytes([b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
        number += 1;
    }
    pairs
};

/// Appends `digits / 10^places` without trailing zeros. There are four digits, and at most six places. The text is one word, its
/// first character in the lowest byte.
fn push_four(digits: u32, places: usize, out: &mut Vec<u8>) {
    let (high, low) = (digits / 100, digits % 100);
    let four = u32::from(PAIRS[high as usize]) | u32::from(PAIRS[low as usize]) << 16;
    // Digits up to the last that is not zero; the first never is.
    let told = 4 - (four ^ u32::from_le_bytes(*b"0000")).leading_zeros() as usize / 8;
    let four = u64::from(four);
    let (text, length) = match places {
        0 => (four, 4),
        1..4 => {
            let point = 4 - places;
            let whole = (1 << (8 * point)) - 1;
            let text = four & whole | u64::from(b'.') << (8 * point) | (four & !whole) << 8;
            (text, if told > point { told + 1 } else { point })
        }
        _ => {
            let zeros = places - 4;
            let lead = u64::from_le_bytes(*b"0.00\0\0\0\0") & ((1 << (8 * (2 + zeros))) - 1);
            (lead | four << (8 * (2 + zeros)), 2 + zeros + told)
        }
    };
    // Appending an array of constant size is faster than appending a part of it.
    let end = out.len() + length;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_stay_the_same_are_left_out_of_a_line() {
        let line = |values: &[Option<f64>]| {
            let mut text = Vec::new();
            push_line(values, &mut text);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(
            line(&[None, None, Some(1.5), Some(1.5), Some(1.5), None, Some(2.0)]),
            "null,,1.5,,,null,2"
        );
        assert_eq!(
            (line(&[]), line(&[Some(0.0)]), line(&[Some(7.0); 3])),
            ("".into(), "0".into(), "7,,".into())
        );
    }

    #[test]
    fn compact_numbers_have_four_digits_and_no_trailing_zeros() {
        let written =
            [Some(1.0), Some(12.345_6), Some(0.001_234_56), Some(123_456.0), Some(-2.5), None].map(compact);
        assert_eq!(written, ["1", "12.35", "0.001235", "123500", "-2.5", "null"]);
        assert_eq!(compact(Some(f64::NAN)), "null");
        for whole in -300..300 {
            assert_eq!(compact(Some(f64::from(whole))), whole.to_string());
        }
    }

    #[test]
    fn a_compact_number_is_the_float_of_four_digits_as_it_is_written() {
        let mut random = 1u64;
        for _ in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = (random >> 11) as f64 / (1u64 << 53) as f64 * 10f64.powi((random % 20) as i32 - 10);
            for value in [value, -value, value.round(), (value * 100.0).round() / 100.0] {
                assert_eq!(compact(Some(value)), format!("{}", significant(value)));
            }
        }
        for power in -12..20 {
            let power = 10f64.powi(power);
            for value in [
                power,
                power.next_up(),
                power.next_down(),
                9.9995 * power,
                1.2345 * power,
                9.99949999 * power,
            ] {
                assert_eq!(compact(Some(value)), format!("{}", significant(value)));
            }
        }
    }
}
