//! The CP header: the first bytes of the UDP payload (section 3.1.2, appendix A). Its length is the same on all three legs,
//! so an AP rewrites it in place.
//!
//! Version 1 is the published one, 20 bytes: a prefix word and four words. Version 2 is our own, 36 bytes: the prefix, a
//! sequence number of 64 bits (an epoch of 32 bits, which grows with every restart, and a counter of 32 bits), the four words
//! and a tag of 64 bits ([`crate::seal`]).
//!
//! | bytes | version 1 | version 2 |
//! |---|---|---|
//! | 0 to 3 | prefix | prefix |
//! | 4 to 11 | words 1 and 2 | epoch and sequence number |
//! | 12 to 19 | words 3 and 4 | words 1 and 2 |
//! | 20 to 35 | - | words 3 and 4, tag |
//!
//! Numbers are big-endian. The source does not give the bit positions of flags and probe fields, the code of NOOP or the codes
//! of addresses; the choices here are ours, in the order of its appendix A.

use crate::Ticks;

/// The largest value of a cell, an operation or a report: 24 bits.
pub const VALUE_MAX: u32 = (1 << 24) - 1;
/// Applications that a header can name (5 bits). The source says 31 once and tests with 32; all 32 codes are used.
pub const APPLICATIONS: usize = 32;
/// Flows of an application that a header can name (7 bits).
pub const FLOWS: usize = 128;
/// Words that carry operations, a probe or reports.
pub const WORDS: usize = 4;
/// Length of the longest header in bytes.
pub const LONGEST: usize = Version::Two.length();

/// Version of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// As published: 20 bytes, a sequence number of 16 bits, no authentication.
    One,
    /// 36 bytes, with epoch, sequence number of 32 bits and tag.
    Two,
}

impl Version {
    /// Length of the header in bytes.
    pub const fn length(self) -> usize {
        match self {
            Version::One => 20,
            Version::Two => 36,
        }
    }
    /// Offset of the four words in bytes.
    const fn words(self) -> usize {
        match self {
            Version::One => 4,
            Version::Two => 12,
        }
    }
    const fn nibble(self) -> u8 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }
}

/// Why bytes are not a CP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// Fewer bytes than a header of its version.
    Short,
    /// A version that is neither 1 nor 2.
    Version(u8),
}

/// The flags of the prefix. Undefined bits pass unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The packet is between two APs; its words are a probe.
    pub const DATAPATH: Flags = Flags(0x80);
    /// The local AP carries out the operations and drops the packet.
    pub const LSCOPE: Flags = Flags(0x40);
    /// The local AP carries out the operations and returns the packet with reports.
    pub const REFLECT: Flags = Flags(0x20);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// These flags with `other` set.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// These flags with `other` cleared.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// The first word, common to all legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Version nibble.
    pub version: Version,
    /// Cluster id (cid): the application, 0 to 31.
    pub application: u8,
    /// Flow id (fid) within the application, 0 to 127.
    pub flow: u8,
    /// Number of the packet's CP transport; APs ignore it.
    pub protocol: u8,
    /// Flags.
    pub flags: Flags,
}

impl Prefix {
    /// Reads the prefix and checks that the whole header is there.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes are no CP header.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Prefix, HeaderError> {
        let [first, second, protocol, flags, ..] = *bytes else { return Err(HeaderError::Short) };
        let version = match first >> 4 {
            1 => Version::One,
            2 => Version::Two,
            other => return Err(HeaderError::Version(other)),
        };
        if bytes.len() < version.length() {
            return Err(HeaderError::Short);
        }
        let application = (first & 0x0f) << 1 | second >> 7;
        Ok(Prefix { version, application, flow: second & 0x7f, protocol, flags: Flags(flags) })
    }

    /// Writes the prefix over the first four bytes.
    #[inline]
    pub fn write(self, bytes: &mut [u8]) {
        bytes[0] = self.version.nibble() << 4 | (self.application >> 1) & 0x0f;
        bytes[1] = self.application << 7 | self.flow & 0x7f;
        bytes[2] = self.protocol;
        bytes[3] = self.flags.0;
    }
}

/// The four words of a header.
#[inline]
pub fn words(version: Version, bytes: &[u8]) -> [u32; WORDS] {
    let at = version.words();
    std::array::from_fn(|j| read_u32(bytes, at + 4 * j))
}

/// Writes the four words.
#[inline]
pub fn set_words(version: Version, bytes: &mut [u8], words: [u32; WORDS]) {
    let at = version.words();
    for (j, word) in words.into_iter().enumerate() {
        write_u32(bytes, at + 4 * j, word);
    }
}

/// The 64-bit sequence number of a version 2 header: epoch above, count below.
#[inline]
pub fn sequence(bytes: &[u8]) -> u64 {
    u64::from(read_u32(bytes, 4)) << 32 | u64::from(read_u32(bytes, 8))
}

/// Writes the 64-bit sequence number of a version 2 header.
#[inline]
pub fn set_sequence(bytes: &mut [u8], sequence: u64) {
    bytes[4..12].copy_from_slice(&sequence.to_be_bytes());
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn write_u32(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
}

/// An operation: it sets the cell at (address, own flow id) to the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Address of the cell; see [`crate::cell`].
    pub address: u8,
    /// Value, 24 bits.
    pub value: u32,
}

impl Operation {
    /// Writes nothing: all ones, a write to the read-only address FLOW.
    pub const NOOP: Operation = Operation { address: 255, value: VALUE_MAX };

    /// Reads a word.
    pub const fn from_word(word: u32) -> Operation {
        Operation { address: (word >> 24) as u8, value: word & VALUE_MAX }
    }
    /// The word.
    pub const fn word(self) -> u32 {
        (self.address as u32) << 24 | self.value & VALUE_MAX
    }
}

/// A report pointer: the value of a cell at one of the addresses R1 to R4. It selects the cell to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Address of the cell to report.
    pub address: u8,
    /// Offset of the cell to report.
    pub offset: u8,
    /// Validation token, which the report returns with the value. APs attach no meaning to it.
    pub id: u8,
}

impl Pointer {
    /// Reads a cell's value.
    pub const fn from_value(value: u32) -> Pointer {
        Pointer { address: (value >> 16) as u8, offset: (value >> 8) as u8, id: value as u8 }
    }
    /// The cell's value.
    pub const fn value(self) -> u32 {
        (self.address as u32) << 16 | (self.offset as u32) << 8 | self.id as u32
    }
}

/// A report: the value of a pointer's cell when the packet passed the AP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// The pointer's token.
    pub id: u8,
    /// The cell's value, 24 bits.
    pub value: u32,
}

impl Report {
    /// Reads a word.
    pub const fn from_word(word: u32) -> Report {
        Report { id: (word >> 24) as u8, value: word & VALUE_MAX }
    }
    /// The word.
    pub const fn word(self) -> u32 {
        (self.id as u32) << 24 | self.value & VALUE_MAX
    }
}

/// The fields that an AP sends to the other AP with every packet (128 bits in version 1; in version 2 the sequence number
/// has words of its own and the loss fraction has 32 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probe {
    /// Departure time of the packet by the sending AP's clock.
    pub timestamp: Ticks,
    /// The last timestamp from the other AP and the delay since its arrival; `None` before the first one. On the wire both
    /// fields are then zero, so no AP sends a timestamp of zero.
    pub echo: Option<Echo>,
    /// Rate of one flowshare in the other direction, KiB/s, 24 bits; zero before the first estimate.
    pub bandwidth: u32,
    /// Fraction of the other direction's packets that were lost, in units of 2^-32.
    pub loss: u32,
    /// Packet counter of the sending AP. Version 1 carries its low 16 bits.
    pub sequence: u64,
}

/// A timestamp that returns to its AP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// The timestamp as it arrived.
    pub timestamp: Ticks,
    /// Time from its arrival to the departure of the echoing packet.
    pub delay: Ticks,
}

impl Probe {
    /// Reads the probe fields of a header.
    #[inline]
    pub fn read(version: Version, bytes: &[u8]) -> Probe {
        let [first, second, third, fourth] = words(version, bytes);
        // Four fields of 24 bits fill three words.
        let (echo, delay) =
            ((first << 16 | second >> 16) & VALUE_MAX, (second << 8 | third >> 24) & VALUE_MAX);
        let (loss, sequence) = match version {
            Version::One => (fourth & 0xffff_0000, u64::from(fourth & 0xffff)),
            Version::Two => (fourth, sequence(bytes)),
        };
        Probe {
            timestamp: Ticks::new(first >> 8),
            echo: (echo != 0 || delay != 0)
                .then(|| Echo { timestamp: Ticks::new(echo), delay: Ticks::new(delay) }),
            bandwidth: third & VALUE_MAX,
            loss,
            sequence,
        }
    }

    /// Writes the probe fields of a header.
    #[inline]
    pub fn write(self, version: Version, bytes: &mut [u8]) {
        let (echo, delay) = self.echo.map_or((0, 0), |echo| (echo.timestamp.get(), echo.delay.get()));
        let fourth = match version {
            Version::One => {
                // Rounded to 16 bits; a loss of 1 is 65535/65536.
                let loss = self.loss.saturating_add(0x8000) & 0xffff_0000;
                loss | (self.sequence & 0xffff) as u32
            }
            Version::Two => {
                set_sequence(bytes, self.sequence);
                self.loss
            }
        };
        let first = self.timestamp.get() << 8 | echo >> 16;
        let second = echo << 16 | delay >> 8;
        let third = delay << 24 | self.bandwidth & VALUE_MAX;
        set_words(version, bytes, [first, second, third, fourth]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_has_the_published_layout() {
        let mut bytes = [0; 20];
        let prefix = Prefix {
            version: Version::One,
            application: 0b10101,
            flow: 0b1100110,
            protocol: 9,
            flags: Flags::REFLECT,
        };
        prefix.write(&mut bytes);
        // 0001 10101 1100110, protocol, flags.
        assert_eq!(bytes[..4], [0b0001_1010, 0b1_1100110, 9, 0x20]);
        assert_eq!(Prefix::read(&bytes), Ok(prefix));
    }

    #[test]
    fn a_short_or_unknown_header_is_refused() {
        assert_eq!(Prefix::read(&[0x10, 0, 0]), Err(HeaderError::Short));
        assert_eq!(Prefix::read(&[0x10; 19]), Err(HeaderError::Short));
        assert_eq!(Prefix::read(&[0x20; 35]), Err(HeaderError::Short));
        assert_eq!(Prefix::read(&[0x30; 64]), Err(HeaderError::Version(3)));
    }

    #[test]
    fn the_probe_of_version_1_packs_its_fields_in_the_order_of_appendix_a() {
        let mut bytes = [0; 20];
        let probe = Probe {
            timestamp: Ticks::new(0x010203),
            echo: Some(Echo { timestamp: Ticks::new(0x040506), delay: Ticks::new(0x070809) }),
            bandwidth: 0x0a0b0c,
            loss: 0x0d0e_0000,
            sequence: 0x0f10,
        };
        probe.write(Version::One, &mut bytes);
        assert_eq!(bytes[4..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    }

    proptest! {
        #[test]
        fn probes_read_back_as_they_were_written(
            fields in prop::array::uniform4(0..=VALUE_MAX), loss in any::<u32>(), sequence in any::<u64>(),
        ) {
            let [timestamp, echo, delay, bandwidth] = fields;
            let echo = (echo != 0 || delay != 0)
                .then(|| Echo { timestamp: Ticks::new(echo), delay: Ticks::new(delay) });
            let probe = Probe { timestamp: Ticks::new(timestamp), echo, bandwidth, loss, sequence };
            let mut bytes = [0; LONGEST];
            probe.write(Version::Two, &mut bytes);
            prop_assert_eq!(Probe::read(Version::Two, &bytes), probe);
            probe.write(Version::One, &mut bytes);
            let short = Probe::read(Version::One, &bytes);
            prop_assert_eq!(short.sequence, sequence & 0xffff);
            prop_assert!(short.loss.abs_diff(loss) <= 0xffff);
            prop_assert_eq!(Probe { loss, sequence, ..short }, probe);
        }

        #[test]
        fn header_words_read_back_as_they_were_written(word in any::<u32>()) {
            prop_assert_eq!(Operation::from_word(word).word(), word);
            prop_assert_eq!(Report::from_word(word).word(), word);
            prop_assert_eq!(Pointer::from_value(word & VALUE_MAX).value(), word & VALUE_MAX);
        }
    }
}
