//! How soon a flow that comes later has its share.

use crate::cells::{Cell, Numbers, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::Mean;
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::second::SETTLING;
use weir_report::number::rough_with;

pub(crate) const TEST: Test = Test {
    name: "convergence",
    about: "How soon does a flow that comes later have its share?",
    text: include_str!("../../../labs/tests/convergence.toml"),
    groups: &["first", "second"],
    queues: &["tail-drop:limit=1000p", "fq-codel"],
    controllers: &["cubic"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

fn pictures(_: &Options) -> Vec<Picture> {
    vec![Picture::over_time("second-flow", "goodput_mbps", "second")]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let end = |group| cell.group(Some("end"), group, &GOODPUT, Mean);
    let share = end("first").zip(end("second")).map(|(first, second)| 100.0 * second / (first + second));
    cell.numbers([
        ("settling_s", cell.group(Some("joined"), "second", &SETTLING, Mean)),
        ("share_percent", share.filter(|share| share.is_finite())),
        ("alone_mbps", cell.group(Some("alone"), "first", &GOODPUT, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let settled = |cell: &Numbers| match cell.get("settling_s") {
        Some(time) => format!("{} after it began{}", rough_with(time, "s"), cell.with()),
        None => format!("not within 50\u{a0}s{}", cell.with()),
    };
    let settled = cells.iter().map(settled).collect::<Vec<_>>().join(", ");
    let shares = each(cells, "share_percent", "% of both", |_| String::new());
    [format!("The second flow settled {settled}."), format!("In the last 15\u{a0}s it had {shares}.")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn a_flow_that_does_not_settle_is_told() {
        let cells = [
            cell("PIE", &[("settling_s", 3.0), ("share_percent", 49.0)]),
            cell("tail drop", &[("share_percent", 31.0)]),
        ];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told[0],
            "The second flow settled 3 s after it began with PIE, not within 50 s with tail drop."
        );
        assert_eq!(told[1], "In the last 15 s it had 49 % of both with PIE, 31 % of both with tail drop.");
    }
}
