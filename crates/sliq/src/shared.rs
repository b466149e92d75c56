//! Flows that are streams of one connection: each end of each flow is a handle to its end of the connection. The first handle also sends
//! the connection's control packets.

use super::connection::Connection;
use super::{Parameters, StreamParameters};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_base::{Bytes, Ecn, Rate, Time};
use weir_endpoint::{Body, Setup};
use weir_endpoint::{Counts, Endpoint, Message, Part, Read, Sample, Stream};

/// A connection whose streams belong to different flows: plain or sealed.
pub(crate) trait Shared: Endpoint {
    /// The connection itself, without its protection.
    fn inner(&mut self) -> &mut Connection;
    /// The next packet if it belongs to this stream, or is a control packet and `control` is true.
    fn transmit_of(&mut self, stream: u8, control: bool, into: &mut Body, now: Time) -> Option<Ecn>;
    /// Adds a stream and returns its number; `None` if there are too many.
    fn add_stream(&mut self, parameters: &StreamParameters, messages: bool) -> Option<u8> {
        self.inner().add_stream(parameters, messages)
    }
}

impl Shared for Connection {
    fn inner(&mut self) -> &mut Connection {
        self
    }
    fn transmit_of(&mut self, stream: u8, control: bool, into: &mut Body, now: Time) -> Option<Ecn> {
        self.simulated_packet_of(Some((stream, control)), into.datagram_mut(), now)
    }
}

/// One flow's end of a connection.
pub(crate) struct Handle {
    connection: Arc<Mutex<dyn Shared>>,
    stream: u8,
}

impl Handle {
    /// The handle of the flow for which this end was made; its stream has number 0.
    pub(crate) fn first(connection: impl Shared + 'static) -> Handle {
        Handle { connection: Arc::new(Mutex::new(connection)), stream: 0 }
    }

    fn connection(&self) -> MutexGuard<'_, dyn Shared + 'static> {
        // A connection is consistent after each call; a call that panicked has left nothing half done that matters.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_first(&self) -> bool {
        self.stream == 0
    }
}

impl Endpoint for Handle {
    fn join(&mut self, parameters: &dyn Any, setup: &Setup<'_>) -> Option<Box<dyn Endpoint>> {
        let Parameters { stream, .. } = parameters.downcast_ref()?;
        let stream = self.connection().add_stream(stream, setup.datagrams)?;
        Some(Box::new(Handle { connection: self.connection.clone(), stream }))
    }
    fn open(&mut self, now: Time) {
        self.connection().open(now);
    }
    fn receive(&mut self, body: &Body, ecn: Ecn, now: Time) {
        self.connection().receive(body, ecn, now);
    }
    fn transmit(&mut self, into: &mut Body, now: Time) -> Option<Ecn> {
        let mut connection = self.connection();
        if connection.inner().is_coordinated() {
            // For aggregation points the connection is one flow, with the addresses of the first.
            return if self.is_first() { connection.transmit(into, now) } else { None };
        }
        connection.transmit_of(self.stream, self.is_first(), into, now)
    }
    fn next_timer(&self) -> Time {
        if self.is_first() { self.connection().next_timer() } else { Time::NEVER }
    }
    fn on_timer(&mut self, now: Time) {
        self.connection().on_timer(now);
    }
    fn write(&mut self, _: Stream, message: Message<'_>, now: Time) -> u64 {
        self.connection().write(Stream(self.stream.into()), message, now)
    }
    fn keep_full(&mut self, _: Stream, greedy: bool) -> bool {
        self.connection().keep_full(Stream(self.stream.into()), greedy)
    }
    fn read(&mut self, to: &mut dyn FnMut(Stream, Read<'_>)) {
        self.connection().inner().read_of(self.stream, &mut |read| to(Stream(0), read));
    }
    fn close(&mut self, _: Option<Stream>, now: Time) {
        self.connection().close(Some(Stream(self.stream.into())), now);
    }
    fn is_open(&self) -> bool {
        self.connection().is_open()
    }
    fn finished(&self) -> bool {
        self.connection().inner().has_ended(self.stream)
    }
    fn all_acknowledged(&self) -> bool {
        self.connection().inner().is_settled(self.stream)
    }
    fn counts(&self) -> Counts {
        if self.is_first() { self.connection().counts() } else { Counts::default() }
    }
    fn retransmitted(&self) -> Option<u64> {
        let mut connection = self.connection();
        match connection.inner().is_coordinated() {
            // All packets are the first flow's ([`Handle::transmit`]), and so are those that were retransmitted.
            true if self.is_first() => connection.retransmitted(),
            true => Some(0),
            false => Some(connection.inner().retransmitted_of(self.stream)),
        }
    }
    fn sample(&self) -> Option<Sample> {
        if self.is_first() { self.connection().sample() } else { None }
    }
    /// Of all streams, since the rate is that of the whole connection.
    fn unsent(&self) -> Bytes {
        self.connection().unsent()
    }
    fn sending_rate(&self, now: Time) -> Option<Rate> {
        self.connection().sending_rate(now)
    }
    fn state(&self, report: &mut dyn FnMut(Part, &'static str, f64)) {
        let (own, first) = (Part::Stream(self.stream.into()), self.is_first());
        self.connection().state(&mut |part, name, value| {
            if part == own || (first && matches!(part, Part::Controller(_))) {
                report(part, name, value);
            }
        });
    }
}
