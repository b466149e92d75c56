//! The node at the other end of a link: found by hello, up while both hear each other, down after a silence.
//!
//! The digest has no such protocol for a carrier without a transport (A 3.7 is SLIQ's). A hello is sent each 100 ms, with other messages
//! if there are some. Anything that comes is a sign of life, and half a second of silence is an outage. So a kill is seen well within a
//! second.

use crate::message::Hello;
use crate::nodes::NodeId;
use weir_base::{Span, Time};

/// A hello is sent this often.
pub const HELLO: Span = Span::from_millis(100);
/// A hello goes so much earlier with a message that is sent anyway.
const EARLY: Span = Span::from_millis(20);
/// A neighbour that is silent for so long is down.
pub const SILENCE: Span = Span::from_millis(500);

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The neighbour is up; it may be another one or have restarted, so nothing that was known of it holds.
    Up,
    /// It is down.
    Down,
}

/// One link's other end.
#[derive(Debug, Clone)]
pub struct Adjacency {
    peer: Option<NodeId>,
    epoch: u32,
    heard_at: Time,
    is_up: bool,
    sent_at: Option<Time>,
}

impl Default for Adjacency {
    fn default() -> Self {
        Adjacency { peer: None, epoch: 0, heard_at: Time::ZERO, is_up: false, sent_at: None }
    }
}

impl Adjacency {
    /// The neighbour, if it is up.
    #[inline]
    pub fn up(&self) -> Option<NodeId> {
        self.peer.filter(|_| self.is_up)
    }

    /// The hello to send.
    pub fn hello(&self, node: NodeId, epoch: u32) -> Hello {
        Hello { node, epoch, heard: self.peer.map(|_| self.epoch) }
    }

    /// When a hello is due.
    #[inline]
    pub fn hello_due(&self) -> Time {
        self.sent_at.map_or(Time::ZERO, |sent| sent + HELLO)
    }

    /// Whether a message that is sent now should take the hello along.
    pub fn wants_hello(&self, now: Time) -> bool {
        self.hello_due() - EARLY <= now
    }

    /// When the neighbour is down if nothing comes; [`Time::NEVER`] if there is none.
    pub fn silent_at(&self) -> Time {
        self.peer.map_or(Time::NEVER, |_| self.heard_at + SILENCE)
    }

    /// A hello has been sent.
    pub fn said_hello(&mut self, now: Time) {
        self.sent_at = Some(now);
    }

    /// Something of the neighbour has come.
    pub fn heard(&mut self, now: Time) {
        if self.is_up {
            self.heard_at = now;
        }
    }

    /// A hello has come; `own` is this node's epoch.
    pub fn on_hello(&mut self, hello: Hello, own: u32, now: Time) -> Change {
        let was_up = self.is_up;
        let is_same = self.peer == Some(hello.node) && self.epoch == hello.epoch;
        self.peer = Some(hello.node);
        self.epoch = hello.epoch;
        self.heard_at = now;
        self.is_up = hello.heard == Some(own);
        if !was_up && !self.is_up {
            return Change::None;
        }
        match (was_up && is_same, self.is_up) {
            (true, true) => Change::None,
            (_, true) => Change::Up,
            (_, false) => Change::Down,
        }
    }

    /// Looks whether the neighbour has fallen silent.
    pub fn on_timer(&mut self, now: Time) -> Change {
        if now < self.silent_at() {
            return Change::None;
        }
        let was_up = self.is_up;
        (self.peer, self.is_up) = (None, false);
        if was_up { Change::Down } else { Change::None }
    }
}
