//! The format pcapng (draft-ietf-opsawg-pcapng, sections 3 and 4): sections of blocks. Those that describe interfaces, hold packets or count
//! them are read; all others are left out.

use super::input::Input;
use super::{Ended, Found, MOST_CAPTURED, Unread};
use crate::bytes::Order;
use std::io::{self, Read};
use weir_base::Time;

/// The type of a section header, which reads the same in both orders.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// The packet block that Enhanced Packet Blocks have replaced (appendix A of the draft).
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Bytes around the body of a block: type and length before it, the length again behind it.
const AROUND: u32 = 12;
/// Largest length of a block that is read as a whole; larger ones hold no packet that is taken. It leaves a packet room for its options.
const MOST_READ: u32 = MOST_CAPTURED + (1 << 20);
/// Most interfaces of a section, so that a file cannot make weir keep any number of them.
const MOST_INTERFACES: usize = 65_536;

/// The unit of an interface's stamps.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    /// Units in a second.
    units: u64,
    /// Seconds that are added to each stamp.
    offset: i64,
}

impl Interface {
    /// The time of a stamp; the end of what a [`Time`] holds where it is beyond that.
    fn time(self, stamp: u64) -> Time {
        let nanos = u128::from(stamp) * 1_000_000_000 / u128::from(self.units);
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = nanos.saturating_add(i128::from(self.offset) * 1_000_000_000).max(0);
        Time::from_nanos(u64::try_from(shifted).unwrap_or(u64::MAX))
    }
}

/// A section, with what it has said so far.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// Losses of each interface, as its last statistics tell.
    dropped: Vec<u64>,
}

impl Section {
    pub(super) fn new() -> Section {
        Section { order: Order::Little, interfaces: vec![], dropped: vec![] }
    }

    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>, unread: &mut Unread) -> io::Result<Found> {
        loop {
            let at_byte = input.position();
            let damaged = |why| Ok(Found::End(Ended::Damaged { at_byte, why }));
            let cut = Ok(Found::End(Ended::Cut { at_byte }));
            if !input.has(AROUND as usize)? {
                return if input.has(1)? { cut } else { Ok(Found::End(Ended::Complete)) };
            }
            let head = input.peek(AROUND as usize);
            if head.starts_with(&SECTION) {
                *self = match head[8..] {
                    [0x4d, 0x3c, 0x2b, 0x1a, ..] => Section { order: Order::Little, ..Section::new() },
                    [0x1a, 0x2b, 0x3c, 0x4d, ..] => Section { order: Order::Big, ..Section::new() },
                    _ => return damaged("a section does not say in which order its bytes are"),
                };
            }
            let order = self.order;
            let (kind, length) =
                (order.u32(head, 0).unwrap_or_default(), order.u32(head, 4).unwrap_or_default());
            if length < AROUND || length % 4 != 0 {
                return damaged("a block has a length that no block can have");
            }
            if length > MOST_READ {
                if matches!(kind, INTERFACE | OLD_PACKET | SIMPLE_PACKET | ENHANCED_PACKET | SECTION_HEADER) {
                    return damaged("a block is longer than those with packets are");
                }
                if !input.skip(length.into())? {
                    return cut;
                }
                continue;
            }
            if !input.has(length as usize)? {
                return cut;
            }
            let block = input.take(length as usize);
            if order.u32(block, block.len() - 4) != Some(length) {
                return damaged("the two lengths of a block differ");
            }
            let body = &block[8..block.len() - 4];
            match kind {
                INTERFACE if self.interfaces.len() < MOST_INTERFACES => match self.interface(body) {
                    Some(interface) => self.interfaces.push(interface),
                    None => return damaged("an interface is not described in full"),
                },
                INTERFACE => return damaged("a section has more than 65536 interfaces"),
                STATISTICS => self.statistics(body, unread),
                SIMPLE_PACKET => unread.packets_without_time += 1,
                ENHANCED_PACKET | OLD_PACKET => match self.packet(kind, body, unread) {
                    Ok(Some(Packet { at, link_type, captured, length })) => {
                        // The packet's bytes stand 20 bytes behind the start of the body, and 4 bytes of length behind that.
                        let from = body.len() + 4 - PACKET_HEAD;
                        return Ok(Found::Frame { at, link_type, from, captured, length });
                    }
                    Ok(None) => {}
                    Err(why) => return damaged(why),
                },
                _ => {}
            }
        }
    }

    /// An Interface Description Block.
    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let link_type = self.order.u16(body, 0)?;
        let mut interface = Interface { link_type, units: 1_000_000, offset: 0 };
        for (code, value) in self.options(body.get(8..)?) {
            match (code, value) {
                // if_tsresol: a negative power of ten, or with the highest bit one of two.
                (9, [resolution, ..]) => {
                    let (base, exponent) =
                        if resolution & 0x80 == 0 { (10_u64, *resolution) } else { (2, resolution & 0x7f) };
                    interface.units = base.checked_pow(exponent.into())?;
                }
                // if_tsoffset, in seconds.
                (14, value) if value.len() >= 8 => interface.offset = self.u64(value)? as i64,
                _ => {}
            }
        }
        Some(interface)
    }

    /// An integer of 64 bits.
    fn u64(&self, bytes: &[u8]) -> Option<u64> {
        let (first, second) = (u64::from(self.order.u32(bytes, 0)?), u64::from(self.order.u32(bytes, 4)?));
        Some(if self.order == Order::Big { first << 32 | second } else { second << 32 | first })
    }

    /// The options at the end of a block, up to one that is not whole.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (code, length) = (order.u16(bytes, 0)?, usize::from(order.u16(bytes, 2)?));
            let value = bytes.get(4..4 + length).filter(|_| code != 0)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }

    /// An Interface Statistics Block. Its counters are totals since the capture began.
    fn statistics(&mut self, body: &[u8], unread: &mut Unread) {
        let Some(interface) = self.order.u32(body, 0).map(|index| index as usize) else { return };
        if interface >= self.interfaces.len() {
            return;
        }
        let mut dropped = 0u64;
        for (code, value) in self.options(body.get(12..).unwrap_or_default()) {
            // isb_ifdrop and isb_osdrop.
            if let (5 | 7, Some(count)) = (code, self.u64(value)) {
                dropped = dropped.saturating_add(count);
            }
        }
        self.dropped.resize(self.interfaces.len(), 0);
        let more = dropped.saturating_sub(self.dropped[interface]);
        self.dropped[interface] += more;
        unread.packets_dropped_by_capture = unread.packets_dropped_by_capture.saturating_add(more);
    }

    /// A block with a packet; `None` if its interface is unknown.
    fn packet(&self, kind: u32, body: &[u8], unread: &mut Unread) -> Result<Option<Packet>, &'static str> {
        let order = self.order;
        let word = |at| order.u32(body, at).ok_or("a packet's header is not whole");
        let index = match kind {
            OLD_PACKET => order.u16(body, 0).map(u32::from).ok_or("a packet's header is not whole")?,
            _ => word(0)?,
        };
        let (high, low, captured, length) = (word(4)?, word(8)?, word(12)?, word(16)?);
        if captured > MOST_CAPTURED || body.len() - PACKET_HEAD < captured as usize {
            return Err("a packet would hold more bytes than its block");
        }
        let Some(interface) = self.interfaces.get(index as usize) else {
            unread.packets_without_interface += 1;
            return Ok(None);
        };
        Ok(Some(Packet {
            at: interface.time(u64::from(high) << 32 | u64::from(low)),
            link_type: interface.link_type,
            captured: captured as usize,
            length,
        }))
    }
}

/// Bytes of a block's body before those of the packet.
const PACKET_HEAD: usize = 20;

/// What a block says of its packet.
struct Packet {
    at: Time,
    link_type: u16,
    captured: usize,
    length: u32,
}
