//! A network of sites over links that lose, repeat and delay datagrams, with connections and datagrams between hosts of the sites.

use super::super::{Config, Outside, Places, Plain, Service, Site, stream};
use super::{Parity, datagram, id};
use crate::Inner;
use crate::cat::Wire;
use crate::node::Signal;
use crate::proxy::tcp::{Gone, tests::Host};
use std::collections::BTreeMap;
use weir_base::{Bytes, Random, Rate, Span, Time};

/// IP and UDP headers around each datagram between nodes.
const AROUND: Bytes = Bytes::new(28);

/// The address of a host of a site, which has 10.SITE.0.0/16.
pub(super) fn host(site: usize, number: u32) -> u32 {
    0x0a00_0000 | (site as u32) << 16 | number
}

fn places(sites: usize) -> Places {
    let prefix = |site: usize| (format!("10.{site}.0.0/16").parse().unwrap(), id(site as u8));
    Places::new((0..sites).map(prefix).collect())
}

/// What links do to datagrams. Between real hosts a damaged one is dropped by the seal of the link, so that it is one more that is lost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    pub(super) loss: f64,
    pub(super) repeat: f64,
    pub(super) jitter: Span,
}

/// One direction of a link.
#[derive(Debug)]
struct Link {
    to: usize,
    to_port: usize,
    rate: Rate,
    delay: Span,
    free_at: Time,
}

/// One end of a connection. A host whose site is killed goes with it.
#[derive(Debug)]
pub(super) struct End {
    site: usize,
    flow: Inner,
    pub(super) host: Option<Host>,
    /// When its proxy gave the connection up.
    pub(super) gone: Option<(Time, Gone)>,
}

/// A program that sends datagrams at a constant rate.
#[derive(Debug)]
struct Program {
    site: usize,
    datagram: Vec<u8>,
    gap: Span,
    next: Time,
}

#[derive(Debug)]
struct Arrival {
    to: usize,
    port: usize,
    bytes: Vec<u8>,
}

/// What a site has said in a call.
#[derive(Default)]
struct Said {
    packets: Vec<(usize, Vec<u8>)>,
    delivered: u64,
    segments: Vec<(Inner, Vec<u8>)>,
}

impl Outside for Said {
    fn packet(&mut self, port: usize, header: &[u8], body: &[u8], _: bool) {
        self.packets.push((port, [header, body].concat()));
    }
    fn signal(&mut self, port: usize, datagram: &[u8], _: Signal) {
        self.packets.push((port, datagram.to_vec()));
    }
    fn deliver(&mut self, _: &[u8]) {
        self.delivered += 1;
    }
    fn deliver_to_network(&mut self, _: usize, _: &[u8]) {}
    fn segment(&mut self, flow: &Inner, segment: &[u8]) {
        self.segments.push((*flow, segment.to_vec()));
    }
}

type Node = Site<Wire, Plain>;

pub(super) struct Network {
    sites: Vec<Option<Node>>,
    epochs: Vec<u32>,
    services: Vec<Service>,
    links: BTreeMap<(usize, usize), Link>,
    coming: BTreeMap<(Time, u64), Arrival>,
    count: u64,
    /// When each site, and each end of a connection, has something to do.
    due: Vec<Time>,
    pub(super) connections: Vec<[End; 2]>,
    programs: Vec<Program>,
    pub(super) delivered: u64,
    pub(super) faults: Faults,
    random: Random,
    pub(super) now: Time,
}

impl Network {
    pub(super) fn new(sites: usize, services: Vec<Service>, seed: u64) -> Network {
        let mut network = Network {
            sites: vec![],
            epochs: vec![1000; sites],
            services,
            links: BTreeMap::new(),
            coming: BTreeMap::new(),
            count: 0,
            due: vec![Time::ZERO; sites],
            connections: vec![],
            programs: vec![],
            delivered: 0,
            faults: Faults::default(),
            random: Random::stream_of(seed, "network of sites", 0),
            now: Time::ZERO,
        };
        network.sites = (0..sites).map(|number| Some(network.build(number))).collect();
        network
    }

    fn build(&self, number: usize) -> Node {
        let config = Config {
            id: id(number as u8),
            epoch: self.epochs[number],
            seed: 1,
            node: crate::Config::default(),
            places: places(self.epochs.len()),
            networks: vec![],
            services: self.services.clone(),
            longest: Bytes::new(1389),
            code: &Parity,
            around: AROUND,
        };
        let mut site = Site::new(config, Plain).unwrap();
        for link in self.links.range((number, 0)..(number + 1, 0)).map(|(_, link)| link) {
            site.connect(Wire::new(link.rate, link.delay, 0.0, AROUND), id(link.to as u8), None);
        }
        site
    }

    /// Joins two sites. Their links are numbered in the order of the calls.
    pub(super) fn link(&mut self, a: usize, b: usize, rate: Rate, delay: Span) {
        let ends = [a, b].map(|site| (site, self.links.range((site, 0)..(site + 1, 0)).count()));
        for ((from, port), (to, to_port)) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let link = Link { to, to_port, rate, delay, free_at: Time::ZERO };
            self.links.insert((from, port), link);
            let site = self.sites[from].as_mut().unwrap();
            site.connect(Wire::new(rate, delay, 0.0, AROUND), id(to as u8), None);
        }
    }

    /// Connects a host of one site to port 80 of a host of another, and returns the number of the connection. Each sends so many bytes.
    pub(super) fn connect(&mut self, sites: [usize; 2], totals: [u64; 2]) -> usize {
        let number = self.connections.len();
        let there = stream::flow((host(sites[0], 1), 40_000 + number as u16), (host(sites[1], 1), 80));
        let flows = [there, stream::back(&there)];
        self.connections.push([0, 1].map(|end| {
            let host = Some(Host::new(end, totals[end], self.now));
            End { site: sites[end], flow: flows[end], host, gone: None }
        }));
        sites.into_iter().for_each(|site| self.due[site] = self.now);
        number
    }

    /// A program of one site sends datagrams of 1,000 bytes to one of another at a rate.
    pub(super) fn program(&mut self, [from, to]: [usize; 2], number: u32, rate: Rate) {
        let datagram = datagram(host(from, number), host(to, number), &[0; 1000]);
        let gap = rate.time_to_send(Bytes::new(1000));
        self.programs.push(Program { site: from, datagram, gap, next: self.now });
    }

    pub(super) fn site(&self, number: usize) -> Option<&Node> {
        self.sites[number].as_ref()
    }

    /// A site stops, with its hosts' connections.
    pub(super) fn kill(&mut self, number: usize) {
        (self.sites[number], self.due[number]) = (None, Time::NEVER);
        self.connections
            .iter_mut()
            .flatten()
            .filter(|end| end.site == number)
            .for_each(|end| end.host = None);
    }

    /// It starts again.
    pub(super) fn start(&mut self, number: usize) {
        self.epochs[number] += 10;
        (self.sites[number], self.due[number]) = (Some(self.build(number)), self.now);
    }

    /// Goes on until a time.
    pub(super) fn run(&mut self, until: Time) {
        loop {
            let (site, due) = self.due.iter().copied().enumerate().min_by_key(|(_, due)| *due).unwrap();
            let sends = self.programs.iter().map(|program| program.next).min().unwrap_or(Time::NEVER);
            let comes = self.coming.keys().next().map_or(Time::NEVER, |key| key.0);
            let next = due.min(sends).min(comes);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let now = self.now;
            if comes == next {
                let Arrival { to, port, bytes } = self.coming.pop_first().unwrap().1;
                self.call(to, |site, said| site.from_neighbour(port, &bytes, now, said));
            } else if sends == next {
                let program = self.programs.iter_mut().find(|program| program.next == next).unwrap();
                program.next = now + program.gap;
                let (site, datagram) = (program.site, program.datagram.clone());
                self.call(site, |site, said| site.from_program(&datagram, now, said));
            } else {
                self.call(site, |site, said| site.on_timer(now, said));
            }
        }
    }

    fn call(&mut self, at: usize, call: impl FnOnce(&mut Node, &mut Said)) {
        let Some(mut site) = self.sites[at].take() else { return };
        let mut said = Said::default();
        call(&mut site, &mut said);
        let mut due = Time::NEVER;
        for end in self.connections.iter_mut().flatten().filter(|end| end.site == at && end.gone.is_none()) {
            due = due.min(end.act(&mut site, self.now, &mut said));
        }
        self.due[at] = due.min(site.next_time(self.now));
        self.sites[at] = Some(site);
        self.delivered += said.delivered;
        said.packets.into_iter().for_each(|(port, bytes)| self.carry((at, port), bytes));
    }

    fn carry(&mut self, from: (usize, usize), bytes: Vec<u8>) {
        let (link, faults) = (self.links.get_mut(&from).unwrap(), self.faults);
        let length = AROUND + Bytes::new(bytes.len() as u64);
        link.free_at = link.free_at.max(self.now) + link.rate.time_to_send(length);
        let copies = if self.random.chance(faults.repeat) { 2 } else { 1 };
        for _ in 0..copies {
            let more = Span::from_nanos(self.random.below(faults.jitter.as_nanos().max(1)));
            if !self.random.chance(faults.loss) {
                self.count += 1;
                let arrival = Arrival { to: link.to, port: link.to_port, bytes: bytes.clone() };
                self.coming.insert((link.free_at + link.delay + more, self.count), arrival);
            }
        }
    }
}

impl End {
    /// Its host reads what has come and gives what its proxy takes, which sends what it may. Returns when it has something to do next.
    fn act(&mut self, site: &mut Node, now: Time, said: &mut Said) -> Time {
        let Some(host) = &mut self.host else { return Time::NEVER };
        let own = said.segments.extract_if(.., |(flow, _)| stream::back(flow) == self.flow);
        for (_, bytes) in own.collect::<Vec<_>>() {
            host.receive(&bytes, &site.admission(&self.flow, now, said), now);
        }
        host.give();
        while let Some(segment) = host.relay.next(&site.admission(&self.flow, now, said), now) {
            site.send_segment(&self.flow, &host.encode(&segment), segment.part.is_some(), now, said);
        }
        if let Some(gone) = host.relay.gone() {
            self.gone = Some((now, gone));
        }
        if host.relay.is_over(now) {
            site.close_stream(&self.flow);
        }
        host.relay.next_time()
    }
}
