//! The runner: it drives a workload over sockets, for both engines. An application has one or several flows and handles both ends of
//! each: the end that the workload drives, and its peer, which reads data, or reads requests and answers them.
//!
//! The engine calls [`Application::on_timer`] at the time that [`Application::wake`] returns, [`Application::on_socket`] when a
//! socket's state has changed, and [`Application::on_end`] when all data has been read and the socket has sent all of its own.

use crate::flow_state::{FlowState, Plan, Waiting};
use crate::socket::{End, Received, Socket, Sockets, Trouble};
use crate::{Action, EchoRecord, EnsembleLog, EnsembleRecord, Event, FrameRecord, Log, Part, Role, Workload};
use weir_base::{Span, Time};

/// An event of a flow, for the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The flow's application has started.
    Started,
    /// The flow's connection is established.
    Opened,
    /// A request was answered: its number, from 0, and the time that the answer took.
    Answered(u64, Span),
    /// The fate of a frame is known.
    Frame(FrameRecord),
    /// The fate of an echo request is known.
    Echo(EchoRecord),
    /// An event of an ensemble. If the ensemble is complete, the flow is the one whose frame was last.
    Ensemble(EnsembleRecord),
    /// The receiving application has read everything.
    Completed,
    /// The flow has failed and ends.
    Failed(Trouble),
}

/// An application with its flows.
pub struct Application {
    workload: Box<dyn Workload>,
    /// At least one; more if the workload is shared.
    flows: Vec<FlowState>,
    /// The log of the ensembles that the flows carry together; `None` if the workload has none.
    ensembles: Option<Box<EnsembleLog>>,
}

impl Application {
    /// An application with one flow.
    pub fn new(workload: Box<dyn Workload>, plan: Plan, log: Option<Log>) -> Application {
        Application { workload, flows: vec![FlowState::new(plan, log)], ensembles: None }
    }

    /// The application with a log of the ensembles that its flows carry together.
    pub fn with_ensembles(self, log: Option<EnsembleLog>) -> Application {
        Application { ensembles: log.map(Box::new), ..self }
    }

    /// Adds a flow; its number follows that of the last one.
    pub fn add(&mut self, plan: Plan, log: Option<Log>) {
        self.flows.push(FlowState::new(plan, log));
        self.workload.add_flow();
        if let Some(log) = &mut self.ensembles {
            log.add_flow();
        }
    }

    #[inline]
    fn flow(&self, flow: usize) -> &FlowState {
        &self.flows[flow]
    }

    #[inline]
    fn flow_mut(&mut self, flow: usize) -> &mut FlowState {
        &mut self.flows[flow]
    }

    /// When [`Application::on_timer`] is due for this flow; [`Time::NEVER`] if it is not due.
    #[inline]
    pub fn wake(&self, flow: usize) -> Time {
        self.flow(flow).wake
    }

    /// Whether this flow has not started yet.
    #[inline]
    pub fn is_to_start(&self, flow: usize) -> bool {
        self.flow(flow).waiting == Waiting::Start
    }

    /// Whether the application has a log of messages, on which [`Application::settle`] may report.
    pub fn has_log(&self) -> bool {
        self.flows[0].log.is_some()
    }

    /// Whether [`Application::on_socket`] may do anything at this end. If not, it need not be called: the application waits for nothing
    /// there, or only reads a stream, which it can also do when [`Application::read`] is needed.
    #[inline]
    pub fn cares(&self, flow: usize, end: End) -> bool {
        let state = self.flow(flow);
        match state.plan.role {
            Role::OneWay if end == End::Receiver => self.ensembles.is_some() || state.log.is_some(),
            Role::OneWay => matches!(state.waiting, Waiting::Open | Waiting::Room(_)),
            _ => true,
        }
    }

    /// Reads the stream of a flow whose receiving application only reads.
    pub fn read_stream<S: Sockets>(
        &mut self,
        flow: usize,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        if self.flow(flow).plan.role == Role::OneWay
            && let Some(received) = self.take(flow, End::Receiver, now, sockets, tell)
        {
            let (state, at) = (self.flow_mut(flow), received.at);
            state.read += received.bytes;
            if let Some(Log::Frames(log)) = state.log.as_deref_mut() {
                log.read_stream(received.bytes, at, |frame| tell(flow, Notice::Frame(frame)));
            }
            if let Some(log) = &mut self.ensembles {
                log.read(flow, received.bytes, at, |record| tell(flow, Notice::Ensemble(record)));
            }
        }
    }

    /// Bytes that the receiving application of this flow has read; see [`Application::read_stream`].
    #[inline]
    pub fn read(&self, flow: usize) -> u64 {
        self.flow(flow).read
    }

    /// Whether this flow is complete.
    #[inline]
    pub fn completed(&self, flow: usize) -> bool {
        self.flow(flow).completed
    }

    /// Whether the application needs a call when there is room in this socket, or when it opens.
    pub fn wants_room(&self, flow: usize, end: End) -> bool {
        let state = self.flow(flow);
        let active = end == state.active();
        match state.waiting {
            Waiting::Open => active,
            Waiting::Room(_) => active && !state.greedy,
            _ => state.exchange.as_ref().is_some_and(|exchange| exchange.wants_room(active)),
        }
    }

    /// The time that [`Application::wake`] returned has come: the flow's start, a time that the workload waits for, or the flow's stop.
    pub fn on_timer<S: Sockets>(
        &mut self,
        flow: usize,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        if now >= state.plan.stop && state.waiting != Waiting::Start {
            return self.stop(flow, now, sockets);
        }
        if now < state.wake {
            return;
        }
        match state.waiting {
            Waiting::Start => {
                tell(flow, Notice::Started);
                self.act(flow, Event::Start, now, sockets, tell);
            }
            Waiting::Time => self.act(flow, Event::Woken, now, sockets, tell),
            Waiting::Room(_) => self.on_socket(flow, End::Sender, now, sockets, tell),
            _ => state.wake = state.plan.stop,
        }
    }

    /// The flow's stop time has come: its application writes no more.
    fn stop<S: Sockets>(&mut self, flow: usize, now: Time, sockets: &mut S) {
        let state = self.flow_mut(flow);
        state.wake = Time::NEVER;
        // A connection that opens later is closed then, and an answer in progress still counts.
        if !matches!(state.waiting, Waiting::Open | Waiting::Answer) {
            state.waiting = Waiting::Nothing;
        }
        if let Some(exchange) = &mut state.exchange {
            exchange.stop();
        }
        if !std::mem::replace(&mut state.stopped, true)
            && let Some(mut socket) = sockets.at(flow, state.active())
        {
            socket.close(now);
        }
    }

    /// A socket's state has changed: packets have arrived or were acknowledged. Cheap if the application waits for nothing there.
    #[inline]
    pub fn on_socket<S: Sockets>(
        &mut self,
        flow: usize,
        end: End,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        match (state.plan.role, end) {
            (Role::OneWay | Role::Datagrams(_), End::Sender) => {
                if matches!(state.waiting, Waiting::Open | Waiting::Room(_)) {
                    self.active_moved(flow, 0, now, sockets, tell);
                }
            }
            (Role::OneWay, End::Receiver) => self.read_stream(flow, now, sockets, tell),
            _ => self.others_moved(flow, end, now, sockets, tell),
        }
    }

    fn others_moved<S: Sockets>(
        &mut self,
        flow: usize,
        end: End,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        match (self.flow(flow).plan.role, end) {
            (Role::Datagrams(_), End::Receiver) | (Role::Echo(_), End::Sender) => {
                self.read_datagrams(flow, end, now, sockets, tell);
            }
            (Role::Echo(_), End::Receiver) => self.echo(flow, now, sockets, tell),
            (Role::RequestResponse, End::Sender) => self.serve(flow, now, sockets, tell),
            (Role::RequestResponse, End::Receiver) => {
                if let Some(received) = self.take(flow, end, now, sockets, tell) {
                    self.flow_mut(flow).read += received.bytes;
                    self.active_moved(flow, received.bytes, received.at, sockets, tell);
                }
            }
            _ => {}
        }
    }

    /// Reads a stream.
    #[inline]
    fn take<S: Sockets>(
        &mut self,
        flow: usize,
        end: End,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) -> Option<Received> {
        let read = sockets.at(flow, end)?.read(now, &mut |_, _, _| {});
        match read {
            Ok(received) => Some(received),
            Err(trouble) => {
                self.fail(flow, trouble, now, sockets, tell);
                None
            }
        }
    }

    fn read_datagrams<S: Sockets>(
        &mut self,
        flow: usize,
        end: End,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        let mut log = state.log.as_deref_mut();
        let mut datagram = |head: &[u8], _, at| {
            let (Some(log), Some(part)) = (log.as_deref_mut(), Part::read(head)) else { return };
            let notice = match log {
                Log::Frames(log) => log.read(part, at).map(Notice::Frame),
                Log::Echoes(log) => log.answered(part.frame, at).map(Notice::Echo),
            };
            notice.into_iter().for_each(|notice| tell(flow, notice));
        };
        let Some(read) = sockets.at(flow, end).map(|mut socket| socket.read(now, &mut datagram)) else {
            return;
        };
        match read {
            // Echoed bytes are counted at the peer, not at the sender.
            Ok(received) if end == End::Receiver => state.read += received.bytes,
            Ok(_) => {}
            Err(trouble) => self.fail(flow, trouble, now, sockets, tell),
        }
    }

    /// Sends each datagram back at the receiving end.
    fn echo<S: Sockets>(
        &mut self,
        flow: usize,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        let echoed = match sockets.at(flow, End::Receiver) {
            Some(mut socket) => state.echo(&mut socket, now),
            None => return,
        };
        match echoed {
            Ok(bytes) => state.read += bytes,
            Err(trouble) => self.fail(flow, trouble, now, sockets, tell),
        }
    }

    /// The socket that the workload drives has changed; a client there has read `read` more bytes.
    fn active_moved<S: Sockets>(
        &mut self,
        flow: usize,
        read: u64,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        let moved = sockets.at(flow, state.active()).map_or(Ok(None), |mut socket| match state.waiting {
            Waiting::Open => state.opened(&mut socket, now),
            Waiting::Room(left) => state.write(left, &mut socket, now),
            Waiting::Answer => state.exchange_on(read, &mut socket, now),
            _ => Ok(None),
        });
        let event = match moved {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(trouble) => return self.fail(flow, trouble, now, sockets, tell),
        };
        match event {
            Event::Opened => tell(flow, Notice::Opened),
            Event::Answered => {
                if let Some((number, took)) = state.exchange.as_ref().and_then(|exchange| exchange.last) {
                    tell(flow, Notice::Answered(number, took));
                }
            }
            _ => {}
        }
        if !self.flow(flow).stopped {
            self.act(flow, event, now, sockets, tell);
        }
    }

    /// The server at the sending end: reads the request, and answers when it has read all of it.
    fn serve<S: Sockets>(
        &mut self,
        flow: usize,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let Some(exchange) = &mut self.flow_mut(flow).exchange else { return };
        let served = sockets.at(flow, End::Sender).map(|mut socket| exchange.serve(&mut socket, now));
        if let Some(Err(trouble)) = served {
            self.fail(flow, trouble, now, sockets, tell);
        }
    }

    /// Gives the workload an event, and does its actions until it waits.
    fn act<S: Sockets>(
        &mut self,
        flow: usize,
        event: Event,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let mut next = Some((flow, event));
        while let Some((flow, event)) = next {
            if self.workload.adapts() {
                self.ask(now, sockets);
            }
            if let Err(trouble) = self.act_at(flow, event, now, sockets) {
                self.fail(flow, trouble, now, sockets, tell);
            }
            next = self.workload.released().map(|flow| (flow, Event::Released));
            next = next.filter(|(flow, _)| self.flow(*flow).waiting == Waiting::Release);
        }
    }

    /// Tells the workload what its flows' sockets tell. A socket that fails tells nothing; its next use says why.
    fn ask<S: Sockets>(&mut self, now: Time, sockets: &mut S) {
        for flow in 0..self.flows.len() {
            let end = self.flow(flow).active();
            let Some(mut socket) = sockets.at(flow, end) else { continue };
            if let Ok(unsent) = socket.unsent() {
                self.workload.on_backlog(flow, unsent, socket.sending_rate(now), now);
            }
        }
    }

    fn act_at<S: Sockets>(
        &mut self,
        flow: usize,
        mut event: Event,
        now: Time,
        sockets: &mut S,
    ) -> Result<(), Trouble> {
        let Application { workload, flows, ensembles } = self;
        let state = &mut flows[flow];
        state.wake = state.plan.stop.max(now);
        state.waiting = Waiting::Nothing;
        let end = state.active();
        loop {
            if let (Event::Written, Some(log)) = (event, ensembles.as_deref_mut()) {
                log.written(flow, now);
            }
            let timed = matches!(event, Event::Start | Event::Woken | Event::Sent);
            let action = workload.next_for(flow, event, if timed { state.due } else { now });
            if let Action::WaitUntil(at) = action {
                state.waiting = Waiting::Time;
                state.due = at;
                state.wake = state.due.max(now).min(state.plan.stop);
                return Ok(());
            }
            if action == Action::Await {
                state.waiting = Waiting::Release;
                return Ok(());
            }
            let Some(mut socket) = sockets.at(flow, end) else {
                return Err(Trouble::unsupported("open a socket"));
            };
            match state.do_now(action, workload.as_ref(), &mut socket, now)? {
                Some(next) => event = next,
                None => return Ok(()),
            }
        }
    }

    /// Called after a socket's state has changed; `finished` says whether its peer has closed and all data was read. Returns whether
    /// the application closes its own end in response, so that there is more to send.
    #[inline]
    pub fn on_end<S: Sockets>(
        &mut self,
        flow: usize,
        end: End,
        finished: bool,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) -> bool {
        if !finished || end != End::Receiver || self.flow(flow).completed {
            return false;
        }
        let state = self.flow_mut(flow);
        if state.exchange.as_ref().is_some_and(|exchange| !exchange.over) {
            return false;
        }
        state.completed = true;
        if let Some(mut socket) = sockets.at(flow, end) {
            socket.close(now);
        }
        tell(flow, Notice::Completed);
        true
    }

    fn fail<S: Sockets>(
        &mut self,
        flow: usize,
        trouble: Trouble,
        now: Time,
        sockets: &mut S,
        tell: &mut dyn FnMut(usize, Notice),
    ) {
        let state = self.flow_mut(flow);
        (state.waiting, state.wake, state.stopped) = (Waiting::Nothing, Time::NEVER, true);
        if !state.completed && !std::mem::replace(&mut state.failed, true) {
            tell(flow, Notice::Failed(trouble));
        }
        if let Some(mut socket) = sockets.at(flow, state.active()) {
            socket.close(now);
        }
    }

    /// Reports the messages that count as lost by now.
    pub fn settle(&mut self, now: Time, tell: &mut dyn FnMut(usize, Notice)) {
        for (flow, state) in self.flows.iter_mut().enumerate() {
            match state.log.as_deref_mut() {
                Some(Log::Frames(log)) => log.settle(now, |frame| tell(flow, Notice::Frame(frame))),
                Some(Log::Echoes(log)) => log.settle(now, |echo| tell(flow, Notice::Echo(echo))),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
