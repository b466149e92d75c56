//! The erasure code of a group: systematic Reed-Solomon over GF(2^8) with a Cauchy matrix (Bloemer et al., "An XOR-based
//! erasure-resilient coding scheme", ICSI TR-95-048). The source packets stay as they are; any `k` of the source and repair
//! packets of a group of `k` restore it, since each square part of a Cauchy matrix can be inverted.
//!
//! A repair packet is a sum of the source packets, each multiplied by a constant. The sum is computed one bit of the constants at a time
//! (Horner's rule in the field's element 2), so that the inner loops are shifts and exclusive ors over whole packets.

/// Maximum number of source packets of a group.
pub const MOST_SOURCES: usize = 16;
/// Maximum number of repair packets of a group: the elements of the field that no source packet uses.
pub const MOST_REPAIRS: usize = 256 - MOST_SOURCES;
/// The field's polynomial without its first term, x^8 + x^4 + x^3 + x^2 + 1, of which 2 is a generator.
const POLYNOMIAL: u8 = 0x1d;

/// Multiplies by the element 2.
#[inline]
const fn twice(a: u8) -> u8 {
    (a << 1) ^ (POLYNOMIAL & 0u8.wrapping_sub(a >> 7))
}

/// The product of two elements.
const fn times(a: u8, b: u8) -> u8 {
    let (mut product, mut bit) = (0, 8);
    while bit > 0 {
        bit -= 1;
        product = twice(product) ^ if b >> bit & 1 == 1 { a } else { 0 };
    }
    product
}

/// The inverse of each element but 0.
const INVERSES: [u8; 256] = {
    let (mut inverses, mut power, mut left) = ([0; 256], 1, 255);
    // The powers of 2 are all elements but 0; the inverse of 2^n is 2^(255 - n), since 2^255 = 1.
    let mut powers = [0; 256];
    while left > 0 {
        powers[left] = power;
        left -= 1;
        power = twice(power);
    }
    let mut exponent = 0;
    while exponent < 255 {
        // `powers[255 - n]` is 2^n.
        inverses[powers[255 - exponent] as usize] = powers[if exponent == 0 { 255 } else { exponent }];
        exponent += 1;
    }
    inverses
};

/// The inverse of an element that is not 0.
fn inverse(a: u8) -> u8 {
    INVERSES[usize::from(a)]
}

/// The coefficient of a source packet in a repair packet.
fn coefficient(repair: usize, source: usize) -> u8 {
    inverse((MOST_SOURCES + repair) as u8 ^ source as u8)
}

/// Adds the packets to `sum`, each times its constant. Packets shorter than the sum are padded with zeros.
fn combine(sum: &mut [u8], packets: &[(u8, &[u8])]) {
    for bit in (0..8).rev() {
        if bit < 7 {
            sum.iter_mut().for_each(|byte| *byte = twice(*byte));
        }
        for (_, packet) in packets.iter().filter(|(constant, _)| constant >> bit & 1 == 1) {
            sum.iter_mut().zip(*packet).for_each(|(byte, other)| *byte ^= other);
        }
    }
}

/// Writes the repair packet with this number (from 0) of the source packets into `repair`: as long as the longest source packet; shorter
/// ones are padded with zeros. There are at most [`MOST_SOURCES`], and `number` is below [`MOST_REPAIRS`]; further source packets are
/// ignored.
pub fn encode(sources: &[&[u8]], number: usize, repair: &mut Vec<u8>) {
    let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    repair.clear();
    repair.resize(longest, 0);
    let mut terms = [(0, &[][..]); MOST_SOURCES];
    for (at, (term, source)) in terms.iter_mut().zip(sources).enumerate() {
        *term = (coefficient(number, at), source);
    }
    combine(repair, &terms[..sources.len().min(MOST_SOURCES)]);
}

/// Restores the source packets that are `None` from repair packets, each with its number. Restored packets have the length of the longest
/// repair packet. Returns `false`, and changes nothing, if there are fewer repair packets than missing packets, or if the repair packets
/// are not valid for this group.
pub fn restore(sources: &mut [Option<Vec<u8>>], repairs: &[(usize, &[u8])]) -> bool {
    let missing: Vec<usize> = (0..sources.len()).filter(|at| sources[*at].is_none()).collect();
    let repairs = &repairs[..repairs.len().min(missing.len())];
    let valid = repairs.iter().enumerate().all(|(at, (number, _))| {
        *number < MOST_REPAIRS && repairs[..at].iter().all(|(other, _)| other != number)
    });
    if repairs.len() < missing.len() || !valid || sources.len() > MOST_SOURCES {
        return false;
    }
    let length = repairs.iter().map(|(_, repair)| repair.len()).max().unwrap_or(0);
    // The contribution of the missing packets: the repair packets minus the source packets that are here.
    let sums: Vec<Vec<u8>> = repairs
        .iter()
        .map(|(number, repair)| {
            let here = sources.iter().enumerate();
            let terms: Vec<(u8, &[u8])> = here
                .filter_map(|(at, source)| source.as_deref().map(|source| (coefficient(*number, at), source)))
                .collect();
            let mut sum = vec![0; length];
            combine(&mut sum, &terms);
            sum.iter_mut().zip(*repair).for_each(|(byte, other)| *byte ^= other);
            sum
        })
        .collect();
    let matrix = inverted(repairs, &missing);
    for (row, at) in missing.into_iter().enumerate() {
        let terms: Vec<(u8, &[u8])> =
            sums.iter().enumerate().map(|(column, sum)| (matrix[row][column], sum.as_slice())).collect();
        let mut restored = vec![0; length];
        combine(&mut restored, &terms);
        sources[at] = Some(restored);
    }
    true
}

type Matrix = [[u8; MOST_SOURCES]; MOST_SOURCES];

/// The inverse of the matrix that maps the missing packets to these repair packets (Gauss and Jordan). No pivot is 0: every leading part
/// of a Cauchy matrix can be inverted.
fn inverted(repairs: &[(usize, &[u8])], missing: &[usize]) -> Matrix {
    let size = missing.len();
    let (mut left, mut right): (Matrix, Matrix) = Default::default();
    for (row, (number, _)) in repairs.iter().enumerate() {
        right[row][row] = 1;
        for (column, at) in missing.iter().enumerate() {
            left[row][column] = coefficient(*number, *at);
        }
    }
    for pivot in 0..size {
        let factor = inverse(left[pivot][pivot]);
        for column in 0..size {
            left[pivot][column] = times(factor, left[pivot][column]);
            right[pivot][column] = times(factor, right[pivot][column]);
        }
        for row in (0..size).filter(|row| *row != pivot) {
            let factor = left[row][pivot];
            for column in 0..size {
                left[row][column] ^= times(factor, left[pivot][column]);
                right[row][column] ^= times(factor, right[pivot][column]);
            }
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn products_in_the_field_match_values_computed_by_hand() {
        // x^7 times x is x^8, which is x^4 + x^3 + x^2 + 1.
        assert_eq!(times(0x80, 2), 0x1d);
        // (x + 1)(x + 1) is x^2 + 1: the cross terms cancel.
        assert_eq!(times(3, 3), 5);
        for a in 1..=255 {
            assert_eq!(times(a, inverse(a)), 1);
        }
    }

    #[test]
    fn one_source_packet_is_restored_from_a_repair_of_any_number() {
        let mut repair = Vec::new();
        for number in 0..MOST_REPAIRS {
            encode(&[b"only"], number, &mut repair);
            let mut sources = [None];
            assert!(restore(&mut sources, &[(number, &repair)]));
            assert_eq!(sources[0].as_deref(), Some(&b"only"[..]));
        }
    }

    #[test]
    fn too_few_repairs_restore_nothing() {
        let mut repair = Vec::new();
        encode(&[b"one", b"two"], 0, &mut repair);
        let mut sources = [None, None];
        assert!(!restore(&mut sources, &[(0, &repair)]));
        // The same repair packet twice adds nothing.
        assert!(!restore(&mut sources, &[(0, &repair), (0, &repair)]));
        assert_eq!(sources, [None, None]);
    }

    proptest! {
        #[test]
        fn any_k_of_the_packets_restore_the_group(
            sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..=MOST_SOURCES),
            lost in any::<u16>(),
            first in 0..MOST_REPAIRS,
        ) {
            let mut packets: Vec<Option<Vec<u8>>> = sources.iter().cloned().map(Some).collect();
            let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let mut repairs = Vec::new();
            for (at, packet) in packets.iter_mut().enumerate() {
                if lost >> at & 1 == 1 {
                    *packet = None;
                    let number = (first + 7 * at) % MOST_REPAIRS;
                    let mut repair = Vec::new();
                    encode(&slices, number, &mut repair);
                    repairs.push((number, repair));
                }
            }
            let repairs: Vec<(usize, &[u8])> = repairs.iter().map(|(n, r)| (*n, r.as_slice())).collect();
            prop_assert!(restore(&mut packets, &repairs));
            for (packet, source) in packets.iter().zip(&sources) {
                let packet = packet.as_ref().unwrap();
                prop_assert!(packet.starts_with(source));
                prop_assert!(packet[source.len()..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
