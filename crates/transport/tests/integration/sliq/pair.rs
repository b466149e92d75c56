//! Two ends and the path between them.

use std::collections::BTreeMap;
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};
use weir_endpoint::{Body, Buffer, Datagram, Endpoint, Read, Settings, Setup};
use weir_transport::{Config, End};

/// The properties of a path: probabilities of loss, duplication and damage, rate, delay and marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) lose: f64,
    pub(crate) double: f64,
    pub(crate) damage: f64,
    /// The rate of each direction, and the length in bytes of the queue before it; `None` without a limit.
    pub(crate) rate: Option<(Rate, u64)>,
    /// The smallest delay, and the largest additional delay.
    pub(crate) delay: Span,
    pub(crate) jitter: Span,
    /// The largest IP packet that it carries.
    pub(crate) mtu: u32,
    /// Bytes in the queue above which capable packets are marked, and whether codepoints are cleared.
    pub(crate) mark: Option<u64>,
    pub(crate) bleach: bool,
}

/// A packet on the way.
pub(crate) struct Sent {
    pub(crate) to: usize,
    pub(crate) ecn: Ecn,
    pub(crate) datagram: Datagram,
}

/// Two ends and the path between them. The first end sends.
pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    settings: Settings,
    datagrams: bool,
    seed: u64,
    pub(crate) path: Path,
    random: Random,
    /// Packets on the way, by arrival time and order.
    pub(crate) pipe: BTreeMap<(Time, u64), Sent>,
    sent: u64,
    /// Time at which the queue of each direction is empty.
    free: [Time; 2],
    pub(crate) now: Time,
    /// Whether the second end's application reads.
    pub(crate) reads: bool,
    /// The reads of the second end.
    pub(crate) read: Vec<Got>,
}

/// A read: its time, its length, and the first bytes.
pub(crate) struct Got {
    pub(crate) at: Time,
    pub(crate) bytes: u64,
    pub(crate) head: Vec<u8>,
    /// Its deadline, by the receiving end.
    pub(crate) due: Option<Time>,
}

/// A controller with a window of 800 kB that ignores losses.
pub(crate) const FIXED: &str =
    r#"{ "kind": "ctcp", "rate": "64 Mbit/s", "rtt": "100 ms", "fall_back": false }"#;

fn settings(cc: &str) -> Settings {
    let buffer = Buffer { min: Bytes::ZERO, initial: Bytes::ZERO, max: Bytes::ZERO };
    let cc: weir_control::Config = cc.parse().or_else(|_| serde_json::from_str(cc)).unwrap();
    // As in labs: controllers that need ECN have it.
    let (codepoint, feedback) = cc.signals();
    Settings {
        cc,
        ecn: feedback != weir_control::Feedback::Classic,
        codepoint,
        feedback,
        window_scaling: true,
        sack: true,
        rto_min: weir_endpoint::RTO_MIN,
        limited_transmit: true,
        delayed_ack: None,
        window_updates: false,
        send_buffer: buffer,
        receive_buffer: buffer,
        pacing: true,
        sender_clock: Default::default(),
        receiver_clock: Default::default(),
    }
}

fn setup(settings: &Settings, datagrams: bool, seed: u64) -> Setup<'_> {
    Setup {
        settings: Some(settings),
        datagrams,
        admitted: false,
        ecn: Ecn::NotEct,
        mtu: Bytes::new(1500),
        ip_header: 20,
        seed,
        flow: 0,
    }
}

impl Pair {
    /// The input from which the ends are made.
    pub(crate) fn setup(&self) -> Setup<'_> {
        setup(&self.settings, self.datagrams, self.seed)
    }

    /// The ends of another flow, which is a stream of the same connection.
    pub(crate) fn join(&mut self, config: &Config) -> [End; 2] {
        let setup = setup(&self.settings, self.datagrams, self.seed);
        self.ends.each_mut().map(|end| end.join(config, &setup).unwrap())
    }

    pub(crate) fn new(transport: &str, cc: &str, datagrams: bool, path: Path, seed: u64) -> Pair {
        let config: Config = serde_json::from_str(transport).unwrap();
        let settings = settings(cc);
        let ends = config.ends(&setup(&settings, datagrams, seed));
        Pair {
            ends,
            settings,
            datagrams,
            seed,
            path,
            random: Random::stream(seed, "path"),
            pipe: BTreeMap::new(),
            sent: 0,
            free: [Time::ZERO; 2],
            now: Time::ZERO,
            reads: true,
            read: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, from: usize) {
        let mut body = Body::Datagram(Datagram::default());
        let mut packets = 0;
        while let Some(ecn) = self.ends[from].transmit(&mut body, self.now) {
            packets += 1;
            assert!(packets < 100_000, "it never stops sending");
            let Body::Datagram(datagram) = &body else { panic!("not a datagram") };
            assert!(datagram.payload() <= 1472, "{} bytes do not fit", datagram.payload());
            let copies = 1 + usize::from(self.random.chance(self.path.double));
            for _ in 0..copies {
                if datagram.payload() + 28 > self.path.mtu {
                    continue;
                }
                let waits = self
                    .path
                    .rate
                    .map_or(0, |(rate, _)| rate.bytes_in(self.free[from].since(self.now)).get());
                let marked = ecn != Ecn::NotEct && self.path.mark.is_some_and(|mark| waits > mark);
                let ecn = match ecn {
                    _ if self.path.bleach => Ecn::NotEct,
                    _ if marked => Ecn::Ce,
                    ecn => ecn,
                };
                let Some(left) = self.queue(from, datagram.payload()) else { continue };
                if self.random.chance(self.path.lose) {
                    continue;
                }
                let mut datagram = datagram.clone();
                if self.random.chance(self.path.damage) {
                    // A damaged packet would fail its checksum; here at most its first 11 bytes arrive.
                    datagram.head.truncate(self.random.below(12) as usize);
                }
                let at = left + self.path.delay + self.random.within(self.path.jitter);
                self.sent += 1;
                self.pipe.insert((at, self.sent), Sent { to: 1 - from, ecn, datagram });
            }
        }
    }

    /// Time at which a packet with this payload has left the queue; `None` if the queue is full.
    fn queue(&mut self, from: usize, payload: u32) -> Option<Time> {
        let Some((rate, limit)) = self.path.rate else { return Some(self.now) };
        let begin = self.free[from].max(self.now);
        if rate.bytes_in(begin.since(self.now)).get() > limit {
            return None;
        }
        // IP and UDP headers.
        self.free[from] = begin + rate.time_to_send(Bytes::new(u64::from(payload) + 28));
        Some(self.free[from])
    }

    pub(crate) fn settle(&mut self) {
        for end in 0..2 {
            self.send(end);
        }
        if !self.reads {
            return;
        }
        let (read, at) = (&mut self.read, self.now);
        self.ends[1].read(&mut |_, message| {
            let Read { bytes, head, due } = message;
            read.push(Got { at, bytes, head: head.to_vec(), due });
        });
    }

    /// Runs until `until`, or until `done` returns `true`.
    pub(crate) fn run(&mut self, until: Time, done: impl Fn(&Pair) -> bool) {
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
            if let Some((_, Sent { to, ecn, datagram })) = arrived {
                self.ends[to].receive(&Body::Datagram(datagram), ecn, self.now);
            }
            self.ends.iter_mut().for_each(|end| end.on_timer(next));
            self.settle();
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.read.iter().map(|got| got.bytes).sum()
    }
}

pub(crate) fn secs(secs: u64) -> Time {
    Time::ZERO + Span::from_secs(secs)
}

pub(crate) fn path(lose: f64, delay: u64) -> Path {
    Path {
        lose,
        double: 0.0,
        damage: 0.0,
        rate: None,
        delay: Span::from_millis(delay),
        jitter: Span::ZERO,
        mtu: 1500,
        mark: None,
        bleach: false,
    }
}
