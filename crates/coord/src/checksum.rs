//! Incremental repair of the UDP checksum (section 5.2; RFC 1624, equation 3). The CP header is in the payload, so the UDP
//! checksum changes, although the source's prose says IP.

/// The checksum after `old` became `new`; both begin at an even offset of the datagram and have the same even length.
/// A checksum of zero means no checksum (RFC 768) and stays zero; a result of zero is sent as all ones.
pub fn repaired(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    debug_assert!(old.len() == new.len() && old.len().is_multiple_of(2));
    if checksum == 0 {
        return 0;
    }
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
    };
    // HC' = ~(~HC + ~m + m'), summed over all words: the complement of n words is n times 0xffff minus their sum.
    let complement = (old.len() / 2) as u32 * 0xffff - words(old);
    let mut sum = u32::from(!checksum) + complement + words(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(bytes: &[u8]) -> u16 {
        let mut sum: u32 =
            bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        if !(sum as u16) == 0 { 0xffff } else { !(sum as u16) }
    }

    #[test]
    fn an_absent_checksum_stays_absent() {
        assert_eq!(repaired(0, &[1, 2, 3, 4], &[5, 6, 7, 8]), 0);
    }

    proptest! {
        #[test]
        fn a_repaired_checksum_equals_one_computed_over_the_whole_packet(
            before in prop::collection::vec(any::<u8>(), 36),
            after in prop::collection::vec(any::<u8>(), 36),
            rest in prop::collection::vec(any::<u8>(), 64),
        ) {
            let old = whole(&[&before[..], &rest].concat());
            prop_assert_eq!(repaired(old, &before, &after), whole(&[&after[..], &rest].concat()));
        }
    }
}
