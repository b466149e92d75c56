//! The application thread: it drives the applications of all flows over their sockets and epoll, and samples the state of their
//! connections.

mod endpoints;
mod pauses;
mod sampling;

pub(crate) use pauses::Pauses;

use crate::address::{address_of, port_of};
use crate::counts::SharedCounts;
use crate::in_use::InUse;
use crate::kernel_socket::{KernelInUse, KernelSocket, Shared};
use crate::relay::Relay;
use crate::sockets::{self, FlowSocket, FlowSockets};
use crate::testbed::Testbed;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_base::{Histogram, Span, Time};
use weir_engine::record_notice;
use weir_linux::clock::{Clock, claim_processor, thread_wait, timespec_of};
use weir_linux::udp::Buffers;
use weir_plan::Run;
use weir_workload::{Application, End, Notice, Role, Sockets, Trouble};

/// A UDP header (RFC 768).
const UDP_HEADER: u64 = 8;
/// How long before its start a flow with random arrivals gets its sockets, and how long after its completion it keeps them, so that both ends
/// have closed.
const AHEAD: Span = Span::from_millis(150);
const BEHIND: Span = Span::from_secs(1);

/// What the application thread reports at the end of the run.
#[derive(Debug, Default)]
pub(crate) struct AppsReport {
    /// How late datagrams left their sockets.
    pub(crate) gap_error: Histogram,
    /// Largest number of sample periods between two samples of `tcp_info`.
    pub(crate) sampled_every: u32,
    /// Time in which the thread was ready and had no processor; `None` if the kernel does not count it.
    pub(crate) waited: Option<Span>,
    /// How long other work kept the thread from its processor.
    pub(crate) pauses: Pauses,
    /// A line for each flow that failed.
    pub(crate) troubles: Vec<String>,
}

/// A flow's sockets, and its state in this thread.
struct FlowState {
    sockets: FlowSockets,
    target: SocketAddr,
    /// Length in bytes of a datagram's IP and UDP headers.
    headers: u64,
    role: Role,
    /// The application that drives it: index in [`Apps::driven`].
    application: usize,
    /// The connection that it shares: index in [`Apps::sharing`]. `None` if it shares none.
    connection: Option<usize>,
    /// Whether it arrives at random: its sockets are then opened shortly before it starts, and closed after it ends.
    random_arrivals: bool,
    /// Whether its connection has opened, and whether it is complete or has failed.
    opened: bool,
    over: bool,
    /// The time for which the application's timer is in the queue; [`Time::NEVER`] when it is not.
    armed: Time,
}

/// An application at work, and the flows that it drives.
struct Driven {
    application: Application,
    flows: Range<usize>,
}

/// The sockets of one application.
struct Ends<'a> {
    flows: &'a mut [FlowState],
    shared: &'a mut Shared,
}

impl Sockets for Ends<'_> {
    type Socket<'a>
        = InUse<'a>
    where
        Self: 'a;

    fn at(&mut self, flow: usize, end: End) -> Option<InUse<'_>> {
        let flow = self.flows.get_mut(flow)?;
        Some(match flow.sockets.end(end).as_mut()? {
            FlowSocket::Kernel(socket) => InUse::Kernel(KernelInUse {
                socket,
                shared: self.shared,
                target: flow.target,
                headers: flow.headers,
            }),
            FlowSocket::Endpoint(socket) => InUse::Endpoint(&mut socket.socket),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The application's.
    Wake,
    /// An endpoint's.
    Endpoint(End),
    /// The sockets of a flow with random arrivals are closed.
    Discard,
}

/// The kind of socket that an event of the epoll instance concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Socket(End),
    Listener,
}

/// The application thread's state.
pub(crate) struct Apps<'a> {
    run: &'a Run,
    testbed: &'a Testbed,
    /// Drawn flows that have no sockets yet, the next to start last.
    to_come: Vec<usize>,
    flows: Vec<FlowState>,
    /// Flows that share a connection, connection by connection.
    sharing: Vec<Vec<usize>>,
    driven: Vec<Driven>,
    epoll: OwnedFd,
    timers: BinaryHeap<Reverse<(Time, Timer, usize)>>,
    shared: Shared,
    /// Buffers in which endpoints receive packets.
    buffers: Buffers,
    /// Notices of applications that are not yet recorded, with their flows.
    notices: Vec<(usize, Notice)>,
    counts: &'a [SharedCounts],
    relay: Relay,
    next_sample: Time,
    report: AppsReport,
}

impl<'a> Apps<'a> {
    /// Takes over the sockets of all flows, and keeps `counts` of them up to date.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(
        run: &'a Run,
        testbed: &'a Testbed,
        sockets: Vec<FlowSockets>,
        clock: Clock,
        counts: &'a [SharedCounts],
        relay: Relay,
    ) -> io::Result<Apps<'a>> {
        let driven: Vec<Driven> = run
            .applications()
            .into_iter()
            .map(|(application, flows)| Driven { application, flows })
            .collect();
        let owners = driven.iter().enumerate().flat_map(|(index, one)| one.flows.clone().map(move |_| index));
        let sharing = run.shared_connections();
        let mut flows: Vec<FlowState> = run
            .flows
            .iter()
            .zip(sockets)
            .zip(owners)
            .enumerate()
            .map(|(index, ((flow, sockets), application))| {
                let group = &run.groups[flow.group];
                let role = group.workload.role();
                let pair = run.pair(index);
                let listening = if role == Role::RequestResponse { pair.from } else { pair.to };
                FlowState {
                    sockets,
                    target: SocketAddr::new(address_of(listening, group.ip), port_of(index)),
                    headers: u64::from(group.ip.header()) + UDP_HEADER,
                    role,
                    application,
                    connection: None,
                    random_arrivals: group.workload.has_random_arrivals(),
                    opened: false,
                    over: false,
                    armed: Time::NEVER,
                }
            })
            .collect();
        for (connection, sharing) in sharing.iter().enumerate() {
            sharing.iter().for_each(|flow| flows[*flow].connection = Some(connection));
        }
        let mut to_come: Vec<usize> = (0..flows.len()).filter(|flow| flows[*flow].random_arrivals).collect();
        to_come.sort_by_key(|flow| Reverse(run.flows[*flow].start));
        let mut apps = Apps {
            run,
            testbed,
            to_come,
            flows,
            sharing,
            driven,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            timers: BinaryHeap::new(),
            shared: Shared::new(clock),
            buffers: Buffers::default(),
            notices: vec![],
            counts,
            relay,
            next_sample: Time::ZERO + run.sample,
            report: AppsReport { sampled_every: 1, ..AppsReport::default() },
        };
        for flow in 0..apps.flows.len() {
            apps.watch_listener(flow)?;
            apps.watch(flow)?;
            apps.arm(flow);
        }
        Ok(apps)
    }

    /// Whether the thread only reads for a flow: the fabric sends its datagrams, or a command does everything.
    fn is_idle(&self, flow: usize) -> bool {
        match self.flows[flow].role {
            Role::Datagrams(datagrams) => datagrams.exact,
            Role::Command => true,
            Role::OneWay | Role::RequestResponse | Role::Echo(_) => false,
        }
    }

    /// Drives all applications until `over` is set; then closes all sockets with resets.
    ///
    /// # Errors
    /// The kernel's error from epoll. A flow that fails is reported, and the others go on.
    pub(crate) fn run(mut self, over: &AtomicBool) -> io::Result<AppsReport> {
        self.prepare(Time::ZERO);
        if sockets::runs_endpoints(self.run) {
            // The kernel's transports run before all programs; so should the endpoints of this thread.
            claim_processor();
        }
        std::thread::sleep(std::time::Duration::from_nanos(self.shared.clock.until_start().as_nanos()));
        let mut events = Vec::with_capacity(256);
        let waited = thread_wait();
        while !over.load(Ordering::Acquire) {
            let now = self.shared.clock.now();
            self.fire_timers(now);
            self.prepare(now);
            self.sample_transports(now);
            let due = self.timers.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at).min(self.next_sample);
            let now = self.shared.clock.now();
            let sleep = due.since(now).min(pauses::SLEEP);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timespec_of(sleep))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.report.pauses.woke(now, self.shared.clock.now());
            for event in &events {
                match flow_and_source(event.data.u64()) {
                    (flow, Source::Socket(end)) => {
                        self.receive(flow, end);
                        self.moved(flow, end);
                    }
                    (flow, Source::Listener) => self.accept(flow),
                }
            }
        }
        self.settle_messages(Time::ZERO + self.run.duration);
        self.report.gap_error = self.shared.gap_error;
        self.report.waited = waited.zip(thread_wait()).map(|(before, after)| after.saturating_sub(before));
        Ok(self.report)
    }

    /// Opens the sockets of the flows with random arrivals that start soon.
    fn prepare(&mut self, now: Time) {
        // In batches: each batch enters the namespace of every host concerned.
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
                    self.flows[flow].sockets = sockets;
                    let watched = self.watch_listener(flow).and_then(|()| self.watch(flow));
                    if let Err(error) = watched {
                        self.fail(flow, "be watched", &error.into());
                    }
                }
            }
            Err(error) => flows.into_iter().for_each(|flow| self.fail(flow, "open its sockets", &error)),
        }
    }

    fn fire_timers(&mut self, now: Time) {
        while let Some(&Reverse((at, timer, flow))) =
            self.timers.peek().filter(|Reverse((at, ..))| *at <= now)
        {
            self.timers.pop();
            match timer {
                Timer::Wake if self.flows[flow].armed == at => {
                    self.flows[flow].armed = Time::NEVER;
                    self.drive(flow, |application, flow, now, sockets, tell| {
                        application.on_timer(flow, now, sockets, tell);
                    });
                }
                Timer::Wake => {}
                Timer::Endpoint(end) => self.endpoint_timer(flow, end, at, now),
                Timer::Discard => self.flows[flow].sockets = FlowSockets::default(),
            }
        }
    }

    /// Tells the application that a socket is ready.
    fn ready(&mut self, flow: usize, end: End) {
        self.drive(flow, |application, flow, now, sockets, tell| {
            application.on_socket(flow, end, now, sockets, tell);
            let finished = sockets.at(flow, end).is_some_and(|socket| socket.has_ended());
            application.on_end(flow, end, finished, now, sockets, tell);
        });
    }

    /// Calls a flow's application, records its notices, and updates the sockets and timers that it waits for.
    fn drive(
        &mut self,
        flow: usize,
        act: impl FnOnce(&mut Application, usize, Time, &mut Ends<'_>, &mut dyn FnMut(usize, Notice)),
    ) {
        let Driven { application, flows } = &mut self.driven[self.flows[flow].application];
        let (flows, now) = (flows.clone(), self.shared.clock.now());
        let (notices, first) = (&mut self.notices, flows.start);
        let mut sockets = Ends { flows: &mut self.flows[flows.clone()], shared: &mut self.shared };
        act(application, flow - first, now, &mut sockets, &mut |flow, notice| {
            notices.push((first + flow, notice));
        });
        self.tell();
        // An event of one flow may affect the application's other flows.
        for flow in flows {
            self.flush(flow);
            self.count_read(flow);
            // Fails only for a socket that is already closed.
            let _ = self.watch(flow);
            self.arm(flow);
        }
    }

    fn count_read(&self, flow: usize) {
        let Driven { application, flows } = &self.driven[self.flows[flow].application];
        self.counts[flow].set_read(application.read(flow - flows.start));
    }

    /// Records the notices of applications.
    fn tell(&mut self) {
        while let Some((flow, notice)) = (!self.notices.is_empty()).then(|| self.notices.remove(0)) {
            let now = self.shared.clock.now();
            if notice == Notice::Completed {
                // The sender's state at the end of the flow.
                self.sample_transport(flow, now);
            }
            record_notice(&mut self.relay, flow, &notice, now);
            let state = &mut self.flows[flow];
            match notice {
                Notice::Opened => state.opened = true,
                Notice::Completed => {
                    state.over = true;
                    if state.random_arrivals {
                        self.timers.push(Reverse((now + BEHIND, Timer::Discard, flow)));
                    }
                }
                Notice::Failed(trouble) => {
                    state.over = true;
                    state.sockets = FlowSockets::default();
                    let (name, group) = (&self.run.flows[flow].name, self.run.flows[flow].group);
                    let group = &self.run.groups[group].name;
                    self.report.troubles.push(format!("group {group}: flow {name} {trouble}"));
                }
                Notice::Started
                | Notice::Answered(..)
                | Notice::Frame(_)
                | Notice::Echo(_)
                | Notice::Ensemble(_) => {}
            }
        }
    }

    fn fail(&mut self, flow: usize, what: &'static str, error: &io::Error) {
        if !self.flows[flow].over {
            let trouble = Trouble { what, why: error.to_string() };
            self.notices.push((flow, Notice::Failed(trouble)));
            self.tell();
        }
    }

    /// Puts the application's next timer in the queue, unless it is due at the end of the run or later.
    fn arm(&mut self, flow: usize) {
        if self.is_idle(flow) {
            return;
        }
        let Driven { application, flows } = &self.driven[self.flows[flow].application];
        let due = application.wake(flow - flows.start);
        if due < self.flows[flow].armed && due < Time::ZERO + self.run.duration {
            self.flows[flow].armed = due;
            self.timers.push(Reverse((due, Timer::Wake, flow)));
        }
    }

    fn accept(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let Some(listener) = state.sockets.listener.as_ref() else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(listener, flags) {
            Ok(fd) => {
                state.sockets.listener = None;
                let end = if state.role == Role::RequestResponse { End::Sender } else { End::Receiver };
                *state.sockets.end(end) = Some(FlowSocket::Kernel(Box::new(KernelSocket::accepted(fd))));
                if let Err(error) = self.watch(flow) {
                    self.fail(flow, "be watched", &error.into());
                }
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => self.fail(flow, "accept", &error.into()),
        }
    }

    fn watch_listener(&self, flow: usize) -> Result<(), Errno> {
        match &self.flows[flow].sockets.listener {
            Some(listener) => epoll::add(&self.epoll, listener, key(flow, Source::Listener), EventFlags::IN),
            None => Ok(()),
        }
    }

    /// Watches a flow's sockets for exactly the events that the application waits for.
    fn watch(&mut self, flow: usize) -> Result<(), Errno> {
        let Driven { application, flows } = &self.driven[self.flows[flow].application];
        let first = flows.start;
        let state = &mut self.flows[flow];
        for end in [End::Sender, End::Receiver] {
            let Some(socket) = state.sockets.end(end).as_mut() else { continue };
            let reads = match state.role {
                Role::OneWay | Role::Datagrams(_) => end == End::Receiver,
                Role::RequestResponse | Role::Echo(_) => true,
                Role::Command => false,
            };
            let room = application.wants_room(flow - first, end);
            let wanted = socket.wanted(reads, state.role.datagrams().is_some(), room);
            let watched = std::mem::replace(socket.watched(), wanted);
            let key = key(flow, Source::Socket(end));
            match (watched.is_empty(), wanted.is_empty()) {
                _ if wanted == watched => {}
                (true, _) => epoll::add(&self.epoll, &*socket, key, wanted)?,
                (false, true) => epoll::delete(&self.epoll, &*socket)?,
                (false, false) => epoll::modify(&self.epoll, &*socket, key, wanted)?,
            }
        }
        Ok(())
    }
}

fn key(flow: usize, source: Source) -> EventData {
    let source = match source {
        Source::Socket(End::Sender) => 0,
        Source::Socket(End::Receiver) => 1,
        Source::Listener => 2,
    };
    EventData::new_u64((flow as u64) << 2 | source)
}

fn flow_and_source(key: u64) -> (usize, Source) {
    let source = match key & 3 {
        0 => Source::Socket(End::Sender),
        1 => Source::Socket(End::Receiver),
        _ => Source::Listener,
    };
    ((key >> 2) as usize, source)
}
