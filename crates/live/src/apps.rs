//! The applications: one thread drives the workloads of all flows over non-blocking sockets and epoll, reads everything
//! that arrives, and samples `tcp_info`.

use crate::address::{address_of, port_of};
use crate::clock::{Clock, thread_time, timespec_of};
use crate::relay::Relay;
use crate::sockets::FlowSockets;
use crate::tcp_info;
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
use weir_base::{Histogram, Random, Span, Time};
use weir_plan::Run;
use weir_record::{FlowEvent, FlowEventKind, Recorder};
use weir_workload::{Action, Event, Needs, Workload};

/// Most that is written in one call, and read for one flow before others get their turn.
const TURN: usize = 64 * 1024;
/// A UDP header (RFC 768).
const UDP_HEADER: u64 = 8;
/// How long the thread sleeps at most before it looks whether the run is over.
const LOOK_UP: Span = Span::from_millis(20);
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
    /// The receiver.
    Delivery,
    /// Nothing: the application has ended.
    Nothing,
}

struct FlowState {
    workload: Box<dyn Workload>,
    sockets: FlowSockets,
    target: SocketAddr,
    /// IP and UDP headers: what a datagram's payload is shorter by.
    headers: u64,
    stream: bool,
    waiting: Waiting,
    /// What the epoll instance was told about the sender: whether it is registered and wants room.
    watched: bool,
    written: u64,
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Sender,
    Listener,
    Receiver,
}

/// The application thread's state.
pub(crate) struct Apps<'a> {
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
        run: &Run,
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
            for (socket, end) in [(&sockets.listener, End::Listener), (&sockets.receiver, End::Receiver)] {
                if let Some(socket) = socket {
                    epoll::add(&epoll, socket, key(index, end), EventFlags::IN)?;
                }
            }
            if sockets.sender.is_some() {
                timers.push(Reverse((Time::ZERO + flow.start, Timer::Start, index)));
                if let Some(stop) = flow.stop {
                    timers.push(Reverse((Time::ZERO + stop, Timer::Stop, index)));
                }
            }
            flows.push(FlowState {
                workload: group.workload.build(Random::stream_of(run.seed, "workload", index as u64)),
                sockets,
                target: SocketAddr::new(address_of(group.to, group.ip), port_of(index)),
                headers: u64::from(group.ip.header()) + UDP_HEADER,
                stream: needs == Needs::Stream,
                waiting: Waiting::Start,
                watched: false,
                written: 0,
                read: 0,
                opened: false,
                complete: false,
                due: Time::ZERO,
            });
        }
        Ok(Apps {
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
        std::thread::sleep(std::time::Duration::from_nanos(self.clock.until_start().as_nanos()));
        let mut events = Vec::with_capacity(256);
        while !over.load(Ordering::Acquire) {
            let now = self.clock.now();
            self.fire_timers(now);
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
                    End::Sender => self.sender_ready(flow),
                    End::Listener => self.accept(flow),
                    End::Receiver => self.receive(flow),
                }
            }
        }
        Ok(self.report)
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
                (Timer::Stop, waiting) if waiting != Waiting::Nothing => self.close(flow),
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
                Action::WriteForever => self.write(flow, u64::MAX),
                Action::WaitUntil(at) => {
                    state.waiting = Waiting::Time;
                    self.timers.push(Reverse((at, Timer::Wake, flow)));
                    None
                }
                Action::AwaitDelivery => {
                    state.waiting = Waiting::Delivery;
                    (state.read >= state.written).then_some(Event::Delivered)
                }
                Action::Send(bytes) => self.send(flow, bytes.get()),
                Action::Close => {
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
        match state.sockets.sender.as_ref().map(|socket| rustix::net::connect(socket, &state.target)) {
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
                    state.written += sent as u64;
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
        self.watch_sender(flow, true);
        None
    }

    fn send(&mut self, flow: usize, bytes: u64) -> Option<Event> {
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
        if let Some(socket) = state.sockets.sender.as_ref().filter(|_| state.stream && state.opened) {
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

    fn accept(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let Some(listener) = state.sockets.listener.as_ref() else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(listener, flags) {
            Ok(socket) => {
                state.sockets.listener = None;
                let added = epoll::add(&self.epoll, &socket, key(flow, End::Receiver), EventFlags::IN);
                state.sockets.receiver = Some(socket);
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
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return self.fail(flow, "cannot read", error.into()),
            }
        }
        let state = &self.flows[flow];
        if state.waiting == Waiting::Delivery && state.read >= state.written {
            self.act(flow, Event::Delivered);
        }
    }

    fn end_of_stream(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if let Some(socket) = state.sockets.receiver.as_ref() {
            let _ = epoll::delete(&self.epoll, socket);
            // The receiver closes too, so that the connection ends on both sides.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
        if !std::mem::replace(&mut state.complete, true) {
            // What the sender had to do for it, up to the end.
            self.sample_transport(flow, self.clock.now());
            self.event(flow, FlowEventKind::Completed);
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

    /// Samples every open connection once a sample period, or more seldom when that would cost too much.
    fn sample_transports(&mut self, now: Time) {
        if now < self.next_sample {
            return;
        }
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
