//! A member of the group: datagrams come in, blocks and messages for the sender come out.

use super::datagram::{Datagram, LONGEST};
use super::fragments::Fragments;
use super::{BlockOf, FRAGMENT, Place, block_length, fragment_length, fragments_of};
use crate::transfer::{Message, blocks};
use std::collections::BTreeMap;
use weir_base::{Span, Time};

/// Blocks that are put together at a time: 64 MiB.
const TOGETHER: usize = 16;
/// Blocks that are asked for at a time.
const ASKED: usize = 8;
/// A block is asked for when nothing of it has come for so long.
const QUIET: Span = Span::from_millis(200);
/// The same of a block of which nothing has come since its digest was told.
const UNHEARD: Span = Span::from_millis(500);
/// Longest time between two requests for a block.
const LONGEST_WAIT: Span = Span::from_secs(2);
/// The sender is told how much has come after so many datagrams, or so long after the first one that it was not told of.
const EACH: u64 = 32;
const LATEST: Span = Span::from_millis(50);
/// A block whose digest is another one so often is given up.
const ATTEMPTS: u32 = 5;

/// A block that has come whole; its digest is still to be compared.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// Number of the file.
    pub file: u32,
    /// Number of the block.
    pub block: u64,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A block came damaged too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block was damaged {ATTEMPTS} times in transit")]
pub struct Damaged;

/// A block that is being put together.
#[derive(Debug)]
struct Partial {
    payload: Vec<u8>,
    there: Fragments,
}

/// A block that is needed.
#[derive(Debug)]
struct Wanted {
    ask_at: Time,
    wait: Span,
    damaged: u32,
}

/// A member's state.
#[derive(Debug)]
pub struct Receiver {
    session: u64,
    lengths: Vec<u64>,
    /// Whether each block is here, by file.
    here: Vec<Vec<bool>>,
    partial: BTreeMap<BlockOf, Partial>,
    wanted: BTreeMap<BlockOf, Wanted>,
    /// One more than the highest sequence that has come, and the number of fragments that have.
    heard: u64,
    count: u64,
    /// What the sender was told of them, and when it is told next at the latest.
    told: u64,
    tell_at: Time,
}

impl Receiver {
    /// A member that is offered files of these lengths in bytes.
    pub fn new(session: u64, lengths: Vec<u64>) -> Receiver {
        let here = lengths.iter().map(|bytes| vec![false; blocks(*bytes) as usize]).collect();
        let (partial, wanted) = (BTreeMap::new(), BTreeMap::new());
        Receiver {
            session,
            lengths,
            here,
            partial,
            wanted,
            heard: 0,
            count: 0,
            told: 0,
            tell_at: Time::NEVER,
        }
    }

    /// A datagram has come. Others than fragments of this session change nothing.
    pub fn datagram(&mut self, bytes: &[u8], now: Time) {
        if bytes.len() > LONGEST {
            return;
        }
        let Some(Datagram::Fragment { session, sequence, place, payload }) = Datagram::decode(bytes) else {
            return;
        };
        let Place { file, block, fragment } = place;
        let Some(length) = block_length(&self.lengths, (file, block)) else { return };
        if session != self.session || fragment_length(length, fragment) != Some(payload.len()) {
            return;
        }
        self.heard = self.heard.max(sequence.saturating_add(1));
        self.count += 1;
        self.tell_at = self.tell_at.min(now + LATEST);
        if self.is_here((file, block)) || !self.makes_room((file, block)) {
            return;
        }
        let partial = self.partial.entry((file, block)).or_insert_with(|| Partial {
            payload: vec![0; length as usize],
            there: Fragments::none(fragments_of(length)),
        });
        if partial.there.add(fragment) {
            let from = usize::from(fragment) * FRAGMENT;
            partial.payload[from..from + payload.len()].copy_from_slice(payload);
            if let Some(wanted) = self.wanted.get_mut(&(file, block)) {
                (wanted.ask_at, wanted.wait) = (now + QUIET, QUIET);
            }
        }
    }

    fn is_here(&self, (file, block): BlockOf) -> bool {
        self.here[file as usize][block as usize]
    }

    /// Whether a block may be put together. What comes last in the files gives way to what comes before.
    fn makes_room(&mut self, block: BlockOf) -> bool {
        if self.partial.len() < TOGETHER || self.partial.contains_key(&block) {
            return true;
        }
        let gives_way = self.partial.last_key_value().is_some_and(|(last, _)| *last > block);
        if gives_way {
            self.partial.pop_last();
        }
        gives_way
    }

    /// The digest of a block was told, and the block is not here.
    pub fn wants(&mut self, file: u32, block: u64, now: Time) {
        if block_length(&self.lengths, (file, block)).is_none() || self.is_here((file, block)) {
            return;
        }
        let wait = if self.partial.contains_key(&(file, block)) { QUIET } else { UNHEARD };
        self.wanted.entry((file, block)).or_insert(Wanted { ask_at: now + wait, wait, damaged: 0 });
    }

    /// A block is here, and need not come.
    pub fn has(&mut self, file: u32, block: u64) {
        if block_length(&self.lengths, (file, block)).is_some() {
            self.here[file as usize][block as usize] = true;
            self.partial.remove(&(file, block));
            self.wanted.remove(&(file, block));
        }
    }

    /// A block that has come whole has another digest: it is asked for anew.
    ///
    /// # Errors
    /// That has happened too often.
    pub fn again(&mut self, file: u32, block: u64, now: Time) -> Result<(), Damaged> {
        let Some(wanted) = self.wanted.get_mut(&(file, block)) else { return Ok(()) };
        wanted.damaged += 1;
        (wanted.ask_at, wanted.wait) = (now, QUIET);
        if wanted.damaged > ATTEMPTS { Err(Damaged) } else { Ok(()) }
    }

    /// Takes a block that has come whole and whose digest was told. [`Receiver::has`] or [`Receiver::again`] says what it was.
    pub fn take(&mut self) -> Option<Whole> {
        let is_ready = |(block, partial): &(&BlockOf, &Partial)| {
            partial.there.is_whole() && self.wanted.contains_key(block)
        };
        let (file, block) = self.partial.iter().find(is_ready).map(|(block, _)| *block)?;
        let payload = self.partial.remove(&(file, block))?.payload;
        Some(Whole { file, block, payload })
    }

    /// The next message for the sender that is due.
    pub fn message(&mut self, now: Time) -> Option<Message> {
        if self.tell_at <= now || self.heard >= self.told + EACH {
            (self.told, self.tell_at) = (self.heard, Time::NEVER);
            return Some(Message::Heard { sequence: self.heard, count: self.count });
        }
        let due = |(_, wanted): &(&BlockOf, &mut Wanted)| wanted.ask_at <= now;
        let (&(file, block), wanted) = self.wanted.iter_mut().take(ASKED).find(due)?;
        wanted.ask_at = now + wanted.wait;
        wanted.wait = (wanted.wait * 2).min(LONGEST_WAIT);
        let ranges = match self.partial.get(&(file, block)) {
            Some(partial) => partial.there.missing(),
            None => vec![(0, fragments_of(block_length(&self.lengths, (file, block))?))],
        };
        Some(Message::Missing { file, block, ranges })
    }

    /// When [`Receiver::message`] has one at the latest; [`Time::NEVER`] if nothing is awaited.
    pub fn next_time(&self) -> Time {
        let asks = self.wanted.values().take(ASKED).map(|wanted| wanted.ask_at);
        asks.min().unwrap_or(Time::NEVER).min(self.tell_at)
    }
}
