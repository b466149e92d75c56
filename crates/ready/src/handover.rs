//! What a download does when its link becomes slower, and fast again.

use crate::cells::{Cell, Numbers, each};
use crate::options::{Options, quoted};
use crate::picture::Picture;
use crate::test::Test;
use weir_base::{Rate, Span};
use weir_record::Statistic::{Mean, P99};
use weir_record::metrics::message::ECHO_TIME;
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::second::RECOVERY;
use weir_report::number::rough_with;

/// How much slower the second link is, and how much longer its delay.
const SLOWER: u64 = 5;
const LONGER: Span = Span::from_millis(30);

pub(crate) const TEST: Test = Test {
    name: "handover",
    about: "What happens to a download and to round trips when the link becomes five times slower, and fast again?",
    text: include_str!("../../../labs/tests/handover.toml"),
    groups: &["download"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings,
    pictures,
    numbers,
    sentences,
};

fn settings(options: &Options) -> Vec<String> {
    let slow = Rate::from_bits_per_sec((options.down.bits_per_sec() / SLOWER).max(1));
    let near = Span::from_nanos(options.rtt.as_nanos() / 2);
    let change = |at: &str, rate: Rate, delay: Span| {
        format!(
            "{{ at = \"{at}\", rate = {}, delay = {} }}",
            quoted(&rate.to_string()),
            quoted(&delay.to_string())
        )
    };
    let changes = [change("20 s", slow, near + LONGER), change("40 s", options.down, near)].join(", ");
    vec![format!("dumbbell.schedule=[{changes}]")]
}

fn pictures(_: &Options) -> Vec<Picture> {
    vec![
        Picture::over_time("download", "goodput_mbps", "download"),
        Picture::over_time("echo", "echo_time_ms", "echo"),
    ]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let echo = |window, statistic| cell.group(Some(window), "echo", &ECHO_TIME, statistic);
    let goodput = |window| cell.group(Some(window), "download", &GOODPUT, Mean);
    cell.numbers([
        ("before_ms", echo("before", Mean)),
        ("slow_p99_ms", echo("slow", P99)),
        ("slow_mbps", goodput("slow")),
        ("after_mbps", goodput("after")),
        ("recovery_s", cell.group(Some("after"), "download", &RECOVERY, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let before = |cell: &Numbers| {
        cell.get("before_ms")
            .map_or(String::new(), |ms| format!(" (before: {} on average)", rough_with(ms, "ms")))
    };
    let again = |cell: &Numbers| match cell.get("recovery_s") {
        Some(time) => format!(", 90 % of its final rate after {}", rough_with(time, "s")),
        None => ", without a steady rate".into(),
    };
    [
        format!(
            "On the slow link 99\u{a0}% of round trips took at most {}.",
            each(cells, "slow_p99_ms", "ms", before)
        ),
        format!("Back on the fast link the download had {}.", each(cells, "after_mbps", "Mbit/s", again)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_the_slow_link_and_the_return() {
        let numbers =
            [("slow_p99_ms", 1450.0), ("before_ms", 240.0), ("after_mbps", 47.0), ("recovery_s", 0.6)];
        let told = sentences(&[cell("", &numbers)]).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told[0],
            "On the slow link 99 % of round trips took at most 1450 ms (before: 240 ms on average)."
        );
        assert_eq!(
            told[1],
            "Back on the fast link the download had 47 Mbit/s, 90 % of its final rate after 0.60 s."
        );
    }
}
