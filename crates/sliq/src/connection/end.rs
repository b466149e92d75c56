//! A connection as its driver sees it.

use super::{Connection, GONE, State};
use crate::aec::Mode;
use crate::flight::{Flight, News};
use crate::receive::Incoming;
use crate::send::Outgoing;
use crate::wire::{Frame, Header, Kind, is_well_formed};
use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_endpoint::{Body, Datagram};
use weir_endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};

impl Connection {
    /// A packet has arrived: these bytes, then this many zeros, with this codepoint.
    pub(crate) fn take(&mut self, packet: &[u8], zeros: u32, ecn: Ecn, now: Time) {
        let Some((header, rest)) = Header::read(packet) else { return };
        if header.connection != self.id || !is_well_formed(rest, zeros) {
            return;
        }
        if self.state == State::Over {
            // The peer is told that the connection is over, unless its own packet says so.
            let knows = matches!(Frame::read(rest), Some((Frame::Close { .. }, _)));
            self.goodbye = if knows { self.goodbye } else { Some(GONE) };
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
            (_, State::Opening) => self.establish(self.opening_round_trip(rest, now), now),
            _ => {}
        }
        self.take_packet(header, rest, ecn, now);
    }

    /// The round trip of the request that these frames acknowledge; `None` if they acknowledge none.
    fn opening_round_trip(&self, mut frames: &[u8], now: Time) -> Option<Span> {
        loop {
            match Frame::read(frames)? {
                (Frame::Ack(ack), _) => {
                    let rtt = self.opening.round_trip(ack.largest.into(), now)?;
                    return Some(rtt.saturating_sub(Span::from_micros(ack.delay.into())));
                }
                (Frame::Marks(_), after) => frames = after,
                _ => return None,
            }
        }
    }

    /// Writes the next packet that leaves now and returns its codepoint; `None` if there is none. With `of`, only packets of this stream
    /// count, and control packets if the second value is true.
    pub(crate) fn next_packet_of(
        &mut self,
        of: Option<(u8, bool)>,
        into: &mut Datagram,
        now: Time,
    ) -> Option<Ecn> {
        let control = of.is_none_or(|(_, control)| control);
        if control && self.wants_ride(now) {
            if let Some(ecn) = self.data(into, of.map(|(stream, _)| stream), now) {
                return Some(ecn);
            }
            self.missed(now);
        }
        if control && self.control(into, now) {
            return Some(self.ecn);
        }
        self.data(into, of.map(|(stream, _)| stream), now)
    }

    /// As [`Connection::next_packet_of`], with what surrounds a packet on the simulator: a tag of zeros, and the CP header.
    pub(crate) fn simulated_packet_of(
        &mut self,
        of: Option<(u8, bool)>,
        into: &mut Datagram,
        now: Time,
    ) -> Option<Ecn> {
        if let Some(ecn) = self.next_packet_of(of, into, now) {
            into.zeros += self.tag;
            self.put_cp_header(&mut into.head, 0, now);
            return Some(ecn);
        }
        into.set(&[], 0);
        (of.is_none() && self.ask_point(&mut into.head, now)).then_some(self.ecn)
    }

    /// Hands over a stream's data that waits to be read.
    pub(crate) fn read_of(&mut self, stream: u8, to: &mut dyn FnMut(Read<'_>)) {
        let (clock, now) = (&self.peer_clock, self.latest);
        if let Some(stream) = self.incoming.get_mut(&stream) {
            stream.read(|bytes, head, due| {
                to(Read { bytes, head, due: due.and_then(|due| clock.due(due, now)) });
            });
            self.granted.consume(stream.take_consumed());
        }
    }

    /// Whether the peer has closed a stream and all of it has arrived.
    pub(crate) fn has_ended(&self, stream: u8) -> bool {
        self.incoming.get(&stream).is_some_and(Incoming::is_finished)
    }

    /// Whether all that was written to a stream is acknowledged.
    pub(crate) fn is_settled(&self, stream: u8) -> bool {
        self.outgoing.get(&stream).is_none_or(Outgoing::is_settled)
    }

    /// Packets with a stream's data that were retransmitted so far.
    pub(crate) fn retransmitted_of(&self, stream: u8) -> u64 {
        self.outgoing.get(&stream).map_or(0, |stream| stream.retransmitted)
    }

    /// As [`Connection::take`], of a packet with what surrounds it on the simulator.
    pub(crate) fn take_simulated(&mut self, head: &[u8], zeros: u32, ecn: Ecn, now: Time) {
        let Some(cp) = self.take_cp_header(head, now) else { return };
        if let Some(zeros) = zeros.checked_sub(self.tag) {
            self.take(&head[cp..], zeros, ecn, now);
        }
    }

    /// The sum of a count of all streams.
    fn sum(&self, of: fn(&Outgoing) -> u64) -> u64 {
        self.outgoing.values().map(of).sum()
    }
}

impl Endpoint for Connection {
    fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::Opening;
            self.opening.hurry(now);
        }
    }

    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        self.take_simulated(&datagram.head, datagram.zeros, ecn, now);
    }

    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        self.simulated_packet_of(None, into.datagram_mut(), now)
    }

    fn next_timer(&self) -> Time {
        let streams = self.outgoing.values().map(Outgoing::next_timer).min().unwrap_or(Time::NEVER);
        // A round may be found overdue when the packets that it still had to send are no longer needed.
        let streams = streams.max(self.latest);
        let acks = if self.state == State::Open { self.acks.due() } else { Time::NEVER };
        let alive = self.asks_at().min(self.ends_at()).min(self.searches_at());
        let train = self.train.as_ref().map_or(Time::NEVER, |train| train.next_timer(self.is_sending()));
        let reports = self.reports_at();
        [
            self.opening.due(),
            self.timeout,
            self.loss,
            self.pace,
            self.probe,
            acks,
            streams,
            alive,
            train,
            reports,
        ]
        .into_iter()
        .min()
        .unwrap_or(Time::NEVER)
    }

    fn on_timer(&mut self, now: Time) {
        self.latest = now;
        self.on_report_timer(now);
        self.outgoing.values_mut().for_each(|stream| stream.on_timer(now));
        if now >= self.loss {
            self.detect(&mut [News::default(); 2], Span::ZERO, now);
        }
        if now >= self.timeout {
            self.on_timeout(now);
        }
        self.end_train(now);
        if now >= self.ends_at() {
            self.fail(Some(GONE));
        }
    }

    fn write(&mut self, stream: Stream, message: Message<'_>, now: Time) -> u64 {
        if self.state == State::Over {
            return 0;
        }
        // Writing opens the connection.
        self.open(now);
        let Some(outgoing) = self.outgoing(stream) else { return 0 };
        let ((segment, messages), unsettled) = (outgoing.shape(), outgoing.unsettled());
        let room = if messages { message.bytes } else { self.may_write(message.bytes, segment, unsettled) };
        let taken = self.outgoing(stream).map_or(0, |stream| stream.write(room, message.head, now));
        self.has_written(message.bytes, taken, messages);
        taken
    }

    fn keep_full(&mut self, stream: Stream, _: bool) -> bool {
        self.outgoing(stream).map(Outgoing::keep_full).is_some()
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        let (clock, now) = (&self.peer_clock, self.latest);
        for (id, stream) in &mut self.incoming {
            stream.read(|bytes, head, due| {
                let due = due.and_then(|due| clock.due(due, now));
                to(Stream((*id).into()), Read { bytes, head, due });
            });
            self.granted.consume(stream.take_consumed());
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
        self.is_at_rest()
    }

    fn counts(&self) -> Counts {
        let recoveries = self.flights.iter().map(|flight| flight.recoveries).sum();
        Counts { timeouts: self.timeouts, recoveries, undos: 0 }
    }

    fn retransmitted(&self) -> Option<u64> {
        Some(self.sum(|stream| stream.retransmitted))
    }

    fn sample(&self) -> Option<Sample> {
        let first = self.flights.first()?;
        Some(Sample {
            cwnd: self.flights.iter().map(|flight| flight.in_packets().0).sum(),
            ssthresh: first.in_packets().1,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.smallest(),
            rto: self.timeout_after(),
            in_flight: self.flights.iter().map(Flight::packets).sum(),
            retransmitted: self.sum(|stream| stream.retransmitted),
            timeouts: self.timeouts,
            spurious: None,
            pacing_rate: self.pacing_rate(self.last_heard),
            delivery_rate: first.delivery_rate(),
            acknowledged: Bytes::new(self.sum(|stream| stream.settled)),
        })
    }

    fn unsent(&self) -> Bytes {
        Bytes::new(self.sum(Outgoing::unsent))
    }

    fn sending_rate(&self, now: Time) -> Option<Rate> {
        self.pacing_rate(now)
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        for (number, flight) in self.flights.iter().enumerate() {
            let part = Part::Controller(number as u32);
            report(part, "suspended", f64::from(u8::from(flight.is_suspended(self.last_heard))));
            report(part, "delivered_packets", flight.delivered() as f64);
            flight.state(&mut |name, value| report(part, name, value));
        }
        self.report_state(&mut |name, value| report(Part::Controller(0), name, value));
        for (id, stream) in &self.outgoing {
            let part = Part::Stream((*id).into());
            report(part, "error_rate", self.per.rate());
            report(part, "repair_packets", stream.coded as f64);
            report(part, "dropped_bytes", stream.dropped as f64);
            if let Some(capacity) = self.capacity.estimate(self.last_ack) {
                report(part, "capacity_mbps", capacity.mbit_per_sec());
            }
            if stream.is_planned() {
                report(part, "arrived_packets", stream.arrived as f64);
                report(part, "usable_packets", stream.usable as f64);
                for (mode, name) in Mode::ALL {
                    report(part, name, stream.modes[mode as usize] as f64);
                }
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
