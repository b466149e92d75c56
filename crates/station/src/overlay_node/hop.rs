//! A simulated connection to a neighbouring node, and what the node is told of the path ([`weir_sliq::hop`] has its streams).
//!
//! The zeros that stand for an application's data hold what the records must know of a packet, so that it survives the connection, which
//! knows bytes alone. A payload shorter than these 20 bytes is carried as if it were as long.

use super::{HEADERS, Neighbour};
use std::fmt;
use weir_base::{Ecn, Span, Time};
use weir_endpoint::Datagram;
use weir_overlay::cat::Delay;
use weir_overlay::{Reported, Signal};
use weir_sliq::hop::{CONTROL, Config, DATA, DEPTHS, SENSITIVE};
use weir_sliq::simulated::{Ends, Left, Simulated};

/// Bytes of what stands before a packet, beside its own: when its host sent it and how long it has waited, in nanoseconds, and the zeros
/// behind its first bytes.
const NOTES: usize = 20;

/// IP bytes of packets that have left, by their purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Packets of data that left for the first time.
    pub(super) data: u64,
    /// Messages between nodes, and the connection's own packets.
    pub(super) signals: u64,
    /// Data that was retransmitted, and packets that repair it.
    pub(super) again: u64,
    /// Acknowledgements: frames in other packets, and whole packets.
    pub(super) acknowledgements: u64,
}

/// What the records know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Notes {
    /// When its host sent it; [`Time::NEVER`] if that was not noted.
    pub(super) entered: Time,
    /// How long it has waited in the queues of nodes.
    pub(super) waits: Span,
}

/// What a neighbour has sent.
#[derive(Debug)]
pub(super) enum Arrived {
    /// A datagram of messages.
    Signal(Vec<u8>),
    /// A packet: what the records know of it, its first bytes, and the zeros behind them.
    Packet(Notes, Vec<u8>, u32),
}

/// A connection to a neighbour.
pub(super) struct Hop {
    config: Config,
    link: Simulated,
    of: Neighbour,
    seed: u64,
    /// Space for the message that is written, and for the packet that leaves.
    message: Vec<u8>,
    pub(super) packet: Datagram,
    pub(super) sent: Sent,
}

impl fmt::Debug for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hop").field("of", &self.of).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl Hop {
    /// The connection to a neighbour.
    pub(super) fn new(config: &Config, of: &Neighbour, seed: u64) -> Hop {
        Hop {
            config: config.clone(),
            link: link(config, of, seed),
            of: *of,
            seed,
            message: Vec::new(),
            packet: Datagram::default(),
            sent: Sent::default(),
        }
    }

    /// Hands over a datagram of messages. One that finds the connection closed or its stream full is lost.
    pub(super) fn signal(&mut self, datagram: &[u8], what: Signal, now: Time) {
        let stream = if what == Signal::Depths { DEPTHS } else { CONTROL };
        if self.link.is_up() {
            self.link.write(stream, datagram, datagram.len() as u64, now);
        }
    }

    /// Hands over a packet: what the records know of it, the overlay's header, and the payload as its first bytes and zeros. Returns
    /// whether it was taken.
    pub(super) fn send(
        &mut self,
        notes: Notes,
        header: &[u8],
        (head, zeros): (&[u8], u32),
        is_sensitive: bool,
        now: Time,
    ) -> bool {
        let bytes = header.len() + head.len() + zeros as usize;
        self.message.clear();
        self.message.extend(notes.entered.as_nanos().to_be_bytes());
        self.message.extend(notes.waits.as_nanos().to_be_bytes());
        self.message.extend(zeros.to_be_bytes());
        self.message.extend_from_slice(header);
        self.message.extend_from_slice(head);
        if is_sensitive {
            self.link.give_way(now);
        }
        let stream = if is_sensitive { SENSITIVE } else { DATA };
        self.link.write(stream, &self.message, bytes.max(self.message.len()) as u64, now)
    }

    /// A packet of the connection has arrived.
    pub(super) fn receive(&mut self, head: &[u8], zeros: u32, ecn: Ecn, now: Time) {
        self.link.receive(head, zeros, ecn, now);
    }

    /// Takes what the neighbour has sent.
    pub(super) fn read(&mut self, into: &mut Vec<Arrived>) {
        self.link.read(|stream, _, head| match (stream, head.split_first_chunk::<NOTES>()) {
            (SENSITIVE | DATA, Some((notes, rest))) => {
                let (notes, zeros) = read_notes(notes);
                into.push(Arrived::Packet(notes, rest.to_vec(), zeros));
            }
            (SENSITIVE | DATA, None) => {}
            _ => into.push(Arrived::Signal(head.to_vec())),
        });
    }

    /// When [`Hop::on_timer`] is due.
    pub(super) fn next_timer(&self) -> Time {
        self.link.next_timer()
    }

    /// The time has come. A connection that is over gives way to a new one.
    pub(super) fn on_timer(&mut self, now: Time) {
        if self.link.is_over() {
            self.link = link(&self.config, &self.of, self.seed);
        }
        self.link.open(now);
        if self.link.next_timer() <= now {
            self.link.on_timer(now);
        }
    }

    /// Writes the next packet that leaves now into [`Hop::packet`]. Returns whether there is one.
    pub(super) fn transmit(&mut self, now: Time) -> bool {
        let Some(left) = self.link.transmit(&mut self.packet, now) else { return false };
        let bytes = u64::from(self.packet.payload()) + HEADERS.get();
        let Left { stream, again, acknowledgement } = left;
        let is_alone = stream.is_none() && acknowledgement > 0;
        let acknowledgement = if is_alone { bytes } else { acknowledgement.into() };
        self.sent.acknowledgements += acknowledgement;
        let of = match stream {
            Some(SENSITIVE | DATA) if again => &mut self.sent.again,
            Some(SENSITIVE | DATA) => &mut self.sent.data,
            _ => &mut self.sent.signals,
        };
        *of += bytes - acknowledgement;
        true
    }

    /// What the node is told.
    pub(super) fn reported(&self, now: Time) -> Reported {
        let path = self.link.path(&[SENSITIVE, DATA, CONTROL], now);
        Reported {
            is_up: self.link.is_up(),
            waiting: self.link.waiting(),
            capacity: path.capacity.unwrap_or_default(),
            delay: Delay { mean: path.delay, variance: path.variance },
            loss: path.lost_for_good(),
        }
    }
}

fn link(config: &Config, of: &Neighbour, seed: u64) -> Simulated {
    let streams = config.streams();
    Simulated::new(&Ends {
        parameters: &config.parameters(),
        streams: &streams,
        controllers: &config.cc,
        mtu: of.mtu,
        seed,
        number: of.link.min(of.back) as u64,
        opens: of.link < of.back,
    })
}

/// What the records know of a packet, and the zeros behind its first bytes. A message may be longer than its packet, if that is short.
fn read_notes(notes: &[u8; NOTES]) -> (Notes, u32) {
    let mut left = notes.as_slice();
    let mut number = |bytes: usize| {
        let (first, rest) = left.split_at(bytes);
        left = rest;
        first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let (entered, waits) = (Time::from_nanos(number(8)), Span::from_nanos(number(8)));
    (Notes { entered, waits }, number(4) as u32)
}
