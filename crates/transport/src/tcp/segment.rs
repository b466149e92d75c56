//! A TCP segment as the endpoints hand it to each other: the header fields that steer a connection (RFC 9293, RFC 7323,
//! RFC 2018) and the length of a payload that is never carried. Windows are already scaled; sequence numbers are those
//! of the wire.

/// The flags of a header that the endpoint uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// No more data from this side.
    pub const FIN: Flags = Flags(0x01);
    /// Opens a connection.
    pub const SYN: Flags = Flags(0x02);
    /// The sender has nothing more to add for now: the receiver is to hand on what it has.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Flags = Flags(0x10);
    /// A congestion mark has arrived (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The window has been reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// These flags and those of `other`.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// The bits as they stand in byte 13 of the header.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// At most three SACK blocks fit beside timestamps (RFC 2018, section 3).
pub const MAX_SACK: usize = 3;

/// IPv4 and TCP header without options, in bytes.
const HEADERS: u32 = 40;
/// Timestamps with their two bytes of padding (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;
/// MSS, SACK-permitted, timestamps and window scale on a SYN, as Linux `tcp_syn_options` lays them out.
const SYN_OPTIONS: u32 = 20;

/// The SACK blocks of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sack {
    blocks: [(u32, u32); MAX_SACK],
    count: u8,
}

impl Sack {
    /// Appends a block; what does not fit is left out.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (start, end);
            self.count += 1;
        }
    }
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN or FIN).
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Receive window in bytes, already scaled.
    pub window: u32,
    /// The sender's clock in its ticks of 1 ms.
    pub tsval: u32,
    /// The echoed clock.
    pub tsecr: u32,
    /// Selective acknowledgements; read with [`Segment::sack`].
    pub sack: Sack,
    /// Payload in bytes.
    pub len: u16,
    /// Header flags.
    pub flags: Flags,
}

impl Segment {
    /// The SACK blocks, newest first; a DSACK comes before all others (RFC 2883).
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack.blocks[..usize::from(self.sack.count)]
    }

    /// Appends a SACK block; what does not fit is left out.
    pub fn push_sack(&mut self, start: u32, end: u32) {
        self.sack.push(start, end);
    }

    /// How much sequence space it takes: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        u32::from(self.len) + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }

    /// Bytes of the IPv4 packet that carries it.
    pub fn packet_len(&self) -> u32 {
        let options = if self.flags.has(Flags::SYN) {
            SYN_OPTIONS
        } else {
            // Blocks of eight bytes after four of padding, kind and length.
            TIMESTAMPS + if self.sack.count == 0 { 0 } else { 4 + 8 * u32::from(self.sack.count) }
        };
        HEADERS + options + u32::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_fills_the_mtu() {
        let segment = Segment { len: 1448, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(segment.packet_len(), 1500);
    }

    #[test]
    fn an_acknowledgement_grows_with_its_blocks_and_holds_three() {
        let mut ack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(ack.packet_len(), 52);
        for n in 0..5 {
            ack.push_sack(n, n + 1);
        }
        assert_eq!(ack.sack(), &[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(ack.packet_len(), 80);
        assert!(size_of::<Segment>() <= 64);
    }
}
