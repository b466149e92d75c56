//! What stands in SLIQ's packets: a header, then frames. All numbers are big-endian. A packet that is not well formed to its last byte
//! is no packet.
//!
//! The GNAT software has headers of 16 to 20 bytes with a sequence number for each stream. Here a packet has a number of its own,
//! of which acknowledgements tell, so that a retransmission is told from what it replaces; docs/sliq.md has the layout.

/// Length of the header.
pub const HEADER: usize = 12;
/// What a sealed packet is longer by (AES-256-GCM; NIST SP 800-38D).
pub const TAG: usize = 16;
/// What stands before a data frame's payload, and by how much more that is of a stream with a deadline.
pub const DATA_HEADER: usize = 11;
/// By when a segment is to be delivered.
pub const DUE: usize = 4;
/// What stands before a repair frame's payload.
pub const REPAIR_HEADER: usize = 12;
/// What stands before a part frame's payload.
pub const PART_HEADER: usize = 15;
/// What stands before padding.
pub const PADDING_HEADER: usize = 3;
/// Ranges that an acknowledgement tells of at most.
pub const MOST_RANGES: usize = 16;
/// In the place of a stream's number: all streams of the connection together.
pub const CONNECTION: u8 = 255;
/// The first four bits of every packet.
const MARK: u8 = 0x50;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks for a connection.
    Open,
    /// Agrees to one.
    Accept,
    /// Belongs to one.
    Within,
}

/// What every packet begins with: the mark and the kind in a byte, the connection's id in three, the packet's number and the
/// sender's time, in four each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is for.
    pub kind: Kind,
    /// The connection, below 2^24.
    pub connection: u32,
    /// The lowest 32 bits of the packet's number. Every packet of a connection's end has another one, the next higher.
    pub number: u32,
    /// The sender's clock in microseconds, modulo 2^32.
    pub timestamp: u32,
}

impl Header {
    /// Appends it.
    pub fn write(&self, to: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::Open => 1,
            Kind::Accept => 2,
            Kind::Within => 3,
        };
        let [_, connection @ ..] = self.connection.to_be_bytes();
        to.push(MARK | kind);
        to.extend(connection);
        to.extend(self.number.to_be_bytes());
        to.extend(self.timestamp.to_be_bytes());
    }

    /// Reads it; the rest are frames. `None` when it is none.
    pub fn read(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let mut reader = Reader(bytes);
        let first = reader.u8()?;
        let kind = match first ^ MARK {
            1 => Kind::Open,
            2 => Kind::Accept,
            3 => Kind::Within,
            _ => return None,
        };
        let [a, b, c] = *reader.take::<3>()?;
        let connection = u32::from_be_bytes([0, a, b, c]);
        let header = Header { kind, connection, number: reader.u32()?, timestamp: reader.u32()? };
        Some((header, reader.0))
    }
}

/// The connection that a packet names, sealed or not. `None` when it is too short for one, or has not the mark.
pub fn connection_of(packet: &[u8]) -> Option<u32> {
    let ([first, a, b, c, ..], _) = packet.split_first_chunk::<HEADER>()?;
    (first & 0xf0 == MARK).then_some(u32::from_be_bytes([0, *a, *b, *c]))
}

/// The flags of a data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// The stream is read in order.
    pub ordered: bool,
    /// The segment begins a message.
    pub first: bool,
    /// The segment ends a message.
    pub last: bool,
    /// The segment ends the stream.
    pub fin: bool,
    /// It is to be acknowledged at once.
    pub prompt: bool,
    /// Repair packets may follow, for which it is to be kept.
    pub coded: bool,
}

impl Flags {
    fn fields(&mut self) -> [&mut bool; 6] {
        [&mut self.ordered, &mut self.first, &mut self.last, &mut self.fin, &mut self.prompt, &mut self.coded]
    }

    /// One bit each, the first the lowest.
    pub fn bits(mut self) -> u8 {
        self.fields().into_iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    /// Flags from their bits; `None` where another one is set.
    pub fn from_bits(bits: u8) -> Option<Flags> {
        let mut flags = Flags::default();
        for (at, flag) in flags.fields().into_iter().enumerate() {
            *flag = bits >> at & 1 == 1;
        }
        (bits >> 6 == 0).then_some(flags)
    }
}

/// A segment of a stream. Its payload is the rest of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// What is to be known of it.
    pub flags: Flags,
    /// Its stream.
    pub stream: u8,
    /// Its number in the stream.
    pub sequence: u32,
    /// How far before it the first segment stands that may still be sent (again); what stands before that was acknowledged or given up.
    pub distance: u16,
    /// Length of its payload.
    pub length: u16,
    /// By when it is to be delivered, by its sender's clock as in headers: of segments for which repair packets may follow, and no others.
    pub due: Option<u32>,
}

/// A repair packet of a group. Its payload is the rest of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// Its stream.
    pub stream: u8,
    /// The group's first segment.
    pub start: u32,
    /// The group's segments, 1 to 16.
    pub k: u8,
    /// Number of the repair packet, from 0.
    pub number: u8,
    /// How far before the group's first segment the first one stands that may still be sent (again).
    pub distance: u16,
    /// Length of its payload.
    pub length: u16,
}

/// A part of a segment that is too long for the path as it is now. Its payload is the rest of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The segment, with its whole length.
    pub segment: Data,
    /// Where in the segment the part begins.
    pub offset: u16,
    /// Length of its payload.
    pub length: u16,
}

/// Packets that have arrived, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The highest number that has arrived.
    pub largest: u32,
    /// How many packets have arrived, modulo 2^32.
    pub received: u32,
    /// Time of arrival of the newest packet less its timestamp, in microseconds modulo 2^32.
    pub difference: u32,
    /// How long the newest packet has waited for this, in microseconds.
    pub delay: u16,
    ranges: [(u16, u16); MOST_RANGES],
    count: u8,
}

impl Ack {
    /// An acknowledgement of one packet.
    pub fn new(largest: u32, received: u32, difference: u32, delay: u16) -> Ack {
        Ack { largest, received, difference, delay, ranges: [(0, 0); MOST_RANGES], count: 1 }
    }

    /// Sets how many numbers in a row, up to the highest, have arrived before it.
    pub fn set_first(&mut self, before: u16) {
        self.ranges[0].1 = before;
    }

    /// Adds the next lower range: so many numbers are missing, then one and so many before it have arrived. Answers whether there
    /// was room.
    pub fn push(&mut self, missing: u16, before: u16) -> bool {
        let room = usize::from(self.count) < MOST_RANGES;
        if room {
            self.ranges[usize::from(self.count)] = (missing, before);
            self.count += 1;
        }
        room
    }

    /// The ranges, highest first: each how far its ends stand below the highest number.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut below = 0u32;
        self.ranges[..usize::from(self.count)].iter().map(move |(missing, before)| {
            let high = below + u32::from(*missing);
            let low = high + u32::from(*before);
            below = low + 1;
            (high, low)
        })
    }
}

/// Packets that have arrived with each codepoint of ECN, each count modulo 2^32 (RFC 9000, section 19.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// With ECT(0).
    pub ect0: u32,
    /// With ECT(1).
    pub ect1: u32,
    /// With CE.
    pub ce: u32,
}

/// A part of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Acknowledges packets.
    Ack(Ack),
    /// A segment.
    Data(Data),
    /// A repair packet.
    Repair(Repair),
    /// A part of a segment.
    Part(Part),
    /// So many bytes, the rest of the packet, that mean nothing.
    Padding {
        /// How many.
        length: u16,
    },
    /// Segments of a stream before this one are no longer sent.
    Forward {
        /// The stream.
        stream: u8,
        /// The first segment that may still be sent.
        base: u32,
    },
    /// So many segments may be sent for the first time in all.
    Credit {
        /// The stream; [`CONNECTION`] for all together.
        stream: u8,
        /// How many, modulo 2^32.
        segments: u32,
    },
    /// Packets that have arrived with each codepoint; the acknowledgement of the same packet follows.
    Marks(Marks),
    /// The smallest round trip that the sender knows, in microseconds.
    RoundTrip(u32),
    /// Nothing but to be acknowledged.
    Ping,
    /// Asks whether the peer is where its packets come from: this number is to come back from there.
    Challenge(u64),
    /// The number comes back.
    Response(u64),
    /// The connection is over.
    Close {
        /// Why: 0 is as wished.
        reason: u8,
    },
}

const ACK: u8 = 1;
const DATA: u8 = 2;
const REPAIR: u8 = 3;
const FORWARD: u8 = 4;
const PING: u8 = 5;
const CLOSE: u8 = 6;
const CREDIT: u8 = 7;
const CHALLENGE: u8 = 8;
const RESPONSE: u8 = 9;
const PART: u8 = 10;
const PADDING: u8 = 11;
const MARKS: u8 = 12;
const ROUND_TRIP: u8 = 13;

impl Data {
    /// What it begins with behind its frame's number; the length of what it carries comes last.
    fn write(&self, to: &mut Vec<u8>) {
        to.extend([Flags { coded: self.due.is_some(), ..self.flags }.bits(), self.stream]);
        to.extend(self.sequence.to_be_bytes());
        to.extend(self.distance.to_be_bytes());
        to.extend(self.length.to_be_bytes());
        to.extend(self.due.into_iter().flat_map(u32::to_be_bytes));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Data> {
        let flags = Flags::from_bits(reader.u8()?)?;
        let (stream, sequence) = (reader.u8()?, reader.u32()?);
        let (distance, length) = (reader.u16()?, reader.u16()?);
        let due = if flags.coded { Some(reader.u32()?) } else { None };
        Some(Data { flags, stream, sequence, distance, length, due })
    }
}

impl Frame {
    /// Length of its payload, for frames whose payload is the rest of the packet.
    pub fn payload(&self) -> Option<u16> {
        match self {
            Frame::Data(Data { length, .. })
            | Frame::Repair(Repair { length, .. })
            | Frame::Part(Part { length, .. })
            | Frame::Padding { length } => Some(*length),
            _ => None,
        }
    }

    /// Appends it, without its payload, which is to follow.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            Frame::Ack(ack) => {
                to.push(ACK);
                to.extend(ack.largest.to_be_bytes());
                to.extend(ack.received.to_be_bytes());
                to.extend(ack.difference.to_be_bytes());
                to.extend(ack.delay.to_be_bytes());
                to.push(ack.count);
                for (missing, before) in &ack.ranges[..usize::from(ack.count)] {
                    to.extend(missing.to_be_bytes());
                    to.extend(before.to_be_bytes());
                }
            }
            Frame::Data(data) => {
                to.push(DATA);
                data.write(to);
            }
            Frame::Part(part) => {
                to.push(PART);
                part.segment.write(to);
                to.extend(part.offset.to_be_bytes());
                to.extend(part.length.to_be_bytes());
            }
            Frame::Padding { length } => {
                to.push(PADDING);
                to.extend(length.to_be_bytes());
            }
            Frame::Repair(repair) => {
                to.extend([REPAIR, repair.stream]);
                to.extend(repair.start.to_be_bytes());
                to.extend([repair.k, repair.number]);
                to.extend(repair.distance.to_be_bytes());
                to.extend(repair.length.to_be_bytes());
            }
            Frame::Forward { stream, base } => {
                to.extend([FORWARD, *stream]);
                to.extend(base.to_be_bytes());
            }
            Frame::Credit { stream, segments } => {
                to.extend([CREDIT, *stream]);
                to.extend(segments.to_be_bytes());
            }
            Frame::Marks(Marks { ect0, ect1, ce }) => {
                to.push(MARKS);
                [ect0, ect1, ce].into_iter().for_each(|count| to.extend(count.to_be_bytes()));
            }
            Frame::RoundTrip(micros) => {
                to.push(ROUND_TRIP);
                to.extend(micros.to_be_bytes());
            }
            Frame::Ping => to.push(PING),
            Frame::Challenge(number) => {
                to.push(CHALLENGE);
                to.extend(number.to_be_bytes());
            }
            Frame::Response(number) => {
                to.push(RESPONSE);
                to.extend(number.to_be_bytes());
            }
            Frame::Close { reason } => to.extend([CLOSE, *reason]),
        }
    }

    /// Reads the first frame; what follows is its payload, if it has one, or the next frame. `None` when it is none.
    pub fn read(bytes: &[u8]) -> Option<(Frame, &[u8])> {
        let mut reader = Reader(bytes);
        let frame = match reader.u8()? {
            ACK => {
                let (largest, received) = (reader.u32()?, reader.u32()?);
                let mut ack = Ack::new(largest, received, reader.u32()?, reader.u16()?);
                let count = reader.u8()?;
                if count == 0 || usize::from(count) > MOST_RANGES {
                    return None;
                }
                ack.count = count;
                for range in &mut ack.ranges[..usize::from(count)] {
                    *range = (reader.u16()?, reader.u16()?);
                }
                // The first range begins at the highest number.
                if ack.ranges[0].0 != 0 {
                    return None;
                }
                Frame::Ack(ack)
            }
            DATA => Frame::Data(Data::read(&mut reader)?),
            PART => Frame::Part(Part {
                segment: Data::read(&mut reader)?,
                offset: reader.u16()?,
                length: reader.u16()?,
            }),
            PADDING => Frame::Padding { length: reader.u16()? },
            REPAIR => Frame::Repair(Repair {
                stream: reader.u8()?,
                start: reader.u32()?,
                k: reader.u8()?,
                number: reader.u8()?,
                distance: reader.u16()?,
                length: reader.u16()?,
            }),
            FORWARD => Frame::Forward { stream: reader.u8()?, base: reader.u32()? },
            CREDIT => Frame::Credit { stream: reader.u8()?, segments: reader.u32()? },
            MARKS => Frame::Marks(Marks { ect0: reader.u32()?, ect1: reader.u32()?, ce: reader.u32()? }),
            ROUND_TRIP => Frame::RoundTrip(reader.u32()?),
            PING => Frame::Ping,
            CHALLENGE => Frame::Challenge(u64::from_be_bytes(*reader.take()?)),
            RESPONSE => Frame::Response(u64::from_be_bytes(*reader.take()?)),
            CLOSE => Frame::Close { reason: reader.u8()? },
            _ => return None,
        };
        Some((frame, reader.0))
    }
}

/// Whether these are whole frames and nothing else, where so many zeros follow them: a packet of which one part is no frame is none, and
/// changes nothing.
pub fn is_well_formed(mut frames: &[u8], zeros: u32) -> bool {
    while !frames.is_empty() {
        let Some((frame, after)) = Frame::read(frames) else { return false };
        if let Some(length) = frame.payload() {
            return u64::from(length) == after.len() as u64 + u64::from(zeros);
        }
        frames = after;
    }
    zeros == 0
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<&[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| *byte)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(|bytes| u16::from_be_bytes(*bytes))
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// The whole number of which these are the lowest 32 bits: the one nearest to `near`, which was seen or used last.
pub fn whole(low: u32, near: u64) -> u64 {
    let ahead = i64::from(low.wrapping_sub(near as u32) as i32);
    near.checked_add_signed(ahead).unwrap_or_else(|| u64::from(low))
}

#[cfg(test)]
mod tests;
