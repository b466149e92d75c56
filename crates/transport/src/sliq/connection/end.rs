//! A connection as its driver sees it.

use super::{Connection, State};
use crate::Body;
use crate::endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};
use crate::sliq::flight::{Flight, News};
use crate::sliq::receive::Incoming;
use crate::sliq::send::Outgoing;
use crate::sliq::wire::{Header, Kind, is_well_formed};
use weir_base::{Bytes, Ecn, Span, Time};

impl Endpoint for Connection {
    fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            (self.state, self.handshake) = (State::Opening(0), now);
        }
    }

    fn receive(&mut self, body: &Body, _: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let Some((header, rest)) = Header::read(&datagram.head) else { return };
        let known = header.connection == self.id && self.state != State::Over;
        if !known || !is_well_formed(rest, datagram.zeros) {
            return;
        }
        match (header.kind, self.state) {
            (Kind::Open, _) => {
                self.accept = true;
                if self.state != State::Open {
                    self.establish(None, now);
                }
            }
            (_, State::Closed) => return,
            (_, State::Opening(_)) => {
                self.establish(self.opened.map(|(_, at)| now.since(at)), now);
            }
            _ => {}
        }
        self.take_packet(header, rest, now);
    }

    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        let datagram = into.datagram_mut();
        (self.control(datagram, now) || self.data(datagram, now)).then_some(self.ecn)
    }

    fn next_timer(&self) -> Time {
        let streams = self.outgoing.values().map(Outgoing::next_timer).min().unwrap_or(Time::NEVER);
        let acks = if self.state == State::Open { self.acks.due() } else { Time::NEVER };
        [self.handshake, self.timeout, self.loss, self.pace, self.probe, acks, streams]
            .into_iter()
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn on_timer(&mut self, now: Time) {
        self.outgoing.values_mut().for_each(|stream| stream.on_timer(now));
        if now >= self.loss {
            self.detect(&mut [News::default(); 2], Span::ZERO, now);
        }
        if now >= self.timeout {
            self.on_timeout(now);
        }
    }

    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64 {
        if self.state == State::Over {
            return 0;
        }
        // A datagram opens the connection.
        self.open(now);
        self.outgoing(stream).map_or(0, |stream| stream.write(message.bytes, message.head, now))
    }

    fn keep_full(&mut self, stream: Stream, _: bool) -> bool {
        self.outgoing(stream).map(Outgoing::keep_full).is_some()
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        for (id, stream) in &mut self.incoming {
            stream.read(|bytes, head| to(Stream((*id).into()), Read { bytes, head }));
        }
    }

    fn close(&mut self, stream: Option<Stream>, now: Time) {
        match stream {
            Some(stream) => self.outgoing(stream).into_iter().for_each(|stream| stream.close(now)),
            None => {
                self.outgoing(Stream(0));
                self.outgoing.values_mut().for_each(|stream| stream.close(now));
            }
        }
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    fn finished(&self) -> bool {
        !self.incoming.is_empty() && self.incoming.values().all(Incoming::is_finished)
    }

    fn all_acknowledged(&self) -> bool {
        self.outgoing.values().all(Outgoing::is_settled)
    }

    fn counts(&self) -> Counts {
        let recoveries = self.flights.iter().map(|flight| flight.recoveries).sum();
        Counts { timeouts: self.timeouts, recoveries, undos: 0 }
    }

    fn sample(&self) -> Option<Sample> {
        let first = self.flights.first()?;
        let sum = |of: fn(&Outgoing) -> u64| self.outgoing.values().map(of).sum::<u64>();
        Some(Sample {
            cwnd: self.flights.iter().map(|flight| flight.in_packets().0).sum(),
            ssthresh: first.in_packets().1,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.smallest(),
            rto: self.rtt.timeout(),
            in_flight: self.flights.iter().map(Flight::packets).sum(),
            retransmitted: sum(|stream| stream.retransmitted),
            timeouts: self.timeouts,
            pacing_rate: self.pacing_rate(),
            delivery_rate: first.delivery_rate(),
            acknowledged: Bytes::new(sum(|stream| stream.settled)),
        })
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        for (number, flight) in self.flights.iter().enumerate() {
            let part = Part::Controller(number as u32);
            report(part, "delivered_packets", flight.delivered() as f64);
            flight.state(&mut |name, value| report(part, name, value));
        }
        for (id, stream) in &self.outgoing {
            let part = Part::Stream((*id).into());
            report(part, "error_rate", self.per.rate());
            report(part, "repair_packets", stream.coded as f64);
            if let Some(capacity) = self.capacity.estimate(self.last_ack) {
                report(part, "capacity_mbps", capacity.mbit_per_sec());
            }
            if let Some(channel) = stream.channel().filter(|_| stream.is_planned()) {
                report(part, "plan_rtt_ms", channel.rtt.as_millis_f64());
                report(part, "plan_one_way_delay_ms", channel.owd.as_millis_f64());
                report(part, "plan_packet_time_ms", channel.packet_time.as_millis_f64());
            }
            if let Some(plan) = stream.plan() {
                report(part, "plan_source_packets", plan.k as f64);
                report(part, "plan_rounds", plan.rounds as f64);
                report(part, "plan_efficiency", plan.efficiency);
            }
        }
    }
}
