//! Impairments of packets on their way: loss, at random or of too long packets, duplication, damage and jitter. Plain links
//! have none and pay one check for it. Each impairment has its own random stream, so that one never changes the draws of
//! another.

use super::{Around, Link, PacketEvent};
use crate::config;
use crate::jitter::Jitter;
use crate::loss::Losses;
use crate::wire::Wire;
use weir_base::{Bytes, Random, Span, Time};

#[derive(Debug)]
pub(super) struct Impairments {
    losses: Losses,
    /// Longest IP packet that arrives.
    largest: Option<Bytes>,
    duplicate: f64,
    duplicates: Random,
    corrupt: f64,
    corruptions: Random,
    jitter: Jitter,
    delays: Random,
    /// Whether it duplicates, damages or delays packets at present; if not, it only loses some.
    alters: bool,
    /// Whether it has jitter at present.
    delayed: bool,
}

impl Impairments {
    /// The impairments that this link has from the start or by its schedule; `None` for a plain link.
    pub(super) fn new(index: usize, config: &config::Link, seed: u64) -> Option<Box<Impairments>> {
        let at_once = !config.loss.is_none()
            || config.largest.is_some()
            || config.duplicate > 0.0
            || config.corrupt > 0.0
            || config.jitter.as_ref().is_some_and(|jitter| !jitter.is_none());
        if !at_once && !config.schedule.iter().any(Impairments::concerns) {
            return None;
        }
        Some(Impairments::of(index, config, seed))
    }

    /// The impairments of this link, which may have none yet.
    pub(super) fn of(index: usize, config: &config::Link, seed: u64) -> Box<Impairments> {
        let stream = |name: &str| Random::stream_of(seed, name, index as u64);
        let mut impairments = Impairments {
            losses: Losses::new(config.loss, stream("loss"), stream("loss times")),
            largest: config.largest,
            duplicate: config.duplicate,
            duplicates: stream("duplicate"),
            corrupt: config.corrupt,
            corruptions: stream("corrupt"),
            jitter: config.jitter.clone().unwrap_or_default(),
            delays: stream("jitter"),
            alters: false,
            delayed: false,
        };
        impairments.look();
        Box::new(impairments)
    }

    /// Whether a change is one of impairments.
    fn concerns(change: &config::Change) -> bool {
        change.loss.is_some()
            || change.largest.is_some()
            || change.duplicate.is_some()
            || change.corrupt.is_some()
            || change.jitter.is_some()
    }

    /// Finds what there is to do with each packet.
    fn look(&mut self) {
        self.delayed = !self.jitter.is_none();
        self.alters = self.duplicate > 0.0 || self.corrupt > 0.0 || self.delayed;
    }

    /// The share of packets that it loses in the long run.
    pub(super) fn loss(&self) -> f64 {
        self.losses.mean()
    }

    /// Whether packets may overtake each other.
    pub(super) fn reorders(&self) -> bool {
        self.jitter.reorder && self.delayed
    }

    pub(super) fn change(&mut self, change: &config::Change) {
        if let Some(loss) = change.loss {
            self.losses.change(loss, Time::ZERO + change.at);
        }
        self.largest = change.largest.or(self.largest);
        self.duplicate = change.duplicate.unwrap_or(self.duplicate);
        self.corrupt = change.corrupt.unwrap_or(self.corrupt);
        if let Some(jitter) = &change.jitter {
            self.jitter = jitter.clone();
        }
        self.look();
    }
}

impl<P: Wire> Link<P> {
    /// Puts a packet on its way at `leaves`, unless it is lost; draws its impairments.
    pub(super) fn send_off_impaired(&mut self, packet: P, leaves: Time, now: Time, around: &mut Around<P>) {
        let Some(impairments) = &mut self.impairments else { return };
        let bytes = u64::from(packet.wire_length());
        let too_long = impairments.largest.is_some_and(|largest| bytes > largest.get());
        if impairments.losses.next(bytes + self.overhead, leaves) || too_long {
            return self.lose(packet, now, around);
        }
        self.stats.counters.forwarded += 1;
        if impairments.alters {
            self.send_off_altered(packet, leaves, now, around)
        } else {
            self.set_out(packet, leaves)
        }
    }

    /// Puts a packet that is not lost on its way; draws whether it is duplicated, damaged or delayed.
    #[inline(never)]
    fn send_off_altered(&mut self, packet: P, leaves: Time, now: Time, around: &mut Around<P>) {
        let Some(impairments) = &mut self.impairments else { return };
        if impairments.duplicate > 0.0 && impairments.duplicates.chance(impairments.duplicate) {
            let twin = packet.duplicate();
            self.stats.counters.duplicated += 1;
            self.total_duplicated += 1;
            self.show(&twin, PacketEvent::Duplicated, now, around);
            self.travel(twin, leaves, now, around);
        }
        self.travel(packet, leaves, now, around);
    }

    /// Puts a packet that is not lost into the pipe. It may be damaged; its jitter is its own.
    #[inline]
    fn travel(&mut self, mut packet: P, leaves: Time, now: Time, around: &mut Around<P>) {
        let Some(impairments) = &mut self.impairments else { return };
        let corrupt = impairments.corrupt > 0.0 && impairments.corruptions.chance(impairments.corrupt);
        let extra =
            if impairments.delayed { impairments.jitter.draw(&mut impairments.delays) } else { Span::ZERO };
        let reorder = impairments.jitter.reorder;
        if corrupt {
            packet.corrupt();
            self.stats.counters.corrupted += 1;
            self.show(&packet, PacketEvent::Corrupted, now, around);
        }
        let mut at = self.last_arrival.max(leaves + self.delay);
        if reorder {
            // Transmission and propagation preserve the order; each packet's jitter is added to them.
            self.last_arrival = at;
            at += extra;
        } else {
            at = self.last_arrival.max(leaves + self.delay + extra);
            self.last_arrival = at;
        }
        self.head = self.head.min(at);
        // Nearly always this packet is the last to arrive.
        if self.pipe.back().is_none_or(|(other, _)| *other <= at) {
            return self.pipe.push_back((at, packet));
        }
        let place = self.pipe.iter().rposition(|(other, _)| *other <= at).map_or(0, |before| before + 1);
        self.pipe.insert(place, (at, packet));
    }
}
