//! Two proxies over a network that loses, copies and overtakes.

mod host;

pub(crate) use host::{Host, MOST};

use super::*;
use std::collections::BTreeMap;
use weir_base::Random;

/// What the network between two proxies does with a datagram.
#[derive(Debug, Clone, Copy)]
struct Net {
    loss: f64,
    copies: f64,
    delay: Span,
    /// Each datagram takes up to so much longer.
    more: Span,
    /// Bits per second at which either proxy admits data.
    rate: Rate,
}

const PLAIN: Net = Net {
    loss: 0.0,
    copies: 0.0,
    delay: Span::from_millis(20),
    more: Span::ZERO,
    rate: Rate::from_mbit_per_sec(8),
};

/// A host with its proxy.
struct Site {
    host: Host,
    admits_at: Time,
    is_alive: bool,
}

struct Pair {
    sites: [Site; 2],
    /// Datagrams on their way: when they arrive, a number, where to, and their bytes.
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    net: Net,
    random: Random,
    number: u64,
    now: Time,
}

impl Pair {
    fn new(net: Net, totals: [u64; 2], seed: u64) -> Pair {
        let site = |end: usize| Site {
            host: Host::new(end, totals[end], Time::ZERO),
            admits_at: Time::ZERO,
            is_alive: true,
        };
        Pair {
            sites: [0, 1].map(site),
            flying: BTreeMap::new(),
            net,
            random: Random::stream(seed, "net"),
            number: 0,
            now: Time::ZERO,
        }
    }

    fn admission(&self, site: usize) -> Admission {
        let is_open = self.sites[site].admits_at <= self.now;
        Admission { is_open, rate: self.net.rate, waits: !is_open }
    }

    /// The host gives what is taken, and the proxy sends what it may.
    fn act(&mut self, number: usize) {
        let site = &mut self.sites[number];
        if !site.is_alive {
            return;
        }
        site.host.give();
        loop {
            let admission = self.admission(number);
            let Some(segment) = self.sites[number].host.relay.next(&admission, self.now) else { return };
            let bytes = self.sites[number].host.encode(&segment);
            if segment.part.is_some() {
                let took = self.net.rate.time_to_send(Bytes::new(bytes.len() as u64));
                self.sites[number].admits_at = self.now.max(self.sites[number].admits_at) + took;
            }
            let draw = |random: &mut Random| random.below(1 << 20) as f64 / (1 << 20) as f64;
            let copies = if draw(&mut self.random) < self.net.copies { 2 } else { 1 };
            for _ in 0..copies {
                if draw(&mut self.random) >= self.net.loss {
                    let arrives = self.now + self.net.delay + self.net.more.scale(draw(&mut self.random));
                    self.number += 1;
                    self.flying.insert((arrives, self.number), (1 - number, bytes.clone()));
                }
            }
        }
    }

    fn arrive(&mut self, number: usize, bytes: &[u8]) {
        let admission = self.admission(number);
        let now = self.now;
        let site = &mut self.sites[number];
        if !site.is_alive {
            return;
        }
        site.host.receive(bytes, &admission, now);
    }

    /// Goes on until both are done or gone, or until a time.
    fn run(&mut self, until: Time) {
        loop {
            for number in 0..2 {
                self.act(number);
            }
            let admits = |site: &Site| if site.host.relay.waits() { site.admits_at } else { Time::NEVER };
            let own = self.sites.iter().filter(|site| site.is_alive);
            let own =
                own.map(|site| site.host.relay.next_time().min(admits(site))).min().unwrap_or(Time::NEVER);
            let arrives = self.flying.keys().next().map_or(Time::NEVER, |key| key.0);
            let next = own.min(arrives);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, bytes) = entry.remove();
                self.arrive(to, &bytes);
            }
        }
    }

    fn is_complete(&self) -> bool {
        (0..2).all(|site| {
            let own = &self.sites[site];
            own.host.relay.is_done()
                && own.host.received == self.sites[1 - site].host.total
                && own.host.saw_end
        })
    }
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

#[test]
fn both_streams_arrive_whole_over_a_plain_network_without_a_repetition() {
    let mut pair = Pair::new(PLAIN, [1_000_000, 300_000], 1);
    pair.run(seconds(10));
    assert!(pair.is_complete(), "{:?}", pair.sites[0].host.relay);
    for site in &pair.sites {
        assert_eq!(site.host.relay.repeated(), [0, 0]);
        assert_eq!(site.host.relay.gone(), None);
        assert!(site.host.relay.is_over(pair.now));
        assert_eq!(site.host.relay.next_time(), Time::NEVER);
    }
}

#[test]
fn a_transfer_uses_the_rate_of_admission_from_the_start() {
    // 1 MB at 8 Mbit/s is a second; 20 kB at first is 20 ms of it, and the buffer doubles each round trip of 40 ms.
    let mut pair = Pair::new(PLAIN, [1_000_000, 0], 1);
    pair.run(Time::ZERO + Span::from_millis(1300));
    assert_eq!(pair.sites[1].host.received, 1_000_000, "{:?}", pair.sites[0].host.relay.buffer());
}

#[test]
fn loss_copies_and_overtaking_leave_both_streams_as_they_were() {
    let networks = [
        Net { loss: 0.01, copies: 0.01, more: Span::from_millis(5), ..PLAIN },
        Net { loss: 0.3, copies: 0.1, more: Span::from_millis(50), ..PLAIN },
        Net { more: Span::from_millis(400), rate: Rate::from_mbit_per_sec(100), ..PLAIN },
        Net { loss: 0.05, delay: Span::from_millis(300), rate: Rate::from_bits_per_sec(300_000), ..PLAIN },
    ];
    for (number, net) in networks.into_iter().enumerate() {
        for seed in 0..20 {
            let totals = [200_000 + 777 * seed, 1000 * seed];
            let mut pair = Pair::new(net, totals, seed);
            pair.run(seconds(300));
            assert!(pair.is_complete(), "network {number}, seed {seed}: {:#?}", pair.sites[0].host.relay);
        }
    }
}

#[test]
fn packets_that_are_only_overtaken_are_seldom_sent_twice() {
    let net = Net { more: Span::from_millis(60), ..PLAIN };
    let mut pair = Pair::new(net, [2_000_000, 0], 3);
    pair.run(seconds(60));
    assert!(pair.is_complete());
    let [repeated, needless] = pair.sites[0].host.relay.repeated();
    // 1,667 segments.
    assert!(repeated <= 60 && needless <= repeated, "{repeated} {needless}");
}

#[test]
fn the_death_of_a_proxy_resets_the_other_one_within_5_s_after_a_correct_prefix() {
    for dead in 0..2 {
        let mut pair = Pair::new(Net { loss: 0.02, ..PLAIN }, [5_000_000, 5_000_000], 4);
        pair.run(seconds(2));
        pair.sites[dead].is_alive = false;
        pair.run(seconds(7));
        let other = &pair.sites[1 - dead];
        assert_eq!(other.host.relay.gone(), Some(Gone::Silent));
        assert!(other.host.received > 0 && !other.host.saw_end, "every byte was checked as it came");
        assert_eq!(other.host.relay.next_time(), Time::NEVER);
    }
}

#[test]
fn an_idle_connection_stays_and_one_stream_may_end_before_the_other() {
    let mut pair = Pair::new(PLAIN, [1000, 2000], 5);
    // The second host gives its bytes but does not end for a minute.
    pair.sites[1].host.keeps = true;
    pair.run(seconds(60));
    assert!(pair.sites[1].host.saw_end && !pair.sites[0].host.saw_end);
    assert_eq!(pair.sites.each_ref().map(|site| site.host.relay.gone()), [None, None]);
    assert_eq!(pair.sites[0].host.received, 2000);
}

#[test]
fn a_reset_of_a_host_reaches_the_other_side() {
    let mut pair = Pair::new(PLAIN, [5_000_000, 0], 6);
    pair.run(seconds(1));
    pair.sites[0].host.relay.reset();
    pair.run(seconds(2));
    assert_eq!(
        pair.sites.each_ref().map(|site| site.host.relay.gone()),
        [Some(Gone::Host), Some(Gone::Reset)]
    );
    // Whoever comes later is told again.
    let admission = pair.admission(0);
    pair.sites[0].host.relay.receive(&Segment::default(), &admission, pair.now);
    assert!(pair.sites[0].host.relay.next(&admission, pair.now).is_some_and(|segment| segment.resets));
}

#[test]
fn what_is_held_for_a_host_has_a_bound() {
    // A host that reads nothing: the other proxy stops at the window.
    let mut relay = Relay::new(MOST, Time::ZERO);
    let mut other = Relay::new(MOST, Time::ZERO);
    let open = Admission { is_open: true, rate: Rate::from_mbit_per_sec(100), waits: false };
    other.take(Bytes::new(10_000_000));
    let mut now = Time::ZERO;
    for _ in 0..20_000 {
        now += Span::from_micros(500);
        if let Some(segment) = other.next(&open, now) {
            relay.receive(&segment, &open, now);
        }
        if let Some(segment) = relay.next(&open, now) {
            other.receive(&segment, &open, now);
        }
    }
    assert_eq!((relay.held(), relay.ready()), (WINDOW, WINDOW));
    assert!(other.next(&open, now + Span::from_millis(100)).is_none_or(|segment| segment.part.is_none()));
    relay.give(WINDOW, now);
    // The window opens at once.
    let told = relay.next(&open, now).expect("an open window is told");
    other.receive(&told, &open, now);
    assert!(other.next(&open, now).is_some_and(|segment| segment.part.is_some()));
}

#[test]
fn a_segment_that_contradicts_the_stream_resets() {
    let open = Admission { is_open: true, rate: Rate::from_mbit_per_sec(100), waits: false };
    for parts in [
        // Data beyond the end; another end; an end before data.
        [(0, 100, true), (100, 10, false)],
        [(0, 100, true), (0, 50, true)],
        [(50, 100, false), (0, 60, true)],
    ] {
        let mut relay = Relay::new(MOST, Time::ZERO);
        for (from, bytes, ends) in parts {
            let part = Some(Part { from, bytes, ends });
            relay.receive(&Segment { part, ..Segment::default() }, &open, seconds(1));
        }
        assert_eq!(relay.gone(), Some(Gone::Nonsense), "{parts:?}");
        assert!(relay.next(&open, seconds(1)).is_some_and(|segment| segment.resets));
    }
}
