//! What controllers carry over random loss, beside the square-root law (Mathis et al. 1997) and CUBIC's own formula (RFC 9438, section 5).

use crate::cells::{Cell, Numbers, each};
use crate::options::Options;
use crate::picture::Picture;
use crate::test::Test;
use weir_record::Statistic::Mean;
use weir_record::metrics::queue::LINK_LOSS;
use weir_record::metrics::rate::GOODPUT;
use weir_record::metrics::tcp::RTT;
use weir_report::number::rough_with;

/// A full segment with timestamps, in bits.
const SEGMENT: f64 = 1448.0 * 8.0;

pub(crate) const TEST: Test = Test {
    name: "loss",
    about: "What does each controller carry over random loss, beside the square-root law and CUBIC's formula?",
    text: include_str!("../../../labs/tests/loss.toml"),
    groups: &["download"],
    queues: &["tail-drop:limit=1000p"],
    controllers: &["cubic", "newreno", "bbr"],
    settings: |_| vec![],
    pictures,
    numbers,
    sentences,
};

/// Goodput along the loss, a line for each controller.
fn pictures(options: &Options) -> Vec<Picture> {
    let by = (options.controllers.len() > 1).then_some("cc");
    vec![Picture::lines("goodput", "goodput_mbps", "download", [by, Some("dumbbell.loss")]).log()]
}

fn numbers(cell: &Cell<'_>) -> Numbers {
    let loss = cell.link(None, "down", &LINK_LOSS, Mean).map(|percent| percent / 100.0);
    let rtt = cell.group(None, "download", &RTT, Mean).map(|ms| ms / 1e3);
    let of = |law: fn(f64, f64) -> f64| Some(law(loss.filter(|loss| *loss > 0.0)?, rtt?));
    cell.numbers([
        ("goodput_mbps", cell.group(None, "download", &GOODPUT, Mean)),
        ("square_root_mbps", of(square_root)),
        ("cubic_mbps", of(cubic)),
    ])
}

/// The square-root law without delayed acknowledgements, in Mbit/s: a segment over the RTT, times the root of 3/2 over the loss.
fn square_root(loss: f64, rtt: f64) -> f64 {
    SEGMENT / rtt * (1.5 / loss).sqrt() / 1e6
}

/// CUBIC's average window in segments, 1.054 (RTT)^(3/4) / p^(3/4) with C of 0.4 and beta of 0.7 (RFC 9438, section 5.1), as a rate in Mbit/s.
fn cubic(loss: f64, rtt: f64) -> f64 {
    1.054 * rtt.powf(0.75) / loss.powf(0.75) * SEGMENT / rtt / 1e6
}

fn sentences(cells: &[Numbers]) -> [String; 2] {
    let law = |cell: &Numbers| {
        cell.get("square_root_mbps")
            .map_or(String::new(), |law| format!(" (square-root law: {})", rough_with(law, "Mbit/s")))
    };
    let cubic = |cell: &Numbers| {
        Some(cell.get("goodput_mbps")? / cell.get("cubic_mbps")?.max(cell.get("square_root_mbps")?))
    };
    let above = cells.iter().filter(|cell| cubic(cell).is_some_and(|ratio| ratio > BEYOND)).count();
    [
        format!("The download had {}.", each(cells, "goodput_mbps", "Mbit/s", law)),
        format!(
            "In {above} of {} cells it had more than twice what both formulas of loss-based controllers give.",
            cells.len()
        ),
    ]
}

/// How far above both formulas a rate is that no controller which obeys losses has.
const BEYOND: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn the_formulas_have_their_known_values() {
        // 1 % at 100 ms: the root of 150 is 12.2 segments, of 11,584 bits each, in 0.1 s: 1.42 Mbit/s.
        assert!((square_root(0.01, 0.1) - 1.4187).abs() < 1e-3);
        // RFC 9438, table 1: at 0.1 s and a loss of 1e-4, CUBIC's window is 187 segments.
        let window = cubic(1e-4, 0.1) * 1e6 * 0.1 / SEGMENT;
        assert!((window - 187.0).abs() < 1.0, "{window}");
    }

    #[test]
    fn the_verdict_has_rates_and_the_law() {
        let cells = [
            cell("cubic", &[("goodput_mbps", 1.5), ("square_root_mbps", 1.4), ("cubic_mbps", 0.7)]),
            cell("bbr", &[("goodput_mbps", 47.0), ("square_root_mbps", 1.4), ("cubic_mbps", 0.7)]),
        ];
        let told = sentences(&cells).map(|sentence| sentence.replace('\u{a0}', " "));
        assert_eq!(
            told[0],
            "The download had 1.5 Mbit/s (square-root law: 1.4 Mbit/s) with cubic, 47 Mbit/s (square-root law: 1.4 Mbit/s) with bbr."
        );
        assert_eq!(
            told[1],
            "In 1 of 2 cells it had more than twice what both formulas of loss-based controllers give."
        );
    }
}
