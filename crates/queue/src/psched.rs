//! Linux's conversion of bytes to time for shapers: a 32-bit multiplier and a shift replace a division, and the result is rounded
//! down to nanoseconds (`psched_ratecfg_precompute`, `psched_l2t_ns`; net/sched/sch_generic.c, include/net/sch_generic.h). `tc`
//! passes the buckets of HTB in ticks of 64 ns (PSCHED_SHIFT 6, include/net/pkt_sched.h).

use weir_base::{Bytes, Rate, Span};

/// The bytes of an Ethernet frame that Linux counts beside the IP packet: its header (ETH_HLEN, linux/if_ether.h).
pub(crate) const ETHERNET_HEADER: Bytes = Bytes::new(14);
const NANOS_PER_SEC: u64 = 1_000_000_000;
/// A tick in nanoseconds.
const TICK: u64 = 64;

/// A rate as the kernel keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinuxRate {
    bytes_per_sec: u64,
    mult: u32,
    shift: u32,
}

impl LinuxRate {
    /// `tc` passes rates in whole bytes per second, so the rate is rounded down, to one byte per second at least.
    pub(crate) fn new(rate: Rate) -> LinuxRate {
        let bytes_per_sec = (rate.bits_per_sec() / 8).max(1);
        let (mut factor, mut shift) = (NANOS_PER_SEC, 0);
        loop {
            let mult = factor / bytes_per_sec;
            // The multiplier has all 32 bits, or one more shift would overflow.
            if mult & (1 << 31) != 0 || factor & (1 << 63) != 0 {
                return LinuxRate { bytes_per_sec, mult: mult as u32, shift };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// The time to send `bytes`, at most about 4 GB, in nanoseconds.
    #[inline]
    pub(crate) fn nanos(self, bytes: u64) -> i64 {
        ((bytes * u64::from(self.mult)) >> self.shift) as i64
    }

    /// The time to send `bytes` in nanoseconds, rounded up to ticks, as `tc` passes it (`tc_calc_xmittime`).
    pub(crate) fn nanos_in_ticks(self, bytes: Bytes) -> i64 {
        let nanos = u128::from(bytes.get()) * u128::from(NANOS_PER_SEC);
        let ticks = nanos.div_ceil(u128::from(self.bytes_per_sec) * u128::from(TICK));
        // A tick count has 32 bits.
        (u64::try_from(ticks).unwrap_or(u64::MAX).min(u32::MAX.into()) * TICK) as i64
    }

    /// The bytes sent in a time at this rate.
    pub(crate) fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.bytes_per_sec) * u128::from(span.as_nanos()) / u128::from(NANOS_PER_SEC);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    pub(crate) fn bytes_per_sec(self) -> u64 {
        self.bytes_per_sec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_are_rounded_down_as_in_the_kernel() {
        // 1,250,000 B/s: 800 ns a byte, exact in binary down to the 22nd place (1e9 * 2^22 / 1,250,000 = 3,355,443,200).
        let rate = LinuxRate::new(Rate::from_mbit_per_sec(10));
        assert_eq!((rate.mult, rate.shift), (3_355_443_200, 22));
        assert_eq!(rate.nanos(1514), 1_211_200);
        // 3 bytes/s: the multiplier is rounded down, so 3 bytes take a nanosecond less than a second.
        let rate = LinuxRate::new(Rate::from_bits_per_sec(24));
        assert_eq!(rate.nanos(3), 999_999_999);
        // 400 Gbit/s: 0.02 ns a byte.
        assert_eq!(LinuxRate::new(Rate::from_mbit_per_sec(400_000)).nanos(1500), 29);
    }

    #[test]
    fn a_bucket_is_converted_to_whole_ticks() {
        let rate = LinuxRate::new(Rate::from_mbit_per_sec(8));
        // 2000 bytes at 1 MB/s are 2 ms, or 31,250 ticks; one byte is 1 us, or 15.6 ticks.
        assert_eq!(
            (rate.nanos_in_ticks(Bytes::new(2000)), rate.nanos_in_ticks(Bytes::new(1))),
            (2_000_000, 16 * 64)
        );
    }
}
