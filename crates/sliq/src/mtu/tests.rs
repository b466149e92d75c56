use super::*;

fn at(secs: u64) -> Time {
    Time::ZERO + Span::from_secs(secs)
}

/// An acknowledgement of one packet.
fn ack(number: u32) -> Ack {
    Ack::new(number, 0, 0, 0)
}

/// Searches over a path that carries packets of `carries` bytes, with a probe each second, until no probe is due for a minute. Returns the
/// size that was found, and the sizes that were probed.
fn search(mtu: &mut PathMtu, carries: u32, number: &mut u32, now: &mut Time) -> (u32, Vec<u32>) {
    let mut tried = Vec::new();
    while mtu.next_timer() < *now + Span::from_secs(60) {
        *now += Span::from_secs(1);
        let Some(size) = mtu.on_time(*now) else { continue };
        mtu.sent(u64::from(*number), size, Span::ZERO, *now);
        tried.push(size);
        if size <= carries {
            mtu.on_ack(&ack(*number), u64::from(*number), 0.0, *now);
        }
        *number += 1;
    }
    (mtu.carried(), tried)
}

#[test]
fn the_search_probes_the_largest_size_first_and_then_halves_the_interval() {
    let (mut number, mut now) = (0, Time::ZERO);
    let mut mtu = PathMtu::new(1472).unwrap();
    assert_eq!(search(&mut mtu, 1472, &mut number, &mut now), (1472, vec![1472]));
    assert_eq!(mtu.next_timer(), Time::NEVER);

    let mut mtu = PathMtu::new(1472).unwrap();
    let (found, tried) = search(&mut mtu, 1372, &mut number, &mut now);
    // A size that does not pass is probed three times.
    assert_eq!(tried, [1472, 1472, 1472, 1336, 1404, 1404, 1404, 1370, 1387, 1387, 1387, 1378, 1378, 1378]);
    assert_eq!(found, 1370);
    assert!(PathMtu::new(BASE).is_none());
}

#[test]
fn a_larger_path_mtu_is_found_after_ten_minutes() {
    let (mut number, mut now) = (0, Time::ZERO);
    let mut mtu = PathMtu::new(1472).unwrap();
    search(&mut mtu, 1300, &mut number, &mut now);
    let before = now;
    assert!(mtu.next_timer().since(before) > Span::from_secs(590));
    now = mtu.next_timer();
    assert_eq!(search(&mut mtu, 1472, &mut number, &mut now), (1472, vec![1472]));
}

#[test]
fn a_probe_is_lost_when_a_packet_three_numbers_later_has_arrived() {
    let mut mtu = PathMtu::new(1472).unwrap();
    assert_eq!(mtu.on_time(at(0)), Some(1472));
    mtu.sent(5, 1472, Span::ZERO, at(0));
    assert!(!mtu.on_ack(&ack(7), 7, 0.0, at(0)));
    assert_eq!(mtu.on_time(at(0)), None);
    assert!(!mtu.on_ack(&ack(8), 8, 0.0, at(0)));
    assert_eq!((mtu.on_time(at(0)), mtu.take_in_vain()), (Some(1472), 1));
}

/// A path that carries 1,472 bytes.
fn found() -> PathMtu {
    let mut mtu = PathMtu::new(1472).unwrap();
    search(&mut mtu, 1472, &mut 0, &mut Time::ZERO.clone());
    mtu
}

#[test]
fn three_large_packets_lost_while_a_shorter_one_arrives_are_a_black_hole() {
    let mut mtu = found();
    (10..13).for_each(|number| mtu.large(number, false));
    // The packet that has arrived left before the lost ones.
    assert!(!mtu.on_ack(&ack(9), 9, 0.0, at(1)));
    assert!(mtu.on_ack(&ack(13), 13, 0.0, at(1)));
    assert_eq!(mtu.carried(), BASE);
    // The sizes between are searched again at once.
    assert_eq!(mtu.on_time(at(1)), Some(1336));
}

#[test]
fn losses_of_large_packets_while_others_arrive_are_no_black_hole() {
    let mut mtu = found();
    mtu.large(20, true);
    (10..20).for_each(|number| mtu.large(number, false));
    assert!(!mtu.on_ack(&ack(20), 20, 0.0, at(1)));
    (21..30).for_each(|number| mtu.large(number, false));
    mtu.large(30, true);
    assert!(!mtu.on_ack(&ack(31), 31, 0.0, at(1)));
    // At a loss of one half ten losses in a row are as unlikely as two in a row at 3 %.
    (31..40).for_each(|number| mtu.large(number, false));
    assert!(!mtu.on_ack(&ack(41), 41, 0.5, at(1)));
    mtu.large(40, false);
    assert!(mtu.on_ack(&ack(41), 41, 0.5, at(1)));
}
