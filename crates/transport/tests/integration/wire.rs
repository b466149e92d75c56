//! The two ends of any transport, joined by a pipe each way, on a simulated clock. A pipe has a delay and may have a rate with a
//! queue; it loses, duplicates and delays packets at random.

use std::collections::VecDeque;
use weir_base::{Bytes, Ecn, Random, Rate, Span, Time};
use weir_endpoint::{Body, Datagram, Endpoint, Setup, Stream};
use weir_transport::{Config, End};

/// The properties of a pipe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipe {
    pub(crate) delay: Span,
    pub(crate) rate: Option<Rate>,
    /// Longest wait in the queue before the rate; a packet that would wait longer is dropped.
    pub(crate) queue: Span,
    pub(crate) loss: f64,
    pub(crate) doubled: f64,
    /// Fraction of the packets that are late, by up to a quarter of the delay.
    pub(crate) late: f64,
    /// Packets that leave between these times are lost.
    pub(crate) outage: Option<(Time, Time)>,
}

impl Pipe {
    pub(crate) const fn of(delay: Span) -> Pipe {
        Pipe { delay, rate: None, queue: Span::MAX, loss: 0.0, doubled: 0.0, late: 0.0, outage: None }
    }
}

struct Direction {
    pipe: Pipe,
    free: Time,
    /// Packets by arrival.
    queue: VecDeque<(Time, Body)>,
    sent: u64,
}

impl Direction {
    fn send(&mut self, body: Body, now: Time, random: &mut Random) {
        self.sent += 1;
        let Pipe { delay, rate, queue, loss, doubled, late, outage } = self.pipe;
        let out = outage.is_some_and(|(from, to)| from <= now && now < to);
        if out || random.chance(loss) || self.free.since(now) > queue {
            return;
        }
        if let Some(rate) = rate {
            self.free = self.free.max(now) + rate.time_to_send(Bytes::new((body.length() + 20).into()));
        }
        let copies = 1 + u32::from(random.chance(doubled));
        for _ in 0..copies {
            let extra = if random.chance(late) { random.within(delay / 4) } else { Span::ZERO };
            let arrival = self.free.max(now) + delay + extra;
            let at = self.queue.partition_point(|other| other.0 <= arrival);
            self.queue.insert(at, (arrival, body.clone()));
        }
    }
}

/// The setup of a flow of a stream, with IPv4 packets of at most 1,500 bytes.
pub(crate) fn setup(seed: u64, flow: u64) -> Setup<'static> {
    Setup {
        settings: None,
        datagrams: false,
        admitted: false,
        ecn: Ecn::NotEct,
        mtu: Bytes::new(1500),
        ip_header: 20,
        seed,
        flow,
    }
}

/// Two ends and the pipes between them. Data goes from `ends[0]` to `ends[1]`.
pub(crate) struct Wire {
    pub(crate) now: Time,
    pub(crate) ends: [End; 2],
    /// Bytes that each end has read.
    pub(crate) read: [u64; 2],
    directions: [Direction; 2],
    random: Random,
    body: Body,
}

impl Wire {
    /// Both ends of a transport with full packets of 1,500 bytes, the first one open.
    pub(crate) fn new(transport: &str, forth: Pipe, back: Pipe, seed: u64) -> Wire {
        let config: Config = serde_json::from_str(transport).expect("a transport of the registry");
        let direction = |pipe| Direction { pipe, free: Time::ZERO, queue: VecDeque::new(), sent: 0 };
        let mut ends = config.ends(&setup(seed, 0));
        ends[0].open(Time::ZERO);
        Wire {
            now: Time::ZERO,
            ends,
            read: [0; 2],
            directions: [direction(forth), direction(back)],
            random: Random::stream(seed, "wire"),
            body: Body::Datagram(Datagram::default()),
        }
    }

    /// Packets that an end has sent.
    pub(crate) fn sent(&self, end: usize) -> u64 {
        self.directions[end].sent
    }

    /// Runs until `until`, or until `done` returns `true`.
    pub(crate) fn run(&mut self, until: Time, mut done: impl FnMut(&mut Wire) -> bool) {
        loop {
            for end in 0..2 {
                while let Some(packet) = {
                    let ecn = self.ends[end].transmit(&mut self.body, self.now);
                    ecn.map(|_| self.body.clone())
                } {
                    self.directions[end].send(packet, self.now, &mut self.random);
                }
                let read = &mut self.read[end];
                self.ends[end].read(&mut |stream, part| {
                    assert_eq!(stream, Stream(0));
                    *read += part.bytes;
                });
            }
            if done(self) {
                return;
            }
            let arrivals =
                self.directions.iter().filter_map(|direction| direction.queue.front().map(|packet| packet.0));
            let timers = self.ends.iter().map(|end| end.next_timer());
            let next = arrivals.chain(timers).min().unwrap_or(Time::NEVER);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next.max(self.now);
            for end in 0..2 {
                let queue = &mut self.directions[1 - end].queue;
                while queue.front().is_some_and(|(at, _)| *at <= self.now) {
                    let Some((_, body)) = queue.pop_front() else { break };
                    self.ends[end].receive(&body, Ecn::NotEct, self.now);
                }
                if self.ends[end].next_timer() <= self.now {
                    self.ends[end].on_timer(self.now);
                }
            }
        }
    }

    /// Runs for `seconds` seconds and returns the mean rate at which the receiver read meanwhile, in bytes of data a second.
    pub(crate) fn rate_over(&mut self, seconds: u64) -> f64 {
        let before = self.read[1];
        self.run(self.now + Span::from_secs(seconds), |_| false);
        (self.read[1] - before) as f64 / seconds as f64
    }
}
