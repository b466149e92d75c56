//! What a node says of itself: hello to a neighbour; links and groups, which all nodes pass on (digest A 2.3, LSA and GRAM).
//!
//! The study's announcements have 16 bits of sequence or none; here both have a stamp. Delays count 100 us, as there. The capacity is
//! a 16-bit number of kbit/s. K is flooded as a power of two ([`crate::admission::derive_k`]).

use super::bytes::{Malformed, Reader, Writer};
use super::{Stamp, short};
use crate::cat::Delay;
use crate::nodes::{NodeId, PerNode};
use crate::packet::GroupId;
use weir_base::{Rate, Span};

/// A sign of life to a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The sender.
    pub node: NodeId,
    /// Its boot epoch.
    pub epoch: u32,
    /// The neighbour's epoch, if the sender hears it.
    pub heard: Option<u32>,
}

impl Hello {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.node(self.node);
        writer.u32(self.epoch);
        writer.u8(self.heard.is_some().into());
        self.heard.into_iter().for_each(|epoch| writer.u32(epoch));
    }
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Hello, Malformed> {
        let (node, epoch) = (reader.node()?, reader.u32()?);
        let heard = match reader.u8()? {
            0 => None,
            1 => Some(reader.u32()?),
            _ => return Err(Malformed),
        };
        Ok(Hello { node, epoch, heard })
    }
}

/// What is said of a link to a neighbour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkInfo {
    /// The delay of packets.
    pub delay: Delay,
    /// What it can carry.
    pub capacity: Rate,
}

/// The links of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Links {
    /// The node.
    pub origin: NodeId,
    /// Its epoch and the number of the announcement.
    pub stamp: Stamp,
    /// The exponent of K as a power of two, as this node would have it; it counts if the node has the lowest number of all.
    pub k: Option<u8>,
    /// Whether it forwards nothing of other nodes, as a stub router (RFC 6987).
    pub is_drained: bool,
    /// Its neighbours.
    pub neighbours: PerNode<LinkInfo>,
    /// How long packets wait in its bins, by destination.
    pub queue_delays: PerNode<Span>,
}

/// The bit beside the exponent of K that says that the node is drained, and the exponent that says that it knows no K.
const DRAINED: u8 = 0x80;
const NO_K: u8 = 0x7f;

/// Delays count this.
const UNIT: Span = Span::from_micros(100);

fn units(span: Span) -> u16 {
    u16::try_from(span.as_nanos().div_ceil(UNIT.as_nanos())).unwrap_or(u16::MAX)
}

impl Links {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.node(self.origin);
        writer.stamp(self.stamp);
        writer.u8(self.k.map_or(NO_K, |exponent| exponent.min(NO_K - 1))
            | if self.is_drained { DRAINED } else { 0 });
        writer.set(self.neighbours.nodes());
        for (_, link) in self.neighbours.iter() {
            writer.u16(units(link.delay.mean));
            writer.u16(units(Span::from_secs_f64(libm::sqrt(link.delay.variance))));
            writer.u16(short::encode(link.capacity.bits_per_sec() / 1000));
        }
        writer.set(self.queue_delays.nodes());
        self.queue_delays.iter().for_each(|(_, delay)| writer.u16(units(*delay)));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Links, Malformed> {
        let (origin, stamp) = (reader.node()?, reader.stamp()?);
        let byte = reader.u8()?;
        let (k, is_drained) =
            (Some(byte & !DRAINED).filter(|exponent| *exponent != NO_K), byte & DRAINED != 0);
        let mut neighbours = PerNode::default();
        for node in reader.set()?.iter() {
            let mean = UNIT * u64::from(reader.u16()?);
            let deviation = (UNIT * u64::from(reader.u16()?)).as_secs_f64();
            let capacity = Rate::from_bits_per_sec(short::decode(reader.u16()?).saturating_mul(1000));
            let delay = Delay { mean, variance: deviation * deviation };
            neighbours.set(node, LinkInfo { delay, capacity });
        }
        let mut queue_delays = PerNode::default();
        for node in reader.set()?.iter() {
            queue_delays.set(node, UNIT * u64::from(reader.u16()?));
        }
        Ok(Links { origin, stamp, k, is_drained, neighbours, queue_delays })
    }
}

/// The groups that a node has joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// The node.
    pub origin: NodeId,
    /// Its epoch and the number of the announcement.
    pub stamp: Stamp,
    /// The groups, in order, each once.
    pub joined: Vec<GroupId>,
}

/// The most groups that a node joins.
pub(crate) const MOST_JOINED: usize = 4096;

impl Groups {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.node(self.origin);
        writer.stamp(self.stamp);
        writer.varint(self.joined.len() as u64);
        let mut last = 0;
        for group in &self.joined {
            writer.varint(u64::from(group.0 - last));
            last = group.0;
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Groups, Malformed> {
        let (origin, stamp) = (reader.node()?, reader.stamp()?);
        let count = reader.varint()?;
        if count > MOST_JOINED as u64 {
            return Err(Malformed);
        }
        let mut joined = Vec::new();
        let mut last: Option<u32> = None;
        for _ in 0..count {
            let step = u32::try_from(reader.varint()?).map_err(|_| Malformed)?;
            // The first group may be 0; after that a step of 0 would name a group twice.
            if last.is_some() && step == 0 {
                return Err(Malformed);
            }
            let group = last.unwrap_or(0).checked_add(step).ok_or(Malformed)?;
            joined.push(GroupId(group));
            last = Some(group);
        }
        Ok(Groups { origin, stamp, joined })
    }
}
