//! The calendar in cases worked out by hand, and in a million random operations against an oracle that counts
//! second by second.

use super::*;
use weir_base::Random;

fn mbit(megabits: u64) -> Rate {
    Rate::from_mbit_per_sec(megabits)
}
fn gigabit() -> Card {
    Card { rate: mbit(1000), background: Rate::default() }
}
fn at(secs: u64) -> Utc {
    Utc::from_secs(secs)
}
fn circuit(to: u8, megabits: u64, from: u64, until: u64) -> Circuit {
    Circuit {
        device: "eth0".into(),
        destination: format!("10.0.0.{to}").parse().unwrap(),
        rate: mbit(megabits),
        rtt: Span::from_millis(50),
        guarantee: Guarantee::Full,
        from: at(from),
        until: at(until),
    }
}

/// A calendar with these circuits, numbered from 1.
fn with(circuits: &[Circuit]) -> Calendar {
    let mut calendar = Calendar::default();
    for (number, circuit) in (1..).zip(circuits) {
        assert_eq!(calendar.admit(circuit, &gigabit()), Ok(()));
        calendar.insert(number, circuit.clone());
    }
    calendar
}

#[test]
fn circuits_share_a_card_up_to_its_rate() {
    let calendar = with(&[circuit(1, 600, 100, 200), circuit(2, 400, 150, 250)]);
    let full = Conflict::Full { at: at(150), free: Rate::default(), with: vec![1, 2] };
    assert_eq!(calendar.admit(&circuit(3, 1, 100, 200), &gigabit()), Err(full));
    // 600 Mbit/s are reserved until 150 s, 400 Mbit/s from 200 s on.
    assert_eq!(calendar.admit(&circuit(3, 400, 100, 150), &gigabit()), Ok(()));
    let full = Conflict::Full { at: at(200), free: mbit(600), with: vec![2] };
    assert_eq!(calendar.admit(&circuit(3, 601, 200, 300), &gigabit()), Err(full));
    let elsewhere = Circuit { device: "eth1".into(), ..circuit(3, 1000, 100, 200) };
    assert_eq!(calendar.admit(&elsewhere, &gigabit()), Ok(()));
}

#[test]
fn a_circuit_may_begin_in_the_second_in_which_another_ends() {
    let calendar = with(&[circuit(1, 1000, 100, 200), circuit(1, 1000, 200, 300), circuit(1, 1000, 99, 100)]);
    assert_eq!(calendar.peak("eth0", at(99), at(300)), (at(99), 1_000_000_000));
    assert_eq!(calendar.peak("eth0", at(300), at(400)), (at(300), 0));
}

#[test]
fn a_destination_has_one_circuit_at_a_time() {
    let calendar = with(&[circuit(1, 100, 100, 200), circuit(1, 100, 300, 400)]);
    for (from, until, with) in [(199, 300, 1), (100, 101, 1), (50, 101, 1), (200, 301, 2), (50, 500, 1)] {
        let refused = calendar.admit(&circuit(1, 100, from, until), &gigabit());
        assert_eq!(refused, Err(Conflict::Overlap { with }), "{from} to {until}");
    }
    assert_eq!(calendar.admit(&circuit(1, 100, 200, 300), &gigabit()), Ok(()));
}

#[test]
fn a_semi_guaranteed_circuit_leaves_room_for_the_background() {
    let calendar = with(&[circuit(1, 300, 0, 100)]);
    let card = Card { background: mbit(350), ..gigabit() };
    let semi = |megabits| Circuit { guarantee: Guarantee::Semi, ..circuit(2, megabits, 0, 100) };
    assert_eq!(calendar.admit(&semi(350), &card), Ok(()));
    let full = Conflict::Full { at: at(0), free: mbit(350), with: vec![1] };
    assert_eq!(calendar.admit(&semi(351), &card), Err(full));
    assert_eq!(calendar.admit(&circuit(2, 700, 0, 100), &card), Ok(()), "a guaranteed one is scheduled");
}

#[test]
fn a_circuit_that_is_empty_or_without_rate_or_above_the_card_is_refused() {
    let admit = |circuit| Calendar::default().admit(&circuit, &gigabit());
    assert_eq!(admit(circuit(1, 100, 200, 200)), Err(Conflict::Empty));
    assert_eq!(admit(circuit(1, 0, 100, 200)), Err(Conflict::NoRate));
    let above = Conflict::AboveCard { rate: mbit(1001), card: mbit(1000) };
    assert_eq!(admit(circuit(1, 1001, 100, 200)), Err(above));
}

#[test]
fn cancelled_circuits_leave_an_empty_calendar() {
    let mut calendar = with(&[circuit(1, 600, 100, 200), circuit(2, 400, 150, 250)]);
    assert!(calendar.remove(1).is_some() && calendar.remove(2).is_some() && calendar.remove(2).is_none());
    assert!(calendar.levels["eth0"].is_empty() && calendar.intervals.is_empty());
}

/// Seconds of the random test, and its destinations.
const SECONDS: u64 = 256;
const DESTINATIONS: u64 = 12;

/// The reserved rate in each second, and its destinations.
struct Oracle {
    reserved: [u64; SECONDS as usize],
    taken: [u32; SECONDS as usize],
}

impl Oracle {
    fn fits(&self, circuit: &Circuit, to: u32, card: &Card) -> bool {
        let background =
            if circuit.guarantee == Guarantee::Semi { card.background.bits_per_sec() } else { 0 };
        let seconds = circuit.from.as_secs() as usize..circuit.until.as_secs() as usize;
        !seconds.is_empty()
            && seconds.clone().all(|second| self.taken[second] & (1 << to) == 0)
            && seconds.clone().all(|second| {
                self.reserved[second] + background + circuit.rate.bits_per_sec() <= card.rate.bits_per_sec()
            })
    }

    fn shift(&mut self, circuit: &Circuit, to: u32, add: bool) {
        for second in circuit.from.as_secs() as usize..circuit.until.as_secs() as usize {
            self.taken[second] ^= 1 << to;
            let rate = circuit.rate.bits_per_sec();
            self.reserved[second] =
                if add { self.reserved[second] + rate } else { self.reserved[second] - rate };
        }
    }
}

#[test]
fn a_million_random_operations_never_overbook() {
    let mut random = Random::stream(18, "calendar");
    let mut calendar = Calendar::default();
    let mut oracle = Oracle { reserved: [0; SECONDS as usize], taken: [0; SECONDS as usize] };
    let mut there: Vec<(u64, u32)> = vec![];
    let (mut admitted, mut refused) = (0u32, 0u32);
    let card = Card { rate: mbit(1000), background: mbit(200) };
    for number in 0..1_000_000u64 {
        if random.chance(0.45) && !there.is_empty() {
            let (number, to) = there.swap_remove(random.below(there.len() as u64) as usize);
            let circuit = calendar.remove(number).unwrap();
            oracle.shift(&circuit, to, false);
            continue;
        }
        let to = random.below(DESTINATIONS);
        let from = random.below(SECONDS);
        let until = (from + random.below(40)).min(SECONDS - 1);
        let guarantee = if random.chance(0.3) { Guarantee::Semi } else { Guarantee::Full };
        let circuit = Circuit { guarantee, ..circuit(to as u8, 1 + random.below(500), from, until) };
        let verdict = calendar.admit(&circuit, &card);
        assert_eq!(verdict.is_ok(), oracle.fits(&circuit, to as u32, &card), "{circuit:?}: {verdict:?}");
        match verdict {
            Ok(()) => {
                oracle.shift(&circuit, to as u32, true);
                calendar.insert(number, circuit);
                there.push((number, to as u32));
                admitted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(admitted > 100_000 && refused > 100_000, "{admitted} admitted, {refused} refused");
    for second in 0..SECONDS {
        let reserved = oracle.reserved[second as usize];
        assert_eq!(calendar.peak("eth0", at(second), at(second + 1)).1, reserved);
        assert!(reserved <= card.rate.bits_per_sec());
    }
}
