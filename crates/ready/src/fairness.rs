//! How two groups of flows share a line: numbers of flows, controllers and round trips.

use crate::cells::{Cell, Numbers, each};
use crate::options::{Options, quoted};
use crate::picture::Picture;
use crate::test::Test;
use weir_base::Span;
use weir_record::Statistic::Mean;
use weir_record::metrics::queue::UTILISATION;
use weir_record::metrics::rate::RATE_RATIO;

/// How much longer the second group's round trip is, in the cells in which the two differ.
const LONGER: u64 = 4;

pub(crate) const TEST: Test = Test {
    name: "fairness",
    about: "How do n flows share with m others, of the same or another controller, with equal and with different round trips?",
    text: include_str!("../../../labs/tests/fairness.toml"),
    groups: &[],
    queues: &["tail-drop:limit=1000p"],
    controllers: &["cubic"],
    settings,
    pictures,
    numbers,
    sentences,
};

/// The groups, whose controllers vary by themselves.
const GROUPS: &[&str] = &["a", "b"];
/// The label of the cells in which both groups have the same round trip.
const EQUAL: &str = "equal round trips";

/// The label of the other cells.
fn different(rtt: Span) -> String {
    format!("round trips of {rtt} and {}", longer(rtt))
}

fn longer(rtt: Span) -> Span {
    Span::from_nanos(rtt.as_nanos().saturating_mul(LONGER))
}

/// With one controller the numbers of flows vary, with several each pair of them.
fn settings(options: &Options) -> Vec<String> {
    let rtts = format!(
        "{} = {{}}, {} = {{ \"traffic.b.rtt\" = {} }}",
        quoted(EQUAL),
        quoted(&different(options.rtt)),
        quoted(&longer(options.rtt).to_string())
    );
    let mut settings = vec![format!("vary.rtt={{ {rtts} }}")];
    if let [one] = options.controllers.as_slice() {
        settings.extend(Options::controller(std::slice::from_ref(one), GROUPS));
        settings.extend(GROUPS.iter().map(|group| format!("vary.\"traffic.{group}.flows\"=[1, 2, 4]")));
    } else {
        let all = options.controllers.iter().map(|cc| quoted(cc)).collect::<Vec<_>>().join(", ");
        settings.extend(GROUPS.iter().map(|group| format!("vary.\"traffic.{group}.cc\"=[{all}]")));
    }
    settings
}

/// The share of the first group, over both numbers of flows or both controllers.
fn pictures(options: &Options) -> Vec<Picture> {
    let axes = match options.controllers.len() {
        1 => ["traffic.a.flows", "traffic.b.flows"],
        _ => ["traffic.a.cc", "traffic.b.cc"],
    };
    let heat = |file, rtt: &str| Picture::heat(file, "goodput_share_percent", "a", axes).only("rtt", rtt);
    vec![heat("share-equal-round-trips", EQUAL), heat("share-different-round-trips", &different(options.rtt))]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let ratio = cell.pair("a", "b", &RATE_RATIO);
    // How far from even, whichever group has more.
    let uneven = ratio.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.max(1.0 / ratio));
    cell.numbers([
        ("rate_ratio", ratio),
        ("unevenness", uneven),
        ("utilisation_percent", cell.link(None, "down", &UTILISATION, Mean)),
    ])
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let worst = cells.iter().filter(|cell| cell.get("unevenness").is_some());
    let worst = worst
        .max_by(|a, b| a.get("unevenness").unwrap_or(0.0).total_cmp(&b.get("unevenness").unwrap_or(0.0)));
    let first =
        match worst.and_then(|worst| Some((worst, worst.get("rate_ratio")?, worst.get("unevenness")?))) {
            Some((worst, ratio, uneven)) => {
                let [more, less] = if ratio >= 1.0 { ["a", "b"] } else { ["b", "a"] };
                format!(
                    "At worst a flow of {more} has {} the rate of one of {less}{}.",
                    times(uneven),
                    worst.with()
                )
            }
            None => "No cell has a flow of each group with data.".into(),
        };
    let even =
        cells.iter().filter(|cell| cell.get("unevenness").is_some_and(|uneven| uneven <= EVEN)).count();
    let used = each(cells, "utilisation_percent", "%", |_| String::new());
    [
        first,
        format!(
            "In {even} of {} cells the rates differ by a quarter or less; the line is used {used}.",
            cells.len()
        ),
    ]
}

/// The largest ratio of rates that counts as even.
const EVEN: f64 = 1.25;

fn times(ratio: f64) -> String {
    format!("{} times", weir_report::number::rough(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_least_even_cell_is_named_with_the_group_that_has_more() {
        let cells = [
            cell("equal", &[("rate_ratio", 1.1), ("unevenness", 1.1), ("utilisation_percent", 99.0)]),
            cell("different", &[("rate_ratio", 0.2), ("unevenness", 5.0), ("utilisation_percent", 97.0)]),
        ];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(told[0], "At worst a flow of b has 5 times the rate of one of a with different.");
        assert_eq!(
            told[1],
            "In 1 of 2 cells the rates differ by a quarter or less; the line is used 99 % with equal, 97 % with different."
        );
    }
}
