//! Numbers as text: only significant digits, and a no-break space before the unit.

/// The no-break space between a number and its unit.
const SPACE: char = '\u{a0}';

/// Units, each with the unit a thousand times smaller, for small values.
const SMALLER: [(&str, &str); 5] =
    [("s", "ms"), ("ms", "µs"), ("µs", "ns"), ("Mbit/s", "kbit/s"), ("kbit/s", "bit/s")];

/// A number for a table: three significant digits, whole above a hundred, at most four decimals.
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

/// A number that may be very small, a probability for example: as [`number`], but with two significant digits however small
/// it is, and never an exponent. A value that rounds to 0 with twelve decimals is 0.
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

/// A number and its unit for a sentence. A share that is not all has a decimal rather than be rounded up to 100 %.
pub fn rough_with(value: f64, unit: &str) -> String {
    let is_nearly_all = unit == "%" && (99.5..99.95).contains(&value);
    let number = if is_nearly_all { format!("{value:.1}") } else { rough(value) };
    format!("{number}{SPACE}{unit}")
}

/// A number and its unit for a table; a value below a hundredth of the unit is written in a smaller one.
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

/// A count with a thin space between its thousands.
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

/// A value rounded to four significant digits, for plots.
pub fn significant(value: f64) -> f64 {
    rounded(value, 4)
}

/// A value rounded to this many significant digits.
pub fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = digits - 1 - value.abs().log10().floor() as i32;
    // Powers of ten up to 10^22 are exact, so that the quotient is the float nearest to the rounded decimal.
    let scale = 10f64.powi(digits.abs().min(22));
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
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
    fn numbers_in_sentences_have_at_most_two_digits() {
        assert_eq!(
            [14.8, 62.4, 4.25, 3.0, 0.21, 0.0, 9.97].map(rough),
            ["15", "62", "4.2", "3", "0.21", "0", "10"]
        );
        let shares = [99.4, 99.5, 99.94, 99.97].map(|share| rough_with(share, "%").replace(SPACE, " "));
        assert_eq!(shares, ["99 %", "99.5 %", "99.9 %", "100 %"]);
    }

    #[test]
    fn counts_have_separators_between_thousands() {
        assert_eq!(
            [count(7), count(1234), count(1_234_567)],
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
    }
}
