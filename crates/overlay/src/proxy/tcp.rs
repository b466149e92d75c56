//! The TCP proxy: what carries a host's connection between two sites. Each site's proxy ends the host's connection; between them a
//! [`Relay`] carries both streams as datagrams of the overlay, which arrive in any order, twice, or not at all.
//!
//! Source: digest A 8, G 2.8. The host's data is acknowledged at once, up to a buffer that follows the rate of admission. There is no
//! congestion control between proxies: a segment goes when admission lets it. The proxies' own retransmission is end to end, so the
//! death of a node between them loses nothing. The end of a stream goes on only after all of its data; a connection whose other proxy
//! is silent for [`SILENCE`] is reset. Not built: lists of servers to hand over to.
//!
//! A relay is pure: it counts positions, and its driver keeps the bytes. The connections to the hosts belong to the driver too.

mod incoming;
mod outgoing;
mod segment;

pub use segment::{LONGEST as LONGEST_HEADER, MOST_RANGES, Part, Ranges, Segment};

pub use incoming::EVERY;
use incoming::Incoming;
use outgoing::{Outgoing, stamp};
use weir_base::{Bytes, Rate, Span, Time};

/// A connection is given up after so long without a word of the other proxy: its host learns it within 5 s.
pub const SILENCE: Span = Span::from_secs(4);
/// A proxy that has nothing to say says so this often: eight times within [`SILENCE`], so that 30 % loss ends no connection.
pub const IDLE: Span = Span::from_millis(500);
/// Bytes that a proxy holds for its host at most: the study's largest buffer (digest A 8).
pub const WINDOW: Bytes = Bytes::new(3_000_000);

/// Why a connection was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The other proxy was not heard for [`SILENCE`].
    Silent,
    /// The other side has reset it.
    Reset,
    /// The host here has reset it.
    Host,
    /// The other side contradicts itself.
    Nonsense,
}

/// What admission says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Admission {
    /// Whether a segment with data may go now.
    pub is_open: bool,
    /// The rate of admission.
    pub rate: Rate,
    /// Whether packets of the destination wait here.
    pub waits: bool,
}

/// A connection between two proxies, at one of them.
#[derive(Debug, Clone)]
pub struct Relay {
    most: Bytes,
    outgoing: Outgoing,
    incoming: Incoming,
    /// When the other proxy was heard last, and whether it ever was.
    heard: Time,
    has_heard: bool,
    /// When it was told something last; `None` before the first time.
    told: Option<Time>,
    /// Since when both hosts have all, as far as is known here.
    done: Option<Time>,
    gone: Option<Gone>,
    owes_reset: bool,
}

impl Relay {
    /// A connection that begins here, or of which a first segment has come. `most` is the most data of a segment.
    pub fn new(most: Bytes, now: Time) -> Relay {
        Relay {
            most,
            outgoing: Outgoing::new(most, WINDOW, now),
            incoming: Incoming::new(WINDOW),
            heard: now,
            has_heard: false,
            told: None,
            done: None,
            gone: None,
            owes_reset: false,
        }
    }

    /// How many bytes of its host it takes now: the host's window.
    pub fn room(&self) -> Bytes {
        self.outgoing.room()
    }

    /// Its host has given bytes, which are acknowledged to the host.
    pub fn take(&mut self, bytes: Bytes) {
        self.outgoing.take(bytes);
    }

    /// Its host gives no more.
    pub fn end(&mut self) {
        self.outgoing.end();
    }

    /// Its host has reset the connection.
    pub fn reset(&mut self) {
        if self.gone.is_none() {
            (self.gone, self.owes_reset) = (Some(Gone::Host), true);
        }
    }

    /// Bytes that can be given to its host, in order.
    pub fn ready(&self) -> Bytes {
        self.incoming.ready()
    }

    /// Its host was given bytes.
    pub fn give(&mut self, bytes: Bytes, now: Time) {
        self.incoming.give(bytes, self.most, now);
    }

    /// Bytes that its host was given so far.
    pub fn given(&self) -> u64 {
        self.incoming.given
    }

    /// Whether its host was given bytes that it has not acknowledged.
    pub fn waits_for_host(&self) -> bool {
        self.incoming.acknowledged < self.incoming.given
    }

    /// Whether it takes this part, which lies within its window. What it does not take comes again.
    pub fn takes(&self, part: &Part) -> bool {
        self.incoming.takes(part)
    }

    /// Its host has acknowledged so many bytes in all.
    pub fn acknowledged(&mut self, bytes: u64, now: Time) {
        let before = self.incoming.acknowledged;
        self.incoming.acknowledged = bytes.clamp(before, self.incoming.given.max(before));
        if self.incoming.is_done() && self.incoming.acknowledged > before {
            self.incoming.due = now;
        }
    }

    /// Whether the stream to its host ends here: all of it was given to the host.
    pub fn ends(&self) -> bool {
        self.incoming.is_whole()
    }

    /// Whether all that its host has given, with the end, has reached the other host.
    pub fn has_sent_all(&self) -> bool {
        self.outgoing.is_done()
    }

    /// Bytes of its host that wait for their first transmission.
    pub fn unsent(&self) -> Bytes {
        self.outgoing.unsent()
    }

    /// Timeouts so far.
    pub fn timeouts(&self) -> u64 {
        self.outgoing.timeouts
    }

    /// Whether both streams have ended, and both hosts have acknowledged all.
    pub fn is_done(&self) -> bool {
        self.outgoing.is_done() && self.incoming.is_done()
    }

    /// Whether it may be forgotten. It stays for [`SILENCE`] after it is done, to answer what the other proxy says meanwhile.
    pub fn is_over(&self, now: Time) -> bool {
        self.done.is_some_and(|done| now.since(done) >= SILENCE) || self.gone.is_some() && !self.owes_reset
    }

    /// Why it was given up.
    pub fn gone(&self) -> Option<Gone> {
        self.gone
    }

    /// Bytes of its host's stream that the other host has acknowledged.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.outgoing.delivered)
    }

    /// The position in its host's stream before which it needs no bytes any more.
    pub fn needs_from(&self) -> u64 {
        self.outgoing.needs_from()
    }

    /// The smoothed round-trip time to the other proxy.
    pub fn rtt(&self) -> Option<Span> {
        self.outgoing.rtt()
    }

    /// The size of the buffer for its host's data.
    pub fn buffer(&self) -> Bytes {
        self.outgoing.size()
    }

    /// Bytes that are held for its host.
    pub fn held(&self) -> Bytes {
        self.incoming.held()
    }

    /// Segments with data that were retransmitted, and those of them that had not been lost.
    pub fn repeated(&self) -> [u64; 2] {
        [self.outgoing.repeated, self.outgoing.needless]
    }

    /// A segment has come; its data belongs to its part.
    pub fn receive(&mut self, segment: &Segment, admission: &Admission, now: Time) {
        if self.gone.is_some() {
            // Whoever speaks still is told that nobody is here.
            self.owes_reset |= !segment.resets;
            return;
        }
        (self.heard, self.has_heard) = (now, true);
        if segment.resets {
            self.gone = Some(Gone::Reset);
            return;
        }
        self.outgoing.acknowledge(segment, admission.waits, admission.rate, now);
        if let Some(part) = segment.part
            && !self.incoming.receive(part, segment.stamp, now)
        {
            (self.gone, self.owes_reset) = (Some(Gone::Nonsense), true);
        }
    }

    /// A time that [`Relay::next_time`] named has come. [`Relay::next`] does the same, but a driver that waits for admission does not call it.
    pub fn on_timer(&mut self, now: Time) {
        if self.gone.is_some() {
            return;
        }
        if now.since(self.heard) >= SILENCE && !self.is_done() {
            self.gone = Some(Gone::Silent);
            return;
        }
        if self.done.is_none() && self.is_done() {
            self.done = Some(now);
        }
        self.outgoing.on_time(now);
    }

    /// The next segment; `None` if there is none, or if it must wait for its time or for admission. Only data needs admission.
    pub fn next(&mut self, admission: &Admission, now: Time) -> Option<Segment> {
        if std::mem::take(&mut self.owes_reset) {
            return Some(Segment { resets: true, stamp: stamp(now), ..Segment::default() });
        }
        self.on_timer(now);
        if self.gone.is_some() {
            return None;
        }
        let part = if admission.is_open { self.outgoing.next(now) } else { None };
        if part.is_none() && now < self.speaks_at() {
            return None;
        }
        self.told = Some(now);
        let (next, window, ranges, echo) = self.incoming.tell();
        let delivered = self.incoming.acknowledged;
        let opens = !self.has_heard;
        Some(Segment { opens, resets: false, stamp: stamp(now), echo, next, delivered, window, ranges, part })
    }

    /// When it speaks without data.
    fn speaks_at(&self) -> Time {
        let idle = self.told.map_or(Time::ZERO, |told| told + IDLE);
        let is_over = self.done.is_some_and(|done| idle >= done + SILENCE);
        if is_over { self.incoming.due } else { idle.min(self.incoming.due) }
    }

    /// Whether data waits for admission.
    pub fn waits(&self) -> bool {
        self.gone.is_none() && self.outgoing.has_work()
    }

    /// When [`Relay::next`] is to be called again, apart from admission.
    pub fn next_time(&self) -> Time {
        if self.owes_reset {
            return Time::ZERO;
        }
        if self.gone.is_some() {
            return Time::NEVER;
        }
        let silent = if self.is_done() { Time::NEVER } else { self.heard + SILENCE };
        self.speaks_at().min(self.outgoing.next_time()).min(silent)
    }
}

#[cfg(test)]
pub(crate) mod tests;
