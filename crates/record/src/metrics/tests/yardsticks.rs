//! What a run's groups are held against: capacities by a deadline, and the optimum of utilities.

use super::*;

#[test]
fn a_group_is_held_against_what_could_be_delivered_by_its_deadline() {
    let (mut info, records) = (run(), records());
    info.groups[0].deadline_capacity = Some(Rate::from_mbit_per_sec(20));
    let view = View::after(info.warmup, &info, &records);
    let (own, other) = (view.of_group(0), view.of_group(1));
    assert_near(&own, "deadline_capacity_mbps", 20.0);
    // Two flows are two receivers.
    let goodput = own.get("goodput_mbps").scalar().unwrap();
    assert_near(&own, "deadline_capacity_ratio", goodput / (2.0 * 20.0));
    assert_eq!(other.get("deadline_capacity_ratio"), Value::Undefined);
}

#[test]
fn a_group_is_held_against_the_optimum_that_held_while_it_was_active() {
    let (mut info, records) = (run(), records());
    let step = |at: Span, rate: u64| (at, Rate::from_mbit_per_sec(rate));
    info.groups[0].optimum = vec![step(Span::ZERO, 20)];
    let view = View::after(info.warmup, &info, &records);
    let goodput = view.of_group(0).get("goodput_mbps").scalar().unwrap();
    assert_near(&view.of_group(0), "optimum_mbps", 20.0);
    assert_near(&view.of_group(0), "optimum_ratio", goodput / 20.0);
    assert_eq!(view.of_group(1).get("optimum_ratio"), Value::Undefined);
    // What held before the window does not count, and what holds from its middle on counts half.
    let middle = info.warmup + Span::from_nanos((info.duration.as_nanos() - info.warmup.as_nanos()) / 2);
    let mut halves = info.clone();
    halves.groups[0].optimum = vec![step(Span::ZERO, 900), step(info.warmup, 10), step(middle, 40)];
    let view = View::after(info.warmup, &halves, &records);
    assert_near(&view.of_group(0), "optimum_mbps", 25.0);
}
