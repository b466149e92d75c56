use super::*;
use crate::testing::{TestFate, TestPacket};
use weir_base::Rate;

/// A packet of 1500 bytes takes a millisecond.
const LINK: Link =
    Link { rate: Rate::from_mbit_per_sec(12), base_rtt: Some(Span::from_millis(20)), mtu: Bytes::new(1500) };

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}
fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}
fn read(text: &str) -> Config {
    serde_json::from_str(text).unwrap()
}
fn queue(text: &str) -> DualPi2<TestPacket> {
    DualPi2::new(&read(text), &LINK, Random::stream(1, "queue"))
}
fn offer(queue: &mut DualPi2<TestPacket>, ecn: Ecn, now: Time, fate: &mut TestFate) {
    let mut packet = TestPacket::new(1500, ecn);
    packet.arrive(now);
    queue.enqueue(packet, now, fate);
}
/// Sets p' to `p`: one step with alpha 0 and beta 1 from a delay of `p` seconds.
fn hold(queue: &mut DualPi2<TestPacket>, p: f64) {
    queue.pi = Pi::new(Span::ZERO, Span::from_nanos(1), 0.0, 1.0, 1.0);
    queue.pi.update(Time::from_nanos(1), |_| Some(Span::from_secs_f64(p)));
    assert!((queue.pi.probability() - p).abs() < 1e-9);
}
/// Shares of 20,000 packets that p' marked and dropped, with p' held at `p` whatever the delay.
fn shares(text: &str, p: f64, ecn: Ecn) -> (f64, f64, TestFate) {
    let mut queue = queue(text);
    hold(&mut queue, p);
    let (mut fate, l4s) = (TestFate::default(), matches!(ecn, Ecn::Ect1 | Ecn::Ce));
    let (mut marked, mut dropped) = (0, 0);
    queue.backlog = Backlog { packets: 10, bytes: Bytes::new(15_000) };
    for _ in 0..20_000 {
        match queue.judge(l4s, ecn.is_capable(), 0.0) {
            Verdict::Pass => {}
            Verdict::Mark => marked += 1,
            Verdict::Drop(reason) => {
                dropped += 1;
                fate.dropped_overload += u64::from(reason == DropReason::Overload);
            }
        }
    }
    (f64::from(marked) / 2e4, f64::from(dropped) / 2e4, fate)
}

#[test]
fn codepoints_decide_the_queue() {
    for (mask, expected) in [("l4s-ect", [2, 2]), ("any-ect", [1, 3])] {
        let mut queue = queue(&format!(r#"{{ "ecn_mask": "{mask}" }}"#));
        for ecn in weir_base::CODEPOINTS {
            offer(&mut queue, ecn, Time::ZERO, &mut TestFate::default());
        }
        assert_eq!([queue.classic.len(), queue.l4s.len()], expected, "{mask}");
    }
}

#[test]
fn classic_signals_have_the_square_and_l4s_marks_k_times_the_base_probability() {
    // p' = 0.3: p_C = 0.09, p_CL = 0.6. Standard deviations 0.002 and 0.0035.
    let near = |a: f64, b: f64| (a - b).abs() < 0.012;
    for preset in [r#"{ "preset": "rfc9332" }"#, r#"{ "preset": "thesis" }"#] {
        let (marked, dropped, _) = shares(preset, 0.3, Ecn::NotEct);
        assert!(marked == 0.0 && near(dropped, 0.09), "{marked} {dropped}");
        let (marked, dropped, _) = shares(preset, 0.3, Ecn::Ect0);
        assert!(near(marked, 0.09) && dropped == 0.0, "{marked} {dropped}");
        let (marked, dropped, _) = shares(preset, 0.3, Ecn::Ect1);
        assert!(near(marked, 0.6) && dropped == 0.0, "{marked} {dropped}");
    }
    let (marked, ..) = shares(r#"{ "coupling_factor": 3.0 }"#, 0.3, Ecn::Ect1);
    assert!(near(marked, 0.9), "{marked}");
}

#[test]
fn in_overload_both_queues_drop_with_the_square_of_the_base_probability() {
    // p' = 0.6 is above 1/k: p_C = 0.36 for all. The RFC and Linux mark the remaining L4S packets; the study marks by the step only.
    let near = |a: f64, b: f64| (a - b).abs() < 0.015;
    for (preset, rest) in [("rfc9332", 0.64), ("thesis", 0.0)] {
        let text = format!(r#"{{ "preset": "{preset}" }}"#);
        for ecn in [Ecn::Ect0, Ecn::NotEct] {
            let (marked, dropped, _) = shares(&text, 0.6, ecn);
            assert!(marked == 0.0 && near(dropped, 0.36), "{preset} {ecn:?}: {marked} {dropped}");
        }
        let (marked, dropped, fate) = shares(&text, 0.6, Ecn::Ect1);
        assert!(near(marked, rest) && near(dropped, 0.36), "{preset}: {marked} {dropped}");
        assert!(fate.dropped_overload > 0);
    }
    let (marked, dropped, _) = shares(r#"{ "l_drop": 0.5 }"#, 0.3, Ecn::Ect1);
    assert!(near(dropped, 0.09) && near(marked, 0.91 * 0.6), "{marked} {dropped}");
}

#[test]
fn without_overload_drops_the_base_probability_stops_where_every_l4s_packet_is_marked() {
    let mut queue = queue(r#"{ "drop_overload": false }"#);
    let mut fate = TestFate::default();
    offer(&mut queue, Ecn::NotEct, Time::ZERO, &mut fate);
    queue.update(ms(60_000));
    assert_eq!((queue.pi.probability(), queue.is_overloaded()), (0.5, false));
}

#[test]
fn an_l4s_packet_with_a_sojourn_above_the_step_is_marked() {
    // The step is at 1 ms: three packets arrive at once, and leave after 0, 1 and 1.001 ms.
    let mut queue = queue(r#"{}"#);
    let mut fate = TestFate::default();
    for _ in 0..3 {
        offer(&mut queue, Ecn::Ect1, Time::ZERO, &mut fate);
    }
    let left: Vec<Ecn> = [0, 1000, 1001].map(|at| queue.dequeue(us(at), &mut fate).unwrap().ecn).into();
    assert_eq!(left, [Ecn::Ect1, Ecn::Ect1, Ecn::Ce]);
}

#[test]
fn a_packet_that_arrived_at_an_empty_l4s_queue_is_exempt_from_the_step() {
    let mut queue = queue(r#"{ "preset": "thesis" }"#);
    let mut fate = TestFate::default();
    for _ in 0..2 {
        offer(&mut queue, Ecn::Ect1, Time::ZERO, &mut fate);
    }
    let left: Vec<Ecn> = (0..2).map(|_| queue.dequeue(us(3000), &mut fate).unwrap().ecn).collect();
    assert_eq!(left, [Ecn::Ect1, Ecn::Ce]);
}

#[test]
fn a_step_in_packets_is_compared_with_the_backlog_on_departure() {
    let mut queue = queue(r#"{ "step_thresh": "2 packets" }"#);
    let mut fate = TestFate::default();
    for _ in 0..5 {
        offer(&mut queue, Ecn::Ect1, Time::ZERO, &mut fate);
    }
    let left: Vec<Ecn> = (0..5).map(|_| queue.dequeue(Time::ZERO, &mut fate).unwrap().ecn).collect();
    assert_eq!(left, [Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ect1, Ecn::Ect1]);
}

#[test]
fn a_ramp_rises_linearly_above_the_threshold() {
    // RFC 9332: a ramp from 800 us to 1200 us, so the probability is 1/4 at 900 us and 1 from 1200 us on.
    let queue = queue(r#"{ "step_thresh": "800 us", "ramp": "400 us" }"#);
    let packet = TestPacket::new(1500, Ecn::Ect1);
    for (sojourn, expected) in [(800, 0.0), (900, 0.25), (1100, 0.75), (1200, 1.0), (5000, 1.0)] {
        assert!((queue.native(&packet, true, us(sojourn)) - expected).abs() < 1e-9, "{sojourn}");
    }
}

/// Twenty packets of each kind wait, the classic ones since `classic_at`, the L4S ones since 100 ms: the order in which they leave
/// at 100 ms.
fn order(text: &str, classic_at: Time) -> String {
    let mut queue = queue(text);
    let mut fate = TestFate::default();
    queue.pi = Pi::new(Span::ZERO, Span::from_secs(3600), 0.0, 0.0, 1.0);
    for (ecn, at) in [(Ecn::NotEct, classic_at), (Ecn::Ect1, ms(100))] {
        for _ in 0..20 {
            offer(&mut queue, ecn, at, &mut fate);
        }
    }
    (0..22)
        .map(|_| match queue.dequeue(ms(100), &mut fate).unwrap().class {
            Ecn::NotEct => 'C',
            _ => 'L',
        })
        .collect()
}

#[test]
fn a_time_shifted_fifo_prefers_l4s_until_a_classic_packet_has_waited_longer_by_the_shift() {
    // L4S still goes first if the classic packet has waited exactly 30 ms longer, but not a nanosecond more.
    let thesis = r#"{ "preset": "thesis" }"#;
    assert_eq!(order(thesis, ms(70)), "LLLLLLLLLLLLLLLLLLLLCC");
    let longer = Time::from_nanos(ms(70).as_nanos() - 1);
    assert_eq!(order(thesis, longer), "CCCCCCCCCCCCCCCCCCCCLL");
    assert_eq!(order(r#"{ "preset": "thesis", "t_shift": "40 ms" }"#, longer), "LLLLLLLLLLLLLLLLLLLLCC");
}

#[test]
fn weighted_round_robin_gives_classic_its_share() {
    // The credit starts at 1500 (10 - 90). L4S is next while it is not positive, and adds 10 per byte; classic is next while it is
    // positive, and subtracts 90. So nine L4S packets leave first, then one classic packet for every nine L4S ones.
    assert_eq!(order("{}", ms(0)), "LLLLLLLLLCLLLLLLLLLCLL");
    assert_eq!(order(r#"{ "classic_protection": 0.5 }"#, ms(0)), "LCLCLCLCLCLCLCLCLCLCLC");
    assert_eq!(order(r#"{ "scheduler": "strict" }"#, ms(0)), "LLLLLLLLLLLLLLLLLLLLCC");
}

#[test]
fn the_controller_uses_the_longest_delay_or_the_classic_delay_first() {
    // A classic packet waits since 10 ms, an L4S one since 4 ms: the delays at the update at 16 ms are 6 ms and 12 ms.
    for (preset, expected) in [("rfc9332", 12), ("thesis", 6)] {
        let mut queue = queue(&format!(r#"{{ "preset": "{preset}" }}"#));
        let mut fate = TestFate::default();
        offer(&mut queue, Ecn::Ect1, ms(4), &mut fate);
        offer(&mut queue, Ecn::Ect0, ms(10), &mut fate);
        queue.update(ms(16));
        assert_eq!(queue.pi.delay(), Span::from_millis(expected));
        // Without a classic packet both presets use the delay of L4S.
        let mut queue =
            DualPi2::new(&read(&format!(r#"{{ "preset": "{preset}" }}"#)), &LINK, Random::stream(1, "q"));
        offer(&mut queue, Ecn::Ect1, ms(4), &mut fate);
        queue.update(ms(16));
        assert_eq!(queue.pi.delay(), Span::from_millis(12));
    }
}

#[test]
fn decisions_are_taken_when_a_packet_leaves_or_when_it_arrives() {
    for (early, at_arrival) in [("false", false), ("true", true)] {
        let mut queue = queue(&format!(r#"{{ "drop_early": {early}, "min_backlog": 0 }}"#));
        let mut fate = TestFate::default();
        queue.pi = Pi::new(Span::ZERO, Span::from_secs(3600), 0.0, 1.0, 1.0);
        queue.pi.update(ms(3_600_000), |_| Some(Span::from_secs(1)));
        let now = ms(3_600_001);
        for _ in 0..10 {
            offer(&mut queue, Ecn::NotEct, now, &mut fate);
        }
        assert_eq!(fate.dropped > 0, at_arrival);
        assert_eq!(queue.dequeue(now, &mut fate), None);
        assert_eq!(fate.dropped, 10);
    }
}

#[test]
fn a_small_queue_gets_no_signals_from_the_controller() {
    let mut queue = queue("{}");
    hold(&mut queue, 0.9);
    let mut fate = TestFate::default();
    for _ in 0..100 {
        let verdict = queue.judge(false, false, 0.0);
        assert!(matches!(verdict, Verdict::Pass));
    }
    offer(&mut queue, Ecn::NotEct, Time::from_nanos(1), &mut fate);
    assert_eq!(fate.dropped, 0);
}

#[test]
fn limits_in_packets_and_in_bytes_hold_for_both_queues_together() {
    for text in [r#"{ "limit": "6 packets" }"#, r#"{ "memory_limit": "9 kB" }"#] {
        let (mut queue, mut fate) = (queue(text), TestFate::default());
        for n in 0..10 {
            offer(&mut queue, if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct }, Time::ZERO, &mut fate);
        }
        assert_eq!((queue.backlog().packets, fate.dropped_full), (6, 4), "{text}");
    }
}

#[test]
fn a_burst_is_exempt_from_the_step_and_a_standing_queue_is_not() {
    // The step is at 1 ms, and at 1.8 ms for bursts, for 5 ms after the queue was empty. Ten packets arrive at 0 and ten at 4 ms:
    // whether the packet that leaves after this many microseconds is marked.
    let marked = |text: &str, at: u64| {
        let mut queue = queue(text);
        let mut fate = TestFate::default();
        for n in 0..20 {
            offer(&mut queue, Ecn::Ect1, us(if n < 10 { 0 } else { 4000 }), &mut fate);
        }
        for _ in 0..if at > 4000 { 10 } else { 0 } {
            queue.dequeue(us(0), &mut fate);
        }
        queue.dequeue(us(at), &mut fate).unwrap().ecn == Ecn::Ce
    };
    let weir = r#"{ "preset": "weir" }"#;
    // The last two packets arrived at 4 ms, when the queue had been busy for 4 ms.
    assert_eq!(
        [1000, 1001, 1800, 1801, 5000, 5500].map(|at| marked(weir, at)),
        [false, false, false, true, false, true]
    );
    let without = r#"{ "preset": "weir", "step_burst": "0 s" }"#;
    assert_eq!([1000, 1001, 1800, 1801].map(|at| marked(without, at)), [false, true, true, true]);
}

/// A queue whose separate controller drops with the square of `root`, and whose p' is `p`.
fn in_overload(text: &str, p: f64, root: f64) -> DualPi2<TestPacket> {
    let mut queue = queue(text);
    hold(&mut queue, p);
    let separate = queue.separate.as_mut().unwrap();
    separate.pi = Pi::new(Span::ZERO, Span::from_secs(3600), 0.0, 0.0, 1.0);
    separate.pi.raise(root);
    separate.update(Time::ZERO, |_| None);
    queue.pi = Pi::new(Span::ZERO, Span::from_secs(3600), 0.0, 0.0, 1.0);
    queue.pi.raise(p);
    queue.backlog = Backlog { packets: 10, bytes: Bytes::new(15_000) };
    queue
}

#[test]
fn a_separate_overload_controller_drops_the_share_of_l4s_that_l4s_needs() {
    // L4S needs 0.3^2 = 9 %, classic p'^2 = 1 %: classic gets (0.3 / 2)^2 = 2.25 %, in drops although its packets are ECN-capable.
    // Once classic needs more, 0.4^2 = 16 %, L4S still gets its 9 %. The remaining L4S packets are marked with 2 p'.
    let near = |a: u32, b: f64| (f64::from(a) / 2e4 - b).abs() < 0.012;
    for (p, l4s_expected, classic_expected) in [(0.1, 0.09, 0.0225), (0.4, 0.09, 0.16)] {
        let mut queue = in_overload(r#"{ "preset": "weir" }"#, p, 0.3);
        let [mut l4s, mut classic, mut marked] = [0, 0, 0];
        for _ in 0..20_000 {
            match queue.judge(true, true, 0.0) {
                Verdict::Drop(reason) => {
                    assert_eq!(reason, DropReason::Overload);
                    l4s += 1;
                }
                Verdict::Mark => marked += 1,
                Verdict::Pass => {}
            }
            classic += u32::from(matches!(queue.judge(false, true, 0.0), Verdict::Drop(_)));
        }
        assert!(near(l4s, l4s_expected) && near(classic, classic_expected), "{l4s} {classic}");
        assert!(near(marked, 0.91 * 2.0 * p), "{marked}");
    }
}

#[test]
fn classic_has_the_larger_weight_while_l4s_packets_are_dropped() {
    let order = |text: &str| -> String {
        let mut queue = in_overload(text, 0.0, 0.1);
        queue.backlog = Backlog::default();
        let mut fate = TestFate::default();
        for ecn in [Ecn::NotEct, Ecn::Ect1] {
            for _ in 0..40 {
                offer(&mut queue, ecn, Time::ZERO, &mut fate);
            }
        }
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut fate));
        left.take(30).map(|packet| if packet.class == Ecn::NotEct { 'C' } else { 'L' }).collect()
    };
    let classic = |order: String| order.chars().skip(10).filter(|c| *c == 'C').count();
    // Classic has nine of ten packets, or one of ten.
    assert_eq!(classic(order(r#"{ "preset": "weir" }"#)), 18);
    assert_eq!(classic(order(r#"{ "preset": "weir", "overload_priority": "l4s" }"#)), 2);
}

#[test]
fn a_full_queue_reaches_the_required_probability_within_a_fifth_of_a_second() {
    // 1600 packets/s arrive and 1000 leave, the target is 15 ms and the buffer holds 24 ms: p'^2 = 3/8 is needed, p' = 0.61. From
    // the delay alone p' reaches beta x 24 ms = 0.077 and then rises by alpha x 9 ms each 16 ms, 0.09 a second.
    let after = |text: &str| {
        let (mut queue, mut fate) = (queue(text), TestFate::default());
        for n in 0..320u64 {
            offer(&mut queue, Ecn::NotEct, us(625 * n), &mut fate);
            if n % 8 < 5 {
                queue.dequeue(us(625 * n), &mut fate);
            }
        }
        queue.pi.probability()
    };
    let learnt = after(r#"{ "preset": "weir", "limit": "24 packets" }"#);
    assert!((0.5..0.7).contains(&learnt), "{learnt}");
    let slow = after(r#"{ "preset": "weir", "limit": "24 packets", "limit_patience": "0 s" }"#);
    assert!(slow < 0.12, "{slow}");
}

#[test]
fn presets_other_than_weir_leave_its_extensions_off() {
    let rfc9332 = read("{}");
    let thesis = read(r#"{ "preset": "thesis" }"#);
    for config in [&rfc9332, &thesis] {
        assert!(config.step_burst.is_zero() && config.limit_patience.is_zero());
        assert_eq!(config.overload_control, OverloadControl::Coupled);
        assert_eq!(config.overload_priority, OverloadPriority::L4s);
    }
    // And weir with all four switched off is RFC 9332.
    let off = r#"{ "preset": "weir", "step_burst": "0 s", "limit_patience": "0 s", "overload_control": "coupled",
                   "overload_priority": "l4s", "delay": "longest" }"#;
    assert_eq!(Config { preset: rfc9332.preset, ..read(off) }, rfc9332);
}

#[test]
fn a_preset_supplies_the_parameters_that_are_not_given() {
    let thesis = read(r#"{ "preset": "thesis", "step_thresh": "5 ms" }"#);
    assert_eq!(thesis.limit, Limit::Packets(1000));
    assert_eq!((thesis.alpha, thesis.beta, thesis.coupling_factor), (0.3125, 3.125, 2.0));
    assert_eq!((thesis.t_shift, thesis.step_thresh), (Span::from_millis(30), "5 ms".parse().unwrap()));
    let linux = read(r#"{ "preset": "linux" }"#);
    assert_eq!(linux, Config::default());
    assert_eq!((linux.limit, linux.alpha, linux.beta), (Limit::Packets(10_000), 0.16, 3.2));
    // The serialized form has every parameter, and reads back to the same configuration.
    let text = serde_json::to_string(&thesis).unwrap();
    assert!(text.contains(r#""classic_protection":0.1"#), "{text}");
    assert_eq!(read(&text), thesis);
    let refused = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
    assert!(refused(r#"{ "preset": "paper" }"#).contains("unknown variant `paper`"));
    assert!(refused(r#"{ "preset": "thesis", "k": 2 }"#).contains("unknown field `k`"));
    assert!(refused(r#"{ "classic_protection": 10 }"#).contains("out of range"));
}
