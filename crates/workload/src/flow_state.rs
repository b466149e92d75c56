//! One flow of an application: what it waits for, and its actions at the socket that the workload drives.

use crate::exchange::Exchange;
use crate::socket::{End, Socket, Trouble};
use crate::{Action, EchoLog, Event, Log, Part, Role, Workload, Writes};
use weir_base::{Bytes, Span, Time};

/// How often a greedy application refills its socket's buffer, if the socket does not keep itself full. At 100 Mbit/s eight packets
/// leave in this time; Linux wakes a blocking writer when a third of the buffer is free.
const TOP_UP: Span = Span::from_millis(1);

/// What an application waits for at a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The flow's start.
    Start,
    /// The opening of the connection.
    Open,
    /// Room for this many more bytes; `u64::MAX` means without end.
    Room(u64),
    /// The answer to a request.
    Answer,
    /// A time.
    Time,
    /// Its release by another of the application's flows.
    Release,
    /// Nothing: the application has ended, or the socket keeps itself full.
    Nothing,
}

/// When a flow's application works, and in which role.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The role of the flow's ends.
    pub role: Role,
    /// Length of the IP and UDP headers before a datagram's payload.
    pub headers: Bytes,
    /// When the application starts.
    pub start: Time,
    /// When the application stops sending.
    pub stop: Time,
}

/// One flow of an application.
#[derive(Debug)]
pub(crate) struct FlowState {
    pub(crate) plan: Plan,
    pub(crate) waiting: Waiting,
    /// When the application is called next.
    pub(crate) wake: Time,
    /// The last time that the workload has asked for. Its next event has this time, not the driver's, so that delays do not
    /// accumulate.
    pub(crate) due: Time,
    /// Whether the application keeps refilling the socket's buffer.
    pub(crate) greedy: bool,
    pub(crate) stopped: bool,
    pub(crate) completed: bool,
    pub(crate) failed: bool,
    /// The current request and its answer; boxed, since few flows have them.
    pub(crate) exchange: Option<Box<Exchange>>,
    pub(crate) log: Option<Box<Log>>,
    /// Bytes that the receiving application has read.
    pub(crate) read: u64,
}

impl FlowState {
    pub(crate) fn new(plan: Plan, log: Option<Log>) -> FlowState {
        FlowState {
            plan,
            waiting: Waiting::Start,
            wake: plan.start,
            due: plan.start,
            greedy: false,
            stopped: false,
            completed: false,
            failed: false,
            exchange: (plan.role == Role::RequestResponse).then(Box::default),
            log: log.map(Box::new),
            read: 0,
        }
    }

    /// The end that the workload drives.
    pub(crate) fn active(&self) -> End {
        if self.plan.role == Role::RequestResponse { End::Receiver } else { End::Sender }
    }

    /// Does a workload's action at a socket. Returns the event if the action is done at once, or else `None`.
    pub(crate) fn do_now(
        &mut self,
        action: Action,
        workload: &dyn Workload,
        socket: &mut impl Socket,
        now: Time,
    ) -> Result<Option<Event>, Trouble> {
        match action {
            Action::Open => {
                socket.open(now)?;
                self.waiting = Waiting::Open;
            }
            Action::Write(bytes) => return self.write(bytes.get(), socket, now),
            Action::Frame(bytes, number) => {
                if let Some(Log::Frames(log)) = self.log.as_deref_mut() {
                    log.begun(number, bytes);
                }
                return self.write(bytes.get(), socket, now);
            }
            Action::WriteForever(writes) => {
                if !socket.keep_full(writes)? {
                    self.greedy = writes == Writes::Greedy;
                    return self.write(u64::MAX, socket, now);
                }
            }
            Action::Exchange { request, response } => {
                let Some(exchange) = &mut self.exchange else {
                    return Err(Trouble::unsupported("ask for an answer"));
                };
                exchange.begin(request.get(), response.get(), workload.heads(), now);
                self.waiting = Waiting::Answer;
                exchange.ask(socket, now)?;
            }
            Action::Send(length, part) => {
                if let (Some(Log::Echoes(log)), Some(Part { frame, .. })) = (self.log.as_deref_mut(), part) {
                    log.sent(frame, now);
                }
                match part {
                    Some(part) => socket.send(length, &part.header(), self.due)?,
                    None => socket.send(length, &[], self.due)?,
                }
                return Ok(Some(Event::Sent));
            }
            Action::Close => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.over = true;
                }
                (self.stopped, self.wake) = (true, Time::NEVER);
                socket.close(now);
            }
            // The caller does these, which concern no socket.
            Action::WaitUntil(_) | Action::Await => {}
        }
        Ok(None)
    }

    /// Writes up to `left` bytes, as far as there is room. Returns [`Event::Written`] if all are written.
    pub(crate) fn write(
        &mut self,
        left: u64,
        socket: &mut impl Socket,
        now: Time,
    ) -> Result<Option<Event>, Trouble> {
        let written = socket.write(left, &[], now)?;
        let left = if left == u64::MAX { left } else { left - written };
        if left == 0 {
            return Ok(Some(Event::Written));
        }
        self.waiting = Waiting::Room(left);
        if self.greedy {
            self.wake = (now + TOP_UP).min(self.plan.stop);
        }
        Ok(None)
    }

    /// Returns [`Event::Opened`] if the connection is established.
    pub(crate) fn opened(&mut self, socket: &mut impl Socket, now: Time) -> Result<Option<Event>, Trouble> {
        if !socket.is_open()? {
            return Ok(None);
        }
        self.waiting = Waiting::Nothing;
        if self.stopped {
            // The flow's stop time was before its connection opened.
            socket.close(now);
        }
        Ok(Some(Event::Opened))
    }

    /// Continues the client's request; `read` more bytes of its answer were read. Returns [`Event::Answered`] if the answer is complete.
    pub(crate) fn exchange_on(
        &mut self,
        read: u64,
        socket: &mut impl Socket,
        now: Time,
    ) -> Result<Option<Event>, Trouble> {
        let Some(exchange) = &mut self.exchange else { return Ok(None) };
        exchange.ask(socket, now)?;
        if !exchange.is_answered(read, now) {
            return Ok(None);
        }
        self.waiting = Waiting::Nothing;
        Ok(Some(Event::Answered))
    }

    /// Sends each arrived datagram back. Returns the number of bytes that have arrived.
    pub(crate) fn echo(&mut self, socket: &mut impl Socket, now: Time) -> Result<u64, Trouble> {
        let Some(Log::Echoes(EchoLog { back, .. })) = self.log.as_deref_mut() else { return Ok(0) };
        let received = socket.read(now, &mut |head, length, _| {
            // After its first bytes a request contains zeros.
            back.push((head.first_chunk().copied().unwrap_or_default(), length));
        })?;
        for (head, length) in back.drain(..) {
            socket.send(self.plan.headers + Bytes::new(length), &head, now)?;
        }
        Ok(received.bytes)
    }
}
