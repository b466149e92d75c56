//! How numbers are written: as many digits as carry meaning, a no-break space before the unit.

/// The no-break space between a number and its unit.
const SPACE: char = '\u{a0}';

/// A number for a table: three significant digits, no more than are needed above a hundred.
pub(crate) fn number(value: f64) -> String {
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
    } else if size >= 0.001 {
        format!("{value:.4}")
    } else if size == 0.0 {
        "0".into()
    } else {
        format!("{value:.1e}")
    }
}

/// A number for a sentence: whole above ten, one decimal above one, two significant digits below.
pub(crate) fn rough(value: f64) -> String {
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
pub(crate) fn rough_with(value: f64, unit: &str) -> String {
    format!("{}{SPACE}{unit}", rough(value))
}

/// A number and its unit for a table.
pub(crate) fn number_with(value: f64, unit: &str) -> String {
    format!("{}{SPACE}{unit}", number(value))
}

/// A count with its thousands set apart.
pub(crate) fn count(value: u64) -> String {
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

/// `part` of `whole` in percent, if there is a whole.
pub(crate) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// A value rounded to four significant digits: what plots are given.
pub(crate) fn significant(value: f64) -> f64 {
    rounded(value, 4)
}

/// A value rounded to so many significant digits.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = digits - 1 - value.abs().log10().floor() as i32;
    // A power of ten up to 22 is exact, so that the quotient is the float nearest to the decimal that is meant.
    let scale = 10f64.powi(digits.abs().min(22));
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

/// A value in as few characters as four significant digits take, for scripts; `null` where there is none.
pub(crate) fn compact(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or("null".into(), |value| format!("{}", significant(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_carry_meaning() {
        let written: Vec<String> =
            [0.0, 0.000_012_3, 0.0123, 0.5, 1.234, 14.96, 99.97, 123.4, 12_345.0].map(number).to_vec();
        assert_eq!(written, ["0", "1.2e-5", "0.0123", "0.500", "1.23", "15.0", "100", "123", "12345"]);
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
    fn counts_set_their_thousands_apart() {
        assert_eq!(
            [count(7), count(1234), count(1_234_567)],
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
    }
}
