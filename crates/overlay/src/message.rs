//! Messages between neighbours, and their bytes. A datagram of signalling holds one message after another; each tells its own end.
//!
//! Source: digest A 2.2, A 2.3, with other layouts. The study's depths take 9 bytes a bin; here a bin takes 2 bytes without sensitive
//! traffic and 4 with it, and a bit or a byte for its name. A depth message states the range of names that it covers, so one that does
//! not fit a datagram is continued in the next, and a bin that is left out has depth zero. Numbers are big-endian.
//!
//! | first byte | message |
//! |---|---|
//! | 0x10 | depths: stamp, range, nodes, sums over groups, groups |
//! | 0x11 | hello: node, boot epoch, the neighbour's epoch if it was heard |
//! | 0x13 | links of a node, flooded |
//! | 0x14 | groups that a node has joined, flooded |
//! | 0x15 | a receiver's report, for the node where a flow enters |
//! | 0x16 | the signature of the announcement before it, if announcements are signed ([`crate::site`]) |
//! | 0x30 | the sender's estimate of the link's capacity |
//! | 0x38, 0x39 | a flow's context is known, is unknown |
//! | 0x40 to 0x4f | no message but a packet: [`header`] |

mod announcement;
pub(crate) mod bytes;
mod depths;
pub mod header;
mod report;
mod short;

pub(crate) use announcement::MOST_JOINED;
pub use announcement::{Groups, Hello, LinkInfo, Links};
pub use bytes::Malformed;
pub use depths::{Depth, Depths, GroupDepth, GroupDepths, Range};
pub use report::Report;

use crate::packet::Flow;
use bytes::{Reader, Writer};
use weir_base::Rate;

/// First byte of each kind of message.
const DEPTHS: u8 = 0x10;
const HELLO: u8 = 0x11;
const LINKS: u8 = 0x13;
const GROUPS: u8 = 0x14;
const REPORT: u8 = 0x15;
const CAPACITY: u8 = 0x30;
const KNOWN: u8 = 0x38;
const UNKNOWN: u8 = 0x39;

/// The boot epoch of a node and the number of its message, so that a restarted node with low numbers is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Grows with each start of the node.
    pub epoch: u32,
    /// Grows with each message.
    pub sequence: u32,
}

impl Stamp {
    /// Whether it is newer, in modular order.
    pub fn is_newer_than(self, other: Stamp) -> bool {
        let newer = |a: u32, b: u32| a != b && a.wrapping_sub(b) < 1 << 31;
        newer(self.epoch, other.epoch) || self.epoch == other.epoch && newer(self.sequence, other.sequence)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Depths of the sender's bins.
    Depths(Depths),
    /// A sign of life.
    Hello(Hello),
    /// The links of a node.
    Links(Links),
    /// The groups of a node.
    Groups(Groups),
    /// How many packets of a flow have reached a receiver.
    Report(Report),
    /// The sender's estimate of the link's capacity, in whole kbit/s, rounded up.
    Capacity(Rate),
    /// The sender knows the flow's context.
    Known(Flow),
    /// The sender has had a packet of the flow and knows no context.
    Unknown(Flow),
}

impl Message {
    /// Writes it behind the bytes that are there.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut writer = Writer(bytes);
        match self {
            Message::Depths(depths) => {
                writer.u8(DEPTHS);
                depths.write(&mut writer);
            }
            Message::Hello(hello) => {
                writer.u8(HELLO);
                hello.write(&mut writer);
            }
            Message::Links(links) => {
                writer.u8(LINKS);
                links.write(&mut writer);
            }
            Message::Groups(groups) => {
                writer.u8(GROUPS);
                groups.write(&mut writer);
            }
            Message::Report(report) => {
                writer.u8(REPORT);
                report.write(&mut writer);
            }
            Message::Capacity(rate) => {
                writer.u8(CAPACITY);
                writer.u24(rate.bits_per_sec().div_ceil(1000).min(0xff_ffff) as u32);
            }
            Message::Known(flow) => {
                writer.u8(KNOWN);
                writer.flow(*flow);
            }
            Message::Unknown(flow) => {
                writer.u8(UNKNOWN);
                writer.flow(*flow);
            }
        }
    }

    /// Reads the first message of these bytes and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes begin with no whole message.
    pub fn decode(bytes: &[u8]) -> Result<(Message, &[u8]), Malformed> {
        let mut reader = Reader(bytes);
        let message = match reader.u8()? {
            DEPTHS => Message::Depths(Depths::read(&mut reader)?),
            HELLO => Message::Hello(Hello::read(&mut reader)?),
            LINKS => Message::Links(Links::read(&mut reader)?),
            GROUPS => Message::Groups(Groups::read(&mut reader)?),
            REPORT => Message::Report(Report::read(&mut reader)?),
            CAPACITY => Message::Capacity(Rate::from_bits_per_sec(u64::from(reader.u24()?) * 1000)),
            KNOWN => Message::Known(reader.flow()?),
            UNKNOWN => Message::Unknown(reader.flow()?),
            _ => return Err(Malformed),
        };
        Ok((message, reader.0))
    }
}

#[cfg(test)]
mod tests;
