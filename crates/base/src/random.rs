//! Seeded random streams. Every component draws from a stream of its own, named after it, so that a new component never changes the
//! numbers of another one.

use crate::Span;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers: PCG (O'Neill 2014), 128 bits of state, the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream of the component `name` in the run with this `seed`.
    pub fn stream(seed: u64, name: &str) -> Random {
        Random::stream_of(seed, name, 0)
    }

    /// The stream of the `index`-th component of that name, for example flow 7 of "start".
    #[inline]
    pub fn stream_of(seed: u64, name: &str, index: u64) -> Random {
        // FNV-1a over the name, then two rounds of SplitMix64 over all three: short, portable and well mixed.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut state = seed ^ hash.rotate_left(17) ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&split_mix(&mut state).to_le_bytes());
        bytes[8..].copy_from_slice(&split_mix(&mut state).to_le_bytes());
        Random(Pcg64Mcg::from_seed(bytes))
    }

    /// A uniform 64-bit number.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `[0, 1)`, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number in `0..bound`; 0 when `bound` is 0. The bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform time in `[0, span)`; zero when `span` is zero.
    pub fn within(&mut self, span: Span) -> Span {
        Span::from_nanos(self.below(span.as_nanos()))
    }

    /// True with this probability; always true if it is 1 or more.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_name_and_index() {
        let first = |mut r: Random| r.bits();
        let base = first(Random::stream_of(1, "start", 0));
        assert_eq!(base, first(Random::stream(1, "start")));
        assert_ne!(base, first(Random::stream(2, "start")));
        assert_ne!(base, first(Random::stream(1, "loss")));
        assert_ne!(base, first(Random::stream_of(1, "start", 1)));
    }

    #[test]
    fn uniform_numbers_stay_in_range_and_centre() {
        let mut random = Random::stream(7, "test");
        let mean = (0..100_000).map(|_| random.unit()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        assert!((0..10_000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
    }
}
