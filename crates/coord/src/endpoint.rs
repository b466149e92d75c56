//! The CP layer of an endpoint (section 3.3.1): what it writes into the headers of the packets that it sends, and what it
//! learns from those that it receives.
//!
//! Headers are lost as their packets are, and what an AP keeps is soft. So an endpoint says again and again what it has to say:
//! first what has changed and pointers that have not reported yet, then all its cells and pointers in turn, four in a packet. It may watch more cells than the four
//! that a packet reports: it moves its pointers to the next four once the present ones were reported. The token of a pointer
//! names the cell for as long as the cell is watched, so no value is ever taken for another cell's.

use crate::cell::{Cell, R1};
use crate::header::{self, Flags, HeaderError, Operation, Pointer, Prefix, Report, Version, WORDS};
use crate::seal::{self, Key, Leg, ReplayWindow};

/// A cell that the endpoint watches.
#[derive(Debug, Clone, Copy)]
struct Watched {
    cell: Cell,
    /// The last value that was reported.
    value: Option<u32>,
    /// Whether it was reported since its pointer was set.
    fresh: bool,
}

/// A cell that the endpoint has written.
#[derive(Debug, Clone, Copy)]
struct Written {
    operation: Operation,
    /// Whether a packet has carried this value.
    said: bool,
}

/// Who an endpoint is.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// The application's id, 0 to 31.
    pub application: u8,
    /// The flow's id, 0 to 127.
    pub flow: u8,
    /// The CP transport's number; APs do not look at it.
    pub protocol: u8,
    /// The key that is shared with the AP.
    pub key: Option<Key>,
    /// A number that grows with each restart of the endpoint.
    pub epoch: u32,
}

/// Why a header that arrived was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// No whole CP header.
    Header(HeaderError),
    /// Of another application or flow.
    Foreign,
    /// Not sealed, or with a wrong tag.
    Tag,
    /// Seen before, or too old.
    Replay,
}

/// The CP layer of one flow's endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    identity: Identity,
    version: Version,
    next: u64,
    window: ReplayWindow<4>,
    reflected: ReplayWindow<4>,
    watched: Vec<Watched>,
    /// The first watched cell that the pointers select now.
    selected: usize,
    written: Vec<Written>,
    /// Where the round through pointers and written cells continues.
    turn: usize,
}

impl Endpoint {
    /// An endpoint that has written nothing and watches these cells, at most 255. Without a key it begins with `version` and
    /// goes on with what its peer speaks; with one it speaks version 2.
    pub fn new(identity: Identity, version: Version, watched: &[Cell]) -> Endpoint {
        let version = if identity.key.is_some() { Version::Two } else { version };
        let watch = |cell: &Cell| Watched { cell: *cell, value: None, fresh: false };
        Endpoint {
            identity,
            version,
            next: u64::from(identity.epoch) << 32,
            window: ReplayWindow::default(),
            reflected: ReplayWindow::default(),
            watched: watched.iter().take(usize::from(u8::MAX)).map(watch).collect(),
            selected: 0,
            written: Vec::new(),
            turn: 0,
        }
    }

    /// Bytes of the header that the next packet carries.
    pub fn header_length(&self) -> usize {
        self.version.length()
    }

    /// Sets the endpoint's own cell at a general-purpose address to a value of 24 bits. The next packet carries it.
    pub fn write(&mut self, address: u8, value: u32) {
        let operation = Operation { address, value: value & header::VALUE_MAX };
        match self.written.iter_mut().find(|written| written.operation.address == address) {
            Some(written) if written.operation == operation => {}
            Some(written) => *written = Written { operation, said: false },
            None => self.written.push(Written { operation, said: false }),
        }
    }

    /// The last reported value of a watched cell; none before the first report.
    pub fn value(&self, cell: Cell) -> Option<u32> {
        self.watched.iter().find(|watched| watched.cell == cell)?.value
    }

    /// Whether a packet with nothing but its header would say something new (a change that no packet has carried).
    pub fn has_news(&self) -> bool {
        self.written.iter().any(|written| !written.said)
    }

    /// Writes the header of a packet that leaves, over the first [`Endpoint::header_length`] bytes. The flags may be
    /// [`Flags::LSCOPE`] or [`Flags::REFLECT`].
    pub fn seal(&mut self, flags: Flags, packet: &mut [u8]) {
        let Identity { application, flow, protocol, key, .. } = self.identity;
        let version = self.version;
        Prefix { version, application, flow, protocol, flags }.write(packet);
        header::set_words(version, packet, self.operations().map(Operation::word));
        if version == Version::Two {
            header::set_sequence(packet, self.next);
            self.next = self.next.wrapping_add(1);
        }
        seal::seal(key.as_ref(), Leg::Out, version, packet);
    }

    /// Takes the header of a packet that arrived, calls `changed` for each watched cell that has a new value, and returns the
    /// header's length.
    ///
    /// # Errors
    /// Why the packet is not for this endpoint or not to be believed.
    pub fn open(&mut self, packet: &[u8], mut changed: impl FnMut(Cell, u32)) -> Result<usize, Refused> {
        let prefix = Prefix::read(packet).map_err(Refused::Header)?;
        if (prefix.application, prefix.flow) != (self.identity.application, self.identity.flow) {
            return Err(Refused::Foreign);
        }
        if let Some(key) = &self.identity.key {
            if prefix.version == Version::One || !key.verify(Leg::In, packet) {
                return Err(Refused::Tag);
            }
            // A reflected packet has our own number, another one that of the other AP.
            let reflected = prefix.flags.has(Flags::REFLECT);
            let window = if reflected { &mut self.reflected } else { &mut self.window };
            if !seal::is_new(window, packet) {
                return Err(Refused::Replay);
            }
        }
        self.version = prefix.version;
        for word in header::words(prefix.version, packet) {
            let Report { id, value } = Report::from_word(word);
            // Token `n` is the n-th watched cell; zero is what a pointer that was never set reports.
            let Some(watched) = usize::from(id).checked_sub(1).and_then(|n| self.watched.get_mut(n)) else {
                continue;
            };
            watched.fresh = true;
            if watched.value.replace(value) != Some(value) {
                changed(watched.cell, value);
            }
        }
        self.select_next();
        Ok(prefix.version.length())
    }

    /// Moves the pointers on once all that they select were reported.
    fn select_next(&mut self) {
        let end = (self.selected + WORDS).min(self.watched.len());
        if self.watched.len() > WORDS && self.watched[self.selected..end].iter().all(|watched| watched.fresh)
        {
            self.selected = if end == self.watched.len() { 0 } else { end };
            self.watched.iter_mut().for_each(|watched| watched.fresh = false);
        }
    }

    /// The four operations of the next packet.
    fn operations(&mut self) -> [Operation; WORDS] {
        let mut operations = [Operation::NOOP; WORDS];
        let mut filled = 0;
        for written in self.written.iter_mut().filter(|written| !written.said).take(WORDS) {
            written.said = true;
            operations[filled] = written.operation;
            filled += 1;
        }
        let pointers = (self.watched.len() - self.selected).min(WORDS);
        // Pointers that have not reported yet come next, but one place is left for the round, which nothing may stop.
        for n in 0..pointers {
            if filled + 1 < WORDS && !self.watched[self.selected + n].fresh {
                operations[filled] = self.pointer(n);
                filled += 1;
            }
        }
        let all = pointers + self.written.len();
        for _ in 0..all.min(WORDS - filled) {
            self.turn %= all;
            operations[filled] = match self.turn.checked_sub(pointers) {
                Some(n) => self.written[n].operation,
                None => self.pointer(self.turn),
            };
            filled += 1;
            self.turn += 1;
        }
        operations
    }

    /// The operation that points R1 + `n` at the n-th selected cell.
    fn pointer(&self, n: usize) -> Operation {
        let at = self.selected + n;
        let Cell { address, offset } = self.watched[at].cell;
        Operation { address: R1 + n as u8, value: Pointer { address, offset, id: at as u8 + 1 }.value() }
    }
}
