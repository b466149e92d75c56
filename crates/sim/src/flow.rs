//! One flow: the application that drives it and, for TCP, the connection's two ends.

use weir_base::{Bytes, Ecn, Random, Time};
use weir_plan::Run;
use weir_transport::tcp::{self, Connection};
use weir_workload::{Action, Event, Needs, Workload};

/// How a flow's data travels.
pub(crate) enum Carrier {
    Tcp(Box<Ends>),
    Udp { ecn: Ecn, exact: bool },
}

/// Both ends of a connection.
pub(crate) struct Ends {
    pub(crate) sender: Connection,
    pub(crate) receiver: Connection,
}

/// A flow at work.
pub(crate) struct Flow {
    pub(crate) from: usize,
    pub(crate) to: usize,
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
        let random = |what| Random::stream_of(run.seed, what, number as u64);
        let carrier = match group.workload.needs() {
            Needs::Datagrams { ecn, exact } => Carrier::Udp { ecn, exact },
            Needs::Stream => {
                let config = tcp::Config {
                    controller: group.tcp.cc.clone(),
                    ecn: group.tcp.ecn,
                    pacing: group.tcp.pacing,
                    send_buffer: buffer(group.tcp.send_buffer),
                    receive_buffer: buffer(group.tcp.receive_buffer),
                    mtu: run.network.mtu,
                    ..tcp::Config::default()
                };
                Carrier::Tcp(Box::new(Ends {
                    sender: Connection::client(&config, random("sender")),
                    receiver: Connection::server(&config, random("receiver")),
                }))
            }
        };
        let end = plan.stop.unwrap_or(run.duration).min(run.duration);
        Flow {
            from: group.from,
            to: group.to,
            carrier,
            workload: group.workload.build(random("workload")),
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
                ends.sender.close(now);
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
        let event = match self.waiting {
            Waiting::Open if ends.sender.is_open() => Event::Opened,
            Waiting::Room => {
                let taken = ends.sender.write(self.unwritten);
                self.unwritten -= taken;
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
            event = match (action, &mut self.carrier) {
                (Action::WaitUntil(at), _) => {
                    self.waiting = Waiting::Time;
                    self.wake = at.min(self.stop);
                    return;
                }
                (Action::Send(Bytes { .. }), Carrier::Tcp(_)) => return,
                (Action::Send(length), Carrier::Udp { .. }) => {
                    self.written += length.get();
                    send(Request::Datagram(length.get() as u32));
                    Event::Sent
                }
                (_, Carrier::Udp { .. }) => return,
                (Action::Open, Carrier::Tcp(ends)) => {
                    ends.sender.open(now);
                    self.waiting = Waiting::Open;
                    return;
                }
                (Action::Write(bytes), Carrier::Tcp(ends)) => {
                    self.written += bytes.get();
                    self.unwritten = bytes.get() - ends.sender.write(bytes.get());
                    if self.unwritten > 0 {
                        self.waiting = Waiting::Room;
                        return;
                    }
                    Event::Written
                }
                (Action::WriteForever, Carrier::Tcp(ends)) => {
                    ends.sender.write_forever();
                    return;
                }
                (Action::AwaitDelivery, _) => {
                    self.waiting = Waiting::Delivery;
                    if self.read < self.written {
                        return;
                    }
                    Event::Delivered
                }
                (Action::Close, Carrier::Tcp(ends)) => {
                    ends.sender.close(now);
                    self.wake = Time::NEVER;
                    self.stopped = true;
                    return;
                }
            };
        }
    }
}

fn buffer(buffer: weir_plan::Buffer) -> tcp::Buffer {
    tcp::Buffer { min: buffer.min, initial: buffer.initial, max: buffer.max }
}
