//! The report of a queue in the packets that leave it: the identification of IPv4 holds how long the packet has waited, and how many were
//! dropped before it. The code is that of Steen, Destruction Testing: Ultra-Low Delay using Dual Queue Coupled AQM, 2017, section 5.1, whose text
//! rounds the unit to 32 us; it is 2^15 ns. Only in atomic datagrams is the identification free for this (RFC 6864, section 4).

use weir_base::Span;

/// Bits by which a time in nanoseconds is shifted to units of a delay: 32.768 us each.
const UNIT: u32 = 15;

/// A number of few bits: a mantissa below an exponent, as floating point has, without a sign. Small numbers are exact, and larger ones are
/// rounded down by less than a part in 2^mantissa.
#[derive(Debug, Clone, Copy)]
struct Code {
    mantissa: u32,
    exponent: u32,
}

/// Delays: 11 bits.
const DELAY: Code = Code { mantissa: 7, exponent: 4 };
/// Drops: 5 bits.
const DROPS: Code = Code { mantissa: 2, exponent: 3 };

impl Code {
    const fn bits(self) -> u32 {
        self.mantissa + self.exponent
    }

    /// The largest number: all bits of the mantissa, by the largest power.
    const fn most(self) -> u64 {
        ((1 << (self.mantissa + 1)) - 1) << ((1 << self.exponent) - 2)
    }

    /// The code of a number, and what of the number it leaves out.
    fn encode(self, number: u64) -> (u16, u64) {
        if number >= self.most() {
            return ((1 << self.bits()) - 1, number - self.most());
        }
        if number < 1 << (self.mantissa + 1) {
            return (number as u16, 0);
        }
        let power = number.ilog2() - self.mantissa;
        let mantissa = (number >> power) & ((1 << self.mantissa) - 1);
        let code = u64::from((power + 1) << self.mantissa) | mantissa;
        (code as u16, number & ((1 << power) - 1))
    }

    /// The number of a code.
    fn decode(self, code: u16) -> u64 {
        let code = u64::from(code) & ((1 << self.bits()) - 1);
        if code < 1 << (self.mantissa + 1) {
            return code;
        }
        let mantissa = code & ((1 << self.mantissa) - 1);
        (mantissa | 1 << self.mantissa) << ((code >> self.mantissa) - 1)
    }
}

/// What a packet reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// How long it has waited in the queue, rounded down.
    pub delay: Span,
    /// How many packets of its kind (with an ECN codepoint, or without) were dropped since the last report.
    pub drops: u64,
}

impl Stamp {
    /// The identification that says this, and the drops that it leaves for the next packet.
    pub fn encode(self) -> (u16, u64) {
        let (delay, _) = DELAY.encode(self.delay.as_nanos() >> UNIT);
        let (drops, left) = DROPS.encode(self.drops);
        (drops << DELAY.bits() | delay, left)
    }

    /// What an identification says.
    pub fn decode(identification: u16) -> Stamp {
        Stamp {
            delay: Span::from_nanos(DELAY.decode(identification) << UNIT),
            drops: DROPS.decode(identification >> DELAY.bits()),
        }
    }
}

/// Writes an identification into an IPv4 header and mends its checksum (RFC 1624, equation 3); false, with nothing written, if this is not the
/// whole header of an atomic IPv4 datagram.
pub fn write(ip: &mut [u8], identification: u16) -> bool {
    let Some(header) = ip.first_chunk_mut::<20>() else { return false };
    // Version 4; "don't fragment", no more fragments, offset zero.
    if header[0] >> 4 != 4 || u16::from_be_bytes([header[6], header[7]]) & 0x7fff != 0x4000 {
        return false;
    }
    let word = |at: usize| u32::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let sum = (!word(10) & 0xffff) + (!word(4) & 0xffff) + u32::from(identification);
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_codes_of_the_study() {
        // Number, code, and what is left out.
        let delays = [
            (255, 255, 0),
            (256, 256, 0),
            (257, 256, 1),
            (258, 257, 0),
            (511, 383, 1),
            (512, 384, 0),
            (1000, 506, 0),
            (100_000, 1347, 160),
            (4_177_920, 2047, 0),
            (4_177_925, 2047, 5),
        ];
        for (number, code, left) in delays {
            assert_eq!(DELAY.encode(number), (code, left), "{number}");
        }
        assert_eq!((DELAY.decode(383), DELAY.decode(1347)), (510, 99_840));
        let drops: Vec<u64> = (0..32).map(|code| DROPS.decode(code)).collect();
        let table = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160,
            192, 224, 256, 320, 384, 448,
        ];
        assert_eq!(drops, table);
    }

    #[test]
    fn all_codes_read_back_and_grow_with_their_numbers() {
        for code in [DELAY, DROPS] {
            let numbers: Vec<u64> = (0..1 << code.bits()).map(|of| code.decode(of)).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b));
            for (of, number) in (0..).zip(numbers) {
                assert_eq!(code.encode(number), (of, 0));
            }
        }
    }

    #[test]
    fn a_stamp_resolves_32_768_us_below_8_4_ms_and_reaches_beyond_2047_ms() {
        // Row H17 of the study: 11 bits for both, and drops to 448 in 5 bits.
        let delay = |nanos: u64| {
            let (identification, _) = Stamp { delay: Span::from_nanos(nanos), drops: 0 }.encode();
            Stamp::decode(identification).delay.as_nanos()
        };
        assert_eq!([32_767, 32_768, 8_388_607, 8_388_608].map(delay), [0, 32_768, 8_355_840, 8_388_608]);
        // 2,047 ms within a part in 128; the longest, 136.9 s.
        assert_eq!(delay(2_047_000_000), 2_046_820_352);
        assert_eq!(delay(1_000_000_000_000), 136_902_082_560);
        let (identification, left) = Stamp { delay: Span::from_nanos(0), drops: 450 }.encode();
        assert_eq!((identification, left), (31 << 11, 2));
        assert_eq!(Stamp::decode(identification), Stamp { delay: Span::from_nanos(0), drops: 448 });
    }

    /// The sum of a header's words, which is 0xffff if its checksum is right (RFC 1071).
    fn sum(header: &[u8]) -> u32 {
        let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded & 0xffff) + (folded >> 16)
    }

    #[test]
    fn the_checksum_is_right_for_every_identification() {
        let mut header = [0x45, 2, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let checksum = !sum(&header) as u16;
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        for identification in 0..=u16::MAX {
            assert!(write(&mut header, identification));
            assert_eq!(header[4..6], identification.to_be_bytes());
            assert_eq!(sum(&header), 0xffff, "{identification}");
        }
    }

    #[test]
    fn only_atomic_datagrams_of_ipv4_are_written() {
        let header = |first: u8, flags: u8| {
            let mut header = [0; 20];
            (header[0], header[6]) = (first, flags);
            header
        };
        assert!(write(&mut header(0x45, 0x40), 7));
        // May be fragmented; more fragments; IPv6; too short.
        for mut refused in [header(0x45, 0), header(0x45, 0x60), header(0x60, 0x40)] {
            let before = refused;
            assert!(!write(&mut refused, 7));
            assert_eq!(refused, before);
        }
        assert!(!write(&mut header(0x45, 0x40)[..19], 7));
    }
}
