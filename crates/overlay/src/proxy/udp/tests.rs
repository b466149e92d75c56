use super::receiving::Receiving;
use super::release::Origin;
use super::sending::Sending;
use super::*;
use proptest::prelude::*;
use weir_base::Time;

/// The sum of all sources: one repair, which restores one source.
#[derive(Debug)]
pub(crate) struct Parity;

impl Code for Parity {
    fn encode(&self, sources: &[&[u8]], _: usize, repair: &mut Vec<u8>) {
        repair.clear();
        repair.resize(sources.iter().map(|source| source.len()).max().unwrap_or(0), 0);
        for source in sources {
            repair.iter_mut().zip(*source).for_each(|(sum, byte)| *sum ^= byte);
        }
    }
    fn restore(&self, sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool {
        let missing: Vec<usize> = (0..sources.len()).filter(|at| sources[*at].is_none()).collect();
        let (&[at], Some((_, repair))) = (&missing[..], repairs.first()) else { return false };
        let mut sum = repair.to_vec();
        for source in sources.iter().flatten() {
            sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
        }
        sources[at] = Some(sum);
        true
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}
/// The datagrams of some packets.
fn sent(service: Service, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut sending, mut sent) = (Sending::new(service), Vec::new());
    for packet in packets {
        assert!(sending.packet(packet, &Parity, at(0), |bytes| sent.push(bytes.to_vec())));
    }
    sending.on_timer(&Parity, at(1000), |bytes| sent.push(bytes.to_vec()));
    sent
}
/// What is released of datagrams that come one each millisecond.
fn released(datagrams: &[Vec<u8>]) -> (Vec<Vec<u8>>, Receiving) {
    let (mut receiving, mut released) = (Receiving::default(), Vec::new());
    for (datagram, millis) in datagrams.iter().zip(0..) {
        receiving.datagram(datagram, None, &Parity, at(millis), |packet, _| released.push(packet.to_vec()));
    }
    receiving.on_timer(at(100_000), |packet, _| released.push(packet.to_vec()));
    (released, receiving)
}
fn packet(number: u8, length: usize) -> Vec<u8> {
    vec![number; length]
}

#[test]
fn a_packet_is_cut_into_chunks_and_put_together_again() {
    let service = Service { chunk: 100, ..Service::default() };
    let packets = [packet(1, 250), packet(2, 100), packet(3, 0)];
    let datagrams = sent(service, &packets);
    assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [122, 122, 72, 122, 22]);
    assert_eq!(released(&datagrams).0, packets);
    let mut sending = Sending::new(service);
    assert!(!sending.packet(&packet(1, 3101), &Parity, at(0), |_| panic!("32 chunks are refused")));
}

#[test]
fn a_repair_restores_a_lost_chunk() {
    let service = Service { base: 3, total: 4, hold: Span::from_millis(10), ..Service::default() };
    let packets = [packet(1, 50), packet(2, 80), packet(3, 20), packet(4, 30)];
    let mut datagrams = sent(service, &packets);
    // Three sources, a repair, and a source with the repair of a group that time has closed.
    assert_eq!(datagrams.len(), 6);
    datagrams.remove(1);
    let (mut had, receiving) = released(&datagrams);
    had.sort();
    assert_eq!((had.as_slice(), receiving.restored()), (&packets[..], 1));
}

#[test]
fn short_packets_are_joined_while_there_is_room_and_time() {
    let service = Service { chunk: 100, join: Some(Span::from_millis(5)), ..Service::default() };
    let (mut sending, mut sent) = (Sending::new(service), Vec::new());
    let send = |sending: &mut Sending, packet: &[u8], now: Time, sent: &mut Vec<Vec<u8>>| {
        assert!(sending.packet(packet, &Parity, now, |bytes| sent.push(bytes.to_vec())));
    };
    let packets = [
        packet(1, 40),
        packet(2, 0),
        packet(3, 50),
        packet(4, 60),
        packet(5, 98),
        packet(6, 99),
        packet(7, 10),
    ];
    send(&mut sending, &packets[0], at(0), &mut sent);
    assert_eq!((sending.next_time(), sent.len()), (at(5), 0));
    send(&mut sending, &packets[1], at(1), &mut sent);
    // The third fits, and the fourth does not: three leave together.
    send(&mut sending, &packets[2], at(2), &mut sent);
    send(&mut sending, &packets[3], at(3), &mut sent);
    assert_eq!(
        (sent.iter().map(Vec::len).collect::<Vec<_>>(), sending.next_time()),
        (vec![96 + ORIGINAL], at(8))
    );
    // One that waits alone leaves as it is, also before one that is too long to be joined.
    send(&mut sending, &packets[4], at(4), &mut sent);
    send(&mut sending, &packets[5], at(5), &mut sent);
    assert_eq!(
        sent[1..].iter().map(Vec::len).collect::<Vec<_>>(),
        [60, 98, 99].map(|length| length + ORIGINAL)
    );
    send(&mut sending, &packets[6], at(6), &mut sent);
    sending.on_timer(&Parity, at(10), |_| panic!("it waits"));
    sending.on_timer(&Parity, at(11), |bytes| sent.push(bytes.to_vec()));
    assert_eq!((sent[4].len(), sending.next_time()), (10 + ORIGINAL, Time::NEVER));
    assert_eq!(released(&sent).0, packets);
}

#[test]
fn what_a_blob_says_of_its_packets_is_not_believed() {
    let service = Service { join: Some(Span::from_millis(5)), ..Service::default() };
    let mut datagrams = sent(service, &[packet(1, 10), packet(2, 10)]);
    assert_eq!(datagrams.len(), 1);
    // The second packet says that it is longer than what is there.
    datagrams[0][13] += 1;
    assert_eq!(released(&datagrams).0, [packet(1, 10)]);
}

#[test]
fn timed_packets_come_with_the_time_of_their_origin_also_when_they_are_joined_cut_or_restored() {
    let [base, total] = [3, 4];
    let service = Service {
        base,
        total,
        chunk: 100,
        is_timed: true,
        join: Some(Span::from_millis(2)),
        ..Service::default()
    };
    let packets = [packet(1, 20), packet(2, 30), packet(3, 250), packet(4, 96)];
    let (mut sending, mut datagrams) = (Sending::new(service), Vec::new());
    for (number, packet) in (0..).zip(&packets) {
        assert!(sending.packet(packet, &Parity, at(number), |bytes| datagrams.push(bytes.to_vec())));
    }
    sending.on_timer(&Parity, at(10), |bytes| datagrams.push(bytes.to_vec()));
    for lost in 0..3 {
        let mut come = datagrams.clone();
        come.remove(lost);
        let (mut receiving, mut had) = (Receiving::default(), Vec::new());
        for datagram in &come {
            receiving.datagram(datagram, None, &Parity, at(100), |packet, origin| {
                had.push((packet.to_vec(), origin))
            });
        }
        had.sort_by_key(|(packet, _)| packet[0]);
        let expected: Vec<_> = (0..)
            .zip(&packets)
            .map(|(number, packet)| (packet.clone(), Some(Origin::at(at(number)))))
            .collect();
        assert_eq!(had, expected, "without {lost}");
    }
}

#[test]
fn packets_wait_for_predecessors_as_long_as_the_service_says_and_no_longer_than_their_deadline() {
    let hold_back = Some(Span::from_millis(100));
    let service = Service { hold_back, ..Service::default() };
    let packets = [packet(1, 10), packet(2, 10), packet(3, 10)];
    let datagrams = sent(service, &packets);
    let mut receiving = Receiving::default();
    let mut had = Vec::new();
    let mut take = |receiving: &mut Receiving, which: usize, due: Option<Time>, now: Time| {
        receiving.datagram(&datagrams[which], due, &Parity, now, |packet, _| had.push((packet[0], now)));
    };
    take(&mut receiving, 0, None, at(0));
    take(&mut receiving, 2, None, at(1));
    take(&mut receiving, 1, None, at(50));
    assert_eq!(had, [(1, at(0)), (2, at(50)), (3, at(50))]);
    let mut receiving = Receiving::default();
    receiving.datagram(&datagrams[0], None, &Parity, at(0), |_, _| ());
    receiving.datagram(&datagrams[2], Some(at(30)), &Parity, at(1), |_, _| panic!("it waits for packet 2"));
    assert_eq!(receiving.next_time(), at(30));
    let mut had = 0;
    receiving.on_timer(at(30), |packet, _| had = packet[0]);
    assert_eq!(had, 3);
    receiving.datagram(&datagrams[1], None, &Parity, at(60), |_, _| panic!("it is too late"));
    assert_eq!(receiving.late(), 1);
}

#[test]
fn every_datagram_of_a_service_fits_the_packets_for_which_it_was_made() {
    for (base, total) in [(1, 1), (3, 5)] {
        let service = Service { base, total, ..Service::default() }.within(400);
        let packets = [packet(1, 3000), packet(2, 10)];
        let longest = sent(service, &packets).iter().map(Vec::len).max();
        assert_eq!(longest, Some(400), "{base} of {total}");
    }
}

#[test]
fn a_service_outside_its_ranges_is_refused() {
    let fault = |service: Service| service.fault().map(|fault| fault.key);
    assert_eq!(fault(Service::default()), None);
    assert_eq!(fault(Service { base: 0, ..Service::default() }), Some("base"));
    assert_eq!(fault(Service { base: 16, total: 33, ..Service::default() }), Some("total"));
    assert_eq!(fault(Service { base: 17, total: 20, ..Service::default() }), Some("base"));
    assert_eq!(fault(Service { chunk: 0, ..Service::default() }), Some("chunk"));
}

proptest! {
    #[test]
    fn packets_arrive_once_and_whole_whatever_is_lost_repeated_or_reordered(
        lengths in prop::collection::vec(0usize..400, 1..40),
        base in 1u8..6,
        coded in any::<bool>(),
        join in prop::option::of(1u64..10),
        is_timed in any::<bool>(),
        hold in 0u64..50,
        order in prop::collection::vec((any::<prop::sample::Index>(), 0u8..10), 0..200),
    ) {
        let total = base + u8::from(coded);
        let hold_back = Some(Span::from_millis(hold));
        let join = join.map(Span::from_millis);
        let service = Service { base, total, chunk: 100, join, is_timed, hold_back, ..Service::default() };
        let packets: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(number, length)| packet(number, *length)).collect();
        let mut datagrams = sent(service, &packets);
        for (which, what) in order {
            let at = which.index(datagrams.len().max(1));
            match what {
                0..=2 if at + 1 < datagrams.len() => datagrams.swap(at, at + 1),
                3 if at < datagrams.len() => drop(datagrams.remove(at)),
                4 if at < datagrams.len() => datagrams.insert(at, datagrams[at].clone()),
                _ => {}
            }
        }
        let (had, _) = released(&datagrams);
        let mut left: Vec<&Vec<u8>> = packets.iter().collect();
        for packet in &had {
            let place = left.iter().position(|one| *one == packet);
            prop_assert!(place.is_some(), "a packet that was not sent, or twice: {:?}", packet.first());
            left.remove(place.unwrap());
        }
    }

    #[test]
    fn nothing_that_arrives_makes_the_receiver_fail_or_hold_without_bound(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..200),
    ) {
        let (_, receiving) = released(&datagrams);
        prop_assert_eq!(receiving.next_time(), Time::NEVER);
    }
}
