//! The applications: one thread drives the workloads of all flows over non-blocking sockets and epoll, reads everything
//! that arrives, and samples `tcp_info`.

use crate::address::{address_of, port_of};
use crate::clock::{Clock, thread_time, timespec_of};
use crate::exchange::Exchange;
use crate::relay::Relay;
use crate::sockets::{self, FlowSockets};
use crate::tcp_info;
use crate::testbed::Testbed;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, sockopt};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_base::{Histogram, Span, Time};
use weir_engine::frame_message;
use weir_plan::Run;
use weir_record::{FlowEvent, FlowEventKind, Message, MessageFate, MessageKind, Recorder};
use weir_workload::{Action, Event, FrameLog, Needs, Part, Workload, Writes};

/// Most that is written in one call, and read for one flow before others get their turn.
const TURN: usize = 64 * 1024;
/// A UDP header (RFC 768).
const UDP_HEADER: u64 = 8;
/// How long the thread sleeps at most before it looks whether the run is over.
const LOOK_UP: Span = Span::from_millis(20);
/// How long a greedy writer waits before it tops its socket up again: at 100 Mbit/s eight packets leave in that time, where the
/// kernel wakes a writer for a third of the buffer.
const TOP_UP: Span = Span::from_millis(1);
/// How long before its start a drawn flow gets its sockets, and how long after its completion it keeps them, so that both ends
/// have closed.
const AHEAD: Span = Span::from_millis(150);
const BEHIND: Span = Span::from_secs(1);
/// Share of a core that sampling `tcp_info` may take.
const SAMPLING_SHARE: f64 = 0.01;

/// What the application thread has to tell when the run is over.
#[derive(Debug, Default)]
pub(crate) struct AppsReport {
    /// How much later than asked for datagrams left their sockets.
    pub(crate) gap_error: Histogram,
    /// Most sample periods between two samples of `tcp_info`.
    pub(crate) sampled_every: u32,
    /// What went wrong with flows, each once.
    pub(crate) troubles: Vec<String>,
}

/// What a flow's sending application waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Its start.
    Start,
    /// The connection.
    Open,
    /// Room in the socket, for so many bytes yet.
    Room(u64),
    /// A time.
    Time,
    /// The answer to a request.
    Answer,
    /// Nothing: the application has ended.
    Nothing,
}

struct FlowState {
    workload: Box<dyn Workload>,
    sockets: FlowSockets,
    target: SocketAddr,
    /// IP and UDP headers: what a datagram's payload is shorter by.
    headers: u64,
    /// Whether it is a TCP connection on which the sending host sends.
    stream: bool,
    /// The request under way, where the receiving host asks and the sending one answers.
    exchange: Option<Exchange>,
    /// What keeps account of frames.
    frames: Option<Box<FrameLog>>,
    /// Whether it is one of many that were drawn: its sockets come and go with it.
    drawn: bool,
    waiting: Waiting,
    /// Whether it tops its socket up all the time instead of waiting to be told of room.
    greedy: bool,
    /// What the epoll instance was told about the sender: whether it is registered and wants room.
    watched: bool,
    read: u64,
    opened: bool,
    complete: bool,
    /// When the datagram that is being sent was due.
    due: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start,
    Wake,
    Stop,
    /// A drawn flow's sockets are let go.
    Discard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Sender,
    Listener,
    Receiver,
}

/// The application thread's state.
pub(crate) struct Apps<'a> {
    run: &'a Run,
    testbed: &'a Testbed,
    /// Drawn flows that have no sockets yet, the next to start last.
    to_come: Vec<usize>,
    flows: Vec<FlowState>,
    epoll: OwnedFd,
    timers: BinaryHeap<Reverse<(Time, Timer, usize)>>,
    clock: Clock,
    read: &'a [AtomicU64],
    relay: Relay,
    payload: Vec<u8>,
    scratch: Vec<u8>,
    sample: Span,
    next_sample: Time,
    report: AppsReport,
}

impl<'a> Apps<'a> {
    /// Takes the sockets of all flows over. `read` is where each flow's bytes are counted as they are read.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(
        run: &'a Run,
        testbed: &'a Testbed,
        sockets: Vec<FlowSockets>,
        clock: Clock,
        read: &'a [AtomicU64],
        relay: Relay,
    ) -> io::Result<Apps<'a>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut timers = BinaryHeap::new();
        let mut flows = vec![];
        for ((index, flow), sockets) in run.flows.iter().enumerate().zip(sockets) {
            let group = &run.groups[flow.group];
            let needs = group.workload.needs();
            let asks = needs == Needs::Exchanges;
            add_to(&epoll, &sockets, index, asks)?;
            let drawn = group.workload.is_drawn();
            if sockets.sender.is_some() || asks || drawn {
                timers.push(Reverse((Time::ZERO + flow.start, Timer::Start, index)));
                if let Some(stop) = flow.stop {
                    timers.push(Reverse((Time::ZERO + stop, Timer::Stop, index)));
                }
            }
            flows.push(FlowState {
                workload: run.workload(index),
                sockets,
                target: SocketAddr::new(
                    address_of(if asks { group.from } else { group.to }, group.ip),
                    port_of(index),
                ),
                headers: u64::from(group.ip.header()) + UDP_HEADER,
                stream: needs == Needs::Stream,
                exchange: asks.then(Exchange::default),
                frames: run.frame_log(index).map(Box::new),
                drawn,
                waiting: Waiting::Start,
                greedy: false,
                watched: false,
                read: 0,
                opened: false,
                complete: false,
                due: Time::ZERO,
            });
        }
        let mut to_come: Vec<usize> = (0..flows.len()).filter(|flow| flows[*flow].drawn).collect();
        to_come.sort_by_key(|flow| Reverse(run.flows[*flow].start));
        Ok(Apps {
            run,
            testbed,
            to_come,
            flows,
            epoll,
            timers,
            clock,
            read,
            relay,
            payload: vec![0; TURN],
            scratch: Vec::with_capacity(TURN),
            sample: run.sample,
            next_sample: Time::ZERO + run.sample,
            report: AppsReport { sampled_every: 1, ..AppsReport::default() },
        })
    }

    /// Drives everything until `over` is set; then closes all sockets, by resets.
    ///
    /// # Errors
    /// The kernel's, from epoll; what goes wrong with a flow is reported, and the others go on.
    pub(crate) fn run(mut self, over: &AtomicBool) -> io::Result<AppsReport> {
        self.prepare(Time::ZERO);
        std::thread::sleep(std::time::Duration::from_nanos(self.clock.until_start().as_nanos()));
        let mut events = Vec::with_capacity(256);
        while !over.load(Ordering::Acquire) {
            let now = self.clock.now();
            self.fire_timers(now);
            self.prepare(now);
            self.sample_transports(now);
            let due = self.timers.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at).min(self.next_sample);
            let sleep = due.since(self.clock.now()).min(LOOK_UP);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timespec_of(sleep))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (flow, end) = flow_and_end(event.data.u64());
                match end {
                    _ if self.flows[flow].exchange.is_some() && end != End::Listener => {
                        self.exchange_ready(flow)
                    }
                    End::Sender => self.sender_ready(flow),
                    End::Listener => self.accept(flow),
                    End::Receiver => self.receive(flow),
                }
            }
        }
        self.settle_frames(Time::ZERO + self.run.duration);
        Ok(self.report)
    }

    /// Opens the sockets of the drawn flows that start soon.
    fn prepare(&mut self, now: Time) {
        // In batches: each takes a visit to every host concerned.
        let start_of = |flow: &usize| Time::ZERO + self.run.flows[*flow].start;
        if self
            .to_come
            .last()
            .is_none_or(|next| start_of(next) > now + Span::from_nanos(AHEAD.as_nanos() / 2))
        {
            return;
        }
        let begin = self.to_come.partition_point(|flow| start_of(flow) > now + AHEAD);
        let flows = self.to_come.split_off(begin);
        match sockets::open_some(self.run, self.testbed, &flows) {
            Ok(opened) => {
                for (flow, sockets) in flows.into_iter().zip(opened) {
                    let added = add_to(&self.epoll, &sockets, flow, false);
                    self.flows[flow].sockets = sockets;
                    if let Err(error) = added {
                        self.fail(flow, "cannot be watched", error.into());
                    }
                }
            }
            Err(error) => {
                for flow in flows {
                    self.fail(
                        flow,
                        "cannot open its sockets",
                        io::Error::new(error.kind(), error.to_string()),
                    );
                }
            }
        }
    }

    fn fire_timers(&mut self, now: Time) {
        while let Some(&Reverse((at, timer, flow))) =
            self.timers.peek().filter(|Reverse((at, ..))| *at <= now)
        {
            self.timers.pop();
            match (timer, self.flows[flow].waiting) {
                (Timer::Start, Waiting::Start) => {
                    self.event(flow, FlowEventKind::Started);
                    self.flows[flow].due = at;
                    self.act(flow, Event::Start);
                }
                (Timer::Wake, Waiting::Time) => {
                    self.flows[flow].due = at;
                    self.act(flow, Event::Woken);
                }
                (Timer::Wake, Waiting::Room(bytes)) => {
                    self.write(flow, bytes);
                }
                (Timer::Stop, waiting) if waiting != Waiting::Nothing => self.close(flow),
                (Timer::Discard, _) => self.flows[flow].sockets = FlowSockets::default(),
                _ => {}
            }
        }
    }

    /// Tells a flow's workload what has happened, and does what it says until it has to wait.
    fn act(&mut self, flow: usize, mut event: Event) {
        loop {
            let now = self.clock.now();
            let state = &mut self.flows[flow];
            // A workload that keeps time is told the time it asked for, so that its own gaps never add up.
            let told =
                if matches!(event, Event::Start | Event::Woken | Event::Sent) { state.due } else { now };
            let next = match state.workload.next(event, told) {
                Action::Open => self.open(flow),
                Action::Write(bytes) => self.write(flow, bytes.get()),
                Action::WriteForever(writes) => {
                    state.greedy = writes == Writes::Greedy;
                    self.write(flow, u64::MAX)
                }
                Action::WaitUntil(at) => {
                    state.waiting = Waiting::Time;
                    self.timers.push(Reverse((at, Timer::Wake, flow)));
                    None
                }
                Action::Exchange { request, response } => {
                    state.waiting = Waiting::Answer;
                    if let Some(exchange) = &mut state.exchange {
                        exchange.begin(request.get(), response.get(), state.workload.heads(), now);
                    }
                    self.exchange_on(flow)
                }
                Action::Send(bytes) => self.send(flow, bytes.get(), None),
                Action::SendPart(bytes, part) => self.send(flow, bytes.get(), Some(part)),
                Action::Close => {
                    state.exchange.iter_mut().for_each(|exchange| exchange.over = true);
                    self.close(flow);
                    None
                }
            };
            match next {
                Some(next) => event = next,
                None => return,
            }
        }
    }

    fn open(&mut self, flow: usize) -> Option<Event> {
        let state = &mut self.flows[flow];
        state.waiting = Waiting::Open;
        let asks = state.exchange.is_some();
        let opener = if asks { &state.sockets.receiver } else { &state.sockets.sender };
        match opener.as_ref().map(|socket| rustix::net::connect(socket, &state.target)) {
            Some(Ok(()) | Err(Errno::INPROGRESS)) if asks => {
                let both = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                let added = opener
                    .as_ref()
                    .map(|socket| epoll::add(&self.epoll, socket, key(flow, End::Receiver), both));
                if let Some(Err(error)) = added {
                    self.fail(flow, "cannot connect", error.into());
                }
            }
            Some(Ok(()) | Err(Errno::INPROGRESS)) => self.watch_sender(flow, true),
            Some(Err(error)) => self.fail(flow, "cannot connect", error.into()),
            None => self.fail(flow, "cannot connect", io::ErrorKind::Unsupported.into()),
        }
        None
    }

    /// Writes so many more bytes, as many as there is room for; the rest when there is more. The socket is filled to the
    /// brim, since the kernel tells of room again only when a third of it is free.
    fn write(&mut self, flow: usize, mut bytes: u64) -> Option<Event> {
        while bytes > 0 {
            let state = &mut self.flows[flow];
            let socket = state.sockets.sender.as_ref()?;
            let piece = usize::try_from(bytes).unwrap_or(TURN).min(TURN);
            match rustix::net::send(socket, &self.payload[..piece], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
            {
                Ok(sent) => {
                    // `WriteForever` never comes to its end.
                    bytes = if bytes == u64::MAX { bytes } else { bytes - sent as u64 };
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.fail(flow, "cannot write", error.into());
                    return None;
                }
            }
        }
        if bytes == 0 {
            self.watch_sender(flow, false);
            return Some(Event::Written);
        }
        self.flows[flow].waiting = Waiting::Room(bytes);
        if self.flows[flow].greedy {
            self.timers.push(Reverse((self.clock.now() + TOP_UP, Timer::Wake, flow)));
        } else {
            self.watch_sender(flow, true);
        }
        None
    }

    fn send(&mut self, flow: usize, bytes: u64, part: Option<Part>) -> Option<Event> {
        if let Some((part, room)) = part.zip(self.payload.first_chunk_mut()) {
            *room = part.header();
        }
        let state = &self.flows[flow];
        let length = (bytes.saturating_sub(state.headers) as usize).min(self.payload.len());
        let sent = state
            .sockets
            .sender
            .as_ref()
            .map(|socket| rustix::net::send(socket, &self.payload[..length], SendFlags::DONTWAIT));
        self.report.gap_error.record(self.clock.now().since(state.due));
        // A datagram that the host has no room for is lost in the host, as any application's would be; refusals by an earlier
        // ICMP message concern that earlier datagram.
        match sent {
            Some(Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED)) => Some(Event::Sent),
            Some(Err(error)) => {
                self.fail(flow, "cannot send", error.into());
                None
            }
            None => None,
        }
    }

    /// Ends the sending side.
    fn close(&mut self, flow: usize) {
        self.watch_sender(flow, false);
        let state = &mut self.flows[flow];
        state.waiting = Waiting::Nothing;
        state.exchange.iter_mut().for_each(Exchange::stop);
        let closer = if state.exchange.is_some() { &state.sockets.receiver } else { &state.sockets.sender };
        let connection = state.stream || state.exchange.is_some();
        if let Some(socket) = closer.as_ref().filter(|_| connection && state.opened) {
            // The peer may have gone; then there is nothing left to close.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
    }

    fn sender_ready(&mut self, flow: usize) {
        match self.flows[flow].waiting {
            Waiting::Open => {
                let error = self.flows[flow].sockets.sender.as_ref().map(sockopt::socket_error);
                match error {
                    Some(Ok(Ok(()))) => {
                        self.flows[flow].opened = true;
                        self.event(flow, FlowEventKind::Opened);
                        self.watch_sender(flow, false);
                        self.act(flow, Event::Opened);
                    }
                    Some(Ok(Err(error)) | Err(error)) => self.fail(flow, "cannot connect", error.into()),
                    None => {}
                }
            }
            Waiting::Room(bytes) => {
                if let Some(event) = self.write(flow, bytes) {
                    self.act(flow, event);
                }
            }
            // An error or a hang-up while nothing is wanted of the socket: it shows again at the next use.
            _ => self.watch_sender(flow, false),
        }
    }

    /// One of the two sockets of a client and its server has something to tell.
    fn exchange_ready(&mut self, flow: usize) {
        if self.flows[flow].waiting == Waiting::Open {
            match self.flows[flow].sockets.receiver.as_ref().map(sockopt::socket_error) {
                Some(Ok(Ok(()))) => {
                    self.flows[flow].opened = true;
                    self.event(flow, FlowEventKind::Opened);
                    self.act(flow, Event::Opened);
                }
                Some(Ok(Err(error)) | Err(error)) => self.fail(flow, "cannot connect", error.into()),
                None => {}
            }
        } else if let Some(event) = self.exchange_on(flow) {
            self.act(flow, event);
        }
    }

    /// Moves a request and its answer on; tells when it is answered and the client still waits for it.
    fn exchange_on(&mut self, flow: usize) -> Option<Event> {
        let state = &mut self.flows[flow];
        let (exchange, client) = (state.exchange.as_mut()?, state.sockets.receiver.as_ref()?);
        let (server, clock) = (state.sockets.sender.as_ref(), self.clock);
        match exchange.advance(client, server, &self.payload, &mut self.scratch, || clock.now()) {
            Ok(moved) => {
                state.read += moved.read;
                self.read[flow].store(state.read, Ordering::Relaxed);
                if moved.ended && exchange.over {
                    self.complete(flow);
                    return None;
                }
                let took = moved.answered?;
                self.relay.message(&Message {
                    at: clock.now(),
                    flow: flow as u32,
                    kind: MessageKind::Request,
                    number: exchange.number - 1,
                    fate: MessageFate::Done,
                    took: Some(took),
                });
                (state.waiting == Waiting::Answer).then_some(Event::Answered)
            }
            Err(error) => {
                self.fail(flow, "cannot ask or answer", error.into());
                None
            }
        }
    }

    fn accept(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let Some(listener) = state.sockets.listener.as_ref() else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(listener, flags) {
            Ok(socket) => {
                state.sockets.listener = None;
                let asks = state.exchange.is_some();
                let (end, wanted) = if asks {
                    (End::Sender, EventFlags::IN | EventFlags::OUT | EventFlags::ET)
                } else {
                    (End::Receiver, EventFlags::IN)
                };
                let added = epoll::add(&self.epoll, &socket, key(flow, end), wanted);
                let accepted = if asks { &mut state.sockets.sender } else { &mut state.sockets.receiver };
                *accepted = Some(socket);
                if let Err(error) = added {
                    self.fail(flow, "cannot receive", error.into());
                }
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => self.fail(flow, "cannot accept", error.into()),
        }
    }

    /// Reads what has arrived: the kernel counts and throws away the bytes (`MSG_TRUNC`), which costs no copy.
    fn receive(&mut self, flow: usize) {
        let mut turn = TURN;
        while turn > 0 {
            let state = &mut self.flows[flow];
            let Some(socket) = state.sockets.receiver.as_ref() else { return };
            self.scratch.clear();
            match rustix::net::recv(
                socket,
                spare_capacity(&mut self.scratch),
                RecvFlags::TRUNC | RecvFlags::DONTWAIT,
            ) {
                Ok((_, 0)) if state.stream => return self.end_of_stream(flow),
                Ok((_, length)) => {
                    turn = turn.saturating_sub(length.max(1));
                    state.read += length as u64;
                    self.read[flow].store(state.read, Ordering::Relaxed);
                    if let Some(frames) = &mut state.frames {
                        let now = self.clock.now();
                        let part = Part::read(&self.scratch);
                        if let Some(frame) = part.and_then(|part| frames.read(part, now)) {
                            self.relay.message(&frame_message(flow, frame, now));
                        }
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return self.fail(flow, "cannot read", error.into()),
            }
        }
    }

    fn end_of_stream(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if let Some(socket) = state.sockets.receiver.as_ref() {
            let _ = epoll::delete(&self.epoll, socket);
            // The receiver closes too, so that the connection ends on both sides.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
        self.complete(flow);
    }

    /// The receiving application has read everything.
    fn complete(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if !std::mem::replace(&mut state.complete, true) {
            // What the sender had to do for it, up to the end.
            self.sample_transport(flow, self.clock.now());
            self.event(flow, FlowEventKind::Completed);
            if self.flows[flow].drawn {
                self.timers.push(Reverse((self.clock.now() + BEHIND, Timer::Discard, flow)));
            }
        }
    }

    fn fail(&mut self, flow: usize, what: &str, error: io::Error) {
        self.watch_sender(flow, false);
        let state = &mut self.flows[flow];
        state.waiting = Waiting::Nothing;
        if let Some(socket) = state.sockets.receiver.take() {
            let _ = epoll::delete(&self.epoll, &socket);
        }
        if !std::mem::replace(&mut state.complete, true) {
            self.event(flow, FlowEventKind::Failed);
            self.report.troubles.push(format!("flow {flow} {what}: {error}"));
        }
    }

    /// Registers the sender for room, or takes it off. Both may fail only for a socket that is gone already.
    fn watch_sender(&mut self, flow: usize, wanted: bool) {
        let state = &mut self.flows[flow];
        let Some(socket) = state.sockets.sender.as_ref().filter(|_| state.watched != wanted) else { return };
        let _ = if wanted {
            epoll::add(&self.epoll, socket, key(flow, End::Sender), EventFlags::OUT)
        } else {
            epoll::delete(&self.epoll, socket)
        };
        state.watched = wanted;
    }

    fn event(&mut self, flow: usize, kind: FlowEventKind) {
        self.relay.event(&FlowEvent { at: self.clock.now(), flow: flow as u32, kind });
    }

    fn sample_transport(&mut self, flow: usize, now: Time) {
        let socket = self.flows[flow].sockets.sender.as_ref();
        if let Some(Ok(sample)) = socket.map(|socket| tcp_info::sample(socket.as_fd(), flow as u32, now)) {
            self.relay.transport(&sample);
        }
    }

    /// Tells of the frames that are given up by now.
    fn settle_frames(&mut self, now: Time) {
        for (flow, state) in self.flows.iter_mut().enumerate() {
            let relay = &mut self.relay;
            if let Some(frames) = &mut state.frames {
                frames.settle(now, |frame| relay.message(&frame_message(flow, frame, now)));
            }
        }
    }

    /// Samples every open connection once a sample period, or more seldom when that would cost too much.
    fn sample_transports(&mut self, now: Time) {
        if now < self.next_sample {
            return;
        }
        self.settle_frames(now.min(Time::ZERO + self.run.duration - Span::from_nanos(1)));
        let before = thread_time();
        for flow in 0..self.flows.len() {
            if self.flows[flow].opened && !self.flows[flow].complete {
                self.sample_transport(flow, now);
            }
        }
        let cost = thread_time().saturating_sub(before);
        let periods =
            (cost.as_secs_f64() / (SAMPLING_SHARE * self.sample.as_secs_f64().max(1e-6))).ceil().max(1.0);
        self.report.sampled_every = self.report.sampled_every.max(periods as u32);
        let missed = now.since(self.next_sample).as_nanos() / self.sample.as_nanos().max(1);
        self.next_sample += self.sample * (periods as u64 + missed);
    }
}

/// Has the sockets that a flow begins with watched; a client is, once it connects.
fn add_to(epoll: &OwnedFd, sockets: &FlowSockets, flow: usize, asks: bool) -> Result<(), Errno> {
    let receiver = sockets.receiver.as_ref().filter(|_| !asks);
    for (socket, end) in [(sockets.listener.as_ref(), End::Listener), (receiver, End::Receiver)] {
        if let Some(socket) = socket {
            epoll::add(epoll, socket, key(flow, end), EventFlags::IN)?;
        }
    }
    Ok(())
}

fn key(flow: usize, end: End) -> EventData {
    EventData::new_u64((flow as u64) << 2 | end as u64)
}

fn flow_and_end(key: u64) -> (usize, End) {
    let end = match key & 3 {
        0 => End::Sender,
        1 => End::Listener,
        _ => End::Receiver,
    };
    ((key >> 2) as usize, end)
}
