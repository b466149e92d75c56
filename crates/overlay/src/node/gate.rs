//! What decisions ask of a link. It stands apart from the rest of the link, since a node asks all of its links for each packet.

use crate::advertised::Advertised;
use crate::cat::Cat;
use crate::nodes::NodeId;
use crate::zombie;
use weir_base::{Bytes, Rate, Span, Time};

/// Zombies leave at this rate at least, so that a link that tells no capacity holds none for ever.
const LEAST_DRAIN: Rate = Rate::from_bits_per_sec(8000);
/// Zombies wait for a link no longer than this. A link that has just come up may tell a capacity far too low, or none; while the largest
/// gradient toward it is that of zombies, packets of other bins wait too.
const LONGEST_DRAIN: Span = Span::from_secs(1);
/// A carrier's time is rounded to nanoseconds: it may have room so much before it.
const ROUNDING: Span = Span::from_nanos(1);

/// A link, as decisions see it.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    /// The neighbour, if it is up.
    pub(super) node: Option<NodeId>,
    /// Its depths are known until this time, if it tells nothing more.
    known_until: Time,
    /// When the carrier will have room, if nothing more is offered; a time that is past says nothing.
    ready: Time,
    /// When the link would have sent all packets, messages and zombies that it was given: then zombies may leave again.
    pub(super) drains_at: Time,
    /// Bytes of zombies that have left in place of packets. As many bytes of packets go for nothing.
    pub(super) owed: u64,
}

impl Gate {
    /// That of a link of which nothing is known.
    pub(super) fn new() -> Gate {
        Gate { node: None, known_until: Time::ZERO, ready: Time::ZERO, drains_at: Time::ZERO, owed: 0 }
    }

    /// The carrier may have changed.
    pub(super) fn ask(&mut self) {
        self.ready = Time::ZERO;
    }

    /// The neighbour has told depths, or is another one.
    pub(super) fn has_told(&mut self, depths: &Advertised) {
        self.known_until = depths.known_until();
    }

    /// The neighbour, if it is up and its depths are known.
    #[inline]
    pub(super) fn known(&self, now: Time) -> Option<NodeId> {
        self.node.filter(|_| now < self.known_until)
    }

    /// Whether the carrier has no room, as far as that can be said without it.
    pub(super) fn is_shut(&self, now: Time) -> bool {
        now + ROUNDING < self.ready
    }

    /// Bytes that the carrier takes now.
    pub(super) fn room(&self, cat: &impl Cat, now: Time) -> Bytes {
        if self.is_shut(now) { Bytes::ZERO } else { cat.room(now) }
    }

    /// What decisions see of the link: the bytes that it takes now, whether it has time for zombies, and whether zombies of this kind that
    /// outweigh packets leave without that time.
    #[inline]
    pub(super) fn takes(&self, cat: &impl Cat, kind: &zombie::Config, now: Time) -> (u64, bool, bool) {
        let yields = kind.is_improved() && self.owed < zombie::LARGEST;
        (self.room(cat, now).get(), self.drains_at <= now, yields)
    }

    /// When the carrier will have room; `None` if it has.
    pub(super) fn ready(&self, cat: &impl Cat, now: Time) -> Option<Time> {
        if self.is_shut(now) {
            return Some(self.ready);
        }
        (cat.room(now) == Bytes::ZERO).then(|| cat.ready(now))
    }

    /// Gives the carrier a datagram. Zombies of this kind wait for it.
    pub(super) fn offer(&mut self, cat: &mut impl Cat, bytes: Bytes, kind: &zombie::Config, now: Time) {
        cat.offer(bytes, now);
        self.ready = cat.ready(now);
        if kind.drain().is_some() {
            self.occupy(cat, bytes + cat.overhead(), now);
        }
    }

    /// The link's time is taken by so many bytes, whether it sends them or they are zombies.
    fn occupy(&mut self, cat: &impl Cat, bytes: Bytes, now: Time) {
        let capacity = cat.capacity().max(LEAST_DRAIN);
        self.drains_at = (self.drains_at.max(now) + capacity.time_to_send(bytes)).min(now + LONGEST_DRAIN);
    }

    /// Zombies leave: in the time that the link has, or else in the turn of the next packets.
    pub(super) fn let_go(&mut self, cat: &impl Cat, bytes: u64, kind: &zombie::Config, now: Time) {
        if self.drains_at > now {
            self.owed += bytes;
        } else {
            self.occupy(cat, Bytes::new(bytes.div_ceil(kind.drain().unwrap_or(1).into())), now);
        }
    }
}
