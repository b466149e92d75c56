//! Titles of the internal states of queues, controllers and stations, from the words and the unit in their names.

/// The words of a state's name, and its unit.
pub(crate) fn titled(name: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 8] = [
        ("_ms", "ms"),
        ("_us", "µs"),
        ("_s", "s"),
        ("_percent", "%"),
        ("_mbps", "Mbit/s"),
        ("_segments", "segments"),
        ("_packets", "packets"),
        ("_bytes", "bytes"),
    ];
    let ending = UNITS.iter().find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, *unit)));
    let plain = if name.ends_with("probability") { "of 1" } else { "plain number" };
    let (words, unit) = ending.unwrap_or((name, plain));
    match SPOKEN.iter().find(|(known, ..)| *known == name) {
        Some((_, words, unit)) => ((*words).into(), unit),
        None => (words.replace('_', " "), unit),
    }
}

/// States whose names are the kernel's abbreviations, with the words and the unit that a reader knows.
const SPOKEN: [(&str, &str, &str); 9] = [
    ("cnt", "acknowledged segments per increment of the window", "segments"),
    ("cwnd_cnt", "acknowledged segments since the window last grew", "segments"),
    ("k_s", "time K to reach the last maximum", "s"),
    ("w_max_segments", "window before the last reduction, W_max", "segments"),
    ("origin_segments", "origin of the cubic curve", "segments"),
    ("hystart_found", "slow start ended by HyStart", "0 or 1"),
    ("shadow_cwnd", "window of the loss-based rule", "segments"),
    ("css_rounds", "rounds in conservative slow start", "rounds"),
    ("full_pipe", "path found to be full", "0 or 1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_titled_by_its_name_and_unit() {
        assert_eq!(titled("burst_allowance_ms"), ("burst allowance".into(), "ms"));
        assert_eq!(titled("drop_probability"), ("drop probability".into(), "of 1"));
    }
}
