use super::*;
use crate::DeliveryName;
use weir_base::{Bytes, Rate, Span};

/// A stream of bytes or of messages, with a queue of 1,000 bytes and segments of 100.
fn outgoing(delivery: DeliveryName, messages: bool) -> Outgoing {
    let queue = Bytes::new(1000);
    Outgoing::new(
        3,
        &StreamParameters { delivery, queue, limit: 2, ..Default::default() },
        messages,
        (100, 40),
    )
}

/// The numbers of the segments that are sent now.
fn sent(outgoing: &mut Outgoing) -> Vec<u32> {
    std::iter::from_fn(|| outgoing.next(Time::ZERO))
        .map(|item| match item {
            Item::Data { data, .. } => data.sequence,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_long_message_is_segmented_and_its_ends_are_marked() {
    let mut outgoing = outgoing(DeliveryName::Reliable, true);
    let head: Vec<u8> = (0..150).map(|n| n as u8).collect();
    assert_eq!(outgoing.write(250, &head, Time::ZERO), 250);
    let mut seen = Vec::new();
    while let Some(Item::Data { data, .. }) = outgoing.next(Time::ZERO) {
        seen.push((data.length, data.flags.first, data.flags.last, outgoing.head(data.sequence).len()));
    }
    assert_eq!(seen, [(100, true, false, 100), (100, false, false, 50), (50, false, true, 0)]);
}

#[test]
fn a_reliable_segment_is_retransmitted_until_it_arrives() {
    let mut outgoing = outgoing(DeliveryName::Reliable, false);
    assert_eq!(outgoing.write(2000, &[], Time::ZERO), 1000);
    assert_eq!(sent(&mut outgoing), (0..10).collect::<Vec<_>>());
    outgoing.lost(2, 0);
    outgoing.arrived(0, 0, false);
    assert_eq!(sent(&mut outgoing), [2]);
    outgoing.lost(2, 0);
    outgoing.arrived(2, 0, true);
    assert!(!outgoing.has_again() || sent(&mut outgoing).is_empty());
    (1..10).for_each(|sequence| outgoing.arrived(sequence, 0, false));
    assert!(outgoing.is_settled());
    assert_eq!((outgoing.settled, outgoing.retransmitted), (1000, 1));
}

#[test]
fn a_best_effort_segment_is_given_up_at_its_first_loss_and_a_semi_reliable_one_at_its_limit() {
    for (delivery, times) in [(DeliveryName::BestEffort, 1), (DeliveryName::SemiReliable, 3)] {
        let mut outgoing = outgoing(delivery, true);
        outgoing.write(100, &[], Time::ZERO);
        for _ in 0..times {
            assert_eq!(sent(&mut outgoing), [0]);
            outgoing.lost(0, 0);
        }
        assert_eq!(outgoing.take_forward(), Some(1));
        assert!(outgoing.is_settled() && !outgoing.has_new());
    }
}

#[test]
fn a_message_that_does_not_fit_the_queue_is_refused_whole() {
    let mut outgoing = outgoing(DeliveryName::Reliable, true);
    assert_eq!(outgoing.write(900, &[], Time::ZERO), 900);
    assert_eq!(outgoing.write(101, &[], Time::ZERO), 0);
    assert_eq!(outgoing.write(100, &[], Time::ZERO), 100);
}

#[test]
fn a_full_queue_that_drops_the_oldest_keeps_the_newest_messages() {
    let mut outgoing = outgoing(DeliveryName::BestEffort, true);
    outgoing.drop = Drop::Oldest;
    for n in 0..5u8 {
        assert_eq!(outgoing.write(400, &[n], Time::ZERO), 400);
    }
    // 1,000 bytes hold two messages.
    let Some(Item::Data { data, .. }) = outgoing.next(Time::ZERO) else { panic!("nothing is sent") };
    assert_eq!((data.sequence, outgoing.head(0)), (0, &[3][..]));
    assert_eq!(outgoing.dropped, 1200);
    // A message that was sent in part stays; the next one is dropped with the outage.
    outgoing.drop_stale();
    assert_eq!(sent(&mut outgoing), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn messages_that_can_no_longer_arrive_in_time_are_dropped_before_they_are_sent() {
    let deadline = Some(Span::from_millis(50));
    let parameters = StreamParameters {
        delivery: DeliveryName::ArqFec,
        deadline,
        queue: Bytes::new(10_000),
        drop: Drop::Late,
        ..Default::default()
    };
    let mut outgoing = Outgoing::new(3, &parameters, true, (100, 40));
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    // Two segments each, at 0, 10 and 20 ms.
    for n in 0..3u64 {
        assert_eq!(outgoing.write(150, &[n as u8], at(10 * n)), 150);
    }
    outgoing.drop_late(at(60));
    assert_eq!(outgoing.dropped, 0, "the path's delay is unknown");
    let (rtt, owd) = (Span::from_millis(40), Span::from_millis(20));
    let rate = Rate::from_mbit_per_sec(1);
    outgoing.set_path(PathNow { per: 0.0, rtt, owd, least: (rtt, owd), rate, around: 40 });
    outgoing.drop_late(at(30));
    assert_eq!(outgoing.dropped, 0, "the first one would arrive exactly in time");
    let Some(Item::Data { data, .. }) = outgoing.next(at(30)) else { panic!("nothing is sent") };
    assert_eq!(data.sequence, 0);
    // A message that was sent in part stays, and those behind it wait for it.
    outgoing.drop_late(at(55));
    assert_eq!(outgoing.dropped, 0);
    let Some(Item::Data { .. }) = outgoing.next(at(55)) else { panic!("nothing is sent") };
    outgoing.drop_late(at(55));
    assert_eq!(outgoing.dropped, 300);
    assert!(!outgoing.has_new());
}

#[test]
fn a_stream_sends_no_more_segments_than_the_peer_allows() {
    let mut outgoing = outgoing(DeliveryName::Reliable, false);
    outgoing.keep_full();
    let window = credit::STREAM;
    (0..window).for_each(|sequence| {
        assert!(outgoing.next(Time::ZERO).is_some());
        outgoing.arrived(sequence, 0, false);
    });
    assert_eq!(outgoing.next(Time::ZERO), None);
    outgoing.allow(window + 2);
    assert_eq!(sent(&mut outgoing), [window, window + 1]);
}

#[test]
fn a_segment_lost_twice_is_retransmitted_before_later_ones() {
    let mut outgoing = outgoing(DeliveryName::Reliable, false);
    outgoing.write(1000, &[], Time::ZERO);
    sent(&mut outgoing);
    (0..10).for_each(|sequence| outgoing.lost(sequence, 0));
    let Some(Item::Data { data, .. }) = outgoing.next(Time::ZERO) else { panic!("nothing is retransmitted") };
    outgoing.lost(data.sequence, 0);
    assert_eq!(sent(&mut outgoing), (0..10).collect::<Vec<_>>());
}
