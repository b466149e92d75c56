//! Two sites, each with an aggregation point, and flows of one application between them.

use crate::wire::setup;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;
use weir_base::{Ecn, Random, Rate, Span, Time};
use weir_control::tfrc::throughput;
use weir_coord::{FiveTuple, Packet, Point, Side, Verdict};
use weir_endpoint::{Body, Datagram, Endpoint, Message, Stream};
use weir_transport::{Config, End};

/// One-way delay between the sites.
pub(crate) const DELAY: Span = Span::from_millis(25);

/// The rate of a flowshare in bytes a second at a loss of 1 %, by the equation.
pub(crate) fn flowshare() -> f64 {
    throughput(1500.0, Span::from_millis(50), 0.01, 1.0, 4.0)
}

pub(crate) fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// Flows of application 1 between two aggregation points over a path with random loss.
pub(crate) struct Sites {
    pub(crate) now: Time,
    pub(crate) flows: Vec<[End; 2]>,
    read: Vec<u64>,
    points: [Point; 2],
    /// Packets on the way to each site, by arrival: arrival time, flow and body.
    directions: [VecDeque<(Time, usize, Body)>; 2],
    loss: f64,
    random: Random,
    /// Time from which on nothing returns to the senders.
    pub(crate) silent: Time,
    /// Time from which on packets pass the sites without their aggregation points.
    pub(crate) bypassed: Time,
}

fn point(own: u8, more: &str) -> Point {
    let other = 3 - own;
    let text = format!(
        "[[application]]\nid = 1\nname = \"one\"\nlocal = [\"10.{own}.0.0/16\"]\nlocal_ports = 9000\n\
         remote = [\"10.{other}.0.0/16\"]\nremote_ports = 9000\n{more}"
    );
    Point::new(&weir_coord::Config::from_toml(&text).unwrap(), 1, 1).unwrap()
}

fn tuple(from: usize, flow: usize) -> FiveTuple {
    let address = |site: usize| IpAddr::V4(Ipv4Addr::new(10, site as u8 + 1, 0, flow as u8));
    FiveTuple {
        source: address(from),
        source_port: 9000,
        destination: address(1 - from),
        destination_port: 9000,
    }
}

impl Sites {
    /// A flow for each of these transports, and aggregation points with more lines in the application's table.
    pub(crate) fn new(transports: &[String], more: &str, loss: f64) -> Sites {
        let ends = |flow: usize| {
            let config: Config = serde_json::from_str(&transports[flow]).unwrap();
            let mut ends = config.ends(&setup(1, flow as u64));
            ends[0].open(Time::ZERO);
            ends
        };
        Sites {
            now: Time::ZERO,
            flows: (0..transports.len()).map(ends).collect(),
            read: vec![0; transports.len()],
            points: [point(1, more), point(2, more)],
            directions: Default::default(),
            loss,
            random: Random::stream(1, "sites"),
            silent: Time::NEVER,
            bypassed: Time::NEVER,
        }
    }

    /// Passes a packet to the aggregation point of a site and returns the verdict.
    fn pass(&mut self, site: usize, side: Side, from: usize, flow: usize, body: &mut Body) -> Verdict {
        if self.now >= self.bypassed {
            return Verdict::Forward;
        }
        let length = body.length() + 20;
        let payload = &mut body.datagram_mut().head;
        let packet = Packet { side, tuple: tuple(from, flow), length, payload, checksum: None };
        self.points[site].handle(packet, self.now)
    }

    fn flush(&mut self, flow: usize, end: usize) {
        let mut body = Body::Datagram(Datagram::default());
        while self.flows[flow][end].transmit(&mut body, self.now).is_some() {
            let mut sent = body.clone();
            match self.pass(end, Side::Local, end, flow, &mut sent) {
                Verdict::Forward => {
                    let lost = self.random.chance(self.loss) || (end == 1 && self.now >= self.silent);
                    if !lost {
                        self.directions[1 - end].push_back((self.now + DELAY, flow, sent));
                    }
                }
                Verdict::Return => {
                    if self.now < self.silent {
                        self.flows[flow][end].receive(&sent, Ecn::NotEct, self.now);
                    }
                }
                verdict => panic!("{verdict:?}"),
            }
        }
        let read = &mut self.read[flow];
        self.flows[flow][end].read(&mut |_, part| *read += if end == 1 { part.bytes } else { 0 });
    }

    /// Runs until `until`; every sender always has frames of `frame(flow)` bytes to write.
    pub(crate) fn run(&mut self, until: Time, frame: impl Fn(usize) -> u64) {
        while self.now < until {
            for flow in 0..self.flows.len() {
                let message = Message { bytes: frame(flow), head: &[] };
                while self.flows[flow][0].is_open()
                    && self.flows[flow][0].write(Stream(0), message, self.now) > 0
                {}
                self.flush(flow, 0);
                self.flush(flow, 1);
            }
            let arrivals =
                self.directions.iter().filter_map(|direction| direction.front().map(|packet| packet.0));
            let timers = self.flows.iter().flatten().map(|end| end.next_timer());
            let next = arrivals.chain(timers).min().unwrap_or(Time::NEVER);
            self.now = next.min(until).max(self.now);
            for end in 0..2 {
                while self.directions[end].front().is_some_and(|(at, ..)| *at <= self.now) {
                    let (_, flow, mut body) = self.directions[end].pop_front().unwrap();
                    assert_eq!(self.pass(end, Side::Path, 1 - end, flow, &mut body), Verdict::Forward);
                    self.flows[flow][end].receive(&body, Ecn::NotEct, self.now);
                }
                for flow in 0..self.flows.len() {
                    if self.flows[flow][end].next_timer() <= self.now {
                        self.flows[flow][end].on_timer(self.now);
                    }
                }
            }
        }
    }

    /// Rate at which each flow's receiver reads in the next `over` seconds, in bytes a second.
    pub(crate) fn rates(&mut self, over: u64, frame: impl Fn(usize) -> u64) -> Vec<f64> {
        let before = self.read.clone();
        self.run(self.now + Span::from_secs(over), frame);
        self.read.iter().zip(before).map(|(read, before)| (read - before) as f64 / over as f64).collect()
    }

    /// The rate of the first flow, in bits a second.
    fn rate(&self) -> f64 {
        self.flows[0][0].sample().unwrap().pacing_rate.unwrap().bits_per_sec() as f64
    }

    /// Nothing returns from the fortieth second on: the rate halves after every four round trips.
    pub(crate) fn halves_without_reports(&mut self) {
        self.run(seconds(40), |_| 1 << 20);
        let before = self.rate();
        self.silent = self.now;
        // Round trips of 50 ms: packets still arrive for 25 ms; after that the rate halves at 200, 400 and 600 ms.
        self.run(seconds(40) + Span::from_millis(750), |_| 1 << 20);
        let halvings = (before / self.rate()).log2();
        assert!((2.9..3.6).contains(&halvings), "{halvings}");
    }

    /// From the fortieth second on no aggregation point rewrites a header: acknowledgements return, reports do not. The rate halves until
    /// the time of two packets is longer than four round trips, and does not grow before there are reports again.
    pub(crate) fn halves_when_the_points_are_bypassed(&mut self) {
        self.run(seconds(40), |_| 1 << 20);
        let before = self.rate();
        self.bypassed = self.now;
        // Four round trips of 50 ms are 200 ms. Reports arrive until now at the latest, so the third halving is at 600 ms.
        self.run(seconds(40) + Span::from_millis(190), |_| 1 << 20);
        assert_eq!(self.rate(), before);
        self.run(seconds(40) + Span::from_millis(610), |_| 1 << 20);
        let halvings = (before / self.rate()).log2();
        assert!((2.99..3.01).contains(&halvings), "{halvings}");
        let lowest = self.rate();
        // The points refuse what is under way without their headers.
        (self.bypassed, self.directions) = (Time::NEVER, Default::default());
        self.run(seconds(43), |_| 1 << 20);
        assert!(self.rate() > 2.0 * lowest, "{} after {lowest}", self.rate());
    }

    /// Checks that no flow sends more than `most`, whatever is reported.
    pub(crate) fn stays_below(&mut self, most: Rate) {
        let rates = self.rates(30, |_| 1 << 20);
        let bytes = most.bits_per_sec() as f64 / 8.0;
        assert!(rates.iter().all(|rate| *rate < bytes && *rate > 0.64 * bytes), "{rates:?}");
        assert!(self.flows.iter().all(|flow| flow[0].sample().unwrap().pacing_rate.unwrap() <= most));
    }
}
