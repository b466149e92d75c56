//! Two endpoints joined by a pipe each way, on a simulated clock. The pipe has a delay and optionally a rate; packets are dropped,
//! delayed, duplicated or marked by their number, counted from 0 in each direction, the SYN included.

use std::collections::VecDeque;
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_endpoint::Segment;
use weir_tcp::{Config, Connection, Info};

/// What happens to the packets of one direction.
#[derive(Debug, Default, Clone)]
pub(crate) struct Script {
    pub(crate) drop: Vec<u64>,
    /// Packets (by number) with this additional delay.
    pub(crate) late: Vec<(u64, Span)>,
    /// Packets (by number) that arrive twice.
    pub(crate) twice: Vec<u64>,
    /// Packets (by number) that are marked CE.
    pub(crate) mark: Vec<u64>,
    /// From this packet on, nothing arrives for this time after the packet's own arrival time; then all packets arrive at once, in
    /// order.
    pub(crate) stall: Option<(u64, Span)>,
    /// Whether only packets with data are counted and affected.
    pub(crate) data_only: bool,
}

pub(crate) struct Pipe {
    pub(crate) script: Script,
    delay: Span,
    rate: Option<Rate>,
    free_at: Time,
    stalled_to: Time,
    count: u64,
    order: u64,
    /// Arrival time and order, kept sorted.
    queue: VecDeque<(Time, u64, Segment, Ecn)>,
    pub(crate) log: Vec<(Time, Segment, Ecn)>,
}

impl Pipe {
    fn new(delay: Span, rate: Option<Rate>, script: Script) -> Pipe {
        Pipe {
            script,
            delay,
            rate,
            free_at: Time::ZERO,
            stalled_to: Time::ZERO,
            count: 0,
            order: 0,
            queue: VecDeque::new(),
            log: Vec::new(),
        }
    }

    fn send(&mut self, segment: Segment, mut ecn: Ecn, now: Time) {
        self.log.push((now, segment, ecn));
        let mut arrival = now + self.delay;
        if let Some(rate) = self.rate {
            self.free_at = self.free_at.max(now) + rate.time_to_send(Bytes::new(segment.packet_len().into()));
            arrival = self.free_at + self.delay;
        }
        if self.script.data_only && segment.len == 0 {
            self.insert(arrival, segment, ecn);
            return;
        }
        let number = self.count;
        self.count += 1;
        if self.script.drop.contains(&number) {
            return;
        }
        if self.script.mark.contains(&number) && ecn.is_capable() {
            ecn = Ecn::Ce;
        }
        if let Some(&(_, by)) = self.script.late.iter().find(|late| late.0 == number) {
            arrival += by;
        }
        if let Some((_, by)) = self.script.stall.filter(|stall| stall.0 == number) {
            self.stalled_to = arrival + by;
        }
        arrival = arrival.max(self.stalled_to);
        self.insert(arrival, segment, ecn);
        if self.script.twice.contains(&number) {
            self.insert(arrival, segment, ecn);
        }
    }

    fn insert(&mut self, arrival: Time, segment: Segment, ecn: Ecn) {
        self.order += 1;
        let at = self.queue.partition_point(|other| other.0 <= arrival);
        self.queue.insert(at, (arrival, self.order, segment, ecn));
    }

    fn next(&self) -> Time {
        self.queue.front().map_or(Time::NEVER, |packet| packet.0)
    }
}

pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) forth: Pipe,
    pub(crate) back: Pipe,
    pub(crate) read: u64,
    to_write: u64,
    close: bool,
    /// Time at which the server had read all data and the FIN; `None` before it.
    pub(crate) finished_at: Option<Time>,
}

pub(crate) fn config(controller: &str) -> Config {
    Config::new(controller.parse().expect("a controller of the registry"))
}

impl Pair {
    /// A client that sends to a server over a path of this RTT.
    pub(crate) fn new(config: Config, rtt: Span, rate: Option<Rate>, forth: Script, back: Script) -> Pair {
        Pair {
            now: Time::ZERO,
            client: Connection::client(config.clone(), Time::ZERO),
            server: Connection::server(config),
            forth: Pipe::new(rtt / 2, rate, forth),
            back: Pipe::new(rtt / 2, None, back),
            read: 0,
            to_write: 0,
            close: false,
            finished_at: None,
        }
    }

    /// A client and a server with different configurations.
    pub(crate) fn between(client: Config, server: Config, rtt: Span, rate: Option<Rate>) -> Pair {
        let (forth, back) = (Script::default(), Script::default());
        Pair { server: Connection::server(server), ..Pair::new(client, rtt, rate, forth, back) }
    }

    /// Sends `bytes` bytes and closes; runs until all data has arrived or the time limit is reached.
    pub(crate) fn transfer(&mut self, bytes: u64, limit: Span) -> Info {
        self.to_write = bytes;
        self.close = true;
        self.run_until(Time::ZERO + limit);
        self.info()
    }

    pub(crate) fn info(&self) -> Info {
        self.client.info().expect("the connection is open")
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        self.to_write += bytes;
    }

    fn pump(&mut self) {
        if self.to_write > 0 {
            self.to_write -= self.client.write(self.to_write);
            if self.to_write == 0 && self.close {
                self.client.close();
                self.close = false;
            }
        }
        while let Some((segment, ecn)) = self.client.poll_transmit(self.now) {
            self.forth.send(segment, ecn, self.now);
        }
        while let Some((segment, ecn)) = self.server.poll_transmit(self.now) {
            self.back.send(segment, ecn, self.now);
        }
        self.read += self.server.take_read();
        if self.server.finished() && self.finished_at.is_none() {
            self.finished_at = Some(self.now);
        }
    }

    /// Takes one step; returns whether there was one before the limit.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        self.pump();
        let timer = self.client.next_timer().min(self.server.next_timer());
        let next = timer.min(self.forth.next()).min(self.back.next());
        if next > limit || next == Time::NEVER {
            return false;
        }
        assert!(next >= self.now, "a timer lies in the past");
        self.now = next;
        if self.forth.next() == next {
            let (_, _, segment, ecn) = self.forth.queue.pop_front().expect("its time was just read");
            self.server.on_segment(&segment, ecn, next);
        } else if self.back.next() == next {
            let (_, _, segment, ecn) = self.back.queue.pop_front().expect("its time was just read");
            self.client.on_segment(&segment, ecn, next);
        } else {
            self.client.on_timer(next);
            self.server.on_timer(next);
        }
        true
    }

    pub(crate) fn run_until(&mut self, limit: Time) {
        let mut steps = 0u64;
        loop {
            if !self.step(limit) {
                self.now = limit;
                break;
            }
            steps += 1;
            assert!(steps < 20_000_000, "no end in sight at {}", self.now);
            if self.finished_at.is_some() && self.client.all_acknowledged() {
                break;
            }
        }
    }

    /// Data segments on the wire, in order, as (time, first byte, length).
    pub(crate) fn data_sent(&self) -> Vec<(Time, u32, u16)> {
        let data = self.forth.log.iter().filter(|(_, segment, _)| segment.len > 0);
        data.map(|(at, segment, _)| (*at, segment.seq, segment.len)).collect()
    }

    /// Number of full segments that each arriving acknowledgement of the server newly acknowledges.
    pub(crate) fn gaps(&self) -> Vec<u32> {
        let arrived = |number: &usize| !self.back.script.drop.contains(&(*number as u64));
        let acks: Vec<u32> =
            (0..self.back.log.len()).filter(arrived).map(|number| self.back.log[number].1.ack).collect();
        acks.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) / 1448).collect()
    }
}
