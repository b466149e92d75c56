//! The exponential function of negative numbers, in the integers of Linux 6.18 `net/ipv4/tcp_cdg.c` (`nexp_u32`).

/// `exp(-x) * 2^16 - 1` for x = 0.000256 and, element by element, twice the x before.
const FACTORS: [u16; 16] = [
    65_518, 65_501, 65_468, 65_401, 65_267, 65_001, 64_470, 63_422, 61_378, 57_484, 50_423, 38_795, 22_965,
    8_047, 987, 14,
];
/// Number of bits of the argument below the first factor, which count linearly.
const LINEAR_BITS: u32 = 8;

/// `exp(-x)` for x in millionths, times `u32::MAX`; 0 from 2^24 millionths on.
pub(super) fn negative_exponential(millionths: u32) -> u32 {
    let high = millionths >> LINEAR_BITS;
    if high >> FACTORS.len() != 0 {
        return 0;
    }
    let low = millionths & ((1 << LINEAR_BITS) - 1);
    let linear = u32::MAX - low * (u32::MAX / 1_000_000);
    let product = |result: u32, (bit, factor): (usize, &u16)| match high >> bit & 1 {
        0 => result,
        _ => ((u64::from(result) * (u64::from(*factor) + 1)) >> 16) as u32,
    };
    FACTORS.iter().enumerate().fold(linear, product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_approximates_the_exponential_function_to_a_ten_thousandth() {
        assert_eq!(negative_exponential(0), u32::MAX);
        for millionths in (0..16_000_000).step_by(997) {
            let ours = f64::from(negative_exponential(millionths)) / f64::from(u32::MAX);
            let exact = (-f64::from(millionths) * 1e-6).exp();
            assert!((ours - exact).abs() < 1e-4, "exp(-{millionths}e-6): {ours}, {exact}");
        }
    }

    #[test]
    fn large_arguments_give_zero() {
        assert_eq!(negative_exponential(1 << 24), 0);
        assert_eq!(negative_exponential(u32::MAX), 0);
    }
}
