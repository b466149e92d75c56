//! How a video call fares beside bulk flows in both directions.

use crate::cells::{Cell, Numbers, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::{Mean, P99};
use weir_record::metrics::message::{FRAME_DELAY, FRAMES_ON_TIME};
use weir_report::number::rough_with;

pub(crate) const TEST: Test = Test {
    name: "call",
    about: "Does a video call work beside a download and an upload?",
    text: include_str!("../../../labs/tests/call.toml"),
    groups: &["download", "upload"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

fn pictures(_: &Options) -> Vec<Picture> {
    vec![
        Picture::distribution("frame-delay-up", "frame_delay_ms", "says"),
        Picture::distribution("frame-delay-down", "frame_delay_ms", "hears"),
    ]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let of = |group, metric, statistic| cell.group(None, group, metric, statistic);
    cell.numbers([
        ("heard_percent", of("hears", &FRAMES_ON_TIME, Mean)),
        ("said_percent", of("says", &FRAMES_ON_TIME, Mean)),
        ("heard_p99_ms", of("hears", &FRAME_DELAY, P99)),
        ("said_p99_ms", of("says", &FRAME_DELAY, P99)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let said = |cell: &Numbers| {
        cell.get("said_percent")
            .map_or(String::new(), |said| format!(" down and {} up", rough_with(said, "%")))
    };
    let up = |cell: &Numbers| {
        cell.get("said_p99_ms").map_or(String::new(), |p99| format!(" down and {} up", rough_with(p99, "ms")))
    };
    [
        format!("Frames that arrived within 150\u{a0}ms: {}.", each(cells, "heard_percent", "%", said)),
        format!(
            "Of the frames that arrived, 99\u{a0}% did within {}.",
            each(cells, "heard_p99_ms", "ms", up)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_verdict_has_both_directions() {
        let numbers = [
            ("heard_percent", 84.9),
            ("said_percent", 1.9),
            ("heard_p99_ms", 260.0),
            ("said_p99_ms", 1210.0),
        ];
        let told = sentences(&[cell("", &numbers)]).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(told[0], "Frames that arrived within 150 ms: 85 % down and 1.9 % up.");
        assert_eq!(told[1], "Of the frames that arrived, 99 % did within 260 ms down and 1210 ms up.");
    }
}
