//! One-way delay from TCP timestamps (RFC 7323): the peer's clock when it acknowledged, less ours when the acknowledged segment
//! left. How far the clocks are apart is unknown, so only changes mean anything; delays count from the first acknowledgement,
//! and the way back is not in them. Source: RFC 6817, section 2, and the Linux modules of LEDBAT that came after it.
//!
//! Clocks are counted on over the wrap of their 32 bits. They are taken to run at the same rate: skew is not corrected. A
//! delayed acknowledgement tells of the oldest segment that it acknowledges, and looks like a longer delay.

use crate::Timestamps;
use weir_base::Span;

/// One-way delays of a connection.
#[derive(Debug)]
pub(crate) struct OneWayDelay {
    /// What the clocks are rounded down to, in microseconds, where that is coarser than their ticks.
    step: i64,
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
    /// The tick that was seen last, and what it is when counted on over the wrap.
    raw: u32,
    ticks: i64,
    /// The first tick.
    zero: i64,
}

impl Clock {
    fn new(raw: u32) -> Clock {
        Clock { raw, ticks: i64::from(raw), zero: i64::from(raw) }
    }

    /// Time since the first tick in milliseconds, both rounded down to `step` (microseconds).
    fn millis(&mut self, raw: u32, tick: i64, step: i64) -> i64 {
        self.ticks += i64::from(raw.wrapping_sub(self.raw) as i32);
        self.raw = raw;
        let round = |ticks: i64| (ticks * tick).div_euclid(step) * step;
        (round(self.ticks) - round(self.zero)).div_euclid(1_000)
    }
}

impl OneWayDelay {
    /// `coarse` is the tick of the clocks that timestamps are taken from, where that is longer than what the connection's
    /// timestamps count in.
    pub(crate) fn new(coarse: Span) -> OneWayDelay {
        OneWayDelay { step: i64::try_from(coarse.as_micros()).unwrap_or(i64::MAX), clocks: None }
    }

    /// Milliseconds by which the delay of the acknowledged segment is above that of the first; negative where it is below.
    pub(crate) fn sample(&mut self, timestamps: &Timestamps) -> i64 {
        let tick = timestamps.tick.as_micros() as i64;
        let step = self.step.max(tick).max(1);
        let clocks = self.clocks.get_or_insert_with(|| Clocks {
            peer: Clock::new(timestamps.peer_ticks),
            own: Clock::new(timestamps.echoed_ticks),
        });
        let peer = clocks.peer.millis(timestamps.peer_ticks, tick, step);
        peer - clocks.own.millis(timestamps.echoed_ticks, tick, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays seen when segments that left at these ticks are acknowledged at those of the peer's clock.
    fn delays(coarse: u64, ticks: &[(u32, u32)]) -> Vec<i64> {
        let mut owd = OneWayDelay::new(Span::from_millis(coarse));
        let sample = |&(echoed_ticks, peer_ticks)| {
            let tick = Span::from_millis(1);
            owd.sample(&Timestamps { peer_ticks, echoed_ticks, own_ticks: echoed_ticks, tick })
        };
        ticks.iter().map(sample).collect()
    }

    #[test]
    fn counts_from_the_first_whatever_the_clocks_show() {
        // The peer's clock is 5,000 ahead; the way takes 20, 27 and 18 ms.
        assert_eq!(delays(0, &[(100, 5_120), (110, 5_137), (120, 5_138)]), [0, 7, -2]);
        // It is far behind.
        assert_eq!(delays(0, &[(90_000, 20), (90_010, 37)]), [0, 7]);
    }

    #[test]
    fn goes_on_over_the_wrap_of_either_clock() {
        assert_eq!(delays(0, &[(10, u32::MAX - 1), (20, 13)]), [0, 5]);
        assert_eq!(delays(0, &[(u32::MAX - 4, 100), (5, 113)]), [0, 3]);
    }

    #[test]
    fn coarse_clocks_show_steps() {
        // In steps of 4 ms both clocks are rounded down: 8 and 20, 12 and 24 are no change, 12 and 28 are four.
        assert_eq!(delays(4, &[(9, 23), (13, 27), (14, 29)]), [0, 0, 4]);
    }
}
