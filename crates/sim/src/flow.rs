//! One flow: the application that drives it and, for TCP, the connection's two ends.

use weir_base::{Ecn, Random, Time};
use weir_plan::{Ip, Run};
use weir_transport::tcp::{self, Connection};
use weir_workload::{Action, Event, Needs, Workload};

/// How a flow's data travels.
pub(crate) enum Carrier {
    Tcp(Box<Ends>),
    Udp { ecn: Ecn, exact: bool },
}

/// Both ends of a connection.
pub(crate) struct Ends {
    /// The sending end's settings, until it opens.
    config: tcp::Config,
    /// The sending end, once it has opened.
    pub(crate) sender: Option<Connection>,
    pub(crate) receiver: Connection,
}

impl Ends {
    fn new(run: &Run, number: usize) -> Ends {
        let group = &run.groups[run.flows[number].group];
        let settings = &group.tcp;
        let buffer = |buffer: weir_plan::Buffer| (buffer.initial, buffer.max);
        let mut random = Random::stream_of(run.seed, "connection", number as u64);
        let mut end = || tcp::Config {
            mss: (run.network.mtu.get() - u64::from(group.ip.header() + TCP_HEADER)) as u16,
            ecn: settings.ecn,
            codepoint: settings.codepoint,
            feedback: settings.feedback,
            window_scaling: settings.window_scaling,
            pacing: settings.pacing,
            send_buffer: buffer(settings.send_buffer),
            receive_buffer: buffer(settings.receive_buffer),
            // As the live engine sets it on its hosts, where no offload is to hand several packets down at once.
            gso_max_segs: 1,
            initial_sequence: random.bits() as u32,
            seed: random.bits(),
            ..tcp::Config::new(settings.cc.clone())
        };
        Ends { config: end(), sender: None, receiver: Connection::server(end()) }
    }
}

/// A TCP header with timestamps: what an MTU holds beside payload and IP header.
const TCP_HEADER: u32 = 20 + 12;

/// A flow at work.
pub(crate) struct Flow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) ip: Ip,
    pub(crate) carrier: Carrier,
    workload: Box<dyn Workload>,
    pub(crate) start: Time,
    stop: Time,
    /// When the application wants to be woken.
    pub(crate) wake: Time,
    /// Bytes of the current write that the socket has not taken yet.
    unwritten: u64,
    /// All bytes that the application has handed to the socket.
    written: u64,
    /// All bytes that the receiving application has read.
    pub(crate) read: u64,
    waiting: Waiting,
    pub(crate) stopped: bool,
    pub(crate) completed: bool,
    /// Timeouts, recoveries and undone reductions seen so far, so that new ones are told as events.
    pub(crate) seen: [u64; 3],
}

/// What the application waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Open,
    Room,
    Delivery,
    Time,
}

/// What the world has to do for an application.
pub(crate) enum Request {
    /// A datagram of this IP length leaves now.
    Datagram(u32),
}

impl Flow {
    pub(crate) fn new(run: &Run, number: usize) -> Flow {
        let plan = &run.flows[number];
        let group = &run.groups[plan.group];
        let carrier = match group.workload.needs() {
            Needs::Datagrams { ecn, exact } => Carrier::Udp { ecn, exact },
            Needs::Stream => Carrier::Tcp(Box::new(Ends::new(run, number))),
        };
        let end = plan.stop.unwrap_or(run.duration).min(run.duration);
        Flow {
            from: group.from,
            to: group.to,
            ip: group.ip,
            carrier,
            workload: group.workload.build(Random::stream_of(run.seed, "workload", number as u64)),
            start: Time::ZERO + plan.start,
            stop: Time::ZERO + end,
            wake: Time::ZERO + plan.start,
            unwritten: 0,
            written: 0,
            read: 0,
            waiting: Waiting::Time,
            stopped: false,
            completed: false,
            seen: [0; 3],
        }
    }

    /// The application's clock says `now`: its time has come, or the flow's end has. Datagrams that leave go to `send`.
    pub(crate) fn woken(&mut self, now: Time, send: &mut dyn FnMut(Request)) {
        if now >= self.stop && !self.stopped {
            self.stopped = true;
            self.wake = Time::NEVER;
            self.unwritten = 0;
            if let Carrier::Tcp(ends) = &mut self.carrier {
                ends.sender.iter_mut().for_each(Connection::close);
            }
            return;
        }
        if now >= self.wake && self.waiting == Waiting::Time && !self.stopped {
            let event = if now == self.start { Event::Start } else { Event::Woken };
            self.act(event, now, send);
        }
    }

    /// The connection has moved: whatever the application waited for may have come. Cheap when nothing has.
    #[inline]
    pub(crate) fn moved(&mut self, now: Time, send: &mut dyn FnMut(Request)) {
        let Carrier::Tcp(ends) = &mut self.carrier else { return };
        let Some(sender) = &mut ends.sender else { return };
        let event = match self.waiting {
            Waiting::Open if sender.is_open() => Event::Opened,
            Waiting::Room => {
                self.unwritten -= sender.write(self.unwritten);
                if self.unwritten > 0 {
                    return;
                }
                Event::Written
            }
            Waiting::Delivery if self.read >= self.written => Event::Delivered,
            _ => return,
        };
        self.act(event, now, send);
    }

    fn act(&mut self, mut event: Event, now: Time, send: &mut dyn FnMut(Request)) {
        self.wake = self.stop;
        loop {
            self.waiting = Waiting::Nothing;
            let action = self.workload.next(event, now);
            event = match action {
                Action::WaitUntil(at) => {
                    self.waiting = Waiting::Time;
                    self.wake = at.min(self.stop);
                    return;
                }
                Action::AwaitDelivery if self.read < self.written => {
                    self.waiting = Waiting::Delivery;
                    return;
                }
                Action::AwaitDelivery => Event::Delivered,
                Action::Send(length) => {
                    self.written += length.get();
                    send(Request::Datagram(length.get() as u32));
                    Event::Sent
                }
                Action::Open | Action::Write(_) | Action::WriteForever | Action::Close => {
                    match self.on_stream(action, now) {
                        Some(event) => event,
                        None => return,
                    }
                }
            };
        }
    }

    /// An action on the connection, and what has happened if it is done at once.
    fn on_stream(&mut self, action: Action, now: Time) -> Option<Event> {
        let Carrier::Tcp(ends) = &mut self.carrier else { return None };
        let sender = match action {
            Action::Open => {
                self.waiting = Waiting::Open;
                ends.sender = Some(Connection::client(ends.config.clone(), now));
                return None;
            }
            _ => ends.sender.as_mut()?,
        };
        match action {
            Action::Write(bytes) => {
                self.written += bytes.get();
                self.unwritten = bytes.get() - sender.write(bytes.get());
                if self.unwritten == 0 {
                    return Some(Event::Written);
                }
                self.waiting = Waiting::Room;
            }
            Action::Close => {
                sender.close();
                self.wake = Time::NEVER;
                self.stopped = true;
            }
            _ => sender.write_forever(),
        }
        None
    }
}
