//! Plans, checked against values that are worked out by hand for the thesis's paths.

use super::*;
use crate::{Layer, Timers};

fn gbit(gigabits: u64) -> Rate {
    Rate::from_mbit_per_sec(1000 * gigabits)
}
fn mbit(megabits: u64) -> Rate {
    Rate::from_mbit_per_sec(megabits)
}
fn request(rate: Rate, rtt_ms: u64) -> Request {
    Request::new(rate, Span::from_millis(rtt_ms))
}
fn plan(rate: Rate, rtt_ms: u64) -> Plan {
    Plan::of(&request(rate, rtt_ms)).unwrap()
}

#[test]
fn a_plan_for_the_wide_area_path_of_the_thesis_has_its_values() {
    let plan = plan(gbit(4), 26);
    // 4e9 / 8 x 0.026 = 13.0 MB; 1.3 times that is 16.9 MB, 11,163 frames of 1,514 bytes.
    assert_eq!((plan.bdp.get(), plan.window.get(), plan.window_segments), (13_000_000, 16_900_000, 11_163));
    // 45 segments of 1,514 bytes are the largest packet, and one may wait beside the window.
    assert_eq!(
        (plan.control, plan.burst.get(), plan.limit.get()),
        (Control::Ctcp, 68_130, 11_163 * 1514 + 68_130)
    );
    let buffer = 2 * 11_163 * 1514;
    assert_eq!((plan.tcp_wmem, plan.tcp_rmem), ([4096, buffer, buffer], [4096, buffer, buffer]));
    // 67,603,128 bytes in both buffers are 16,504.7 pages.
    assert_eq!(plan.tcp_mem, [16_505, 22_007, 33_010]);
    // 0.3 of the bandwidth-delay product waits: 3.9 MB and the rest of the last frame, 782 bytes, at 4 Gbit/s.
    assert_eq!(plan.standing_delay.as_micros(), 7_801);
}

#[test]
fn the_ceiling_is_the_rate_without_headers() {
    // R x 1448 / 1514; the thesis measured 908, 95.48 and 473.7.
    for (rate, ceiling) in [
        (mbit(950), 908_586_525),
        (mbit(100), 95_640_686),
        (mbit(500), 478_203_434),
        (gbit(4), 3_825_627_476),
    ] {
        assert_eq!(plan(rate, 50).ceiling.bits_per_sec(), ceiling);
    }
    // Jumbo frames: 8948 / 9014. IPv6: 1428 / 1514.
    let jumbo = Request { mtu: Bytes::new(9000), ..request(gbit(4), 26) };
    assert_eq!(Plan::of(&jumbo).unwrap().ceiling.bits_per_sec(), 3_970_712_225);
    let v6 = Request { ip: crate::Ip::V6, ..request(gbit(4), 26) };
    assert_eq!(Plan::of(&v6).unwrap().ceiling.bits_per_sec(), 3_772_787_318);
}

#[test]
fn a_rate_of_another_layer_is_converted() {
    let of = |layer| Plan::of(&Request { layer, ..request(gbit(1), 50) }).unwrap();
    // The line rate of gigabit Ethernet leaves 941.5 Mbit/s (Table 3.5: 941).
    let wire = of(Layer::Wire);
    assert_eq!((wire.shaper_rate.bits_per_sec(), wire.ceiling.bits_per_sec()), (984_395_318, 941_482_444));
    let packet = of(Layer::Packet);
    assert_eq!(
        (packet.shaper_rate.bits_per_sec(), packet.ceiling.bits_per_sec()),
        (1_009_333_333, 965_333_333)
    );
}

#[test]
fn a_small_window_limits_the_expected_rate_to_its_share() {
    let share = |percent, rtt| {
        let request = Request { window_percent: percent, ..request(gbit(1), rtt) };
        Plan::of(&request).unwrap()
    };
    // Table 3.5: 0.3 of the bandwidth-delay product of 1 Gbit/s and 50 ms gave 286 and 288 Mbit/s. 1,875,000 bytes are 1,239
    // frames with 1,448 bytes of payload each, every 50 ms: 287.05 Mbit/s.
    assert_eq!(share(30, 50).expected.bits_per_sec(), 287_051_520);
    let full = share(130, 50);
    assert_eq!(full.expected, full.ceiling);
}

#[test]
fn a_semi_guaranteed_background_circuit_gets_htcp() {
    let with =
        |guarantee, priority| Plan::of(&Request { guarantee, priority, ..request(mbit(500), 50) }).unwrap();
    assert_eq!(with(Guarantee::Full, Priority::Background).control, Control::Ctcp, "it is guaranteed");
    assert_eq!(with(Guarantee::Semi, Priority::Transfer).control, Control::Ctcp);
    let gives_way = with(Guarantee::Semi, Priority::Background);
    assert_eq!(gives_way.control, Control::Htcp);
    // tcp_wmem is four times the bandwidth-delay product: 3.125 MB are 2,065 frames, so 4,129 are twice that, and buffers
    // twice again.
    assert_eq!(gives_way.tcp_wmem[2], 2 * 4129 * 1514);
}

#[test]
fn a_window_is_at_most_a_gibibyte_and_a_buffer_at_most_the_largest_setting() {
    // 100 Gbit/s and 200 ms hold 2.5 GB; 1 GiB each 200 ms carries 42.9 Gbit/s of frames.
    let plan = plan(gbit(100), 200);
    assert_eq!(plan.window.get(), 1 << 30);
    assert_eq!((plan.tcp_rmem[2], plan.standing_delay), (i32::MAX as u64, Span::ZERO));
    assert_eq!(plan.expected.bits_per_sec() / 1_000_000, 41_077);
    assert!(plan.rows().iter().any(|row| row.reason.contains("1 GiB")));
}

#[test]
fn the_limit_of_a_short_path_holds_its_window_and_the_largest_packet() {
    // 100 Mbit/s and 0.3 ms hold 3,750 bytes, 4,875 with the surplus, 4 frames; a packet of many segments is longer.
    let request = Request { rtt: Span::from_micros(300), ..request(mbit(100), 1) };
    let plan = Plan::of(&request).unwrap();
    assert_eq!((plan.window_segments, plan.limit.get()), (4, 4 * 1514 + 68_130));
}

#[test]
fn the_first_burst_of_a_faster_card_queues_at_the_bottleneck() {
    // 500,000 bytes (331 frames) from 10 Gbit/s into 4 Gbit/s: six tenths are queued.
    let request = Request { card: Some(gbit(10)), timers: Timers::Tick(1000), ..request(gbit(4), 26) };
    assert_eq!(Plan::of(&request).unwrap().start_up_queue, Some(Bytes::new(331 * 1514 * 6 / 10)));
    assert_eq!(plan(gbit(4), 26).start_up_queue, None);
}

#[test]
fn an_impossible_request_is_refused_with_the_reason() {
    let refused = |request: Request| Plan::of(&request).unwrap_err();
    assert_eq!(refused(request(Rate::default(), 26)), Refusal::NoRate);
    assert_eq!(refused(request(gbit(4), 0)), Refusal::NoRoundTrip);
    let card = gbit(1);
    assert_eq!(
        refused(Request { card: Some(card), ..request(gbit(4), 26) }),
        Refusal::AboveCard { rate: gbit(4), card }
    );
    assert!(matches!(refused(Request { mtu: Bytes::new(100), ..request(gbit(4), 26) }), Refusal::Mtu { .. }));
    assert_eq!(refused(Request { timers: Timers::Tick(0), ..request(gbit(4), 26) }), Refusal::NoTicks);
    assert!(matches!(
        refused(Request { window_percent: 0, ..request(gbit(4), 26) }),
        Refusal::WindowPercent { .. }
    ));
}

#[test]
fn every_plan_fits_its_shaper_and_its_buffers() {
    // Any window fits its shaper and half of its buffers, and nothing exceeds the ceiling or overflows.
    let mut random = weir_base::Random::stream(1, "plans");
    for _ in 0..20_000 {
        let rate = Rate::from_bits_per_sec(8 + (random.bits() >> random.below(60)) % 1_000_000_000_000);
        let rtt = Span::from_micros(1 + random.below(10_000_000));
        let request = Request {
            mtu: Bytes::new(1280 + random.below(8_000)),
            offloads: random.chance(0.5),
            timers: if random.chance(0.5) { Timers::Fine } else { Timers::Tick(100) },
            guarantee: if random.chance(0.5) { Guarantee::Full } else { Guarantee::Semi },
            ..Request::new(rate, rtt)
        };
        let plan = Plan::of(&request).unwrap();
        let in_flight = plan.window_segments * plan.headers.frame.get();
        assert!(plan.limit.get() >= in_flight && plan.limit >= plan.burst, "{plan:?}");
        assert!(plan.tcp_rmem[2] >= (2 * in_flight).min(i32::MAX as u64), "{plan:?}");
        assert!(plan.expected <= plan.ceiling && plan.ceiling < plan.shaper_rate, "{plan:?}");
    }
}
