//! One flow: the application that drives it and, for TCP, the connection's two ends.

use weir_base::{Clock, Ecn, Random, Span, Time};
use weir_plan::{Ip, Run};
use weir_transport::tcp::{self, Connection};
use weir_workload::{Action, Event, FrameLog, Needs, Part, Workload, Writes};

/// How a flow's data travels.
pub(crate) enum Carrier {
    /// TCP, with nothing to carry yet or any more.
    Idle,
    Tcp(Box<Ends>),
    Udp {
        ecn: Ecn,
        exact: bool,
    },
}

/// Both ends of a connection.
pub(crate) struct Ends {
    /// The settings of the end that opens the connection, until it does.
    config: tcp::Config,
    /// The sending end, once it is there.
    pub(crate) sender: Option<Connection>,
    pub(crate) receiver: Connection,
}

impl Ends {
    fn new(run: &Run, number: usize) -> Ends {
        let group = &run.groups[run.flows[number].group];
        let settings = &group.tcp;
        let buffer = |buffer: weir_plan::Buffer| (buffer.initial, buffer.max);
        let mut random = Random::stream_of(run.seed, "connection", number as u64);
        let mut clocks = Random::stream_of(run.seed, "clock", number as u64);
        let mut end = |clock: Clock| tcp::Config {
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
            clock: clock.started(&mut clocks),
            initial_sequence: random.bits() as u32,
            seed: random.bits(),
            ..tcp::Config::new(settings.cc.clone())
        };
        let (sender, receiver) = (end(settings.sender_clock), end(settings.receiver_clock));
        if group.workload.needs() == Needs::Exchanges {
            let listener = Connection::server(receiver.clone());
            return Ends { config: receiver, sender: Some(Connection::server(sender)), receiver: listener };
        }
        Ends { config: sender, sender: None, receiver: Connection::server(receiver) }
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
    /// All bytes that the receiving application has read.
    pub(crate) read: u64,
    waiting: Waiting,
    /// The request under way, where the receiving host asks and the sending one answers.
    exchange: Option<Exchange>,
    /// What keeps account of frames.
    pub(crate) frames: Option<Box<FrameLog>>,
    /// Whether it is one of many that were drawn: what is done with it is given back.
    pub(crate) drawn: bool,
    pub(crate) stopped: bool,
    pub(crate) completed: bool,
    /// Timeouts, recoveries and undone reductions seen so far, so that new ones are told as events.
    pub(crate) seen: [u64; 3],
}

/// What the application waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The flow's start.
    Start,
    Nothing,
    Open,
    Room,
    Answer,
    Time,
}

/// A request and its answer: what of both has not got on yet, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Exchange {
    since: Time,
    number: u64,
    /// Of the request: not yet taken by the client's socket, and not yet read by the server.
    unasked: u64,
    unheard: u64,
    /// Of the answer: not yet taken by the server's socket, and not yet read by the client.
    unanswered: u64,
    unread: u64,
    /// Whether the client has all that it wanted, and has closed.
    over: bool,
}

/// What the world has to do for an application.
pub(crate) enum Request {
    /// A datagram of this IP length leaves now, with a part of a frame or without.
    Datagram(u32, Option<Part>),
    /// The request of this number was answered, so long after it began.
    Answered(u64, Span),
}

impl Flow {
    pub(crate) fn new(run: &Run, number: usize) -> Flow {
        let plan = &run.flows[number];
        let group = &run.groups[plan.group];
        let needs = group.workload.needs();
        let carrier = match needs {
            Needs::Datagrams { ecn, exact } => Carrier::Udp { ecn, exact },
            Needs::Stream | Needs::Exchanges | Needs::Command => Carrier::Idle,
        };
        let end = plan.stop.unwrap_or(run.duration).min(run.duration);
        Flow {
            from: group.from,
            to: group.to,
            ip: group.ip,
            carrier,
            workload: run.workload(number),
            start: Time::ZERO + plan.start,
            stop: Time::ZERO + end,
            wake: Time::ZERO + plan.start,
            unwritten: 0,
            read: 0,
            waiting: Waiting::Start,
            exchange: (needs == Needs::Exchanges).then(Exchange::default),
            frames: run.frame_log(number).map(Box::new),
            drawn: group.workload.is_drawn(),
            stopped: false,
            completed: false,
            seen: [0; 3],
        }
    }

    /// Whether the application has not been told of the start yet.
    pub(crate) fn is_to_start(&self) -> bool {
        self.waiting == Waiting::Start
    }

    /// The flow begins: a TCP flow gets the two ends that it will need.
    pub(crate) fn begin(&mut self, run: &Run, number: usize) {
        if let Carrier::Idle = self.carrier {
            self.carrier = Carrier::Tcp(Box::new(Ends::new(run, number)));
        }
    }

    /// Of a drawn flow, the ends are given back when both have all that they sent acknowledged, the ends of their streams
    /// too: there may be thousands.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        if !(self.drawn && self.completed) {
            return;
        }
        if let Carrier::Tcp(ends) = &self.carrier
            && ends.receiver.all_acknowledged()
            && ends.sender.as_ref().is_some_and(Connection::all_acknowledged)
        {
            self.carrier = Carrier::Idle;
        }
    }

    /// Whether the receiving host asks and the sending one answers.
    #[inline]
    pub(crate) fn asks(&self) -> bool {
        self.exchange.is_some()
    }

    /// The server at the sending end has moved: it reads what was asked, and answers when it has read it all.
    pub(crate) fn serve(&mut self) {
        let (Carrier::Tcp(ends), Some(exchange)) = (&mut self.carrier, &mut self.exchange) else { return };
        let Some(server) = &mut ends.sender else { return };
        exchange.unheard -= server.take_read().min(exchange.unheard);
        if exchange.unheard == 0 && exchange.unanswered > 0 {
            exchange.unanswered -= server.write(exchange.unanswered);
        }
        if server.finished() && (exchange.unheard > 0 || exchange.unanswered == 0) {
            server.close();
        }
    }

    /// The client at the receiving end has moved, and has read so many bytes more.
    pub(crate) fn asked(&mut self, read: u64, now: Time, tell: &mut dyn FnMut(Request)) {
        let (Carrier::Tcp(ends), Some(exchange)) = (&mut self.carrier, &mut self.exchange) else { return };
        let client = &mut ends.receiver;
        let event = match self.waiting {
            Waiting::Open if client.is_open() => Event::Opened,
            Waiting::Answer => {
                exchange.unasked -= client.write(exchange.unasked);
                exchange.unread -= read.min(exchange.unread);
                if exchange.unread > 0 {
                    return;
                }
                tell(Request::Answered(exchange.number, now.since(exchange.since)));
                exchange.number += 1;
                self.waiting = Waiting::Nothing;
                if self.stopped {
                    return;
                }
                Event::Answered
            }
            _ => return,
        };
        self.act(event, now, tell);
    }

    /// Whether the client has closed after its last answer, and has read the end of the stream.
    pub(crate) fn has_all_it_asked_for(&self) -> bool {
        let over = self.exchange.is_some_and(|exchange| exchange.over);
        over && matches!(&self.carrier, Carrier::Tcp(ends) if ends.receiver.finished())
    }

    /// The application's clock says `now`: its time has come, or the flow's end has. Datagrams that leave go to `send`.
    pub(crate) fn woken(&mut self, now: Time, send: &mut dyn FnMut(Request)) {
        if now >= self.stop && !self.stopped {
            self.stopped = true;
            self.wake = Time::NEVER;
            self.unwritten = 0;
            // An answer under way is still read. Nothing else may wake the application after its end: what opens or
            // makes room later would set its clock to the end again, which has passed.
            if self.waiting != Waiting::Answer {
                self.waiting = Waiting::Nothing;
            }
            match (&mut self.carrier, self.exchange.is_some()) {
                (Carrier::Tcp(ends), false) => ends.sender.iter_mut().for_each(Connection::close),
                (Carrier::Tcp(ends), true) => ends.receiver.close(),
                _ => {}
            }
            return;
        }
        let event = match self.waiting {
            Waiting::Start => Event::Start,
            Waiting::Time => Event::Woken,
            _ => return,
        };
        if now >= self.wake {
            self.act(event, now, send);
        }
    }

    /// The connection has moved: whatever the application waited for may have come. Cheap when nothing has.
    #[inline]
    pub(crate) fn moved(&mut self, now: Time, send: &mut dyn FnMut(Request)) {
        if self.asks() {
            return self.serve();
        }
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
                Action::Send(length) => {
                    send(Request::Datagram(length.get() as u32, None));
                    Event::Sent
                }
                Action::SendPart(length, part) => {
                    send(Request::Datagram(length.get() as u32, Some(part)));
                    Event::Sent
                }
                Action::Exchange { request, response } => {
                    self.waiting = Waiting::Answer;
                    let Some(exchange) = &mut self.exchange else { return };
                    let (request, response) = (request.get(), response.get());
                    *exchange = Exchange {
                        since: now,
                        number: exchange.number,
                        unasked: request,
                        unheard: request,
                        unanswered: response,
                        unread: response,
                        over: false,
                    };
                    if let Carrier::Tcp(ends) = &mut self.carrier {
                        exchange.unasked -= ends.receiver.write(request);
                    }
                    return;
                }
                Action::Open | Action::Write(_) | Action::WriteForever(_) | Action::Close => {
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
            Action::Open if self.exchange.is_some() => {
                self.waiting = Waiting::Open;
                ends.receiver = Connection::client(ends.config.clone(), now);
                return None;
            }
            Action::Close if self.exchange.is_some() => {
                self.exchange.iter_mut().for_each(|exchange| exchange.over = true);
                ends.receiver.close();
                self.wake = Time::NEVER;
                self.stopped = true;
                return None;
            }
            Action::Open => {
                self.waiting = Waiting::Open;
                ends.sender = Some(Connection::client(ends.config.clone(), now));
                return None;
            }
            _ => ends.sender.as_mut()?,
        };
        match action {
            Action::Write(bytes) => {
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
            Action::WriteForever(writes) => sender.write_forever(writes == Writes::Greedy),
            _ => {}
        }
        None
    }
}
