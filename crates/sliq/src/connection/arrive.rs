//! Arriving packets, the fate of the packets sent, and timeouts.

use super::{Connection, PROTOCOL_ERROR, micros};
use crate::MOST_STREAMS;
use crate::aec::WORST_PER;
use crate::due::is_in_range;
use crate::flight::{Flight, Known, News};
use crate::loss::{Content, Fate, Record};
use crate::mtu::PathMtu;
use crate::outage::Outage;
use crate::receive::Incoming;
use crate::send::{Outgoing, PathNow};
use crate::wire::{Ack, CONNECTION, Frame, Header, whole};
use std::collections::BTreeMap;
use weir_base::{Ecn, Rate, Span, Time};

/// Pacing limit while a stream has a deadline, in percent of the rate that the path has carried: above 100, so that the estimate can rise.
const CAP_PERCENT: u64 = 125;
/// How long a controller that fills buffers is suspended for a deadline, until the next check.
const SUSPENDED_FOR: Span = Span::from_secs(60);

impl Connection {
    pub(super) fn take_packet(&mut self, header: Header, mut rest: &[u8], ecn: Ecn, now: Time) {
        let number = whole(header.number, self.acks.largest().map_or(0, |largest| largest + 1));
        let difference = micros(now).wrapping_sub(header.timestamp);
        if !self.acks.take(number, difference, now) {
            return;
        }
        (self.last_heard, self.latest) = (now, now);
        self.marks.arrived(ecn);
        self.peer_clock.heard(difference, now);
        if self.outage.is_on() {
            (self.outage, self.probe) = (Outage::No, Time::NEVER);
            self.per.restart();
            self.outgoing.values_mut().for_each(Outgoing::drop_stale);
        }
        while let Some((frame, after)) = Frame::read(rest) {
            let known = match frame {
                Frame::Ack(ack) => {
                    let largest = whole(ack.largest, self.log.next());
                    self.take_ack(&ack, largest, difference, now)
                }
                Frame::Data(data) => {
                    self.acks.ask(data.flags.prompt, now);
                    let in_time = is_in_range(data.due, header.timestamp);
                    if !in_time || !self.take_into(data.stream, |stream| stream.segment(&data, after)) {
                        self.fail(Some(PROTOCOL_ERROR));
                    }
                    return;
                }
                Frame::Part(part) => {
                    self.acks.ask(part.segment.flags.prompt, now);
                    let in_time = is_in_range(part.segment.due, header.timestamp);
                    if !in_time || !self.take_into(part.segment.stream, |stream| stream.part(&part, after)) {
                        self.fail(Some(PROTOCOL_ERROR));
                    }
                    return;
                }
                Frame::Padding { .. } => return,
                Frame::Repair(repair) => {
                    self.acks.ask(true, now);
                    if !self.take_into(repair.stream, |stream| stream.repair(&repair, after)) {
                        self.fail(Some(PROTOCOL_ERROR));
                    }
                    return;
                }
                Frame::Forward { stream, base } => {
                    self.acks.ask(true, now);
                    self.take_into(stream, |stream| {
                        stream.forward(base);
                        true
                    })
                }
                Frame::Credit { stream, segments } => {
                    self.acks.ask(false, now);
                    match self.outgoing.get_mut(&stream) {
                        _ if stream == CONNECTION => self.allowed.raise(segments),
                        Some(stream) => stream.allow(segments),
                        None => {}
                    }
                    true
                }
                Frame::RoundTrip(micros) => {
                    self.acks.ask(false, now);
                    self.peer_clock.set_smallest_rtt(micros);
                    true
                }
                Frame::Marks(marks) => {
                    self.marks.on_counts(marks);
                    true
                }
                Frame::Ping => {
                    self.acks.ask(true, now);
                    true
                }
                Frame::Challenge(number) => {
                    self.challenged = Some(number);
                    true
                }
                Frame::Response(number) => {
                    self.responded = Some(number);
                    true
                }
                Frame::Close { .. } => {
                    self.fail(None);
                    return;
                }
            };
            if !known {
                return self.fail(Some(PROTOCOL_ERROR));
            }
            rest = after;
        }
    }

    /// Passes a frame to a stream. Returns `false` if the peer was not allowed to send it.
    fn take_into(&mut self, stream: u8, take: impl FnOnce(&mut Incoming) -> bool) -> bool {
        let Some(stream) = self.incoming(stream) else { return false };
        let before = stream.reached();
        let valid = take(stream);
        let more = stream.reached().wrapping_sub(before);
        let consumed = stream.take_consumed();
        self.reached = self.reached.wrapping_add(more);
        self.granted.consume(consumed);
        valid && self.granted.covers(self.reached)
    }

    fn incoming(&mut self, stream: u8) -> Option<&mut Incoming> {
        let room = usize::from(stream) < MOST_STREAMS;
        room.then(|| self.incoming.entry(stream).or_default())
    }

    /// Takes an acknowledgement. Returns `false` if it covers a packet that was never sent.
    fn take_ack(&mut self, ack: &Ack, largest: u64, difference: u32, now: Time) -> bool {
        let held = Span::from_micros(ack.delay.into());
        if let Some(rtt) = self.opening.round_trip(largest, now) {
            self.rtt.take(rtt.saturating_sub(held), now);
        }
        let mut news = [News::default(); 2];
        let (mut newest, mut bytes, overhead) = (None, 0, self.overhead);
        let way = self.delay.newest();
        let (outgoing, mtu, base) = (&mut self.outgoing, &mut self.mtu, self.base);
        let sent = self.log.acknowledged(ack, largest, |number, record| {
            let late = record.fate == Fate::Lost;
            newest = Some((number, record.at));
            match record.content {
                Content::Segment { stream, sequence, round } => {
                    let stream = outgoing.get_mut(&stream).into_iter();
                    stream.for_each(|stream| {
                        if let (Some(way), Some(handed)) = (way, stream.handed(sequence)) {
                            stream.passage.take(record.at.since(handed) + way);
                        }
                        stream.arrived(sequence, round, late);
                    });
                }
                Content::Repair { stream, start, round } => {
                    let stream = outgoing.get_mut(&stream).into_iter();
                    stream.for_each(|stream| stream.repair_fate(start, round, true, late));
                }
                Content::Part { stream, sequence, part } => {
                    let stream = outgoing.get_mut(&stream).into_iter();
                    stream.for_each(|stream| stream.part_arrived(sequence, part));
                }
                Content::Control | Content::Nothing => return,
            }
            if record.bytes > base {
                mtu.iter_mut().for_each(|mtu| mtu.large(number, true));
            }
            bytes += u64::from(record.bytes + overhead);
            if !late {
                news[usize::from(record.owner) & 1].arrived(number, record);
            }
        });
        if !sent {
            return false;
        }
        self.last_ack = now;
        if newest.is_some_and(|(number, _)| number == largest) {
            self.take_marks(&mut news);
        }
        if let Some((_, at)) = newest.filter(|(number, _)| *number == largest) {
            self.rtt.take(now.since(at).saturating_sub(held), now);
        }
        self.delay.take(ack.difference, difference, now);
        if let Some(train) = &mut self.train {
            train.on_ack(largest, ack.difference, held, now);
        }
        self.end_train(now);
        self.per.set_apart(self.mtu.as_mut().map_or(0, PathMtu::take_in_vain));
        self.per.take(largest, ack.received, now);
        if let Some((number, at)) = newest {
            let limited = self.flights.iter().any(Flight::is_limited);
            // The difference is that of the largest number, which may have been acknowledged before.
            let arrived = (number == largest).then(|| micros(at).wrapping_add(ack.difference));
            self.capacity.delivered(bytes, limited, self.rtt.smoothed().unwrap_or(Span::ZERO), arrived, now);
            self.timeout = if self.log.out() > 0 { now + self.timeout_after() } else { Time::NEVER };
        }
        self.detect(&mut news, held, now);
        let per = self.per.rate();
        if self.mtu.as_mut().is_some_and(|mtu| mtu.on_ack(ack, largest, per, now)) {
            self.cut();
        }
        self.plan(now);
        true
    }

    /// Takes the marks of an acknowledgement newer than all before. It does not tell which packets were marked: each controller counts the
    /// marks, up to the number of its packets that have arrived.
    fn take_marks(&mut self, news: &mut [News; 2]) {
        let marking = |flight: &Flight| flight.codepoint != Ecn::NotEct;
        let flights = self.flights.iter_mut().zip(news);
        let mut flights: Vec<(&mut Flight, &mut News)> =
            flights.filter(|(flight, _)| marking(flight)).collect();
        let packets = flights.iter().map(|(_, news)| news.packets).sum();
        match self.marks.marked(packets) {
            Some(marked) => flights.iter_mut().for_each(|(_, news)| news.marked = marked.min(news.packets)),
            None => flights.iter_mut().for_each(|(flight, _)| flight.codepoint = Ecn::NotEct),
        }
    }

    /// Finds lost packets, and tells the controllers the fate of their packets.
    pub(super) fn detect(&mut self, news: &mut [News; 2], held: Span, now: Time) {
        let (outgoing, mtu, base, mut control) = (&mut self.outgoing, &mut self.mtu, self.base, false);
        self.loss = self.log.detect(self.rtt.patience(), now, |number, record| {
            control |= lose(outgoing, record);
            if record.bytes > base {
                mtu.iter_mut().for_each(|mtu| mtu.large(number, false));
            }
            if record.content != Content::Control {
                news[usize::from(record.owner) & 1].was_lost(record);
            }
        });
        if control {
            self.tell_again();
        }
        let known = self.known(held, now);
        for (flight, news) in self.flights.iter_mut().zip(news) {
            flight.on_news(news, &known);
        }
    }

    /// A control packet is lost: what it told the peer is to be sent again.
    fn tell_again(&mut self) {
        // A peer from which a packet has come knows that the handshake has succeeded.
        self.greets = self.acks.largest().is_none();
        self.outgoing.values_mut().for_each(Outgoing::forward_again);
        self.incoming.values_mut().for_each(|stream| stream.granted().tell_again());
        self.granted.tell_again();
        self.teller.tell_again();
    }

    fn known(&self, held: Span, now: Time) -> Known {
        let queued_back = self.delay.queued_back();
        Known { now, held, queued_back, srtt: self.rtt.smoothed(), next: self.log.next() }
    }

    /// The sum of the pacing rates of the controllers that are not suspended; `None` if none paces.
    pub(super) fn pacing_rate(&self, now: Time) -> Option<Rate> {
        let sending = self.flights.iter().filter(|flight| !flight.is_suspended(now));
        let rates = sending.filter_map(Flight::pacing_rate);
        rates.map(Rate::bits_per_sec).reduce(u64::saturating_add).map(Rate::from_bits_per_sec)
    }

    /// Passes the path's present state to streams with a deadline.
    fn plan(&mut self, now: Time) {
        if !self.outgoing.values().any(Outgoing::is_planned) {
            return;
        }
        // Capacity is measured at the receiver, so losses come on top of it.
        let arrives = 1.0 - self.per.rate().min(WORST_PER);
        let cap = self.capacity.estimate(now).map(|capacity| {
            Rate::from_bits_per_sec((capacity.bits_per_sec() as f64 / arrives) as u64 / 100 * CAP_PERCENT)
        });
        // A reported rate needs no estimate beside it.
        let cap = cap.filter(|_| !self.is_coordinated());
        self.flights.iter_mut().for_each(|flight| flight.set_cap(cap));
        let (Some(rate), Some(longest)) = (self.pacing_rate(now), self.rtt.largest()) else { return };
        let (rtt, owd) = (self.rtt.patience().min(longest), self.delay.longest().unwrap_or(longest / 2));
        let least =
            (self.rtt.smallest().unwrap_or(rtt), self.delay.smallest_rtt().map_or(owd, |rtt| rtt / 2));
        // A reported rate counts whole IP packets.
        let around = if self.is_coordinated() { self.overhead } else { 0 };
        let path = PathNow { per: self.per.rate(), rtt, owd, least, rate, around };
        self.outgoing.values_mut().for_each(|stream| stream.set_path(path));
        if self.flights.iter().any(Flight::keeps_queues_short) {
            self.suspend(&path, now);
        }
    }

    /// Suspends controllers that fill buffers, if a stream with a deadline would do better without the queue that they build.
    fn suspend(&mut self, path: &PathNow, now: Time) {
        let fills = |flight: &Flight| !flight.keeps_queues_short() && !flight.is_suspended(now);
        if !self.flights.iter().any(fills) {
            return;
        }
        if self.outgoing.values_mut().any(|stream| stream.is_hindered(path)) {
            self.suspend_fillers(now);
        }
    }

    /// Controllers that fill buffers send nothing until the next check.
    pub(super) fn suspend_fillers(&mut self, now: Time) {
        let fills = |flight: &&mut Flight| !flight.keeps_queues_short() && !flight.is_suspended(now);
        self.flights.iter_mut().filter(fills).for_each(|flight| flight.suspend(now + SUSPENDED_FOR));
    }

    /// All packets in flight count as lost.
    #[cfg(feature = "seal")]
    pub(super) fn lose_all(&mut self) {
        let (outgoing, mut control) = (&mut self.outgoing, false);
        self.log.lose_all(|_, record| control |= lose(outgoing, record));
        if control {
            self.tell_again();
        }
    }

    /// The retransmission timeout has passed: all packets in flight count as lost, and an outage begins if the peer was silent for too
    /// long.
    pub(super) fn on_timeout(&mut self, now: Time) {
        let silent = now.since(self.last_heard);
        let gone = silent > Outage::patience(self.rtt.first_timeout(), self.per.rate());
        let (outgoing, mut news, mut control) = (&mut self.outgoing, [News::default(); 2], false);
        let (mtu, base) = (&mut self.mtu, self.base);
        self.log.lose_all(|number, record| {
            control |= lose(outgoing, record);
            if record.bytes > base {
                mtu.iter_mut().for_each(|mtu| mtu.large(number, false));
            }
            if record.content != Content::Control {
                news[usize::from(record.owner) & 1].was_lost(record);
            }
        });
        if control {
            self.tell_again();
        }
        self.capacity.pause();
        if gone {
            (self.outage, self.probe, self.timeout) = (Outage::Since(now), now, Time::NEVER);
            let flights = self.flights.iter_mut().zip(&news);
            flights.for_each(|(flight, news)| flight.on_outage(news, self.last_heard, now));
            return;
        }
        self.rtt.back_off();
        self.timeouts += 1;
        let known = self.known(Span::ZERO, now);
        self.flights.iter_mut().zip(&news).for_each(|(flight, news)| flight.on_timeout(news, &known));
        self.timeout = Time::NEVER;
    }
}

/// Tells a lost packet's stream of the loss. Returns whether it was a control packet.
fn lose(outgoing: &mut BTreeMap<u8, Outgoing>, record: &Record) -> bool {
    match record.content {
        Content::Segment { stream, sequence, round } => {
            outgoing.get_mut(&stream).into_iter().for_each(|stream| stream.lost(sequence, round));
        }
        Content::Repair { stream, start, round } => {
            let stream = outgoing.get_mut(&stream).into_iter();
            stream.for_each(|stream| stream.repair_fate(start, round, false, false));
        }
        Content::Part { stream, sequence, part } => {
            outgoing.get_mut(&stream).into_iter().for_each(|stream| stream.part_lost(sequence, part));
        }
        Content::Control => return true,
        Content::Nothing => {}
    }
    false
}
