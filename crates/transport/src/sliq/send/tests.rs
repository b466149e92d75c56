use super::*;

fn outgoing(delivery: Delivery, ordered: bool) -> Outgoing {
    Outgoing::new(3, delivery, ordered, !ordered, 100, 1000)
}

/// Sequences of what is sent now.
fn sent(outgoing: &mut Outgoing) -> Vec<u32> {
    std::iter::from_fn(|| outgoing.next(Time::ZERO))
        .map(|item| match item {
            Item::Data { data, .. } => data.sequence,
            Item::Repair(repair, _) => panic!("{repair:?}"),
        })
        .collect()
}

#[test]
fn a_long_message_is_cut_and_its_ends_are_marked() {
    let mut outgoing = outgoing(Delivery::Reliable, false);
    let head: Vec<u8> = (0..150).map(|n| n as u8).collect();
    assert_eq!(outgoing.write(250, &head, Time::ZERO), 250);
    let mut seen = Vec::new();
    while let Some(Item::Data { data, .. }) = outgoing.next(Time::ZERO) {
        seen.push((data.length, data.flags.first, data.flags.last, outgoing.head(data.sequence).len()));
    }
    assert_eq!(seen, [(100, true, false, 100), (100, false, false, 50), (50, false, true, 0)]);
}

#[test]
fn a_reliable_segment_is_sent_again_until_it_arrives() {
    let mut outgoing = outgoing(Delivery::Reliable, true);
    assert_eq!(outgoing.write(2000, &[], Time::ZERO), 1000);
    assert_eq!(sent(&mut outgoing), (0..10).collect::<Vec<_>>());
    outgoing.lost(2, 0);
    outgoing.arrived(0, 0, false);
    assert_eq!(sent(&mut outgoing), [2]);
    outgoing.lost(2, 0);
    outgoing.arrived(2, 0, true);
    assert!(!outgoing.has_more() || sent(&mut outgoing).is_empty());
    (1..10).for_each(|sequence| outgoing.arrived(sequence, 0, false));
    assert!(outgoing.is_settled());
    assert_eq!((outgoing.settled, outgoing.retransmitted), (1000, 1));
}

#[test]
fn best_effort_gives_up_at_once_and_semi_reliable_after_its_limit() {
    for (delivery, times) in [(Delivery::BestEffort, 1), (Delivery::SemiReliable { limit: 2 }, 3)] {
        let mut outgoing = outgoing(delivery, false);
        outgoing.write(100, &[], Time::ZERO);
        for _ in 0..times {
            assert_eq!(sent(&mut outgoing), [0]);
            outgoing.lost(0, 0);
        }
        assert_eq!(outgoing.take_forward(), Some(1));
        assert!(outgoing.is_settled() && !outgoing.has_more());
    }
}

#[test]
fn a_message_beyond_the_limit_is_refused_whole() {
    let mut outgoing = outgoing(Delivery::Reliable, false);
    assert_eq!(outgoing.write(900, &[], Time::ZERO), 900);
    assert_eq!(outgoing.write(101, &[], Time::ZERO), 0);
    assert_eq!(outgoing.write(100, &[], Time::ZERO), 100);
}
