//! Queues that hold packets back although the link is free.

use super::*;

/// 2 Mbit/s of IP bytes with a burst of one packet: a packet of 1500 bytes every 6 ms.
fn shaper() -> serde_json::Value {
    serde_json::json!({ "kind": "tbf", "rate": "2 Mbit/s", "burst": "1500 B", "limit": "1 MB", "overhead": "0 B" })
}

/// The two hops with this queue, whose link needs a millisecond for a packet.
fn shaped(queue: serde_json::Value, change: impl FnOnce(&mut Link)) -> Config {
    two_hops(|link| {
        link.queue = serde_json::from_value(queue).unwrap();
        link.rate = Some(Rate::from_mbit_per_sec(12));
        change(link);
    })
}

#[test]
fn a_shaper_spaces_packets_and_the_link_is_busy_only_while_it_sends() {
    let (seen, mut fabric) = burst(&shaped(shaper(), |_| {}), 3);
    // 1 ms to the queue, 0, 6 and 12 ms in it, 1 ms of the link's, 10 ms on the way.
    assert_eq!(seen, [(1, ms(12)), (2, ms(18)), (3, ms(24))]);
    let counters = fabric.take_link(1, ms(24));
    assert_eq!((counters.sent[Ecn::Ect0 as usize], counters.busy), (3, Span::from_millis(3)));
    assert_eq!(counters.capacity, Bytes::new(36_000));
    let (_, delays) = fabric.delays(1).next().unwrap();
    assert_eq!(delays.mean().unwrap(), Span::from_millis(6));
}

#[test]
fn a_reconfigured_shaper_spaces_packets_by_its_new_rate() {
    let faster = serde_json::json!({ "kind": "tbf", "rate": "4 Mbit/s", "burst": "1500 B", "limit": "1 MB", "overhead": "0 B" });
    let change = change_of_queue(3, faster);
    let (seen, _) = burst(&shaped(shaper(), |link| link.schedule = vec![change]), 3);
    // The first packet leaves the queue at 1 ms. At 3 ms the bucket is full again, and a packet takes 3 ms.
    assert_eq!(seen, [(1, ms(12)), (2, ms(14)), (3, ms(17))]);
}

/// A change of the queue.
fn change_of_queue(at: u64, queue: serde_json::Value) -> Change {
    Change {
        at: Span::from_millis(at),
        queue: Some(serde_json::from_value(queue).unwrap()),
        ..Change::default()
    }
}

#[test]
fn a_packet_held_back_by_a_shaper_is_no_arrival_before_its_departure() {
    let mut fabric = Fabric::new(&shaped(shaper(), |_| {}));
    (1..=2).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    assert!(fabric.advance(ms(1)).is_none());
    // The queue is asked again for the second packet at 7 ms; the first arrives at 12 ms.
    assert_eq!((fabric.next_time(), fabric.next_arrival(), fabric.totals().in_flight), (ms(7), ms(12), 2));
    assert_eq!(fabric.advance(ms(12)).unwrap().at, ms(12));
    assert_eq!(fabric.advance(Time::NEVER).unwrap().at, ms(18));
}

#[test]
fn a_packet_of_higher_priority_does_not_wait_for_packets_held_back_by_a_shaper() {
    let bands = serde_json::json!({ "kind": "strict-priority", "bands": [
        { "ecn": ["ect1"], "queue": "fifo" }, { "queue": shaper() }
    ] });
    let mut fabric = Fabric::new(&shaped(bands, |_| {}));
    (1..=2).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    assert!(fabric.advance(ms(3)).is_none());
    fabric.inject(0, Datagram { ecn: Ecn::Ect1, ..datagram(3, 2) }, ms(3));
    let seen: Vec<_> =
        std::iter::from_fn(|| fabric.advance(Time::NEVER)).map(|d| (d.packet.number, d.at)).collect();
    // The third packet reaches the queue at 4 ms and leaves at once; the second leaves as if the third had not been
    // there.
    assert_eq!(seen, [(1, ms(12)), (3, ms(15)), (2, ms(18))]);
}

#[test]
fn an_opportunity_while_all_packets_are_held_back_is_lost() {
    let trace = Arc::new(Trace::parse("2\n6\n10\n").unwrap());
    let config = shaped(shaper(), |link| {
        link.rate = Some(trace.mean_rate());
        link.trace = playback(&trace, true);
    });
    let (seen, _) = burst(&config, 3);
    // They may leave at 2, 8 and 14 ms, and do at 2, 10 and 16.
    assert_eq!(seen, [(1, ms(12)), (2, ms(20)), (3, ms(26))]);
}

#[test]
fn a_radio_contends_when_the_queue_releases_a_packet() {
    let (seen, _) = burst(&shaped(shaper(), |link| link.wifi = Some(Wifi::default())), 20);
    assert_eq!(seen.len(), 20);
    // The bucket is full again 6 ms after a packet has left; the next one leaves after another 43 us and 0 to 15 slots
    // of 9 us.
    for two in seen.windows(2) {
        let gap = two[1].1.since(two[0].1);
        let contended = gap.saturating_sub(Span::from_micros(6_043)).as_nanos();
        assert!(contended <= 15 * 9_000 && contended % 9_000 == 0, "{gap}");
    }
}

#[test]
fn an_outage_delays_only_packets_that_are_due_before_its_end() {
    let arrivals =
        |from, length| burst(&shaped(shaper(), |link| link.outages = vec![outage(from, length)]), 2).0;
    assert_eq!(arrivals(2, 3), [(1, ms(12)), (2, ms(18))]);
    assert_eq!(arrivals(2, 18), [(1, ms(12)), (2, ms(31))]);
}
