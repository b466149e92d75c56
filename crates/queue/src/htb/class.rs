//! A class: its two buckets, the mode that they allow, and its place in the tree.

use super::config::{Class as Config, DEPTH, PRIORITIES};
use super::feed::Feed;
use crate::Discipline;
use crate::psched::LinuxRate;
use weir_base::{Bytes, Packet, Time};

/// The longest time over which tokens are counted, and the largest debt of tokens, in nanoseconds (`mbuffer`).
const LONGEST: i64 = 60_000_000_000;
/// A leaf's default quantum is its rate in bytes a second divided by this (`r2q` of `tc`), within the bounds below.
const RATE_TO_QUANTUM: u64 = 10;
const QUANTA: [u64; 2] = [1000, 200_000];

/// What a class may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Not send: the class is above its ceiling.
    CannotSend,
    /// Send with tokens borrowed from its parent: the class is above its rate.
    MayBorrow,
    /// Send with its own tokens.
    CanSend,
}

/// A bucket of tokens, in nanoseconds.
#[derive(Debug)]
struct Bucket {
    rate: LinuxRate,
    size: i64,
    tokens: i64,
}

impl Bucket {
    fn full(rate: weir_base::Rate, burst: Bytes) -> Bucket {
        let rate = LinuxRate::new(rate);
        let size = rate.nanos_in_ticks(burst);
        Bucket { rate, size, tokens: size }
    }

    /// Adds the tokens of `elapsed` nanoseconds and takes a packet's tokens out.
    fn charge(&mut self, bytes: u64, elapsed: i64) {
        let tokens = (self.tokens + elapsed).min(self.size) - self.rate.nanos(bytes);
        self.tokens = if tokens <= -LONGEST { 1 - LONGEST } else { tokens };
    }
}

/// A class with its state.
#[derive(Debug)]
pub(super) struct Class<P> {
    pub(super) name: String,
    pub(super) parent: Option<u32>,
    pub(super) children: u32,
    pub(super) level: usize,
    rate: Bucket,
    ceil: Bucket,
    /// The time of the token counts.
    counted: Time,
    pub(super) mode: Mode,
    /// The priorities at which the class, or a leaf below it that borrows, holds packets: a bit each.
    pub(super) active: u8,
    /// Its place among the classes that wait for a change of mode: the time, and a number for the order; `None` if it does not wait.
    pub(super) waits: Option<(Time, u64)>,
    pub(super) prio: u8,
    pub(super) quantum: i64,
    /// Bytes that a leaf may still send in its turn, for each level that it may borrow from.
    pub(super) deficit: [i64; DEPTH],
    pub(super) queue: Discipline<P>,
    /// Children that borrow, by priority.
    pub(super) feeds: [Feed; PRIORITIES],
}

impl<P: Packet> Class<P> {
    /// A leaf whose buckets are full.
    pub(super) fn new(config: &Config, parent: Option<u32>, queue: Discipline<P>, now: Time) -> Class<P> {
        let mut class = Class {
            name: config.name.clone(),
            parent,
            children: 0,
            level: 0,
            rate: Bucket::full(config.rate, config.burst),
            ceil: Bucket::full(config.ceil.unwrap_or(config.rate), config.cburst),
            counted: now,
            mode: Mode::CanSend,
            active: 0,
            waits: None,
            prio: 0,
            quantum: 0,
            deficit: [0; DEPTH],
            queue,
            feeds: Default::default(),
        };
        class.set_turn(config);
        class
    }

    /// Changes rates, bursts, quantum and priority; the class keeps its tokens, its queue and its place.
    pub(super) fn change(&mut self, config: &Config) {
        for (bucket, new) in [
            (&mut self.rate, Bucket::full(config.rate, config.burst)),
            (&mut self.ceil, Bucket::full(config.ceil.unwrap_or(config.rate), config.cburst)),
        ] {
            *bucket = Bucket { tokens: bucket.tokens, ..new };
        }
        self.set_turn(config);
    }

    fn set_turn(&mut self, config: &Config) {
        let [least, most] = QUANTA;
        let usual = (self.rate.rate.bytes_per_sec() / RATE_TO_QUANTUM).clamp(least, most);
        self.quantum = config.quantum.map_or(usual, Bytes::get) as i64;
        self.prio = config.prio;
    }

    /// Turns an inner class into a leaf with full buckets.
    pub(super) fn become_leaf(&mut self, now: Time) {
        (self.level, self.counted, self.mode) = (0, now, Mode::CanSend);
        (self.rate.tokens, self.ceil.tokens) = (self.rate.size, self.ceil.size);
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Nanoseconds since the tokens were counted, at most `LONGEST`.
    pub(super) fn elapsed(&self, now: Time) -> i64 {
        now.since(self.counted).as_nanos().min(LONGEST as u64) as i64
    }

    /// The mode `elapsed` nanoseconds after the tokens were counted, and how many nanoseconds later it may change.
    pub(super) fn mode_after(&self, elapsed: i64) -> (Mode, i64) {
        let (ctokens, tokens) = (self.ceil.tokens + elapsed, self.rate.tokens + elapsed);
        if ctokens < 0 {
            (Mode::CannotSend, -ctokens)
        } else if tokens < 0 {
            (Mode::MayBorrow, -tokens)
        } else {
            (Mode::CanSend, elapsed)
        }
    }

    /// Charges a packet that the class or a leaf below it sent, with tokens from a class of this level.
    pub(super) fn charge(&mut self, bytes: u64, level: usize, now: Time) {
        let elapsed = self.elapsed(now);
        if self.level >= level {
            self.rate.charge(bytes, elapsed);
        } else {
            self.rate.tokens += elapsed;
        }
        self.ceil.charge(bytes, elapsed);
        self.counted = now;
    }
}
