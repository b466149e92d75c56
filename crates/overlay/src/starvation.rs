//! ASAP: zombies for a destination whose packets have waited long while others left, so that its gradient wins in time.
//!
//! Source: digest A 6.7 (unicast and by member of a group), G 4.4. A comment in the study's source gives coefficient 1, its code 2;
//! we take 2. Its threshold is the smaller of 50 ms and 50 packets' time, as in the code, though it is called a minimum (X 1.5).
//! Here no process sleeps, so no time is subtracted.

use weir_base::{Rate, Span, Time};

/// How often a node looks for starvation at most (digest A 6.7).
pub const PERIOD: Span = Span::from_millis(5);
/// The longest wait without zombies (digest A 6.7).
const THRESHOLD: Span = Span::from_millis(50);
/// Bits of the packets whose time is the threshold on fast links: 50 packets of 12,000 bits (digest A 6.7).
const THRESHOLD_BITS: u64 = 50 * 12_000;
/// Zombie bytes for a wait of 1 ms; they grow with the square of the wait (digest A 6.7).
const COEFFICIENT: f64 = 2.0;

/// What is remembered of a destination: zombie bytes added since bytes last left for it, for sensitive traffic and for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    added: [u64; 2],
}

/// The gradients between which added zombies must close the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rivals {
    /// The largest gradient of any bin.
    pub largest: i64,
    /// This destination's largest one.
    pub own: i64,
    /// The hysteresis of gradients.
    pub hysteresis: u64,
}

/// How long packets may wait, where `capacity` is the sum of a node's links and `bins` the number of its bins.
pub fn threshold(capacity: Rate, bins: usize) -> Span {
    let share = capacity.bits_per_sec() / (bins.saturating_sub(1).max(1) as u64);
    let time = THRESHOLD_BITS.saturating_mul(1_000_000_000).checked_div(share).unwrap_or(u64::MAX);
    Span::from_nanos(time).min(THRESHOLD)
}

impl State {
    /// Bytes for the destination have left.
    pub fn on_departure(&mut self) {
        self.added = [0; 2];
    }

    /// Zombie bytes to add for packets that have waited since `since`, the later of their arrival and the last departure.
    pub fn on_period(
        &mut self,
        sensitive: bool,
        since: Time,
        threshold: Span,
        rivals: Rivals,
        now: Time,
    ) -> u64 {
        let wait = now.since(since);
        if wait <= threshold {
            return 0;
        }
        let milliseconds = wait.as_millis_f64();
        let wanted = (COEFFICIENT * milliseconds * milliseconds) as u64;
        let distance = (rivals.largest.saturating_sub(rivals.own).max(0) as f64 * 1.05) as u64;
        let added = &mut self.added[usize::from(sensitive)];
        let add = wanted.saturating_sub(*added).min(distance.max(rivals.hysteresis + 1));
        *added += add;
        add
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Rivals = Rivals { largest: 1_000_000, own: 0, hysteresis: 150 };

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn zombies_grow_with_the_square_of_the_wait_to_20_kb_at_100_ms() {
        let mut state = State::default();
        assert_eq!(state.on_period(false, at(0), THRESHOLD, FAR, at(50)), 0);
        assert_eq!(state.on_period(false, at(0), THRESHOLD, FAR, at(60)), 7200);
        assert_eq!(state.on_period(false, at(0), THRESHOLD, FAR, at(100)), 12_800);
        assert_eq!(state.on_period(false, at(0), THRESHOLD, FAR, at(100)), 0);
    }

    #[test]
    fn zombies_close_the_distance_to_the_largest_gradient_and_no_more() {
        let near = Rivals { largest: 3000, own: 1000, hysteresis: 150 };
        assert_eq!(State::default().on_period(false, at(0), THRESHOLD, near, at(100)), 2100);
        let first = Rivals { largest: 1000, own: 1000, hysteresis: 150 };
        assert_eq!(State::default().on_period(false, at(0), THRESHOLD, first, at(100)), 151);
    }

    #[test]
    fn a_departure_begins_the_count_anew() {
        let mut state = State::default();
        assert_eq!(state.on_period(true, at(0), THRESHOLD, FAR, at(60)), 7200);
        state.on_departure();
        assert_eq!(state.on_period(true, at(0), THRESHOLD, FAR, at(60)), 7200);
    }

    #[test]
    fn the_threshold_is_50_packets_time_and_at_most_50_ms() {
        assert_eq!(threshold(Rate::from_mbit_per_sec(100), 2), Span::from_millis(6));
        assert_eq!(threshold(Rate::from_mbit_per_sec(10), 2), THRESHOLD);
        assert_eq!(threshold(Rate::from_bits_per_sec(0), 0), THRESHOLD);
    }
}
