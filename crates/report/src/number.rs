//! How numbers are written: as many digits as carry meaning, a no-break space before the unit.

/// The no-break space between a number and its unit.
const SPACE: char = '\u{a0}';

/// Units that a small value is better written in: each with the one a thousand times smaller.
const SMALLER: [(&str, &str); 5] =
    [("s", "ms"), ("ms", "µs"), ("µs", "ns"), ("Mbit/s", "kbit/s"), ("kbit/s", "bit/s")];

/// A number for a table: three significant digits, no more than are needed above a hundred, no more than four decimals.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "–".into()
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.995 {
        format!("{value:.2}")
    } else if size >= 0.0995 {
        format!("{value:.3}")
    } else if size >= 0.00095 {
        format!("{value:.4}")
    } else if size == 0.0 {
        "0".into()
    } else {
        "< 0.001".into()
    }
}

/// A number whose size is what matters, a probability for example: as [`number`], with two significant digits however small
/// it is, and never an exponent. What rounds to nothing with twelve decimals is 0.
pub fn exact(value: f64) -> String {
    let size = value.abs();
    if size < 0.5e-12 {
        "0".into()
    } else if size < 0.00995 {
        format!("{value:.*}", (1.0 - size.log10().floor()).min(12.0) as usize)
    } else {
        number(value)
    }
}

/// A number for a sentence: whole above ten, one decimal above one, two significant digits below.
pub fn rough(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 9.95 {
        format!("{value:.0}")
    } else if size >= 0.95 {
        format!("{value:.1}")
    } else if size >= 0.095 {
        format!("{value:.2}")
    } else if size >= 0.0005 {
        format!("{value:.3}")
    } else {
        "0".into()
    };
    match text.strip_suffix(".0") {
        Some(whole) => whole.into(),
        None => text,
    }
}

/// A number and its unit for a sentence.
pub fn rough_with(value: f64, unit: &str) -> String {
    format!("{}{SPACE}{unit}", rough(value))
}

/// A number and its unit for a table; what is below a hundredth of a unit is written in a smaller one.
pub fn number_with(value: f64, unit: &str) -> String {
    let (mut value, mut unit) = (value, unit);
    while let Some((_, smaller)) = SMALLER.iter().find(|(known, _)| *known == unit)
        && value != 0.0
        && value.abs() < 0.00995
    {
        (value, unit) = (value * 1e3, smaller);
    }
    format!("{}{SPACE}{unit}", number(value))
}

/// A count with its thousands set apart.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A value rounded to four significant digits: what plots are given.
pub fn significant(value: f64) -> f64 {
    rounded(value, 4)
}

/// A value rounded to so many significant digits.
pub fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = digits - 1 - value.abs().log10().floor() as i32;
    // A power of ten up to 22 is exact, so that the quotient is the float nearest to the decimal that is meant.
    let scale = 10f64.powi(digits.abs().min(22));
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

/// A value in as few characters as four significant digits take, for scripts; `null` where there is none.
pub fn compact(value: Option<f64>) -> String {
    let mut text = String::new();
    push_compact(value, &mut text);
    text
}

/// Appends a value as [`compact`] writes it. A large lab's report holds millions of them: it is done on integers, and only
/// what is very large or very small takes the way through [`significant`].
pub fn push_compact(value: Option<f64>, out: &mut String) {
    use std::fmt::Write;
    match value.filter(|value| value.is_finite()) {
        None => out.push_str("null"),
        // What did not happen: a good part of all plots.
        Some(value) if value.to_bits() == 0 => out.push('0'),
        Some(value) => match four_digits(value.abs()) {
            Some((digits, places)) => {
                if value < 0.0 {
                    out.push('-');
                }
                push_decimal(digits, places, out);
            }
            // Writing to a String cannot fail.
            None => drop(write!(out, "{}", significant(value))),
        },
    }
}

/// Powers of ten that floats hold exactly, as far as they are needed here.
const POWERS: [f64; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// A positive value rounded to four significant digits: `(digits, places)` for `digits / 10^places`. None out of the range
/// from a ten-millionth to a million.
fn four_digits(value: f64) -> Option<(u32, usize)> {
    if !(1e-7..1e6).contains(&value) {
        return None;
    }
    // The places that leave four digits before the point; more than four for values above ten thousand.
    let places = POWERS.iter().position(|power| value * power >= 1e3).unwrap_or(POWERS.len() - 1);
    let digits = (value * POWERS[places] + 0.5) as u32;
    match digits {
        100_000.. => Some(((digits_of(value, 1e2)) * 100, 0)),
        10_001.. => Some((digits_of(value, 1e1) * 10, 0)),
        _ => Some((digits, places)),
    }
}

/// A value in so many units, rounded.
fn digits_of(value: f64, unit: f64) -> u32 {
    (value / unit + 0.5) as u32
}

/// Appends `digits / 10^places` without zeros that say nothing.
fn push_decimal(digits: u32, places: usize, out: &mut String) {
    match digits {
        1000..10_000 => push_four(digits, places, out),
        _ => push_any(digits, places, out),
    }
}

/// The same of four digits, which nearly all are: they are put in their places and appended at once.
fn push_four(digits: u32, places: usize, out: &mut String) {
    let figures = [digits / 1000, digits / 100 % 10, digits / 10 % 10, digits % 10].map(|d| b'0' + d as u8);
    let told = figures.iter().rposition(|figure| *figure != b'0').map_or(0, |last| last + 1);
    // Zero, the point, and zeros before the digits: there are at most ten places.
    let mut text = [b'0'; 12];
    let length = match 4usize.checked_sub(places) {
        None | Some(0) => {
            text[1] = b'.';
            text[places - 2..places + 2].copy_from_slice(&figures);
            places - 2 + told
        }
        Some(whole) => {
            text[..whole].copy_from_slice(&figures[..whole]);
            text[whole] = b'.';
            text[whole + 1..5].copy_from_slice(&figures[whole..]);
            if told > whole { told + 1 } else { whole }
        }
    };
    // Figures and a point are text.
    out.push_str(std::str::from_utf8(&text[..length]).unwrap_or_default());
}

fn push_any(mut digits: u32, mut places: usize, out: &mut String) {
    while places > 0 && digits.is_multiple_of(10) {
        (digits, places) = (digits / 10, places - 1);
    }
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(digits);
    let whole = text.len().saturating_sub(places);
    if whole == 0 {
        out.push_str("0.");
        (text.len()..places).for_each(|_| out.push('0'));
        return out.push_str(text);
    }
    let (whole, rest) = text.split_at(whole);
    out.push_str(whole);
    if places > 0 {
        out.push('.');
        out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_carry_meaning() {
        let written: Vec<String> =
            [0.0, 0.000_012_3, 0.0123, 0.5, 1.234, 14.96, 99.97, 123.4, 12_345.0].map(number).to_vec();
        assert_eq!(written, ["0", "< 0.001", "0.0123", "0.500", "1.23", "15.0", "100", "123", "12345"]);
        assert_eq!([0.001_25, 0.000_31, 0.25, 3.6e-15].map(exact), ["0.0013", "0.00031", "0.250", "0"]);
        assert_eq!(
            [(0.000_003_9, "ms"), (0.002, "Mbit/s"), (0.0, "ms"), (0.000_3, "%")]
                .map(|(value, unit)| number_with(value, unit).replace(SPACE, " ")),
            ["3.90 ns", "2.00 kbit/s", "0 ms", "< 0.001 %"]
        );
    }

    #[test]
    fn sentences_round_as_people_do() {
        assert_eq!(
            [14.8, 62.4, 4.25, 3.0, 0.21, 0.0, 9.97].map(rough),
            ["15", "62", "4.2", "3", "0.21", "0", "10"]
        );
    }

    #[test]
    fn compact_numbers_have_four_digits_and_no_trailing_zeros() {
        let written =
            [Some(1.0), Some(12.345_6), Some(0.001_234_56), Some(123_456.0), Some(-2.5), None].map(compact);
        assert_eq!(written, ["1", "12.35", "0.001235", "123500", "-2.5", "null"]);
        assert_eq!(compact(Some(f64::NAN)), "null");
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

    #[test]
    fn counts_set_their_thousands_apart() {
        assert_eq!(
            [count(7), count(1234), count(1_234_567)],
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
    }
}
