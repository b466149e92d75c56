//! An event of a queue, and its form in the ring buffer of `bpf/observe.c`.

use weir_base::{Ecn, Time};

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The queue accepted it.
    Enqueued,
    /// The queue handed it to the device.
    Dequeued,
    /// It was dropped, before or after the queue had accepted it, for this reason of the kernel's (`enum skb_drop_reason`).
    Dropped {
        /// The number, which differs between kernels.
        reason: u16,
    },
    /// The queue was empty, and the packet went past it to the device.
    Passed,
}

/// A packet that something happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
    /// The address of the kernel's buffer. It is used again.
    pub packet: u64,
    /// A hash of addresses, protocol and ports.
    pub flow: u32,
    /// The sequence number of TCP; 0 for other protocols.
    pub sequence: u32,
    /// Length of the frame.
    pub bytes: u32,
    /// Segments that a large packet is to be cut into; 1 for others.
    pub segments: u16,
    /// Bytes of data in each of its segments but the last; 0 of a packet that is not to be cut.
    pub segment_bytes: u16,
    /// The codepoint; of an arrival, that which the packet brought.
    pub ecn: Ecn,
}

impl Sighting {
    /// Length of an event in the ring buffer (`struct event` of `bpf/observe.c`).
    pub const LENGTH: usize = 40;

    /// Reads an event, whose words are in this machine's order. `None` if it is too short, or of an unknown kind.
    pub fn read(bytes: &[u8]) -> Option<Sighting> {
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let short = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let reason = short(32)?;
        let what = match bytes.get(36)? {
            0 => What::Enqueued,
            1 => What::Dequeued,
            2 => What::Dropped { reason },
            3 => What::Passed,
            _ => return None,
        };
        Some(Sighting {
            at: Time::from_nanos(long(0)?),
            what,
            packet: long(8)?,
            flow: word(16)?,
            sequence: word(20)?,
            bytes: word(24)?,
            segments: short(28)?.max(1),
            segment_bytes: short(30)?,
            ecn: Ecn::from_bits(*bytes.get(37)?),
        })
    }
}
