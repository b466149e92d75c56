//! One-way delay from TCP timestamps (RFC 7323): the peer's clock when it acknowledged, less ours when the acknowledged segment
//! left. The offset of the clocks is unknown, so only changes have a meaning; delays are relative to the first acknowledgement,
//! and do not include the return path. Source: RFC 6817, section 2, and the Linux modules of LEDBAT that followed it.
//!
//! Wraps of the 32-bit clocks are corrected; skew is not: the clocks are assumed to run at the same rate. A delayed
//! acknowledgement echoes the oldest segment that it acknowledges, and looks like a longer delay.

use crate::Timestamps;
use weir_base::Span;

const MILLISECOND: Span = Span::from_millis(1);

/// One-way delays of a connection.
#[derive(Debug, Default)]
pub(crate) struct OneWayDelay {
    clocks: Option<Clocks>,
}

/// The two clocks, in ticks; each has its own origin.
#[derive(Debug)]
struct Clocks {
    peer: Clock,
    own: Clock,
}

#[derive(Debug)]
struct Clock {
    /// The last tick.
    raw: u32,
    /// Ticks without wraps; the first tick counts as [`FIRST`].
    ticks: u64,
}

/// The value of the first tick. It is large, so that ticks stay positive when a timestamp is older than the first one, and it is a
/// whole number of milliseconds for every length of a tick, so that differences do not depend on it.
const FIRST: u64 = 1_000 << 32;

impl Clock {
    fn new(raw: u32) -> Clock {
        Clock { raw, ticks: FIRST }
    }

    /// The clock's time in milliseconds, rounded down.
    #[inline(always)]
    fn millis(&mut self, raw: u32, tick: Span) -> u64 {
        self.ticks = self.ticks.wrapping_add_signed(i64::from(raw.wrapping_sub(self.raw) as i32));
        self.raw = raw;
        // Nearly every clock has this tick.
        if tick == MILLISECOND { self.ticks } else { self.ticks.wrapping_mul(tick.as_micros()) / 1_000 }
    }
}

impl OneWayDelay {
    /// The delay of the acknowledged segment less the delay of the first one, in milliseconds.
    pub(crate) fn sample(&mut self, timestamps: &Timestamps) -> i64 {
        let tick = timestamps.tick;
        let clocks = self.clocks.get_or_insert_with(|| Clocks {
            peer: Clock::new(timestamps.peer_ticks),
            own: Clock::new(timestamps.echoed_ticks),
        });
        let peer = clocks.peer.millis(timestamps.peer_ticks, tick);
        peer.wrapping_sub(clocks.own.millis(timestamps.echoed_ticks, tick)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delays of segments that left at the first tick of a pair and were acknowledged at the second, which is the peer's.
    fn delays(tick: Span, ticks: &[(u32, u32)]) -> Vec<i64> {
        let mut owd = OneWayDelay::default();
        let sample = |&(echoed_ticks, peer_ticks)| owd.sample(&Timestamps { peer_ticks, echoed_ticks, tick });
        ticks.iter().map(sample).collect()
    }

    #[test]
    fn delays_are_relative_to_the_first_sample_whatever_the_clock_offsets() {
        // The peer's clock is 5,000 ahead; the delays are 20, 27 and 18 ms.
        assert_eq!(delays(MILLISECOND, &[(100, 5_120), (110, 5_137), (120, 5_138)]), [0, 7, -2]);
        // The peer's clock is far behind.
        assert_eq!(delays(MILLISECOND, &[(90_000, 20), (90_010, 37)]), [0, 7]);
    }

    #[test]
    fn delays_stay_correct_across_a_wrap_of_either_clock() {
        assert_eq!(delays(MILLISECOND, &[(10, u32::MAX - 1), (20, 13)]), [0, 5]);
        assert_eq!(delays(MILLISECOND, &[(u32::MAX - 4, 100), (5, 113)]), [0, 3]);
    }

    #[test]
    fn coarse_and_fine_ticks_give_delays_in_milliseconds() {
        // Ticks of 4 ms: in the last pair the peer's clock has advanced one tick more than ours.
        assert_eq!(delays(Span::from_millis(4), &[(2, 5), (3, 6), (3, 7)]), [0, 0, 4]);
        // Microseconds: 20,000 and 20,999 are 20 ms both.
        assert_eq!(delays(Span::from_micros(1), &[(0, 0), (5_000, 25_000), (5_000, 25_999)]), [0, 20, 20]);
    }
}
