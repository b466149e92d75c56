//! Is this queue bloated? The growth of round trips under load, with a grade, and round trips per minute.
//!
//! Grades are DSLReports': the mean growth of downloads and uploads is below 5 ms for A+, 30 for A, 60 for B, 200 for C, 400 for D, else F.
//! Round trips per minute follow the formula for TCP alone of draft-ietf-ippm-responsiveness-08, section "Aggregating the Measurements":
//! the mean of those of new connections (handshake and a one-byte answer) and those of the loading ones.

use crate::cells::{Cell, Numbers, average, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::Mean;
use weir_record::metrics::completion::COMPLETION_TIME;
use weir_record::metrics::message::ECHO_TIME;
use weir_record::metrics::tcp::RTT;

/// The version of the responsiveness draft whose formula is used.
const DRAFT: &str = "draft-ietf-ippm-responsiveness-08";
/// The share of the quickest measurements that count (the draft's trimmed mean).
const TRIMMED: f64 = 0.95;
const MILLIS_PER_MINUTE: f64 = 60_000.0;

pub(crate) const TEST: Test = Test {
    name: "bufferbloat",
    about: "Is this queue bloated? Round trips on an idle line and under load, with a grade and round trips per minute",
    text: include_str!("../../../labs/tests/bufferbloat.toml"),
    groups: &["down", "up", "down-of-both", "up-of-both"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

/// Echo times over the whole run.
fn pictures(_: &Options) -> Vec<Picture> {
    vec![Picture::over_time("echo", "echo_time_ms", "echo")]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let echo = |window| cell.group(Some(window), "echo", &ECHO_TIME, Mean);
    let idle = echo("idle");
    let grown = |loaded: Option<f64>| Some(loaded? - idle?);
    let [down, up, both] = ["down", "up", "both"].map(echo);
    let growth = grown(down).zip(grown(up)).map(|(down, up)| (down + up) / 2.0);
    let rpm = |window: &str, probes: &str| {
        let new = trimmed(cell.flows(probes, &COMPLETION_TIME))? * 1e3;
        Some(round_trips_per_minute(new, cell.group(Some(window), window, &RTT, Mean)?))
    };
    cell.numbers([
        ("idle_ms", idle),
        ("down_ms", down),
        ("up_ms", up),
        ("both_ms", both),
        ("growth_ms", growth),
        ("down_rpm", rpm("down", "click-down")),
        ("up_rpm", rpm("up", "click-up")),
    ])
}

/// Round trips per minute, from the time of a handshake and an answer on a new connection, and the RTT of loading connections, in ms.
fn round_trips_per_minute(handshake_and_answer: f64, loading: f64) -> f64 {
    let foreign = MILLIS_PER_MINUTE / (handshake_and_answer / 2.0);
    (foreign + MILLIS_PER_MINUTE / loading) / 2.0
}

/// The mean of the quickest 95 %; `None` of no values.
fn trimmed(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let count = (values.len() as f64 * TRIMMED).ceil() as usize;
    average(values.into_iter().take(count))
}

/// DSLReports' grade for a growth in ms.
fn grade(growth: f64) -> &'static str {
    let bounds = [(5.0, "A+"), (30.0, "A"), (60.0, "B"), (200.0, "C"), (400.0, "D")];
    bounds.iter().find(|(bound, _)| growth < *bound).map_or("F", |(_, grade)| grade)
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let graded = |cell: &Numbers| {
        cell.get("growth_ms").map_or(String::new(), |growth| format!(" (grade {})", grade(growth)))
    };
    let idle = average(cells.iter().filter_map(|cell| cell.get("idle_ms"))).unwrap_or(f64::NAN);
    let idle = weir_report::number::rough_with(idle, "ms");
    let up = |cell: &Numbers| cell.get("up_rpm").map_or(String::new(), |up| format!(" and {up:.0}"));
    [
        format!("Round trips of {idle} grow under load by {}.", each(cells, "growth_ms", "ms", graded)),
        format!(
            "Round trips a minute beside downloads and beside uploads: {} ({DRAFT}, TCP only).",
            each(cells, "down_rpm", "", up)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn grades_are_those_of_dslreports() {
        let grades = [0.0, 4.9, 5.0, 29.9, 30.0, 60.0, 199.0, 200.0, 399.0, 400.0].map(grade);
        assert_eq!(grades, ["A+", "A+", "A", "A", "B", "C", "C", "D", "D", "F"]);
    }

    #[test]
    fn round_trips_per_minute_follow_the_draft() {
        // Handshake and answer of 40 ms each, and an RTT of 120 ms: 1,500 and 500 a minute.
        assert_eq!(round_trips_per_minute(80.0, 120.0), 1000.0);
        // Nineteen of twenty count.
        let mut times = vec![1.0; 19];
        times.push(100.0);
        assert_eq!((trimmed(times), trimmed(vec![])), (Some(1.0), None));
    }

    #[test]
    fn the_verdict_has_grades_and_numbers() {
        let cells = [
            cell(
                "tail drop",
                &[("idle_ms", 40.0), ("growth_ms", 231.0), ("down_rpm", 220.0), ("up_rpm", 60.0)],
            ),
            cell(
                "FQ-CoDel",
                &[("idle_ms", 40.0), ("growth_ms", 4.1), ("down_rpm", 1400.0), ("up_rpm", 1200.0)],
            ),
        ];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told[0],
            "Round trips of 40 ms grow under load by 231 ms (grade D) with tail drop, 4.1 ms (grade A+) with FQ-CoDel."
        );
        assert_eq!(
            told[1],
            "Round trips a minute beside downloads and beside uploads: 220 and 60 with tail drop, 1400 and 1200 with FQ-CoDel \
             (draft-ietf-ippm-responsiveness-08, TCP only)."
        );
    }
}
