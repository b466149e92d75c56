//! The CP layer of an endpoint (section 3.3.1): it writes the headers of outgoing packets and reads the headers of arriving
//! ones.
//!
//! A header is lost with its packet, and an AP keeps soft state only. An endpoint therefore repeats its operations, four in a
//! packet: first changed cells and pointers without a report, then all its cells and pointers in turn. It may watch more cells
//! than the four that a packet reports: once the present four were reported, it moves its pointers to the next four. The token
//! of a pointer names the cell for as long as the cell is watched, so no value is ever assigned to another cell.

use crate::cell::{Cell, R1};
use crate::header::{self, Flags, HeaderError, Operation, Pointer, Prefix, Report, Version, WORDS};
use crate::seal::{self, Key, Leg, ReplayWindow};

/// A cell that the endpoint watches.
#[derive(Debug, Clone, Copy)]
struct Watched {
    cell: Cell,
    /// The last reported value; `None` before the first report.
    value: Option<u32>,
    /// Whether the cell was reported since its pointer was set.
    fresh: bool,
}

/// A cell that the endpoint has written.
#[derive(Debug, Clone, Copy)]
struct Written {
    operation: Operation,
    /// Whether a packet has carried this value.
    said: bool,
}

/// Identity of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// The application's id, 0 to 31.
    pub application: u8,
    /// The flow's id, 0 to 127.
    pub flow: u8,
    /// The CP transport's number; APs ignore it.
    pub protocol: u8,
    /// The key shared with the AP; `None` if headers are not sealed.
    pub key: Option<Key>,
    /// A number that grows with each restart of the endpoint.
    pub epoch: u32,
}

/// Why an arriving header was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// No whole CP header.
    Header(HeaderError),
    /// The header of another application or flow.
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
    /// Index at which the round through pointers and written cells continues.
    turn: usize,
    /// Whether the last header that arrived reported a watched cell.
    reported: bool,
}

impl Endpoint {
    /// An endpoint that has written nothing and watches these cells, at most 255. Without a key it begins with `version` and
    /// then uses the version of the last header that arrived; with a key it uses version 2.
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
            reported: false,
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

    /// The last reported value of a watched cell; `None` before the first report.
    pub fn value(&self, cell: Cell) -> Option<u32> {
        self.watched.iter().find(|watched| watched.cell == cell)?.value
    }

    /// Whether the last header that arrived carried a report of a watched cell. Headers that no AP has rewritten carry none.
    pub fn was_reported(&self) -> bool {
        self.reported
    }

    /// Whether there is a change that no packet has carried yet, so that a packet without data is worth sending.
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
    /// header's length. A packet with DATAPATH has passed no AP at this site: its words are the other AP's probe, no reports.
    ///
    /// # Errors
    /// [`Refused`] if the packet is not for this endpoint or not authentic.
    pub fn open(&mut self, packet: &[u8], mut changed: impl FnMut(Cell, u32)) -> Result<usize, Refused> {
        let prefix = Prefix::read(packet).map_err(Refused::Header)?;
        if (prefix.application, prefix.flow) != (self.identity.application, self.identity.flow) {
            return Err(Refused::Foreign);
        }
        if let Some(key) = &self.identity.key {
            if prefix.version == Version::One || !key.verify(Leg::In, packet) {
                return Err(Refused::Tag);
            }
            // A reflected packet carries this endpoint's sequence number, any other packet the other AP's.
            let reflected = prefix.flags.has(Flags::REFLECT);
            let window = if reflected { &mut self.reflected } else { &mut self.window };
            if !seal::is_new(window, packet) {
                return Err(Refused::Replay);
            }
        }
        self.version = prefix.version;
        self.reported = false;
        let probe = prefix.flags.has(Flags::DATAPATH);
        for word in header::words(prefix.version, packet).into_iter().filter(|_| !probe) {
            let Report { id, value } = Report::from_word(word);
            // Token `n` is the n-th watched cell, from 1; a pointer that was never set reports token zero.
            let Some(watched) = usize::from(id).checked_sub(1).and_then(|n| self.watched.get_mut(n)) else {
                continue;
            };
            watched.fresh = true;
            self.reported = true;
            if watched.value.replace(value) != Some(value) {
                changed(watched.cell, value);
            }
        }
        self.select_next();
        Ok(prefix.version.length())
    }

    /// Moves the pointers to the next cells once all selected cells were reported.
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
        // Pointers without a report come next, but one word is left for the round, which must always continue.
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
