//! SLIQ over a path that loses, delays, doubles and damages packets: what is reliable arrives once and in order, and whatever arrives,
//! nothing panics.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_base::{Bytes, Ecn, Random, Span, Time};
use weir_transport::{Body, Buffer, Config, Datagram, End, Endpoint, Message, Settings, Setup, Stream};

/// What a path does to packets: probabilities of each, and how long it delays them.
#[derive(Debug, Clone, Copy)]
struct Path {
    lose: f64,
    double: f64,
    damage: f64,
    /// The least delay, and how much more it may be.
    delay: Span,
    jitter: Span,
}

/// Two ends and what is between them. The first one sends.
struct Pair {
    ends: [End; 2],
    path: Path,
    random: Random,
    /// What is under way, by arrival: to which end, and what.
    pipe: BTreeMap<(Time, u64), (usize, Datagram)>,
    sent: u64,
    now: Time,
    /// What the second end has read: lengths, and first bytes.
    read: Vec<(u64, Vec<u8>)>,
}

/// A window of 800 kB, whatever is lost.
const FIXED: &str = r#"{ "kind": "ctcp", "rate": "64 Mbit/s", "rtt": "100 ms", "fall_back": false }"#;

fn settings(cc: &str) -> Settings {
    let buffer = Buffer { min: Bytes::ZERO, initial: Bytes::ZERO, max: Bytes::ZERO };
    Settings {
        cc: cc.parse().or_else(|_| serde_json::from_str(cc)).unwrap(),
        ecn: false,
        codepoint: weir_control::Codepoint::Off,
        feedback: weir_control::Feedback::Classic,
        window_scaling: true,
        send_buffer: buffer,
        receive_buffer: buffer,
        pacing: true,
        sender_clock: Default::default(),
        receiver_clock: Default::default(),
    }
}

impl Pair {
    fn new(transport: &str, cc: &str, datagrams: bool, path: Path, seed: u64) -> Pair {
        let config: Config = serde_json::from_str(transport).unwrap();
        let settings = settings(cc);
        let setup = Setup {
            settings: Some(&settings),
            datagrams,
            ecn: Ecn::NotEct,
            mtu: Bytes::new(1500),
            ip_header: 20,
            seed,
            flow: 0,
        };
        Pair {
            ends: config.ends(&setup),
            path,
            random: Random::stream(seed, "path"),
            pipe: BTreeMap::new(),
            sent: 0,
            now: Time::ZERO,
            read: Vec::new(),
        }
    }

    fn send(&mut self, from: usize) {
        let mut body = Body::Datagram(Datagram::default());
        let mut packets = 0;
        while self.ends[from].transmit(&mut body, self.now).is_some() {
            packets += 1;
            assert!(packets < 100_000, "it never stops sending");
            let Body::Datagram(datagram) = &body else { panic!("not a datagram") };
            assert!(datagram.payload() <= 1472, "{} bytes do not fit", datagram.payload());
            let copies = 1 + usize::from(self.random.chance(self.path.double));
            for _ in 0..copies {
                if self.random.chance(self.path.lose) {
                    continue;
                }
                let mut datagram = datagram.clone();
                if self.random.chance(self.path.damage) {
                    // A checksum finds the damage: the packet never gets to its end. Its first bits alone are another's.
                    datagram.head.truncate(self.random.below(12) as usize);
                }
                let at = self.now + self.path.delay + self.random.within(self.path.jitter);
                self.sent += 1;
                self.pipe.insert((at, self.sent), (1 - from, datagram));
            }
        }
    }

    fn settle(&mut self) {
        for end in 0..2 {
            self.send(end);
        }
        let read = &mut self.read;
        self.ends[1].read(&mut |_, message| read.push((message.bytes, message.head.to_vec())));
    }

    /// Goes on until then, or until `done`.
    fn run(&mut self, until: Time, done: impl Fn(&Pair) -> bool) {
        self.settle();
        while !done(self) {
            let timer = self.ends[0].next_timer().min(self.ends[1].next_timer());
            let arrival = self.pipe.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = timer.min(arrival).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            let arrived = if arrival <= next { self.pipe.pop_first() } else { None };
            if let Some((_, (to, datagram))) = arrived {
                self.ends[to].receive(&Body::Datagram(datagram), Ecn::NotEct, self.now);
            }
            self.ends.iter_mut().for_each(|end| end.on_timer(next));
            self.settle();
        }
    }

    fn bytes(&self) -> u64 {
        self.read.iter().map(|(bytes, _)| bytes).sum()
    }
}

fn secs(secs: u64) -> Time {
    Time::ZERO + Span::from_secs(secs)
}

fn path(lose: f64, delay: u64) -> Path {
    Path { lose, double: 0.0, damage: 0.0, delay: Span::from_millis(delay), jitter: Span::ZERO }
}

const SLIQ: &str = r#"{ "kind": "sliq" }"#;

/// Writes messages of so many bytes, each with its number at its head, a millisecond apart, and runs ten seconds more.
fn messages(pair: &mut Pair, count: u32, bytes: u64) {
    for n in 0..count {
        pair.run(Time::ZERO + Span::from_millis(u64::from(n)), |_| false);
        pair.ends[0].write(Stream(0), Message { bytes, head: &n.to_be_bytes() }, pair.now);
    }
    pair.run(pair.now + Span::from_secs(10), |_| false);
}

fn numbers(pair: &Pair) -> Vec<u32> {
    pair.read.iter().map(|(_, head)| u32::from_be_bytes(head[..4].try_into().unwrap())).collect()
}

#[test]
fn a_stream_opens_carries_its_bytes_and_ends() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 1);
    pair.ends[0].open(pair.now);
    assert_eq!(pair.ends[0].write(Stream(0), Message { bytes: 100_000, head: &[] }, pair.now), 100_000);
    pair.ends[0].close(None, pair.now);
    pair.run(secs(10), |pair| pair.ends[1].finished() && pair.ends[0].all_acknowledged());
    assert_eq!(pair.bytes(), 100_000);
    assert!(pair.now < secs(1), "{:?}", pair.now);
    assert_eq!(pair.ends[0].sample().unwrap().retransmitted, 0);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 1);
    pair.ends.iter_mut().for_each(|end| end.open(Time::ZERO));
    pair.run(secs(1), |_| false);
    assert!(pair.ends.iter().all(|end| end.is_open()));
}

#[test]
fn nobody_there_is_given_up() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(1.0, 10), 1);
    pair.ends[0].open(pair.now);
    pair.run(secs(60), |_| false);
    assert!(!pair.ends[0].is_open());
    // Thirty-two requests, a third of a second apart, then nothing.
    assert_eq!(pair.ends[0].next_timer(), Time::NEVER);
}

#[test]
fn repair_packets_bring_messages_in_time_where_there_is_no_time_to_ask_again() {
    // 30 ms one way: within 40 ms nothing can be sent again. A fifth of the packets is lost.
    let transport = r#"{ "kind": "sliq", "stream": { "delivery": "arq-fec", "deadline": "60 ms", "target": 0.99, "queue": "16 MiB" } }"#;
    let mut pair = Pair::new(transport, FIXED, true, path(0.2, 30), 3);
    messages(&mut pair, 8_000, 1000);
    // All are delivered, once each.
    let mut numbers = numbers(&pair);
    numbers.sort_unstable();
    assert!(numbers == (0..8_000).collect::<Vec<_>>(), "{} were read", numbers.len());
    let mut repairs = 0.0;
    pair.ends[0].state(&mut |_, name, value| repairs += if name == "repair_packets" { value } else { 0.0 });
    assert!(repairs > 1_000.0, "{repairs}");
}

#[test]
fn best_effort_loses_what_the_path_loses() {
    let transport = r#"{ "kind": "sliq", "stream": { "delivery": "best-effort" } }"#;
    let mut pair = Pair::new(transport, "bbr", true, path(0.1, 5), 4);
    messages(&mut pair, 2_000, 1000);
    let arrived = pair.read.len();
    assert!((1_750..1_850).contains(&arrived), "{arrived}");
    assert!(pair.ends[0].all_acknowledged());
}

#[test]
fn an_outage_is_left_as_soon_as_the_peer_is_heard() {
    let mut pair = Pair::new(SLIQ, "cubic", false, path(0.0, 10), 5);
    pair.ends[0].open(pair.now);
    pair.ends[0].keep_full(Stream(0), true);
    pair.run(secs(2), |_| false);
    pair.path.lose = 1.0;
    pair.run(secs(12), |_| false);
    let before = pair.bytes();
    pair.path.lose = 0.0;
    // A probe each two round trips at most, one round trip to hear of it, one more for data.
    pair.run(secs(12) + Span::from_millis(200), |_| false);
    assert!(pair.bytes() > before + 50_000, "{}", pair.bytes() - before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_of_a_reliable_stream_arrive_once_and_in_order(
        lose in 0.0..0.4f64,
        double in 0.0..0.3f64,
        damage in 0.0..0.1f64,
        delay in 1u64..100,
        jitter in 0u64..50,
        words in 1u32..4_000,
        cc in prop::sample::select(vec!["cubic", "bbr", "newreno", "vegas"]),
        second in any::<bool>(),
        deadline in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let stream = if deadline {
            r#"{ "delivery": "arq-fec", "deadline": "150 ms", "order": "written" }"#
        } else {
            "{}"
        };
        let second = if second { r#", "second": "ledbat""# } else { "" };
        let transport = format!(r#"{{ "kind": "sliq", "stream": {stream}{second} }}"#);
        let path = Path { lose, double, damage, delay: Span::from_millis(delay), jitter: Span::from_millis(jitter) };
        let mut pair = Pair::new(&transport, cc, false, path, seed);
        pair.ends[0].open(pair.now);
        // A stream of numbers, so that order shows.
        let text: Vec<u8> = (0..words).flat_map(u32::to_be_bytes).collect();
        let mut written = 0;
        while written < text.len() {
            let rest = &text[written..];
            written += pair.ends[0].write(Stream(0), Message { bytes: rest.len() as u64, head: rest }, pair.now) as usize;
            pair.run(pair.now + Span::from_millis(100), |_| false);
        }
        pair.ends[0].close(None, pair.now);
        pair.run(secs(2_000), |pair| pair.ends[1].finished() && pair.ends[0].all_acknowledged());
        prop_assert!(pair.ends[1].finished());
        let read: Vec<u8> = pair.read.iter().flat_map(|(_, head)| head.iter().copied()).collect();
        prop_assert!(read == text, "{} of {} bytes", read.len(), text.len());
    }

    #[test]
    fn whatever_arrives_nothing_panics(
        packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), 0u32..1500, 0u64..100), 1..60),
        valid in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let transport = r#"{ "kind": "sliq", "stream": { "delivery": "arq-fec", "deadline": "100 ms" } }"#;
        let mut pair = Pair::new(transport, "cubic", false, path(0.0, 10), seed);
        pair.ends[0].open(pair.now);
        pair.ends[0].keep_full(Stream(0), true);
        pair.run(Time::ZERO + Span::from_millis(100), |_| false);
        // The header of a packet that was sent, so that what follows is read.
        let mut body = Body::Datagram(Datagram::default());
        let header: Vec<u8> = pair.pipe.values().find(|(to, _)| *to == 1).map(|(_, sent)| sent.head[..12].to_vec()).unwrap();
        for (n, (bytes, zeros, wait)) in packets.into_iter().enumerate() {
            let head = if valid {
                let mut head = header.clone();
                head[4..8].copy_from_slice(&(1000 + n as u32).to_be_bytes());
                head.extend(&bytes);
                head
            } else {
                bytes
            };
            let length = head.len() as u32 + zeros;
            body.datagram_mut().set(&head, length);
            pair.now += Span::from_millis(wait);
            let now = pair.now;
            for end in &mut pair.ends {
                end.receive(&body, Ecn::NotEct, now);
                end.on_timer(now);
            }
            pair.settle();
        }
    }
}
