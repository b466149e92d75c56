//! A TCP flow that two proxies of the overlay carry, in the registry: the hosts' connections end at the proxies, which stand at the hosts'
//! nodes. Between proxies the state machine is `weir_overlay::proxy::tcp`.
//!
//! The connections to the hosts are left out: their links have no delay and no limit, so a host's TCP takes and gives data at once, up to
//! the proxy's buffer. The node at which a flow enters admits its packets one by one, and the endpoint waits until it does.

use crate::{End, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_endpoint::{Body, Counts, Endpoint, FullPacket, Message, Part, Read, Setup, Stream};
use weir_overlay::proxy::tcp::{Admission, EVERY, Part as Place, Relay, Segment, WINDOW};

/// The most data of a segment: with the largest headers of the overlay it fits Ethernet's 1,500 bytes. The study's proxies have packets of
/// 1,200 bytes (digest A 8).
const MOST: Bytes = Bytes::new(1100);
/// A position far into a stream, at which headers have the length that most of them have.
const FAR: u64 = 16 << 20;

/// The usual packets between two proxies, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packets {
    /// Data of a full segment.
    pub data: u64,
    /// The proxy's header before it.
    pub header: u64,
    /// An acknowledgement while nothing is missing.
    pub answer: u64,
    /// Segments for which there is one acknowledgement.
    pub every: u64,
}

/// The usual packets between two proxies of a stream in one direction.
pub fn packets() -> Packets {
    let length = |segment: Segment| {
        let mut bytes = Vec::new();
        segment.encode(&mut bytes);
        bytes.len() as u64
    };
    let window = WINDOW.get();
    let bytes = MOST.get() as u32;
    let full = Segment { part: Some(Place { from: FAR, bytes, ends: false }), window, ..Segment::default() };
    let answer = Segment { next: FAR, delivered: FAR, window, ..Segment::default() };
    Packets { data: MOST.get(), header: length(full), answer: length(answer), every: EVERY.into() }
}

/// A packet that waits for admission is not asked for again before this.
const REST: Span = Span::from_millis(10);

/// A relayed flow has no parameters of its own: the overlay's admission sets its rate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {}

impl Transport for Parameters {
    fn carries(&self, datagrams: bool) -> bool {
        !datagrams
    }
    fn keys(&self) -> &'static [&'static str] {
        &[]
    }
    fn full_packet(&self, _: Bytes, _: Bytes) -> Option<FullPacket> {
        None
    }
    fn ends(&self, setup: &Setup<'_>) -> [End; 2] {
        [(); 2].map(|()| End::Other(Box::new(Proxy::new(setup.ecn))))
    }
}

/// The rate at which data leaves, over the last round trip.
#[derive(Debug, Clone, Copy)]
struct Measured {
    since: Time,
    bytes: u64,
    rate: Rate,
}

/// A proxy, with the host's connection behind it.
#[derive(Debug)]
struct Proxy {
    relay: Relay,
    /// Whether it was opened or has heard the other one.
    is_open: bool,
    /// Whether the host always has data.
    is_full: bool,
    ecn: Ecn,
    /// Bytes that the host has taken and that its application has not read.
    unread: u64,
    /// When it may be asked again: never before the last time at which something happened, since what must go at once may have to wait for
    /// the node to admit it.
    rested: Time,
    /// When the application is told that the connection is open: as soon as it was asked for.
    opened: Time,
    measured: Measured,
    head: Vec<u8>,
}

impl Proxy {
    fn new(ecn: Ecn) -> Proxy {
        Proxy {
            relay: Relay::new(MOST, Time::ZERO),
            is_open: false,
            is_full: false,
            ecn,
            unread: 0,
            rested: Time::ZERO,
            opened: Time::NEVER,
            measured: Measured { since: Time::ZERO, bytes: 0, rate: Rate::default() },
            head: Vec::new(),
        }
    }

    /// The driver asks for a packet only when the node admits one.
    fn admission(&self) -> Admission {
        Admission { is_open: true, rate: self.measured.rate, waits: self.relay.waits() }
    }

    fn measure(&mut self, bytes: u64, now: Time) {
        let Measured { since, bytes: before, .. } = self.measured;
        let span = now.since(since);
        if self.relay.rtt().is_some_and(|rtt| span >= rtt) && !span.is_zero() {
            let rate = Rate::from_bytes_in(Bytes::new(before), span);
            self.measured = Measured { since: now, bytes, rate };
        } else {
            self.measured.bytes += bytes;
        }
    }

    fn fill(&mut self) {
        if self.is_full {
            let room = self.relay.room();
            self.relay.take(room);
        }
    }

    fn begin(&mut self, now: Time) {
        self.rested = self.rested.max(now);
        if !self.is_open {
            self.is_open = true;
            self.relay = Relay::new(MOST, now);
            self.fill();
        }
    }
}

impl Endpoint for Proxy {
    fn open(&mut self, now: Time) {
        self.begin(now);
        self.opened = now;
    }

    fn receive(&mut self, body: &Body, _: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let zeros = datagram.payload().saturating_sub(datagram.head.len() as u32);
        let Ok((segment, _)) = Segment::decode(&datagram.head, zeros) else { return };
        self.begin(now);
        let admission = self.admission();
        self.relay.receive(&segment, &admission, now);
        // The host takes and acknowledges at once what is in order.
        let bytes = self.relay.ready();
        if bytes > Bytes::ZERO || self.relay.ends() {
            self.relay.give(bytes, now);
            self.unread += bytes.get();
            self.relay.acknowledged(self.relay.given(), now);
        }
        self.fill();
    }

    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        if !self.is_open {
            return None;
        }
        let segment = self.relay.next(&self.admission(), now)?;
        self.head.clear();
        segment.encode(&mut self.head);
        let data = segment.part.map_or(0, |part| part.bytes);
        into.datagram_mut().set(&self.head, self.head.len() as u32 + data);
        self.measure(data.into(), now);
        Some(self.ecn)
    }

    fn next_timer(&self) -> Time {
        let relay = self.relay.next_time().max(self.rested).min(self.opened);
        if self.is_open { relay } else { Time::NEVER }
    }

    fn on_timer(&mut self, now: Time) {
        if self.opened <= now {
            self.opened = Time::NEVER;
        } else if self.is_open {
            self.relay.on_timer(now);
            self.rested = now + REST;
        }
    }

    fn write(&mut self, _: Stream, message: Message<'_>, _: Time) -> u64 {
        let taken = self.relay.room().get().min(message.bytes);
        self.relay.take(Bytes::new(taken));
        taken
    }

    fn keep_full(&mut self, _: Stream, _: bool) -> bool {
        self.is_full = true;
        self.fill();
        true
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        let bytes = std::mem::take(&mut self.unread);
        if bytes > 0 {
            to(Stream(0), Read { bytes, head: &[], due: None });
        }
    }

    fn close(&mut self, _: Option<Stream>, _: Time) {
        self.is_full = false;
        self.relay.end();
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn finished(&self) -> bool {
        self.relay.ends()
    }

    fn all_acknowledged(&self) -> bool {
        self.relay.has_sent_all()
    }

    fn counts(&self) -> Counts {
        Counts { timeouts: self.relay.timeouts(), ..Counts::default() }
    }

    fn retransmitted(&self) -> Option<u64> {
        Some(self.relay.repeated()[0])
    }

    fn unsent(&self) -> Bytes {
        self.relay.unsent()
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        let part = Part::Stream(0);
        report(part, "relay_buffer_bytes", self.relay.buffer().get() as f64);
        report(part, "relay_needless_packets", self.relay.repeated()[1] as f64);
        if let Some(rtt) = self.relay.rtt() {
            report(part, "relay_rtt_ms", rtt.as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves packets between two proxies, 10 ms each way, until nothing more leaves or a time has come.
    fn exchange(ends: &mut [End; 2], until: Time) -> Time {
        let mut now = Time::ZERO;
        let mut flying: Vec<(Time, usize, Body)> = Vec::new();
        loop {
            for (number, end) in ends.iter_mut().enumerate() {
                let mut body = Body::Segment(Default::default());
                while end.transmit(&mut body, now).is_some() {
                    let packet = std::mem::replace(&mut body, Body::Segment(Default::default()));
                    flying.push((now + Span::from_millis(10), 1 - number, packet));
                }
            }
            if ends[1].finished() && flying.is_empty() || now >= until {
                return now;
            }
            let timers = ends.iter().map(Endpoint::next_timer).min().unwrap_or(Time::NEVER);
            let arrives = flying.iter().map(|(at, ..)| *at).min().unwrap_or(Time::NEVER);
            now = now.max(timers.min(arrives)).min(until);
            ends.iter_mut().filter(|end| end.next_timer() <= now).for_each(|end| end.on_timer(now));
            let mut late = Vec::new();
            for (at, to, body) in flying.drain(..) {
                if at <= now { ends[to].receive(&body, Ecn::NotEct, now) } else { late.push((at, to, body)) }
            }
            flying = late;
        }
    }

    fn ends() -> [End; 2] {
        [(); 2].map(|()| End::Other(Box::new(Proxy::new(Ecn::NotEct))))
    }

    #[test]
    fn a_short_transfer_is_there_after_the_delay_of_one_way() {
        let mut ends = ends();
        ends[0].open(Time::ZERO);
        assert!(ends[0].is_open() && !ends[1].is_open());
        assert_eq!(ends[0].write(Stream(0), Message { bytes: 3000, head: &[] }, Time::ZERO), 3000);
        ends[0].close(None, Time::ZERO);
        let until = Time::ZERO + Span::from_millis(10);
        exchange(&mut ends, until);
        assert!(ends[1].finished());
        let mut read = 0;
        ends[1].read(&mut |_, part| read += part.bytes);
        assert_eq!(read, 3000);
        exchange(&mut ends, Time::ZERO + Span::from_secs(9));
        assert_eq!(ends[0].retransmitted(), Some(0));
    }

    /// The node of the receiver knows no way back yet, so nothing is asked of its proxy.
    #[test]
    fn an_answer_that_is_not_admitted_is_due_when_its_cause_came() {
        let mut ends = ends();
        ends[0].open(Time::ZERO);
        let mut first = Body::Segment(Default::default());
        ends[0].transmit(&mut first, Time::ZERO).expect("it opens the connection");
        let came = Time::ZERO + Span::from_millis(75);
        ends[1].receive(&first, Ecn::NotEct, came);
        assert_eq!(ends[1].next_timer(), came);
        ends[1].on_timer(came);
        assert_eq!(ends[1].next_timer(), came + REST);
        // One that the other proxy gave up is answered by a reset, at once again.
        let late = came + Span::from_secs(9);
        ends[1].on_timer(late);
        ends[1].receive(&first, Ecn::NotEct, late + Span::from_millis(50));
        assert_eq!(ends[1].next_timer(), late + Span::from_millis(50));
    }

    #[test]
    fn the_usual_packets_have_the_lengths_of_the_format() {
        // Bits 1, stamps 8, position 1 or 4, delivered 1 or 4, window of 3 MB 4, count of ranges 1, position of the data 4.
        let expected = Packets { data: 1100, header: 20, answer: 22, every: 2 };
        assert_eq!(packets(), expected);
    }

    #[test]
    fn a_host_gives_no_more_than_the_buffer_takes() {
        let mut ends = ends();
        ends[0].open(Time::ZERO);
        assert_eq!(ends[0].write(Stream(0), Message { bytes: 1 << 20, head: &[] }, Time::ZERO), 20_000);
        assert_eq!(ends[0].unsent(), Bytes::new(20_000));
        assert_eq!(ends[0].write(Stream(0), Message { bytes: 1, head: &[] }, Time::ZERO), 0);
    }
}
