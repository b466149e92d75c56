//! A CAT: what a node knows of the link to one neighbour, and how much the link takes now.
//!
//! Source: digest G 1.1, A 3.1, A 3.8, A 6.3: a CAT is ready while it holds less than 2,000 bytes, and is then filled up to 6,000. On a
//! slow link it holds less, since 6,000 bytes are 48 ms at 1 Mbit/s; a link that is ready takes one packet of any length. There are two:
//! [`Wire`] is a link of a known rate, delay and loss, without a transport, and counts by its rate what it still holds. [`Reported`] is a
//! carrier that the driver keeps, such as a connection.

mod reported;

pub use reported::Reported;

use weir_base::{Bytes, Rate, Span, Time};

/// A delay as mean and variance.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Delay {
    /// The mean.
    pub mean: Span,
    /// The variance in seconds squared.
    pub variance: f64,
}

impl Delay {
    /// A delay that does not vary.
    pub const fn constant(mean: Span) -> Delay {
        Delay { mean, variance: 0.0 }
    }
    /// One delay and then the other.
    pub fn then(self, next: Delay) -> Delay {
        Delay { mean: self.mean + next.mean, variance: self.variance + next.variance }
    }
    /// What 98 to 99 of 100 packets stay below: mean + 2.2 standard deviations (digest A 6.8).
    pub fn bound(self) -> Span {
        self.mean + Span::from_secs_f64(2.2 * libm::sqrt(self.variance))
    }
}

/// Below this a CAT is ready (digest A 6.3).
pub const REFILL: Bytes = Bytes::new(2000);
/// Up to this a CAT is filled (digest A 6.3).
pub const FULL: Bytes = Bytes::new(6000);
/// A wire is ready when it holds less than what it sends in this time, and is filled to three times as much.
pub const READY: Span = Span::from_millis(4);

/// Below this a link of this rate is ready.
fn refill(rate: Rate) -> Bytes {
    REFILL.min(rate.bytes_in(READY)).max(Bytes::new(1))
}

/// The room of a link that holds so many bytes and is ready below `refill`: none unless it is ready, then as much as fills it.
fn room_beside(held: Bytes, refill: Bytes) -> Bytes {
    if held < refill { FULL.min(Bytes::new(3 * refill.get())).saturating_sub(held) } else { Bytes::ZERO }
}

/// The link to one neighbour.
pub trait Cat {
    /// Bytes that it takes now; zero while it holds [`REFILL`] or more.
    fn room(&self, now: Time) -> Bytes;
    /// When it will have room, if nothing more is offered; [`Time::NEVER`] if only an event can tell.
    fn ready(&self, now: Time) -> Time;
    /// Takes a datagram of this length.
    fn offer(&mut self, bytes: Bytes, now: Time);
    /// The rate that it can carry, with the overhead of its own; zero in an outage.
    fn capacity(&self) -> Rate;
    /// What each datagram takes of that rate in addition to its own length.
    fn overhead(&self) -> Bytes {
        Bytes::ZERO
    }
    /// The delay from the offer of a packet to its arrival, without what waits before it.
    fn delay(&self) -> Delay;
    /// How long a datagram of this length, offered now, takes to arrive, with what waits before it.
    fn transit(&self, bytes: Bytes, now: Time) -> Span;
    /// The part of its packets that it loses for good.
    fn loss(&self) -> f64;
    /// The peer's estimate of the capacity has come (digest A 3.8). A carrier that measures none of its own may use it.
    fn told_capacity(&mut self, capacity: Rate) {
        let _ = capacity;
    }
}

/// A link without a transport.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    rate: Rate,
    delay: Span,
    loss: f64,
    /// Bytes that each datagram takes in addition to its own: its IP and UDP headers and the link's.
    overhead: Bytes,
    /// When all that it holds will have been sent.
    free_at: Time,
    limits: Limits,
}

/// When a wire of some rate takes more. They are computed once for a rate, since a node asks for each decision.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    /// Below this it is ready.
    refill: Bytes,
    /// What it holds takes at least so long to be sent when it is not ready.
    busy: Span,
    /// So long before it is free it is ready.
    early: Span,
}

impl Limits {
    fn of(rate: Rate) -> Limits {
        let refill = refill(rate);
        let nanos = (u128::from(refill.get()) * 8_000_000_000).div_ceil(rate.bits_per_sec().max(1).into());
        let busy = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Limits { refill, busy, early: rate.time_to_send(refill) }
    }
}

impl Wire {
    /// A link of this rate and one-way delay, which adds so many bytes to each datagram.
    pub fn new(rate: Rate, delay: Span, loss: f64, overhead: Bytes) -> Wire {
        Wire { rate, delay, loss, overhead, free_at: Time::ZERO, limits: Limits::of(rate) }
    }

    /// The link has changed. What it holds leaves at the new rate.
    pub fn change(&mut self, rate: Rate, delay: Span, loss: f64, now: Time) {
        let held = self.held(now);
        (self.rate, self.delay, self.loss, self.limits) = (rate, delay, loss, Limits::of(rate));
        self.free_at = now + rate.time_to_send(held);
    }

    fn held(&self, now: Time) -> Bytes {
        self.rate.bytes_in(self.free_at.since(now))
    }
}

impl Cat for Wire {
    #[inline]
    fn room(&self, now: Time) -> Bytes {
        if self.rate.bits_per_sec() == 0 || self.free_at.since(now) >= self.limits.busy {
            return Bytes::ZERO;
        }
        room_beside(self.held(now), self.limits.refill)
    }
    #[inline]
    fn ready(&self, now: Time) -> Time {
        if self.rate.bits_per_sec() == 0 {
            return Time::NEVER;
        }
        // A nanosecond more, since what is left is rounded down to bytes.
        now.max(self.free_at - self.limits.early + Span::from_nanos(1))
    }
    #[inline]
    fn offer(&mut self, bytes: Bytes, now: Time) {
        self.free_at = self.free_at.max(now) + self.rate.time_to_send(bytes + self.overhead);
    }
    fn capacity(&self) -> Rate {
        self.rate
    }
    fn overhead(&self) -> Bytes {
        self.overhead
    }
    fn delay(&self) -> Delay {
        Delay::constant(self.delay)
    }
    fn transit(&self, bytes: Bytes, now: Time) -> Span {
        self.free_at.since(now) + self.rate.time_to_send(bytes + self.overhead) + self.delay
    }
    fn loss(&self) -> f64 {
        self.loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_filled_to_6000_bytes_and_again_below_2000() {
        let mut wire = Wire::new(Rate::from_mbit_per_sec(8), Span::from_millis(10), 0.0, Bytes::ZERO);
        let at = |micros: u64| Time::ZERO + Span::from_micros(micros);
        assert_eq!(wire.room(at(0)), FULL);
        wire.offer(Bytes::new(6000), at(0));
        assert_eq!(wire.transit(Bytes::new(1000), at(0)), Span::from_millis(17));
        assert_eq!(wire.room(at(3999)), Bytes::ZERO);
        let ready = wire.ready(at(0));
        assert!(ready > at(4000) && ready < at(4001));
        assert!(wire.room(ready) > Bytes::new(4000));
    }

    #[test]
    fn a_slow_wire_holds_less_but_takes_a_packet_when_it_is_ready() {
        let mut wire = Wire::new(Rate::from_mbit_per_sec(1), Span::ZERO, 0.0, Bytes::ZERO);
        assert_eq!(wire.room(Time::ZERO), Bytes::new(1500));
        wire.offer(Bytes::new(1250), Time::ZERO);
        assert_eq!(wire.room(Time::ZERO), Bytes::ZERO);
        assert!(wire.ready(Time::ZERO) > Time::ZERO + Span::from_millis(6));
        assert!(wire.room(wire.ready(Time::ZERO)) > Bytes::new(1000));
    }

    #[test]
    fn an_outage_takes_nothing_and_what_a_wire_holds_leaves_afterwards() {
        let rate = Rate::from_mbit_per_sec(8);
        let mut wire = Wire::new(rate, Span::ZERO, 0.0, Bytes::ZERO);
        wire.offer(Bytes::new(3000), Time::ZERO);
        wire.change(Rate::from_bits_per_sec(0), Span::ZERO, 1.0, Time::ZERO);
        assert_eq!((wire.room(Time::ZERO), wire.ready(Time::ZERO)), (Bytes::ZERO, Time::NEVER));
    }

    #[test]
    fn the_bound_of_a_delay_is_2_2_standard_deviations_above_its_mean() {
        let part = Delay { mean: Span::from_millis(10), variance: 8e-6 };
        let whole = part.then(part).bound();
        assert_eq!(whole, Span::from_micros(28_800));
    }
}
