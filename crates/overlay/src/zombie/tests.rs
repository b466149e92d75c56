use super::*;
use crate::harness::at;

const PACKET: u64 = 1000;

/// A queue that drains a packet each 8 ms (1 Mbit/s), with a virtual depth of a kind.
struct Queue {
    config: Config,
    state: State,
    real: u64,
    zombies: u64,
    now: u64,
}

impl Queue {
    fn new(config: Config) -> Queue {
        Queue { config, state: State::default(), real: 0, zombies: 0, now: 0 }
    }
    fn seen(&self) -> Seen {
        Seen { real: self.real, zombies: self.zombies }
    }
    fn arrive(&mut self, packets: u64) {
        for _ in 0..packets {
            self.real += PACKET;
            let seen = self.seen();
            self.zombies += self.state.on_arrival(&self.config, PACKET, seen, at(self.now));
        }
    }
    /// For each 8 ms a packet leaves, or zombies if there is none.
    fn drain(&mut self, millis: u64, arrivals_per_turn: u64) {
        for _ in 0..millis / 8 {
            self.now += 8;
            self.arrive(arrivals_per_turn);
            if self.real > 0 {
                self.real -= PACKET;
                let seen = self.seen();
                self.zombies += self.state.on_departure(&self.config, PACKET, seen, at(self.now));
            } else if self.zombies > 0 {
                let offered = self.zombies.min(LARGEST);
                let seen = self.seen();
                self.zombies -= self.state.on_zombie(&self.config, offered, seen, at(self.now));
            }
        }
    }
}

fn zlr() -> Queue {
    Queue::new("zlr".parse().unwrap())
}

#[test]
fn a_standing_queue_is_replaced_by_zombies_after_a_whole_window() {
    let mut queue = zlr();
    queue.arrive(40);
    queue.drain(96, 1);
    assert_eq!(queue.zombies, 0);
    queue.drain(200, 1);
    assert!((38_000..=42_000).contains(&queue.zombies), "{}", queue.zombies);
}

#[test]
fn what_stands_is_replaced_once_while_it_drains() {
    let mut queue = zlr();
    queue.arrive(40);
    // The link takes a third more than what comes, as admission lets it by the larger depth.
    for _ in 0..25 {
        queue.drain(16, 1);
        queue.drain(8, 0);
    }
    assert!((25_000..=42_000).contains(&queue.zombies), "{} with {} left", queue.zombies, queue.real);
}

#[test]
fn by_the_studys_rule_a_zombie_comes_for_each_packet_that_leaves_after_a_second() {
    let longest = Span::from_secs(5);
    let rule = zlr::Config { rule: zlr::Rule::Study, gain: 1, longest, ..zlr::Config::default() };
    let mut queue = Queue::new(Config::Zlr(rule));
    queue.arrive(40);
    queue.drain(992, 1);
    assert_eq!(queue.zombies, 0);
    queue.drain(160, 1);
    assert_eq!(queue.zombies, 20_000);
}

#[test]
fn a_queue_that_empties_now_and_then_gets_no_zombies() {
    let mut queue = zlr();
    for _ in 0..50 {
        queue.arrive(5);
        queue.drain(48, 0);
    }
    assert_eq!(queue.zombies, 0);
}

#[test]
fn the_mark_is_a_time_so_a_slow_queue_keeps_fewer_bytes_than_a_fast_one() {
    // Six packets stand at 1 Mbit/s: 48 ms. The study's mark of 6,000 bytes would let them.
    let mut queue = zlr();
    queue.arrive(7);
    queue.drain(600, 1);
    assert!(queue.zombies > 5000, "{}", queue.zombies);
}

#[test]
fn zombies_leave_when_the_link_becomes_faster_than_what_comes() {
    let mut queue = zlr();
    queue.arrive(40);
    queue.drain(2000, 1);
    let before = queue.zombies;
    queue.drain(1000, 0);
    assert!(
        queue.real == 0 && queue.zombies + 80_000 < before + LARGEST * 40,
        "{before} to {}",
        queue.zombies
    );
}

#[test]
fn without_virtual_depth_nothing_is_added() {
    let mut queue = Queue::new("none".parse().unwrap());
    queue.arrive(100);
    queue.drain(3000, 1);
    assert_eq!((queue.real, queue.zombies), (100_000, 0));
}

/// Learns for so many slots in which so many bytes come more than leave.
fn learn(name: &str, slots: u64, surplus: u64, real: u64) -> (State, u64) {
    let config: Config = name.parse().unwrap();
    let (mut state, mut depth) = (State::default(), 0);
    for slot in 0..slots {
        let seen = Seen { real, zombies: depth };
        state.on_arrival(&config, surplus + 500, seen, at(10 * slot));
        state.on_departure(&config, 500, seen, at(10 * slot));
        depth = state.on_slot(&config, seen).unwrap();
    }
    (state, depth)
}

#[test]
fn learned_depth_grows_with_the_surplus_at_first_and_hardly_later() {
    let (_, early) = learn("sdg", 10, 1000, 0);
    assert!((9700..=10_000).contains(&early), "{early}");
    let (mut state, late) = learn("sdg", 6000, 0, 0);
    let config: Config = "sdg".parse().unwrap();
    let seen = Seen { real: 0, zombies: late };
    state.on_arrival(&config, 100_000, seen, at(60_000));
    assert!(state.on_slot(&config, seen).unwrap() < late + 1000);
}

#[test]
fn idg_raises_virtual_depth_to_five_times_the_packets_while_it_learns() {
    let (_, plain) = learn("sdg", 50, 0, 10_000);
    let (_, raised) = learn("idg", 50, 0, 10_000);
    assert_eq!(plain, 0);
    assert!((49_000..=50_000).contains(&raised), "{raised}");
}

#[test]
fn a_turn_of_the_link_without_packets_lowers_what_is_learned() {
    let config: Config = "idg".parse().unwrap();
    let (mut state, depth) = learn("idg", 20, 1000, 0);
    let seen = Seen { real: 0, zombies: depth };
    assert_eq!(state.on_zombie(&config, 1024, seen, at(200)), 0);
    assert!(state.on_slot(&config, seen).unwrap() < depth);
}

#[test]
fn values_outside_their_range_are_named() {
    let fault = |text: &str| serde_json::from_str::<Config>(text).unwrap().fault();
    assert_eq!(fault(r#"{ "kind": "zlr", "longest": "1 ms" }"#), Some("longest"));
    assert_eq!(fault(r#"{ "kind": "idg", "mu": 0.0 }"#), Some("mu"));
    assert_eq!(fault(r#""zlr-improved""#), None);
}
