//! Where the labels of a level stand on an axis: at their numbers, if all are numbers of one unit.

/// Units of labels: each with its size in the unit of the axis, and that unit.
const UNITS: [(&str, f64, &str); 17] = [
    ("bit/s", 1e-6, "Mbit/s"),
    ("kbit/s", 1e-3, "Mbit/s"),
    ("Mbit/s", 1.0, "Mbit/s"),
    ("Gbit/s", 1e3, "Mbit/s"),
    ("ns", 1e-6, "ms"),
    ("us", 1e-3, "ms"),
    ("ms", 1.0, "ms"),
    ("s", 1e3, "ms"),
    ("B", 1e-3, "kB"),
    ("kB", 1.0, "kB"),
    ("MB", 1e3, "kB"),
    ("KiB", 1.024, "kB"),
    ("bdp", 1.0, "bdp"),
    ("packets", 1.0, "packets"),
    ("flows", 1.0, "flows"),
    ("%", 1.0, "%"),
    ("", 1.0, ""),
];

/// The number of a label in the unit of the axis, with that unit. `None` if the label is not a number with a known unit.
pub(super) fn leading_number(label: &str) -> Option<(f64, &'static str)> {
    let label = label.trim();
    let end = label.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(label.len());
    let (digits, unit) = label.split_at(end);
    let (_, factor, unit) = UNITS.iter().find(|(known, ..)| *known == unit.trim())?;
    Some((digits.parse::<f64>().ok()? * factor, unit))
}

/// The places of some labels, and their unit. `None` if a label is not a number, or if they are of several units.
pub(super) fn places(labels: &[String]) -> Option<(Vec<f64>, &'static str)> {
    let numbers: Option<Vec<(f64, &str)>> = labels.iter().map(|label| leading_number(label)).collect();
    let numbers = numbers.filter(|all| all.len() > 1 && all.iter().all(|(_, unit)| *unit == all[0].1))?;
    let unit = numbers[0].1;
    Some((numbers.into_iter().map(|(place, _)| place).collect(), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_a_number_and_a_unit_has_a_place_and_others_have_none() {
        assert_eq!(leading_number("1.5 Gbit/s"), Some((1500.0, "Mbit/s")));
        assert_eq!(leading_number("40 ms"), Some((40.0, "ms")));
        assert_eq!(leading_number("7"), Some((7.0, "")));
        for label in ["pie", "4 apples", "", "tail-drop limit=2 bdp", "1.2.3 ms"] {
            assert_eq!(leading_number(label), None, "{label}");
        }
    }

    #[test]
    fn labels_of_several_units_have_no_common_axis() {
        let labels = |texts: [&str; 2]| texts.map(String::from);
        assert_eq!(places(&labels(["500 kbit/s", "2 Mbit/s"])), Some((vec![0.5, 2.0], "Mbit/s")));
        assert_eq!(places(&labels(["1 bdp", "100 packets"])), None);
    }
}
