//! Realtime response under load: what echoes wait beside four downloads and four uploads of different DSCPs, after flent's rrul.

use crate::cells::{Cell, Numbers, average, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::{Mean, P99};
use weir_record::metrics::message::ECHO_TIME;
use weir_record::metrics::rate::GOODPUT;
use weir_report::number::rough_with;

const DOWN: [&str; 4] = ["down-cs0", "down-cs1", "down-cs5", "down-ef"];
const UP: [&str; 4] = ["up-cs0", "up-cs1", "up-cs5", "up-ef"];
const ECHOES: [&str; 4] = ["echo-cs0", "echo-cs1", "echo-ef", "echo-station"];

pub(crate) const TEST: Test = Test {
    name: "rrul",
    about: "How long do small packets wait beside four downloads and four uploads? After flent's rrul",
    text: include_str!("../../../labs/tests/rrul.toml"),
    groups: &["down-cs0", "down-cs1", "down-cs5", "down-ef", "up-cs0", "up-cs1", "up-cs5", "up-ef"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

/// As flent's plot of three parts: downloads, uploads, echoes.
fn pictures(_: &Options) -> Vec<Picture> {
    vec![
        Picture::over_time("download", "goodput_mbps", "down-cs0"),
        Picture::over_time("upload", "goodput_mbps", "up-cs0"),
        Picture::over_time("echo", "echo_time_ms", "echo-cs0"),
    ]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let echo = |window, statistic| {
        average(ECHOES.iter().filter_map(|echo| cell.group(Some(window), echo, &ECHO_TIME, statistic)))
    };
    cell.numbers([
        ("idle_ms", echo("idle", Mean)),
        ("loaded_ms", echo("loaded", Mean)),
        ("loaded_p99_ms", echo("loaded", P99)),
        ("down_mbps", cell.sum(Some("loaded"), &DOWN, &GOODPUT)),
        ("up_mbps", cell.sum(Some("loaded"), &UP, &GOODPUT)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let idle = average(cells.iter().filter_map(|cell| cell.get("idle_ms"))).unwrap_or(f64::NAN);
    let p99 = |cell: &Numbers| {
        cell.get("loaded_p99_ms").map_or(String::new(), |p99| format!(" (p99 {})", rough_with(p99, "ms")))
    };
    let up = |cell: &Numbers| {
        cell.get("up_mbps").map_or(String::new(), |up| format!(" and {} up", rough_with(up, "Mbit/s")))
    };
    [
        format!(
            "Echoes took {} on the idle line, and under load {}.",
            rough_with(idle, "ms"),
            each(cells, "loaded_ms", "ms", p99)
        ),
        format!("The bulk flows carried {}.", each(cells, "down_mbps", "Mbit/s down", up)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_delays_and_rates() {
        let cells = [cell(
            "",
            &[
                ("idle_ms", 40.0),
                ("loaded_ms", 71.4),
                ("loaded_p99_ms", 120.0),
                ("down_mbps", 44.0),
                ("up_mbps", 8.1),
            ],
        )];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(told[0], "Echoes took 40 ms on the idle line, and under load 71 ms (p99 120 ms).");
        assert_eq!(told[1], "The bulk flows carried 44 Mbit/s down and 8.1 Mbit/s up.");
    }
}
