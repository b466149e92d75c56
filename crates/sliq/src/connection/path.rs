//! What a node of an overlay is told of a connection's path.

use super::{Connection, State};
use crate::departure::Left;
use crate::hop::Path;
use weir_base::{Span, Time};

impl Connection {
    /// Whether it is open and the peer is heard.
    pub(crate) fn is_heard(&self) -> bool {
        self.state == State::Open && !self.outage.is_on()
    }

    /// What the packet that left last has carried.
    pub(crate) fn left(&self) -> Left {
        self.left
    }

    /// Bytes that wait for their first transmission.
    pub(crate) fn waiting(&self) -> u64 {
        self.outgoing.values().map(|stream| stream.unsent()).sum()
    }

    /// The path, its delay by these streams.
    pub(crate) fn path(&self, streams: &[u8], now: Time) -> Path {
        let (delay, variance) = self.passage(streams);
        Path { capacity: self.capacity.path(now), delay, variance, loss: self.per.rate() }
    }

    /// Mean and variance (in seconds squared) of the time from hand-over to arrival: of the first of these streams of which it is known,
    /// else half of the round trip.
    fn passage(&self, streams: &[u8]) -> (Span, f64) {
        let of = |id: &u8| self.outgoing.get(id).and_then(|stream| stream.passage.known());
        let known = streams.iter().find_map(of);
        known.unwrap_or_else(|| (self.rtt.smoothed().unwrap_or(Span::ZERO) / 2, 0.0))
    }

    /// Controllers that fill buffers are suspended, if there is one that keeps queues short.
    pub(crate) fn give_way(&mut self, now: Time) {
        if self.flights.iter().any(|flight| flight.keeps_queues_short()) {
            self.suspend_fillers(now);
        }
    }
}
