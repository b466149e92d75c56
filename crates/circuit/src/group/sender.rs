//! The sender to a group: what the members say comes in, and what is to be sent next comes out. Blocks go in the order of the files, each
//! fragment once; what members ask for goes before that (RFC 5740, section 5.4: repairs before new data).

use super::fragments::Fragments;
use super::window::Window;
use super::{ANNOUNCED, BlockOf, Place, block_length, fragments_of};
use crate::transfer::{Digest, Message, blocks};
use std::collections::{BTreeMap, BTreeSet};
use weir_base::{Span, Time};

/// A member that has heard nothing for so long, while others have, does not hold the others up.
const ASIDE: Span = Span::from_secs(1);
/// If nobody hears anything for so long, what was sent counts as lost.
const STALLED: Span = Span::from_millis(500);
/// A fragment that was sent after all that its member has heard is on its way, and is not sent again, unless it was sent longer ago than this and the
/// member has heard nothing for so long.
const ON_ITS_WAY: Span = Span::from_secs(1);
/// A member that says something each second, and has not for so long, is not only deaf.
const REPORTS: Span = Span::from_secs(2);
/// Blocks of which is kept what was sent when.
const KEPT: usize = 64;

/// What a sender does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The digest of this block is needed: [`Sender::opened`].
    Open {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u64,
    },
    /// A fragment goes to the group.
    Fragment {
        /// Which one.
        place: Place,
        /// Its sequence.
        sequence: u64,
    },
    /// An announcement goes to the group.
    Announcement,
    /// Nothing, until this time or until a member says something.
    Wait(Time),
}

/// How a member is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// It says nothing.
    Mute,
    /// It hears nothing of what goes to the group.
    Deaf,
}

/// A message that no member of this session sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it sent a message that no receiver sends: {0}")]
pub struct Astray(&'static str);

/// A member.
#[derive(Debug)]
struct Member {
    /// The digests of blocks that it has from an earlier attempt.
    has: BTreeMap<BlockOf, Digest>,
    /// Whether it has told all of them.
    is_ready: bool,
    /// One more than the highest sequence that it has heard, and how many fragments.
    heard: u64,
    count: u64,
    /// Both at the last update of the window.
    before: (u64, u64),
    /// When it said something last, and when it heard something last of what was sent.
    said_at: Time,
    heard_at: Time,
    stored: BTreeSet<u32>,
    /// Payload bytes that it has received.
    bytes: u64,
}

/// The fragments of a block that were sent lately.
#[derive(Debug)]
struct Sent {
    /// One more than the sequence of each fragment's last sending; 0 if it was not sent.
    sequences: Vec<u64>,
    at: Time,
}

/// The state of a transfer to a group.
#[derive(Debug)]
pub struct Sender {
    lengths: Vec<u64>,
    members: BTreeMap<usize, Member>,
    has_begun: bool,
    /// The fragment that is next to be sent for the first time, and whether its block is open: its digest is told, and a member needs it.
    cursor: Place,
    is_open: bool,
    /// The digests of the blocks before, by file.
    digests: Vec<Vec<Digest>>,
    repairs: BTreeMap<BlockOf, Fragments>,
    sent: BTreeMap<BlockOf, Sent>,
    /// The next sequence, and the one before which all have come or are lost.
    sequence: u64,
    settled: u64,
    sent_at: Time,
    window: Window,
    announce_at: Time,
}

impl Sender {
    /// A sender of files of these lengths in bytes.
    pub fn new(lengths: Vec<u64>, now: Time) -> Sender {
        let digests = vec![Vec::new(); lengths.len()];
        Sender {
            lengths,
            members: BTreeMap::new(),
            has_begun: false,
            cursor: Place { file: 0, block: 0, fragment: 0 },
            is_open: false,
            digests,
            repairs: BTreeMap::new(),
            sent: BTreeMap::new(),
            sequence: 0,
            settled: 0,
            sent_at: now,
            window: Window::new(now),
            announce_at: now,
        }
    }

    /// A member has joined.
    pub fn join(&mut self, member: usize, now: Time) {
        let joined = Member {
            has: BTreeMap::new(),
            is_ready: false,
            heard: 0,
            count: 0,
            before: (0, 0),
            said_at: now,
            heard_at: now,
            stored: BTreeSet::new(),
            bytes: 0,
        };
        self.members.insert(member, joined);
    }

    /// The digests of all blocks that were opened so far: a member is told them once it is ready.
    pub fn digests(&self) -> impl Iterator<Item = Message> + '_ {
        self.digests.iter().enumerate().flat_map(|(file, digests)| {
            let message = move |(block, digest): (usize, &Digest)| Message::Digest {
                file: file as u32,
                block: block as u64,
                digest: *digest,
            };
            digests.iter().enumerate().map(message)
        })
    }

    /// A member is gone.
    pub fn leave(&mut self, member: usize) {
        self.members.remove(&member);
    }

    /// Files are sent from now on, to the members that are ready and to all that become so.
    pub fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Whether a member has told what it has.
    pub fn is_ready(&self, member: usize) -> bool {
        self.members.get(&member).is_some_and(|member| member.is_ready)
    }

    /// Whether a member has stored all files.
    pub fn is_done(&self, member: usize) -> bool {
        self.members.get(&member).is_some_and(|member| member.is_done(&self.lengths))
    }

    /// Payload bytes that a member has received.
    pub fn received(&self, member: usize) -> u64 {
        self.members.get(&member).map_or(0, |member| member.bytes)
    }

    /// Takes a message of a member.
    ///
    /// # Errors
    /// No member of this session sends it.
    pub fn hear(&mut self, member: usize, message: Message, now: Time) -> Result<(), Astray> {
        let (sequence, lengths) = (self.sequence, &self.lengths);
        let Some(own) = self.members.get_mut(&member) else { return Ok(()) };
        own.said_at = now;
        match message {
            Message::Has { file, first, digests } if !own.is_ready => {
                own.has.extend((first..).zip(digests).map(|(block, digest)| ((file, block), digest)));
            }
            Message::Ready { .. } if !own.is_ready => {
                (own.is_ready, own.heard, own.before) = (true, sequence, (sequence, 0));
                own.heard_at = now;
            }
            Message::Progress { bytes, .. } => own.bytes = bytes,
            Message::Heard { sequence: heard, count } if own.is_ready => {
                if heard > sequence {
                    return Err(Astray("it has heard what was not sent"));
                }
                if heard > own.heard {
                    (own.heard, own.heard_at) = (heard, now);
                }
                own.count = own.count.max(count);
            }
            Message::Missing { file, block, ranges } if own.is_ready => {
                let heard = (own.heard, own.heard_at);
                self.repair((file, block), &ranges, heard, now)?;
            }
            Message::Stored { file, digest } if own.is_ready => {
                let bytes = lengths.get(file as usize).ok_or(Astray("there is no such file"))?;
                let digests = &self.digests[file as usize];
                if digests.len() as u64 != blocks(*bytes) || Digest::of_file(digests) != digest {
                    return Err(Astray("the digest of a file is another"));
                }
                own.stored.insert(file);
            }
            _ => return Err(Astray("out of turn")),
        }
        Ok(())
    }

    /// Notes fragments that a member asks for, but those that are still to be sent or are on their way.
    fn repair(
        &mut self,
        block: BlockOf,
        ranges: &[(u16, u16)],
        (heard, heard_at): (u64, Time),
        now: Time,
    ) -> Result<(), Astray> {
        let length = block_length(&self.lengths, block).ok_or(Astray("there is no such block"))?;
        let length = fragments_of(length);
        if ranges.iter().any(|(first, count)| first.checked_add(*count).is_none_or(|end| end > length)) {
            return Err(Astray("there are no such fragments"));
        }
        let cursor = (self.cursor.file, self.cursor.block);
        let is_sent =
            |fragment| block < cursor || block == cursor && self.is_open && fragment < self.cursor.fragment;
        let sent = self.sent.get(&block);
        let is_on_its_way = |fragment| {
            sent.is_some_and(|sent| {
                let is_late = now.since(sent.at.max(heard_at)) >= ON_ITS_WAY;
                !is_late && sent.sequences[usize::from(fragment)] > heard
            })
        };
        let mut repairs = self.repairs.remove(&block).unwrap_or_else(|| Fragments::none(length));
        let asked = ranges.iter().flat_map(|(first, count)| *first..first + count);
        for fragment in asked.filter(|fragment| is_sent(*fragment) && !is_on_its_way(*fragment)) {
            repairs.add(fragment);
        }
        if !repairs.is_empty() {
            self.repairs.insert(block, repairs);
        }
        Ok(())
    }

    /// The digest of the block that [`Next::Open`] has named, which all members that are ready are told. Returns whether one needs it.
    pub fn opened(&mut self, digest: Digest) -> bool {
        let block = (self.cursor.file, self.cursor.block);
        if self.is_open || block_length(&self.lengths, block).is_none() {
            return self.is_open;
        }
        self.digests[block.0 as usize].push(digest);
        // All members are asked, so that none keeps what it has told.
        let needs = self.members.values_mut().filter(|member| member.is_ready);
        self.is_open = needs.fold(false, |needs, member| needs | (member.has.remove(&block) != Some(digest)));
        if !self.is_open {
            self.cursor.block += 1;
        }
        self.is_open
    }

    /// What is to be done now.
    pub fn next(&mut self, now: Time) -> Next {
        if now >= self.announce_at {
            self.announce_at = now + ANNOUNCED;
            return Next::Announcement;
        }
        let lengths = &self.lengths;
        let waits = |member: &Member| member.is_ready && !member.is_done(lengths);
        if !self.has_begun || !self.members.values().any(waits) {
            return Next::Wait(self.announce_at);
        }
        self.update_window(now);
        if !self.window.has_room(self.on_their_way()) {
            if now.since(self.last_moved()) >= STALLED {
                self.settled = self.sequence;
                self.window.restart();
            } else {
                let until = (self.last_moved() + STALLED).min(self.window.update_at());
                return Next::Wait(until.min(self.announce_at));
            }
        }
        let Some(place) = self.next_repair().or_else(|| self.next_new()) else {
            return if self.is_at_end() {
                Next::Wait(self.announce_at)
            } else {
                Next::Open { file: self.cursor.file, block: self.cursor.block }
            };
        };
        Next::Fragment { place, sequence: self.send(place, now) }
    }

    fn next_repair(&mut self) -> Option<Place> {
        let mut first = self.repairs.first_entry()?;
        let (file, block) = *first.key();
        let fragment = first.get_mut().take_first()?;
        if first.get().is_empty() {
            first.remove();
        }
        Some(Place { file, block, fragment })
    }

    /// The fragment that is to be sent for the first time; `None` if its block is not open, or there are no more.
    fn next_new(&mut self) -> Option<Place> {
        if !self.is_open {
            return None;
        }
        let place = self.cursor;
        self.cursor.fragment += 1;
        let length = block_length(&self.lengths, (place.file, place.block))?;
        if self.cursor.fragment >= fragments_of(length) {
            (self.cursor.block, self.cursor.fragment, self.is_open) = (place.block + 1, 0, false);
        }
        Some(place)
    }

    /// Whether all blocks were opened; the cursor passes the ends of files.
    fn is_at_end(&mut self) -> bool {
        while let Some(bytes) = self.lengths.get(self.cursor.file as usize) {
            if self.cursor.block < blocks(*bytes) {
                return false;
            }
            self.cursor = Place { file: self.cursor.file + 1, block: 0, fragment: 0 };
        }
        true
    }

    /// Notes that a fragment is sent. Returns its sequence.
    fn send(&mut self, place: Place, now: Time) -> u64 {
        let sequence = self.sequence;
        // Who has heard all of it until now has nothing to hear before this one.
        let heard_all = self.members.values_mut().filter(|member| member.heard == sequence);
        heard_all.for_each(|member| member.heard_at = now);
        self.sequence += 1;
        self.sent_at = now;
        let block = (place.file, place.block);
        if !self.sent.contains_key(&block) && self.sent.len() >= KEPT {
            let oldest = self.sent.iter().min_by_key(|(_, sent)| sent.at).map(|(block, _)| *block);
            oldest.and_then(|oldest| self.sent.remove(&oldest));
        }
        let length = block_length(&self.lengths, block).map_or(0, fragments_of);
        let sent =
            self.sent.entry(block).or_insert_with(|| Sent { sequences: vec![0; length.into()], at: now });
        sent.at = now;
        sent.sequences[usize::from(place.fragment)] = sequence + 1;
        sequence
    }

    /// The members that wait for something and hear what is sent: those that the window heeds.
    fn heeded(&self) -> impl Iterator<Item = &Member> {
        let waits = |member: &&Member| member.is_ready && !member.is_done(&self.lengths);
        let latest = self.members.values().filter(waits).map(|member| member.heard_at).max();
        let latest = latest.unwrap_or(Time::ZERO);
        self.members.values().filter(waits).filter(move |member| latest.since(member.heard_at) < ASIDE)
    }

    /// Datagrams of which the slowest member has not been heard.
    fn on_their_way(&self) -> u64 {
        let slowest = self.heeded().map(|member| member.heard).min().unwrap_or(self.sequence);
        self.sequence - slowest.max(self.settled)
    }

    /// When something was sent or heard last.
    fn last_moved(&self) -> Time {
        self.heeded().map(|member| member.heard_at).max().unwrap_or(Time::ZERO).max(self.sent_at)
    }

    fn update_window(&mut self, now: Time) {
        if now < self.window.update_at() {
            return;
        }
        let lost = |member: &Member| {
            let (heard, count) = (member.heard - member.before.0, member.count - member.before.1);
            (heard > 0).then(|| 1.0 - count.min(heard) as f64 / heard as f64)
        };
        let lost = self.heeded().filter_map(lost).reduce(f64::max);
        self.window.update(lost, now);
        self.members.values_mut().for_each(|member| member.before = (member.heard, member.count));
    }

    /// The members that are silent and have not stored all files, and for how long.
    pub fn silent(&self, now: Time) -> impl Iterator<Item = (usize, Quiet, Span)> + '_ {
        let waiting = self.members.iter().filter(|(_, member)| !member.is_done(&self.lengths));
        waiting.map(move |(number, member)| {
            let mute = now.since(member.said_at);
            let has_all = !member.is_ready || member.heard >= self.sequence;
            let deaf = if has_all { Span::ZERO } else { now.since(member.heard_at) };
            let how = if mute >= deaf.min(REPORTS) { Quiet::Mute } else { Quiet::Deaf };
            (*number, how, mute.max(deaf))
        })
    }

    /// The digest of a file; `None` before all of it was opened.
    pub fn digest(&self, file: u32) -> Option<Digest> {
        let digests = self.digests.get(file as usize)?;
        let is_whole = digests.len() as u64 == blocks(*self.lengths.get(file as usize)?);
        is_whole.then(|| Digest::of_file(digests))
    }

    /// Datagrams that were sent.
    pub fn datagrams(&self) -> u64 {
        self.sequence
    }
}

impl Member {
    fn is_done(&self, lengths: &[u64]) -> bool {
        self.stored.len() == lengths.len()
    }
}
