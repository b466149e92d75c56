//! The format of SLIQ's packets: a header, then frames. All numbers are big-endian. A packet that is not well formed to its last byte is
//! rejected as a whole.
//!
//! The GNAT software has headers of 16 to 20 bytes with a sequence number for each stream. Here a packet has its own number, which
//! acknowledgements refer to, so that a retransmission is distinct from the packet that it replaces; docs/sliq.md has the layout.

/// Length of the header in bytes.
pub const HEADER: usize = 12;
/// Length of a sealed packet's tag in bytes (AES-256-GCM; NIST SP 800-38D).
pub const TAG: usize = 16;
/// Bytes of a data frame before its payload, without a due time.
pub const DATA_HEADER: usize = 11;
/// Bytes of the due time, which data frames of streams with a deadline have in addition.
pub const DUE: usize = 4;
/// Bytes of a repair frame before its payload.
pub const REPAIR_HEADER: usize = 12;
/// Bytes of a part frame before its payload, without a due time.
pub const PART_HEADER: usize = 15;
/// Bytes of a padding frame before the padding.
pub const PADDING_HEADER: usize = 3;
/// Bytes of an acknowledgement frame before its ranges.
pub const ACK_HEADER: usize = 16;
/// Bytes of a range of an acknowledgement.
pub const RANGE: usize = 4;
/// Bytes of a frame with counts of marks.
pub const MARKS_FRAME: usize = 13;
/// Maximum number of ranges in an acknowledgement.
pub const MOST_RANGES: usize = 16;
/// Stands for a stream's number: all streams of the connection together.
pub const CONNECTION: u8 = 255;
/// The first four bits of every packet.
const MARK: u8 = 0x50;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks for a connection.
    Open,
    /// Accepts a connection.
    Accept,
    /// Belongs to a connection.
    Within,
}

/// The header of every packet: the mark and the kind in one byte, the connection's number in three, the packet's number and the sender's
/// time in four each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The packet's kind.
    pub kind: Kind,
    /// The connection's number, below 2^24.
    pub connection: u32,
    /// The lowest 32 bits of the packet's number. Each end numbers its packets consecutively.
    pub number: u32,
    /// The sender's clock in microseconds, modulo 2^32.
    pub timestamp: u32,
}

impl Header {
    /// Appends the header.
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

    /// Reads a header; the rest are frames. `None` if the bytes do not begin with a header.
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

/// The number of a packet's connection, sealed or not. `None` if the packet is shorter than a header or does not begin with the mark.
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
    /// The segment is to be acknowledged at once.
    pub prompt: bool,
    /// Repair packets may follow, so the receiver keeps the segment.
    pub coded: bool,
}

impl Flags {
    fn fields(&mut self) -> [&mut bool; 6] {
        [&mut self.ordered, &mut self.first, &mut self.last, &mut self.fin, &mut self.prompt, &mut self.coded]
    }

    /// The flags as one bit each, the first one lowest.
    pub fn bits(mut self) -> u8 {
        self.fields().into_iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    /// Flags from their bits; `None` if an unknown bit is set.
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
    /// The segment's flags.
    pub flags: Flags,
    /// The stream's number.
    pub stream: u8,
    /// The segment's number in the stream.
    pub sequence: u32,
    /// Distance back to the first segment that may still be sent or retransmitted; all segments before that one were acknowledged or given
    /// up.
    pub distance: u16,
    /// Length of its payload.
    pub length: u16,
    /// The due time by the sender's clock, in microseconds modulo 2^32; `Some` only for segments for which repair packets may follow.
    pub due: Option<u32>,
}

/// A repair packet of a group. Its payload is the rest of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// The stream's number.
    pub stream: u8,
    /// The number of the group's first segment.
    pub start: u32,
    /// The number of segments in the group, 1 to 16.
    pub k: u8,
    /// The repair packet's number within the group, from 0.
    pub number: u8,
    /// Distance from the group's first segment back to the first segment that may still be sent or retransmitted.
    pub distance: u16,
    /// Length of its payload.
    pub length: u16,
}

/// A part of a segment that is too long for the path's present MTU. Its payload is the rest of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The segment's frame, with the length of the whole segment.
    pub segment: Data,
    /// The part's offset in the segment, in bytes.
    pub offset: u16,
    /// Length of its payload.
    pub length: u16,
}

/// An acknowledgement: the numbers of packets that have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The highest number that has arrived.
    pub largest: u32,
    /// The number of packets that have arrived, modulo 2^32.
    pub received: u32,
    /// Arrival time of the newest packet minus its timestamp, in microseconds modulo 2^32.
    pub difference: u32,
    /// How long the acknowledgement of the newest packet was held back, in microseconds.
    pub delay: u16,
    ranges: [(u16, u16); MOST_RANGES],
    count: u8,
}

impl Ack {
    /// An acknowledgement of one packet.
    pub fn new(largest: u32, received: u32, difference: u32, delay: u16) -> Ack {
        Ack { largest, received, difference, delay, ranges: [(0, 0); MOST_RANGES], count: 1 }
    }

    /// Sets the length of the first range: how many consecutive numbers before the highest have arrived.
    pub fn set_first(&mut self, before: u16) {
        self.ranges[0].1 = before;
    }

    /// Adds the next lower range: `missing` numbers have not arrived, then one and the `before` numbers before it have. Returns `false` if
    /// there is no room.
    pub fn push(&mut self, missing: u16, before: u16) -> bool {
        let room = usize::from(self.count) < MOST_RANGES;
        if room {
            self.ranges[usize::from(self.count)] = (missing, before);
            self.count += 1;
        }
        room
    }

    /// The ranges, highest first. Each is given by how far its highest and its lowest number are below the highest number of all.
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

/// Counts of packets that have arrived with each ECN codepoint, modulo 2^32 (RFC 9000, section 19.3.2).
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
    /// Padding: the rest of the packet, to be ignored.
    Padding {
        /// Length of the padding in bytes.
        length: u16,
    },
    /// Segments of a stream before this one are no longer sent.
    Forward {
        /// The stream.
        stream: u8,
        /// The first segment that may still be sent.
        base: u32,
    },
    /// Flow control: how many segments, counted from the beginning, the peer may send.
    Credit {
        /// The stream; [`CONNECTION`] stands for all streams together.
        stream: u8,
        /// The number of segments, modulo 2^32.
        segments: u32,
    },
    /// Counts of packets that have arrived with each ECN codepoint. The acknowledgement for the same packets follows in the same packet.
    Marks(Marks),
    /// The smallest round trip that the sender has measured, in microseconds.
    RoundTrip(u32),
    /// Asks for an acknowledgement.
    Ping,
    /// Asks whether the peer is at the address to which this packet goes: the peer is to send the number back from there.
    Challenge(u64),
    /// Sends the number of a challenge back.
    Response(u64),
    /// The connection is over.
    Close {
        /// The reason; 0 if the application has ended the connection.
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
    /// Appends the fields behind the frame's type. The payload's length comes before the due time.
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
    /// Length of the payload; `None` for frames without one.
    pub fn payload(&self) -> Option<u16> {
        match self {
            Frame::Data(Data { length, .. })
            | Frame::Repair(Repair { length, .. })
            | Frame::Part(Part { length, .. })
            | Frame::Padding { length } => Some(*length),
            _ => None,
        }
    }

    /// Appends the frame without its payload, which is to follow.
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

    /// Reads the first frame. The rest is its payload, if it has one, or the next frame. `None` if the bytes do not begin with a frame.
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

/// Whether these bytes, followed by `zeros` zeros, are whole frames and nothing else. A packet with anything that is not a frame is
/// rejected and changes nothing.
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

/// The bytes that are left to read.
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

/// Restores a packet's whole number from its lowest 32 bits: the number nearest to `near`, which was seen or used last.
pub fn whole(low: u32, near: u64) -> u64 {
    let ahead = i64::from(low.wrapping_sub(near as u32) as i32);
    near.checked_add_signed(ahead).unwrap_or_else(|| u64::from(low))
}

#[cfg(test)]
mod tests;
