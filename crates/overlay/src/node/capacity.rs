//! What a neighbour is told of the capacity of its link, and when (digest A 2.2, A 3.8).

use super::{Node, Output};
use crate::cat::Cat;
use crate::linkstate::Adjacency;
use crate::message::Message;
use crate::packet::Body;
use weir_base::{Rate, Span, Time};

/// The estimate of a capacity is repeated this often, and sent at once when it changes, but not before that (digest A 2.2, A 3.8).
const CAPACITY_PERIOD: Span = Span::from_secs(4);
const CAPACITY_HOLD: Span = Span::from_millis(100);

/// A change of a delay or a capacity by this part is told (digest A 3.8, A 6.1).
const NOTABLE: f64 = 0.1;

/// Whether a value differs from what was told by a notable part.
pub(super) fn differs(told: f64, now: f64) -> bool {
    (now - told).abs() > NOTABLE * told
}

/// What a neighbour was told of the link's capacity.
#[derive(Debug, Default)]
pub(super) struct Sent {
    capacity: Rate,
    at: Option<Time>,
}

impl Sent {
    /// From when on the neighbour is told, with anything else that is done.
    fn due(&self, adjacency: &Adjacency, cat: &impl Cat) -> Time {
        let told = self.capacity.bits_per_sec() as f64;
        match self.at {
            _ if adjacency.up().is_none() => Time::NEVER,
            Some(at) if differs(told, cat.capacity().bits_per_sec() as f64) => at + CAPACITY_HOLD,
            Some(at) => at + CAPACITY_PERIOD,
            None => Time::ZERO,
        }
    }
}

impl<B: Body, C: Cat> Node<B, C> {
    /// From when on a neighbour is told of its link's capacity.
    pub(super) fn capacity_due(&self) -> Time {
        let due = self.ports.iter().map(|port| port.told.due(&port.adjacency, &port.cat));
        due.min().unwrap_or(Time::NEVER)
    }

    pub(super) fn tell_capacity(&mut self, port: usize, now: Time, out: &mut impl Output<B>) {
        let link = &mut self.ports[port];
        if link.told.due(&link.adjacency, &link.cat) <= now {
            let capacity = link.cat.capacity();
            link.told = Sent { capacity, at: Some(now) };
            self.append(port, &Message::Capacity(capacity), now, out);
            self.add_hello(port, now, out);
            self.flush(port, now, out);
        }
    }
}
