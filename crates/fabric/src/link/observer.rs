//! The events of packets at a link, for an observer; the packets that were dropped or lost, and those that have left hosts' cards.

use crate::wire::Wire;
use std::collections::VecDeque;
use weir_base::{FlowId, Time};

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

/// Sees every packet at every instrumented link.
pub trait Observer<P> {
    /// A packet at a link.
    fn packet(&mut self, link: usize, packet: &P, event: PacketEvent, now: Time);
}

/// A packet that has left a host's card: its flow, its IP bytes, and when.
pub(crate) type LeftCard = (FlowId, u32, Time);

/// What all links share: the observer, if there is one, the packets that were dropped or lost, if packets are reused, and those that have
/// left hosts' cards.
pub(crate) struct Around<P> {
    pub(crate) observer: Option<Box<dyn Observer<P> + Send>>,
    pub(crate) discarded: Vec<P>,
    /// Packets that have left the queues of hosts' cards since the hosts were last told.
    pub(crate) left_cards: VecDeque<LeftCard>,
}

impl<P> Default for Around<P> {
    fn default() -> Around<P> {
        Around { observer: None, discarded: Vec::new(), left_cards: VecDeque::new() }
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

    /// A packet leaves a host's card.
    #[inline]
    pub(super) fn leave_card(&mut self, packet: &P, now: Time) {
        self.left_cards.push_back((packet.flow(), packet.wire_length(), now));
    }

    /// Keeps a packet that was dropped or lost, if packets are reused.
    pub(crate) fn discard(&mut self, packet: P) {
        if P::IS_REUSED {
            self.discarded.push(packet);
        }
    }
}
