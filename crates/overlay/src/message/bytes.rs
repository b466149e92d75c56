//! Reading and writing of numbers, sets of nodes and names of flows. A reader never panics.

use super::Stamp;
use crate::nodes::{NodeId, Nodes};
use crate::packet::Flow;

/// The bytes are no message of the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A set of up to this many nodes is listed; a larger one is a bitmap.
const LISTED: usize = 15;
/// Marks a bitmap; the lower bits are its length in bytes.
const BITMAP: u8 = 0x80;

#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = left;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = left;
        Ok(*taken)
    }
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }
    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }
    #[inline]
    pub(crate) fn u24(&mut self) -> Result<u32, Malformed> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }
    /// A number in groups of seven bits, lowest first.
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }
    pub(crate) fn node(&mut self) -> Result<NodeId, Malformed> {
        NodeId::new(self.u8()?).ok_or(Malformed)
    }
    pub(crate) fn stamp(&mut self) -> Result<Stamp, Malformed> {
        Ok(Stamp { epoch: self.u32()?, sequence: self.u32()? })
    }
    #[inline]
    pub(crate) fn flow(&mut self) -> Result<Flow, Malformed> {
        Ok(Flow { source: self.node()?, generation: self.u8()?, number: self.u16()? })
    }
    pub(crate) fn set(&mut self) -> Result<Nodes, Malformed> {
        let first = self.u8()?;
        if first & BITMAP != 0 {
            let length = usize::from(first & !BITMAP);
            if length > 16 {
                return Err(Malformed);
            }
            let mut bits = [0; 16];
            bits[..length].copy_from_slice(self.take(length)?);
            return Ok(Nodes::from_bits(u128::from_le_bytes(bits)));
        }
        if usize::from(first) > LISTED {
            return Err(Malformed);
        }
        let mut set = Nodes::EMPTY;
        for _ in 0..first {
            set = set.with(self.node()?);
        }
        // A node that is listed twice would leave values without a node.
        if set.len() == usize::from(first) { Ok(set) } else { Err(Malformed) }
    }
    /// A set of which a bit each says whether a node of `among` is in it.
    pub(crate) fn subset(&mut self, among: Nodes) -> Result<Nodes, Malformed> {
        let bits = self.take(among.len().div_ceil(8))?;
        if bits.iter().all(|byte| *byte == 0) {
            return Ok(Nodes::EMPTY);
        }
        let chosen = among.iter().enumerate().filter(|(rank, _)| bits[rank / 8] >> (rank % 8) & 1 == 1);
        Ok(chosen.map(|(_, node)| node).collect())
    }
}

#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }
    pub(crate) fn u24(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes()[1..]);
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }
    pub(crate) fn node(&mut self, node: NodeId) {
        self.u8(node.number());
    }
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        self.u32(stamp.epoch);
        self.u32(stamp.sequence);
    }
    pub(crate) fn flow(&mut self, flow: Flow) {
        self.node(flow.source);
        self.u8(flow.generation);
        self.u16(flow.number);
    }
    pub(crate) fn set(&mut self, set: Nodes) {
        let length = (u128::BITS - set.bits().leading_zeros()).div_ceil(8) as usize;
        if set.len() <= LISTED.min(length) {
            self.u8(set.len() as u8);
            set.iter().for_each(|node| self.node(node));
        } else {
            self.u8(BITMAP | length as u8);
            self.0.extend_from_slice(&set.bits().to_le_bytes()[..length]);
        }
    }
    /// The nodes of `set` among those of `among`, a bit each.
    pub(crate) fn subset(&mut self, set: Nodes, among: Nodes) {
        if set.is_empty() {
            return self.0.resize(self.0.len() + among.len().div_ceil(8), 0);
        }
        let (mut bits, mut count) = (0u8, 0);
        for node in among.iter() {
            bits |= u8::from(set.has(node)) << (count % 8);
            count += 1;
            if count % 8 == 0 {
                self.u8(std::mem::take(&mut bits));
            }
        }
        if count % 8 != 0 {
            self.u8(bits);
        }
    }
}
