//! A link whose carrier its driver keeps: the driver says how much waits there and what it knows of the path, after each change.

use super::{Cat, Delay, refill, room_beside};
use weir_base::{Bytes, Rate, Span, Time};

/// What the driver has said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reported {
    /// Whether it takes anything.
    pub is_up: bool,
    /// Bytes that wait there to be sent.
    pub waiting: Bytes,
    /// What the path carries; zero if that is not known.
    pub capacity: Rate,
    /// The time from the offer of a packet to its arrival, with what usually waits before it.
    pub delay: Delay,
    /// The part of the packets that is lost for good.
    pub loss: f64,
}

impl Cat for Reported {
    fn room(&self, _: Time) -> Bytes {
        if self.is_up { room_beside(self.waiting, refill(self.capacity)) } else { Bytes::ZERO }
    }
    fn ready(&self, now: Time) -> Time {
        if self.room(now) > Bytes::ZERO { now } else { Time::NEVER }
    }
    fn offer(&mut self, bytes: Bytes, _: Time) {
        self.waiting += bytes;
    }
    fn capacity(&self) -> Rate {
        if self.is_up { self.capacity } else { Rate::from_bits_per_sec(0) }
    }
    fn delay(&self) -> Delay {
        self.delay
    }
    fn transit(&self, _: Bytes, _: Time) -> Span {
        self.delay.mean
    }
    fn loss(&self) -> f64 {
        self.loss
    }
}

#[cfg(test)]
mod tests {
    use super::super::FULL;
    use super::*;

    fn reported(mbit: u64, waiting: u64) -> Reported {
        let (capacity, waiting) = (Rate::from_mbit_per_sec(mbit), Bytes::new(waiting));
        Reported { is_up: true, waiting, capacity, ..Reported::default() }
    }

    #[test]
    fn it_is_filled_as_a_wire_of_its_capacity_is() {
        assert_eq!(reported(10, 0).room(Time::ZERO), FULL);
        assert_eq!(reported(10, 1999).room(Time::ZERO), Bytes::new(4001));
        assert_eq!(reported(10, 2000).room(Time::ZERO), Bytes::ZERO);
        assert_eq!(reported(1, 0).room(Time::ZERO), Bytes::new(1500));
        assert_eq!(reported(10, 2000).ready(Time::ZERO), Time::NEVER);
    }

    #[test]
    fn one_packet_at_a_time_goes_while_the_capacity_is_not_known() {
        let mut fresh = Reported { is_up: true, ..Reported::default() };
        assert!(fresh.room(Time::ZERO) > Bytes::ZERO);
        fresh.offer(Bytes::new(1000), Time::ZERO);
        assert_eq!(fresh.room(Time::ZERO), Bytes::ZERO);
    }

    #[test]
    fn nothing_goes_while_it_is_down() {
        let down = Reported { is_up: false, ..reported(10, 0) };
        assert_eq!((down.room(Time::ZERO), down.capacity().bits_per_sec()), (Bytes::ZERO, 0));
    }
}
