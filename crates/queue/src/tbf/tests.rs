//! Departures computed by hand.

use super::*;
use crate::testing::{TestFate, TestPacket};
use weir_base::Ecn;

const LINK: Link =
    Link { rate: Rate::from_mbit_per_sec(100), base_rtt: Some(Span::from_millis(20)), mtu: Bytes::new(1500) };

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn config(text: &str) -> Config {
    serde_json::from_str(text).unwrap()
}

fn build(text: &str) -> Tbf<TestPacket> {
    Tbf::new(&config(text), &LINK, Random::stream(1, "queue"))
}

/// The departures of packets that arrive as (microseconds, length), in the same form.
fn departures(queue: &mut Tbf<TestPacket>, fate: &mut TestFate, arrivals: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let (mut left, mut now) = (vec![], us(arrivals[0].0));
    let ends = arrivals.iter().skip(1).map(|(at, _)| us(*at)).chain([Time::NEVER]);
    for (&(at, length), end) in arrivals.iter().zip(ends) {
        queue.enqueue(TestPacket::new(length, Ecn::NotEct), us(at), fate);
        now = now.max(us(at));
        while let Some(at) = queue.departs(now).filter(|at| *at < end) {
            let packet = queue.dequeue(at, fate).unwrap();
            left.push((at.as_nanos() / 1000, packet.length));
            now = at;
        }
    }
    left
}

#[test]
fn a_burst_leaves_at_once_and_later_packets_at_the_rate() {
    // 8 Mbit/s: a microsecond a byte. The bucket holds three packets of 986 + 14 bytes.
    let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "3000 B", "limit": "10 kB" }"#);
    let left = departures(&mut queue, &mut TestFate::default(), &[(0, 986); 5]);
    assert_eq!(left, [0, 0, 0, 1000, 2000].map(|at| (at, 986)));
}

#[test]
fn an_idle_period_fills_the_bucket_to_the_burst_and_no_further() {
    let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "2000 B", "limit": "10 kB" }"#);
    let mut fate = TestFate::default();
    let left = departures(&mut queue, &mut fate, &[(0, 986), (0, 986), (500, 986), (50_000, 986)]);
    // The third packet lacks tokens for 500 bytes at 500 us, and waits for them.
    assert_eq!(left, [(0, 986), (0, 986), (1000, 986), (50_000, 986)]);
    let left = departures(&mut queue, &mut fate, &[(50_000, 486), (50_000, 986), (50_000, 486)]);
    // The packet at 50 ms found the bucket full; 1000 us of tokens are left.
    assert_eq!(left, [(50_000, 486), (50_500, 986), (51_000, 486)]);
}

#[test]
fn a_reconfiguration_fills_the_bucket_and_keeps_the_queued_packets_that_fit() {
    let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "2000 B", "limit": "10 kB" }"#);
    let mut fate = TestFate::default();
    for length in [986, 986, 986, 1286, 486, 986] {
        queue.enqueue(TestPacket::new(length, Ecn::NotEct), us(0), &mut fate);
    }
    assert!((0..2).all(|_| queue.dequeue(us(0), &mut fate).is_some()));
    let next = crate::Config::Tbf(config(r#"{ "rate": "4 Mbit/s", "burst": "1000 B", "limit": "3 kB" }"#));
    queue.reconfigure(&next, us(500), &mut fate);
    // The packet of 1286 + 14 bytes no longer fits the bucket.
    assert_eq!((fate.dropped_bytes, Queue::<TestPacket>::backlog(&queue).packets), (1286, 3));
    assert!(
        Queue::<TestPacket>::takes(&queue, FlowId(0), 486)
            && !Queue::<TestPacket>::takes(&queue, FlowId(0), 487)
    );
    let (mut left, mut now) = (vec![], us(500));
    while let Some(at) = queue.departs(now) {
        now = at;
        left.push((at.as_nanos() / 1000, queue.dequeue(at, &mut fate).unwrap().length));
    }
    assert_eq!(left, [(500, 986), (1500, 486), (3500, 986)]);
}

#[test]
fn the_peak_rate_spaces_a_burst() {
    // A packet costs 1000 us at 8 Mbit/s, and 250 us at 32 Mbit/s, where the bucket holds one packet.
    let text = r#"{ "rate": "8 Mbit/s", "burst": "3000 B", "limit": "10 kB", "peakrate": "32 Mbit/s", "mtu": "1000 B" }"#;
    let left = departures(&mut build(text), &mut TestFate::default(), &[(0, 986); 6]);
    // The bucket holds three packets and fills meanwhile: at 750 us the fourth lacks 250 of its 1000 us.
    assert_eq!(left, [0, 250, 500, 1000, 2000, 3000].map(|at| (at, 986)));
}

#[test]
fn the_limit_counts_headers_and_a_latency_becomes_the_bytes_of_its_time_and_the_burst() {
    let dropped = |text: &str| {
        let (mut queue, mut fate) = (build(text), TestFate::default());
        for _ in 0..20 {
            let (takes, dropped) = (Queue::<TestPacket>::takes(&queue, FlowId(0), 986), fate.dropped);
            queue.enqueue(TestPacket::new(986, Ecn::NotEct), Time::ZERO, &mut fate);
            assert_eq!(takes, fate.dropped == dropped);
        }
        fate.dropped_full
    };
    assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "5999 B" }"#), 15);
    assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "6 kB" }"#), 14);
    // 4 ms at 1 MB/s, and 2 kB.
    assert_eq!(dropped(r#"{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "4 ms" }"#), 14);
    // The peak rate allows more in 4 ms (1.5 MB/s and 1 kB), and less in 1 ms.
    let peak = |limit: &str| {
        format!(
            r#"{{ "rate": "8 Mbit/s", "burst": "2 kB", "limit": "{limit}", "peakrate": "12 Mbit/s", "mtu": "1 kB" }}"#
        )
    };
    assert_eq!((dropped(&peak("4 ms")), dropped(&peak("1 ms"))), (14, 18));
}

#[test]
fn a_packet_larger_than_a_bucket_is_dropped() {
    let (mut queue, mut fate) = (build(r#"{ "burst": "1000 B" }"#), TestFate::default());
    queue.enqueue(TestPacket::new(987, Ecn::NotEct), Time::ZERO, &mut fate);
    queue.enqueue(TestPacket::new(986, Ecn::NotEct), Time::ZERO, &mut fate);
    assert_eq!((fate.dropped_full, queue.backlog().packets), (1, 1));
    assert_eq!(queue.backlog().bytes, Bytes::new(986));
}

#[test]
fn the_inner_queue_decides_which_packet_is_sent_next() {
    let text = r#"{ "rate": "8 Mbit/s", "burst": "1000 B", "queue": { "kind": "strict-priority" } }"#;
    let (mut queue, mut fate) = (build(text), TestFate::default());
    for ecn in [Ecn::NotEct, Ecn::NotEct, Ecn::Ect1] {
        queue.enqueue(TestPacket::new(986, ecn), Time::ZERO, &mut fate);
    }
    // The first packet was already taken out of the inner queue; of the others ECT(1) goes first.
    let mut now = Time::ZERO;
    let order: Vec<_> = std::iter::from_fn(|| {
        now = queue.departs(now)?;
        queue.dequeue(now, &mut fate).map(|packet| (now, packet.ecn))
    })
    .collect();
    assert_eq!(order, [(us(0), Ecn::NotEct), (us(1000), Ecn::Ect1), (us(2000), Ecn::NotEct)]);
}

#[test]
fn invalid_parameters_are_refused() {
    let refused = |text: &str| serde_json::from_str::<Config>(text).unwrap_err().to_string();
    assert!(refused(r#"{ "limit": "100 packets" }"#).contains("cannot have a limit of 100 packets"));
    assert!(refused(r#"{ "peakrate": "10 Mbit/s" }"#).contains("is not above the rate of 10 Mbit/s"));
    assert!(refused(r#"{ "rate": "7 bit/s" }"#).contains("at least 8 bit/s"));
    assert!(refused(r#"{ "burst": "63 B" }"#).contains("write 64 B to 1 GiB"));
    assert!(refused(r#"{ "quantum": 1 }"#).contains("unknown field"));
}

#[test]
fn a_coarse_timer_releases_all_due_packets_at_once() {
    // The rate is a packet a millisecond, the bucket holds four, and the timer fires each 3 ms.
    let mut queue = build(r#"{ "rate": "8 Mbit/s", "burst": "4000 B", "limit": "20 kB", "timer": "3 ms" }"#);
    let left = departures(&mut queue, &mut TestFate::default(), &[(500, 986); 11]);
    let expected = [500, 500, 500, 500, 3000, 3000, 6000, 6000, 6000, 9000, 9000];
    assert_eq!(left, expected.map(|at| (at, 986)));
}
