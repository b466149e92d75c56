//! The header of a packet between two nodes. It takes the place of the inner IP and UDP headers, which a flow's context holds.
//!
//! Source: digest A 2.1 (time to go), A 2.2 (packet id, history, destination vector). The study's trailers, metadata and inner headers
//! take 66 bytes; here a packet takes 12 and a byte for each node that it has visited, 2 more with a time to go, and a group's a bit for
//! each receiver. A packet carries its flow's context until the neighbour has said that it knows it.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0x40, and bits: 1 time to go, 2 visited nodes, 4 destination vector, 8 context |
//! | 1 | ECN 2 bits, hops 6 bits |
//! | 4 | flow: source, generation, number |
//! | 3 | sequence |
//! | 2 | inner UDP checksum |
//! | 2 | time to go: below 1 s in 1/32767 s, else 1 s and milliseconds |
//! | 1 + n | visited nodes |
//! | 15 to 36 | context |
//! | m / 8 | destination vector: a bit for each receiver of the context |

use super::bytes::{Malformed, Reader, Writer};
use crate::context::{Context, Inner};
use crate::nodes::Nodes;
use crate::packet::{Flow, GroupId, Key};
use weir_base::Span;

const KIND: u8 = 0x40;
const DUE: u8 = 1;
const VISITED: u8 = 2;
const VECTOR: u8 = 4;
const CONTEXT: u8 = 8;

/// Whether a datagram that begins with this byte is a packet rather than messages.
pub fn is_packet(first: u8) -> bool {
    first & 0xf0 == KIND
}

/// The most links that a packet passes.
pub const MOST_HOPS: u8 = 63;
/// Bytes of the largest header.
pub const LONGEST: usize = 11 + 2 + 17 + 37 + 16;

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The flow.
    pub flow: Flow,
    /// The packet's number, 24 bits.
    pub sequence: u32,
    /// The ECN field of the inner IP header, 2 bits.
    pub ecn: u8,
    /// Links passed, up to [`MOST_HOPS`].
    pub hops: u8,
    /// Checksum of the inner UDP header.
    pub checksum: u16,
    /// What is left until it is late, when it arrives; `None` if it never is.
    pub time_to_go: Option<Span>,
    /// Nodes that it has visited.
    pub visited: Nodes,
    /// The receivers that it is for.
    pub receivers: Nodes,
}

/// Why a packet cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no packet of the overlay.
    Malformed,
    /// It carries no context, and none is known.
    Unknown(Flow),
}

impl From<Malformed> for Unreadable {
    fn from(_: Malformed) -> Unreadable {
        Unreadable::Malformed
    }
}

impl Header {
    /// Writes it behind the bytes that are there; with the context itself if `attach` is set.
    pub fn encode(&self, context: &Context, attach: bool, bytes: &mut Vec<u8>) {
        let mut writer = Writer(bytes);
        let is_group = matches!(context.to, Key::Group(_));
        let bits = [
            (self.time_to_go.is_some(), DUE),
            (!self.visited.is_empty(), VISITED),
            (is_group, VECTOR),
            (attach, CONTEXT),
        ];
        let set = bits.iter().filter(|(set, _)| *set);
        writer.u8(set.fold(KIND, |kind, (_, bit)| kind | bit));
        writer.u8(self.ecn << 6 | self.hops.min(MOST_HOPS));
        writer.flow(self.flow);
        writer.u24(self.sequence & 0xff_ffff);
        writer.u16(self.checksum);
        if let Some(left) = self.time_to_go {
            writer.u16(encode_time_to_go(left));
        }
        if !self.visited.is_empty() {
            writer.set(self.visited);
        }
        if attach {
            write_context(&mut writer, context);
        }
        if is_group {
            writer.subset(self.receivers, context.receivers);
        }
    }

    /// Reads a header, the context that it carries if it does, and the number of its bytes. `known` gives contexts.
    ///
    /// # Errors
    /// [`Unreadable`] if the bytes are no header, or its context is missing.
    pub fn decode(
        bytes: &[u8],
        known: impl FnOnce(Flow) -> Option<Context>,
    ) -> Result<(Header, Context, bool, usize), Unreadable> {
        let mut reader = Reader(bytes);
        let kind = reader.u8()?;
        if kind & 0xf0 != KIND {
            return Err(Unreadable::Malformed);
        }
        let mixed = reader.u8()?;
        let (flow, sequence, checksum) = (reader.flow()?, reader.u24()?, reader.u16()?);
        let time_to_go = if kind & DUE != 0 { Some(decode_time_to_go(reader.u16()?)) } else { None };
        let visited = if kind & VISITED != 0 { reader.set()? } else { Nodes::EMPTY };
        let attached = kind & CONTEXT != 0;
        let context = if attached {
            read_context(&mut reader)?
        } else {
            known(flow).ok_or(Unreadable::Unknown(flow))?
        };
        let receivers = match (context.to, kind & VECTOR != 0) {
            (Key::Group(_), true) => reader.subset(context.receivers)?,
            (Key::Node(node), false) => Nodes::of(node),
            _ => return Err(Unreadable::Malformed),
        };
        let (ecn, hops) = (mixed >> 6, mixed & MOST_HOPS);
        let header = Header { flow, sequence, ecn, hops, checksum, time_to_go, visited, receivers };
        Ok((header, context, attached, bytes.len() - reader.0.len()))
    }
}

/// The longest time that a header can tell (digest A 2.1).
pub const LONGEST_TIME_TO_GO: Span = Span::from_millis(1000 + 0x7fff);

/// The time is rounded down, so that a packet is never taken for more in time than it is.
fn encode_time_to_go(left: Span) -> u16 {
    if left < Span::from_secs(1) {
        return (left.as_nanos() * 32_767 / 1_000_000_000) as u16;
    }
    let beyond = left.saturating_sub(Span::from_secs(1)).as_millis();
    0x8000 | beyond.min(0x7fff) as u16
}

fn decode_time_to_go(code: u16) -> Span {
    let low = u64::from(code & 0x7fff);
    if code & 0x8000 == 0 {
        Span::from_nanos((low * 1_000_000_000).div_ceil(32_767))
    } else {
        Span::from_secs(1) + Span::from_millis(low)
    }
}

const GROUP: u8 = 1;
const SENSITIVE: u8 = 2;

fn write_context(writer: &mut Writer<'_>, context: &Context) {
    let sensitive = if context.is_sensitive { SENSITIVE } else { 0 };
    match context.to {
        Key::Node(node) => {
            writer.u8(sensitive);
            writer.node(node);
        }
        Key::Group(group) => {
            writer.u8(sensitive | GROUP);
            writer.u32(group.0);
            writer.set(context.receivers);
        }
    }
    let Inner { source, destination, source_port, destination_port, protocol, dscp } = context.inner;
    writer.u32(source);
    writer.u32(destination);
    writer.u16(source_port);
    writer.u16(destination_port);
    writer.u8(protocol);
    writer.u8(dscp);
}

fn read_context(reader: &mut Reader<'_>) -> Result<Context, Malformed> {
    let kind = reader.u8()?;
    let (to, receivers) = match kind & !SENSITIVE {
        0 => reader.node().map(|node| (Key::Node(node), Nodes::of(node)))?,
        GROUP => (Key::Group(GroupId(reader.u32()?)), reader.set()?),
        _ => return Err(Malformed),
    };
    let inner = Inner {
        source: reader.u32()?,
        destination: reader.u32()?,
        source_port: reader.u16()?,
        destination_port: reader.u16()?,
        protocol: reader.u8()?,
        dscp: reader.u8()?,
    };
    Ok(Context { to, receivers, is_sensitive: kind & SENSITIVE != 0, inner })
}
