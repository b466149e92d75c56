use super::*;

fn mbit(n: u64) -> Rate {
    Rate::from_mbit_per_sec(n)
}
fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn seen(k: f64, depth: u64) -> Seen {
    Seen { k, depth: Bytes::new(depth), loss: None }
}
/// A flow with this cap that has begun.
fn elastic(cap: u64) -> Admission {
    let terms = Terms::elastic(log::Config { cap: mbit(cap), ..log::Config::default() });
    begun(terms, 0)
}
/// A flow that has begun at this depth and K 1e12.
fn begun(terms: Terms, depth: u64) -> Admission {
    let mut admission = Admission::new(terms, Random::stream(1, "test"));
    admission.update(&seen(1e12, depth), at(0));
    admission
}
/// A flow of 5 Mbit/s of this utility, with priority 2.
fn whole(name: &str) -> Terms {
    let json = serde_json::json!({ "priority": 2.0 });
    let utility = Config::with_parameters(name, json).unwrap();
    let ends = Time::ZERO + Span::from_secs(60);
    Terms { utility, offered: mbit(5), deadline: None, size: None, begins: at(0), ends }
}
/// Looks until this time, as often as is due.
fn until(admission: &mut Admission, depth: u64, end: Time) {
    while admission.due() <= end {
        let now = admission.due();
        admission.update(&seen(1e12, depth), now);
    }
}

#[test]
fn an_inelastic_flow_ramps_in_70_ms_is_triaged_above_its_limit_and_probes_after_5_s() {
    // Its limit is 1e12 x 2 / 5e6 = 400,000 bits, 50,000 bytes; 1 % more at its first inertia.
    let mut admission = begun(whole("strap"), 40_000);
    assert_eq!(admission.rate(), Rate::from_bits_per_sec(625_000));
    until(&mut admission, 40_000, at(70));
    assert_eq!((admission.standing(), admission.rate()), (Standing::On, mbit(5)));
    until(&mut admission, 60_000, at(200));
    assert_eq!((admission.standing(), admission.next_time()), (Standing::Triaged, Time::NEVER));
    let last = admission.events.last().copied().unwrap();
    assert_eq!((last.reason.rule, last.reason.value, last.at), (Rule::Price, 480_000.0, at(90)));
    until(&mut admission, 60_000, at(5080));
    assert_eq!(admission.standing(), Standing::Triaged);
    // The probe has no inertia: it is triaged at its first step.
    until(&mut admission, 60_000, at(5100));
    let last: Vec<_> =
        admission.take_events().iter().map(|event| (event.standing, event.reason.rule)).collect();
    let expected = [
        (Standing::On, Rule::Time),
        (Standing::Triaged, Rule::Price),
        (Standing::On, Rule::Restart),
        (Standing::Triaged, Rule::Price),
    ];
    assert_eq!(last, expected);
    assert_eq!(admission.toggles(), 4);
}

#[test]
fn the_planner_stops_a_flow_until_it_starts_it_and_a_flow_ends_at_its_time() {
    let mut admission = begun(whole("strap"), 0);
    let reason = Reason { rule: Rule::Fit, value: 5e6, bound: 1e6 };
    admission.command(Command::Stop, reason, at(20));
    until(&mut admission, 0, at(50_000));
    assert_eq!(admission.standing(), Standing::Off);
    admission.command(Command::Start, reason, at(50_000));
    assert_eq!((admission.standing(), admission.steps()), (Standing::On, Some((1, 0.0))));
    admission.command(Command::Start, reason, at(50_001));
    until(&mut admission, 0, at(60_000));
    assert_eq!((admission.standing(), admission.take_events().len()), (Standing::Ended, 4));
    admission.command(Command::Start, reason, at(60_001));
    assert_eq!(admission.standing(), Standing::Ended);
}

#[test]
fn a_flow_with_a_size_ends_after_it() {
    let mut admission = begun(Terms { size: Some(Bytes::new(2500)), ..whole("log") }, 0);
    (1..=3).for_each(|packet| admission.admitted(Bytes::new(1000), at(packet)));
    assert_eq!((admission.standing(), admission.next_time()), (Standing::Ended, Time::NEVER));
}

#[test]
fn a_transfer_asks_for_the_priority_that_its_rest_needs() {
    let mut admission = begun(Terms { size: Some(Bytes::new(15_000_000)), ..whole("file") }, 0);
    // 15 MB in 60 s are 2 Mbit/s: at 125,000 bytes twice that is priority 4.
    let need = |admission: &Admission| admission.needed_priority(&seen(1e12, 125_000), mbit(10), at(0));
    assert_eq!(need(&admission), Some(4.0));
    admission.prioritise(4.0);
    admission.update(&seen(1e12, 125_000), at(0));
    assert_eq!(admission.rate().bits_per_sec(), 3_999_999);
}

#[test]
fn packets_are_admitted_at_the_rate_and_catch_up_2_ms_at_most() {
    let mut admission = elastic(8);
    admission.admitted(Bytes::new(1000), at(0));
    assert_eq!(admission.next_time(), at(1));
    // The source was idle until 50 ms: two packets go at once, no more.
    admission.admitted(Bytes::new(1000), at(50));
    admission.admitted(Bytes::new(1000), at(50));
    assert_eq!(admission.next_time(), at(50));
    admission.admitted(Bytes::new(1000), at(50));
    assert_eq!(admission.next_time(), at(51));
}

#[test]
fn a_wait_is_scaled_when_the_rate_changes() {
    let mut admission = elastic(8);
    admission.admitted(Bytes::new(4000), at(0));
    // 4 ms are left of 4 at 8 Mbit/s; at a quarter of the rate they become 16.
    admission.update(&seen(8e6 * 1e6 / 4.0, 125_000), at(0));
    let wait = admission.next_time().since(at(0));
    assert!(wait.is_between(Span::from_millis(16), Span::from_micros(16_001)), "{wait}");
}

#[test]
fn at_rate_zero_nothing_goes_until_the_depth_falls() {
    let mut admission = elastic(10);
    admission.update(&seen(1.0, 1_000_000), at(0));
    assert_eq!(admission.next_time(), Time::NEVER);
    admission.update(&seen(1e12, 125_000), at(5));
    assert_eq!(admission.next_time(), at(5));
}

#[test]
fn k_follows_the_median_capacity_and_never_starves_the_fastest_link() {
    let k = |capacities: &[Rate]| derive_k(&mut capacities.to_vec());
    let equal = [mbit(10); 30];
    assert_eq!(k(&equal), Some(libm::exp2(41.0)));
    assert_eq!(k(&[mbit(10), mbit(10), mbit(1)]), k(&equal));
    assert_eq!(k(&[mbit(10), mbit(10), mbit(1000)]), Some(libm::exp2(44.0)));
    assert_eq!(k(&[]), None);
}

#[test]
fn k_is_held_until_the_derived_one_is_four_times_as_large_or_small() {
    assert_eq!(hold_k(None, 64.0), 64.0);
    assert_eq!(hold_k(Some(64.0), 128.0), 64.0);
    assert_eq!(hold_k(Some(64.0), 256.0), 256.0);
    assert_eq!(hold_k(Some(64.0), 16.0), 16.0);
}
