use super::*;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Five segments of 100 bytes, sent at 0 to 4 ms as packets 0 to 4.
fn five() -> Sender {
    let mut sender = Sender::new(100);
    assert_eq!(sender.write(500, 1000), 500);
    for n in 0..5 {
        let sent = sender.transmit(ms(n.into())).unwrap();
        assert_eq!(
            sent,
            Transmission { number: n, sequence: n, length: 100, at: 100 * u64::from(n), fin: false }
        );
    }
    assert_eq!(sender.transmit(ms(5)), None);
    sender
}

#[test]
fn a_transmission_is_lost_when_three_later_ones_were_echoed() {
    let mut sender = five();
    sender.acknowledged(1, 0, ms(50));
    sender.acknowledged(2, 0, ms(51));
    assert!(!sender.has_more());
    sender.acknowledged(3, 0, ms(52));
    assert!(sender.is_recovering());
    let again = Transmission { number: 5, sequence: 0, length: 100, at: 0, fin: false };
    assert_eq!(sender.transmit(ms(53)), Some(again));
    assert!(sender.is_recovering(), "until it has arrived");
    // The echo of the retransmission brings the acknowledgement of all four, and a sample of its own.
    sender.acknowledged(5, 4, ms(103));
    assert_eq!((sender.held(), sender.retransmitted, sender.is_recovering()), (100, 1, false));
    assert_eq!(sender.first, 4);
}

/// Segment 0 is lost; packets 1 to 4 are echoed, each with its number as the hole. Answers when it is retransmitted, in ms.
fn retransmissions(holes: Holes) -> Vec<u64> {
    let mut sender = five().with_holes(holes);
    let mut left = vec![];
    for echo in 1..5 {
        let now = 50 + u64::from(echo);
        sender.acknowledged(echo, 0, ms(now));
        sender.hole(0, echo);
        left.extend(sender.transmit(ms(now)).map(|sent| {
            assert_eq!(sent.sequence, 0);
            now
        }));
    }
    sender.acknowledged(5, 5, ms(103));
    assert!(sender.all_acknowledged() && !sender.is_recovering());
    left
}

#[test]
fn a_hole_is_retransmitted_after_three_echoes_or_once_or_at_each_report() {
    assert_eq!(retransmissions(Holes::Unused), [53]);
    assert_eq!(retransmissions(Holes::Once), [51]);
    assert_eq!(retransmissions(Holes::Each), [51, 52, 53, 54]);
}

#[test]
fn a_hole_outside_the_sent_segments_causes_no_loss() {
    let mut sender = five().with_holes(Holes::Each);
    sender.hole(77, 3);
    sender.hole(u32::MAX, 3);
    assert!(!sender.is_recovering() && !sender.has_more());
}

#[test]
fn the_next_acknowledgement_covers_lost_ones() {
    let mut sender = five();
    sender.acknowledged(4, 5, ms(54));
    assert!(sender.all_acknowledged() && !sender.has_more());
    assert_eq!(sender.next_timer(), Time::NEVER);
}

#[test]
fn a_timeout_retransmits_everything_and_doubles() {
    let mut sender = five();
    assert_eq!(sender.next_timer(), ms(1000));
    sender.on_timer(ms(1000));
    assert_eq!(sender.next_timer(), ms(3000));
    let again: Vec<u32> =
        std::iter::from_fn(|| sender.transmit(ms(1001))).map(|sent| sent.sequence).collect();
    assert_eq!(again, [0, 1, 2, 3, 4]);
    // A late echo of the first transmission still counts for its segment.
    sender.acknowledged(0, 1, ms(1002));
    assert_eq!((sender.held(), sender.is_recovering()), (400, true));
    // After a second loss and one acknowledgement of all segments, nothing is left to repair.
    sender.on_timer(ms(9000));
    sender.acknowledged(9, 5, ms(9001));
    assert_eq!((sender.held(), sender.has_more(), sender.is_recovering()), (0, false, false));
}

#[test]
fn a_threshold_bounds_the_written_and_unacknowledged_bytes() {
    let mut sender = five();
    assert_eq!(sender.write(1000, 700), 200);
    assert_eq!(sender.write(1000, 700), 0);
    sender.acknowledged(2, 3, ms(50));
    assert_eq!(sender.write(1000, 700), 300);
}

#[test]
fn messages_that_are_kept_apart_share_no_segment() {
    let mut sender = Sender::new(100).with_messages_apart();
    assert_eq!([sender.write(250, 400), sender.write(0, 400), sender.write(120, 400)], [250, 0, 120]);
    let lengths = |sender: &mut Sender| -> Vec<u32> {
        std::iter::from_fn(|| sender.transmit(ms(1))).map(|sent| sent.length).collect()
    };
    assert_eq!(lengths(&mut sender), [100, 100, 50, 100, 20]);
    assert_eq!([sender.write(300, 620), sender.write(100, 620)], [200, 0], "250 bytes of room, then 50");
    sender.acknowledged(2, 3, ms(50));
    assert_eq!(sender.write(100, 620), 100, "what was left of it");
    assert_eq!(sender.write(70, 620), 70);
    assert_eq!(lengths(&mut sender), [100, 100, 100, 70]);
}

#[test]
fn the_end_of_the_stream_is_a_separate_segment() {
    let mut sender = five();
    sender.close();
    assert!(sender.has_more() && !sender.all_acknowledged());
    let fin = Transmission { number: 5, sequence: 5, length: 0, at: 500, fin: true };
    assert_eq!(sender.transmit(ms(9)), Some(fin));
    sender.acknowledged(5, 6, ms(60));
    assert!(sender.all_acknowledged() && !sender.has_more());
    assert_eq!(sender.write(1, 1000), 0);
}

#[test]
fn acknowledgements_of_unsent_segments_are_ignored() {
    let mut sender = five();
    sender.acknowledged(77, 9, ms(50));
    sender.acknowledged(77, 0, ms(50));
    assert_eq!(sender.held(), 500);
}
