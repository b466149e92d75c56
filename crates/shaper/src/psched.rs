//! Rates and buckets in the form of Linux's shapers: `struct tc_ratespec`, and ticks of 64 ns (`PSCHED_SHIFT` 6
//! in include/net/pkt_sched.h, include/uapi/linux/pkt_sched.h).

use weir_base::{Bytes, Rate};

/// A tick in nanoseconds.
const TICK: u128 = 64;
/// `TC_LINKLAYER_ETHERNET`: with a link layer, the kernel needs no table of transmission times.
const ETHERNET: u8 = 1;

/// A rate in whole bytes per second, at least 1.
pub(crate) fn bytes_per_sec(rate: Rate) -> u64 {
    (rate.bits_per_sec() / 8).max(1)
}

/// `struct tc_ratespec`; a rate beyond its 32 bits has an attribute of its own ([`wide`]).
pub(crate) fn rate_spec(rate: Option<Rate>) -> [u8; 12] {
    let mut spec = [0; 12];
    if let Some(rate) = rate {
        spec[1] = ETHERNET;
        let short = u32::try_from(bytes_per_sec(rate)).unwrap_or(u32::MAX);
        spec[8..].copy_from_slice(&short.to_ne_bytes());
    }
    spec
}

/// The rate in bytes per second if 32 bits do not hold it: from 34.4 Gbit/s on. `None` below.
pub(crate) fn wide(rate: Rate) -> Option<[u8; 8]> {
    let bytes = bytes_per_sec(rate);
    (bytes > u32::MAX.into()).then(|| bytes.to_ne_bytes())
}

/// Time to send `size` at a rate, in ticks, rounded up: the form in which `tc` writes buckets
/// (`tc_calc_xmittime`).
pub(crate) fn ticks(rate: Rate, size: Bytes) -> u32 {
    let nanos = u128::from(size.get()) * 1_000_000_000;
    u32::try_from(nanos.div_ceil(u128::from(bytes_per_sec(rate)) * TICK)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_encoded_in_bytes_per_second_and_buckets_in_ticks() {
        let rate = Rate::from_mbit_per_sec(8);
        assert_eq!(rate_spec(Some(rate)), [0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0f, 0]);
        assert_eq!((rate_spec(None), wide(rate)), ([0; 12], None));
        // 2000 bytes at 1 MB/s are 2 ms, or 31,250 ticks; one byte is 1 us, or 15.6 ticks.
        assert_eq!((ticks(rate, Bytes::new(2000)), ticks(rate, Bytes::new(1))), (31_250, 16));
        let fast = Rate::from_mbit_per_sec(100_000);
        assert_eq!(wide(fast), Some(12_500_000_000u64.to_ne_bytes()));
        assert_eq!(rate_spec(Some(fast))[8..], [0xff; 4]);
    }
}
