//! `weir sliq perf`: throughput over one connection or many, or the delays of messages that have a deadline, with a host that runs
//! `weir sliq serve --perf`.

use super::args::PerfArgs;
use super::connect::{Remote, failed};
use super::drive::{Application, drive};
use super::frames::STREAM;
use super::received::{peak_memory, process_time};
use crate::failure::Failure;
use crate::frame::status::Board;
use crate::frame::{Common, Daemon, Process};
use crate::output::{print, print_json};
use crate::transfer::{Ask, Counted, Frame, Receipt, Talk};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use weir_base::{Bytes, Histogram, Rate, Span, Time};
use weir_endpoint::{Endpoint, Message, Stream};
use weir_sliq::host::Host;
use weir_sliq::link::Link;
use weir_sliq::{DeliveryName, LONGEST_DEADLINE, StreamParameters};

/// Bytes of one write: zeros, which cost as much as other bytes.
const PIECE: usize = 1 << 16;
/// Most data that waits in a connection for its first transmission: with at most [`FEW`] connections, and with more.
const QUEUE: Bytes = Bytes::new(1 << 18);
const SMALL_QUEUE: Bytes = Bytes::new(1 << 15);
const FEW: u32 = 16;
/// Time between two samples of the RTTs, and between two checks whether the other host is silent.
const LOOK: Span = Span::from_millis(50);
/// Bytes at the start of a message: the time at which it was sent.
const STAMP: usize = 8;
/// Priority of bulk data.
const BULK_PRIORITY: u8 = 3;

impl Daemon for PerfArgs {
    const COMMAND: &'static str = "sliq perf";
    const KIND: &'static str = "measurement over SLIQ";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        perf(self, process)
    }
}

fn perf(args: &PerfArgs, process: &Process) -> Result<(), Failure> {
    check(args)?;
    let (mut remote, mut port) = Remote::new(&args.host, &args.connect)?;
    let board = Board::default();
    remote.begin(process, &board)?;
    let (mut host, clock) = (Host::new(None), remote.clock);
    let (cpu, begins) = (process_time(), clock.now());
    let queue = if args.connections > FEW { SMALL_QUEUE } else { QUEUE };
    let stream = StreamParameters { queue, priority: BULK_PRIORITY, ..StreamParameters::default() };
    let mut connections = BTreeMap::new();
    for _ in 0..args.connections {
        let number = remote.connect(&mut host, stream.clone(), begins)?;
        let messages = match (args.deadline, host.link(number)) {
            (Some(deadline), Some(link)) => link.add_stream(&messages(args, deadline), true).map(Stream),
            _ => None,
        };
        connections.insert(number, Connection::new(messages));
    }
    let mut measuring = Measuring {
        args,
        process,
        board,
        remote: &remote,
        connections,
        zeros: vec![0; PIECE.max(args.message.get() as usize)],
        rtt: Histogram::default(),
        look: begins,
        failure: None,
        over: 0,
    };
    drive(&mut port, &mut host, &mut measuring, clock).map_err(|error| failed(&error))?;
    if let Some(failure) = measuring.failure {
        return Err(failure);
    }
    let document = measuring.document(process_time().saturating_sub(cpu));
    if args.json { print_json(&document) } else { print(&text(&document)) }
}

fn check(args: &PerfArgs) -> Result<(), Failure> {
    if args.connections > 1 && args.connect.member.application.is_some() {
        let message = format!("{} connections cannot be one flow of an application", args.connections);
        return Err(Failure::bad_input(message, "leave --connections or --application out"));
    }
    if !(0.5..=0.9999).contains(&args.target) {
        return Err(Failure::bad_input(
            format!("a target of {} is out of range", args.target),
            "write 0.5 to 0.9999",
        ));
    }
    if let Some(deadline) = args.deadline
        && !(Span::from_nanos(1)..=LONGEST_DEADLINE).contains(&deadline)
    {
        return Err(Failure::bad_input(
            format!("a deadline of {deadline} is out of range"),
            format!("write more than 0 s, and {LONGEST_DEADLINE} or less"),
        ));
    }
    if args.rate.bits_per_sec() == 0 || !(STAMP as u64..=1 << 20).contains(&args.message.get()) {
        return Err(Failure::bad_input(
            "the messages are too short, too long, or none",
            "write --rate 1mbit --message 1000B",
        ));
    }
    Ok(())
}

fn messages(args: &PerfArgs, deadline: Span) -> StreamParameters {
    StreamParameters {
        delivery: DeliveryName::ArqFec,
        deadline: Some(deadline),
        target: args.target,
        priority: args.priority,
        ..StreamParameters::default()
    }
}

/// A connection.
struct Connection {
    talk: Talk,
    /// The stream of its messages; `None` without a deadline.
    messages: Option<Stream>,
    opened: Option<Time>,
    written: u64,
    /// Messages sent, and when the next is due.
    sent: u64,
    next: Time,
    closed: bool,
    receipts: Vec<(Receipt, Time)>,
    /// What the receiver has counted, and when that came.
    counted: Option<(Counted, Time)>,
    retransmitted: u64,
}

impl Connection {
    fn new(messages: Option<Stream>) -> Connection {
        let mut talk = Talk::default();
        talk.ask(Ask::Perf);
        Connection {
            talk,
            messages,
            opened: None,
            written: 0,
            sent: 0,
            next: Time::NEVER,
            closed: false,
            receipts: vec![],
            counted: None,
            retransmitted: 0,
        }
    }

    /// Reads what has arrived, and writes as much as there is room for. Returns whether the receiver's counts are there.
    fn go_on(
        &mut self,
        args: &PerfArgs,
        zeros: &mut [u8],
        link: &mut Link,
        now: Time,
    ) -> Result<bool, Failure> {
        if !link.is_open() {
            return Ok(false);
        }
        let opened = *self.opened.get_or_insert(now);
        self.talk.take(link, |_, _| {});
        while let Some(frame) = self.talk.next().map_err(|error| failed(&error))? {
            match frame {
                Frame::Receipts(receipts) => {
                    self.receipts.extend(receipts.iter().map(|receipt| (*receipt, now)))
                }
                Frame::Counted(counted) => self.counted = Some((counted, now)),
                Frame::Message(weir_circuit::transfer::Message::Refuse { reason }) => {
                    return Err(Failure::failed(format!("refused: {reason}")));
                }
                _ => return Err(Failure::failed("the other host says what a receiver has no reason to say")),
            }
        }
        self.talk.write(link, now);
        let over = args.bytes.is_none() && now >= opened + args.duration;
        if self.talk.waiting() == 0 && !self.closed {
            if !over && (self.messages.is_none() || args.bulk) {
                self.write(args, zeros, link, now);
            }
            if let Some(stream) = self.messages.filter(|_| !over) {
                self.send(args, stream, zeros, link, now);
            }
            if over || args.bytes.is_some_and(|bytes| self.written >= bytes.get()) {
                self.closed = true;
                link.close(None, now);
            }
        }
        if self.counted.is_some() {
            self.retransmitted = link.sample().map_or(0, |sample| sample.retransmitted);
        }
        Ok(self.counted.is_some())
    }

    /// Writes as many bytes as there is room for.
    fn write(&mut self, args: &PerfArgs, zeros: &[u8], link: &mut Link, now: Time) {
        loop {
            let left = args.bytes.map_or(u64::MAX, |bytes| bytes.get() - self.written);
            let head = &zeros[..left.min(PIECE as u64) as usize];
            let taken = link.write(STREAM, Message { bytes: head.len() as u64, head }, now);
            self.written += taken;
            if taken == 0 {
                return;
            }
        }
    }

    /// Sends the messages that are due.
    fn send(&mut self, args: &PerfArgs, stream: Stream, zeros: &mut [u8], link: &mut Link, now: Time) {
        let gap = args.rate.time_to_send(args.message);
        if self.next == Time::NEVER {
            self.next = now;
        }
        while self.next <= now {
            let length = args.message.get() as usize;
            zeros[..STAMP].copy_from_slice(&now.as_nanos().to_be_bytes());
            // A message without room is not retried: it counts as late.
            link.write(stream, Message { bytes: length as u64, head: &zeros[..length] }, now);
            zeros[..STAMP].fill(0);
            (self.sent, self.next) = (self.sent + 1, self.next + gap);
        }
    }
}

/// A measurement.
struct Measuring<'a> {
    args: &'a PerfArgs,
    process: &'a Process,
    board: Board,
    remote: &'a Remote<'a>,
    connections: BTreeMap<usize, Connection>,
    zeros: Vec<u8>,
    /// Smoothed RTTs of all connections, sampled every [`LOOK`].
    rtt: Histogram,
    look: Time,
    failure: Option<Failure>,
    over: usize,
}

/// Seconds in which data came, from the first byte of any connection to the last byte of any. The receiver tells the length of each
/// connection's time, and its counts come when the time is over: one way later, which is the same for all.
fn receiving(counted: impl Iterator<Item = (Counted, Time)>) -> f64 {
    let times =
        counted.map(|(counted, at)| (at.as_secs_f64() - counted.seconds, at.as_secs_f64(), counted.seconds));
    let joined = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1), all.2.max(one.2)));
    // The difference of two large numbers is less exact than what the receiver tells.
    joined.map_or(0.0, |(from, to, longest)| longest.max(to - from))
}

impl Measuring<'_> {
    fn fail(&mut self, failure: Failure, host: &mut Host) {
        self.failure.get_or_insert(failure);
        for number in self.connections.keys() {
            end(*number, host);
        }
    }

    fn document(&self, cpu: Span) -> Value {
        let seconds = receiving(self.connections.values().filter_map(|connection| connection.counted));
        let counted: Vec<Counted> =
            self.connections.values().filter_map(|connection| Some(connection.counted?.0)).collect();
        let bytes: u64 = counted.iter().map(|counted| counted.bytes).sum();
        let longest = |of: fn(&Counted) -> f64| counted.iter().map(of).fold(0.0, f64::max);
        // Data that comes all at once has no rate.
        let goodput = Some(Span::from_secs_f64(seconds)).filter(|span| !span.is_zero());
        let goodput = goodput.map(|span| Rate::from_bytes_in(Bytes::new(bytes), span));
        let mut document = json!({
            "connections": self.connections.len(),
            "received_bytes": bytes,
            "seconds": seconds,
            "goodput_bit_per_s": goodput.map(Rate::bits_per_sec),
            "retransmitted_packets": self.connections.values().map(|connection| connection.retransmitted).sum::<u64>(),
            "srtt_ms": spread(&self.rtt),
            "sender_cpu_seconds": cpu.as_secs_f64(),
            "receiver_cpu_seconds": longest(|counted| counted.cpu_seconds),
            "sender_peak_memory_bytes": peak_memory(),
            "receiver_peak_memory_bytes": counted.iter().map(|counted| counted.peak_memory_bytes).max(),
        });
        if let (Some(deadline), Some(connection)) = (self.args.deadline, self.connections.values().next()) {
            document["messages"] = connection.messages(deadline);
        }
        document
    }
}

impl Connection {
    /// Counts and delays of its messages. The clocks' offset is taken from the shortest round trip, as if its two ways were equal.
    fn messages(&self, deadline: Span) -> Value {
        let nearest = self.receipts.iter().min_by_key(|(receipt, back)| back.since(receipt.sent).as_nanos());
        let offset = nearest.map_or(0, |(receipt, back)| {
            let middle = (i128::from(receipt.sent.as_nanos()) + i128::from(back.as_nanos())) / 2;
            i128::from(receipt.arrived.as_nanos()) - middle
        });
        let (mut delays, mut in_time) = (Histogram::default(), 0u64);
        for (receipt, _) in &self.receipts {
            let delay = i128::from(receipt.arrived.as_nanos()) - i128::from(receipt.sent.as_nanos()) - offset;
            let delay = Span::from_nanos(u64::try_from(delay.max(0)).unwrap_or(u64::MAX));
            delays.record(delay);
            in_time += u64::from(delay <= deadline);
        }
        json!({
            "sent": self.sent,
            "received": self.receipts.len(),
            "in_time": in_time,
            "in_time_percent": 100.0 * in_time as f64 / self.sent.max(1) as f64,
            "delay_ms": spread(&delays),
        })
    }
}

fn spread(histogram: &Histogram) -> Value {
    let millis = |span: Option<Span>| span.map(|span| span.as_millis_f64());
    json!({
        "mean": millis(histogram.mean()),
        "p50": millis(histogram.percentile(0.5)),
        "p99": millis(histogram.percentile(0.99)),
        "max": millis(histogram.max()),
    })
}

fn end(number: usize, host: &mut Host) {
    if let Some(link) = host.link(number) {
        link.end();
        host.look_at(number);
    }
}

/// The document as plain text.
fn text(document: &Value) -> String {
    let number = |key: &str| document[key].as_f64().unwrap_or_default();
    let goodput = match document["goodput_bit_per_s"].as_f64() {
        Some(goodput) => format!("{:.3} Mbit/s", goodput / 1e6),
        None => "All at once, so at no rate".into(),
    };
    let mut text = format!(
        "{goodput}: {} in {:.2} s over {} connections, {} packets retransmitted\n\
         RTT {:.3} ms on average; {:.2} s of processor time here, {:.2} s there\n",
        Bytes::new(document["received_bytes"].as_u64().unwrap_or_default()),
        number("seconds"),
        document["connections"],
        document["retransmitted_packets"],
        document["srtt_ms"]["mean"].as_f64().unwrap_or_default(),
        number("sender_cpu_seconds"),
        number("receiver_cpu_seconds"),
    );
    if let Some(messages) = document.get("messages") {
        text += &format!(
            "{} of {} messages in time ({:.2} %), delays {:.3} ms on average, 99 % within {:.3} ms\n",
            messages["in_time"],
            messages["sent"],
            messages["in_time_percent"].as_f64().unwrap_or_default(),
            messages["delay_ms"]["mean"].as_f64().unwrap_or_default(),
            messages["delay_ms"]["p99"].as_f64().unwrap_or_default(),
        );
    }
    text
}

impl Application for Measuring<'_> {
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time) {
        let (Some(connection), Some(link)) = (self.connections.get_mut(&number), host.link(number)) else {
            return;
        };
        if self.failure.is_some() {
            return;
        }
        match connection.go_on(self.args, &mut self.zeros, link, now) {
            Ok(false) => {}
            Ok(true) => link.end(),
            Err(failure) => self.fail(failure, host),
        }
    }
    fn on_over(&mut self, number: usize, host: &mut Host, _: Time) {
        self.over += 1;
        if let Some(connection) =
            self.connections.get(&number).filter(|connection| connection.counted.is_none())
        {
            let lost = self.remote.lost(connection.opened.is_some());
            self.fail(lost, host);
        }
    }
    fn next_timer(&self) -> Time {
        let messages = self
            .connections
            .values()
            .next()
            .filter(|connection| connection.messages.is_some() && !connection.closed);
        messages.map_or(self.look, |connection| self.look.min(connection.next))
    }
    fn on_timer(&mut self, host: &mut Host, now: Time) {
        if now >= self.look {
            self.look = now + LOOK;
            if self.process.stops() {
                self.fail(Failure::interrupted("interrupted"), host);
                return;
            }
            let written = self.connections.values().map(|connection| connection.written).sum();
            self.board.change(|status| status.count("sent_bytes", written));
            let mut silent = None;
            for number in self.connections.keys() {
                let Some(link) = host.link(*number).filter(|link| !link.is_over()) else { continue };
                link.sample()
                    .and_then(|sample| sample.srtt)
                    .into_iter()
                    .for_each(|srtt| self.rtt.record(srtt));
                if self.remote.is_silent(link, now) {
                    silent = Some(link.is_open());
                }
                // The time for which it sends may be over.
                host.look_at(*number);
            }
            if let Some(was_open) = silent {
                self.fail(self.remote.lost(was_open), host);
            }
        }
        if let Some((number, _)) =
            self.connections.iter().next().filter(|(_, connection)| connection.next <= now)
        {
            host.look_at(*number);
        }
    }
    fn is_done(&self) -> bool {
        self.over == self.connections.len()
    }
}
