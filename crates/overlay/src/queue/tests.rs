use super::*;
use crate::harness::{Load, at, group, id, node, set};
use crate::packet::Flow;

type Held = Queues<Load, ()>;

fn packet(to: Key, receivers: &[u8], bytes: u32) -> Packet<Load> {
    Packet {
        flow: Flow { source: id(0), generation: 0, number: 0 },
        sequence: 0,
        to,
        receivers: set(receivers),
        due: None,
        is_sensitive: false,
        visited: Nodes::EMPTY,
        hops: 0,
        ecn: 0,
        checksum: 0,
        body: Load { source: 0, bytes, sent: at(0), trace: Nodes::EMPTY, came_back: false },
    }
}

fn put(queues: &mut Held, to: Key, receivers: &[u8], bytes: u32, class: Class) -> bool {
    matches!(queues.enqueue(packet(to, receivers, bytes), class, at(0), at(0)), Queued::Waits(_))
}

fn bytes(queues: &Held, to: Key, node: u8, class: Class) -> u64 {
    let at = queues.find(to).unwrap();
    queues.bin(at).destinations.get(id(node)).map_or(0, |one| one.bytes(class))
}

#[test]
fn there_are_ten_classes_of_which_six_are_sensitive_and_four_hold_packets() {
    assert_eq!(Class::ALL.iter().filter(|class| class.is_sensitive()).count(), 6);
    assert_eq!(Class::ALL.iter().filter(|class| class.is_real()).count(), 4);
    assert!(Class::ALL.is_sorted());
}

#[test]
fn a_group_packet_counts_for_each_receiver_and_stays_for_those_left() {
    let mut queues = Held::new(Limits::default());
    assert!(put(&mut queues, group(7), &[1, 2, 3], 1000, Class::Normal));
    let bin = queues.find(group(7)).unwrap();
    let place = queues.bin(bin).first(Class::Normal).unwrap();
    let copy = queues.take(bin, Class::Normal, place, set(&[2, 9]), at(1)).unwrap();
    assert_eq!(copy.receivers, set(&[2]));
    assert_eq!([1, 2, 3].map(|node| bytes(&queues, group(7), node, Class::Normal)), [1000, 0, 1000]);
    assert_eq!(queues.packets(), 1);
    let rest = queues.take(bin, Class::Normal, place, set(&[1, 3]), at(1)).unwrap();
    assert_eq!((rest.receivers, queues.packets()), (set(&[1, 3]), 0));
    assert!(queues.active().is_empty());
}

#[test]
fn sensitive_packets_leave_by_the_time_they_can_spare() {
    let mut queues = Held::new(Limits::default());
    for rank in [30, 10, 20] {
        let sent = Packet { sequence: rank, ..packet(node(1), &[1], 100) };
        queues.enqueue(sent, Class::LowLatency, at(rank.into()), at(0));
    }
    let bin = queues.find(node(1)).unwrap();
    let mut order = vec![];
    while let Some(place) = queues.bin(bin).first(Class::LowLatency) {
        order.push(queues.take(bin, Class::LowLatency, place, set(&[1]), at(0)).unwrap().sequence);
    }
    assert_eq!(order, [10, 20, 30]);
}

#[test]
fn a_full_list_refuses_or_gives_way_at_its_head_or_tail() {
    let fill = |overflow| {
        let mut queues = Held::new(Limits { packets: 2, overflow, ..Limits::default() });
        let mut out = vec![];
        for sequence in 1..=3 {
            match queues.enqueue(
                Packet { sequence, ..packet(node(1), &[1], 100) },
                Class::Normal,
                at(0),
                at(0),
            ) {
                Queued::Waits(_) => {}
                Queued::Refused(gone) | Queued::Displaced(_, gone) => out.push(gone.sequence),
            }
        }
        (out, queues.packets(), bytes(&queues, node(1), 1, Class::Normal))
    };
    assert_eq!(fill(Overflow::Refuse), (vec![3], 2, 200));
    assert_eq!(fill(Overflow::DropHead), (vec![1], 2, 200));
    assert_eq!(fill(Overflow::DropTail), (vec![2], 2, 200));
}

#[test]
fn memory_is_bounded_by_packets_and_by_groups() {
    let mut queues = Held::new(Limits { total: 5, groups: 3, ..Limits::default() });
    let taken = (0..10).filter(|number| put(&mut queues, group(*number), &[1], 10, Class::Normal)).count();
    assert_eq!(taken, 3);
    let taken =
        (0..10).filter(|number| put(&mut queues, node(*number), &[*number], 10, Class::Normal)).count();
    assert_eq!((taken, queues.packets()), (2, 5));
}

#[test]
fn zombies_keep_a_bin_active_until_they_have_left() {
    let mut queues = Held::new(Limits::default());
    put(&mut queues, node(1), &[1], 500, Class::Normal);
    let bin = queues.find(node(1)).unwrap();
    queues.add_zombies(bin, id(1), Class::Virtual, 700);
    let place = queues.bin(bin).first(Class::Normal).unwrap();
    queues.take(bin, Class::Normal, place, set(&[1]), at(0));
    assert_eq!(
        queues.bin(bin).destinations.get(id(1)).map(|one| (one.real(false), one.zombies(false))),
        Some((0, 700))
    );
    assert_eq!(queues.active().len(), 1);
    assert_eq!(queues.take_zombies(bin, id(1), Class::Virtual, 1024), 700);
    assert!(queues.active().is_empty());
}

#[test]
fn coded_packets_are_interchangeable_and_as_many_as_the_most_that_is_owed() {
    let mut queues = Held::new(Limits::default());
    for sequence in 0..3 {
        queues.enqueue(Packet { sequence, ..packet(group(7), &[1, 2], 100) }, Class::Normal, at(0), at(0));
    }
    let bin = queues.find(group(7)).unwrap();
    // Node 1 is served twice, node 2 not at all: three packets are still owed to it.
    for sequence in 0..2 {
        let sent = queues.take_coded(bin, Class::Normal, set(&[1]), at(0)).unwrap();
        assert_eq!(sent.sequence, sequence);
    }
    assert_eq!(queues.packets(), 3);
    queues.take_coded(bin, Class::Normal, set(&[1, 2]), at(0)).unwrap();
    assert_eq!(queues.packets(), 2);
    for _ in 0..2 {
        queues.take_coded(bin, Class::Normal, set(&[2]), at(0)).unwrap();
    }
    assert!(queues.packets() == 0 && queues.active().is_empty());
}

#[test]
fn active_bins_stay_listed_whatever_the_order_in_which_they_empty() {
    let mut queues = Held::new(Limits::default());
    (1..6).for_each(|n| assert!(put(&mut queues, node(n), &[n], 10, Class::Normal)));
    for n in [1, 5, 3, 2, 4] {
        let bin = queues.find(node(n)).unwrap();
        let place = queues.bin(bin).first(Class::Normal).unwrap();
        queues.take(bin, Class::Normal, place, set(&[n]), at(0)).unwrap();
        let listed = queues.active().iter().all(|at| queues.bin(*at).packets(Class::Normal) == 1);
        assert!(listed && !queues.active().contains(&bin));
    }
}

#[test]
fn packets_for_the_same_receivers_stand_together_by_age() {
    let mut queues = Held::new(Limits::default());
    for receivers in [&[1, 2][..], &[1], &[1, 2], &[2, 1]] {
        assert!(put(&mut queues, group(7), receivers, 100, Class::Normal));
    }
    let bin = queues.find(group(7)).unwrap();
    let sets = |queues: &Held| {
        let mut sets: Vec<(Nodes, u64)> =
            queues.bin(bin).sets().map(|(receivers, place)| (receivers, queues.age(place))).collect();
        sets.sort_unstable_by_key(|(_, age)| *age);
        sets
    };
    assert_eq!(sets(&queues), [(set(&[1, 2]), 1), (set(&[1]), 2)]);
    // The oldest leaves for one receiver: it is now the oldest of those for the other alone.
    let oldest = queues.bin(bin).first(Class::Normal).unwrap();
    assert!(queues.take(bin, Class::Normal, oldest, set(&[2]), at(1)).is_some());
    assert_eq!(sets(&queues), [(set(&[1]), 1), (set(&[1, 2]), 3)]);
    for _ in 0..4 {
        let (receivers, place) = queues.bin(bin).sets().next().unwrap();
        assert!(queues.take(bin, Class::Normal, place, receivers, at(2)).is_some());
    }
    assert!(sets(&queues).is_empty() && queues.active().is_empty());
}
