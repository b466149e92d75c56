//! How long short flows take beside a download.

use crate::cells::{Cell, Numbers, each};
use crate::options::{Options, quoted};
use crate::picture::Picture;
use crate::test::Test;
use weir_base::Rate;
use weir_record::Statistic::{Mean, P50, P99};
use weir_record::metrics::completion::{COMPLETION_TIME, SLOWDOWN};
use weir_record::metrics::rate::GOODPUT;
use weir_report::number::rough_with;

/// The part of the line that short flows offer.
const PART: u64 = 10;

pub(crate) const TEST: Test = Test {
    name: "short-flows",
    about: "How long do pages take beside a download?",
    text: include_str!("../../../labs/tests/short-flows.toml"),
    groups: &["bulk", "pages"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings,
    pictures,
    numbers,
    sentences,
};

fn settings(options: &Options) -> Vec<String> {
    let load = Rate::from_bits_per_sec(options.down.bits_per_sec() / PART);
    vec![format!("traffic.pages.workload.load={}", quoted(&load.to_string()))]
}

fn pictures(_: &Options) -> Vec<Picture> {
    vec![Picture::distribution("completion", "completion_time_s", "pages")]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let pages = |metric, statistic| cell.group(None, "pages", metric, statistic);
    let millis = |statistic| Some(pages(&COMPLETION_TIME, statistic)? * 1e3);
    cell.numbers([
        ("median_ms", millis(P50)),
        ("p99_ms", millis(P99)),
        ("slowdown", pages(&SLOWDOWN, Mean)),
        ("bulk_mbps", cell.group(None, "bulk", &GOODPUT, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let p99 = |cell: &Numbers| {
        cell.get("p99_ms").map_or(String::new(), |p99| format!(" (p99 {})", rough_with(p99, "ms")))
    };
    [
        format!("Half of the short flows took at most {}.", each(cells, "median_ms", "ms", p99)),
        format!("The download beside them had {}.", each(cells, "bulk_mbps", "Mbit/s", |_| String::new())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_the_median_and_the_tail() {
        let told = sentences(&[cell("", &[("median_ms", 130.0), ("p99_ms", 2400.0), ("bulk_mbps", 43.3)])])
            .map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told,
            [
                "Half of the short flows took at most 130 ms (p99 2400 ms).",
                "The download beside them had 43 Mbit/s."
            ]
        );
    }
}
