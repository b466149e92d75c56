//! The events of packets at a link, for an observer, and the packets that were dropped or lost.

use crate::wire::Wire;
use weir_base::Time;

/// What happened to a packet at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketEvent {
    /// It reached the queue.
    Arrived,
    /// The queue dropped it.
    Dropped,
    /// The queue marked it.
    Marked,
    /// Its transmission began.
    Sent,
    /// The link lost it.
    Lost,
    /// The link made it, as a duplicate.
    Duplicated,
    /// The link damaged it.
    Corrupted,
}

impl PacketEvent {
    /// All events.
    pub const ALL: [PacketEvent; 7] = [
        PacketEvent::Arrived,
        PacketEvent::Dropped,
        PacketEvent::Marked,
        PacketEvent::Sent,
        PacketEvent::Lost,
        PacketEvent::Duplicated,
        PacketEvent::Corrupted,
    ];

    /// Its name in tables and reports.
    pub fn name(self) -> &'static str {
        ["arrived", "dropped", "marked", "sent", "lost", "duplicated", "corrupted"][self as usize]
    }
}

/// Sees every packet at every measured link.
pub trait Observer<P> {
    /// A packet at a link.
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time);
}

/// What all links share: the observer, if there is one, and the packets that were dropped or lost, if packets are reused.
pub(crate) struct Around<P> {
    pub(crate) observer: Option<Box<dyn Observer<P> + Send>>,
    pub(crate) discarded: Vec<P>,
}

impl<P> Default for Around<P> {
    fn default() -> Around<P> {
        Around { observer: None, discarded: Vec::new() }
    }
}

impl<P: Wire> Around<P> {
    /// Shows a packet at a link to the observer.
    #[inline]
    pub(super) fn show(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time) {
        if let Some(observer) = &mut self.observer {
            observer.packet(link, packet, event, now);
        }
    }

    /// Keeps a packet that was dropped or lost, if packets are reused.
    pub(super) fn discard(&mut self, packet: P) {
        if P::IS_REUSED {
            self.discarded.push(packet);
        }
    }
}
