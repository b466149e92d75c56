//! Tail drop: a first-in, first-out queue that drops arriving packets when it is full. Most queues of the Internet are such.

use crate::limit::Room;
use crate::{Backlog, DropReason, Fate, Limit, Link, Queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_base::{FlowId, Packet, Random, Time};

/// Parameters of tail drop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much the queue holds, beside the packet that is being sent.
    pub limit: Limit,
}

impl crate::Parameters for Config {
    fn limits(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(1000) }
    }
}

/// A first-in, first-out queue with a limit.
#[derive(Debug)]
pub(crate) struct TailDrop<P> {
    packets: VecDeque<P>,
    backlog: Backlog,
    room: Room,
}

impl<P: Packet> TailDrop<P> {
    pub(crate) fn new(config: &Config, link: &Link, _: Random) -> TailDrop<P> {
        TailDrop { packets: VecDeque::new(), backlog: Backlog::default(), room: config.limit.room(link) }
    }
}

impl<P: Packet> Queue<P> for TailDrop<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) {
        if let Some(packet) = self.pass(packet, now, fate) {
            self.backlog.add(&packet);
            self.packets.push_back(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn Fate<P>) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    /// A packet that fits leaves an empty queue unchanged.
    #[inline]
    fn pass(&mut self, packet: P, now: Time, fate: &mut dyn Fate<P>) -> Option<P> {
        if self.room.fits(self.backlog, packet.wire_length()) {
            return Some(packet);
        }
        fate.dropped(packet, DropReason::Full, now);
        None
    }

    fn takes(&self, _: FlowId, length: u32) -> bool {
        self.room.fits(self.backlog, length)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
