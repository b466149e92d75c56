//! The first packet of a flow that differs between two captures of one link. Data packets are compared by their relative sequence
//! numbers and lengths, acknowledgements by their relative numbers and SACK blocks (RFC 9293, RFC 2018), in the order in which the
//! link transmitted them. A packet that was dropped before the link is in no capture: then the next one differs.

use serde::Serialize;
use weir_base::Time;

/// What a capture says of a packet of a TCP flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segment {
    /// When the link began to transmit it.
    pub at: Time,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Payload in bytes.
    pub payload: u32,
    /// SYN flag.
    pub syn: bool,
    /// Acknowledgement number, if the ACK flag is set.
    pub acknowledgement: Option<u32>,
    /// SACK blocks, from the first byte to the one after the last, in their order in the header.
    pub sack: Vec<(u32, u32)>,
}

/// A comparison of one link's captures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packets {
    /// The first packets of both are the same; one of the captures then ends.
    Same {
        /// Number of these packets.
        count: u64,
        /// Whether they are acknowledgements; otherwise they carry data.
        acknowledgements: bool,
    },
    /// The first packet that differs.
    Differ(PacketParting),
}

/// The first packet that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PacketParting {
    /// Its place among the flow's data packets or acknowledgements on this link, from 1.
    pub place: u64,
    /// What left in the reference and in the other at that place.
    pub sides: [Sent; 2],
}

/// A packet that left, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// Time since the flow's start, in seconds.
    pub after_s: f64,
    /// The packet.
    #[serde(flatten)]
    pub packet: Packet,
}

/// A packet by relative numbers: the first byte of the flow has number 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packet {
    /// Data.
    Data {
        /// Number of the first byte.
        from: u64,
        /// Number of the byte after the last.
        to: u64,
        /// Whether it begins below the highest number that was sent before: it is a retransmission.
        again: bool,
        /// Bytes between the highest number before and its first byte: packets that were dropped before the link or sent later.
        skipped: u64,
    },
    /// An acknowledgement.
    Acknowledgement {
        /// The next byte that the receiver expects.
        number: u64,
        /// Its SACK blocks, from the first byte to the one after the last.
        sack: Vec<(u64, u64)>,
    },
}

/// Compares the packets of one flow in two captures of the same link. A link that carries data of the flow is compared by its data
/// packets, any other by its acknowledgements. `starts` is when the flow started in each run. `None` if neither has a packet.
pub fn compare(sides: [&[Segment]; 2], starts: [Time; 2]) -> Option<Packets> {
    let carries_data = sides.iter().any(|side| side.iter().any(|segment| segment.payload > 0));
    let read = |side: &[Segment]| if carries_data { data(side) } else { acknowledgements(side) };
    let [reference, other] = sides.map(read);
    if reference.is_empty() && other.is_empty() {
        return None;
    }
    let Some(place) = reference.iter().zip(&other).position(|((_, a), (_, b))| a != b) else {
        let count = reference.len().min(other.len()) as u64;
        return Some(Packets::Same { count, acknowledgements: !carries_data });
    };
    let sent = |side: &[(Time, Packet)], start: Time| {
        let (at, packet) = &side[place];
        Sent { after_s: (at.as_nanos() as f64 - start.as_nanos() as f64) / 1e9, packet: packet.clone() }
    };
    let sides = [sent(&reference, starts[0]), sent(&other, starts[1])];
    Some(Packets::Differ(PacketParting { place: place as u64 + 1, sides }))
}

/// The data packets. The first byte has the number after the SYN's, or is that of the first data packet if there is no SYN.
fn data(segments: &[Segment]) -> Vec<(Time, Packet)> {
    let syn = segments.iter().find(|segment| segment.syn).map(|syn| syn.sequence.wrapping_add(1));
    let first = syn.or_else(|| segments.iter().find(|s| s.payload > 0).map(|s| s.sequence));
    let mut numbers = Numbers::from(first.unwrap_or_default());
    let mut highest = 0;
    let with_data = segments.iter().filter(|segment| segment.payload > 0);
    let packet = |segment: &Segment| {
        let from = numbers.absolute(segment.sequence);
        let to = from + u64::from(segment.payload);
        let again = from < highest;
        let skipped = from.saturating_sub(highest);
        highest = highest.max(to);
        (segment.at, Packet::Data { from, to, again, skipped })
    };
    with_data.map(packet).collect()
}

/// The acknowledgements. Byte 0 is the one that the answer to the SYN expects, or else the first acknowledgement.
fn acknowledgements(segments: &[Segment]) -> Vec<(Time, Packet)> {
    let first = segments.iter().find(|segment| segment.syn).and_then(|segment| segment.acknowledgement);
    let first = first.or_else(|| segments.iter().find_map(|segment| segment.acknowledgement));
    let mut numbers = Numbers::from(first.unwrap_or_default());
    let plain = segments.iter().filter(|segment| !segment.syn);
    let plain = plain.filter_map(|segment| Some((segment, segment.acknowledgement?)));
    let packet = |(segment, number): (&Segment, u32)| {
        let number = numbers.absolute(number);
        let sack = segment.sack.iter().map(|&(from, to)| (numbers.near(from), numbers.near(to))).collect();
        (segment.at, Packet::Acknowledgement { number, sack })
    };
    plain.map(packet).collect()
}

/// Makes 64-bit relative numbers of the 32-bit numbers on the wire, which wrap round.
struct Numbers {
    first: u32,
    /// The highest relative number so far.
    highest: u64,
}

impl Numbers {
    fn from(first: u32) -> Numbers {
        Numbers { first, highest: 0 }
    }

    /// The relative number nearest to the highest one; numbers before the first byte count as the first.
    fn near(&self, wire: u32) -> u64 {
        let relative = wire.wrapping_sub(self.first);
        let step = relative.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(step.into())
    }

    fn absolute(&mut self, wire: u32) -> u64 {
        let number = self.near(wire);
        self.highest = self.highest.max(number);
        number
    }
}
