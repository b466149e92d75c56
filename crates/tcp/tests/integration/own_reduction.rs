//! A controller that reduces its window by its own decision: CDG on a link with an unlimited queue, without losses or marks.

use crate::pair::{Pair, Script, config};
use weir_base::{Rate, Span, Time};
use weir_control::Phase;

const RTT: Span = Span::from_millis(40);

/// A reduction: the times of its beginning and end, and the window before it, at its end and the largest in between.
struct Reduction {
    began: Time,
    ended: Time,
    before: u32,
    after: u32,
    largest: u32,
}

/// The reductions of the first `seconds` seconds, and the connection.
fn reductions(seconds: u64) -> (Vec<Reduction>, Pair) {
    let rate = Some(Rate::from_mbit_per_sec(10));
    let mut pair = Pair::new(config("cdg"), RTT, rate, Script::default(), Script::default());
    pair.write(100_000_000);
    let (mut seen, mut under_way, mut window) = (vec![], None::<Reduction>, 0);
    while pair.step(Time::ZERO + Span::from_secs(seconds)) {
        let Some(info) = pair.client.info() else { continue };
        match (&mut under_way, info.phase) {
            (None, Phase::Cwr) => {
                let (began, before) = (pair.now, window);
                under_way = Some(Reduction { began, ended: began, before, after: 0, largest: 0 });
            }
            (Some(reduction), Phase::Cwr) => reduction.largest = reduction.largest.max(info.cwnd),
            (Some(_), _) => {
                let reduction = under_way.take().unwrap();
                seen.push(Reduction { ended: pair.now, after: info.cwnd, ..reduction });
            }
            (None, _) => {}
        }
        window = info.cwnd;
    }
    (seen, pair)
}

#[test]
fn a_reduction_ends_at_the_window_of_the_controller_and_never_raises_the_window() {
    let (seen, pair) = reductions(20);
    assert!(seen.len() > 10, "{}", seen.len());
    for reduction in &seen {
        // 724/1024 of the window before, plus the growth by the acknowledgement that ends the reduction.
        let expected = (reduction.before * 724 / 1024).max(2);
        assert!(
            (expected..=expected + 1).contains(&reduction.after),
            "{} to {}",
            reduction.before,
            reduction.after
        );
        assert!(reduction.largest <= reduction.before, "{} over {}", reduction.largest, reduction.before);
    }
    let info = pair.info();
    assert_eq!((info.retransmitted, info.recoveries, info.timeouts, info.undos), (0, 0, 0, 0));
}

#[test]
fn a_reduction_lasts_a_round_trip_and_no_other_begins_in_it() {
    let (seen, _) = reductions(20);
    for reduction in &seen {
        assert!(reduction.ended.since(reduction.began) >= RTT);
    }
    for pair in seen.windows(2) {
        assert!(pair[1].began >= pair[0].ended);
    }
}
