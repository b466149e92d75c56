//! A contract of half the line: policed, shaped, or shaped below the policer's rate.

use crate::cells::{Cell, Numbers, each};
use crate::options::{Options, quoted};
use crate::picture::Picture;
use crate::test::Test;
use weir_base::Rate;
use weir_record::Statistic::Mean;
use weir_record::metrics::message::ECHO_TIME;
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::tcp::RETRANSMISSION_PERCENT;
use weir_report::number::rough_with;

/// The contract's part of the line.
const PART: u64 = 2;
/// What a policer or shaper takes in a burst, and how long the shaper's queue is at its rate.
const BURST: &str = "50 kB";
const QUEUE: &str = "100 ms";

pub(crate) const TEST: Test = Test {
    name: "shaper",
    about: "What does a download have through a policer, through a shaper, and through a shaper at 95 % in front of the policer?",
    text: include_str!("../../../labs/tests/shaper.toml"),
    groups: &["download"],
    queues: &[],
    controllers: &["cubic"],
    settings,
    pictures,
    numbers,
    sentences,
};

fn settings(options: &Options) -> Vec<String> {
    let contract = Rate::from_bits_per_sec(options.down.bits_per_sec() / PART);
    let below = Rate::from_bits_per_sec(contract.bits_per_sec() / 100 * 95);
    let policer = format!(
        "\"stations.contract\" = {{ at = \"left\", links = [\"down\"], kind = \"policer\", rate = {}, burst = \"{BURST}\" }}",
        quoted(&contract.to_string())
    );
    let shaper = |rate: Rate| {
        let rate = quoted(&rate.to_string());
        format!(
            "\"dumbbell.queue\" = {{ down = {{ kind = \"tbf\", rate = {rate}, burst = \"{BURST}\", limit = \"{QUEUE}\" }} }}"
        )
    };
    let cells = [
        format!("policed = {{ {policer} }}"),
        format!("shaped = {{ {} }}", shaper(contract)),
        format!("\"shaped at 95 %\" = {{ {} }}", shaper(below)),
    ];
    vec![format!("vary.contract={{ {} }}", cells.join(", "))]
}

fn pictures(_: &Options) -> Vec<Picture> {
    vec![
        Picture::bars("goodput", "goodput_mbps", "download", "contract"),
        Picture::over_time("echo", "echo_time_ms", "echo"),
    ]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    cell.numbers([
        ("goodput_mbps", cell.group(None, "download", &GOODPUT, Mean)),
        ("retransmitted_percent", cell.group(None, "download", &RETRANSMISSION_PERCENT, Mean)),
        ("echo_ms", cell.group(None, "echo", &ECHO_TIME, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let again = |cell: &Numbers| {
        cell.get("retransmitted_percent")
            .map_or(String::new(), |percent| format!(" ({} retransmitted)", rough_with(percent, "%")))
    };
    [
        format!("The download had {}.", each(cells, "goodput_mbps", "Mbit/s", again)),
        format!("Round trips beside it took {}.", each(cells, "echo_ms", "ms", |_| String::new())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_rates_retransmissions_and_delays() {
        let cells = [
            cell("policed", &[("goodput_mbps", 17.0), ("retransmitted_percent", 1.2), ("echo_ms", 40.0)]),
            cell("shaped", &[("goodput_mbps", 24.0), ("retransmitted_percent", 0.1), ("echo_ms", 110.0)]),
        ];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told[0],
            "The download had 17 Mbit/s (1.2 % retransmitted) with policed, 24 Mbit/s (0.10 % retransmitted) with shaped."
        );
        assert_eq!(told[1], "Round trips beside it took 40 ms with policed, 110 ms with shaped.");
    }
}
