//! A flow of packets at a given rate, without retransmission: the endpoint that rate-based transports share. A [`RateControl`] at
//! the sender sets the rate; a [`Reporter`] at the receiver reports arrivals to it. Each end has both, since either end may send.
//!
//! The flow is a stream of bytes with gaps for lost packets. There is no handshake. The end of the stream is a packet of its own,
//! which is retransmitted until it is acknowledged.

mod packet;
mod seen;
mod source;

pub(crate) use packet::{Data, HEADER, Kind, Writer, reader};
use seen::Seen;
use source::Source;

use weir_base::{Bytes, Ecn, Rate, Span, Time};
use weir_endpoint::{Body, Datagram};
use weir_endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};

/// A UDP header (RFC 768).
const UDP_HEADER: u32 = 8;
/// Smallest timeout after which the end of the stream is retransmitted.
const END_TIMEOUT: Span = Span::from_millis(200);

/// The control of a sender's rate.
pub(crate) trait RateControl: Send {
    /// The rate in bytes of IP packets a second; above zero.
    fn rate(&self) -> f64;
    /// The smoothed round trip time; `None` before the first sample.
    fn rtt(&self) -> Option<Span>;
    /// A packet leaves. `backlogged` says whether more data waits behind it.
    fn sent(&mut self, sequence: u64, backlogged: bool, now: Time);
    /// A report of the peer's [`Reporter`] has arrived. An implementation ignores an incomplete one.
    fn reported(&mut self, report: &[u8], now: Time);
    /// When [`RateControl::on_timer`] is due; [`Time::NEVER`] without a timer.
    fn next_timer(&self) -> Time;
    /// The timer has expired.
    fn on_timer(&mut self, now: Time);
    /// Fills in the control's own fields of a sample.
    fn sample(&self, sample: &mut Sample);
    /// Internal state as names and values.
    fn state(&self, report: &mut dyn FnMut(&'static str, f64));
}

/// The reports of a receiver about arriving packets.
pub(crate) trait Reporter: Send {
    /// A packet has arrived, `length` bytes long as an IP packet.
    fn arrived(&mut self, data: &Data, length: u32, now: Time);
    /// Appends the report that is due now. Returns whether one was due.
    fn report(&mut self, to: &mut Writer, now: Time) -> bool;
    /// When a report is due; [`Time::NEVER`] if none is.
    fn next_timer(&self) -> Time;
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Flow<S, R> {
    control: S,
    reporter: R,
    source: Source,
    ecn: Ecn,
    /// Length in bytes of a full IP packet and of its IP header.
    packet: u32,
    ip_header: u32,
    open: bool,
    /// Time at which it was opened, until the first timer. The timer wakes the driver, since no packet of the peer does.
    opened: Time,
    /// Number of the next packet.
    next: u64,
    /// Planned departure time of the last packet, and its length in bytes. The next packet's time follows from the rate at that time.
    left: Option<(Time, u32)>,
    /// When the end of the stream is retransmitted.
    end_again: Time,
    end_acknowledged: bool,
    /// Whether the peer's end of the stream has arrived, and whether it has yet to be acknowledged.
    ended: bool,
    say_ended: bool,
    /// The packets that have arrived, and bytes of their data that are not read.
    seen: Seen,
    arrived: u64,
    writer: Writer,
}

impl<S: RateControl, R: Reporter> Flow<S, R> {
    /// An end that sends packets of this length, IP header included.
    pub(crate) fn new(control: S, reporter: R, packet: u32, ip_header: u32, ecn: Ecn) -> Flow<S, R> {
        let payload = packet - ip_header - UDP_HEADER - HEADER as u32;
        Flow {
            control,
            reporter,
            source: Source::new(payload),
            ecn,
            packet,
            ip_header,
            open: false,
            opened: Time::NEVER,
            next: 0,
            left: None,
            end_again: Time::ZERO,
            end_acknowledged: false,
            ended: false,
            say_ended: false,
            seen: Seen::default(),
            arrived: 0,
            writer: Writer::default(),
        }
    }

    /// When the next packet with data may leave; [`Time::ZERO`] before the first.
    fn due(&self) -> Time {
        self.left.map_or(Time::ZERO, |(at, length)| at + self.gap(length))
    }

    /// Time from a packet of this length to the next packet.
    fn gap(&self, length: u32) -> Span {
        Span::from_secs_f64(f64::from(length) / self.control.rate())
    }

    /// When the end of the stream is due to be sent or retransmitted; [`Time::NEVER`] if it is not.
    fn end_due(&self) -> Time {
        if self.source.has_ended() && !self.end_acknowledged { self.end_again } else { Time::NEVER }
    }

    /// The next packet of data or the end of the stream, if it is due.
    fn data(&mut self, datagram: &mut Datagram, now: Time) -> bool {
        let (due, end) = (self.due(), self.end_due() <= now);
        let payload = if end {
            let again = self.control.rtt().map_or(Span::ZERO, |rtt| rtt * 4);
            self.end_again = now + again.max(END_TIMEOUT);
            0
        } else if self.open && due <= now {
            match self.source.take() {
                0 => return false,
                payload => payload,
            }
        } else {
            return false;
        };
        let data = Data {
            sequence: self.next as u32,
            timestamp: micros(now),
            rtt: self.control.rtt().map_or(0, |rtt| rtt.as_micros().clamp(1, u32::MAX.into()) as u32),
            end,
        };
        datagram.set(&data.encoded(), HEADER as u32 + payload);
        let length = self.ip_header + UDP_HEADER + datagram.payload();
        // A sender that is late by less than a gap catches up; an idle sender does not.
        let at = if self.left.is_some() && now.since(due) <= self.gap(length) { due } else { now };
        self.left = Some((at, length));
        self.control.sent(self.next, self.source.has_more(), now);
        self.next += 1;
        true
    }
}

/// The clock of timestamps: microseconds, 32 bits.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

impl<S: RateControl, R: Reporter> Endpoint for Flow<S, R> {
    fn open(&mut self, now: Time) {
        (self.open, self.opened) = (true, now);
    }

    fn receive(&mut self, body: &Body, _: Ecn, now: Time) {
        let Body::Datagram(datagram) = body else { return };
        let Some((kind, rest)) = reader(&datagram.head) else { return };
        self.open = true;
        match kind {
            Kind::Data => {
                let Some(data) = Data::decoded(rest) else { return };
                let length = self.ip_header + UDP_HEADER + datagram.payload();
                self.reporter.arrived(&data, length, now);
                if self.seen.is_new(data.sequence) {
                    self.arrived += u64::from(datagram.payload().saturating_sub(HEADER as u32));
                }
                self.ended |= data.end;
                self.say_ended |= data.end;
            }
            Kind::Report => self.control.reported(rest, now),
            Kind::EndAcknowledged => self.end_acknowledged |= self.source.has_ended(),
        }
    }

    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        let datagram = into.datagram_mut();
        if std::mem::take(&mut self.say_ended) {
            self.writer.begin(Kind::EndAcknowledged);
            datagram.set(self.writer.bytes(), self.writer.bytes().len() as u32);
            return Some(self.ecn);
        }
        self.writer.begin(Kind::Report);
        if self.reporter.report(&mut self.writer, now) {
            datagram.set(self.writer.bytes(), self.writer.bytes().len() as u32);
            return Some(self.ecn);
        }
        self.data(datagram, now).then_some(self.ecn)
    }

    fn next_timer(&self) -> Time {
        let data = if self.open && self.source.has_more() { self.due() } else { Time::NEVER };
        let own = data.min(self.end_due()).min(self.opened);
        own.min(self.control.next_timer()).min(self.reporter.next_timer())
    }

    fn on_timer(&mut self, now: Time) {
        self.opened = Time::NEVER;
        if self.control.next_timer() <= now {
            self.control.on_timer(now);
        }
    }

    fn write(&mut self, _: Stream, message: Message<'_>, _: Time) -> u64 {
        self.source.write(message.bytes)
    }

    fn keep_full(&mut self, _: Stream, _: bool) -> bool {
        self.source.keep_full();
        true
    }

    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        match std::mem::take(&mut self.arrived) {
            0 => {}
            bytes => to(Stream(0), Read { bytes, head: &[], due: None }),
        }
    }

    fn close(&mut self, _: Option<Stream>, _: Time) {
        self.source.close();
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn finished(&self) -> bool {
        self.ended
    }

    fn all_acknowledged(&self) -> bool {
        !self.source.has_more() && (self.end_acknowledged || !self.source.is_closed())
    }

    fn counts(&self) -> Counts {
        Counts { timeouts: self.sample().map_or(0, |sample| sample.timeouts), ..Counts::default() }
    }

    fn sample(&self) -> Option<Sample> {
        let rate = self.control.rate();
        let rtt = self.control.rtt()?;
        let mut sample = Sample {
            cwnd: (rate * rtt.as_secs_f64() / f64::from(self.packet) + 0.5) as u32,
            ssthresh: None,
            srtt: Some(rtt),
            min_rtt: None,
            rto: Span::ZERO,
            in_flight: 0,
            retransmitted: 0,
            timeouts: 0,
            spurious: None,
            pacing_rate: Some(Rate::from_bits_per_sec((rate * 8.0) as u64)),
            delivery_rate: None,
            acknowledged: Bytes::ZERO,
        };
        self.control.sample(&mut sample);
        Some(sample)
    }

    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        self.control.state(&mut |name, value| report(Part::Controller(0), name, value));
    }
}
