//! A TCP segment between the endpoints: the header fields that control a connection (RFC 9293, RFC 7323, RFC 2018) and the
//! length of the payload, which is not carried. Windows are already scaled; sequence numbers are those of the wire.

/// The flags of a header that the endpoint uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// No more data from this side.
    pub const FIN: Flags = Flags(0x01);
    /// Opens a connection.
    pub const SYN: Flags = Flags(0x02);
    /// The sender has no more data for now: the receiver must pass its data to the application.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// A congestion mark has arrived (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The window has been reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);
    /// Accurate ECN (RFC 9768): the highest bit of a 3-bit counter, with CWR and ECE.
    pub const AE: Flags = Flags(0x100);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// These flags and the flags of `other`.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// The low 12 bits of bytes 12 and 13 of the header.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// At most three SACK blocks fit beside timestamps (RFC 2018, section 3).
pub const MAX_SACK: usize = 3;

/// IPv4 and TCP header without options, in bytes.
const HEADERS: u32 = 40;
/// Timestamps with their two bytes of padding (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;
/// MSS, SACK-permitted, timestamps and window scale on a SYN, in the layout of Linux `tcp_syn_options`.
const SYN_OPTIONS: u32 = 20;

/// The SACK blocks of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sack {
    blocks: [(u32, u32); MAX_SACK],
    count: u8,
}

impl PartialEq for Sack {
    /// Compares the blocks in use only; entries behind the last block are left from an earlier use.
    fn eq(&self, other: &Sack) -> bool {
        self.blocks() == other.blocks()
    }
}
impl Eq for Sack {}

impl Sack {
    /// The blocks, newest first.
    pub fn blocks(&self) -> &[(u32, u32)] {
        // Cannot fail; a slice by index would check the count for each packet that nobody asks for its blocks.
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Appends a block; a block beyond [`MAX_SACK`] is left out.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (start, end);
            self.count += 1;
        }
    }
}

/// The option of Accurate ECN (RFC 9768, section 3.2.3): payload bytes that arrived with each codepoint, 24 bits of each
/// counter, in wire order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccEcnOption {
    bytes: [u8; 9],
    /// 0 without an option; otherwise the number of counters, plus 3 if ECT(1) is first.
    form: u8,
}

/// Number of counters that the option may hold.
const COUNTERS: u8 = 3;
/// Kinds of the option whose first counter is ECT(0), and ECT(1) (RFC 9768, section 5).
const ACCURATE_KINDS: [u8; 2] = [172, 174];
/// Largest length of a header's options, besides its 20 bytes.
const MOST_OPTIONS: u32 = 40;

impl AccEcnOption {
    /// No option.
    pub const NONE: AccEcnOption = AccEcnOption { bytes: [0; 9], form: 0 };

    /// An option with all three counters.
    pub fn new(ect0: u32, ce: u32, ect1: u32, ect1_first: bool) -> AccEcnOption {
        let order = if ect1_first { [ect1, ce, ect0] } else { [ect0, ce, ect1] };
        let mut bytes = [0; 9];
        for (into, counter) in bytes.chunks_exact_mut(3).zip(order) {
            into.copy_from_slice(&counter.to_be_bytes()[1..]);
        }
        AccEcnOption { bytes, form: if ect1_first { 2 * COUNTERS } else { COUNTERS } }
    }

    /// Number of counters in the option.
    fn count(self) -> u8 {
        if self.form > COUNTERS { self.form - COUNTERS } else { self.form }
    }

    /// The counter of bytes with CE, the second one in either order; `None` if it is left out.
    pub fn ce(&self) -> Option<u32> {
        let [.., high, middle, low, _, _, _] = self.bytes;
        (self.count() >= 2).then(|| u32::from_be_bytes([0, high, middle, low]))
    }

    /// Length of the option in bytes, with padding.
    fn len(self) -> u32 {
        match self.count() {
            0 => 0,
            // Kind, length and three bytes each.
            count => (2 + 3 * u32::from(count)).next_multiple_of(4),
        }
    }

    /// The option cut to at most `room` bytes: the last counters are left out first.
    fn within(self, room: u32) -> AccEcnOption {
        let mut fitting = self;
        while fitting.len() > room {
            fitting = if fitting.count() == 1 {
                AccEcnOption::NONE
            } else {
                AccEcnOption { form: fitting.form - 1, ..fitting }
            };
        }
        fitting
    }

    /// The bytes of the option in the header, without padding; empty without an option.
    pub fn to_option(&self) -> Vec<u8> {
        let count = usize::from(self.count());
        if count == 0 {
            return vec![];
        }
        let kind = ACCURATE_KINDS[usize::from(self.form > COUNTERS)];
        let mut option = vec![kind, 2 + 3 * count as u8];
        option.extend_from_slice(&self.bytes[..3 * count]);
        option
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
    /// Timestamp of the sender's clock, in its ticks.
    pub tsval: u32,
    /// Timestamp of the peer that is echoed.
    pub tsecr: u32,
    /// Selective acknowledgements; read with [`Segment::sack`].
    pub sack: Sack,
    /// Payload in bytes.
    pub len: u16,
    /// Header flags.
    pub flags: Flags,
    /// The option of Accurate ECN, if it is negotiated.
    pub counters: AccEcnOption,
}

impl Segment {
    /// The SACK blocks, newest first; a DSACK comes before all others (RFC 2883).
    pub fn sack(&self) -> &[(u32, u32)] {
        self.sack.blocks()
    }

    /// Appends a SACK block; a block beyond [`MAX_SACK`] is left out.
    pub fn push_sack(&mut self, start: u32, end: u32) {
        self.sack.push(start, end);
    }

    /// Adds the option of Accurate ECN as far as there is room besides timestamps and SACK blocks, and besides the payload in a
    /// segment of `mss` bytes. If the counters `matter`, a third block is removed to make room (Linux `tcp_options_fit_accecn`).
    pub fn add_counters(&mut self, counters: AccEcnOption, matter: bool, mss: u16) {
        if matter && self.sack.count == MAX_SACK as u8 {
            self.sack.count -= 1;
        }
        let header = MOST_OPTIONS - self.options_len();
        let payload = u32::from(mss.saturating_sub(self.len));
        self.counters = counters.within(header.min(if self.len == 0 { MOST_OPTIONS } else { payload }));
    }

    fn options_len(&self) -> u32 {
        // Blocks of eight bytes after four of padding, kind and length.
        TIMESTAMPS + if self.sack.count == 0 { 0 } else { 4 + 8 * u32::from(self.sack.count) }
    }

    /// Length in sequence space: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        u32::from(self.len) + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }

    /// Bytes of the IPv4 packet that carries it.
    #[inline]
    pub fn packet_len(&self) -> u32 {
        if u16::from(self.sack.count | self.counters.form) | (self.flags.0 & Flags::SYN.0) == 0 {
            // Nearly all segments are of this kind.
            return HEADERS + TIMESTAMPS + u32::from(self.len);
        }
        let options =
            if self.flags.has(Flags::SYN) { SYN_OPTIONS } else { self.options_len() + self.counters.len() };
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

    #[test]
    fn accecn_counters_use_the_option_space_that_sack_blocks_leave() {
        let counters = AccEcnOption::new(1, 2, 3, false);
        // Blocks, whether the counters matter, bytes of the packet, blocks and counters in it.
        for (blocks, matter, length, kept, told) in [
            (0, false, 64, 0, 3),
            (1, false, 76, 1, 3),
            (2, false, 80, 2, 2),
            (3, false, 80, 3, 0),
            (3, true, 80, 2, 2),
        ] {
            let mut ack = Segment { flags: Flags::ACK, ..Segment::default() };
            (0..blocks).for_each(|n| ack.push_sack(n, n + 1));
            ack.add_counters(counters, matter, 1448);
            assert_eq!((ack.packet_len(), ack.sack().len(), ack.counters.count()), (length, kept, told));
        }
        // A full segment has no room for them.
        let mut data = Segment { len: 1448, flags: Flags::ACK, ..Segment::default() };
        data.add_counters(counters, true, 1448);
        assert_eq!(data.counters, AccEcnOption::NONE);
    }

    #[test]
    fn the_accecn_option_has_the_layout_of_rfc_9768() {
        assert_eq!(AccEcnOption::new(0x10203, 5, 1, false).to_option(), [172, 11, 1, 2, 3, 0, 0, 5, 0, 0, 1]);
        let ect1_first = AccEcnOption::new(1, 5, 0xffffff, true);
        assert_eq!(ect1_first.to_option(), [174, 11, 255, 255, 255, 0, 0, 5, 0, 0, 1]);
        assert_eq!(ect1_first.within(8).to_option(), [174, 8, 255, 255, 255, 0, 0, 5]);
        assert_eq!((ect1_first.ce(), ect1_first.within(7).ce()), (Some(5), None));
    }
}
