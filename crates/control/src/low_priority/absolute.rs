//! The delay of TCP-LP in Linux (`tcp_lp_remote_hz_estimator`, `tcp_lp_owd_calculator`, `tcp_lp_rtt_sample`): the peer's clock less
//! ours, both in milliseconds, with the 32 bits of the kernel's arithmetic. The kernel multiplies by the tick in whole milliseconds,
//! so a peer whose estimated rate is 1001 ticks per second has ticks of zero.

use super::AVERAGE_SHIFT;
use crate::Timestamps;

/// Delays are milliseconds (`LP_RESOL`).
const RESOLUTION: u32 = 1_000;
/// Weight of a sample in the rate of the peer's clock, as a power of 1/2.
const RATE_SHIFT: u32 = 6;

/// Range and average of the differences of two clocks, in milliseconds.
#[derive(Debug)]
pub(super) struct Absolute {
    /// Estimated ticks per second of the peer's clock; 0 before the first estimate (`remote_hz`).
    peer_rate: u32,
    /// The last values of the peer's clock and of ours; 0 before the first (`remote_ref_time`, `local_ref_time`).
    reference: (u32, u32),
    /// The average delay times 2 to the power of [`AVERAGE_SHIFT`] (`sowd`).
    average: u32,
    least: u32,
    /// The second largest delay, or the largest if there was only one; and the largest (`owd_max`, `owd_max_rsv`).
    most: u32,
    reserve: u32,
}

impl Default for Absolute {
    fn default() -> Absolute {
        Absolute { peer_rate: 0, reference: (0, 0), average: 0, least: u32::MAX, most: 0, reserve: 0 }
    }
}

impl Absolute {
    /// Takes the timestamps of an acknowledgement with an RTT sample.
    pub(super) fn sample(&mut self, timestamps: &Timestamps) {
        // `TCP_TS_HZ`: ticks of our own clock in a second.
        let own_rate = (1_000_000 / timestamps.tick.as_micros().max(1)) as u32;
        self.guess_rate(timestamps, own_rate);
        let Some(peer_tick) = RESOLUTION.checked_div(self.peer_rate) else { return };
        let peer = timestamps.peer_ticks.wrapping_mul(peer_tick);
        let own = timestamps.echoed_ticks.wrapping_mul(RESOLUTION / own_rate.max(1));
        let delay = peer.wrapping_sub(own);
        if delay == 0 {
            return;
        }
        self.least = self.least.min(delay);
        self.raise(delay);
        self.average = match self.average {
            0 => delay << AVERAGE_SHIFT,
            average => average.wrapping_add(delay.wrapping_sub(average >> AVERAGE_SHIFT)),
        };
    }

    /// Estimates the rate of the peer's clock from the advance of both clocks since the last sample. Fractions of a tick per second
    /// are dropped, so the estimate falls by one for the smallest error, and rises only for an error of at least 64.
    fn guess_rate(&mut self, timestamps: &Timestamps, own_rate: u32) {
        let (peer, own) =
            std::mem::replace(&mut self.reference, (timestamps.peer_ticks, timestamps.echoed_ticks));
        let peer_steps = timestamps.peer_ticks.wrapping_sub(peer);
        let own_steps = timestamps.echoed_ticks.wrapping_sub(own);
        if peer == 0 || own == 0 || peer_steps == 0 || own_steps == 0 {
            return;
        }
        let seen = i64::from(own_rate.wrapping_mul(peer_steps) / own_steps);
        self.peer_rate = match i64::from(self.peer_rate) {
            0 => seen as u32,
            known => (((known << RATE_SHIFT) + seen - known) >> RATE_SHIFT) as u32,
        };
    }

    /// Raises the largest delay: a new maximum is put aside, and the maximum before it counts.
    fn raise(&mut self, delay: u32) {
        if delay <= self.most {
            return;
        }
        self.most = delay;
        if delay > self.reserve {
            if self.reserve != 0 {
                self.most = self.reserve;
            }
            self.reserve = delay;
        }
    }

    /// Whether the average is above `percent` of the range.
    pub(super) fn is_above(&self, percent: u32) -> bool {
        let share = percent.wrapping_mul(self.most.wrapping_sub(self.least)) / 100;
        self.average >> AVERAGE_SHIFT > self.least.wrapping_add(share)
    }

    /// Resets the range after a reduction, from the average to twice that.
    pub(super) fn begin_range(&mut self) {
        self.least = self.average >> AVERAGE_SHIFT;
        self.most = self.average >> (AVERAGE_SHIFT - 1);
        self.reserve = self.most;
    }

    /// For the records: reports the rate, and returns the average, smallest and largest delay.
    pub(super) fn describe(&self, report: &mut dyn FnMut(&'static str, f64)) -> (f64, f64, f64) {
        report("peer_ticks_per_second", f64::from(self.peer_rate));
        let least = if self.least == u32::MAX { 0 } else { self.least };
        (f64::from(self.average) / 8.0, f64::from(least), f64::from(self.most))
    }
}

#[cfg(test)]
impl Absolute {
    /// The estimated rate of the peer's clock.
    pub(super) fn describe_rate(&self) -> u32 {
        self.peer_rate
    }
    /// Sets rate, average and range.
    pub(super) fn set_for_test(&mut self, peer_rate: u32, average: u32, (least, most): (u32, u32)) {
        (self.peer_rate, self.average) = (peer_rate, average << AVERAGE_SHIFT);
        (self.least, self.most, self.reserve) = (least, most, most);
    }
}
