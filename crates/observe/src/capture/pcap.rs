//! The format pcap (draft-ietf-opsawg-pcap, sections 4 and 5): one header, then packets.

use super::input::Input;
use super::{Ended, Found, MOST_CAPTURED};
use crate::bytes::Order;
use std::io::{self, Read};
use weir_base::Time;

/// Length of the file's header in bytes.
pub(super) const HEADER: usize = 24;
/// Length of a packet's header in bytes.
const RECORD: usize = 16;

/// What the first four bytes say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    order: Order,
    /// Nanoseconds in a unit of the fraction of a second.
    unit: u64,
}

impl Kind {
    pub(super) fn of(magic: [u8; 4]) -> Option<Kind> {
        let (order, unit) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            _ => return None,
        };
        Some(Kind { order, unit })
    }

    /// The header, from its bytes.
    pub(super) fn header(self, bytes: &[u8]) -> Header {
        // The upper 16 bits tell of a checksum behind each packet, which is then among its bytes.
        let link_type = self.order.u32(bytes, 20).unwrap_or_default() as u16;
        Header { kind: self, link_type }
    }
}

#[derive(Debug)]
pub(super) struct Header {
    kind: Kind,
    link_type: u16,
}

impl Header {
    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Found> {
        let at_byte = input.position();
        if !input.has(RECORD)? {
            return Ok(Found::End(if input.has(1)? { Ended::Cut { at_byte } } else { Ended::Complete }));
        }
        let record = input.peek(RECORD);
        let word = |at| self.kind.order.u32(record, at).unwrap_or_default();
        let (seconds, fraction, captured, length) = (word(0), word(4), word(8), word(12));
        if captured > MOST_CAPTURED {
            let why = "a packet would hold more bytes than any capture keeps (262144)";
            return Ok(Found::End(Ended::Damaged { at_byte, why }));
        }
        let whole = RECORD + captured as usize;
        if !input.has(whole)? {
            return Ok(Found::End(Ended::Cut { at_byte }));
        }
        input.take(whole);
        let at = Time::from_nanos(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.kind.unit);
        let captured = captured as usize;
        Ok(Found::Frame { at, link_type: self.link_type, from: captured, captured, length })
    }
}
