//! Low latency beside a classic flow: Prague beside CUBIC, through DualPI2 and through tail drop.

use crate::cells::{Cell, Numbers, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::Mean;
use weir_record::metrics::queue::UTILISATION;
use weir_record::metrics::rate::RATE_RATIO;
use weir_record::metrics::tcp::RTT;
use weir_report::number::{rough, rough_with};

pub(crate) const TEST: Test = Test {
    name: "l4s",
    about: "Does a low-latency flow (Prague) have short queues and a fair share beside a classic one?",
    text: include_str!("../../../labs/tests/l4s.toml"),
    groups: &["cubic"],
    queues: &["dualpi2", "tail-drop:limit=1000p"],
    controllers: &["cubic"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

fn pictures(_: &Options) -> Vec<Picture> {
    vec![
        Picture::distribution("prague-round-trips", "rtt_ms", "prague"),
        Picture::distribution("classic-round-trips", "rtt_ms", "cubic"),
    ]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    cell.numbers([
        ("prague_rtt_ms", cell.group(None, "prague", &RTT, Mean)),
        ("classic_rtt_ms", cell.group(None, "cubic", &RTT, Mean)),
        ("rate_ratio", cell.pair("prague", "cubic", &RATE_RATIO)),
        ("utilisation_percent", cell.link(None, "down", &UTILISATION, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let classic = |cell: &Numbers| {
        cell.get("classic_rtt_ms")
            .map_or(String::new(), |ms| format!(" beside {} of the classic flow", rough_with(ms, "ms")))
    };
    let ratio = |cell: &Numbers| {
        cell.get("rate_ratio").map_or_else(
            || "nothing measured".into(),
            |ratio| format!("{} times the classic flow's rate{}", rough(ratio), cell.with()),
        )
    };
    let ratios = cells.iter().map(ratio).collect::<Vec<_>>().join(", ");
    [
        format!("Prague's round trips were {}.", each(cells, "prague_rtt_ms", "ms", classic)),
        format!("It had {ratios}."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_both_round_trips_and_the_shares() {
        let cells = [cell("", &[("prague_rtt_ms", 41.0), ("classic_rtt_ms", 56.0), ("rate_ratio", 1.3)])];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(told[0], "Prague's round trips were 41 ms beside 56 ms of the classic flow.");
        assert_eq!(told[1], "It had 1.3 times the classic flow's rate.");
    }
}
