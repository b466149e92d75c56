//! One-way delay from TCP timestamps (RFC 7323): the peer's clock when it acknowledged, less ours when the acknowledged segment
//! left. How far the clocks are apart is unknown, so only changes mean anything; delays count from the first acknowledgement,
//! and the way back is not in them. Source: RFC 6817, section 2, and the Linux modules of LEDBAT that came after it.
//!
//! Clocks are counted on over the wrap of their 32 bits. They are taken to run at the same rate: skew is not corrected. A
//! delayed acknowledgement tells of the oldest segment that it acknowledges, and looks like a longer delay.

use crate::Timestamps;

/// One-way delays of a connection.
#[derive(Debug, Default)]
pub(crate) struct OneWayDelay {
    clocks: Option<Clocks>,
}

/// The two clocks, in ticks since a moment that each has for itself.
#[derive(Debug)]
struct Clocks {
    peer: Clock,
    own: Clock,
}

#[derive(Debug)]
struct Clock {
    /// The tick that was seen last.
    raw: u32,
    /// Ticks, counted on over the wrap from [`FIRST`].
    ticks: u64,
}

/// What the first tick counts as. It is large, so that ticks stay above zero where a timestamp is older than the first one, and it is a
/// whole number of milliseconds for every length of a tick, so that differences do not depend on it.
const FIRST: u64 = 1_000 << 32;

impl Clock {
    fn new(raw: u32) -> Clock {
        Clock { raw, ticks: FIRST }
    }

    /// Its time in milliseconds, rounded down, with ticks of so many microseconds.
    fn millis(&mut self, raw: u32, tick: u64) -> u64 {
        self.ticks = self.ticks.wrapping_add_signed(i64::from(raw.wrapping_sub(self.raw) as i32));
        self.raw = raw;
        self.ticks.wrapping_mul(tick) / 1_000
    }
}

impl OneWayDelay {
    /// Milliseconds by which the delay of the acknowledged segment is above that of the first; negative where it is below.
    pub(crate) fn sample(&mut self, timestamps: &Timestamps) -> i64 {
        let tick = timestamps.tick.as_micros();
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
    use weir_base::Span;

    /// Delays seen when segments that left at these ticks are acknowledged at those of the peer's clock.
    fn delays(tick: Span, ticks: &[(u32, u32)]) -> Vec<i64> {
        let mut owd = OneWayDelay::default();
        let sample = |&(echoed_ticks, peer_ticks)| {
            owd.sample(&Timestamps { peer_ticks, echoed_ticks, own_ticks: echoed_ticks, tick })
        };
        ticks.iter().map(sample).collect()
    }
    const MILLISECOND: Span = Span::from_millis(1);

    #[test]
    fn counts_from_the_first_whatever_the_clocks_show() {
        // The peer's clock is 5,000 ahead; the way takes 20, 27 and 18 ms.
        assert_eq!(delays(MILLISECOND, &[(100, 5_120), (110, 5_137), (120, 5_138)]), [0, 7, -2]);
        // It is far behind.
        assert_eq!(delays(MILLISECOND, &[(90_000, 20), (90_010, 37)]), [0, 7]);
    }

    #[test]
    fn goes_on_over_the_wrap_of_either_clock() {
        assert_eq!(delays(MILLISECOND, &[(10, u32::MAX - 1), (20, 13)]), [0, 5]);
        assert_eq!(delays(MILLISECOND, &[(u32::MAX - 4, 100), (5, 113)]), [0, 3]);
    }

    #[test]
    fn ticks_may_be_coarse_or_fine() {
        // A tick of 4 ms: one more of the peer's than of ours.
        assert_eq!(delays(Span::from_millis(4), &[(2, 5), (3, 6), (3, 7)]), [0, 0, 4]);
        // Microseconds: 20,000 and 20,999 are 20 ms both.
        assert_eq!(delays(Span::from_micros(1), &[(0, 0), (5_000, 25_000), (5_000, 25_999)]), [0, 20, 20]);
    }
}
