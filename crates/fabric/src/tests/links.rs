//! Properties of links beyond rate and delay: traces, outages, radio channels, and impairments.

use super::*;

fn deep(link: &mut Link) {
    let limit = serde_json::json!({"limit": "10000000 packets"});
    link.queue = weir_queue::Config::with_parameters("tail-drop", limit).unwrap();
}

/// The two hops, with no delay on either; the second one's queue never overflows.
fn link(change: impl FnOnce(&mut Link)) -> Config {
    let mut config = two_hops(|slow| {
        deep(slow);
        slow.delay = Span::ZERO;
        change(slow);
    });
    config.network.links[0].delay = Span::ZERO;
    config
}

/// A time at which all packets of a test have arrived.
const LATER: Time = Time::from_nanos(1_000_000_000_000);

fn played(text: &str, repeat: bool) -> impl FnOnce(&mut Link) {
    let trace = Arc::new(Trace::parse(text).unwrap());
    move |link| {
        link.rate = Some(trace.mean_rate());
        link.trace = playback(&trace, repeat);
    }
}

pub(super) fn balance(fabric: &Fabric<Datagram>) -> Totals {
    let totals = fabric.totals();
    assert_eq!(
        totals.sent + totals.duplicated + totals.made,
        totals.delivered
            + totals.corrupted
            + totals.dropped
            + totals.lost
            + totals.discarded
            + totals.held
            + totals.in_flight
            + totals.unroutable,
        "{totals:?}"
    );
    totals
}

/// Sends packets 1 to n at once, advances to `until`, and returns when each arrived.
fn saturate(config: &Config, n: u64, until: Time) -> (Vec<(u64, Time)>, Fabric<Datagram>) {
    let mut fabric = Fabric::new(config);
    (1..=n).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let mut seen = vec![];
    while let Some(delivery) = fabric.advance(until) {
        seen.push((delivery.packet.number, delivery.at));
    }
    balance(&fabric);
    (seen, fabric)
}

fn times(seen: &[(u64, Time)]) -> Vec<u64> {
    seen.iter().map(|(_, at)| at.as_nanos() / 1_000_000).collect()
}

#[test]
fn a_saturated_trace_delivers_a_full_packet_at_every_opportunity() {
    let config = link(|link| {
        played("0\n3\n3\n9\n10\n", true)(link);
        // As Mahimahi counts: a packet of 1500 bytes fills an opportunity.
        link.overhead = Bytes::new(4);
    });
    let (seen, mut fabric) = saturate(&config, 12, Time::NEVER);
    assert_eq!(times(&seen), [0, 3, 3, 9, 10, 10, 13, 13, 19, 20, 20, 23]);
    // All opportunities up to 23 ms, inclusive, are counted; packets use all but the last in full.
    let counters = fabric.take_link(1, ms(23));
    assert_eq!(
        (counters.capacity, counters.sent_bytes[Ecn::Ect0 as usize]),
        (Bytes::new(13 * 1504), 12 * 1504)
    );
}

#[test]
fn an_opportunity_sends_parts_of_packets_and_its_rest_serves_waiting_packets() {
    // Without the 4 bytes: 375 packets of 1500 bytes leave 1500 bytes over, enough for one more packet at the same moment.
    let config = link(played("1\n", true));
    let (seen, _) = saturate(&config, 377, Time::NEVER);
    let at = times(&seen);
    assert_eq!((at[0], at[374], at[375], at[376]), (1, 375, 375, 376));
    // A packet of 1600 bytes on the wire needs two opportunities; the next packet begins in the rest of the second one.
    let config = link(|link| {
        played("1\n", true)(link);
        link.overhead = Bytes::new(100);
    });
    let (seen, fabric) = saturate(&config, 3, ms(2));
    assert_eq!(times(&seen), [2]);
    // One in the queue, one begun.
    assert_eq!(fabric.totals().in_flight, 2);
}

#[test]
fn an_opportunity_without_waiting_packets_is_lost() {
    let config = link(|link| {
        played("10\n20\n30\n", true)(link);
        link.overhead = Bytes::new(4);
    });
    let mut fabric: Fabric<Datagram> = Fabric::new(&config);
    let mut seen = vec![];
    for (number, at) in [(1, 12), (2, 30), (3, 30), (4, 95)] {
        while let Some(delivery) = fabric.advance(ms(at)) {
            seen.push((delivery.packet.number, delivery.at));
        }
        fabric.inject(0, datagram(number, 2), ms(at));
    }
    while let Some(delivery) = fabric.advance(Time::NEVER) {
        seen.push((delivery.packet.number, delivery.at));
    }
    // A packet that comes at the very moment of an opportunity may use it; at 30 ms there is one opportunity.
    assert_eq!(seen, [(1, ms(20)), (2, ms(30)), (3, ms(40)), (4, ms(100))]);
}

#[test]
fn a_trace_that_does_not_repeat_ends() {
    let config = link(|link| {
        played("1\n2\n", false)(link);
        link.overhead = Bytes::new(4);
    });
    let (seen, mut fabric) = saturate(&config, 5, Time::NEVER);
    assert_eq!(times(&seen), [1, 2]);
    assert_eq!((fabric.totals().in_flight, fabric.next_time()), (3, Time::NEVER));
    assert_eq!(fabric.take_link(1, ms(1000)).capacity, Bytes::new(2 * 1504));
}

#[test]
fn a_trace_of_one_rate_is_that_rate_to_the_nanosecond() {
    let plain = link(|link| link.rate = Some(Rate::from_bits_per_sec(7_654_321)));
    let traced = link(played("0,7654321\n1,7654321\n", true));
    let (expected, _) = saturate(&plain, 2000, Time::NEVER);
    let (seen, mut fabric) = saturate(&traced, 2000, Time::NEVER);
    assert_eq!(seen, expected);
    // Less than a byte is missing: the end of each packet is rounded to a nanosecond.
    assert_eq!(fabric.take_link(1, Time::ZERO + Span::from_secs(8)).capacity, Bytes::new(7_654_320));
}

#[test]
fn a_packet_is_transmitted_across_steps_of_the_rate() {
    // 2 Mbit/s for 9 ms, then zero for 1 ms: one and a half packets a round. The second packet is interrupted half-way.
    let config = link(played("0,2 Mbit/s\n0.009,0\n0.010,2 Mbit/s\n0.019,0\n0.020,2 Mbit/s\n", true));
    let (seen, _) = saturate(&config, 3, Time::NEVER);
    assert_eq!(times(&seen), [6, 13, 19]);
}

#[test]
fn a_schedule_begins_and_ends_a_trace() {
    let trace = Arc::new(Trace::parse("5\n10\n").unwrap());
    let begin = Change {
        at: Span::from_millis(7),
        rate: Some(trace.mean_rate()),
        trace: playback(&trace, true),
        ..Change::default()
    };
    let end =
        Change { at: Span::from_millis(40), rate: Some(Rate::from_mbit_per_sec(2)), ..Change::default() };
    let config = link(|link| {
        link.overhead = Bytes::new(4);
        link.schedule = vec![begin, end];
    });
    let (seen, _) = saturate(&config, 10, Time::NEVER);
    // 6.016 ms each at 2 Mbit/s: the second was begun before the trace came, which starts at 7 ms and finds the link busy
    // until 12.032 ms. Its next opportunity after 37 ms would be that of 42 ms; at 40 ms the old rate is back.
    assert_eq!(times(&seen), [6, 12, 17, 22, 27, 32, 37, 46, 52, 58]);
    assert_eq!(seen[7].1, ms(40) + Span::from_micros(6016));
    let (_, mut fabric) = saturate(&config, 10, ms(50));
    // Two packets at 2 Mbit/s, 5 opportunities at 17, 22, 27, 32 and 37 ms, and 10 ms at 2 Mbit/s.
    assert_eq!(fabric.take_link(1, ms(50)).capacity, Bytes::new(2 * 1504 + 5 * 1504 + 10 * 250));
}

#[test]
fn an_outage_starts_no_transmission_and_holds_the_queue() {
    let config = link(|link| link.outages = vec![outage(8, 20)]);
    let (seen, mut fabric) = saturate(&config, 3, Time::NEVER);
    // 6 ms each; the second was begun at 6 ms and is finished, the third waits for the end of the outage at 28 ms.
    assert_eq!(seen, [(1, ms(6)), (2, ms(12)), (3, ms(34))]);
    // The capacity of the first 12 ms and of the time from 28 ms on.
    assert_eq!(fabric.take_link(1, ms(40)).capacity, Bytes::new(24 * 250));
    assert_eq!(balance(&fabric).delivered, 3);
}

#[test]
fn a_packet_that_arrives_in_an_outage_waits_for_its_end() {
    let config = link(|link| {
        link.outages = vec![outage(1, 2), outage(10, 10)];
    });
    let mut fabric: Fabric<Datagram> = Fabric::new(&config);
    assert!(fabric.advance(ms(15)).is_none());
    fabric.inject(0, datagram(1, 2), ms(15));
    assert_eq!(fabric.advance(Time::NEVER).unwrap().at, ms(26));
}

#[test]
fn opportunities_during_an_outage_are_lost() {
    let config = link(|link| {
        played("10\n", true)(link);
        link.overhead = Bytes::new(4);
        link.outages = vec![outage(15, 20)];
    });
    let (seen, mut fabric) = saturate(&config, 3, Time::NEVER);
    assert_eq!(times(&seen), [10, 40, 50]);
    // Capacity is counted at both ends of the outage and now: the opportunities at 10, 40 and 50 ms.
    assert_eq!(fabric.take_link(1, ms(50)).capacity, Bytes::new(3 * 1504));
}

#[test]
fn packets_that_take_fractions_of_a_nanosecond_are_sent_at_the_links_rate() {
    // 64 bytes at 1000 Gbit/s are 0.512 ns, 28 bytes at 100 Gbit/s 2.24 ns, 1500 bytes at 70 Gbit/s 171 and 3/7 ns.
    for (gigabits, length, packets, nanos) in
        [(1000, 64, 100_000, 51_200), (100, 28, 10_000, 22_400), (70, 1500, 7_000, 1_200_000)]
    {
        let config = link(|link| link.rate = Some(Rate::from_mbit_per_sec(gigabits * 1000)));
        let mut fabric = Fabric::new(&config);
        (1..=packets).for_each(|i| fabric.inject(0, Datagram { length, ..datagram(i, 2) }, Time::ZERO));
        let mut last = Time::ZERO;
        while let Some(delivery) = fabric.advance(Time::NEVER) {
            last = delivery.at;
        }
        assert_eq!(last, Time::from_nanos(nanos), "{gigabits} Gbit/s");
        let counters = fabric.take_link(1, last);
        assert_eq!(
            (counters.busy, counters.capacity.get()),
            (Span::from_nanos(nanos), packets * u64::from(length))
        );
    }
}

/// Bytes sent, microseconds busy and capacity of a link in each of these periods, whose ends are in milliseconds.
fn periods(config: &Config, packets: u64, ends: &[u64]) -> Vec<(u64, u64, u64)> {
    let mut fabric = Fabric::new(config);
    (1..=packets).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let counted = |end: &u64| {
        while fabric.advance(ms(*end)).is_some() {}
        let counters = fabric.take_link(1, ms(*end));
        (counters.sent_bytes[Ecn::Ect0 as usize], counters.busy.as_micros(), counters.capacity.get())
    };
    ends.iter().map(counted).collect()
}

#[test]
fn each_period_counts_the_bytes_of_a_packet_that_were_sent_in_it() {
    // 1500 bytes at 2 Mbit/s are 6 ms, 250 bytes each millisecond; three packets, then nothing.
    let seen = periods(&link(|_| {}), 3, &[4, 8, 20, 30]);
    assert_eq!(seen, [(1000, 4000, 1000), (1000, 4000, 1000), (2500, 10_000, 3000), (0, 0, 2500)]);
}

#[test]
fn a_packet_in_transmission_keeps_its_rate_when_the_rate_of_the_link_changes() {
    // At 7 ms, 1 ms into the second packet, the rate falls to a hundredth: that packet still ends at 12 ms, and 20 bytes of
    // the third are sent in 8 ms.
    let slower =
        Change { at: Span::from_millis(7), rate: Some(Rate::from_bits_per_sec(20_000)), ..Change::default() };
    let config =
        link(|link| link.schedule = vec![slower.clone(), Change { at: Span::from_millis(8), ..slower }]);
    let seen = periods(&config, 3, &[7, 10, 20]);
    assert_eq!(seen, [(1750, 7000, 1750), (750, 3000, 750), (520, 10_000, 520)]);
    // The same for a paced link: an outage from 8 ms on holds the third packet back.
    let config = link(|link| link.outages = vec![outage(8, 20)]);
    let seen = periods(&config, 3, &[7, 10, 20, 30]);
    assert_eq!(seen, [(1750, 7000, 1750), (750, 3000, 750), (500, 2000, 500), (500, 2000, 500)]);
}

#[test]
fn each_opportunity_counts_the_bytes_it_sent_of_a_packet_that_needs_two() {
    let config = link(|link| {
        played("10\n", true)(link);
        link.overhead = Bytes::new(100);
    });
    // 1600 bytes: 1504 at 10 ms, the last 96 and 1408 of the next packet at 20 ms.
    let seen = periods(&config, 2, &[15, 25, 45]);
    assert_eq!(seen, [(1504, 0, 1504), (1504, 0, 1504), (192, 0, 3008)]);
}

#[test]
fn every_packet_of_a_link_is_lost_or_forwarded() {
    let with_drops = link(|link| link.drop = vec![2, 4]);
    let impaired = link(|link| {
        link.drop = vec![2, 4];
        link.loss = Loss::Independent(0.5);
    });
    let without_rate = link(|link| (link.rate, link.drop) = (None, vec![2, 4]));
    for config in [with_drops, impaired, without_rate] {
        let (seen, mut fabric) = saturate(&config, 1000, Time::NEVER);
        let counters = fabric.take_link(1, LATER);
        assert_eq!((counters.forwarded, counters.lost), (seen.len() as u64, 1000 - seen.len() as u64));
    }
}

#[test]
fn duplicates_arrive_and_the_packet_counts_balance() {
    let config = link(|link| link.duplicate = 0.25);
    let (seen, mut fabric) = saturate(&config, 20_000, Time::NEVER);
    let totals = balance(&fabric);
    assert_eq!(totals.delivered, 20_000 + totals.duplicated);
    assert!((4_800..5_200).contains(&totals.duplicated), "{totals:?}");
    assert_eq!(fabric.take_link(1, LATER).duplicated, totals.duplicated);
    assert!(seen.is_sorted_by_key(|(number, at)| (*at, *number)));
}

#[test]
fn damaged_packets_reach_their_host_and_do_not_count_as_delivered() {
    let config = link(|link| link.corrupt = 0.1);
    let mut fabric: Fabric<Datagram> = Fabric::new(&config);
    (1..=20_000).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let mut damaged = 0;
    while let Some(delivery) = fabric.advance(Time::NEVER) {
        damaged += u64::from(delivery.packet.is_corrupt());
    }
    let totals = balance(&fabric);
    assert_eq!((totals.corrupted, totals.delivered), (damaged, 20_000 - damaged));
    assert!((1_900..2_100).contains(&damaged), "{damaged}");
    assert_eq!(fabric.take_link(1, LATER).corrupted, damaged);
    assert_eq!(fabric.take_flow(0).unwrap().received_packets, 20_000 - damaged, "the tap sees what TCP sees");
}

#[test]
fn packets_above_the_largest_size_are_lost_from_the_scheduled_time_on() {
    let long = u64::from(datagram(1, 2).wire_length());
    let change = |ms, largest| Change {
        at: Span::from_millis(ms),
        largest: Some(Bytes::new(largest)),
        ..Change::default()
    };
    let config = link(|link| link.schedule = vec![change(60, long - 1), change(120, long)]);
    let (_, fabric) = saturate(&config, 50, Time::NEVER);
    let totals = balance(&fabric);
    assert_eq!((totals.lost, totals.delivered), (10, 40));
    let (_, fabric) = saturate(&link(|link| link.largest = Some(Bytes::new(long - 1))), 50, Time::NEVER);
    assert_eq!(balance(&fabric).lost, 50);
}

/// A burst over a fast link with this jitter: packet numbers in order of arrival, and arrival times.
fn jittered(jitter: Jitter) -> Vec<(u64, Time)> {
    let config = link(|link| {
        link.rate = Some(Rate::from_mbit_per_sec(120));
        link.jitter = Some(jitter);
    });
    saturate(&config, 5_000, Time::NEVER).0
}

#[test]
fn jitter_keeps_the_order_unless_it_may_reorder() {
    let steady = Jitter::uniform(Span::from_millis(5));
    let seen = jittered(steady.clone());
    assert!(seen.iter().map(|(number, _)| *number).eq(1..=5_000));
    assert!(seen.is_sorted_by_key(|(_, at)| *at));
    let seen = jittered(Jitter { reorder: true, ..steady });
    assert!(seen.is_sorted_by_key(|(_, at)| *at));
    let overtaken = seen.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    assert!(overtaken > 1_000, "{overtaken}");
    let mut mean = 0.0;
    for (number, at) in &seen {
        // Packet n is sent off at n times 0.1 ms.
        let extra = at.since(Time::ZERO + Span::from_micros(100) * *number);
        assert!(extra < Span::from_millis(5));
        mean += extra.as_millis_f64() / 5_000.0;
    }
    assert!((mean - 2.5).abs() < 0.1, "{mean}");
}

#[test]
fn impairments_begin_and_end_with_the_schedule() {
    let at = |ms| Span::from_millis(ms);
    let config = link(|link| {
        link.schedule = vec![
            Change { at: at(60), loss: Some(Loss::Independent(1.0)), ..Change::default() },
            Change { at: at(120), loss: Some(Loss::NONE), duplicate: Some(1.0), ..Change::default() },
            Change { at: at(180), duplicate: Some(0.0), corrupt: Some(1.0), ..Change::default() },
            Change {
                at: at(240),
                corrupt: Some(0.0),
                jitter: Some(Jitter::uniform(at(5))),
                ..Change::default()
            },
        ];
    });
    let (_, fabric) = saturate(&config, 50, Time::NEVER);
    let totals = balance(&fabric);
    // A packet's impairments are drawn when its transmission begins: ten packets in each 60 ms. At a change, the packet
    // before it is under way.
    assert_eq!((totals.lost, totals.duplicated, totals.corrupted), (10, 10, 10));
}

#[test]
fn burst_loss_has_its_mean_rate_and_burst_length_on_a_link() {
    let chain = GilbertElliott::with_mean(0.05, 4.0).unwrap();
    let config = link(|link| {
        link.rate = Some(Rate::from_mbit_per_sec(1000));
        link.loss = Loss::Bursts(chain);
    });
    let (seen, fabric) = saturate(&config, 200_000, Time::NEVER);
    let lost = balance(&fabric).lost as f64;
    let bursts = seen.windows(2).filter(|pair| pair[1].0 > pair[0].0 + 1).count() as f64;
    assert!((lost / 200_000.0 / 0.05 - 1.0).abs() < 0.05, "{lost}");
    assert!((lost / bursts / 4.0 - 1.0).abs() < 0.05, "{lost} in {bursts}");
}

#[test]
fn a_station_sends_aggregates_that_arrive_at_once() {
    let config = link(|link| {
        link.rate = Some(Rate::from_mbit_per_sec(65));
        link.wifi = Some(Wifi { max_packets: 10, ..Wifi::default() });
    });
    let (seen, mut fabric) = saturate(&config, 1_001, Time::NEVER);
    // The first packet finds an empty queue, and contends; by then the others have come.
    let mut bursts: Vec<(Time, usize)> = vec![];
    for (_, at) in &seen {
        match bursts.last_mut() {
            Some((last, count)) if last == at => *count += 1,
            _ => bursts.push((*at, 1)),
        }
    }
    assert!(bursts[..100].iter().all(|(_, count)| *count == 10));
    assert_eq!((bursts.len(), bursts[100].1), (101, 1));
    // Ten packets are 123,542 bits in 476 symbols of 4 us: 1,940 us with the preamble. Then come SIFS and the
    // acknowledgement, 48 us, and AIFS and up to 15 slots, 43 to 178 us.
    for pair in bursts[..100].windows(2) {
        let gap = pair[1].0.since(pair[0].0).as_micros();
        assert!((1_940 + 48 + 43..=1_940 + 48 + 178).contains(&gap), "{gap}");
    }
    let (sent, capacity) = (1_001.0 * 1_500.0, fabric.take_link(1, bursts[100].0).capacity.get() as f64);
    assert!((0.86..0.90).contains(&(sent / capacity)), "{}", sent / capacity);
}

#[test]
fn a_wifi_station_with_a_trace_waits_while_the_rate_is_zero() {
    let config = link(|link| {
        played("0,65 Mbit/s\n1,0\n2,6.5 Mbit/s\n", false)(link);
        link.wifi = Some(Wifi::default());
    });
    let mut fabric: Fabric<Datagram> = Fabric::new(&config);
    assert!(fabric.advance(ms(1500)).is_none());
    fabric.inject(0, datagram(1, 2), ms(1500));
    // 12,374 bits in 476 symbols of 26.
    assert_eq!(fabric.advance(Time::NEVER).unwrap().at, ms(2000) + Span::from_micros(36 + 476 * 4));
}

#[test]
fn a_link_changes_when_its_driver_asks_for_it() {
    // 1500 bytes at 1 Mbit/s take 12 ms, at 4 Mbit/s 3 ms; the packet whose transmission has begun keeps its time.
    let config = link(|link| link.rate = Some(Rate::from_mbit_per_sec(1)));
    let mut fabric = Fabric::new(&config);
    fabric.expect_changes(&config);
    (1..=4).for_each(|i| fabric.inject(0, datagram(i, 2), Time::ZERO));
    let mut seen = vec![];
    let mut advance = |fabric: &mut Fabric<Datagram>, until| {
        while let Some(delivery) = fabric.advance(until) {
            seen.push((delivery.packet.number, delivery.at));
        }
    };
    advance(&mut fabric, ms(18));
    let rate = Some(Rate::from_mbit_per_sec(4));
    fabric.change_now(1, Change { at: Span::from_millis(18), rate, ..Change::default() });
    advance(&mut fabric, ms(26));
    // A plain link begins to lose packets.
    let loss = Some(Loss::Independent(1.0));
    fabric.change_now(1, Change { at: Span::from_millis(26), loss, ..Change::default() });
    advance(&mut fabric, LATER);
    // The fourth packet's transmission began at 27 ms.
    assert_eq!(seen, [(1, ms(12)), (2, ms(24)), (3, ms(27))]);
    assert_eq!(balance(&fabric).lost, 1);
}

#[test]
fn bit_errors_count_the_bytes_that_the_link_adds() {
    // With a rate of errors of one half no packet passes, and with none all do; 8 bits of overhead are bits too.
    let loses = |ber, overhead| {
        let config = link(|link| {
            link.loss = Loss::Errors(BitErrors { ber, times: None });
            link.overhead = Bytes::new(overhead);
        });
        balance(&saturate(&config, 2_000, Time::NEVER).1).lost
    };
    assert_eq!((loses(0.5, 0), loses(0.0, 0)), (2_000, 0));
    // 12,000 bits at 1e-5 lose 11.3 %; with 12,000 bits of overhead 21.3 %.
    let (plain, twice) = (loses(1e-5, 0), loses(1e-5, 1500));
    assert!((180..275).contains(&plain) && (370..485).contains(&twice), "{plain} {twice}");
}
